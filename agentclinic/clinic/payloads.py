"""The structured context of a request, by purpose: only what that role may see."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
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
    **dict.fromkeys(("absent", "no", "negative", "false", "denied", "denies", "none", "ruled out"), "absent"),
    **dict.fromkeys(("", "unknown", "unclear", "untested", "pending", "n/a", "na", "?", "null"), "unknown"),
}
# "not sure", "not examined" and "not ruled out" leave it open: after "not" only words that say it was looked for count.
_DENIED = re.compile(
    r"(?:no|denies|denied|without|absence of)\s+\w|not (?:present|found|seen|detected|observed|noted)\b", re.IGNORECASE
)
_NOBODY_KNOWS = re.compile(
    r"(?:no|without)\s+(?:(?:further|relevant|prior|clear)\s+)?"
    r"(?:information|data|results?|answer|mention|idea|record|test|testing|report|assessment|documentation"
    r"|examination|imaging|way|one)\b",
    re.IGNORECASE,
)


def read_state(said: object) -> FindingState:
    """Whether a finding is present, absent or unknown; only what plainly says so counts as known."""
    if isinstance(said, bool):
        return "present" if said else "absent"
    word = " ".join(str(said if said is not None else "").split()).strip(" .").lower()
    # "present (39 °C)", "no; denied twice": a word that stands for itself, then an explanation.
    for candidate in (word, re.split(r"[,;:(]| [-–—] ", word, maxsplit=1)[0].strip()):
        if candidate in _STATES:
            return _STATES[candidate]
    return "absent" if _DENIED.match(word) and not _NOBODY_KNOWS.match(word) else "unknown"


class _Planned(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)


class PlannedFinding(_Planned):
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
        if "finding" not in data and isinstance(data.get("name"), str):
            data["finding"] = data.pop("name")
        observed = read_state(data.get("observed"))
        expected = "absent" if read_state(data.get("expected", "present")) == "absent" else "present"
        mended = {"weight": _fitting(data.get("weight")), "expected": expected, "observed": observed}
        remarks = [
            f"{key} {_short(data[key])} taken as {value}" if key in data else f"no {key}, taken as {value}"
            for key, value in mended.items()
            if _changed(data.get(key), value) and (key == "weight" or data.get(key) is not None)
        ]
        name = str(data.get("finding", "")).strip()[:60]
        return {**data, **mended, "remark": f"{name}: {', '.join(remarks)}" if remarks else None}


def _fitting(weight: object) -> int:
    """The weight from 1 to 5 nearest to what was given; 1 for what is no number."""
    try:
        return round(min(5.0, max(1.0, float(weight))))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 1


def _changed(said: object, taken: object) -> bool:
    return said != taken and str(said).strip().lower() != str(taken)


def _short(value: object) -> str:
    return repr(value)[:40]


class PlannedHypothesis(_Planned):
    """A diagnosis with the findings that would speak for it."""

    diagnosis: str = Field(min_length=1)
    findings: list[PlannedFinding]


class Discriminator(_Planned):
    """A question or test that tells hypotheses apart."""

    request: str = Field(min_length=1)
    """A question to the patient, or a test as REQUEST TEST: name."""
    tells_apart: list[str] = Field(default_factory=list)
    """The diagnoses it separates."""


class WeightedDifferential(BaseModel):
    """What a planner is asked for: diagnoses with weighted findings."""

    hypotheses: list[PlannedHypothesis]


class PlannerReply(WeightedDifferential):
    """A weighted differential, and what would tell its leaders apart."""

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
