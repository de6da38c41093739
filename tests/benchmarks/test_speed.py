"""The benchmark of speed measures what it says, in either checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmark_support import load_benchmark

S = load_benchmark("speed")


def test_percentiles_are_of_the_times_given() -> None:
    assert S.percentiles([n / 1000 for n in range(100)], "x ") == {"x p50, ms": 50.0, "x p95, ms": 95.0}
    assert S.percentiles([0.002]) == {"p50, ms": 2.0, "p95, ms": 2.0}


def test_a_section_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["speed.py", "lunch"])
    with pytest.raises(SystemExit):
        S.main()
    assert "no section lunch; there are encounters, question, verdict" in capsys.readouterr().err


@pytest.mark.slow
def test_before_and_now_are_measured_in_one_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["speed.py", "verdict", "--checkout", str(Path(__file__).parents[2])])
    S.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["before", "now", "ratio"]
    assert [line.split(",")[0] for line in lines] == ["verdict: p50", "verdict: p95"]
    assert all(len(json.loads("[" + ",".join(line.split()[-3:]) + "]")) == 3 for line in lines)
