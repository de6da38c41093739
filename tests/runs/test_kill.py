"""Nothing is lost and nothing is played twice, however the process dies."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from runs_support import (
    AT_ENDPOINT,
    asked,
    clinic,
    environment,
    lines,
    only_run,
    own_cases,
    point_at,
    records,
    start,
    units,
    until,
)
from scripted_server import LONG, ScriptedServer

SCENARIOS = 40


@pytest.mark.parametrize(
    ("seed", "kills"),
    [(1, 3), pytest.param(2, 10, marks=pytest.mark.slow), pytest.param(3, 10, marks=pytest.mark.slow)],
)
def test_a_run_killed_at_random_moments_ends_with_every_unit_exactly_once(
    seed: int, kills: int, server: ScriptedServer, tmp_path: Path
) -> None:
    """The moments are numbers of requests, so that no clock decides where they fall."""
    chance = random.Random(seed)
    server.control(latency=0.005, jitter=0.5, keep_log=False)
    point_at(tmp_path, server)
    path = own_cases(tmp_path / "cases", SCENARIOS)
    recording = tmp_path / "recording.jsonl"
    begin: list[str | Path] = [
        "run",
        "--dataset",
        path,
        "--num_scenarios",
        str(SCENARIOS),
        "--workers",
        "4",
        "--output_dir",
        "out",
    ]
    command = [*begin, *AT_ENDPOINT, "--record", recording]
    for _ in range(kills):
        count = chance.randint(1, 25)
        moment = asked(server) + count
        # Soon after it nothing is answered: a kill that comes late still comes before the end.
        server.control(rules=[{"match": {"nth": list(range(count + 8, 999))}, "fault": "hang"}])
        process = start(*command, "--quiet", cwd=tmp_path)
        until(lambda moment=moment: asked(server) >= moment, f"request {moment}", process)  # type: ignore[misc]
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        command = ["resume", only_run(tmp_path / "out")]
    server.control(rules=[])

    result = json.loads(clinic(*command, "--json", cwd=tmp_path).stdout)

    written = records(only_run(tmp_path / "out"))
    assert units(written) == [(row, 0) for row in range(SCENARIOS)]
    assert all(record["status"] == "diagnosed" for record in written)
    assert (result["presented"], result["correct"], result["missing"]) == (SCENARIOS, SCENARIOS, 0)
    lines(recording)  # every line of it is whole, too


@pytest.mark.parametrize(
    "cut", [pytest.param(1, marks=pytest.mark.slow), 40, pytest.param(400, marks=pytest.mark.slow)]
)
def test_an_incomplete_last_line_is_removed_reported_and_played_again(cut: int, tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "3", "--output_dir", "out", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    whole = (folder / "scenarios.jsonl").read_bytes()
    (folder / "scenarios.jsonl").write_bytes(whole[:-cut])

    said = clinic("resume", folder, cwd=tmp_path).stderr

    assert units(records(folder)) == [(0, 0), (1, 0), (2, 0)]
    if cut == 1:
        assert (folder / "scenarios.jsonl").read_bytes() == whole, "only the end of the line was missing"
    else:
        assert "removed an incomplete last line" in said
        assert "scenarios.jsonl" in said


def test_a_damaged_line_in_the_middle_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "2", "--output_dir", "out", cwd=tmp_path)
    journal = only_run(tmp_path / "out") / "scenarios.jsonl"
    first, second = journal.read_text().splitlines()
    journal.write_text(f"{first[:50]}\n{second}\n")
    before = journal.read_bytes()

    for flags in ([], ["--retry-failed"]):
        done = clinic("resume", journal.parent, *flags, cwd=tmp_path, expect=2)
        assert "scenarios.jsonl line 1" in done.stderr

    assert journal.read_bytes() == before


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_a_word_and_leaves_whole_lines(tmp_path: Path) -> None:
    """The limit on file size stands in for the disk: a write is cut short in the same way."""
    clinic("run", "--output_dir", "whole", "--quiet", cwd=tmp_path)
    charts, journal = (
        (only_run(tmp_path / "whole") / name).stat().st_size for name in ("cases.jsonl", "scenarios.jsonl")
    )
    limit = (charts + journal) // 2  # the charts, which are written first, fit in, and only a part of the journal does
    assert charts < limit < journal
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from agentclinic.cli import main; main(['run', '--output_dir', 'out', '--quiet'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LONG
    )

    folder = only_run(tmp_path / "out")
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    written = records(folder)
    assert 0 < len(written) < 14

    clinic("resume", folder, cwd=tmp_path)

    assert units(records(folder)) == [(row, 0) for row in range(14)]
    assert records(folder)[: len(written)] == written
