"""The exact solution of a world, by backward induction over everything that a doctor can know.

A state of knowledge says for each finding whether it is unknown, present or absent. The value of a state is what the
best play is worth from there on, in points; its probability times its value is kept for all 3^n states, and the values
of actions are computed when a state is visited.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentclinic.config import variable
from agentclinic.errors import AgentClinicError
from agentclinic.files import make_folder, read_limited, write_whole
from agentclinic.worlds.model import World

Floats = NDArray[np.float64]
State = tuple[int, ...]
"""For each finding 0 (unknown), 1 (present) or 2 (absent)."""
UNKNOWN, PRESENT, ABSENT = 0, 1, 2
EXACT = 1e-9
"""Differences below this come from rounding: two actions that are equally good differ by less."""


@dataclass(frozen=True, eq=False)
class Solution:
    """The best play in a world."""

    world: World
    weighted: Floats
    """Probability of each state times its value, with one axis per finding."""
    prior: Floats
    table: Floats
    """How often each finding is present, by disease: a row for each disease."""
    utility: Floats
    """What each ending is worth: a row for each ending, a column for each true disease."""
    cost: Floats

    @property
    def start(self) -> State:
        """Nothing is known."""
        return (UNKNOWN,) * len(self.cost)

    def state(self, known: Mapping[str, bool]) -> State:
        """The state in which these findings are known."""
        place = {True: PRESENT, False: ABSENT, None: UNKNOWN}
        return tuple(place[known.get(name)] for name in self.world.findings)

    def joint(self, state: State) -> Floats:
        """The probability of a state together with each disease."""
        weights = self.prior.copy()
        for column, known in enumerate(state):
            if known:
                p = self.table[:, column]
                weights *= p if known == PRESENT else 1 - p
        return weights

    def posterior(self, state: State) -> Floats:
        """How likely each disease is."""
        weights = self.joint(state)
        result: Floats = weights / weights.sum()
        return result

    def value(self, state: State) -> float:
        """What the best play is worth from here on."""
        return float(self.weighted[state] / self.joint(state).sum())

    def asking(self, state: State) -> dict[str, float]:
        """The value of finding out each thing that is not known yet, followed by the best play."""
        chance = self.joint(state).sum()
        found = {}
        for column, name in enumerate(self.world.findings):
            if state[column] == UNKNOWN:
                after = self.weighted[_set(state, column, PRESENT)] + self.weighted[_set(state, column, ABSENT)]
                found[name] = float(after / chance - self.cost[column])
        return found

    def ending(self, state: State) -> dict[str, float]:
        """The value of each answer that ends the encounter."""
        return dict(zip(self.world.endings, (self.utility @ self.posterior(state)).tolist(), strict=True))

    def information(self, state: State) -> Floats:
        """What each finding is expected to tell about the disease, in bits; 0 for those that are known."""
        posterior = self.posterior(state)
        gained = _entropy(posterior @ self.table) - posterior @ _entropy(self.table)
        return np.where(np.array(state) == UNKNOWN, gained, 0.0)

    def best(self, state: State) -> str:
        """The best action: a finding or an ending; the ending, if they are equally good."""
        actions = self.ending(state) | self.asking(state)
        most = max(actions.values())
        return next(name for name, value in actions.items() if value >= most - EXACT)


def _entropy(p: Floats) -> Floats:
    return np.asarray(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)))


def _set(state: State, column: int, known: int) -> State:
    return (*state[:column], known, *state[column + 1 :])


def solve(world: World) -> Solution:
    """Solve a world."""
    given = _given(world)
    return Solution(world, _induction(*given), *given)


def _given(world: World) -> tuple[Floats, Floats, Floats, Floats]:
    """Priors, the table, utilities and costs as arrays."""
    rows = [[(one.probability or {})[disease] for one in world.findings.values()] for disease in world.diseases]
    costs = np.array([world.cost(name) for name in world.findings])
    return np.array(world.priors), np.array(rows), np.array(world.utility_rows), costs


def _joints(prior: Floats, table: Floats) -> list[Floats]:
    """For each disease, its probability together with every state, with one axis per finding."""
    count = table.shape[1]
    found = []
    for chance, row in zip(prior, table, strict=True):
        weights = np.full((1,) * count, chance)
        for column, p in enumerate(row):
            shape = [1] * count
            shape[column] = 3
            weights = weights * np.array([1.0, p, 1 - p]).reshape(shape)
        found.append(weights)
    return found


def _induction(prior: Floats, table: Floats, utility: Floats, cost: Floats, *, at_random: bool = False) -> Floats:
    """Probability times value of all states: of the best play, or of a doctor who acts at random.

    Weighted by their probabilities, the two answers to a question simply add up. States with fewer unknown
    findings come first; those with the same unknown findings are computed together.
    """
    by_disease = _joints(prior, table)
    chance: Floats = np.sum(by_disease, axis=0)
    weighted: Floats = np.zeros_like(chance) if at_random else np.full_like(chance, -np.inf)
    for row in utility:
        worth = np.zeros_like(chance)
        for value, weights in zip(row, by_disease, strict=True):
            worth += value * weights
        weighted = weighted + worth / len(utility) if at_random else np.maximum(weighted, worth)
    findings = range(len(cost))
    for left in range(1, len(cost) + 1):
        for unknown in combinations(findings, left):
            place = tuple(UNKNOWN if column in unknown else slice(PRESENT, ABSENT + 1) for column in findings)
            here, likely = weighted[place], chance[place]
            for column in unknown:
                yes, no = ((*place[:column], known, *place[column + 1 :]) for known in (PRESENT, ABSENT))
                asked = weighted[yes] + weighted[no] - cost[column] * likely
                here = here + asked if at_random else np.maximum(here, asked)
            weighted[place] = here / (left + 1) if at_random else here
    return weighted


def random_value(world: World) -> float:
    """What a doctor who acts at random earns on average, exactly.

    Each turn it draws one of the things it does not know yet or an answer, all with the same chance; the answer is one
    of the endings, all with the same chance.
    """
    given = _given(world)
    return float(_induction(*given, at_random=True)[(UNKNOWN,) * len(world.findings)])


@lru_cache(maxsize=16)
def solution(world: World) -> Solution:
    """The solution of a world: solved once, and kept in the user's cache folder for later runs."""
    path = _cache_folder() / f"{world.digest}.bin"
    given = _given(world)
    weighted = _read(path, (3,) * len(world.findings))
    if weighted is None:
        weighted = _induction(*given)
        with suppress(AgentClinicError):  # without a cache, it is solved again next time
            make_folder(path.parent)
            write_whole(path, weighted.tobytes(), durable=False)
    return Solution(world, weighted, *given)


def _cache_folder() -> Path:
    return Path(variable("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentclinic" / "worlds"


def _read(path: Path, shape: tuple[int, ...]) -> Floats | None:
    """A kept solution; None if there is none, or if the file is not one."""
    try:
        kept = np.frombuffer(read_limited(path)).reshape(shape)
    except (OSError, ValueError):  # none, or one of another size
        return None
    return kept if bool(np.isfinite(kept).all()) else None
