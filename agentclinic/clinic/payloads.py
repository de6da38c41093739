"""The structured context of a request, by purpose: only what that role may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agentclinic.cases.completion import Completion
from agentclinic.cases.model import AnswerKey, Door, Fact
from agentclinic.clinic.limits import Limits
from agentclinic.config import TRAITS
from agentclinic.results.turn import Exchange
from agentclinic.results.utterance import parse_action

MissingTest = Literal["unavailable", "normal", "completed"]
SilentSymptom = Literal["deny", "unknown"]


@dataclass(frozen=True)
class PatientTraits:
    """What makes a patient difficult, each from 0 to 3, and the seed that decides which facts it touches."""

    recall: int = 0
    disclosure: int = 0
    literacy: int = 0
    verbosity: int = 0
    seed: int = 0

    @property
    def levels(self) -> dict[str, int]:
        """The traits that the patient has, by their level."""
        return {name: level for name in TRAITS if (level := getattr(self, name))}

    @property
    def any(self) -> bool:
        return bool(self.recall or self.disclosure or self.literacy or self.verbosity)


NO_TRAITS = PatientTraits()


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
    """Whether the doctor can request tests and examinations at all."""
    offered: tuple[str, ...] = ()
    """Tools on offer, by name, for a doctor that speaks through them."""
    advised: tuple[str, ...] = ()
    """Suggested steps, as ids of the knowledge base."""
    may_order: Callable[[str], bool] | None = None
    """Whether the laboratory would do a test of this name now; None: it does all."""


def can_take(step: str, may_order: Callable[[str], bool] | None) -> bool:
    """Whether a step is a question, or an order that the laboratory would carry out."""
    if may_order is None:
        return True
    action = parse_action(step)
    return action.kind != "test" or may_order(action.content)


@dataclass(frozen=True)
class PatientPayload:
    """What the patient knows: the patient's part of the chart and the doctor's words."""

    door: Door
    facts: tuple[Fact, ...]
    question: str
    asked: tuple[Exchange, ...]
    silent_symptom: SilentSymptom
    caregiver: bool
    manner: Mapping[str, str] = field(default_factory=dict)
    """What this patient says about feelings and wishes, by kind (`idea`, `worry`, `hope`, `feel`, `greet`)."""
    undeniable: int = 0
    """Concepts of the lexicon that the examination shows: the patient must not deny them."""
    traits: PatientTraits = NO_TRAITS


@dataclass(frozen=True)
class LaboratoryPayload:
    """What the laboratory knows: examination and test results, and the order."""

    facts: tuple[Fact, ...]
    request: str
    missing_test: MissingTest
    completion: Completion | None = None
    """What completes the chart, if `missing_test` is `completed`."""
    horizon: float | None = None
    """Hours within which a result must be back to be reported; None: all are."""
    limits: Limits | None = None
    """What may be done; None: everything."""


@dataclass(frozen=True)
class JudgePayload:
    """What the judge knows: the doctor's words, the truth and the case's answer key."""

    diagnosis: str
    truth: str
    answer_key: AnswerKey = field(default_factory=AnswerKey)
    chart: str = ""
    """If given, details of a diagnosis that it does not support are unsupported."""
    utterance: str = ""
    """All that the doctor said in its last turn, which the original's judge is shown instead of the diagnosis."""
