"""The uncertainty-aware doctor in runs and as the original's agent: many at once, repeatable, resumable, replayable."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fakes import NEJM, OSCE, case_of
from helpers import osce, write_rows
from runs_support import (
    AT_ENDPOINT,
    ROLES,
    asked,
    clinic,
    only_run,
    own_cases,
    point_at,
    records,
    run_here,
    settings_for,
    start,
    units,
    until,
    untimed,
    without,
)
from scripted_server import ScriptedServer

import agentclinic
from agentclinic.compat import agents
from agentclinic.compat.scenarios import Scenario
from agentclinic.doctors.uncertainty.store import read_session
from agentclinic.models.base import AuthError

pytestmark = pytest.mark.anyio

DOUBTS = [
    {"diagnosis": "Disease of {mark}", "probability": 0.7, "reason": "fits {mark}"},
    {"diagnosis": "Flu", "probability": 0.2, "reason": ""},
]
STEPS = [
    {
        "new_information": "Door of {mark}",
        "current_uncertainties": DOUBTS,
        "next_step_action": "ASK PATIENT: Since when, {mark}?",
    },
    {
        "new_information": "Two days, says {mark}",
        "current_uncertainties": DOUBTS,
        "next_step_action": "REQUEST TEST: CBC of {mark}",
    },
    {
        "new_information": "Normal count of {mark}",
        "current_uncertainties": DOUBTS[:1],
        "next_step_action": "DIAGNOSIS READY",
    },
]
"""What the scripted doctor does in every encounter, with the mark in its objective."""
MANY = 200


def sessions_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Every session in a folder; each file must be readable."""
    found = {}
    for path in sorted(folder.iterdir()):
        read_session(path)
        found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return found


def check_all_of_one(session: dict[str, Any], mark: str) -> None:
    """Every step belongs to the encounter with that mark, and none is missing."""
    assert [step["new_information"] for step in session["steps"]] == [
        f"Door of {mark}",
        f"Two days, says {mark}",
        f"Normal count of {mark}",
    ]
    assert [step["next_step_action"] for step in session["steps"]] == [
        f"ASK PATIENT: Since when, {mark}?",
        f"REQUEST TEST: CBC of {mark}",
        "DIAGNOSIS READY",
    ]
    assert session["final_diagnosis"] == f"Disease of {mark}"
    assert session["current_uncertainties"] == [f"Disease of {mark} (fits {mark})"]


@pytest.mark.slow
async def test_200_encounters_in_concurrent_tasks(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(steps=STEPS, synthesis="Disease of {mark}", latency=0.02, jitter=0.9)
    hidden = {"Answer_Key": {"accept": ["HIDDENaccept"]}, "ICD10": "HIDDENicd", "references": ["HIDDENreference"]}
    rows = [
        osce(objective=f"Assess the patient with mark-{n}z.", truth=f"HIDDENtruth{n}", **hidden) for n in range(MANY)
    ]
    path = write_rows(tmp_path / "cases.jsonl", *rows)
    settings = settings_for(
        server, tmp_path / "out", dataset=str(path), doctor="uncertainty", workers=MANY, num_scenarios=MANY
    )
    finished, written = await run_here(settings)
    assert len(written) == MANY
    kept = sessions_in(finished.folder / "diagnosis_sessions")
    assert len(kept) == MANY
    for record in written:
        assert (record["status"], record["num_turns"]) == ("diagnosed", 3)
        mark = f"mark-{record['scenario_id']}z"
        assert record["session_id"].startswith(f"scenario_{record['scenario_id']}_")
        check_all_of_one(kept[record["session_id"]], mark)
        assert record["diagnosis_text"] == f"Disease of {mark}"
        assert record["differential"]["hypotheses"][0]["diagnosis"] == f"Disease of {mark}"
        # No disease has such a name: the synthesis is asked twice.
        assert (record["usage"]["doctor"]["requests"], record["usage"]["synthesis"]["requests"]) == (3, 2)
    counts = server.counts()
    assert counts["peak"] > MANY // 2, "they really ran concurrently"
    offered = [entry for entry in counts["requests"] if entry["purpose"] == "doctor"]
    assert all(entry["body"]["tool_choice"] == "required" for entry in offered)
    for entry in counts["requests"]:
        text = json.dumps(entry)
        assert "scenario_" not in text
        assert not any(name in text for name in kept)
        assert entry["purpose"] == "moderator" or "HIDDEN" not in text
        if entry["purpose"] == "synthesis":
            assert "Since when" not in text, "facts only, no dialogue"
            assert "Flu" not in text
    first = {json.dumps([t["name"] for t in e["body"]["tools"]]) for e in offered if "Two days" not in json.dumps(e)}
    assert '["diagnosis_step"]' in first, "there is nothing to conclude from on the first turn"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    agents.set_llm_config({})
    yield tmp_path
    agents.set_llm_config({})


@pytest.mark.slow
def test_200_doctors_in_concurrent_threads(server: ScriptedServer, home: Path) -> None:
    server.control(steps=STEPS, synthesis="Disease of {mark}", latency=0.02, jitter=0.9)
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}})

    def consult(number: int) -> tuple[str, agentclinic.UncertaintyAwareDoctorAgent]:
        scenario = Scenario(case_of({**OSCE, "Objective_for_Doctor": f"Assess mark-{number}z."}))
        doctor = agentclinic.UncertaintyAwareDoctorAgent(scenario, "scripted", max_infs=5)
        said = [
            doctor.inference_doctor(""),
            doctor.inference_doctor("For two days"),
            doctor.inference_doctor("RESULTS: 5"),
        ]
        mark = f"mark-{number}z"
        assert said == [f"Since when, {mark}?", f"REQUEST TEST: CBC of {mark}", f"DIAGNOSIS READY: Disease of {mark}"]
        return mark, doctor

    with ThreadPoolExecutor(MANY) as pool:
        done = list(pool.map(consult, range(MANY)))
    kept = sessions_in(home / "agent" / "diagnosis_sessions")
    assert len(kept) == MANY
    for mark, doctor in done:
        check_all_of_one(kept[doctor.session_id], mark)
    text = json.dumps(server.log())
    assert not any(name in text for name in kept)


def test_the_originals_agent_counts_tokens_and_can_be_reset(server: ScriptedServer, home: Path) -> None:
    server.control(steps=STEPS, synthesis="Gout")
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}})
    doctor = agentclinic.UncertaintyAwareDoctorAgent(
        scenario=Scenario(case_of(OSCE)), backend_str="scripted", max_infs=2, bias_present=None, img_request=False
    )
    assert (doctor.infs, doctor.total_tokens) == (0, 0)
    first = doctor.inference_doctor("")
    one = doctor.total_tokens
    assert one
    assert doctor.inference_doctor("Two days.") == "DIAGNOSIS READY: Gout", "the last turn concludes"
    spent = sum(max(1, len(json.dumps(b)) // 4) for b in server.bodies())
    assert doctor.input_tokens is not None
    assert (doctor.prompt_tokens, doctor.completion_tokens) == (doctor.input_tokens, doctor.output_tokens)
    assert one < doctor.total_tokens < 2 * spent
    assert doctor.inference_doctor("And now?") == "DIAGNOSIS READY: Gout", "as in the original, it stays with it"
    assert doctor.agent_hist == f"Doctor: {first}\n\nPatient: Two days.\n\nDoctor: DIAGNOSIS READY: Gout\n\n"
    assert doctor.session_id not in doctor.system_prompt()
    before = doctor.session_id
    doctor.reset()
    assert (doctor.infs, doctor.agent_hist, doctor.total_tokens) == (0, "", 0)
    assert doctor.session_id != before
    assert len(read_session(home / "agent" / "diagnosis_sessions" / f"{before}.json").steps) == 2
    server.control(rules=[{"match": {"purpose": "doctor"}, "fault": "no_usage"}])
    doctor.inference_doctor("")
    assert doctor.input_tokens is None, "unknown is not 0"
    assert (doctor.total_tokens, doctor.prompt_tokens) == (0, 0), "except where the original has a number"


def test_a_failed_call_can_be_repeated_without_a_second_step(server: ScriptedServer, home: Path) -> None:
    server.control(steps=STEPS)
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}, "llm": {"runtime": {"tries": 1}}})
    doctor = agentclinic.UncertaintyAwareDoctorAgent(Scenario(case_of(OSCE)), "scripted", max_infs=9)
    doctor.inference_doctor("")
    doctor.inference_doctor("Two days")
    server.control(rules=[{"match": {"purpose": "synthesis"}, "fault": "auth", "times": 1}])
    with pytest.raises(AuthError):
        doctor.inference_doctor("RESULTS: 5")
    assert doctor.inference_doctor("RESULTS: 5") == "DIAGNOSIS READY: Migraine"
    (path,) = (home / "agent" / "diagnosis_sessions").iterdir()
    assert len(read_session(path).steps) == 3


@pytest.mark.slow
async def test_on_the_builtin_clinic_the_synthesis_reads_back_what_was_recorded(tmp_path: Path) -> None:
    """OpenOSCE: the same diagnoses as the plain doctor's, and complete sessions."""
    plain, before = await run_here(settings_for(None, tmp_path / "plain", dataset="OpenOSCE"))
    done, after = await run_here(settings_for(None, tmp_path / "doubting", dataset="OpenOSCE", doctor="uncertainty"))
    assert len(before) == 112
    said = {record["scenario_id"]: record["diagnosis_text"] for record in before}
    assert {record["scenario_id"]: record["diagnosis_text"] for record in after} == said
    kept = sessions_in(done.folder / "diagnosis_sessions")
    for record in after:
        session = kept[record["session_id"]]
        assert len(session["steps"]) == record["num_turns"]
        assert session["final_diagnosis"] == record["diagnosis_text"]
        assert session["synthesis_error"] is None
        assert all(2 <= len(step["differential"]) <= 4 for step in session["steps"])
        assert record["differential"]["source"] == "stated"
    few = settings_for(None, tmp_path / "few", dataset="OpenOSCE", doctor="uncertainty", workers=8, num_scenarios=9)
    again = sessions_in((await run_here(few))[0].folder / "diagnosis_sessions")
    assert again == {name: kept[name] for name in again}, "identical runs have identical sessions"
    assert len(again) == 9
    assert not (plain.folder / "diagnosis_sessions").exists()


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_with_every_unit_once_and_its_session(
    server: ScriptedServer, tmp_path: Path
) -> None:
    chance = random.Random(3)
    server.control(steps=STEPS, latency=0.005, jitter=0.5, keep_log=False)
    point_at(tmp_path, server)
    count = 24
    path = own_cases(tmp_path / "cases", count)
    command: list[str | Path] = [
        "run", "--dataset", path, "--num_scenarios", str(count), "--workers", "4", "--output_dir", "out",
        "--doctor", "uncertainty", *AT_ENDPOINT,
    ]  # fmt: skip
    for _ in range(5):
        moment = asked(server) + chance.randint(3, 25)
        process = start(*command, "--quiet", cwd=tmp_path)
        until(lambda moment=moment: asked(server) >= moment, f"request {moment}", process)  # type: ignore[misc]
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        folder = only_run(tmp_path / "out")
        for left in (folder / "diagnosis_sessions").glob("*.json"):
            read_session(left)
        command = ["resume", folder]
    clinic(*command, cwd=tmp_path)
    written = records(folder)
    assert units(written) == [(row, 0) for row in range(count)]
    for record in written:
        session = read_session(folder / "diagnosis_sessions" / f"{record['session_id']}.json")
        assert session.final_diagnosis == record["diagnosis_text"]  # type: ignore[attr-defined]
        assert len(session.steps) == record["num_turns"]
        assert [step.step_number for step in session.steps] == [1, 2, 3]


async def test_a_recorded_run_is_replayed_without_the_server(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(
        steps=STEPS, rules=[{"match": {"purpose": "doctor", "nth": [1, 4]}, "fault": "prose_instead_of_tool"}]
    )
    recording = tmp_path / "recording.jsonl"
    path = own_cases(tmp_path / "cases", 3)
    common: dict[str, Any] = {"dataset": str(path), "num_scenarios": 3, "doctor": "uncertainty"}
    done, before = await run_here(settings_for(server, tmp_path / "a", record=str(recording), **common))
    server.reset()
    common |= {"simulator": "free", "judge": "model"}  # as `settings_for` chooses with a server
    replayed: dict[str, Any] = {f"{role}_llm": f"replay:{recording}" for role in ROLES}
    again, after = await run_here(settings_for(None, tmp_path / "b", **common, **replayed))
    assert asked(server) == 0
    names = [f"{role}_llm" for role in ROLES]
    drop = ["checksum", *names, "cost_usd", "llm_runtime_config", "transcript"]
    assert [untimed(without(r, drop)) for r in after] == [untimed(without(r, drop)) for r in before]
    first, second = (sessions_in(d.folder / "diagnosis_sessions") for d in (done, again))
    named = ("synthesis_model", "checksum")
    assert [without(s, named) for s in second.values()] == [without(s, named) for s in first.values()]


async def test_images_are_requested_shown_and_stay_in_view(server: ScriptedServer, tmp_path: Path) -> None:
    image = "data:image/png;base64,iVBORw0KGgo="
    steps = [
        {**STEPS[0], "new_information": "seen at the entrance", "next_step_action": "REQUEST IMAGES"},
        {**STEPS[1], "new_information": "scaly plaques", "next_step_action": "ASK PATIENT: Itchy?"},
        {**STEPS[2], "new_information": "it itches"},
    ]
    server.control(steps=steps)
    path = write_rows(tmp_path / "n.jsonl", {**NEJM, "image_url": image})
    settings = settings_for(
        server, tmp_path / "out", dataset=str(path), doctor="uncertainty", doctor_image_request=True
    )
    _, (record,) = await run_here(settings)
    assert (record["status"], record["num_turns"]) == ("diagnosed", 3)
    shown = [image in json.dumps(e["body"]) for e in server.log() if e["purpose"] == "doctor"]
    assert shown == [False, True, True]
