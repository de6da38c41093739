"""How sure the doctor was and whether it should have been: calibration by source of the differential.

What is forecast: that a judged diagnosis is right by the strict rule. The forecast is the number that the final
differential gives to the hypothesis of that name or, failing that, to the first one that is the same disease by
`vocabulary.compare`. A diagnosis that is not in the differential has no forecast, since neither the leader's number
nor the "other" mass is about it; it is counted separately (`unmatched`), as is a hypothesis without a number.
Encounters without a diagnosis and missing data have nothing to forecast.

Sources are never pooled, and neither are probabilities and scores. A planner's confidence is a score even if it is
in the probability field. Scores are judged only by their order (AUROC, risk and coverage).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from agentclinic.results.turn import Source
from agentclinic.scoring import calibration_metrics as metrics
from agentclinic.scoring.calibration_metrics import Floats, Forecasts, estimates
from agentclinic.scoring.differentials import Scale
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.rows import Forecast, Row

FEWEST_PER_CLASS = 10
"""Right and wrong forecasts below which calibration is no more than a hint."""
COVERAGES = tuple(round(0.05 * step, 2) for step in range(1, 21))


# Results


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
    right: int


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
    cases: int
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
    """Records without a forecast: `no_diagnosis`, `not_judged`, `no_differential`."""
    sources: list[SourceCalibration]


def calibration(rows: Sequence[Row], seed: int = 0) -> Calibration:
    """The calibration of a run; equal seeds and records give equal results in any order."""
    sources = {(given.source, given.scale) for row in rows for given in row.forecasts}
    return Calibration(
        records=len(rows),
        left_out=dict(sorted(Counter(row.no_forecast for row in rows if row.no_forecast).items())),
        sources=[_source(rows, source, scale, seed) for source, scale in sorted(sources)],
    )


def _forecasts(rows: Iterable[tuple[Forecast, bool, str]]) -> Forecasts:
    numbered = [(given.value, right, case) for given, right, case in rows if given.value is not None]
    return Forecasts.of([p for p, _, _ in numbered], [y for _, y, _ in numbered], [case for _, _, case in numbered])


def _source(rows: Sequence[Row], source: Source, scale: Scale, seed: int) -> SourceCalibration:
    rng = np.random.default_rng([seed, zlib.crc32(f"{source}/{scale}".encode())])
    finals = [
        (given, bool(row.right), row.case)
        for row in rows
        for given in row.forecasts
        if (given.source, given.scale) == (source, scale)
    ]
    data = _forecasts(finals)
    probabilities = scale == "probability"
    values = estimates(data, _probability_measure if probabilities else _ranking_measure, rng)
    return SourceCalibration(
        source=source,
        scale=scale,
        n=data.n,
        cases=len(data.keys),
        right=int(data.y.sum()),
        unmatched=sum(not final.listed for final, _, _ in finals),
        unmatched_right=sum(right and not final.listed for final, right, _ in finals),
        unnumbered=sum(final.listed and final.value is None for final, _, _ in finals),
        accuracy=values["accuracy"],
        auroc=values["auroc"],
        aurc=values["aurc"],
        aurc_best=float(metrics.aurc(data.y, data.y, np.ones(data.n))) if data.n else None,
        risk_coverage=coverage_curve(data),
        **(_probability_fields(data, values, rng) if probabilities else {}),
        notes=["cases occur more than once: intervals resample whole cases"] if len(data.keys) < data.n else [],
    )


def _ranking_measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {"accuracy": metrics.mean(y, w), "auroc": metrics.auroc(p, y, w), "aurc": metrics.aurc(p, y, w)}


def _probability_measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {
        **_ranking_measure(p, y, w),
        **metrics.brier_parts(p, y, w)._asdict(),
        "mean_forecast": metrics.mean(p, w),
        "brier": metrics.brier(p, y, w),
        "log_score": metrics.log_score(p, y, w),
    }


def _probability_fields(data: Forecasts, values: dict[str, Estimate], rng: np.random.Generator) -> dict[str, Any]:
    """What is reported about probabilities beyond their ranking."""
    parts = BrierDecomposition(**{name: values[name] for name in BrierDecomposition.model_fields})
    return {
        **{name: values[name] for name in ("mean_forecast", "brier", "log_score")},
        "brier_parts": parts,
        "clipped": metrics.count_clipped(data.p),
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
    bins = metrics.equal_width(data.p) if binning == "equal_width" else metrics.equal_mass(data.p)
    chance = metrics.ece_expected(data.p, bins, rng, metrics.resamples(data.n))
    low, high = np.quantile(chance, [0.025, 0.975])
    return CalibrationError(
        value=float(metrics.ece(data.p, data.y, np.ones(data.n), bins)),
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
    curve = metrics.risk_coverage(data.p, data.y, np.ones(data.n), np.array(COVERAGES))
    return [CoveragePoint(coverage=c, risk=r, threshold=t) for c, r, t in zip(*curve, strict=True)]


def reliability_bins(data: Forecasts) -> list[Bin]:
    """Forecast and share right in each non-empty tenth of the scale."""
    bins = metrics.equal_width(data.p)
    return [
        Bin(
            low=b / metrics.BINS,
            high=(b + 1) / metrics.BINS,
            n=int(here.sum()),
            mean_forecast=float(data.p[here].mean()),
            right=int(data.y[here].sum()),
        )
        for b in range(metrics.BINS)
        if (here := bins == b).any()
    ]
