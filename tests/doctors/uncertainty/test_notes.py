"""What the uncertainty-aware doctor is shown of its notes, and what its last call adds to them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fakes import NEJM
from helpers import osce, write_rows
from runs_support import run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.clinic.prompts import load_prompt
from agentclinic.doctors.uncertainty.doctor import DocumentedChoice, StepChoice, ToolChoice
from agentclinic.doctors.uncertainty.notes import shown_notes
from agentclinic.doctors.uncertainty.store import Session
from agentclinic.doctors.uncertainty.tools import tools
from agentclinic.models.structured import format_of
from agentclinic.results.record import Record
from agentclinic.scoring.differentials import confidence, final_differentials

pytestmark = pytest.mark.anyio


def doubts(**shares: float) -> list[dict[str, Any]]:
    return [{"diagnosis": name, "probability": share, "reason": f"fits {name}"} for name, share in shares.items()]


def step(information: str, action: str, given: Any) -> dict[str, Any]:
    return {"new_information": information, "current_uncertainties": given, "next_step_action": action}


STEPS = [
    step("a sore toe", "ASK PATIENT: Since when, and is it hot?", doubts(Gout=0.4, Cellulitis=0.3)),
    step("pain since Monday; hot", "REQUEST TEST: Uric acid", doubts(Gout=0.6, Pseudogout=0.2)),
    step("No new facts.", "REQUEST TEST: Joint aspiration", doubts(Gout=0.65, Pseudogout=0.25)),
]
FINAL = {
    "new_information": "needle-shaped crystals",
    "current_uncertainties": doubts(Gout=0.97),
    "reason_ready": "The crystals prove it.",
}


async def played(server: ScriptedServer, folder: Path, final: Any = FINAL, **run: Any) -> tuple[Record, dict[str, Any]]:
    """One case in which the doctor makes `STEPS` and then calls `final_diagnosis`."""
    given = [("diagnosis_step", each) for each in STEPS] + [("final_diagnosis", final)]
    rules = [
        {"match": {"purpose": "doctor", "nth": place}, "tool_calls": [{"name": name, "arguments": arguments}]}
        for place, (name, arguments) in enumerate(given, start=1)
    ]
    server.control(rules=rules, synthesis="Gout")
    path = write_rows(folder / "cases.jsonl", osce())
    settings = settings_for(server, folder / "out", dataset=str(path), doctor="uncertainty", **run)
    finished, (record,) = await run_here(settings)
    session = json.loads((finished.folder / "diagnosis_sessions" / f"{record['session_id']}.json").read_text())
    return Record.model_validate(record), session


def prompts_to(server: ScriptedServer, purpose: str) -> list[str]:
    """The newest message of each request."""
    return [entry["body"]["input"][-1]["content"] for entry in server.log() if entry["purpose"] == purpose]


async def test_the_doctor_sees_all_facts_all_actions_and_only_the_newest_differential(
    server: ScriptedServer, tmp_path: Path
) -> None:
    _, session = await played(server, tmp_path)
    shown = prompts_to(server, "doctor")[3]
    notes = shown.partition("\n\n[Newest reply]")[0]
    assert notes == (
        "[Your notes]\n"
        "- a sore toe\n"
        "ASK PATIENT: Since when, and is it hot?\n"
        "- pain since Monday; hot\n"
        "REQUEST TEST: Uric acid\n"
        "- (nothing new)\n"
        "REQUEST TEST: Joint aspiration\n"
        "\n"
        "Differential:\n"
        "- Gout 0.65 (fits Gout)\n"
        "- Pseudogout 0.25 (fits Pseudogout)\n"
        "- anything else 0.1"
    )
    assert session["accumulated_notes"].startswith(
        "[Step 1]\nNew Info: a sore toe\nDifferential: Gout (fits Gout), Cellulitis (fits Cellulitis)\n\n[Step 2]\n"
    ), "the file keeps the original's form"


async def test_each_turn_only_adds_to_the_facts_and_actions(server: ScriptedServer, tmp_path: Path) -> None:
    await played(server, tmp_path)
    logs = [prompt.partition("\n\nDifferential:")[0] for prompt in prompts_to(server, "doctor")[1:]]
    assert all(later.startswith(earlier) for earlier, later in pairwise(logs))


async def test_the_door_is_sent_once(server: ScriptedServer, tmp_path: Path) -> None:
    await played(server, tmp_path)
    first = next(entry["body"] for entry in server.log() if entry["purpose"] == "doctor")
    assert json.dumps(first["input"]).count("Find out what is wrong.") == 1
    assert "[Newest reply]\n(none yet)" in first["input"][-1]["content"]


async def test_the_last_call_adds_the_newest_facts_and_the_final_probabilities(
    server: ScriptedServer, tmp_path: Path
) -> None:
    record, session = await played(server, tmp_path)
    last = session["steps"][-1]
    assert last["new_information"] == "needle-shaped crystals"
    assert "recorded_by" not in last
    assert (last["current_uncertainties"], session["reason_ready"]) == (["Gout (fits Gout)"], FINAL["reason_ready"])
    assert "needle-shaped crystals" in session["synthesis_prompt"]
    stated = final_differentials(record)["stated"]
    assert [(one.diagnosis, one.probability) for one in stated.hypotheses] == [("Gout", 0.97)]
    assert stated.other == pytest.approx(0.03)
    assert confidence(record) == (0.97, "stated"), "scoring uses the last call"


async def test_the_synthesis_sees_no_probability_no_reason_and_no_empty_fact(
    server: ScriptedServer, tmp_path: Path
) -> None:
    await played(server, tmp_path)
    (asked,) = prompts_to(server, "synthesis")
    assert asked == ("[Facts]\n- a sore toe\n- pain since Monday; hot\n- needle-shaped crystals\n\nThe diagnosis:")


async def test_the_originals_call_concludes_with_the_newest_reply_and_the_doubts_so_far(
    server: ScriptedServer, tmp_path: Path
) -> None:
    record, session = await played(server, tmp_path, {"reason_ready": "Enough."})
    last = session["steps"][-1]
    assert last["recorded_by"] == "clinic"
    assert last["new_information"].startswith("Joint aspiration Measurement: RESULTS:")
    assert confidence(record) == (0.65, "stated")


async def test_a_last_call_may_say_that_nothing_is_new(server: ScriptedServer, tmp_path: Path) -> None:
    _, session = await played(server, tmp_path, FINAL | {"new_information": ""})
    assert session["steps"][-1]["new_information"] == ""
    assert "RESULTS" not in session["synthesis_prompt"]


async def test_a_form_for_models_without_tools_takes_the_last_facts_and_a_single_diagnosis(
    server: ScriptedServer, tmp_path: Path
) -> None:
    filled = [{"tool": "diagnosis_step", "reason_ready": "", **each} for each in STEPS]
    filled.append({"tool": "final_diagnosis", "next_step_action": "", **FINAL})
    rules: list[dict[str, Any]] = [{"match": {"purpose": "doctor", "nth": 1}, "fault": "reject_tools"}]
    rules += [
        {"match": {"purpose": "doctor", "nth": place}, "reply": json.dumps(each)}
        for place, each in enumerate(filled, start=2)
    ]
    server.control(rules=rules, synthesis="Gout")
    path = write_rows(tmp_path / "cases.jsonl", osce())
    _, (record,) = await run_here(settings_for(server, tmp_path / "out", dataset=str(path), doctor="uncertainty"))
    assert [one["diagnosis"] for one in record["differential"]["hypotheses"]] == ["Gout"]
    assert "needle-shaped crystals" in prompts_to(server, "synthesis")[0]
    assert not any("sent back" in note for turn in record["transcript"] for note in turn["notes"])


async def test_what_the_door_tells_is_recorded_for_a_doctor_that_does_not(
    server: ScriptedServer, tmp_path: Path
) -> None:
    silent = step("", "ASK PATIENT: Since when?", doubts(Gout=0.5, Flu=0.1))
    rule = {"match": {"purpose": "doctor", "nth": 1}}
    server.control(steps=STEPS[1:], rules=[rule | {"tool_calls": [{"name": "diagnosis_step", "arguments": silent}]}])
    path = write_rows(tmp_path / "cases.jsonl", osce())
    settings = settings_for(server, tmp_path / "out", dataset=str(path), doctor="uncertainty", total_inferences=2)
    await run_here(settings)
    assert "- Patient: 40-year-old woman" in prompts_to(server, "synthesis")[0]


@pytest.mark.parametrize("images", [True, False])
async def test_the_action_for_images_is_in_the_prompt_exactly_if_it_is_in_the_tool(
    server: ScriptedServer, tmp_path: Path, images: bool
) -> None:
    unknown = {"match": {"purpose": "doctor", "nth": 2}, "tool_calls": [
        {"name": "diagnosis_step", "arguments": step("red", "Look closely", doubts(Gout=0.6, Flu=0.2))}
    ]}  # fmt: skip
    server.control(steps=[*STEPS[:1], step("red", "DIAGNOSIS READY", doubts(Gout=0.9))], rules=[unknown])
    path = write_rows(tmp_path / "n.jsonl", {**NEJM, "image_url": "data:image/png;base64,iVBORw0KGgo="})
    settings = settings_for(
        server, tmp_path / "out", dataset=str(path), doctor="uncertainty", doctor_image_request=images
    )
    await run_here(settings)
    bodies = [entry["body"] for entry in server.log() if entry["purpose"] == "doctor"]
    for body in bodies:
        assert ("REQUEST IMAGES" in json.dumps(body["tools"])) is images
        assert ("REQUEST IMAGES" in json.dumps(body["input"])) is images
    assert "no known form" in json.dumps(bodies[2]["input"])


def test_a_session_in_the_originals_form_is_shown_with_its_facts_actions_and_names() -> None:
    session = Session.model_validate(
        {
            "session_id": "s",
            "steps": [
                {
                    "step_number": 1,
                    "new_information": "chest pain,\n2 hours",
                    "current_uncertainties": ["MI (sudden)", "PE 20 %"],
                    "next_step_action": "REQUEST TEST: ECG",
                }
            ],
        }
    )
    assert shown_notes(session) == (
        "- chest pain, 2 hours\nREQUEST TEST: ECG\n\nDifferential:\n- PE 0.2\n- MI (sudden)"
    )
    assert shown_notes(Session(session_id="s")) == ""


def test_a_planner_that_speaks_for_the_doctor_does_not_replace_its_probabilities() -> None:
    session = Session(session_id="s")
    session.add("fever", ["flu"], "ASK PATIENT: Since when?", differential=[{"diagnosis": "flu", "probability": 0.7}])
    session.add("two days", ["flu"], "REQUEST TEST: CRP", recorded_by="planner")
    assert "- flu 0.7\n" in shown_notes(session)


def test_our_schemas_require_a_probability_and_one_diagnosis_may_stand_alone_at_the_end() -> None:
    early, final = (tool.parameters["properties"]["current_uncertainties"] for tool in tools())
    forms = [format_of(form).schema for form in (StepChoice, ToolChoice, DocumentedChoice)]
    asked = [form["properties"].get("current_uncertainties", form["properties"].get("uncertainties")) for form in forms]
    assert [each["minItems"] for each in (early, asked[0])] == [2, 2]
    assert [each["minItems"] for each in (final, asked[1], asked[2])] == [1, 1, 1]
    for item in (early["items"], final["items"], *(form["$defs"]["Uncertainty"] for form in forms)):
        assert "probability" in item["required"]
        assert item["properties"]["probability"]["type"] == "number", "null is not asked for"


def test_the_prompts_say_what_a_probability_and_a_diagnosis_are_of() -> None:
    doctor, synthesis = load_prompt("uncertainty"), load_prompt("synthesis")
    assert "whatever its cause or subtype" in doctor.text("system_base")
    assert "one question or order; closely related items may be combined" in doctor.text("system_base")
    assert "where its acute form" in synthesis.text("system_base")
