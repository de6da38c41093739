"""A differential: hypotheses with probabilities or scores, and where those numbers come from."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Source(StrEnum):
    """Where a differential's numbers come from; numbers of different sources are never pooled."""

    POSTERIOR = "posterior"
    STATED = "stated"
    PLANNER_SCORE = "planner_score"
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
