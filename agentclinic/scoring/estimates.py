"""Numbers with their intervals: what every metric returns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
from pydantic import BaseModel

from agentclinic.scoring.stats import Z95, Clusters, Interval, bootstrap_interval

RESAMPLES = 2_000
"""Scoring makes dozens of intervals; with 2,000 draws a limit moves by about 3% of the half width between seeds."""
_MOST_DISTINCT = 500
"""With more distinct cases the bootstrap takes 0.1 s or more, and its limits match the normal interval's."""
_FEWEST_CASES = 3
_GRID = 2.0**32
"""Values are rounded to multiples of 2⁻³², so that sums are exact and the order of records changes nothing."""


class Estimate(BaseModel):
    """A number with its 95% interval and the number of units behind it; null if it is not known."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str | None = None


class Proportion(BaseModel):
    """A share with its 95% Wilson interval; `value` is null if there is nothing to count."""

    count: int
    of: int
    value: float | None
    low: float | None
    high: float | None


def proportion(count: int, of: int) -> Proportion:
    """The Wilson score interval: (p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), z = 1.96."""
    if of == 0:
        return Proportion(count=count, of=of, value=None, low=None, high=None)
    p = count / of
    center = p + Z95**2 / (2 * of)
    margin = Z95 * math.sqrt(p * (1 - p) / of + Z95**2 / (4 * of * of))
    scale = 1 + Z95**2 / of
    low = 0.0 if count == 0 else (center - margin) / scale
    high = 1.0 if count == of else (center + margin) / scale
    return Proportion(count=count, of=of, value=p, low=low, high=high)


def mean(
    values: Iterable[tuple[Hashable, float]], seed: int = 0, *, low: float = -math.inf, high: float = math.inf
) -> Estimate:
    """The mean of (case, value) pairs, with an interval as in `ratio`."""
    return ratio(((case, value, 1.0) for case, value in values), seed, low=low, high=high)


def ratio(
    rows: Iterable[tuple[Hashable, float, float]], seed: int = 0, *, low: float = -math.inf, high: float = math.inf
) -> Estimate:
    """Σ value ÷ Σ weight of (case, value, weight) rows, with a 95% interval by bootstrap over cases.

    All repeats of a case are drawn together. Rows with weight 0 do not count. `low` and `high` are the bounds of what
    is measured; null if there are no rows.
    """
    totals: dict[Hashable, tuple[float, float]] = {}
    n = 0
    for case, value, weight in rows:
        if weight > 0:
            total, size = totals.get(case, (0.0, 0.0))
            totals[case] = total + round(value * _GRID) / _GRID, size + round(weight * _GRID) / _GRID
            n += 1
    if not n:
        return Estimate(value=None)
    if len(totals) < _FEWEST_CASES:
        value = sum(total for total, _ in totals.values()) / sum(size for _, size in totals.values())
        return Estimate(value=value, n=n, note=f"no interval: fewer than {_FEWEST_CASES} cases")
    distinct, counts = np.unique(np.array(list(totals.values())), axis=0, return_counts=True)
    clusters = Clusters(distinct[:, 0], distinct[:, 1], counts.astype(np.int64))
    error = clusters.standard_error
    if len(counts) > _MOST_DISTINCT:
        interval = Interval(clusters.mean, clusters.mean - Z95 * error, clusters.mean + Z95 * error)
    else:
        interval = bootstrap_interval(clusters, np.random.default_rng(seed), RESAMPLES)
    note = "the same in every case: the interval cannot show how uncertain this is" if error == 0 else None
    return Estimate(value=interval.value, low=max(low, interval.low), high=min(high, interval.high), n=n, note=note)
