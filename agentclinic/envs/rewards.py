"""Rewards: sums of named parts, read from the record of an episode.

Parts that depend on the truth are paid at the end only; costs, and regret in a solvable world, after every turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agentclinic.config import suggestion
from agentclinic.errors import ConfigError
from agentclinic.results.record import Record, Status
from agentclinic.results.run_data import diagnosis_of
from agentclinic.results.turn import Hypothesis, Source, as_differential
from agentclinic.scoring.differentials import score_of_truth, truth_score
from agentclinic.scoring.information import key_facts, recall
from agentclinic.scoring.orders import ordered_in
from agentclinic.scoring.verdicts import lenient, strict


class Part(NamedTuple):
    """One part of a reward: its worth in an encounter that has ended or, unless it is paid at the end, so far."""

    worth: Callable[[Record], float]
    at_end: bool
    """Whether it depends on the truth and is therefore paid at the end only."""
    world: bool = False
    """Whether it is for solvable worlds only."""


def _diagnosed(record: Record) -> bool:
    return record.status == Status.DIAGNOSED


def _price(record: Record) -> float:
    ordered = ordered_in(record)
    return -ordered.bill.usd / 1000 if ordered else 0.0


def _spoken(record: Record) -> list[tuple[str, ...]]:
    """The slips of each utterance of the doctor."""
    return [turn.slips for turn in record.transcript or () if turn.role == "doctor"]


def _turns(record: Record) -> float:
    """Minus the share of the allowed turns; all of them without a diagnosis, or silence would be cheap."""
    return -len(_spoken(record)) / (record.max_infs or 1) if _diagnosed(record) else -1.0


def _key_findings(record: Record) -> float:
    found = key_facts(record) if _diagnosed(record) else None
    return (recall(found) or 0.0) if found else 0.0


def _proper(record: Record) -> float:
    """1 - Brier score: 1 if certain and right, -1 if certain and wrong, about 0 if every probability is 0.

    A diagnosis without probabilities counts as certain, and no readable diagnosis as certain and wrong: leaving
    something out gains nothing.
    """
    if not _diagnosed(record):
        return -1.0
    certain = as_differential(Source.STATED, [Hypothesis(diagnosis=diagnosis_of(record) or "", probability=1.0)])
    score = truth_score(record) or (score_of_truth(certain, record) if certain else None)
    return 1 - score.brier if score else 0.0


PARTS = {
    "right": Part(lambda record: float(strict(record) is True), at_end=True),
    "lenient": Part(lambda record: float(lenient(record) is True), at_end=True),
    "proper": Part(_proper, at_end=True),
    "key_findings": Part(_key_findings, at_end=True),
    "price": Part(_price, at_end=False),
    "turns": Part(_turns, at_end=False),
    "slips": Part(lambda record: -sum(map(bool, _spoken(record))) / (record.max_infs or 1), at_end=False),
    "utility": Part(lambda record: record.regret.utility if record.regret else 0.0, at_end=True, world=True),
    "regret": Part(
        lambda record: -math.fsum(t.regret for t in record.regret.turns) if record.regret else 0.0,
        at_end=False,
        world=True,
    ),
}
"""By name; docs/environments.md says what each is worth."""
REWARDS: Mapping[str, Mapping[str, float]] = {
    "right": {"right": 1.0},
    "lenient": {"lenient": 1.0},
    "frugal": {"right": 1.0, "price": 0.1, "turns": 0.1, "slips": 0.1},
    "careful": {"right": 1.0, "key_findings": 0.3, "proper": 0.5, "slips": 0.1},
    "utility": {"utility": 1.0},
    "regret": {"regret": 1.0},
}
"""The rewards that have a name, as weights of their parts."""


@dataclass(frozen=True)
class Reward:
    """A reward as weights of its parts."""

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        unknown = next((name for name in self.weights if name not in PARTS), None)
        if unknown is not None:
            raise ConfigError(f"reward: there is no part {unknown!r}{suggestion(unknown, PARTS)}")
        if not all(isinstance(one, int | float) and 0 <= one < math.inf for one in self.weights.values()):
            raise ConfigError("reward: weights are numbers from 0 up; costs are negative already")
        used = {name for name, weight in self.weights.items() if weight}
        if len(used) > 1 and any(PARTS[name].world for name in used):
            # Utility already counts every turn and dollar, and minus the regret of a turn is the exact advantage of its
            # action under the best play: with other parts added, the best play might no longer earn the most.
            raise ConfigError("reward: utility and regret stand alone, without other parts")
        if not used & {"right", "lenient", "proper", "utility", "regret"}:
            raise ConfigError(
                "reward: without right, lenient, proper, utility or regret, the diagnosis does not matter"
            )

    def parts(self, record: Record, *, ended: bool) -> dict[str, float]:
        """What each part is worth, weighted; before the end, the parts that are paid at once."""
        return {
            name: weight * PARTS[name].worth(record)
            for name, weight in self.weights.items()
            if weight and (ended or not PARTS[name].at_end)
        }


def reward_of(given: str | Mapping[str, float] | None, *, world: bool) -> Reward:
    """A reward by name or by weights; by default `right`, or `utility` in a solvable world."""
    if given is None:
        given = "utility" if world else "right"
    if isinstance(given, str) and given not in REWARDS:
        raise ConfigError(f"reward: there is no reward {given!r}{suggestion(given, REWARDS)}")
    reward = Reward(REWARDS[given] if isinstance(given, str) else dict(given))
    if any(PARTS[name].world != world for name, weight in reward.weights.items() if weight):
        have = ", ".join(name for name, part in PARTS.items() if part.world == world)
        raise ConfigError(
            f"reward: {'in a solvable world' if world else 'outside solvable worlds'}, its parts are {have}"
        )
    return reward
