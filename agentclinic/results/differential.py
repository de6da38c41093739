"""A differential: hypotheses with probabilities or scores, and where those numbers come from."""

from __future__ import annotations

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
    """A probability, or null where the source gives none."""
    score: float | None = None
    """A ranking score that must not be read as a probability."""
    reason: str | None = None


class Differential(BaseModel):
    """Hypotheses in falling order, with the mass left for anything not listed."""

    model_config = ConfigDict(frozen=True)

    source: Source
    hypotheses: tuple[Hypothesis, ...]
    other: float | None = Field(default=None, ge=0, le=1)
    """Probability that none of the listed hypotheses is right; null where unknown."""
