"""Nothing that only the judge may know reaches doctor, patient or laboratory; chart facts arrive when disclosed."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import Listening, Meeting, Scripted, assigned, case_of

from agentclinic.builtin import Builtin
from agentclinic.clinic.encounter import Clinic, Seat, encounter
from agentclinic.doctors.uncertainty.agent_config import SHIPPED, load_agent
from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor
from agentclinic.doctors.uncertainty.store import SessionStore
from agentclinic.models.base import Model, Request

pytestmark = pytest.mark.anyio

HIDDEN_OSCE: dict[str, Any] = {
    "Answer_Key": {
        "accept": ["HIDDENaccept"],
        "partial": ["HIDDENpartial"],
        "reject": [{"text": "HIDDENreject", "reason": "HIDDENreason"}],
    },
    "Differential": ["HIDDENdifferential"],
    "Key_Findings": [{"finding": "HIDDENfinding", "where": "HIDDENwhere"}],
    "Must_Not_Miss": ["HIDDENmiss"],
    "ICD10": "HIDDENicd",
    "twin_of": "HIDDENtwin",
    "references": ["HIDDENreference"],
    "References": ["HIDDENreferences"],
}
OSCE: dict[str, Any] = {
    "OSCE_Examination": {
        "Objective_for_Doctor": "Assess a patient with headache.",
        "Patient_Actor": {
            "Demographics": "35-year-old woman",
            "History": "The patient has had a throbbing headache CHARTone for days. It wakes her CHARTtwo at night.",
            "Symptoms": {"Primary_Symptom": "Headache CHARTthree", "Secondary_Symptoms": ["Nausea CHARTfour"]},
            "Past_Medical_History": "Asthma CHARTfive in childhood",
            "Family_History": "Mother has migraine CHARTsix",
            "Social_History": "Smokes CHARTseven daily",
        },
        "Physical_Examination_Findings": {
            "Vital_Signs": {"Temperature": "36.8°C CHARTeight", "Blood_Pressure": "120/80 mmHg CHARTnine"},
            "Neurological_Examination": {"Cranial_Nerves": "Intact CHARTten"},
        },
        "Test_Results": {"Complete_Blood_Count": {"Hemoglobin": "13.2 g/dL CHARTeleven"}, "CT_Head": "CHARTtwelve"},
        "Correct_Diagnosis": "HIDDENtruth",
        **HIDDEN_OSCE,
    },
    **{f"row_{key}": value for key, value in HIDDEN_OSCE.items()},
}
NEJM: dict[str, Any] = {
    "question": "HIDDENquestion which of these?",
    "answers": [{"text": "HIDDENright", "correct": True}, {"text": "HIDDENwrong", "correct": False}],
    "type": "HIDDENtype",
    "patient_info": "A 40-year-old man has had an itchy rash CHARTone for a week. He takes aspirin CHARTtwo daily.",
    "physical_exams": "Temperature: 37.0 CHARTthree. Skin: scaly plaques CHARTfour on both elbows.",
    "image_url": "https://images.example/CHARTimage.jpg",
    "Answer_Key": HIDDEN_OSCE["Answer_Key"],
}
QUESTIONS = [
    "What brings you here? Tell me about your symptoms.",
    "Do you have nausea?",
    "What illnesses have you had in the past?",
    "Is there any disease in your family?",
    "Do you smoke?",
    "Do you take any medication?",
    "REQUEST TEST: Vital Signs",
    "REQUEST TEST: Neurological Examination",
    "REQUEST TEST: Complete Blood Count",
    "REQUEST TEST: CT Head",
    "REQUEST TEST: Skin examination",
    "REQUEST IMAGES",
    "DIAGNOSIS READY: Migraine",
]


def canaries(request: Request, kind: str) -> set[str]:
    """Everything planted that the request shows, in messages or payload."""
    return set(re.findall(rf"{kind}[a-z]+", repr(request)))


@pytest.mark.parametrize("row", [OSCE, NEJM], ids=["OSCE", "NEJM"])
@pytest.mark.parametrize("asking", ["builtin", "scripted"])
async def test_what_only_the_judge_may_know_reaches_no_one_else(row: dict[str, Any], asking: str) -> None:
    doctor = Listening(Builtin() if asking == "builtin" else Scripted(*QUESTIONS))
    patient, lab = Listening(Builtin()), Listening(Builtin())
    await Meeting(doctor, patient, lab, case_of(row), images=True).hold()
    assert doctor.requests
    assert patient.requests
    for request in (*doctor.requests, *patient.requests, *lab.requests):
        assert canaries(request, "HIDDEN") == set()


@pytest.mark.parametrize("row", [OSCE, NEJM], ids=["OSCE", "NEJM"])
@pytest.mark.parametrize("asking", ["builtin", "scripted"])
async def test_a_chart_fact_reaches_the_doctor_only_by_the_reply_that_discloses_it(
    row: dict[str, Any], asking: str
) -> None:
    script: Model = Builtin() if asking == "builtin" else Scripted(*QUESTIONS)
    doctor = Listening(script)
    case = case_of(row)
    transcript = await Meeting(doctor, Builtin(), Builtin(), case, images=True).hold()
    replies = [turn for turn in transcript.turns if turn.role != "doctor"]
    known: set[str] = set()
    images_asked = False
    for number, request in enumerate(doctor.requests):
        if number:
            known |= set(re.findall("CHART[a-z]+", replies[number - 1].text))
            images_asked |= case.image is not None and replies[number - 1].role == "clinic"
        assert canaries(request, "CHART") == known | ({"CHARTimage"} if images_asked else set()), number
    if asking == "scripted":
        assert len(known) >= 3, "the questions should disclose something"


def test_every_planted_word_is_really_in_the_case() -> None:
    """Guards this file: a canary that the loader dropped would prove nothing."""
    for row in (OSCE, NEJM):
        case = case_of(row)
        planted = set(re.findall("(?:HIDDEN|CHART)[a-z]+", json.dumps(row)))
        assert planted <= set(re.findall("(?:HIDDEN|CHART)[a-z]+", repr(vars(case))))
        assert {c for c in planted if c.startswith("CHART")} - {"CHARTimage"} == set(
            re.findall("CHART[a-z]+", repr(case.facts))
        )


def annotated_rows() -> Iterator[dict[str, Any]]:
    yield OSCE
    changed = copy.deepcopy(OSCE)
    changed["OSCE_Examination"]["Correct_Diagnosis"] = "HIDDENother"
    yield changed


async def test_patient_and_laboratory_answer_the_same_whatever_the_truth_is() -> None:
    answers = []
    for row in annotated_rows():
        patient, lab = Listening(Builtin()), Listening(Builtin())
        await Meeting(Scripted(*QUESTIONS), patient, lab, case_of(row)).hold()
        answers.append((patient.replies, lab.replies))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("row", [OSCE, NEJM], ids=["OSCE", "NEJM"])
async def test_doctor_and_synthesis_through_tools_see_no_more_and_no_session(
    row: dict[str, Any], tmp_path: Path
) -> None:
    """Step by step a chart fact is known only once it was disclosed; the synthesis knows the recorded facts alone."""
    case, doctor, synthesis = case_of(row), Listening(Builtin()), Listening(Builtin())
    leading = UncertaintyDoctor(
        assigned(case.door, doctor, 12, "uncertainty", "synthesis"),
        load_agent(SHIPPED).settings,
        synthesis,
        SessionStore(tmp_path),
        "scenario_0_SECRETname",
    )
    meeting = Meeting(Scripted(), Builtin(), Builtin(), case)
    clinic = Clinic(case, meeting.patient_role, meeting.lab_role, meeting.prompts["doctor"])
    transcript = await encounter(Seat(clinic, 12), leading)
    replies = [turn.text for turn in transcript.turns if turn.role != "doctor"]
    assert synthesis.requests
    assert doctor.requests[-1].tools
    for number, request in enumerate(doctor.requests):
        assert canaries(request, "CHART") <= set(re.findall("CHART[a-z]+", " ".join(replies[:number])))
    for request in (*doctor.requests, *synthesis.requests):
        assert canaries(request, "HIDDEN") == set()
        assert "SECRETname" not in repr(request)
    told = repr(synthesis.requests)
    assert not any(turn.text in told for turn in transcript.turns if turn.role == "doctor"), "no dialogue"
