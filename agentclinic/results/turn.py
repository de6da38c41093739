"""The utterances of an encounter: what each disclosed, what it cost, and the differential at that point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agentclinic.config import MOST_TURNS
from agentclinic.results.utterance import Action, ActionKind, parse_action


class Source(StrEnum):
    """Where a differential's numbers come from; numbers of different sources are never pooled."""

    POSTERIOR = "posterior"
    STATED = "stated"
    PLANNER_SCORE = "planner_score"
    PLANNER_POSTERIOR = "planner_posterior"
    ELICITED = "elicited"


class Hypothesis(BaseModel):
    """One diagnosis under consideration."""

    model_config = ConfigDict(frozen=True)

    diagnosis: str
    probability: float | None = Field(default=None, ge=0, le=1)
    """A probability, or null if the source gives none."""
    score: float | None = None
    """A ranking score; it is not a probability."""
    reason: str | None = None


class Differential(BaseModel):
    """Hypotheses, most likely first, and the probability left for anything not listed."""

    model_config = ConfigDict(frozen=True)

    source: Source
    hypotheses: tuple[Hypothesis, ...]
    other: float | None = Field(default=None, ge=0, le=1)
    """Probability that none of the listed hypotheses is right; null if unknown."""


def as_differential(source: Source, hypotheses: Iterable[Hypothesis]) -> Differential | None:
    """Hypotheses as a differential, most likely first; probabilities that sum to more than 1 are scaled down.

    None if there are no hypotheses. The rest (`other`) is known only if every hypothesis has a probability.
    """
    given = list(hypotheses)
    if not given:
        return None
    total = sum(hypothesis.probability or 0.0 for hypothesis in given)
    scale = max(1.0, total)
    complete = all(hypothesis.probability is not None for hypothesis in given)
    # The sort is stable: hypotheses without a probability stay in the order in which they were named.
    ordered = sorted(given, key=lambda hypothesis: -(hypothesis.probability or 0.0))
    return Differential(
        source=source,
        hypotheses=tuple(
            hypothesis
            if hypothesis.probability is None
            else hypothesis.model_copy(update={"probability": min(1.0, hypothesis.probability / scale)})
            for hypothesis in ordered
        ),
        other=max(0.0, 1 - total / scale) if complete else None,
    )


@dataclass(frozen=True)
class Usage:
    """Tokens of one or more requests. Unknown is None, never 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    requests: int = 1
    retries: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
            self.requests + other.requests,
            self.retries + other.retries,
        )


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


NO_TOKENS = Usage(input_tokens=0, output_tokens=0, cached_tokens=0, reasoning_tokens=0)
"""A reply without a language model: known to be zero, not unknown."""
NOTHING_ASKED = Usage(0, 0, 0, 0, requests=0)
"""No model was asked at all."""


class Provenance(StrEnum):
    CHART = "chart"
    CHART_EQUIVALENT = "chart_equivalent"
    DEFAULT_NEGATIVE = "default_negative"
    DEFAULT_NORMAL = "default_normal"
    UNAVAILABLE = "unavailable"
    PENDING = "pending"
    """Taken, and the result is not back in time."""
    REFUSED = "refused"
    """Not done: more than the money or the items of an order, or not available in the setting."""
    NOT_UNDERSTOOD = "not_understood"
    """The patient asks back."""
    MANNER = "manner"
    """Small talk, feelings and wishes: no fact."""


@dataclass(frozen=True)
class Effect:
    """What a trait of the patient did to one fact, and why."""

    path: str
    """The fact's; for what is no fact `Manner/worry`, or `Word/edema` for a word that was not understood."""
    reason: str
    """The trait and how it acted: `recall: not exact`."""


@dataclass(frozen=True)
class Disclosure:
    """One part of a reply: what it was about, where it comes from, and which chart facts it used."""

    topic: str
    provenance: Provenance
    paths: tuple[str, ...] = ()
    """The facts that were told, exactly."""
    withheld: tuple[Effect, ...] = ()
    """Facts that the same patient without traits would have told."""
    vague: tuple[Effect, ...] = ()
    """Facts that were told in part: without the time, dose or amount, or played down."""
    added: tuple[Effect, ...] = ()
    """What was told without having been asked for; facts among it are also in `paths`."""

    @property
    def completed(self) -> bool:
        """Whether it is a result from the table of normal results (`missing_test: completed`)."""
        return self.provenance is Provenance.DEFAULT_NORMAL and bool(self.paths)


def as_told(disclosures: tuple[Disclosure, ...]) -> tuple[Disclosure, ...]:
    """What a doctor may know of where a reply comes from.

    A completed result is one like any other. Only the record says that it was not in the chart.
    """
    told = (Disclosure(part.topic, Provenance.CHART if part.completed else part.provenance) for part in disclosures)
    return tuple(dict.fromkeys(told))


_NOT_DONE = frozenset({Provenance.UNAVAILABLE, Provenance.REFUSED})


def done_in(disclosures: Iterable[Disclosure]) -> list[str]:
    """What a laboratory did of an order, by name; of a panel, the first part says whether it was done."""
    first: dict[str, Disclosure] = {}
    for part in disclosures:
        first.setdefault(part.topic, part)
    return [topic for topic, part in first.items() if part.provenance not in _NOT_DONE]


@dataclass(frozen=True)
class Charge:
    """What one item of an order cost, or that it was refused."""

    name: str
    usd: float = 0.0
    """Nothing for an examination, and for a test that was charged before in the encounter."""
    refused: bool = False


@dataclass(frozen=True)
class Exchange:
    """One finished turn as the doctor knows it: what it asked, and the reply."""

    kind: ActionKind
    content: str
    reply: str
    disclosures: tuple[Disclosure, ...] = ()

    def __hash__(self) -> int:
        return hash((self.content, self.reply))  # every turn looks up all exchanges before it


class Turn(BaseModel):
    """One utterance, in the encounter and in its record."""

    model_config = ConfigDict(frozen=True)

    turn: int = Field(le=MOST_TURNS)
    """Counted from 1; a doctor's utterance and the reply to it share the number."""
    role: str
    """doctor, patient, measurement or clinic; planner and confidence are not part of the dialogue."""
    text: str
    raw: str | None = None
    """The model's own words, if they are not `text`: cut at another speaker's line, or replaced by code."""
    slips: tuple[str, ...] = ()
    """What is wrong with the raw words, by kind: `results.utterance` for doctors, the clinic's checks for patients."""
    action: Action | None = None
    """What a doctor's utterance does; None for everyone else."""
    disclosures: tuple[Disclosure, ...] = ()
    differential: Differential | None = None
    charges: tuple[Charge, ...] = Field(default=(), exclude_if=lambda charges: not charges)
    """What a laboratory charged and what it refused, if it has a budget or a limited setting."""
    usage: Usage | None = None
    notes: tuple[str, ...] = ()
    """What a reader should know: a clipped prompt, a repair, a rule that was broken."""
    details: Mapping[str, Any] | None = None
    """Numbers behind it: a plan's scores, a session's step."""

    @model_validator(mode="before")
    @classmethod
    def _with_action(cls, data: Any) -> Any:
        """Parse a doctor's utterance, once. Records of version 0.2 hold only the kind of action: parse again."""
        if not isinstance(data, dict) or data.get("role") != "doctor" or not isinstance(data.get("text"), str):
            return data
        given = data.get("action")
        return data if isinstance(given, Action | dict) else {**data, "action": parse_action(data["text"])}


def asked_and_answered(turns: Iterable[Turn]) -> Iterator[tuple[Turn, Action, Turn | None]]:
    """Each question, order or request for images in a transcript with its reply; None if the encounter ended first."""
    asked: tuple[Turn, Action] | None = None
    for turn in turns:
        if turn.action:
            if asked:
                yield *asked, None
            asked = (turn, turn.action) if turn.action.kind in ("question", "test", "images") else None
        elif asked and turn.role in ("patient", "measurement", "clinic"):
            yield *asked, turn
            asked = None
    if asked:
        yield *asked, None
