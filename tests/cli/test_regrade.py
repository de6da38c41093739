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


@pytest.mark.slow
def test_regrade_shows_progress_like_a_run_and_quiet_hides_it(folder: Path, tmp_path: Path) -> None:
    shown = clinic("regrade", folder, "--name", "first", cwd=tmp_path)
    quiet = clinic("regrade", folder, "--name", "second", "--quiet", cwd=tmp_path)

    lines = shown.stderr.splitlines()
    assert lines[0] == "4 diagnoses to judge"
    assert [line.split()[0] for line in lines[1:]] == ["1/4", "2/4", "3/4", "4/4"]
    assert quiet.stderr == ""
    assert "4 diagnoses judged by builtin, 0 failed" in quiet.stdout
    assert f"score it with: agentclinic score {folder} --judge second" in quiet.stdout


@pytest.mark.slow
def test_ctrl_c_ends_regrade_with_exit_code_130_and_says_how_to_continue(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "moderator", "nth": 3}, "fault": "hang"}])
    process = start("regrade", folder, "--moderator_llm", "scripted", "--judge", "model", cwd=tmp_path)
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


@pytest.mark.slow
def test_diagnoses_judged_without_their_chart_are_counted(folder: Path, tmp_path: Path) -> None:
    with_cases = clinic("regrade", folder, "--name", "whole", cwd=tmp_path)
    assert "without the chart" not in with_cases.stderr

    (folder / "cases.jsonl").unlink()
    without = clinic("regrade", folder, "--name", "older", "--json", cwd=tmp_path)

    assert "judged by name alone, as the run does not contain the case: 4 diagnoses" in without.stderr
    assert json.loads(without.stdout)["without_chart"] == 4


@pytest.mark.slow
def test_a_jury_judges_votes_and_shows_its_splits_in_one_command(
    folder: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "moderator", "model": "harsh"}, "reply": "No"}])
    done = clinic("regrade", folder, "--jury", "builtin,harsh", "--judge", "model", "--quiet", cwd=tmp_path)

    assert "builtin and harsh_model\n  agreement" in done.stdout
    assert "Cohen's kappa" in done.stdout
    assert " disputed:" in done.stdout
    assert "without a majority (" in done.stdout
    assert "use it with --judge jury" in done.stdout
    scored = clinic("score", folder, "--judge", "jury", cwd=tmp_path).stdout
    assert "Judged by jury (the majority of builtin, harsh_model); how often it errs is not known" in scored
    assert "tie" in clinic("score", folder, "--judge", "jury", "--full", cwd=tmp_path).stdout
    asked_before = asked(server, "moderator")
    jury = ("--jury", "recorded,builtin,harsh", "--judge", "model", "--name", "three", "--json", "-q")
    data = json.loads(clinic("regrade", folder, *jury, cwd=tmp_path).stdout)
    assert asked(server, "moderator") == asked_before, "no verdict is asked for twice"
    assert data["ties"] == 0
    assert [judge["name"] for judge in data["comparison"]["judges"]] == ["recorded", "builtin", "harsh_model", "three"]
    for names in ("builtin", "builtin,builtin"):
        assert (
            "two or more different judges" in clinic("regrade", folder, "--jury", names, cwd=tmp_path, expect=2).stderr
        )
