"""A recorded run can be played again without the model, without a network, and to the same end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs_support import (
    ROLES,
    asked,
    environment,
    lines,
    only_run,
    point_at,
    records,
    run_here,
    settings_for,
    untimed,
    without,
)
from scripted_server import LONG, ScriptedServer

from agentclinic.errors import InputError
from agentclinic.runs.regrade import regrade

pytestmark = pytest.mark.anyio

NO_SOCKETS = """
import socket, sys

def refuse(*arguments, **options):
    raise AssertionError("a socket was opened")

class Refused(socket.socket):
    def __init__(self, family=-1, *arguments, **options):
        # A loop wakes itself through a pair of local sockets; only the network is shut.
        if family not in (socket.AF_UNIX, -1) or (family == -1 and "fileno" not in options and not arguments):
            refuse()
        super().__init__(family, *arguments, **options)

socket.socket = Refused
socket.create_connection = refuse
socket.getaddrinfo = refuse
from agentclinic.cli import main
main(sys.argv[1:])
"""


def without_network(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process in which every way to the network fails the test."""
    return subprocess.run(
        [sys.executable, "-c", NO_SOCKETS, *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LONG,
    )


@pytest.mark.slow
def test_the_lock_on_sockets_holds(tmp_path: Path, server: ScriptedServer) -> None:
    """Else the two tests below would show nothing."""
    point_at(tmp_path, server, tries=1)

    done = without_network("run", "--num_scenarios", "1", "--doctor_llm", "scripted", cwd=tmp_path)

    assert "a socket was opened" in done.stdout + done.stderr
    assert asked(server) == 0


@pytest.mark.slow
def test_a_builtin_run_needs_no_network(tmp_path: Path) -> None:
    done = without_network("run", "--num_scenarios", "3", "--workers", "2", "--output_dir", "out", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert len(records(only_run(tmp_path / "out"))) == 3


@pytest.mark.slow
async def test_a_replay_without_network_gives_the_same_records(server: ScriptedServer, tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    # One of each: a lasting failure, a wrong answer, a passing failure.
    server.control(
        rules=[
            {"match": {"purpose": "measurement", "nth": [1, 2]}, "fault": "500"},
            {"match": {"purpose": "moderator", "nth": 1}, "reply": "No"},
            {"match": {"purpose": "patient", "nth": 5}, "fault": "empty"},
        ]
    )
    settings = settings_for(server, tmp_path / "out", num_scenarios=4, repeats=2, record=str(recording))
    _, entries = await run_here(settings)
    assert {entry["status"] for entry in entries} == {"diagnosed", "model_failed"}
    assert {entry["correct"] for entry in entries} == {True, False, None}

    roles = [word for role in ROLES for word in (f"--{role}_llm", f"replay:{recording}")]
    roles += ["--simulator", "free", "--judge", "model"]
    done = without_network(
        "run", "--num_scenarios", "4", "--repeats", "2", "--output_dir", "again", *roles, cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr
    named = [*(f"{role}_llm" for role in ROLES), "llm_runtime_config", "checksum"]
    again = records(only_run(tmp_path / "again"))
    for old, new in zip(entries, again, strict=True):
        # A recording does not keep what failed requests cost.
        ignored = [*named, "usage", "cost_usd"] if old["fault"] else named
        assert without(untimed(new), ignored) == without(untimed(old), ignored)


async def test_a_changed_prompt_is_not_in_the_recording_and_that_is_said(
    server: ScriptedServer, tmp_path: Path
) -> None:
    recording = tmp_path / "recording.jsonl"
    await run_here(settings_for(server, tmp_path / "out", num_scenarios=2, record=str(recording)))
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "patient.json").write_text(
        '{"system_base": "Be ill. {patient}", "user_prompt_template": "{history} {reply}"}'
    )
    replayed: dict[str, Any] = {f"{role}_llm": f"replay:{recording}" for role in ROLES}
    server.reset()

    finished, entries = await run_here(
        settings_for(None, tmp_path / "again", num_scenarios=2, prompts_dir=str(prompts), **replayed)
    )

    assert [(e["status"], e["correct"]) for e in entries] == [("model_failed", None)] * 2
    assert finished.summary.faults == {"patient.not_recorded": 2}
    assert "since the recording" in finished.summary.fault_examples["patient.not_recorded"]
    assert asked(server) == 0


async def test_every_request_and_reply_is_recorded(server: ScriptedServer, tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    await run_here(settings_for(server, tmp_path / "out", num_scenarios=2, workers=2, record=str(recording)))

    entries = lines(recording)

    assert len(entries) == asked(server)
    assert {entry["request"]["purpose"] for entry in entries} == set(ROLES)
    assert all("reply" in entry for entry in entries)


async def test_a_recorded_judge_can_regrade(server: ScriptedServer, tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    finished, _ = await run_here(settings_for(server, tmp_path / "out", num_scenarios=3, record=str(recording)))
    size = recording.stat().st_size
    server.reset()

    regraded = await regrade(
        finished.folder,
        settings_for(None, tmp_path, moderator_llm=f"replay:{recording}", judge="model", record=str(recording)),
        "replayed",
    )

    assert (regraded.judged, regraded.failed, regraded.changed) == (3, 0, ())
    assert recording.stat().st_size == size, "judging anew is no part of the recorded run"


async def test_a_missing_recording_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.jsonl: cannot be read"):
        await run_here(settings_for(None, tmp_path / "out", doctor_llm="replay:nowhere.jsonl"))

    assert not (tmp_path / "out").exists()
