"""The structured context of a request, by purpose: only what that role may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from agentclinic.cases.model import AnswerKey, Door, Fact
from agentclinic.results.turn import Exchange

MissingTest = Literal["unavailable", "normal"]
SilentSymptom = Literal["deny", "unknown"]


@dataclass(frozen=True)
class DoctorPayload:
    """What the doctor knows: what is known at the door, the dialogue so far, and how many turns are left."""

    door: Door
    exchanges: tuple[Exchange, ...]
    turn: int
    """This turn, counted from 1."""
    limit: int
    last: bool
    tests: bool = True
    """Whether tests and examinations can be requested at all."""
    offered: tuple[str, ...] = ()
    """Tools on offer, by name, for a doctor that speaks through them."""
    advised: tuple[str, ...] = ()
    """Steps that memory suggests, as ids of the knowledge base."""


@dataclass(frozen=True)
class PatientPayload:
    """What the patient knows: the patient's part of the chart and the doctor's words."""

    door: Door
    facts: tuple[Fact, ...]
    question: str
    asked: tuple[Exchange, ...]
    silent_symptom: SilentSymptom
    caregiver: bool


@dataclass(frozen=True)
class LaboratoryPayload:
    """What the laboratory knows: examination and test results, and the order."""

    facts: tuple[Fact, ...]
    request: str
    missing_test: MissingTest


@dataclass(frozen=True)
class JudgePayload:
    """What the judge knows: the doctor's words, the truth and the case's answer key."""

    diagnosis: str
    truth: str
    answer_key: AnswerKey
    chart: str = ""
    """If given, details of a diagnosis that it does not support are unsupported."""


@dataclass(frozen=True)
class ConfidencePayload:
    """What the doctor knows when asked, after the diagnosis, how sure it is."""

    door: Door
    exchanges: tuple[Exchange, ...]
    diagnosis: str


@dataclass(frozen=True)
class PlannerPayload:
    """What the planner knows, and how much it should return."""

    door: Door
    exchanges: tuple[Exchange, ...]
    min_findings: int
    """Findings each hypothesis must list."""
    max_hypotheses: int
    baseline: tuple[Exchange, ...] = ()
    """What it knows about the patient beyond what is known at the door, as if it had asked."""


@dataclass(frozen=True)
class InlinePayload:
    """What the doctor knows when it plans and speaks in one reply."""

    doctor: DoctorPayload
    planner: PlannerPayload


@dataclass(frozen=True)
class DiscriminatorPayload:
    """What the planner knows when asked how to distinguish close hypotheses."""

    door: Door
    exchanges: tuple[Exchange, ...]
    hypotheses: tuple[str, ...]


@dataclass(frozen=True)
class SynthesisPayload:
    """The collected facts, and nothing else: no dialogue, no reasons."""

    facts: tuple[str, ...]


@dataclass(frozen=True)
class LearnerPayload:
    """What is known of an encounter afterwards: the dialogue, the whole chart and the truth."""

    door: Door
    exchanges: tuple[Exchange, ...]
    chart: tuple[Exchange, ...]
    """The chart, as if everything had been asked and ordered."""
    diagnosis: str
    truth: str


@dataclass(frozen=True)
class WriterPayload:
    """What the writer of a patient's story knows: the record before the diagnosis, never the diagnosis itself."""

    history_source: Literal["note", "triage", "codes", "none"]
    age: int | None
    sex: str
    arrival: str
    story: tuple[str, ...]
    past: tuple[str, ...]
    drugs: tuple[str, ...]


class WrittenStory(BaseModel):
    """A patient's story as a writer gives it; a part of which the record says nothing is empty."""

    objective: str
    """One sentence that asks the doctor to assess the patient, naming the complaint and nothing else."""
    history: str
    """What the patient noticed, when and how, in the third person."""
    primary_symptom: str
    secondary_symptoms: list[str]
    past_medical_history: str
    medications: str
    social_history: str
    family_history: str
    review_of_systems: str
