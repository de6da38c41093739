"""The benchmark of the engines reads runs and processes as it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmark_support import load_benchmark

S = load_benchmark("scale")


def test_a_journal_says_how_many_encounters_were_under_way_and_how_long_all_took(tmp_path: Path) -> None:
    journal = tmp_path / "scenarios.jsonl"
    played = [("12:00:00", 4.0, "diagnosed"), ("12:00:02", 4.0, "model_failed"), ("12:00:05", 5.0, "diagnosed")]
    records = [
        {"status": status, "timing": {"started_at": f"2026-11-16T{began}+00:00", "seconds": seconds}}
        for began, seconds, status in played
    ]
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))

    run = S.measured(journal, 15.0, S.Usage())

    assert (run.encounters, run.failed, run.most, run.seconds) == (3, 1, 2, 10.0)
    assert run.rate == pytest.approx(0.3)
    assert run.journal_kb == pytest.approx(journal.stat().st_size / 1024 / 3)


def test_cpu_time_before_the_first_encounter_does_not_count() -> None:
    moments = [(0.0, {"main": 1.0}), (5.0, {"main": 4.0}), (9.0, {"main": 5.0, "worker": 2.5}), (20.0, {"main": 9.0})]
    usage = S.Usage([(moment, Counter(used)) for moment, used in moments])
    assert usage.between(6.0, 10.0) == {"main": 1.0, "worker": 2.5}


def test_processes_of_a_command_are_found_with_their_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in S.family(os.getpid())
        assert list(S.family(child.pid)) == [child.pid]
        found = S.process(child.pid)
        child.communicate(b"\n")
    assert found.kind == "ray"
    assert found.peak_mb > 1
    assert S.process(child.pid) is None


@pytest.mark.slow
def test_a_small_measurement_compares_ray_with_the_local_engine(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    S.main(["--quick", "--only", "latency"])
    printed = capsys.readouterr().out.splitlines()
    local, on_ray = (next(line for line in printed if line.startswith(name)) for name in ("local", "Ray, 2"))
    assert local.split()[1:3] == ["8", "0"]
    assert on_ray.removeprefix("Ray, 2 workers").split()[:2] == ["16", "0"]
    assert "worker" in printed[printed.index(on_ray) + 1], "CPU time and memory of the workers"
