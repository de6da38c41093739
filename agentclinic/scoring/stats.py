"""Numbers with their intervals, and the test of a paired difference.

Outcomes of one cluster (repeats of a case, twins, near copies) are not independent. Shares and paired differences use
the score intervals of Wilson and Tango, with all counts divided by the design effect (`design_effect`). Means are
resampled cluster by cluster. A cluster is represented by the sum of its values and its size, and only a few distinct
pairs of those occur. Drawing n clusters with replacement is the same as one multinomial draw over the distinct pairs,
so the cost of a bootstrap does not grow with the number of records.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

Floats = NDArray[np.float64]

RESAMPLES = 10_000
Z95 = 1.959963984540054
SCORE_RESAMPLES = 2_000
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
    clustered: bool = False
    """Whether the interval allows for outcomes that belong together; see `share`."""


def proportion(count: int, of: int) -> Proportion:
    """The share of independent outcomes."""
    return _proportion(count, of, 1.0)


def share(rows: Iterable[tuple[Hashable, float, float]]) -> Proportion:
    """Σ count ÷ Σ of, over (cluster, count, of) rows; the outcomes of a cluster need not be independent."""
    return _share(*_by_cluster(rows))


def shares(clusters: Sequence[Hashable], counted: NDArray[np.bool_]) -> list[Proportion]:
    """The share of outcomes that count, for each column of `counted`, which has a row for each outcome."""
    index: dict[Hashable, int] = {}
    codes = np.array([index.setdefault(cluster, len(index)) for cluster in clusters], dtype=np.int64)
    sizes = np.bincount(codes, minlength=len(index)).astype(np.float64)
    columns = counted.T.astype(np.float64)
    return [_share(np.bincount(codes, column, len(index)).astype(np.float64), sizes) for column in columns]


def _share(x: Floats, m: Floats) -> Proportion:
    """Σ x ÷ Σ m, over clusters."""
    x, m = x[m > 0], m[m > 0]
    n, total = float(m.sum()), float(x.sum())
    if not n or bool(np.all(m == 1)):
        return _proportion(round(total), round(n), 1.0)
    p = total / n
    found = _proportion(round(total), round(n), design_effect(x - p * m, m, n * p * (1 - p)))
    return found.model_copy(update={"clustered": True})


def _by_cluster(rows: Iterable[tuple[Hashable, float, float]]) -> tuple[Floats, Floats]:
    """Σ value and Σ weight of the (cluster, value, weight) rows of each cluster."""
    totals: defaultdict[Hashable, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for cluster, value, weight in rows:
        total = totals[cluster]
        total[0] += value
        total[1] += weight
    sums, sizes = np.array(list(totals.values()), dtype=np.float64).reshape(-1, 2).T
    return sums, sizes


def _proportion(count: int, of: int, effect: float) -> Proportion:
    """The Wilson interval: (p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), with n = of ÷ the design effect."""
    if of == 0:
        return Proportion(count=count, of=of, value=None, low=None, high=None)
    p, n = count / of, of / effect
    center = p + Z95**2 / (2 * n)
    margin = Z95 * math.sqrt(p * (1 - p) / n + Z95**2 / (4 * n * n))
    scale = 1 + Z95**2 / n
    low = 0.0 if count == 0 else (center - margin) / scale
    high = 1.0 if count == of else (center + margin) / scale
    return Proportion(count=count, of=of, value=p, low=low, high=high)


def design_effect(residuals: Floats, sizes: Floats, independent: float) -> float:
    """How many times larger the variance of a sum is than if its outcomes were `independent`.

    `residuals` are each cluster's sum less its expectation: Σ r² · k/(k-1) ÷ independent. Few outcomes that differ say
    little about how clusters hang together, so half a cluster whose members are all alike is added to both sides:
    w²/2 to the first, w/2 to the second, with w = Σ size² ÷ Σ size; chosen by coverage (benchmarks/intervals.py). Never
    more than w, its value if all members of every cluster were alike.
    """
    k, w = len(sizes), math.fsum(sizes**2) / math.fsum(sizes)
    if k == 1:
        return w
    observed = k / (k - 1) * math.fsum(residuals**2)
    return min(w, (observed + w * w / 2) / (independent + w / 2))


# --- paired differences of shares -------------------------------------------------------------------------------------


class Difference(NamedTuple):
    """A paired difference of shares, and the p-value of the test that its interval inverts."""

    estimate: Estimate
    p: float


def paired_difference(
    rows: Iterable[tuple[Hashable, float, float]], plays: float = 1.0, *, z: float = Z95
) -> Difference:
    """The mean of gained - lost over (cluster, gained, lost) rows, one per case, with Tango's score interval (1998).

    `gained` and `lost` are the chances that one play of each run gains or loses the case: 0 or 1 without repeats.
    `plays` is how often each case was played. With repeats or clusters the counts are divided by their design effect.
    The interval leaves out 0 if and only if p < 0.05; without clusters this is McNemar's test without a correction.
    `z` is the normal quantile of another interval: 1.645 for 90%.
    """
    cases = [(cluster, float(gained), float(lost)) for cluster, gained, lost in rows]
    n, gained, lost = (
        plays * math.fsum(column) for column in ([1.0] * len(cases), *zip(*(c[1:] for c in cases), strict=True))
    )
    mean = (gained - lost) / n
    sums, sizes = _by_cluster((cluster, plays * (more - less), plays) for cluster, more, less in cases)
    effect = 1.0
    if not np.all(sizes == 1):
        effect = design_effect(sums - mean * sizes, sizes, max(0.0, gained + lost - n * mean**2))
    b, c, n = gained / effect, lost / effect, n / effect
    low, high = (_tango_limit(b, c, n, end, z) for end in (-1.0, 1.0))
    score = abs(b - c) / math.sqrt(b + c) if b + c else 0.0
    return Difference(Estimate(value=mean, low=low, high=high, n=len(sizes)), math.erfc(score / math.sqrt(2)))


def _tango_limit(b: float, c: float, n: float, end: float, z: float) -> float:
    """The difference furthest towards `end` that the score test does not reject, by bisection."""
    inside, outside = (b - c) / n, end
    for _ in range(50):  # to 2⁻⁴⁹
        middle = (inside + outside) / 2
        if _tango_score(b, c, n, middle) <= z:
            inside = middle
        else:
            outside = middle
    return outside if abs(outside - end) < 1e-9 else inside


def _tango_score(b: float, c: float, n: float, difference: float) -> float:
    """|b - c - n·d| ÷ its standard error if the true difference is d; q is the likeliest share lost, given d."""
    linear = -b - c + (2 * n - b + c) * difference
    constant = -c * difference * (1 - difference)
    q = (math.sqrt(max(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * q + difference * (1 - difference))
    off = abs(b - c - n * difference)
    return off / math.sqrt(variance) if variance > 0 else math.inf * off if off else 0.0


# --- means, by resampling clusters ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clusters:
    """Clusters by their distinct (sum, size) pairs and how often each occurs."""

    sums: Floats
    sizes: Floats
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: Sequence[float] | Floats, groups: Sequence[object]) -> Clusters:
        """Group values; each value counts once within its cluster."""
        index: dict[object, int] = {}
        codes = np.array([index.setdefault(group, len(index)) for group in groups], dtype=np.int64)
        array = np.asarray(values, dtype=np.float64)
        sums = np.bincount(codes, weights=array, minlength=len(index))
        sizes = np.bincount(codes, minlength=len(index)).astype(np.float64)
        # Rounded: equal sums of equal values may differ in the last bit.
        pairs, counts = np.unique(np.column_stack([sums.round(12), sizes]), axis=0, return_counts=True)
        return cls(pairs[:, 0], pairs[:, 1], counts.astype(np.int64))

    @property
    def number(self) -> int:
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        return float((self.sums * self.counts).sum() / (self.sizes * self.counts).sum())

    @property
    def standard_error(self) -> float:
        """Linearized standard error of the mean: sqrt(k/(k-1) · Σ (sum - mean·size)²) / Σ size, over k clusters."""
        k = self.number
        if k < 2:
            return math.nan
        residuals = self.sums - self.mean * self.sizes
        total = float((self.sizes * self.counts).sum())
        return math.sqrt(k / (k - 1) * float((residuals**2 * self.counts).sum())) / total


def bootstrap_means(clusters: Clusters, rng: np.random.Generator, resamples: int = RESAMPLES) -> Floats:
    k = clusters.number
    draws = rng.multinomial(k, clusters.counts / k, size=resamples)
    means: Floats = (draws @ clusters.sums) / (draws @ clusters.sizes)
    return means


def bootstrap_interval(
    clusters: Clusters,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    *,
    low: float = -math.inf,
    high: float = math.inf,
) -> Estimate:
    """The mean of all clusters with its percentile interval, widened for few clusters; n is their number.

    The plain percentile interval is too narrow by a factor of about sqrt((k-1)/k), and because it uses the normal
    instead of the t quantile; stretching it around the estimate corrects both. `low` and `high` are the bounds of what
    is measured.
    """
    mean = clusters.mean
    limits = np.quantile(bootstrap_means(clusters, rng, resamples), [0.025, 0.975])
    least, most = (mean + (float(limit) - mean) * stretch_for(clusters.number) for limit in limits)
    return Estimate(value=mean, low=max(low, least), high=min(high, most), n=clusters.number)


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
        least, most = clusters.mean - Z95 * error, clusters.mean + Z95 * error
        found = Estimate(value=clusters.mean, low=max(low, least), high=min(high, most))
    else:
        found = bootstrap_interval(clusters, np.random.default_rng(seed), SCORE_RESAMPLES, low=low, high=high)
    note = "the same in every case: the interval cannot show how uncertain this is" if error == 0 else None
    return found.model_copy(update={"n": n, "note": note})


def mean_against_zero(values: Iterable[tuple[Hashable, float]], seed: int = 0) -> Difference:
    """The mean of (cluster, value) pairs, and the p-value of its being 0: below 0.05 if the interval leaves out 0.

    p is twice the smaller share of resampled means, stretched like the interval, that lie on one side of 0. Where every
    value is the same and not 0, nothing can be resampled, and p is the sign test's: 2 ÷ 2ᵏ for k clusters.
    """
    groups, given = zip(*values, strict=True)
    clusters = Clusters.of([round(value * _GRID) / _GRID for value in given], groups)
    k, average, error = clusters.number, clusters.mean, clusters.standard_error
    if k < _FEWEST_CASES:
        note = f"no interval: fewer than {_FEWEST_CASES} clusters of cases"
        return Difference(Estimate(value=average, n=len(given), note=note), 1.0)
    if error == 0:
        note = "the same in every case: the interval cannot show how uncertain this is"
        found = Estimate(value=average, low=average, high=average, n=len(given), note=note)
        return Difference(found, 2.0 ** (1 - k) if average else 1.0)
    if len(clusters.counts) > _MOST_DISTINCT:
        low, high = average - Z95 * error, average + Z95 * error
        p = math.erfc(abs(average) / error / math.sqrt(2))
    else:
        draws = bootstrap_means(clusters, np.random.default_rng(seed))
        stretched = average + (draws - average) * stretch_for(k)
        low, high = map(float, np.quantile(stretched, [0.025, 0.975]))
        beyond = min(int(np.count_nonzero(side)) for side in (stretched <= 0, stretched >= 0))
        p = 2 * max(1, beyond) / RESAMPLES
    return Difference(Estimate(value=average, low=low, high=high, n=len(given)), min(1.0, p))


def stretch_for(k: int) -> float:
    """How much wider than its percentiles an interval from k clusters must be: t(k-1) / z · sqrt(k/(k-1))."""
    if k < 3:
        return math.inf
    # Cornish-Fisher expansion of the t quantile; exact to three digits for k > 5.
    df = k - 1
    t = Z95 + (Z95**3 + Z95) / (4 * df) + (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / (96 * df**2)
    return t / Z95 * math.sqrt(k / (k - 1))


def mcnemar_p(gained: int, lost: int) -> float:
    """Exact McNemar: two-sided binomial test of the discordant pairs at ½, doubled smaller tail, at most 1."""
    n = gained + lost
    if n == 0:
        return 1.0
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(min(gained, lost) + 1)]
    tail = math.fsum(math.exp(value - n * math.log(2)) for value in logs)
    return min(1.0, 2 * tail)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment: the i-th smallest of m is multiplied by m - i + 1, kept monotone, at most 1."""
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    adjusted: dict[str, float] = {}
    running = 0.0
    for rank, (name, p) in enumerate(ordered):
        running = max(running, min(1.0, (len(ordered) - rank) * p))
        adjusted[name] = running
    return {name: adjusted[name] for name in p_values}


def binomial_band(n: int, p: float, level: float = 0.95) -> tuple[float, float]:
    """The central band of k ÷ n for k ~ Binomial(n, p): from the quantile at (1 - level)/2 to that at (1 + level)/2.

    For a bin of a reliability diagram p is the mean forecast: if every forecast were true, the share right would lie
    within the band. Forecasts that differ within the bin make it a little too wide, never too narrow.
    """
    if n <= 0 or not 0 < p < 1:
        return (p, p)
    k = np.arange(n + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    log_pmf = log_factorial[n] - log_factorial[k] - log_factorial[n - k] + k * np.log(p) + (n - k) * np.log1p(-p)
    below = np.cumsum(np.exp(log_pmf))
    low, high = np.searchsorted(below, [(1 - level) / 2, (1 + level) / 2])
    return float(low) / n, float(min(high, n)) / n


BAYES_RESAMPLES = 4_000
"""The limits of a 95% interval then have a Monte Carlo error of about 4% of its width."""
_CHUNK = 2_000_000  # weights drawn at a time: 16 MB


def case_draws(totals: Floats, prior: Floats, rng: np.random.Generator, resamples: int = BAYES_RESAMPLES) -> Floats:
    """Bayesian bootstrap over cases (Rubin 1981): weighted column sums of `totals`, one row per resample.

    `totals` has one row per case, whose units share a random weight from Exp(1) instead of the number of times the
    case is drawn. c equal cases together weigh Gamma(c), so the cost grows only with the distinct rows. `prior` random
    units are added to each column: with ½ each (Jeffreys' prior) 20 of 20 does not come out as "certainly all".
    """
    distinct, counts = np.unique(totals, axis=0, return_counts=True)
    step = max(1, _CHUNK // max(1, len(distinct)))
    draws = [
        rng.standard_gamma(counts, size=(min(step, resamples - start), len(counts))) @ distinct
        for start in range(0, resamples, step)
    ]
    return np.concatenate(draws) + rng.standard_gamma(prior, size=(resamples, len(prior)))


def totals_by_case(rows: Sequence[Sequence[float]] | Floats, cases: Sequence[str]) -> Floats:
    index: dict[str, int] = {}
    codes = [index.setdefault(case, len(index)) for case in cases]
    array = np.asarray(rows, dtype=np.float64)
    totals = np.zeros((len(index), array.shape[1]))
    np.add.at(totals, codes, array)
    return totals
