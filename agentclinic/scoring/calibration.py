"""How sure the doctor was and whether it should have been: calibration by source of the differential.

What is forecast. Of an encounter that ended in a judged diagnosis: that this diagnosis is right (by the strict rule).
The forecast is what the final differential gives the hypothesis of that name or, failing that, the first one that is
the same disease by `knowledge.compare`. A diagnosis that the differential does not hold has no forecast: neither the
leader's number nor the "other" mass was said of it, so it is counted apart (`unmatched`), as is a hypothesis without a
number. Encounters without diagnosis and missing data have nothing to forecast.

Sources are never pooled, and neither are probabilities with scores. A planner's confidence is a score even where it
is written into the field of a probability. Scores are judged by their order only (AUROC, risk and coverage), unless
a recalibration fitted on another run makes probabilities of them.

By turn (landmarks) the forecast is another one: that the then leading hypothesis names the truth, by the written rules
of the builtin judge. Every encounter counts that ran to its end, judged or not; those that ended earlier keep
their last differential.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from agentclinic.errors import InputError
from agentclinic.results.differential import Differential, Hypothesis, Source
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.scoring import calibration_metrics as metrics
from agentclinic.scoring.calibration_metrics import Floats, Forecasts, Measure, estimates
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.ranking import final_differentials
from agentclinic.scoring.verdicts import case_key, names_truth
from agentclinic.vocabulary.compare import Relation, compare

LANDMARKS = (1, 3, 5, 10, 15, 20)
"""Turns at which the differential is looked at: dense where it changes most, up to the usual limit of 20."""
FEWEST_PER_CLASS = 10
"""Right and wrong forecasts needed for intercept and slope; ten per parameter is the usual rule of thumb."""
COVERAGES = tuple(round(0.05 * step, 2) for step in range(1, 21))
LAST: Literal["last"] = "last"
Landmark = int | Literal["last"]
Scale = Literal["probability", "score", "recalibrated"]


# What is reported


class BrierDecomposition(BaseModel):
    """brier = reliability - resolution + uncertainty + within, over ten bins of equal width."""

    reliability: Estimate
    """Squared gap between forecast and share right; 0 is best."""
    resolution: Estimate
    """How far the shares right of the bins lie apart; more is better."""
    uncertainty: Estimate
    """What the share right alone makes it: accuracy · (1 - accuracy)."""
    within: Estimate
    """What the bins hide."""


class CalibrationError(BaseModel):
    """The expected calibration error beside what perfect forecasts would show by chance."""

    value: float
    expected: float
    """Its mean if every forecast were true, at this n and these forecasts."""
    low: float
    high: float
    """The band that holds 95 % of such values; within it nothing speaks against the forecasts."""
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
    """Encounters with differentials of this source, but none with a number by then."""
    finished: int
    """Of n, those that had ended by then and are carried forward."""
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
    """The run on which scores were made probabilities."""
    n: int
    """Diagnoses with a forecast."""
    cases: int
    right: int
    unmatched: int
    """Judged diagnoses that the final differential does not hold; left out of everything here."""
    unmatched_right: int
    unnumbered: int
    """Judged diagnoses in the differential without a number; left out, too."""
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
    """Forecasts nearer than 10⁻⁶ to 0 or 1, moved there for the log score, intercept and slope."""
    intercept: Estimate | None = None
    """Calibration in the large: 0 is best, below 0 is too sure on the whole."""
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
    """Records without a forecast, by reason: no diagnosis, not judged, no differential."""
    sources: list[SourceCalibration]


# From scores to probabilities


class Recalibration(BaseModel):
    """Platt's mapping from a score to a probability: σ(intercept + slope·score), with what it was fitted on."""

    model_config = ConfigDict(frozen=True)

    source: Source
    intercept: float
    slope: float
    run: str
    """The run it was fitted on."""
    digest: str | None = None
    """Hash of that run's file."""
    fingerprint: str
    """Hash of that run's cases and scores: knows the run again under another name or in another order."""
    n: int
    cases: tuple[str, ...]
    """Short hashes of the cases it was fitted on."""

    def apply(self, scores: Floats, cases: Sequence[str], digest: str | None = None) -> Floats:
        """Probabilities for scores of another run; the run it was fitted on is refused."""
        if self.fingerprint == _fingerprint(scores, cases) or (digest is not None and digest == self.digest):
            raise InputError(f"the recalibration was fitted on this very run ({self.run}); fit it on another one")
        return metrics.sigmoid(self.intercept + self.slope * scores)

    def shared(self, cases: Iterable[str]) -> int:
        """How many of the cases it was fitted on, too."""
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
        raise InputError(f"{run}: a threshold on the score tells all right from all wrong ones; fit on a larger run")
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


# What a record says


class Number(NamedTuple):
    """A hypothesis with its number."""

    hypothesis: Hypothesis
    value: float


def scale_of(differential: Differential) -> Literal["probability", "score"]:
    """What the numbers are: a planner's are scores whatever the field; else probabilities where there is any."""
    if differential.source is Source.PLANNER_SCORE:
        return "score"
    hypotheses = differential.hypotheses
    scores_only = all(h.probability is None for h in hypotheses) and any(h.score is not None for h in hypotheses)
    return "score" if scores_only else "probability"


def number_of(hypothesis: Hypothesis, differential: Differential) -> float | None:
    """The hypothesis's number on its differential's scale; None where it has none."""
    value = hypothesis.probability
    if scale_of(differential) == "score" and hypothesis.score is not None:
        value = hypothesis.score
    return value if value is not None and math.isfinite(value) else None


def leader(differential: Differential) -> Number | None:
    """The hypothesis with the highest number, the first of equals; None where none has a number."""
    numbered = [Number(h, value) for h in differential.hypotheses if (value := number_of(h, differential)) is not None]
    return max(numbered, key=lambda number: number.value, default=None)


def committed(record: Record, differential: Differential) -> Hypothesis | None:
    """The hypothesis of a differential that the diagnosis names; None where it holds none."""
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
    """The last differential of a source by that turn; an encounter over by then keeps its last one."""
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


# Counting


class _Column:
    """Forecasts of one kind as they come: 17 bytes each."""

    def __init__(self) -> None:
        self.case = array("q")
        self.value = array("d")
        self.right = array("b")
        self.finished = 0

    def add(self, case: int, value: float, right: bool) -> None:
        self.case.append(case)
        self.value.append(value)
        self.right.append(right)

    def same(self, other: _Column) -> bool:
        return (self.case, self.value, self.right) == (other.case, other.value, other.right)


_Group = tuple[Source, Literal["probability", "score"]]


class CalibrationTally:
    """Takes records one at a time and keeps of each only its forecasts; the order does not matter."""

    def __init__(self, recalibrations: Iterable[Recalibration] = (), digest: str | None = None) -> None:
        """`recalibrations` make probabilities of scores; `digest` is this run's `file_digest`, to refuse its own."""
        self._recalibrations = {recalibration.source: recalibration for recalibration in recalibrations}
        self._digest = digest
        self._records = 0
        self._left_out: Counter[str] = Counter()
        self._cases: dict[str, int] = {}
        self._final: dict[_Group, _Column] = {}
        self._landmarks: dict[_Group, dict[Landmark, _Column]] = {}
        self._unmatched: Counter[_Group] = Counter()
        self._unmatched_right: Counter[_Group] = Counter()
        self._unnumbered: Counter[_Group] = Counter()
        self._followed: Counter[Source] = Counter()

    def add(self, record: Record) -> None:
        """Take one record."""
        self._records += 1
        case = self._cases.setdefault(case_key(record), len(self._cases))
        self._add_final(record, case)
        self._add_landmarks(record, case)

    def _add_final(self, record: Record, case: int) -> None:
        if record.status != "diagnosed":
            missing = record.status in ("model_failed", "judge_failed")
            self._left_out["not_judged" if missing else "no_diagnosis"] += 1
            return
        if record.correct is None:
            self._left_out["not_judged"] += 1
            return
        given = final_differentials(record)
        if not given:
            self._left_out["no_differential"] += 1
        for differential in given.values():
            group = differential.source, scale_of(differential)
            column = self._final.setdefault(group, _Column())
            hypothesis = committed(record, differential)
            value = number_of(hypothesis, differential) if hypothesis else None
            if hypothesis is None:
                self._unmatched[group] += 1
                self._unmatched_right[group] += record.correct
            elif value is None:
                self._unnumbered[group] += 1
            else:
                column.add(case, value, record.correct)

    def _add_landmarks(self, record: Record, case: int) -> None:
        # A model that failed cut the encounter off: what it would have come to is not known.
        if record.status == "model_failed" or not record.ground_truth:
            return
        for source in _sources(record):
            self._followed[source] += 1
            for landmark in (*LANDMARKS, LAST):
                differential = differential_at(record, source, landmark)
                leading = leader(differential) if differential else None
                if differential is None or leading is None:
                    continue
                columns = self._landmarks.setdefault((source, scale_of(differential)), {})
                column = columns.setdefault(landmark, _Column())
                column.add(case, leading.value, names_truth(leading.hypothesis.diagnosis, record))
                column.finished += landmark == LAST or _finished(record, landmark)

    def fit_recalibration(self, run: str, source: Source = Source.PLANNER_SCORE) -> Recalibration:
        """A mapping from this run's scores to probabilities, for use on other runs."""
        data = self._data(self._final.get((source, "score"), _Column()))
        cases = [data.keys[case] for case in data.case]
        return fit_recalibration(data.p, data.y, cases=cases, run=run, source=source, digest=self._digest)

    def result(self, seed: int = 0) -> Calibration:
        """The calibration of what was taken; equal seeds and records give equal results in any order."""
        return Calibration(
            records=self._records,
            left_out=dict(sorted(self._left_out.items())),
            sources=[self._source(group, seed) for group in sorted({*self._final, *self._landmarks})],
        )

    def _data(self, column: _Column) -> Forecasts:
        names = list(self._cases)
        return Forecasts.of(
            np.array(column.value), np.array(column.right, dtype=np.float64), [names[case] for case in column.case]
        )

    def _source(self, group: _Group, seed: int) -> SourceCalibration:
        source, scale = group
        rng = np.random.default_rng([seed, zlib.crc32(f"{source}/{scale}".encode())])
        data = self._data(self._final.get(group, _Column()))
        notes = []
        if len(data.keys) < data.n:
            notes.append("cases occur more than once: intervals resample whole cases")
        recalibration = self._recalibrations.get(source) if scale == "score" else None
        if recalibration is not None and data.n:
            p = recalibration.apply(data.p, [data.keys[case] for case in data.case], self._digest)
            # A falling mapping turns the order round.
            data = Forecasts.of(p, data.y, [data.keys[case] for case in data.case])
            shared = recalibration.shared(data.keys)
            if shared:
                notes.append(f"{shared} of {len(data.keys)} cases were in the recalibration's run, too: flattering")
        else:
            recalibration = None
        probabilities = scale == "probability" or recalibration is not None
        values = estimates(data, _probability_measure(data) if probabilities else _ranking_measure, rng)
        return SourceCalibration(
            source=source,
            scale="recalibrated" if recalibration else scale,
            recalibrated_on=recalibration.run if recalibration else None,
            n=data.n,
            cases=len(data.keys),
            right=int(data.y.sum()),
            unmatched=self._unmatched[group],
            unmatched_right=self._unmatched_right[group],
            unnumbered=self._unnumbered[group],
            accuracy=values["accuracy"],
            auroc=values["auroc"],
            aurc=values["aurc"],
            aurc_best=float(metrics.aurc(data.y, data.y, np.ones(data.n))) if data.n else None,
            risk_coverage=coverage_curve(data),
            **(_probability_fields(data, values, rng) if probabilities else {}),
            landmarks=self._by_turn(group, seed),
            notes=notes,
        )

    def _by_turn(self, group: _Group, seed: int) -> list[LandmarkCalibration]:
        source, scale = group
        columns = self._landmarks.get(group, {})
        # One source may give numbers on both scales: what is missing here may be there.
        elsewhere = self._landmarks.get((source, "score" if scale == "probability" else "probability"), {})
        measure = _leader_measure if scale == "probability" else _leader_ranking_measure
        found: list[LandmarkCalibration] = []
        before, values = None, dict[str, Estimate]()
        for landmark in (*LANDMARKS, LAST):
            column = columns.get(landmark, _Column())
            if before is None or not column.same(before):  # late landmarks differ little, often not at all
                # The same draws at every landmark, so that landmarks differ only by what happened.
                rng = np.random.default_rng([seed, zlib.crc32(f"{source}/{scale}/landmarks".encode())])
                before, values = column, estimates(self._data(column), measure, rng)
            numbered = len(column.value) + (len(elsewhere[landmark].value) if landmark in elsewhere else 0)
            found.append(
                LandmarkCalibration(
                    turn=None if landmark == LAST else landmark,
                    n=len(column.value),
                    none_yet=self._followed[source] - numbered,
                    finished=column.finished,
                    accuracy=values["accuracy"],
                    auroc=values["auroc"],
                    mean_forecast=values.get("mean_forecast"),
                    brier=values.get("brier"),
                )
            )
        return found


def calibration(records: Iterable[Record], seed: int = 0) -> Calibration:
    """The calibration of records."""
    tally = CalibrationTally()
    for record in records:
        tally.add(record)
    return tally.result(seed)


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
    """What is reported of probabilities beyond their ranking."""
    right = int(data.y.sum())
    if data.n and min(right, data.n - right) < FEWEST_PER_CLASS:
        few = f"{right} right and {data.n - right} wrong: fewer than {FEWEST_PER_CLASS} of one kind"
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
    """The ECE in ten bins with its mean and 95 % band under perfect calibration; None without forecasts."""
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
        note="repeats of a case are taken as independent" if len(data.keys) < data.n else None,
    )


def coverage_curve(data: Forecasts) -> list[CoveragePoint]:
    """The risk-coverage curve in steps of 5 %."""
    if data.n == 0:
        return []
    curve = metrics.risk_coverage(data.p, data.y, np.ones(data.n), np.array(COVERAGES))
    return [CoveragePoint(coverage=c, risk=r, threshold=t) for c, r, t in zip(*curve, strict=True)]


def reliability_bins(data: Forecasts) -> list[Bin]:
    """Forecast and share right in each tenth of the scale that holds any."""
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
