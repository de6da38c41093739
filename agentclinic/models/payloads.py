"""The structured context of a request, by purpose: only what that role may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from agentclinic.cases.model import AnswerKey, Door, Fact
from agentclinic.models.base import Disclosure

ActionKind = Literal["question", "test", "images", "diagnosis"]
MissingTest = Literal["unavailable", "normal"]
SilentSymptom = Literal["deny", "unknown"]


@dataclass(frozen=True)
class Exchange:
    """One finished turn as the doctor knows it."""

    kind: ActionKind
    content: str
    reply: str
    disclosures: tuple[Disclosure, ...] = ()


@dataclass(frozen=True)
class DoctorPayload:
    """What the doctor knows: the door, the dialogue so far, and how many turns are left."""

    door: Door
    exchanges: tuple[Exchange, ...]
    turn: int
    """This turn, counted from 1."""
    limit: int
    last: bool
    tests: bool = True
    """Whether tests and examinations can be requested at all."""


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
class MeasurementPayload:
    """What the laboratory knows: examination and test results, and the order."""

    facts: tuple[Fact, ...]
    request: str
    missing_test: MissingTest


@dataclass(frozen=True)
class ModeratorPayload:
    """What the judge knows: the doctor's words, the truth and the case's answer key."""

    diagnosis: str
    truth: str
    answer_key: AnswerKey
    chart: str = ""
    """Where given, details of a diagnosis that it does not bear out are unsupported."""


@dataclass(frozen=True)
class ConfidencePayload:
    """What the doctor knows when asked, after the diagnosis, how sure it is."""

    door: Door
    exchanges: tuple[Exchange, ...]
    diagnosis: str


@dataclass(frozen=True)
class PlannerPayload:
    """What the planner knows, and how much it is asked for."""

    door: Door
    exchanges: tuple[Exchange, ...]
    min_findings: int
    """Findings each hypothesis has to list."""
    max_hypotheses: int


@dataclass(frozen=True)
class DiscriminatorPayload:
    """What the planner knows when asked how to tell close hypotheses apart."""

    door: Door
    exchanges: tuple[Exchange, ...]
    hypotheses: tuple[str, ...]


@dataclass(frozen=True)
class SynthesisPayload:
    """The collected facts, and nothing else: no dialogue, no reasons."""

    facts: tuple[str, ...]


FindingState = Literal["present", "absent", "unknown"]


class PlannedFinding(BaseModel):
    """A finding that speaks for a hypothesis, and what is known of it."""

    finding: str
    weight: int = Field(ge=1, le=5)
    expected: Literal["present", "absent"] = "present"
    observed: FindingState


class PlannedHypothesis(BaseModel):
    """A diagnosis with the findings that would speak for it."""

    diagnosis: str
    findings: list[PlannedFinding]


class Discriminator(BaseModel):
    """A question or test that tells hypotheses apart."""

    request: str
    tells_apart: list[str]


class PlannerReply(BaseModel):
    """A weighted differential as a planner gives it."""

    hypotheses: list[PlannedHypothesis]
    discriminators: list[Discriminator] = Field(default_factory=list)


class StatedHypothesis(BaseModel):
    """A diagnosis and how likely the doctor takes it to be."""

    diagnosis: str
    probability: float = Field(ge=0, le=1)


class StatedDifferential(BaseModel):
    """What a doctor answers when asked how sure it is."""

    hypotheses: list[StatedHypothesis] = Field(min_length=1, max_length=10)


@dataclass(frozen=True)
class WriterPayload:
    """What the writer of a patient's story knows: what is on record before the diagnosis, and never the diagnosis."""

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
    """One sentence that asks the doctor to assess the patient, with the complaint and nothing else."""
    history: str
    """What the patient noticed, when and how, in the third person."""
    primary_symptom: str
    secondary_symptoms: list[str]
    past_medical_history: str
    medications: str
    social_history: str
    family_history: str
    review_of_systems: str
