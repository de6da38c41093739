"""A mean or ratio of sums whose interval takes all repeats of a case as one: what the other metrics are built on."""

from __future__ import annotations

import math
from array import array

import numpy as np
from numpy.typing import NDArray

from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.stats import Z95, Clusters, Floats, Interval, bootstrap_interval
from agentclinic.scoring.verdicts import case_key

RESAMPLES = 2_000
"""Scoring makes dozens of intervals; with 2,000 draws an end moves by about 3 % of the half width between seeds."""
_MOST_DISTINCT = 500
"""With more distinct cases the bootstrap costs 0.1 s and more, and its ends are those of the normal interval."""
_FEWEST_CASES = 3
_GRID = 2.0**32
"""Values are rounded to multiples of 2⁻³²: such sums are exact, so the order of records changes nothing."""


class Cases:
    """Numbers for cases, so that many samples share one table of names."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, record: Record) -> int:
        """The number of the record's case."""
        return self._numbers.setdefault(case_key(record), len(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)


class Sample:
    """Σ value ÷ Σ weight with an interval by bootstrap over cases; with weights of 1, a mean.

    Sixteen bytes a case are kept, however many records there are.
    """

    def __init__(self, low: float = -math.inf, high: float = math.inf) -> None:
        self._bounds = low, high
        self._sums = array("d")
        self._sizes = array("d")
        self.n = 0

    def add(self, case: int, value: float, weight: float = 1.0) -> None:
        """Add a record's value; a weight of 0 says that the record has nothing to say."""
        if weight <= 0:
            return
        missing = case + 1 - len(self._sums)
        if missing > 0:
            self._sums.extend([0.0] * missing)
            self._sizes.extend([0.0] * missing)
        self._sums[case] += round(value * _GRID) / _GRID
        self._sizes[case] += round(weight * _GRID) / _GRID
        self.n += 1

    def add_all(self, cases: NDArray[np.int64], values: Floats) -> None:
        """Add many records' values at once, each with a weight of 1."""
        if not len(cases):
            return
        size = max(len(self._sums), int(cases.max()) + 1)
        for kept, more in (
            (self._sums, np.bincount(cases, np.round(values * _GRID) / _GRID, size)),
            (self._sizes, np.bincount(cases, minlength=size)),
        ):
            kept.extend([0.0] * (size - len(kept)))
            kept[:] = array("d", (np.array(kept) + more).tobytes())
        self.n += len(cases)

    @property
    def total(self) -> float:
        """Sum of the values."""
        return math.fsum(self._sums)

    def estimate(self, seed: int = 0) -> Estimate:
        """The mean with its 95 % interval; null when nothing was added."""
        if not self.n:
            return Estimate(value=None)
        clusters = self._clusters()
        if clusters.number < _FEWEST_CASES:
            return Estimate(value=clusters.mean, n=self.n, note=f"fewer than {_FEWEST_CASES} cases: no interval")
        error = clusters.standard_error
        if len(clusters.counts) > _MOST_DISTINCT:
            interval = Interval(clusters.mean, clusters.mean - Z95 * error, clusters.mean + Z95 * error)
        else:
            interval = bootstrap_interval(clusters, np.random.default_rng(seed), RESAMPLES)
        low, high = self._bounds
        note = "the same in every case: the interval cannot show how uncertain this is" if error == 0 else None
        return Estimate(
            value=interval.value, low=max(low, interval.low), high=min(high, interval.high), n=self.n, note=note
        )

    def _clusters(self) -> Clusters:
        pairs = np.column_stack([np.array(self._sums), np.array(self._sizes)])
        distinct, counts = np.unique(pairs[pairs[:, 1] > 0], axis=0, return_counts=True)
        return Clusters(distinct[:, 0], distinct[:, 1], counts.astype(np.int64))
