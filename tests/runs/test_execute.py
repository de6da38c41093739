"""Running a plan: what stops a run, what is recorded, and who may write to its folder."""

from __future__ import annotations

import json
import os
import signal
import threading
from functools import partial
from pathlib import Path

import anyio
import pytest
from helpers import nejm
from runs_support import (
    AT_ENDPOINT,
    asked,
    clinic,
    only_run,
    point_at,
    records,
    run_here,
    settings_for,
    start,
    summary,
    units,
    until,
)
from scripted_server import ScriptedServer

from agentclinic.errors import AgentClinicError, InputError
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume

pytestmark = pytest.mark.anyio


@pytest.mark.slow
def test_a_second_process_on_the_same_run_is_refused(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "doctor"}, "fault": "hang"}])
    point_at(tmp_path, server)
    first = start("run", "--num_scenarios", "1", "--output_dir", "out", *AT_ENDPOINT, cwd=tmp_path)
    try:
        until(lambda: asked(server) > 0, "the first request", first)
        done = clinic("resume", only_run(tmp_path / "out"), cwd=tmp_path, expect=2)
        assert "another process is working on this run" in done.stderr
        assert asked(server) == 1
    finally:
        first.signal(signal.SIGKILL)
        first.wait()
    server.reset()

    clinic("resume", only_run(tmp_path / "out"), cwd=tmp_path)

    assert len(records(only_run(tmp_path / "out"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "advice"),
    [("auth", "set the endpoint's key"), ("quota", "add credit"), ("no_model", "agentclinic probe")],
)
def test_a_refused_key_an_empty_account_or_an_unknown_model_stops_the_run_until_it_is_fixed(
    fault: str, advice: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "doctor", "nth": list(range(9, 100))}, "fault": fault}])
    point_at(tmp_path, server)

    done = clinic("run", "--num_scenarios", "8", "--output_dir", "out", *AT_ENDPOINT, cwd=tmp_path, expect=3)

    folder = only_run(tmp_path / "out")
    assert "6 of 8 scenarios were not played" in done.stderr
    assert advice in done.stderr
    assert f"agentclinic resume {folder.relative_to(tmp_path)}" in done.stderr
    assert units(records(folder)) == [(0, 0), (1, 0)], "a unit that met the error counts as not played"
    assert summary(folder)["presented"] == 2
    assert asked(server, "doctor") == 9, "no further request meets the same end"
    server.reset()

    clinic("resume", folder, cwd=tmp_path)

    assert units(records(folder)) == [(row, 0) for row in range(8)]
    assert asked(server, "moderator") == 6


async def test_a_refused_judge_stops_the_run_too(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "moderator"}, "fault": "auth"}])

    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=3))

    assert entries == []
    assert finished.missing == 3
    assert "moderator" in (finished.reason or "")


@pytest.mark.slow
def test_the_token_limit_ends_the_run_cleanly_and_a_higher_one_resumes_it(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, token_limit=5000)

    done = clinic("run", "--output_dir", "out", *AT_ENDPOINT, cwd=tmp_path, expect=3)

    folder = only_run(tmp_path / "out")
    played = len(records(folder))
    assert 0 < played < 14
    assert "token limit of 5,000" in done.stderr
    assert "--token-limit" in done.stderr
    used = summary(folder)["usage"]
    assert sum(role["input_tokens"] + role["output_tokens"] for role in used.values()) >= 5000

    server.reset()
    clinic("resume", folder, cwd=tmp_path, expect=3)
    assert asked(server) == 0, "the limit is used up: nothing more is spent"
    clinic("resume", folder, "--token_limit", "100000000", cwd=tmp_path)
    assert units(records(folder)) == [(row, 0) for row in range(14)]
    assert asked(server, "moderator") == 14 - played


async def test_a_missing_image_stops_the_run_until_it_is_fixed(server: ScriptedServer, tmp_path: Path) -> None:
    row = nejm()
    picture = tmp_path / "picture.png"
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({**row, "image_url": str(picture)}))
    server.control(doctor=["Now REQUEST IMAGES please", "DIAGNOSIS READY: Gout"])
    settings = settings_for(server, tmp_path / "out", dataset=str(cases), doctor_image_request=True)

    finished, entries = await run_here(settings)

    assert entries == []
    assert "picture.png" in (finished.reason or "")
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    await resume(plan_again(finished.folder), finished.folder, Progress())
    assert len(records(finished.folder)) == 1


def test_a_run_can_be_played_outside_the_main_thread(tmp_path: Path) -> None:
    """Where signals cannot be handled: in a notebook's thread or a server."""
    plan = make_plan(settings_for(None, tmp_path, num_scenarios=1))
    thread = threading.Thread(target=lambda: anyio.run(execute, plan, Progress()))
    thread.start()
    thread.join()
    assert len(records(only_run(tmp_path))) == 1


@pytest.mark.parametrize("change", ["remove", "replace", "truncate"])
async def test_a_journal_that_is_touched_stops_its_run(change: str, tmp_path: Path) -> None:
    settings = settings_for(None, tmp_path, num_scenarios=3)

    class Touch(Progress):
        def advance(self, line: str) -> None:
            (journal,) = tmp_path.glob("*/scenarios.jsonl")
            if change == "truncate":
                os.truncate(journal, 5)
            else:
                kept = journal.read_bytes()
                journal.unlink()
                if change == "replace":
                    journal.write_bytes(kept)

    with pytest.raises(AgentClinicError, match="by another program during this run"):
        await execute(make_plan(settings), Touch())


async def test_a_second_writer_is_refused_even_if_the_lock_file_was_removed(tmp_path: Path) -> None:
    settings = settings_for(None, tmp_path, num_scenarios=2)
    refused: list[str] = []

    def write_too(folder: Path) -> None:
        with pytest.raises(InputError) as told:
            anyio.run(partial(resume, plan_again(folder), folder, Progress(), retry_failed=True))
        refused.append(str(told.value))

    class Second(Progress):
        def advance(self, line: str) -> None:
            (folder,) = tmp_path.iterdir()
            (folder / ".lock").unlink()
            before = (folder / "scenarios.jsonl").read_bytes()
            thread = threading.Thread(target=write_too, args=(folder,))
            thread.start()
            thread.join()
            assert (folder / "scenarios.jsonl").read_bytes() == before

    finished = await execute(make_plan(settings), Second())

    assert len(refused) == 2
    assert "another process is writing to it" in refused[0]
    assert len(records(finished.folder)) == 2
