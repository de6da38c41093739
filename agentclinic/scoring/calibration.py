"""How sure the doctor was and whether it should have been: calibration by source of the differential.

What is forecast: that a judged diagnosis is right by the strict rule. The forecast is the number that the final
differential gives to the hypothesis of that name or, failing that, to the first one that is the same disease by
`vocabulary.compare`. A diagnosis that is not in the differential has no forecast, since neither the leader's number
nor the "other" mass is about it; it is counted separately (`unmatched`), as is a hypothesis without a number.
Encounters without a diagnosis and missing data have nothing to forecast.

Sources are never pooled, and neither are probabilities and scores. A planner's confidence is a score even if it is
in the probability field. Scores are judged only by their order (AUROC, risk and coverage), unless a recalibration
fitted on another run turns them into probabilities.

By turn (landmarks) the forecast is a different one: that the hypothesis leading at that turn names the truth, by the
written rules of the builtin judge. Every encounter that ran to its end counts, judged or not; those that ended earlier
keep their last differential.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from agentclinic.errors import InputError
from agentclinic.results.differential import Differential, Hypothesis, Source
from agentclinic.results.record import MISSING, Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.scoring import calibration_metrics as metrics
from agentclinic.scoring.calibration_metrics import Floats, Forecasts, Measure, estimates
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.ranking import final_differentials
from agentclinic.scoring.verdicts import case_key, names_truth
from agentclinic.vocabulary.compare import Relation, compare

LANDMARKS = (1, 3, 5, 10, 15, 20)
"""Turns at which the differential is examined: dense where it changes most, up to the usual limit of 20."""
FEWEST_PER_CLASS = 10
"""Right and wrong forecasts needed for intercept and slope; ten per parameter is the usual rule of thumb."""
COVERAGES = tuple(round(0.05 * step, 2) for step in range(1, 21))
LAST: Literal["last"] = "last"
Landmark = int | Literal["last"]
Scale = Literal["probability", "score", "recalibrated"]


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


class LandmarkCalibration(BaseModel):
    """The leading hypothesis at a turn."""

    turn: int | None
    """Null for the end of each encounter."""
    n: int
    none_yet: int
    """Encounters with differentials of this source, but without a number by then."""
    finished: int
    """Encounters among the n that had ended by then and are carried forward."""
    accuracy: Estimate
    """How often the leader names the truth."""
    auroc: Estimate
    mean_forecast: Estimate | None = None
    """The leader's mean probability; null for scores, as is the Brier score."""
    brier: Estimate | None = None


class SourceCalibration(BaseModel):
    """Forecasts of one source on one scale."""

    source: Source
    scale: Scale
    recalibrated_on: str | None = None
    """The run whose recalibration turned the scores into probabilities."""
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
    """Forecasts closer than 10⁻⁶ to 0 or 1, moved to that distance for the log score, intercept and slope."""
    intercept: Estimate | None = None
    """Calibration in the large: 0 is best, below 0 is too confident overall."""
    slope: Estimate | None = None
    """1 is best, below 1 is too extreme."""
    ece: CalibrationError | None = None
    ece_equal_mass: CalibrationError | None = None
    bins: list[Bin] | None = None
    landmarks: list[LandmarkCalibration]
    notes: list[str]


class Calibration(BaseModel):
    """Calibration of a run, by source."""

    records: int
    left_out: dict[str, int]
    """Records without a forecast: `no_diagnosis`, `not_judged`, `no_differential`."""
    sources: list[SourceCalibration]


# From scores to probabilities


class Recalibration(BaseModel):
    """Platt's mapping from a score to a probability, σ(intercept + slope·score), and what it was fitted on."""

    model_config = ConfigDict(frozen=True)

    source: Source
    intercept: float
    slope: float
    run: str
    """The run it was fitted on."""
    digest: str | None = None
    """Hash of that run's file."""
    fingerprint: str
    """Hash of that run's cases and scores: recognizes the run under another name or in another order."""
    n: int
    cases: tuple[str, ...]
    """Short hashes of the cases it was fitted on."""

    def apply(self, scores: Floats, cases: Sequence[str], digest: str | None = None) -> Floats:
        """Probabilities for scores of another run; the run it was fitted on is refused."""
        if self.fingerprint == _fingerprint(scores, cases) or (digest is not None and digest == self.digest):
            raise InputError(f"the recalibration was fitted on this same run ({self.run}); fit it on another one")
        return metrics.sigmoid(self.intercept + self.slope * scores)

    def shared(self, cases: Iterable[str]) -> int:
        """How many of these cases it was fitted on."""
        return len({_short(case) for case in cases} & set(self.cases))


def fit_recalibration(
    scores: Sequence[float] | Floats,
    y: Sequence[float] | Floats,
    *,
    cases: Sequence[str],
    run: str,
    source: Source = Source.PLANNER_SCORE,
    digest: str | None = None,
) -> Recalibration:
    """Fit P(right) = σ(a + b·score) by maximum likelihood on one run, for use on others."""
    data = Forecasts.of(scores, y, cases)
    right = int(data.y.sum())
    if min(right, data.n - right) < FEWEST_PER_CLASS:
        raise InputError(
            f"{run}: {right} right and {data.n - right} wrong diagnoses with a score; "
            f"a recalibration needs {FEWEST_PER_CLASS} of each"
        )
    line = metrics.logistic_line(data.p, data.y, np.ones(data.n))
    if math.isnan(float(line.slope)):
        raise InputError(
            f"{run}: a threshold on the score separates all right from all wrong diagnoses; fit on a larger run"
        )
    return Recalibration(
        source=source,
        intercept=float(line.intercept),
        slope=float(line.slope),
        run=run,
        digest=digest,
        fingerprint=_fingerprint(scores, cases),
        n=data.n,
        cases=tuple(_short(key) for key in data.keys),
    )


def file_digest(path: Path) -> str:
    """SHA-256 of a run's file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fingerprint(scores: Sequence[float] | Floats, cases: Sequence[str]) -> str:
    lines = sorted(f"{case}\t{float(score)!r}\n" for case, score in zip(cases, scores, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _short(case: str) -> str:
    return hashlib.blake2b(case.encode(), digest_size=6).hexdigest()


# Numbers in a differential


class Number(NamedTuple):
    """A hypothesis with its number."""

    hypothesis: Hypothesis
    value: float


def scale_of(differential: Differential) -> Literal["probability", "score"]:
    """What the numbers are: a planner's are scores whatever the field; others are probabilities if there are any."""
    if differential.source is Source.PLANNER_SCORE:
        return "score"
    hypotheses = differential.hypotheses
    scores_only = all(h.probability is None for h in hypotheses) and any(h.score is not None for h in hypotheses)
    return "score" if scores_only else "probability"


def number_of(hypothesis: Hypothesis, differential: Differential) -> float | None:
    """The hypothesis's number on its differential's scale; None if it has none."""
    value = hypothesis.probability
    if scale_of(differential) == "score" and hypothesis.score is not None:
        value = hypothesis.score
    return value if value is not None and math.isfinite(value) else None


def leader(differential: Differential) -> Number | None:
    """The hypothesis with the highest number, the first of equals; None if none has a number."""
    numbered = [Number(h, value) for h in differential.hypotheses if (value := number_of(h, differential)) is not None]
    return max(numbered, key=lambda number: number.value, default=None)


def committed(record: Record, differential: Differential) -> Hypothesis | None:
    """The hypothesis of a differential that the diagnosis names; None if there is none."""
    diagnosis = diagnosis_of(record)
    if not diagnosis:
        return None
    hypotheses = differential.hypotheses
    plain = _plain(diagnosis)
    for hypothesis in hypotheses:
        if _plain(hypothesis.diagnosis) == plain:
            return hypothesis
    return next((h for h in hypotheses if _same_disease(diagnosis, h.diagnosis)), None)


def _plain(name: str) -> str:
    return " ".join(name.casefold().split()).strip(" .")


@lru_cache(maxsize=65536)
def _same_disease(diagnosis: str, hypothesis: str) -> bool:
    return compare(diagnosis, hypothesis).relation is Relation.SAME


def differential_at(record: Record, source: Source, landmark: Landmark) -> Differential | None:
    """The last differential of a source by that turn; an encounter that has ended keeps its last one."""
    given = [turn for turn in record.transcript or [] if turn.differential and turn.differential.source is source]
    if landmark == LAST or _finished(record, landmark):
        if record.differential is not None and record.differential.source is source:
            return record.differential
        return given[-1].differential if given else None
    by_then = [turn.differential for turn in given if turn.turn <= landmark]
    return by_then[-1] if by_then else None


def _turns(record: Record) -> int | None:
    if record.num_turns is not None:
        return record.num_turns
    return max((turn.turn for turn in record.transcript), default=0) if record.transcript else None


def _finished(record: Record, landmark: int) -> bool:
    turns = _turns(record)
    return turns is not None and turns <= landmark


def _sources(record: Record) -> set[Source]:
    given = [record.differential, *(turn.differential for turn in record.transcript or [])]
    return {differential.source for differential in given if differential is not None}


# One record, then all of them


class Forecast(NamedTuple):
    """What the final differential of one source says about the diagnosis that was judged."""

    source: Source
    scale: Literal["probability", "score"]
    listed: bool
    """Whether the differential holds the diagnosis."""
    value: float | None
    """Its number; None if it has none."""


class Leading(NamedTuple):
    """The leading hypothesis at some turn."""

    scale: Literal["probability", "score"]
    value: float
    right: bool


class Observation(NamedTuple):
    """What one record contributes."""

    case: str
    right: bool
    turns: int | None
    left_out: str | None
    """Why there is no forecast."""
    finals: tuple[Forecast, ...]
    leaders: tuple[tuple[Source, tuple[Leading | None, ...]], ...]
    """By source, at each of `LANDMARKS` and at the end; None before the first number."""


def observe(record: Record) -> Observation:
    """Reduce a record to its forecasts."""
    case, turns, leaders = case_key(record), _turns(record), _leaders(record)
    given = final_differentials(record)
    reason = None
    if record.status in MISSING or (record.status == "diagnosed" and record.correct is None):
        reason = "not_judged"
    elif record.status != "diagnosed":
        reason = "no_diagnosis"
    elif not given:
        reason = "no_differential"
    if reason:
        return Observation(case, False, turns, reason, (), leaders)
    finals = tuple(_forecast(record, differential) for differential in given.values())
    return Observation(case, bool(record.correct), turns, None, finals, leaders)


def _forecast(record: Record, differential: Differential) -> Forecast:
    hypothesis = committed(record, differential)
    value = number_of(hypothesis, differential) if hypothesis else None
    return Forecast(differential.source, scale_of(differential), hypothesis is not None, value)


def _leaders(record: Record) -> tuple[tuple[Source, tuple[Leading | None, ...]], ...]:
    # A failed model cut the encounter short: we do not know how it would have ended.
    if record.status == "model_failed" or not record.ground_truth:
        return ()
    return tuple((source, _by_landmark(record, source)) for source in _sources(record))


def _by_landmark(record: Record, source: Source) -> tuple[Leading | None, ...]:
    found: list[Leading | None] = []
    for landmark in (*LANDMARKS, LAST):
        differential = differential_at(record, source, landmark)
        first = leader(differential) if differential else None
        leading = None
        if differential and first:
            leading = Leading(scale_of(differential), first.value, names_truth(first.hypothesis.diagnosis, record))
        # An unchanged leader is kept once: a run may have 100,000 records.
        found.append(found[-1] if found and found[-1] == leading else leading)
    return tuple(found)


def summarise(
    observations: Iterable[Observation],
    seed: int = 0,
    recalibrations: Iterable[Recalibration] = (),
    digest: str | None = None,
) -> Calibration:
    """The calibration of a run; equal seeds and records give equal results in any order.

    `recalibrations` turn scores into probabilities; `digest` is this run's `file_digest`, to refuse its own.
    """
    seen = list(observations)
    mappings = {recalibration.source: recalibration for recalibration in recalibrations}
    groups = {(final.source, final.scale) for one in seen for final in one.finals}
    groups |= {(source, first.scale) for one in seen for source, at in one.leaders for first in at if first}
    return Calibration(
        records=len(seen),
        left_out=dict(sorted(Counter(one.left_out for one in seen if one.left_out).items())),
        sources=[
            _source(seen, source, scale, seed, mappings.get(source) if scale == "score" else None, digest)
            for source, scale in sorted(groups)
        ],
    )


def recalibration(
    observations: Iterable[Observation],
    run: str,
    source: Source = Source.PLANNER_SCORE,
    digest: str | None = None,
) -> Recalibration:
    """A mapping from this run's scores to probabilities, for use on other runs."""
    data = _forecasts(_finals(list(observations), source, "score"))
    return fit_recalibration(data.p, data.y, cases=data.by_case(), run=run, source=source, digest=digest)


def _finals(seen: Sequence[Observation], source: Source, scale: str) -> list[tuple[Forecast, bool, str]]:
    return [
        (final, one.right, one.case)
        for one in seen
        for final in one.finals
        if (final.source, final.scale) == (source, scale)
    ]


def _forecasts(rows: Iterable[tuple[Forecast | Leading, bool, str]]) -> Forecasts:
    numbered = [(given.value, right, case) for given, right, case in rows if given.value is not None]
    return Forecasts.of([p for p, _, _ in numbered], [y for _, y, _ in numbered], [case for _, _, case in numbered])


def _source(
    seen: Sequence[Observation],
    source: Source,
    scale: Literal["probability", "score"],
    seed: int,
    mapping: Recalibration | None,
    digest: str | None,
) -> SourceCalibration:
    rng = np.random.default_rng([seed, zlib.crc32(f"{source}/{scale}".encode())])
    finals = _finals(seen, source, scale)
    data = _forecasts(finals)
    notes = []
    if len(data.keys) < data.n:
        notes.append("cases occur more than once: intervals resample whole cases")
    if mapping is not None and data.n:
        # Sorted again, because a falling mapping reverses the order.
        data = Forecasts.of(mapping.apply(data.p, data.by_case(), digest), data.y, data.by_case())
        if shared := mapping.shared(data.keys):
            notes.append(f"{shared} of {len(data.keys)} cases were also used to fit the recalibration: too favorable")
    else:
        mapping = None
    probabilities = scale == "probability" or mapping is not None
    values = estimates(data, _probability_measure(data) if probabilities else _ranking_measure, rng)
    return SourceCalibration(
        source=source,
        scale="recalibrated" if mapping else scale,
        recalibrated_on=mapping.run if mapping else None,
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
        landmarks=_landmarks(seen, source, scale, seed),
        notes=notes,
    )


def _landmarks(
    seen: Sequence[Observation], source: Source, scale: Literal["probability", "score"], seed: int
) -> list[LandmarkCalibration]:
    followed = [(one.case, one.turns, at) for one in seen for given, at in one.leaders if given is source]
    measure = _leader_measure if scale == "probability" else _leader_ranking_measure
    found: list[LandmarkCalibration] = []
    before, values = None, dict[str, Estimate]()
    moments: tuple[Landmark, ...] = (*LANDMARKS, LAST)
    for place, landmark in enumerate(moments):
        # One source may give numbers on both scales; only those on this one count here.
        rows = [(first, first.right, case) for case, _, at in followed if (first := at[place]) and first.scale == scale]
        if rows != before:  # late landmarks are often the same
            # The same draws at every landmark, so that landmarks differ only by what happened.
            rng = np.random.default_rng([seed, zlib.crc32(f"{source}/{scale}/landmarks".encode())])
            before, values = rows, estimates(_forecasts(rows), measure, rng)
        found.append(
            LandmarkCalibration(
                turn=None if landmark == LAST else landmark,
                n=len(rows),
                none_yet=sum(at[place] is None for _, _, at in followed),
                finished=sum(
                    landmark == LAST or (turns is not None and turns <= landmark)
                    for _, turns, at in followed
                    if (first := at[place]) and first.scale == scale
                ),
                accuracy=values["accuracy"],
                auroc=values["auroc"],
                mean_forecast=values.get("mean_forecast"),
                brier=values.get("brier"),
            )
        )
    return found


def _ranking_measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {"accuracy": metrics.mean(y, w), "auroc": metrics.auroc(p, y, w), "aurc": metrics.aurc(p, y, w)}


def _leader_ranking_measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {"accuracy": metrics.mean(y, w), "auroc": metrics.auroc(p, y, w)}


def _leader_measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {
        **_leader_ranking_measure(p, y, w),
        "mean_forecast": metrics.mean(p, w),
        "brier": metrics.brier(p, y, w),
    }


def _probability_measure(data: Forecasts) -> Measure:
    start = metrics.calibration_line(data.p, data.y, np.ones(data.n))

    def measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
        return {
            **_ranking_measure(p, y, w),
            **metrics.brier_parts(p, y, w)._asdict(),
            "mean_forecast": metrics.mean(p, w),
            "brier": metrics.brier(p, y, w),
            "log_score": metrics.log_score(p, y, w),
            "intercept": metrics.calibration_intercept(p, y, w),
            "slope": metrics.calibration_slope(p, y, w, start),
        }

    return measure


def _probability_fields(data: Forecasts, values: dict[str, Estimate], rng: np.random.Generator) -> dict[str, Any]:
    """What is reported about probabilities beyond their ranking."""
    right = int(data.y.sum())
    if data.n and min(right, data.n - right) < FEWEST_PER_CLASS:
        few = f"{right} right and {data.n - right} wrong: at least {FEWEST_PER_CLASS} of each are needed"
        values = {**values, **dict.fromkeys(("intercept", "slope"), Estimate(value=None, n=data.n, note=few))}
    parts = BrierDecomposition(**{name: values[name] for name in BrierDecomposition.model_fields})
    return {
        **{name: values[name] for name in ("mean_forecast", "brier", "log_score", "intercept", "slope")},
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
