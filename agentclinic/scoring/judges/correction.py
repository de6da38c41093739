"""The accuracy of a run corrected for its judge's errors, which labels reveal.

Prediction-powered (PPI++, Angelopoulos, Duchi and Zrnic 2023): the verdicts on all diagnoses, corrected by their mean
error on the labeled ones. For yes-or-no verdicts with the best tuning this is

    P(yes) · P(right | yes) + P(no) · P(right | no),

with the conditional shares from the labels. A correction by sensitivity and specificity (Rogan and Gladen 1978) is the
same if the sample was drawn by this judge's verdicts, and otherwise less precise.

`ppi-python` has it for independent labels and a normal interval. Here labels are drawn from strata, cases are
repeated, and a judge may make no error among 40 labels, where a normal interval has no width. The tests compare both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agentclinic.scoring.judges.agreement import cohen_kappa, interval_around
from agentclinic.scoring.stats import Z95, Estimate, Floats, case_draws, stretch_for

MIN_LABELS = 5
"""Cases of each class: after 5 of 5 the Wilson interval still starts at 57%; below that a correction is guesswork."""
ENOUGH_LABELS = 40
"""From here on, 95% intervals covered the truth in 94 to 98% of simulated runs (`benchmarks/correction.py`)."""
_PRIOR = 1 / 3
"""Labels added to each kind of error and of success. One third leaves the median of a share where the data have it
(Kerman 2011); in a trial with 300 cases and 40 labels, good judges were covered up to 97.5% with one half, 96.2% so."""
_WIDEST = 1.5
"""The most an interval is widened for few labels: with fewer than five labeled cases the factor means nothing."""
_YES, _NO, _UNJUDGED, _TP, _FN, _TN, _FP = range(7)
_VERDICTS = ((_YES, _TP, _FP), (_NO, _FN, _TN))
"""The column of each verdict, and those of its diagnoses labeled right and labeled wrong."""


class JudgedUnit(NamedTuple):
    """What the correction needs to know about a unit."""

    case: str
    """Units of one case are redrawn together."""
    verdict: bool | None
    """None if the unit is wrong without a judge (no diagnosis, or the doctor failed)."""
    label: float | None = None
    """The truth about the diagnosis, if it was labeled: 1 for right, 0 for wrong, between if labelers disagree."""
    stratum: Hashable = "the run"
    """The part of the run of which the labels are a random sample."""
    share: float = 1.0
    """How much the unit counts: one over the number of repeats where every case counts once."""


class Correction(NamedTuple):
    """What labels show about a judge, and about the accuracy it gives."""

    powered: Estimate
    """The accuracy, prediction-powered."""
    missed: Estimate
    """The share that the judge calls wrong of the right diagnoses."""
    credited: Estimate
    """The share that the judge calls right of the wrong diagnoses."""
    kappa: Estimate
    """Cohen's kappa of judge and labels, over all diagnoses of the run."""


def correct(units: Sequence[JudgedUnit], seed: int = 0) -> Correction:
    """Measure a judge by the labels, and correct the accuracy for its errors.

    Each resample redraws the run's cases and with them the labeled ones (`stats.case_draws`), so that all shares
    vary, together if they come from the same cases. Within a stratum, each label then stands for as many diagnoses as
    the stratum has per label.
    """
    table = _Table(units)
    if table.problem:
        return Correction(*[Estimate(value=None, n=table.n, note=table.problem)] * 4)
    draws = table.combined(case_draws(table.totals, table.prior, np.random.default_rng(seed)))
    return Correction(
        _estimate(_powered, table, draws, table.caution),
        _error(table, draws, (_FN, _TP), "right"),
        _error(table, draws, (_FP, _TN), "wrong"),
        _estimate(_kappa, table, draws),
    )


class Difference(NamedTuple):
    """A paired difference of corrected accuracies, and its two-sided p-value."""

    estimate: Estimate
    p: float | None


def corrected_difference(before: Sequence[JudgedUnit], after: Sequence[JudgedUnit], seed: int = 0) -> Difference:
    """How much more accurate the second run is, each corrected by its own labels; both redraw the same cases."""
    cases = dict.fromkeys(unit.case for unit in (*before, *after))
    first, second = (_Table(units, cases) for units in (before, after))
    for name, table in (("the baseline", first), ("the other run", second)):
        if table.problem:
            return Difference(Estimate(value=None, note=f"{name}: {table.problem}"), None)
    totals, prior = np.hstack([first.totals, second.totals]), np.hstack([first.prior, second.prior])
    draws = case_draws(totals, prior, np.random.default_rng(seed))
    width = len(first.prior)
    one, other = _powered(first.combined(draws[:, :width])), _powered(second.combined(draws[:, width:]))
    value = float(_powered(second.sums) - _powered(first.sums))
    low, high = _interval(value, other - one, [first, second])
    below = (np.count_nonzero(other < one) + 0.5) / (len(one) + 1)
    notes = dict.fromkeys(filter(None, (first.caution, second.caution)))
    low, high = max(-1.0, low), min(1.0, high)
    estimate = Estimate(value=value, low=low, high=high, n=len(cases), note="; ".join(notes) or None)
    return Difference(estimate, float(min(1.0, 2 * min(below, 1 - below))))


class LabelsNeeded(NamedTuple):
    """How many more labels would halve an interval."""

    more: int | None
    """None if no number of labels would."""
    half_width: float
    """Half the interval's width if every diagnosis were labeled: what is left is due to the number of cases."""


def labels_to_halve(units: Sequence[JudgedUnit], estimate: Estimate) -> LabelsNeeded | None:
    """How many more labels like these would halve the prediction-powered interval; None if there is no interval.

    Part of the variance V shrinks with the labels, A - B: A = Σ P(verdict)² · p(1-p) ÷ labeled cases, B the same over
    all its cases, with p the share that is right under that verdict. With t times the labels V is V - A + A/t,
    which is V/4 at t = A ÷ (A - 3V/4).
    """
    if estimate.low is None or estimate.high is None:
        return None
    table = _Table(units)
    variance = ((estimate.high - estimate.low) / (2 * Z95)) ** 2
    now = at_most = 0.0
    for (verdict, right, wrong), n in zip(_VERDICTS, table.effective, strict=True):
        if n:
            p = (table.sums[right] / (table.sums[right] + table.sums[wrong]) * n + _PRIOR) / (n + 2 * _PRIOR)
            spread = (table.sums[verdict] / table.sums[:3].sum()) ** 2 * p * (1 - p)
            now += spread / n
            at_most += spread / np.count_nonzero(table.totals[:, verdict])
    labeled = sum(unit.label is not None for unit in units)
    unlabeled = sum(unit.verdict is not None for unit in units) - labeled
    left = Z95 * math.sqrt(max(0.0, variance - now + at_most))
    needed = (now / (now - 0.75 * variance) - 1) * labeled if now > 0.75 * variance else math.inf
    return LabelsNeeded(math.ceil(needed) if needed <= unlabeled else None, left)


# --- the table of cases ---------------------------------------------------------------------------------------------


class _Table:
    """One row per case. Columns: yes, no, unjudged; four for the prior; and five for each stratum.

    Those of a stratum are its size and its labels: true positives, false negatives, true negatives, false positives.
    """

    def __init__(self, units: Sequence[JudgedUnit], cases: Mapping[str, object] | None = None) -> None:
        self.n = len(units)
        rows = {case: row for row, case in enumerate(cases or dict.fromkeys(unit.case for unit in units))}
        strata = {
            s: 7 + 5 * place for place, s in enumerate(dict.fromkeys(u.stratum for u in units if u.verdict is not None))
        }
        self.totals = np.zeros((len(rows), 7 + 5 * len(strata)))
        for unit in units:
            row = self.totals[rows[unit.case]]
            row[_UNJUDGED if unit.verdict is None else _YES if unit.verdict else _NO] += unit.share
            if unit.verdict is None:
                continue
            start = strata[unit.stratum]
            row[start] += unit.share
            if unit.label is not None:
                right, wrong = (1, 4) if unit.verdict else (2, 3)
                row[start + right] += unit.share * unit.label
                row[start + wrong] += unit.share * (1 - unit.label)
        self.prior = np.array([_PRIOR, _PRIOR, 0.0, *[_PRIOR] * 4, *[0.0] * 5 * len(strata)])
        self._scale = np.zeros(4)
        self.problem = self._problem(strata)
        if self.problem:
            return
        self.sums = self.combined(self.totals.sum(axis=0))
        blocks = self.totals[:, 7:].reshape(len(rows), -1, 5)
        sizes = blocks.sum(axis=0)
        weighted = (blocks[:, :, 1:] * (sizes[:, 0] / sizes[:, 1:].sum(axis=1))[:, None]).sum(axis=1)
        self.effective = [_effective(weighted[:, [right - 3, wrong - 3]].sum(axis=1)) for _, right, wrong in _VERDICTS]
        for (_, *columns), n in zip(_VERDICTS, self.effective, strict=True):
            for column in columns:
                self._scale[column - 3] = weighted[:, [c - 3 for c in columns]].sum() / n if n else 1.0

    def combined(self, sums: Floats) -> Floats:
        """Yes, no, unjudged and the four cells over all strata, each label weighted, with the prior as drawn."""
        blocks = sums[..., 7:].reshape(*sums.shape[:-1], -1, 5)
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = blocks[..., 0] / blocks[..., 1:].sum(axis=-1)
        cells = (blocks[..., 1:] * weight[..., None]).sum(axis=-2) + sums[..., 3:7] * self._scale
        return np.concatenate([sums[..., :3], cells], axis=-1)

    def _problem(self, strata: Mapping[Hashable, int]) -> str | None:
        """Why the labels do not give an estimate; None if they do."""
        if not strata:
            return "nothing was judged"
        for stratum, start in strata.items():
            if not self.totals[:, start + 1 : start + 5].any():
                return f"no label yet in {stratum} ({np.count_nonzero(self.totals[:, start])} cases)"
        for (verdict, *_), said, columns in zip(_VERDICTS, ("right", "wrong"), ((1, 4), (2, 3)), strict=True):
            cases = int(np.count_nonzero(self.totals[:, verdict]))
            given = self.totals[:, [start + column for start in strata.values() for column in columns]]
            labeled = int(np.count_nonzero(given.any(axis=1)))
            if labeled < min(MIN_LABELS, cases):
                return (
                    f"too few labels: {labeled} of the {cases} cases that the judge calls {said}, "
                    f"{min(MIN_LABELS, cases)} are needed"
                )
        return None

    @property
    def labeled(self) -> Floats:
        """Labels of each case, as they were given: the four cells over all strata."""
        cells: Floats = self.totals[:, 7:].reshape(len(self.totals), -1, 5)[:, :, 1:].sum(axis=1)
        return cells

    @property
    def cases(self) -> int:
        return int(np.count_nonzero(self.labeled.any(axis=1)))

    @property
    def caution(self) -> str | None:
        """A warning about an interval from few labels or without errors."""
        few = self.cases < ENOUGH_LABELS
        said = [f"{self.cases} labeled cases: below {ENOUGH_LABELS} the interval is rough"] if few else []
        if not self.sums[[_FN, _FP]].any():
            most = 1 - 0.025 ** (1 / self.cases)
            said.append(f"no error among the labels: up to {most:.0%} of the verdicts may still be wrong")
        return "; ".join(said) or None


def _effective(counts: Floats) -> float:
    """How many equal cases say as much as these weighted ones (Kish): (Σ w)² ÷ Σ w²."""
    squares = float((counts**2).sum())
    return float(counts.sum()) ** 2 / squares if squares else 0.0


# --- what follows from the sums -------------------------------------------------------------------------------------


def _estimate(of: Callable[[Floats], Floats], table: _Table, draws: Floats, note: str | None = None) -> Estimate:
    """A function of the sums, with the interval of its draws."""
    value = float(of(table.sums))
    if math.isnan(value):
        return Estimate(value=None, n=table.n, note="judge and labels are the same throughout: chance agrees too")
    low, high = _interval(value, of(draws), [table])
    lowest = -1.0 if of is _kappa else 0.0
    return Estimate(value=value, low=max(lowest, low), high=min(1.0, high), n=table.n, note=note)


def _interval(value: float, draws: Floats, tables: Sequence[_Table]) -> tuple[float, float]:
    """The percentile interval, widened for few labels as in `stats.bootstrap_interval`."""
    stretch = min(stretch_for(min(table.cases for table in tables)), _WIDEST)
    return interval_around(value, value + (draws - value) * stretch)


def _powered(sums: Floats) -> Floats:
    """P(yes) · P(right | yes) + P(no) · P(right | no), over all units."""
    total: Floats = np.zeros(sums.shape[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        for verdict, right, wrong in _VERDICTS:
            share = sums[..., right] / (sums[..., right] + sums[..., wrong])
            total = total + np.where(sums[..., verdict] > 0, sums[..., verdict] * share, 0.0)
    powered: Floats = total / sums[..., :3].sum(axis=-1)
    return powered


def _kappa(sums: Floats) -> Floats:
    return cohen_kappa(sums[..., [_TP, _FP, _FN, _TN]])


def _error(table: _Table, draws: Floats, columns: tuple[int, int], kind: str) -> Estimate:
    """The share of the first column in both."""
    labeled = int(np.count_nonzero(table.labeled[:, [column - 3 for column in columns]].any(axis=1)))
    if not labeled:
        return Estimate(value=None, note=f"nothing is labeled {kind}")

    def share(sums: Floats) -> Floats:
        both: Floats = sums[..., columns[0]] / (sums[..., columns[0]] + sums[..., columns[1]])
        return both

    return _estimate(share, table, draws).model_copy(update={"n": labeled})
