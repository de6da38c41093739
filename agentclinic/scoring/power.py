"""How likely a paired comparison is to find a true difference clear, and how many cases it takes.

Nothing here is estimated from a run. The caller states the true difference, the discordance (the share of cases that
come out differently with the other doctor, in either direction) and, for repeats, the flip rate (the chance that two
plays of a case by the same doctor differ). The test is McNemar's without correction, which is that of Tango's score
interval (1998) at a difference of 0: with b cases gained and c lost, clear if (b - c)² > z²(b + c), z = 1.96. With
repeats, b and c are divided by their design effect.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache
from statistics import NormalDist

import numpy as np

from agentclinic.errors import InputError
from agentclinic.scoring.format import percent
from agentclinic.scoring.stats import Z95, Floats

MOST_CASES = 100_000
MOST_REPEATS = 100
"""Of a plan: beyond that, the noise of repeats is a hundredth of what it was."""
_DRAWS = 40_000
"""The standard error of a power of 80% is then 0.2 points."""


def power(cases: int, difference: float, discordance: float, *, repeats: int = 1, flip_rate: float = 0.0) -> float:
    """The chance that this true difference is found clear: exact for one play of each case, else simulated (seed 0)."""
    difference = abs(difference)
    check(difference, discordance, flip_rate)
    if repeats == 1 or not flip_rate:
        low, chances = _binomial(cases, discordance)
        up = (1 + difference / discordance) / 2
        return float(chances @ [_clear_of(low + i, up) for i in range(len(chances))])
    values = np.arange(-repeats, repeats + 1) / repeats
    chances = _mean_differences(difference, discordance, repeats, flip_rate)
    counts = np.random.default_rng(0).multinomial(cases, chances, _DRAWS)
    # As in `stats.paired_difference`, but with the discordance that is assumed instead of the one that is seen.
    gap, changed = counts @ values, cases * repeats * discordance
    observed = repeats**2 * (counts @ values**2 - gap**2 / cases) * cases / max(1, cases - 1)
    single = np.maximum(0.0, changed - repeats * gap**2 / cases)
    effect = np.minimum(repeats, (observed + repeats**2 / 2) / (single + repeats / 2))
    return float(np.mean((repeats * gap) ** 2 > Z95**2 * changed * effect))


def needed(
    difference: float, discordance: float, *, repeats: int = 1, flip_rate: float = 0.0, level: float = 0.8
) -> int | None:
    """The fewest cases from which on the power stays at `level` or above; None if that takes over 100,000.

    The exact power is a saw: one more case can lower it. So the search goes down from a number that is surely enough.
    """
    difference = abs(difference)
    check(difference, discordance, flip_rate)
    single = discordance - difference**2
    root = Z95 * math.sqrt(discordance) + NormalDist().inv_cdf(level) * math.sqrt(single)
    about = (root / difference) ** 2  # Connor (1987)
    if repeats > 1 and flip_rate:
        about *= 1 - flip_rate * (1 - 1 / repeats) / single
    # The teeth are as high as the chance of one outcome, about 1 in √(discordant cases).
    enough = min(MOST_CASES, math.ceil(about * (1 + 2 / math.sqrt(about * discordance))) + 20)

    def reached(cases: int) -> bool:
        return power(cases, difference, discordance, repeats=repeats, flip_rate=flip_rate) >= level

    while not reached(enough):
        if enough == MOST_CASES:
            return None
        enough = min(MOST_CASES, 2 * enough)
    if repeats > 1 and flip_rate:
        return bisect_left(range(enough), True, lo=1, key=reached)
    return next((cases + 1 for cases in range(enough, 0, -1) if not reached(cases)), 1)


def needed_repeats(
    cases: int, difference: float, discordance: float, flip_rate: float, level: float = 0.8
) -> int | None:
    """The fewest repeats of these cases that reach this power; None if 100 do not."""

    def reached(repeats: int) -> bool:
        return power(cases, difference, discordance, repeats=repeats, flip_rate=flip_rate) >= level

    return bisect_left(range(MOST_REPEATS), True, lo=1, key=reached) if reached(MOST_REPEATS) else None


def most_flips(difference: float, discordance: float) -> float:
    """The highest flip rate that goes with them.

    A case whose chance of being right is p with one doctor and q with the other has the discordance p + q - 2pq and the
    flip rate p(1 - p) + q(1 - q). So discordance - flip rate is the mean of (p - q)², and their sum is at most 1.
    """
    return min(discordance - difference**2, 1 - discordance)


def check(difference: float, discordance: float, flip_rate: float) -> None:
    """Refuse what no cases can show."""
    if not 0 < difference <= 1:
        raise InputError("difference: must be more than 0 points and at most 100")
    if not difference <= discordance <= 1:
        raise InputError(f"discordance: must be at least the difference, {percent(difference)}, and at most 100%")
    most = most_flips(difference, discordance)
    if not 0 <= flip_rate <= most + 1e-12:
        with_these = f"a difference of {percent(difference)} and a discordance of {percent(discordance)}"
        raise InputError(f"flip_rate: must be from 0 to {percent(most)} with {with_these}; change one of the three")


@cache
def _log_factorials() -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, MOST_CASES + 1)))])


def _binomial(n: int, p: float) -> tuple[int, Floats]:
    """The chances of the counts that are within 8 standard deviations, and the first of these counts."""
    if p in (0, 1):
        return int(n * p), np.ones(1)
    reach = 8 * math.sqrt(n * p * (1 - p)) + 8
    low = max(0, math.floor(n * p - reach))
    counts = np.arange(low, min(n, math.ceil(n * p + reach)) + 1)
    logs = _log_factorials()
    ways = logs[n] - logs[counts] - logs[n - counts]
    return low, np.exp(ways + counts * math.log(p) + (n - counts) * math.log1p(-p))


@cache
def _clear_of(changed: int, up: float) -> float:
    """The chance of a clear difference if so many cases change, each with this chance of a gain."""
    low, chances = _binomial(changed, up)
    gained = low + np.arange(len(chances))
    return float(chances[(2 * gained - changed) ** 2 > Z95**2 * changed].sum())


def _mean_differences(difference: float, discordance: float, repeats: int, flip_rate: float) -> Floats:
    """The chances that a case's mean difference over R repeats is -1, ..., -1/R, 0, 1/R, ..., 1.

    Cases of many kinds have the three given numbers. Here a case's chance of being right changes by -h, 0 or h, with h
    as large as can be, and a share of all cases is as uncertain as can be (chances around ½), the rest as certain.
    """
    square = discordance - flip_rate  # of the change in the chance of being right, on average
    h = min(1.0, square / difference)
    change = square / h**2
    least = change * h * (1 - h)
    uncertain = (flip_rate - least) / ((1 - square) / 2 - least) if flip_rate > least else 0.0

    def right(p: float) -> Floats:
        low, chances = _binomial(repeats, p)
        return np.pad(chances, (low, repeats + 1 - low - len(chances)))

    def one_kind(h: float) -> Floats:
        certain = np.concatenate([np.zeros(repeats), right(h)])
        return (1 - uncertain) * certain + uncertain * np.convolve(right((1 + h) / 2), right((1 - h) / 2)[::-1])

    gain, lost = one_kind(h), (change - difference / h) / 2
    chances = (change - lost) * gain + lost * gain[::-1] + (1 - change) * one_kind(0.0)
    made: Floats = np.maximum(chances, 0) / np.maximum(chances, 0).sum()
    return made
