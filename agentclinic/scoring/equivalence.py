"""Whether two versions of the same cases differ, are equivalent within a margin, or neither can be said.

A difference is tested two-sided. Equivalence is tested by two one-sided tests at 5%, which is whether the 90% interval
lies within the margin (Schuirmann 1987). That a difference is not clear says nothing about equivalence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist, fmean, pstdev
from typing import NamedTuple, TypeVar

from agentclinic.scoring.stats import Estimate, paired_difference

T = TypeVar("T")
LEVEL = 0.05
_Z90 = NormalDist().inv_cdf(0.95)
_FEWEST = 3
"""Clusters without which there is no interval of a mean."""
_UNSEEN = 3


class Verdict(StrEnum):
    DIFFERENT = "different"
    SMALL = "different, within the margin"
    EQUIVALENT = "equivalent within the margin"
    OPEN = "not decided"


class PairedCase(NamedTuple):
    """One case: its value in the reference and in the other version, each a mean over repeats."""

    cluster: Hashable
    before: float
    after: float


class Tested(NamedTuple):
    """A paired difference with its 95% interval, its p-value and its 90% interval."""

    difference: Estimate
    p: float | None
    """None without an interval."""
    low: float
    high: float
    """The 90% interval; infinite if there is none."""

    def within(self, margin: float) -> bool:
        """Whether equivalence is shown."""
        return -margin < self.low and self.high < margin


def of_shares(cases: Sequence[PairedCase], plays: float = 1.0) -> Tested:
    """The difference of shares, by Tango's score interval with a design effect; `plays` is the number of repeats."""
    rows = [(case.cluster, case.after * (1 - case.before), case.before * (1 - case.after)) for case in cases]
    (difference, p), inner = paired_difference(rows, plays), paired_difference(rows, plays, z=_Z90).estimate
    assert inner.low is not None
    assert inner.high is not None
    return Tested(difference, p, inner.low, inner.high)


def of_means(cases: Sequence[PairedCase]) -> Tested:
    """The difference of means over cases, by a t interval over clusters.

    If few cases differ, none of them may be among those played, and cases that agree entirely would show equivalence.
    So the variance counts three clusters more than there are (the rule of three: in k draws without an event, its rate
    may be 3 ÷ k). They are off the mean difference by as much as any cluster is, or as cases differ from one another in
    the reference if that is more. If neither says anything, they are off by the difference, or by the mean if there is
    none. Errors by simulation: benchmarks/swap_power.py.
    """
    sums: defaultdict[Hashable, float] = defaultdict(float)
    sizes: defaultdict[Hashable, int] = defaultdict(int)
    for case in cases:
        sums[case.cluster] += case.after - case.before
        sizes[case.cluster] += 1
    k, n = len(sums), len(cases)
    value = math.fsum(sums.values()) / n
    if k < _FEWEST:
        note = f"no interval: fewer than {_FEWEST} cases that do not belong together"
        return Tested(Estimate(value=value, n=k, note=note), None, -math.inf, math.inf)
    before, residuals = [case.before for case in cases], {one: sums[one] - value * sizes[one] for one in sums}
    off = max(*(abs(residuals[one]) / sizes[one] for one in sums), pstdev(before)) or abs(value) or abs(fmean(before))
    squares = math.fsum(residual**2 for residual in residuals.values()) + _UNSEEN * off**2
    error = math.sqrt(k / (k - 1) * squares) / n
    if error == 0:
        note = "0 in every case: the interval cannot show how uncertain this is"
        return Tested(Estimate(value=value, low=value, high=value, n=k, note=note), 1.0, -math.inf, math.inf)
    outer, inner = (t_quantile(level, k - 1) * error for level in (0.975, 0.95))
    difference = Estimate(value=value, low=value - outer, high=value + outer, n=k)
    return Tested(difference, 1 - t_inside(abs(value) / error, k - 1), value - inner, value + inner)


def t_inside(t: float, df: int) -> float:
    """P(|T| < t) for Student's t with a whole number of degrees of freedom, by its finite series."""
    angle = math.atan2(t, math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term, total = cosine if odd else 1.0, 0.0
    for step in range(1 + odd, df, 2):
        total += term
        term *= cosine**2 * step / (step + 1)
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: int) -> float:
    """The quantile of Student's t at `p` of at least ½, by bisection."""
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + t_inside(middle, df)) / 2 < p else (low, middle)
    return high


# --- the noise of repeats --------------------------------------------------------------------------------------------


def apart(one: Sequence[T], other: Sequence[T], far: Callable[[T, T], float | None]) -> float | None:
    """How far two versions are apart on average, over pairs of different repeats; None if no pair is known.

    `far` says how far two plays are apart, or None.
    Plays of the same repeat share a seed, which plays of one version never do, so they are no measure of noise. With a
    single repeat of each they are all there is.
    """
    single = len(one) == len(other) == 1
    found = [
        far(a, b)
        for place, a in enumerate(one)
        for other_place, b in enumerate(other)
        if single or place != other_place
    ]
    known = [distance for distance in found if distance is not None]
    return fmean(known) if known else None


def spread(plays: Sequence[T], far: Callable[[T, T], float | None]) -> float | None:
    """How far two repeats of one version are apart on average; None with a single repeat."""
    return apart(plays, plays, far) if len(plays) > 1 else None
