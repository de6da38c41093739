"""Cohen's and Fleiss' kappa with intervals.

Intervals come from `stats.case_draws`, a Bayesian bootstrap over cases with half a unit added to each cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from agentclinic.scoring.stats import Estimate, Floats, case_draws, totals_by_case

MIN_CASES = 5
"""With fewer cases an interval says more about the prior than about the judges."""


def cohen_kappa(cells: Floats) -> Floats:
    """Cohen's kappa of two judges: (po - pe) / (1 - pe), for any number of tables at once.

    The last axis is (both yes, only the first yes, only the second yes, both no). po is the share of agreement,
    pe = p1·p2 + (1 - p1)(1 - p2) the share expected of judges who say yes this often at random.
    NaN if pe is 1: both judges gave the same verdict throughout.
    """
    both, first, second, neither = (cells[..., column] for column in range(4))
    total = cells.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p1, p2 = (both + first) / total, (both + second) / total
        return _kappa((both + neither) / total, p1 * p2 + (1 - p1) * (1 - p2))


def fleiss_kappa(counts: Floats) -> Floats:
    """Fleiss' kappa of k judges on units that all of them judged, for any number of tables at once.

    The last axis counts the units by their number of yes, 0 to k. po is the mean over units of the share of pairs
    of judges that agree, (r(r-1) + (k-r)(k-r-1)) / k(k-1) for r yes; pe = p² + (1-p)² with p the share of yes.
    NaN if all verdicts are the same.
    """
    k = counts.shape[-1] - 1
    r = np.arange(k + 1)
    agreeing = (r * (r - 1) + (k - r) * (k - r - 1)) / (k * (k - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        total = counts.sum(axis=-1)
        p = counts @ r / (k * total)
        return _kappa(counts @ agreeing / total, p**2 + (1 - p) ** 2)


def _kappa(observed: Floats, expected: Floats) -> Floats:
    beyond = 1 - expected
    kappa: Floats = (observed - expected) / np.where(beyond < 1e-12, np.nan, beyond)
    return kappa


def kappa_estimate(rows: Sequence[Sequence[float]], cases: Sequence[str], seed: int = 0) -> Estimate:
    """Cohen's kappa with its interval; each row marks one of the four cells of `cohen_kappa`."""
    if not rows:
        return Estimate(value=None, note="no unit was judged by both")
    same = "both judges gave the same verdict throughout: chance agrees too"
    return _estimate(cohen_kappa, totals_by_case(rows, cases), np.full(4, 0.5), len(rows), same, seed)


def fleiss_estimate(yes: Sequence[int], k: int, cases: Sequence[str], seed: int = 0) -> Estimate:
    """Fleiss' kappa with its interval, from each unit's number of yes among k judges."""
    if not yes:
        return Estimate(value=None, note="no unit was judged by all")
    totals = totals_by_case(np.eye(k + 1)[list(yes)], cases)
    prior = np.full(k + 1, 2 / (k + 1))  # two units in all, as with two judges
    return _estimate(fleiss_kappa, totals, prior, len(yes), "all verdicts are the same: chance agrees too", seed)


def _estimate(
    statistic: Callable[[Floats], Floats], totals: Floats, prior: Floats, n: int, undefined: str, seed: int
) -> Estimate:
    value = float(statistic(totals.sum(axis=0)))
    if math.isnan(value):
        return Estimate(value=None, n=n, note=undefined)
    if len(totals) < MIN_CASES:
        return Estimate(value=value, n=n, note=f"no interval: fewer than {MIN_CASES} cases")
    draws = statistic(case_draws(totals, prior, np.random.default_rng(seed)))
    low, high = interval_around(value, draws)
    return Estimate(value=value, low=low, high=high, n=n)


def interval_around(value: float, draws: Floats) -> tuple[float, float]:
    """The 95% percentile interval, widened to hold the estimate (the prior can pull it away from an edge)."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return min(float(low), value), max(float(high), value)
