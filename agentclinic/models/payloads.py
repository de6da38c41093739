"""The structured context of a request, by purpose: only what that role may see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

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
    offered: tuple[str, ...] = ()
    """Tools on offer, by name, for a doctor that speaks through them."""


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
    baseline: tuple[Exchange, ...] = ()
    """What it knows of the patient beyond the door, as if it had been asked."""


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
_STATES: dict[str, FindingState] = {
    **dict.fromkeys(("present", "yes", "positive", "true", "confirmed", "found"), "present"),
    **dict.fromkeys(("absent", "no", "negative", "false", "denied", "none", "not present", "ruled out"), "absent"),
    **dict.fromkeys(("", "unknown", "unclear", "untested", "pending", "n/a", "na", "?", "null"), "unknown"),
}
_NOT_KNOWN = re.compile(
    r"not (?:yet )?(?:assessed|asked|known|done|tested|available|reported|determined|performed|checked|mentioned)\b"
    r"|no (?:information|data|result|results|answer|mention)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"(?:no|not|denies|denied|without|absence of)\s+\w", re.IGNORECASE)


def read_state(said: object) -> FindingState:
    """Whether a finding is present, absent or unknown; only what plainly says so counts as known."""
    if isinstance(said, bool):
        return "present" if said else "absent"
    word = " ".join(str(said if said is not None else "").split()).strip(" .").lower()
    if word in _STATES:
        return _STATES[word]
    if _NOT_KNOWN.match(word):
        return "unknown"
    return "absent" if _DENIED.match(word) else "unknown"


class PlannedFinding(BaseModel):
    """A finding that speaks for a hypothesis, and what is known of it."""

    finding: str = Field(min_length=1)
    weight: int = Field(ge=1, le=5)
    """How much it tells, from 1 to 5."""
    expected: Literal["present", "absent"] = "present"
    """How it would be found if the hypothesis were true."""
    observed: FindingState = "unknown"
    """How it was found in this dialogue; unknown where nobody has said."""
    remark: SkipJsonSchema[str | None] = None
    """What had to be mended in it; ours, not the planner's."""

    @model_validator(mode="before")
    @classmethod
    def _mended(cls, given: object) -> object:
        """Weights outside 1 to 5 are moved to the nearer end, states in other words read as one of the three."""
        if not isinstance(given, Mapping):
            return given
        data = dict(given)
        remarks = []
        if "finding" not in data and isinstance(data.get("name"), str):
            data["finding"] = data.pop("name")
        weight = data.get("weight", 1)
        try:
            fitting = min(5, max(1, round(float(weight))))
        except (TypeError, ValueError, OverflowError):
            fitting = 1
        if fitting != weight:
            remarks.append(f"weight {_short(weight)} taken as {fitting}")
        said = data.get("observed")
        observed = read_state(said)
        if said is not None and observed != str(said).strip().lower():
            remarks.append(f"observed {_short(said)} taken as {observed}")
        expected = read_state(data.get("expected", "present"))
        data |= {"weight": fitting, "observed": observed, "expected": "absent" if expected == "absent" else "present"}
        name = str(data.get("finding", ""))[:60]
        return {**data, "remark": f"{name}: {', '.join(remarks)}" if remarks else None}


def _short(value: object) -> str:
    return repr(value)[:40]


class PlannedHypothesis(BaseModel):
    """A diagnosis with the findings that would speak for it."""

    diagnosis: str = Field(min_length=1)
    findings: list[PlannedFinding]


class Discriminator(BaseModel):
    """A question or test that tells hypotheses apart."""

    request: str = Field(min_length=1)
    """A question to the patient, or a test as REQUEST TEST: name."""
    tells_apart: list[str]
    """The diagnoses it separates."""


class PlannerReply(BaseModel):
    """A weighted differential as a planner gives it."""

    hypotheses: list[PlannedHypothesis]
    discriminators: list[Discriminator] = Field(default_factory=list)
    """What would best tell the leading diagnoses apart; empty when none are close."""


class Discriminators(BaseModel):
    """What tells close hypotheses apart, asked for on its own."""

    discriminators: list[Discriminator]


class StatedHypothesis(BaseModel):
    """A diagnosis and how likely the doctor takes it to be."""

    diagnosis: str
    probability: float = Field(ge=0, le=1)


class StatedDifferential(BaseModel):
    """What a doctor answers when asked how sure it is."""

    hypotheses: list[StatedHypothesis] = Field(min_length=1, max_length=10)
