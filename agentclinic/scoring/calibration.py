"""How sure the doctor was and whether it should have been: calibration by source of the differential.

What is forecast: that a judged diagnosis is right by the strict rule. The forecast is the number that the final
differential gives to that diagnosis (`differentials.committed`). A diagnosis that is not in the differential has none,
since neither the leader's number nor the "other" mass is about it; it is counted separately, as is a hypothesis without
a number. An answer that the judge could not read has no outcome to compare with: it is left out and counted. Sources
are never pooled, and neither are probabilities and scores, which are judged only by their order.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from agentclinic.results.turn import Source
from agentclinic.scoring.differentials import Scale
from agentclinic.scoring.format import plural
from agentclinic.scoring.rows import Row
from agentclinic.scoring.stats import Estimate, Floats, Proportion, share, stretch_for

Ints = NDArray[np.int64]
FEWEST_PER_CLASS = 10
"""Right and wrong forecasts below which calibration is no more than a hint."""
COVERAGES = tuple(round(0.05 * step, 2) for step in range(1, 21))


# --- results --------------------------------------------------------------------------------------------------------


class BrierDecomposition(BaseModel):
    """brier = reliability - resolution + uncertainty + within, over ten bins of equal width."""

    reliability: Estimate
    """Squared gap between forecast and share right; 0 is best."""
    resolution: Estimate
    """How much the share right varies between bins; more is better."""
    uncertainty: Estimate
    """What follows from the share right alone: accuracy · (1 - accuracy)."""
    within: Estimate
    """What the binning hides."""


class CalibrationError(BaseModel):
    """The expected calibration error, next to what perfect forecasts would show by chance."""

    value: float
    expected: float
    """Its mean if every forecast were true, at this n and these forecasts."""
    low: float
    high: float
    """The band that holds 95% of such values; a value inside it is no evidence against the forecasts."""
    n: int
    bins: Literal["equal_width", "equal_mass"]
    note: str | None = None


class Bin(BaseModel):
    """One tenth of the probability scale, for a reliability diagram."""

    low: float
    high: float
    n: int
    mean_forecast: float
    right: Proportion


class CoveragePoint(BaseModel):
    """How often the doctor is wrong when only its surest diagnoses are kept."""

    coverage: float
    risk: float
    threshold: float
    """The lowest forecast kept."""


class SourceCalibration(BaseModel):
    """Forecasts of one source on one scale."""

    source: Source
    scale: Scale
    n: int
    """Diagnoses with a forecast."""
    clusters: int
    """Groups of forecasts that belong together: repeats of a case, twins, near copies."""
    right: int
    unmatched: int
    """Judged diagnoses that are not in the final differential; left out of everything here."""
    unmatched_right: int
    unnumbered: int
    """Judged diagnoses in the differential without a number; also left out."""
    accuracy: Estimate
    auroc: Estimate
    aurc: Estimate
    """Area under the risk-coverage curve; ranking at random gives 1 - accuracy."""
    aurc_best: float | None
    """What a perfect ranking would give at this accuracy."""
    risk_coverage: list[CoveragePoint]
    mean_forecast: Estimate | None = None
    brier: Estimate | None = None
    brier_parts: BrierDecomposition | None = None
    log_score: Estimate | None = None
    clipped: int | None = None
    """Forecasts closer than 10⁻⁶ to 0 or 1, moved to that distance for the log score."""
    ece: CalibrationError | None = None
    ece_equal_mass: CalibrationError | None = None
    bins: list[Bin] | None = None
    notes: list[str]


class Calibration(BaseModel):
    """Calibration of a run, by source."""

    records: int
    left_out: dict[str, int]
    """Records without a forecast: `no_diagnosis`, `not_judged`, `not_readable`, `no_differential`."""
    sources: list[SourceCalibration]


def calibration(rows: Sequence[Row], seed: int = 0) -> Calibration:
    """The calibration of a run; equal seeds and records give equal results in any order."""
    sources = {(given.source, given.scale) for row in rows for given in row.forecasts}
    return Calibration(
        records=len(rows),
        left_out=dict(sorted(Counter(row.no_forecast for row in rows if row.no_forecast).items())),
        sources=[_source(rows, source, scale, seed) for source, scale in sorted(sources)],
    )


def _source(rows: Sequence[Row], source: Source, scale: Scale, seed: int) -> SourceCalibration:
    rng = np.random.default_rng([seed, zlib.crc32(f"{source}/{scale}".encode())])
    finals = [
        (given, bool(row.right), row.cluster)
        for row in rows
        for given in row.forecasts
        if (given.source, given.scale) == (source, scale)
    ]
    numbered = [(given.value, right, case) for given, right, case in finals if given.value is not None]
    data = Forecasts.of([p for p, _, _ in numbered], [y for _, y, _ in numbered], [case for _, _, case in numbered])
    probabilities, unread = scale == "probability", sum(row.unread for row in rows)
    values = estimates(data, _probability_measure if probabilities else _ranking_measure, rng)
    return SourceCalibration(
        source=source,
        scale=scale,
        n=data.n,
        clusters=len(data.keys),
        right=int(data.y.sum()),
        unmatched=sum(not final.listed for final, _, _ in finals),
        unmatched_right=sum(right and not final.listed for final, right, _ in finals),
        unnumbered=sum(final.listed and final.value is None for final, _, _ in finals),
        accuracy=values["accuracy"],
        auroc=values["auroc"],
        aurc=values["aurc"],
        aurc_best=float(aurc(data.y, data.y, np.ones(data.n))) if data.n else None,
        risk_coverage=coverage_curve(data),
        **(_probability_fields(data, values, rng) if probabilities else {}),
        notes=[
            *([f"{plural(unread, 'answer')} not readable, left out here"] if unread else []),
        ],
    )


def _ranking_measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {"accuracy": mean(y, w), "auroc": auroc(p, y, w), "aurc": aurc(p, y, w)}


def _probability_measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {
        **_ranking_measure(p, y, w),
        **brier_parts(p, y, w),
        "mean_forecast": mean(p, w),
        "brier": brier(p, y, w),
        "log_score": log_score(p, y, w),
    }


def _probability_fields(data: Forecasts, values: dict[str, Estimate], rng: np.random.Generator) -> dict[str, Any]:
    """What is reported about probabilities beyond their ranking."""
    parts = BrierDecomposition(**{name: values[name] for name in BrierDecomposition.model_fields})
    return {
        **{name: values[name] for name in ("mean_forecast", "brier", "log_score")},
        "brier_parts": parts,
        "clipped": count_clipped(data.p),
        "ece": calibration_error(data, "equal_width", rng),
        "ece_equal_mass": calibration_error(data, "equal_mass", rng),
        "bins": reliability_bins(data),
    }


def calibration_error(
    data: Forecasts, binning: Literal["equal_width", "equal_mass"], rng: np.random.Generator
) -> CalibrationError | None:
    """The ECE in ten bins with its mean and 95% band under perfect calibration; None without forecasts."""
    if data.n == 0:
        return None
    bins = equal_width(data.p) if binning == "equal_width" else equal_mass(data.p)
    chance = ece_expected(data.p, bins, rng, resamples(data.n))
    low, high = np.quantile(chance, [0.025, 0.975])
    return CalibrationError(
        value=float(ece(data.p, data.y, np.ones(data.n), bins)),
        expected=float(chance.mean()),
        low=float(low),
        high=float(high),
        n=data.n,
        bins=binning,
        note="repeats of a case are treated as independent" if len(data.keys) < data.n else None,
    )


def coverage_curve(data: Forecasts) -> list[CoveragePoint]:
    """The risk-coverage curve in steps of 5%."""
    if data.n == 0:
        return []
    risks, thresholds = risk_coverage(data.p, data.y, np.ones(data.n), np.array(COVERAGES))
    points = zip(COVERAGES, risks, thresholds, strict=True)
    return [CoveragePoint(coverage=c, risk=r, threshold=t) for c, r, t in points]


def reliability_bins(data: Forecasts) -> list[Bin]:
    """Forecast and share right in each non-empty tenth of the scale."""
    bins = equal_width(data.p)
    return [
        Bin(
            low=b / BINS,
            high=(b + 1) / BINS,
            n=int(here.sum()),
            mean_forecast=float(data.p[here].mean()),
            right=share(zip(data.case[here].tolist(), data.y[here].tolist(), repeat(1), strict=False)),
        )
        for b in range(BINS)
        if (here := bins == b).any()
    ]


# --- how good forecasts are -----------------------------------------------------------------------------------------
#
# Small functions of forecasts `p`, outcomes `y` (1 right, 0 wrong) and weights `w`. A weight is how often a forecast
# counts: 1 for the data themselves, the number of times drawn for a bootstrap resample. `w` may hold many resamples at
# once, one per row; the result then has one entry per row. NaN means that a quantity is undefined for these data.

EPSILON = 1e-6
"""Forecasts closer to 0 or 1 than this are moved to this distance before taking a logarithm: small enough to affect
only claims of certainty, large enough that a single certain miss costs 13.8 nats rather than infinitely many."""
BINS = 10
"""The usual number; forecasts in multiples of 10% each have their own bin."""


def mean(values: Floats, w: Floats) -> Floats:
    """Σ w·v / Σ w."""
    return _ratio(w @ values, w.sum(axis=-1))


def brier(p: Floats, y: Floats, w: Floats) -> Floats:
    """Brier score: Σ w·(p - y)² / Σ w; 0 is best; p = ½ always gets 0.25."""
    return mean((p - y) ** 2, w)


def log_score(p: Floats, y: Floats, w: Floats) -> Floats:
    """Logarithmic score in nats: -Σ w·(y·ln p + (1 - y)·ln(1 - p)) / Σ w, p clipped to [ε, 1 - ε]; 0 is best."""
    q = clipped(p)
    return mean(-np.where(y == 1, np.log(q), np.log1p(-q)), w)


def clipped(p: Floats) -> Floats:
    """Forecasts moved into [ε, 1 - ε]."""
    return np.clip(p, EPSILON, 1 - EPSILON)


def count_clipped(p: Floats) -> int:
    return int(np.count_nonzero((p < EPSILON) | (p > 1 - EPSILON)))


def brier_parts(p: Floats, y: Floats, w: Floats, bins: int = BINS) -> dict[str, Floats]:
    """Murphy's decomposition over bins of equal width, made exact by the within-bin terms (Stephenson et al. 2008).

    brier = reliability - resolution + uncertainty + within.
    With n_b the weight, p̄_b the mean forecast and ȳ_b the share of right ones in bin b, N = Σ n_b:
    reliability = Σ n_b·(p̄_b - ȳ_b)² / N, resolution = Σ n_b·(ȳ_b - ȳ)² / N, uncertainty = ȳ·(1 - ȳ),
    within = Σ_b Σ_i [(p_i - p̄_b)² - 2·(p_i - p̄_b)·(y_i - ȳ_b)] / N.
    With one bin per distinct forecast `within` would be 0, but continuous forecasts would each be a bin.
    Reliability and resolution are both too large by about (bins in use) · ȳ(1 - ȳ) / N.
    """
    member = _membership(equal_width(p, bins), bins)
    n, sp, sy, spp, spy = (w @ (member * v[:, None]) for v in (np.ones_like(p), p, y, p * p, p * y))
    total = n.sum(axis=-1)
    base = _ratio(sy.sum(axis=-1), total)
    forecast, right = _ratio(sp, n, 0.0), _ratio(sy, n, 0.0)
    spread = (spp - sp * forecast) - 2 * (spy - sp * right)
    return {
        "reliability": _ratio((n * (forecast - right) ** 2).sum(axis=-1), total),
        "resolution": _ratio((n * (right - base[..., None]) ** 2).sum(axis=-1), total),
        "uncertainty": base * (1 - base),
        "within": _ratio(spread.sum(axis=-1), total),
    }


def auroc(p: Floats, y: Floats, w: Floats) -> Floats:
    """Chance that a right diagnosis has a higher forecast than a wrong one; ties count half.

    Σ_i Σ_j w_i·w_j·([p_i > p_j] + ½·[p_i = p_j]) / (Σ_i w_i · Σ_j w_j), i over right and j over wrong ones.
    Only the order of the forecasts matters, so scores work too.
    """
    _, right, wrong = _by_forecast(p, y, w)
    below = np.cumsum(wrong, axis=-1) - wrong / 2
    return _ratio((right * below).sum(axis=-1), right.sum(axis=-1) * wrong.sum(axis=-1))


def aurc(p: Floats, y: Floats, w: Floats) -> Floats:
    """Area under the risk-coverage curve: the mean over k = 1…N of the share wrong among the k surest.

    This is the expectation over random orders of ties: within a tied group of m with share r wrong, after n others of
    which E are wrong, the j-th contributes (E + j·r) / (n + j), in total m·r + (E - n·r)·(H(n+m) - H(n)) with H the
    harmonic numbers. Weights must be whole numbers. Ranking at random gives the share wrong.
    """
    _, right, wrong = _by_forecast(p, y, w)
    wrong = wrong[..., ::-1]
    size = right[..., ::-1] + wrong
    after = np.cumsum(size, axis=-1)
    total = size.sum(axis=-1)
    top = int(total.max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, top + 1))])
    reached = harmonic[after.astype(np.int64)]
    gained = np.diff(reached, axis=-1, prepend=0.0)
    rate = _ratio(wrong, size, 0.0)
    earlier = np.cumsum(wrong, axis=-1) - wrong
    return _ratio((wrong + (earlier - (after - size) * rate) * gained).sum(axis=-1), total)


def risk_coverage(p: Floats, y: Floats, w: Floats, coverage: Floats) -> tuple[Floats, Floats]:
    """Selective risk at coverage c, and the lowest forecast kept; for one row of w.

    The risk is the expected share wrong among the c·N surest, ties in random order.
    """
    forecast, right, wrong = _by_forecast(p, y, w)
    kept = np.cumsum((right + wrong)[::-1])
    if kept.size == 0 or kept[-1] == 0:
        return np.full_like(coverage, np.nan), np.full_like(coverage, np.nan)
    wanted = coverage * kept[-1]
    errors = np.interp(wanted, np.append(0.0, kept), np.append(0.0, np.cumsum(wrong[::-1])))
    # Slightly less: 0.3 · 10 must not reach beyond the third.
    place = np.minimum(np.searchsorted(kept, wanted * (1 - 1e-12)), kept.size - 1)
    return _ratio(errors, wanted), forecast[::-1][place]


def equal_width(p: Floats, bins: int = BINS) -> Ints:
    """The bin of each forecast among bins of equal width: [0, 0.1), …, [0.9, 1]."""
    return np.minimum((p * bins).astype(np.int64), bins - 1)


def equal_mass(p: Floats, bins: int = BINS) -> Ints:
    """The bin of each forecast among bins of about equal size, ties together: floor(bins · mid-rank / n)."""
    _, place, count = np.unique(p, return_inverse=True, return_counts=True)
    middle = (np.cumsum(count) - count / 2) / max(1, p.size)
    return np.minimum((middle * bins).astype(np.int64), bins - 1)[place]


def ece(p: Floats, y: Floats, w: Floats, bins: Ints) -> Floats:
    """Expected calibration error: Σ_b |Σ_i∈b w·(y - p)| / Σ w; above 0 even for perfect forecasts (`ece_expected`)."""
    gaps = w @ (_membership(bins, int(bins.max(initial=0)) + 1) * (y - p)[:, None])
    return _ratio(np.abs(gaps).sum(axis=-1), w.sum(axis=-1))


def ece_expected(p: Floats, bins: Ints, rng: np.random.Generator, draws: int) -> Floats:
    """Draws of the calibration error that perfect forecasts p would show: independent y ~ Bernoulli(p)."""
    member = _membership(bins, int(bins.max(initial=0)) + 1)
    due = p @ member
    rows = max(1, CHUNK // max(1, p.size))
    values = []
    for start in range(0, draws, rows):
        y = (rng.random((min(rows, draws - start), p.size)) < p).astype(np.float64)
        values.append(np.abs(y @ member - due).sum(axis=-1))
    return np.concatenate(values) / max(1, p.size)


CHUNK = 500_000
"""Numbers per block of resamples: 4 MB, so that memory stays small."""


def _by_forecast(p: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats, Floats]:
    """Distinct forecasts in ascending order, with the weight of right and of wrong ones at each."""
    if np.any(p[1:] < p[:-1]):
        order = np.argsort(p, kind="stable")
        p, y, w = p[order], y[order], w[..., order]
    if p.size == 0:
        return p, w, w
    last = np.flatnonzero(np.append(p[1:] != p[:-1], True))
    right, both = w * y, w
    if last.size < p.size:
        # Differences of running sums: exact for whole numbers, and faster than reduceat if few are tied.
        right, both = (np.diff(np.cumsum(v, axis=-1)[..., last], axis=-1, prepend=0.0) for v in (right, both))
    return p[last], right, both - right


def _membership(bins: Ints, number: int) -> Floats:
    """One row per forecast, 1 in the column of its bin."""
    member: Floats = (bins[:, None] == np.arange(number)).astype(np.float64)
    return member


def _ratio(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    """The quotient, or `otherwise` if the divisor is 0."""
    above, below = np.broadcast_arrays(above, below)
    quotient: Floats = np.divide(above, below, out=np.full(above.shape, otherwise), where=below != 0)
    return quotient


# --- intervals, by resampling whole cases with all their repeats ----------------------------------------------------

RANGES: Mapping[str, tuple[float, float]] = {
    "log_score": (0, math.inf),
    "within": (-1, 1),
    "resolution": (0, 0.25),
    "uncertainty": (0, 0.25),
}
"""The bounds of each statistic; 0 and 1 for all others."""
BIASED = frozenset({"reliability", "resolution", "within"})
"""Chance differences between bins bias these, and each resample adds the same bias again. Their interval is the pivotal
one (2·estimate - quantile), which removes the bias; it may not contain the estimate."""


@dataclass(frozen=True)
class Forecasts:
    """Forecasts in ascending order, with outcome and case."""

    p: Floats
    y: Floats
    case: Ints
    """Cases numbered from 0 in the order of their keys."""
    keys: tuple[str, ...]
    """The cases' keys."""

    @property
    def n(self) -> int:
        return int(self.p.size)

    @classmethod
    def of(cls, p: Sequence[float] | Floats, y: Sequence[float] | Floats, cases: Sequence[str]) -> Forecasts:
        """Sort the forecasts, so that sums and resamples do not depend on the order given."""
        keys = sorted(set(cases))
        number = {key: place for place, key in enumerate(keys)}
        case = np.fromiter((number[key] for key in cases), dtype=np.int64, count=len(cases))
        forecast, outcome = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
        order = np.lexsort((case, outcome, forecast))
        return cls(forecast[order], outcome[order], case[order], tuple(keys))


Measure = Callable[[Floats, Floats, Floats], Mapping[str, Floats]]


def resamples(n: int) -> int:
    """1,000 for up to 5,000 forecasts, then fewer so that they make 5,000,000 numbers, but at least 200.

    With 200 a limit is off by 0.2 standard errors, which are small for large n; time stays linear in n.
    """
    return max(200, min(1000, 5_000_000 // max(1, n)))


def bootstrap_weights(case: Ints, cases: int, rng: np.random.Generator, number: int) -> Iterator[Floats]:
    """Resamples of whole cases as blocks of weights: how often each forecast's case was drawn."""
    rows = max(1, CHUNK // max(1, case.size))
    for start in range(0, number, rows):
        drawn = [np.bincount(rng.integers(0, cases, cases), minlength=cases) for _ in range(min(rows, number - start))]
        yield np.stack(drawn).astype(np.float64)[:, case]


def estimates(data: Forecasts, measure: Measure, rng: np.random.Generator) -> dict[str, Estimate]:
    """Statistics with 95% intervals by resampling cases, widened for few cases as in `stats`."""
    values = measure(data.p, data.y, np.ones(data.n))
    if data.n == 0:
        return {name: Estimate(value=None, note="no forecasts") for name in values}
    drawn: dict[str, list[Floats]] = {name: [] for name in values}
    if len(data.keys) >= 3:
        for weights in bootstrap_weights(data.case, len(data.keys), rng, resamples(data.n)):
            for name, value in measure(data.p, data.y, weights).items():
                drawn[name].append(value)
    return {
        name: _estimate(name, float(value), np.concatenate(drawn[name]) if drawn[name] else None, data)
        for name, value in values.items()
    }


def _estimate(name: str, value: float, drawn: Floats | None, data: Forecasts) -> Estimate:
    if math.isnan(value):
        return Estimate(
            value=None,
            n=data.n,
            note="needs right and wrong diagnoses" if name == "auroc" else "undefined for these forecasts",
        )
    if drawn is None:
        return Estimate(value=value, n=data.n, note="no interval: fewer than three cases")
    defined = drawn[~np.isnan(drawn)]
    if defined.size < 0.99 * drawn.size:
        missing = drawn.size - defined.size
        return Estimate(value=value, n=data.n, note=f"no interval: undefined in {missing} of {drawn.size} resamples")
    low, high = (float(q) for q in np.quantile(defined, [0.025, 0.975]))
    if high - low < 1e-12:
        return Estimate(value=value, n=data.n, note="no interval: all cases agree, so resampling shows no spread")
    note = None
    if name in BIASED:
        low, high = 2 * value - high, 2 * value - low
        note = "the interval is corrected for bias, the value is not"
    stretch = stretch_for(len(data.keys))
    least, most = RANGES.get(name, (0, 1))
    low, high = (min(most, max(least, value + (limit - value) * stretch)) for limit in (low, high))
    return Estimate(value=value, low=low, high=high, n=data.n, note=note)
