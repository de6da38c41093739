"""How well facts were chosen: precision, recall and F1 against a reader's marks, and the difference of two choosers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agentclinic.scoring.stats import SCORE_RESAMPLES, Estimate, stretch_for


@dataclass(frozen=True)
class Marked:
    """The facts that a reader marked for one question or order, by path."""

    paths: frozenset[str]
    equivalent: frozenset[str] = frozenset()
    """Results of another test that give the same information: right if told, not a miss if left out."""


class Counts(NamedTuple):
    """Facts rightly told, wrongly told and missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float | None:
        """Right ÷ told; None if nothing was told."""
        told = self.right + self.wrong
        return self.right / told if told else None

    @property
    def recall(self) -> float | None:
        """Right ÷ (right + missed); None if nothing was asked for."""
        wanted = self.right + self.missed
        return self.right / wanted if wanted else None

    @property
    def f1(self) -> float | None:
        """2 · right ÷ (2 · right + wrong + missed); None if nothing was told or asked for."""
        either = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / either if either else None


def count(told: Collection[str], marked: Marked) -> Counts:
    """Compare what was told with what was marked."""
    given = set(told)
    right = given & (marked.paths | marked.equivalent)
    return Counts(len(right), len(given - right), len(marked.paths - given))


def added(counts: Iterable[Counts]) -> Counts:
    return Counts(*(sum(column) for column in zip(*counts, strict=True)))


def f1_difference(ours: Sequence[Counts], theirs: Sequence[Counts], seed: int = 0) -> Estimate:
    """F1 of the summed counts, ours minus theirs, with a 95% interval by paired bootstrap over rows.

    Both have the same rows in the same order; a resample draws the same rows for both.
    """
    pairs = np.array([(*one, *other) for one, other in zip(ours, theirs, strict=True)], dtype=np.float64)
    ours_f1, theirs_f1 = added(ours).f1, added(theirs).f1
    if ours_f1 is None or theirs_f1 is None:
        return Estimate(value=None, n=len(pairs))
    value = ours_f1 - theirs_f1
    stretch = stretch_for(len(pairs))
    if np.isinf(stretch):
        return Estimate(value=value, n=len(pairs), note="no interval: too few rows")
    draws = np.random.default_rng(seed).multinomial(
        len(pairs), np.full(len(pairs), 1 / len(pairs)), size=SCORE_RESAMPLES
    )
    sums = draws @ pairs
    differences = _f1(sums[:, :3]) - _f1(sums[:, 3:])
    low, high = (value + (float(limit) - value) * stretch for limit in np.quantile(differences, [0.025, 0.975]))
    return Estimate(value=value, low=max(-1.0, low), high=min(1.0, high), n=len(pairs))


def _f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 of each resample; one in which nothing was told or asked for counts as perfect."""
    twice = 2 * sums[:, 0]
    either = twice + sums[:, 1] + sums[:, 2]
    return np.where(either > 0, twice / np.where(either > 0, either, 1.0), 1.0)
