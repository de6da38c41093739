"""The benchmark of size measures a checkout in a fresh process."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from benchmark_support import load_benchmark

benchmark = load_benchmark("size")


@pytest.mark.slow
def test_loading_and_the_first_question_are_timed_in_a_fresh_process() -> None:
    found = benchmark.measured(Path(__file__).parents[2])
    parts = [found[name] for name in ("start, s", "load all cases, s", "first question, s")]
    assert min(parts) > 0
    assert math.isclose(sum(parts), found["all three, s"])


def test_a_folder_without_the_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["size.py", "--checkout", str(tmp_path)])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert "no package agentclinic there; name the root of a checkout" in capsys.readouterr().err
