"""`agentclinic regrade`: progress, what it prints, and how it ends."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from runs_support import asked, clinic, only_run, point_at, start, until
from scripted_server import ScriptedServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A builtin run of four cases."""
    clinic("run", "--num_scenarios", "4", "--output_dir", "out", "--quiet", cwd=tmp_path)
    return only_run(tmp_path / "out")


def test_regrade_shows_progress_like_a_run_and_quiet_hides_it(folder: Path, tmp_path: Path) -> None:
    shown = clinic("regrade", folder, "--name", "first", cwd=tmp_path)
    quiet = clinic("regrade", folder, "--name", "second", "--quiet", cwd=tmp_path)

    lines = shown.stderr.splitlines()
    assert lines[0] == "4 diagnoses to judge"
    assert [line.split()[0] for line in lines[1:]] == ["1/4", "2/4", "3/4", "4/4"]
    assert quiet.stderr == ""
    assert "4 diagnoses judged by builtin, 0 failed" in quiet.stdout
    assert f"score it with: agentclinic score {folder} --judge second" in quiet.stdout


def test_ctrl_c_ends_regrade_with_exit_code_130_and_says_how_to_continue(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "moderator", "nth": 3}, "fault": "hang"}])
    process = start("regrade", folder, "--moderator_llm", "scripted", cwd=tmp_path)
    try:
        until(lambda: asked(server, "moderator") >= 3, "the third verdict", process)
        process.signal(signal.SIGINT)
        until(lambda: "press Ctrl-C again" in process.stderr, "the word on Ctrl-C", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)

    assert "Traceback" not in process.stderr
    assert "2 diagnoses judged by scripted" in process.stdout
    assert "not tried" in process.stderr
    assert "Run the same command again to judge the rest." in process.stderr


def test_diagnoses_judged_without_their_chart_are_counted(folder: Path, tmp_path: Path) -> None:
    with_cases = clinic("regrade", folder, "--name", "whole", cwd=tmp_path)
    assert "without the chart" not in with_cases.stderr

    (folder / "cases.jsonl").unlink()
    without = clinic("regrade", folder, "--name", "older", "--json", cwd=tmp_path)

    assert "4 diagnoses were judged by names alone, without the chart" in without.stderr
    assert json.loads(without.stdout)["without_chart"] == 4
