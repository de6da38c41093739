"""What an encounter in a solvable world cost, turn by turn, against the best play."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Kind = Literal["best", "wrong_question", "stopped_early", "too_long", "wrong_commitment", "wasted", "no_answer"]
KINDS: dict[Kind, str] = {
    "wrong_question": "asked the wrong thing",
    "stopped_early": "stopped early",
    "too_long": "went on too long",
    "wrong_commitment": "wrong commitment",
    "wasted": "wasted turn",
    "no_answer": "no answer",
}
"""The kinds of regret, in words; a turn of kind `best` has none."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class RegretTurn(_Part):
    """One turn against the best action in the same state of knowledge."""

    turn: int
    action: str | None
    """What the doctor did: a finding or an answer; None if its words did neither."""
    kind: Kind
    regret: float
    """Value of the best action minus that of the action taken."""
    luck: float
    """Value of the action taken minus what it led to: 0 on average for every doctor."""
    best: str
    """The best action; an answer, if asking is no better."""
    value: float
    """What the best play was worth before this turn."""
    posterior: dict[str, float]
    """How likely each disease was before this turn, exactly."""
    stated: dict[str, float] | None = None
    """How likely the doctor said each was; None if it did not."""
    kl: float | None = None
    """Kullback-Leibler divergence from the exact posterior to the stated one, in nats."""


class Regret(_Part):
    """An encounter in a solvable world: best value - utility = sum of regrets + luck."""

    world: str
    best_value: float
    utility: float
    """What the encounter was worth: its ending minus all costs, in points."""
    regret: float
    luck: float
    ending: str | None
    """The disease named, or DEFER; None without an answer."""
    price: float
    minutes: float
    turns: tuple[RegretTurn, ...]
