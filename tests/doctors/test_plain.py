"""A diagnosis that cannot be read as one disease: a language-model doctor is asked once for the name alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes import NEJM, Scripted, assigned, case_of, plan_of
from helpers import osce, write_rows
from runs_support import ROLES, Json, asked, lines, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.clinic.doctor import Incoming, Observation
from agentclinic.clinic.prompts import load_prompt
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.models.base import Image, Reply
from agentclinic.results.turn import Usage
from agentclinic.runs.build import Models
from agentclinic.runs.play import play
from agentclinic.runs.regrade import regrade

pytestmark = pytest.mark.anyio

ASKED = load_prompt("doctor").text("one_name").partition(".")[0]
TWO = "Gout or lupus"
HEDGING = ["Where does it hurt?", f"DIAGNOSIS READY: {TWO}"]


def second(purpose: str = "doctor", **answer: str) -> list[Json]:
    return [{"match": {"purpose": purpose, "text_contains": ASKED}, **answer}]


def last_words(record: Json) -> Json:
    said: Json = [turn for turn in record["transcript"] if turn["role"] == "doctor"][-1]
    return said


@pytest.mark.parametrize("answer", ["Gout", "DIAGNOSIS READY: Gout", "Diagnosis ready: **Gout**.", "Gout\n\nTophi."])
async def test_the_second_answer_is_the_diagnosis_in_the_same_turn(
    answer: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(doctor=HEDGING, rules=second(reply=answer))
    run = settings_for(server, tmp_path, num_scenarios=1, total_inferences=2, elicit_confidence=True)
    done, (record,) = await run_here(run)
    said = last_words(record)
    assert (record["status"], record["diagnosis_text"], record["num_turns"]) == ("diagnosed", "Gout", 2)
    assert (said["text"], said["action"]) == ("DIAGNOSIS READY: Gout", {"kind": "diagnosis", "content": "Gout"})
    assert (said["turn"], said["slips"]) == (2, ["unclear_diagnosis"])
    assert said["raw"] == f"DIAGNOSIS READY: {TWO}\n\n{answer}", "both answers are kept"
    assert said["usage"]["requests"] == 2
    assert asked(server, "doctor") == 3
    assert record["usage"]["doctor"]["requests"] == 4, "the one about confidence is the fourth"
    assert done.summary.slips["doctor"]["unclear_diagnosis"] == 1
    assert len(record["timing"]["turns"]) == len(record["transcript"])
    entries = record["doctor_hist"].split("\n\n")
    assert entries[-4:] == [
        f"Doctor: DIAGNOSIS READY: {TWO}",
        f"Clinic: {load_prompt('doctor').text('one_name')}",
        "Doctor: DIAGNOSIS READY: Gout",
        "",
    ]
    (confidence,) = (entry["body"] for entry in server.log() if entry["purpose"] == "confidence")
    assert "on record: Gout." in json.dumps(confidence)


@pytest.mark.parametrize(
    "answer",
    [
        {"reply": "Gout, lupus, or both"},
        {"reply": "I do not know."},
        {"reply": "Where does it hurt?"},
        {"reply": "REQUEST TEST: Uric acid"},
        *({"fault": fault} for fault in ("empty", "refusal", "context", "auth", "quota", "500", "no_model")),
    ],
    ids=lambda answer: next(iter(answer.values())),
)
async def test_the_first_answer_stands_if_the_second_is_no_better(
    answer: dict[str, str], server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(doctor=HEDGING, rules=second(**answer))
    _, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1))
    said = last_words(record)
    assert (record["status"], record["diagnosis_text"], record["fault"]) == ("diagnosed", TWO, None)
    assert (said["text"], said["slips"]) == (HEDGING[1], ["unclear_diagnosis"])
    assert ("reply" in answer) == (said["raw"] == f"{HEDGING[1]}\n\n{answer.get('reply')}")
    assert ("fault" in answer) == any("the request for one disease failed" in note for note in said["notes"])
    assert record["doctor_hist"].endswith(f"Doctor: {HEDGING[1]}\n\n")


async def test_in_a_chat_the_doctor_is_told_to_write_the_name_of_one_disease_alone() -> None:
    model = Scripted(HEDGING[1])
    doctor = PlainDoctor(assigned(case_of(NEJM).door, model, 1))
    await doctor.act(Observation(Incoming("", "Begin."), last=True))
    system, newest = (message.content for message in model.requests[0].messages)
    assert "exactly one specific disease: its name alone, without a list, reasons or alternatives" in system
    assert "the name of the one disease you find most likely, and nothing else" in newest


@pytest.mark.parametrize("diagnosis", ["Gout", "acute appendicitis"])
async def test_a_doctor_that_names_one_disease_is_not_asked(
    diagnosis: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(doctor=["Where does it hurt?", f"DIAGNOSIS READY: {diagnosis}"])
    _, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1))
    assert (record["diagnosis_text"], last_words(record)["slips"], asked(server, "doctor")) == (diagnosis, [], 2)


@pytest.mark.parametrize("doctor", ["door_only", "history_only", "full_information"])
async def test_a_reference_doctor_of_a_language_model_is_asked_as_the_plain_one(
    doctor: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(doctor=HEDGING[1:], rules=second(reply="Gout"))
    _, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1, doctor=doctor))
    assert (record["diagnosis_text"], last_words(record)["slips"]) == ("Gout", ["unclear_diagnosis"])


CUSTOM = f"""
class Hedging:
    def __init__(self, scenario): ...
    def inference_doctor(self, question): return "DIAGNOSIS READY: {TWO}"
"""


@pytest.mark.parametrize(
    "run",
    [
        {"dialogue": "transcript"},
        {"preset": "original"},
        {"preset": "original", "dialogue": "chat"},
        {"doctor": "hedging.py:Hedging"},
        {"doctor": "uncertainty", "dialogue": "transcript"},
    ],
    ids=lambda run: " ".join(run.values()),
)
async def test_other_forms_and_other_doctors_are_not_asked(
    run: dict[str, Any], server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hedging.py").write_text(CUSTOM)
    server.control(doctor=HEDGING, synthesis=TWO, rules=[*second(reply="Gout"), *second("synthesis", reply="Gout")])
    _, (record,) = await run_here(settings_for(server, tmp_path / "out", num_scenarios=1, **run))
    assert record["diagnosis_text"] == (HEDGING[1] if "preset" in run else TWO)
    assert not any(ASKED in json.dumps(entry["body"]) for entry in server.log())


async def test_a_person_is_not_asked() -> None:
    plan = plan_of(inf_type="human_doctor", num_scenarios=1)
    person = Scripted(HEDGING[1])
    async with Models(plan.settings, person=person) as models:
        record = await play(plan, plan.units[0], models)
    assert (record.diagnosis_text, len(person.requests)) == (TWO, 1)


@pytest.mark.parametrize("mode", ["separate", "inline"])
async def test_a_doctor_with_a_planner_is_asked_too(mode: str, server: ScriptedServer, tmp_path: Path) -> None:
    inline = {"match": {"purpose": "doctor"}, "reply": json.dumps({"hypotheses": [], "utterance": HEDGING[1]})}
    server.control(doctor=HEDGING, rules=[*second(reply="Gout"), *([inline] if mode == "inline" else [])])
    policy: Json = {"doctor_test_policy_enabled": True, "doctor_test_policy_mode": mode}
    _, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1, total_inferences=2, **policy))
    assert (record["diagnosis_text"], last_words(record)["slips"]) == ("Gout", ["unclear_diagnosis"])


async def test_images_stay_in_view_and_an_empty_text_turns_the_question_off() -> None:
    model = Scripted(Reply(HEDGING[1], usage=Usage(10, 5)), Reply("Gout", usage=Usage(20, 1)), HEDGING[1])
    doctor = PlainDoctor(assigned(case_of(NEJM).door, model, images=True))
    seen = Observation(Incoming("Clinic", "Here they are.", (Image("https://images.example/toe.jpg"),)))
    said = await doctor.clarified((await doctor.act(seen))[0])
    newest = model.requests[1].messages[-1]
    assert (newest.role, newest.images) == ("user", seen.incoming.images)
    assert newest.content == load_prompt("doctor").text("one_name")
    assert said.usage == Usage(30, 6, requests=2)
    prompts = doctor.assignment.prompts
    object.__setattr__(prompts["doctor"], "texts", {**prompts["doctor"].texts, "one_name": ""})
    (silent,) = await doctor.act(seen)
    assert await doctor.clarified(silent) == silent


# The uncertainty doctor's diagnosis comes from a synthesis, which is asked in its place.

DOUBTS = [{"diagnosis": "Gout", "probability": 0.7}, {"diagnosis": "Flu", "probability": 0.2}]
STEPS = [
    {"new_information": "sore toe", "current_uncertainties": DOUBTS, "next_step_action": "ASK PATIENT: Hot?"},
    {"new_information": "hot toe", "current_uncertainties": DOUBTS, "next_step_action": "DIAGNOSIS READY"},
]


async def test_a_synthesis_is_asked_for_one_name_when_it_is_made_and_when_it_is_made_again(
    server: ScriptedServer, tmp_path: Path
) -> None:
    cases = write_rows(tmp_path / "c.jsonl", osce(truth="Gout"))
    server.control(steps=STEPS, synthesis=TWO, rules=second("synthesis", reply="Gout"))
    run = settings_for(server, tmp_path / "out", dataset=str(cases), doctor="uncertainty")
    done, (record,) = await run_here(run)
    said = last_words(record)
    assert (record["diagnosis_text"], record["num_turns"], said["slips"]) == ("Gout", 2, ["unclear_diagnosis"])
    assert (said["text"], said["raw"]) == ("DIAGNOSIS READY: Gout", f"{TWO}\n\nGout")
    assert record["usage"]["synthesis"]["requests"] == 2
    (session,) = (json.loads(path.read_text()) for path in done.folder.glob("diagnosis_sessions/*"))
    assert (session["final_diagnosis"], session["synthesis_answer"]) == ("Gout", f"{TWO}\n\nGout")
    again = await regrade(done.folder, settings_for(server, tmp_path), resynthesize=True)
    assert [entry["diagnosis"] for entry in lines(again.path)] == ["Gout"]


async def test_the_first_synthesis_stands_if_the_model_fails_when_asked(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(steps=STEPS, synthesis=TWO, rules=second("synthesis", fault="refusal"))
    _, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1, doctor="uncertainty"))
    said = last_words(record)
    assert (record["diagnosis_text"], said["slips"], said["raw"]) == (TWO, ["unclear_diagnosis"], TWO)
    assert said["notes"] == ["the request for one disease failed: refused"]


# Recordings.


async def test_a_replay_repeats_the_second_request_and_an_older_recording_keeps_the_first_answer(
    server: ScriptedServer, tmp_path: Path
) -> None:
    recording = tmp_path / "recording.jsonl"
    server.control(doctor=HEDGING, rules=second(reply="Gout"))
    _, (record,) = await run_here(settings_for(server, tmp_path / "out", num_scenarios=1, record=str(recording)))
    entries = recording.read_text().splitlines(keepends=True)
    older = tmp_path / "older.jsonl"
    older.write_text("".join(entry for entry in entries if ASKED not in entry))
    assert len(entries) == 5
    for path, diagnosis in ((recording, "Gout"), (older, TWO)):
        roles: Json = {f"{role}_llm": f"replay:{path}" for role in ROLES[:3]}
        run = settings_for(None, tmp_path / path.stem, num_scenarios=1, simulator="free", **roles)
        _, (replayed,) = await run_here(run)
        assert replayed["diagnosis_text"] == diagnosis
        assert last_words(replayed)["slips"] == ["unclear_diagnosis"]
        if path is recording:
            assert replayed["transcript"] == record["transcript"]
