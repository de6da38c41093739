"""Small test doubles: models that answer from a list, small cases, and encounters with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import Case, Door
from agentclinic.clinic.doctor import Assignment
from agentclinic.clinic.encounter import Clinic, Seat, Transcript, encounter
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import Prompts, load_prompts
from agentclinic.config import Given, RunSettings, Settings
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.models.base import Model, Reply, Request
from agentclinic.runs.human import Tape
from agentclinic.runs.plan import Plan, make_plan


class Scripted:
    """Answers from a list, raising the exceptions in it, and keeps every request."""

    def __init__(self, *answers: str | Reply | BaseException, name: str = "scripted") -> None:
        self.name = name
        self._answers = list(answers)
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        assert self._answers, f"one request too many: {request.messages[-1].content[-200:]}"
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return Reply(answer) if isinstance(answer, str) else answer

    @property
    def prompts(self) -> list[str]:
        """The user messages of all requests."""
        return [request.messages[-1].content for request in self.requests]


class Listening:
    """Passes everything on to another model; keeps requests and replies."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model
        self.requests: list[Request] = []
        self.replies: list[str] = []

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = await self._model.reply(request)
        self.replies.append(reply.text)
        return reply


OSCE: Mapping[str, Any] = {
    "Objective_for_Doctor": "Assess a patient with headache.",
    "Patient_Actor": {
        "Demographics": "35-year-old woman",
        "History": "The patient has had a throbbing headache for two days.",
        "Symptoms": {"Primary_Symptom": "Headache", "Secondary_Symptoms": ["Nausea"]},
    },
    "Physical_Examination_Findings": {"Vital_Signs": {"Temperature": "36.8°C"}},
    "Test_Results": {"Complete_Blood_Count": {"Hemoglobin": "13.2 g/dL"}},
    "Correct_Diagnosis": "Migraine",
}
NEJM: Mapping[str, Any] = {
    "question": "What is it?",
    "patient_info": "A 40-year-old man has had an itchy rash for a week.",
    "physical_exams": "Skin: scaly plaques on both elbows.",
    "image_url": "https://images.example/rash.jpg",
    "answers": [{"text": "Psoriasis", "correct": True}, {"text": "Scabies", "correct": False}],
}


def case_of(row: Mapping[str, Any]) -> Case:
    data = row if "answers" in row or "OSCE_Examination" in row else {"OSCE_Examination": row}
    return read_case(Row(Path("case.jsonl"), 1, 0, data), "Test")


def assigned(door: Door, model: Model, limit: int = 20, *further: str, **changes: Any) -> Assignment:
    """An assignment in a chat with the shipped prompts."""
    return Assignment(door, model, load_prompts(None, *further), limit, **{"dialogue": "chat", **changes})


@dataclass
class Meeting:
    """An encounter whose roles are scripted."""

    doctor: Model
    patient: Model = field(default_factory=Scripted)
    lab: Model = field(default_factory=Scripted)
    case: Case = field(default_factory=lambda: case_of(OSCE))
    limit: int = 20
    images: bool = False
    seconds: float | None = None
    prompts: Prompts = field(default_factory=load_prompts)

    def __post_init__(self) -> None:
        self.build()

    def build(self, tape: Tape | None = None) -> Clinic:
        """New roles; with a tape, their replies can be taken back."""

        def model(of: Model, role: str) -> Model:
            return tape.wrap(of, role) if tape else of

        self.patient_role = Patient(self.case, model(self.patient, "patient"), self.prompts["patient"])
        self.lab_role = Laboratory(self.case, model(self.lab, "measurement"), self.prompts["measurement"])
        self.doctor_role = PlainDoctor(
            Assignment(self.case.door, model(self.doctor, "doctor"), self.prompts, self.limit, images=self.images)
        )
        return Clinic(self.case, self.patient_role, self.lab_role, self.prompts["doctor"], images=self.images)

    async def hold(self, tape: Tape | None = None) -> Transcript:
        """Run the encounter; with a tape, again from the start whenever a person goes back."""

        async def once() -> Transcript:
            return await encounter(Seat(self.build(tape), self.limit), self.doctor_role, seconds=self.seconds)

        return await (tape.play(once) if tape else once())


def plan_of(**run: Any) -> Plan:
    return make_plan(Settings(run=RunSettings(**run), given=Given(flags=run)))
