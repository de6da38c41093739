"""Ctrl-C: once to finish work in progress, twice to stop now."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from runs_support import AT_ENDPOINT, asked, clinic, only_run, point_at, records, start, summary, units, until
from scripted_server import ScriptedServer

RUN = ["run", "--output_dir", "out", "--workers", "2", *AT_ENDPOINT]


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_once_lets_work_in_progress_finish_and_says_how_to_resume(
    number: signal.Signals, server: ScriptedServer, tmp_path: Path
) -> None:
    server.fault("hold", match={"purpose": "moderator"})
    point_at(tmp_path, server)
    process = start(*RUN, cwd=tmp_path)
    try:
        until(lambda: asked(server, "moderator") == 2, "both encounters to wait for their verdicts", process)
        process.signal(number)
        until(lambda: "press Ctrl-C again to stop now" in process.stderr, "the word on Ctrl-C", process)
        server.control(rules=[])
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)

    folder = only_run(tmp_path / "out")
    assert units(records(folder)) == [(0, 0), (1, 0)]
    assert summary(folder)["presented"] == 2
    assert "12 of 14 scenarios were not played" in process.stderr
    assert f"agentclinic resume {folder.relative_to(tmp_path)}" in process.stderr
    assert "Traceback" not in process.stderr

    clinic("resume", folder, cwd=tmp_path)

    assert units(records(folder)) == [(row, 0) for row in range(14)]


@pytest.mark.slow
def test_twice_stops_now_and_writes_nothing_of_work_in_progress(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "doctor", "nth": list(range(9, 99))}, "fault": "hang"}])
    point_at(tmp_path, server)
    process = start(*RUN, cwd=tmp_path)
    try:
        until(lambda: asked(server, "doctor") >= 10, "two encounters to hang", process)
        process.signal(signal.SIGINT)
        until(lambda: "press Ctrl-C again" in process.stderr, "the word on Ctrl-C", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)

    folder = only_run(tmp_path / "out")
    finished = len(records(folder))  # one or two, depending on how the encounters took turns
    assert finished == asked(server, "moderator") > 0
    assert "agentclinic resume" in process.stderr
    assert "Traceback" not in process.stderr
    server.reset()

    clinic("resume", folder, cwd=tmp_path)

    assert sorted(units(records(folder))) == [(row, 0) for row in range(14)]
    assert asked(server, "moderator") == 14 - finished


@pytest.mark.slow
def test_an_interrupted_regrade_ends_without_a_traceback_and_can_be_resumed(
    server: ScriptedServer, tmp_path: Path
) -> None:
    clinic("run", "--num_scenarios", "4", "--output_dir", "out", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    point_at(tmp_path, server)
    server.control(rules=[{"match": {"purpose": "moderator", "nth": 3}, "fault": "hang"}])
    judge = ("regrade", folder, "--moderator_llm", "scripted", "--judge", "model")
    process = start(*judge, cwd=tmp_path)
    try:
        until(lambda: asked(server, "moderator") >= 3, "the third verdict", process)
        process.signal(signal.SIGINT)
        until(lambda: "press Ctrl-C again" in process.stderr, "the word on Ctrl-C", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)
    assert "Traceback" not in process.stderr
    server.reset()

    clinic(*judge, cwd=tmp_path)

    assert asked(server, "moderator") == 2
