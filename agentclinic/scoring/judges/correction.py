"""The accuracy of a run corrected for its judge's errors, which labels reveal.

Prediction-powered (PPI++, Angelopoulos, Duchi and Zrnic 2023): the verdicts on all diagnoses, corrected by their mean
error on the labeled ones. For yes-or-no verdicts with the best tuning this is

    P(yes) · P(right | yes) + P(no) · P(right | no),

with the conditional shares from the labels. Diagnoses that the judge could not read are a third class, with a term and
labels of its own; the judge's errors are those among what it decided. A correction by sensitivity and specificity
(Rogan and Gladen 1978) is the same if the sample was drawn by this judge's verdicts, and otherwise less precise.

`ppi-python` has it for independent labels and a normal interval. Here labels are drawn from strata, cases are
repeated, and a judge may make no error among 40 labels, where a normal interval has no width. The tests compare both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agentclinic.scoring.judges.agreement import cohen_kappa, interval_around
from agentclinic.scoring.judges.panel import UNREAD, Said
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
_YES, _NO, _UNREAD, _UNJUDGED, _TP, _FN, _TN, _FP, _UNREAD_RIGHT, _UNREAD_WRONG = range(10)
_VERDICTS: dict[Said, tuple[int, int, int]] = {
    True: (_YES, _TP, _FP),
    False: (_NO, _FN, _TN),
    UNREAD: (_UNREAD, _UNREAD_RIGHT, _UNREAD_WRONG),
}
"""The column of each verdict, and those of its diagnoses labeled right and labeled wrong."""
_CELLS = 6
"""Of each stratum's columns: those from `_TP` on."""
_SAID = {True: "calls right", False: "calls wrong", UNREAD: "could not read"}


class JudgedUnit(NamedTuple):
    """What the correction needs to know about a unit."""

    case: str
    """Units of one case are redrawn together."""
    verdict: Said
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
    """The share that the judge calls wrong of the right diagnoses that it decided."""
    credited: Estimate
    """The share that the judge calls right of the wrong diagnoses that it decided."""
    kappa: Estimate
    """Cohen's kappa of judge and labels, over all diagnoses of the run that it decided."""


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
    unknown = Estimate(value=None, n=table.n, note=table.unread_problem)
    return Correction(
        unknown if table.unread_problem else _estimate(_powered, table, draws, table.caution),
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
        if problem := table.problem or table.unread_problem:
            return Difference(Estimate(value=None, note=f"{name}: {problem}"), None)
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
    for (verdict, right, wrong), n in zip(_VERDICTS.values(), table.effective, strict=True):
        if n:
            p = (table.sums[right] / (table.sums[right] + table.sums[wrong]) * n + _PRIOR) / (n + 2 * _PRIOR)
            spread = (table.sums[verdict] / table.sums[:_TP].sum()) ** 2 * p * (1 - p)
            now += spread / n
            at_most += spread / np.count_nonzero(table.totals[:, verdict])
    labeled = sum(unit.label is not None for unit in units)
    unlabeled = sum(unit.verdict is not None for unit in units) - labeled
    left = Z95 * math.sqrt(max(0.0, variance - now + at_most))
    needed = (now / (now - 0.75 * variance) - 1) * labeled if now > 0.75 * variance else math.inf
    return LabelsNeeded(math.ceil(needed) if needed <= unlabeled else None, left)


# --- the table of cases ---------------------------------------------------------------------------------------------


class _Table:
    """One row per case. Columns: yes, no, unread, unjudged; six for the prior; and seven for each stratum.

    Those of a stratum are its size and its labels: true positives, false negatives, true negatives, false positives,
    unread and right, unread and wrong.
    """

    def __init__(self, units: Sequence[JudgedUnit], cases: Mapping[str, object] | None = None) -> None:
        self.n = len(units)
        rows = {case: row for row, case in enumerate(cases or dict.fromkeys(unit.case for unit in units))}
        judged = [unit for unit in units if unit.verdict is not None]
        strata = {s: place for place, s in enumerate(dict.fromkeys(unit.stratum for unit in judged))}
        self.totals = np.zeros((len(rows), _TP + _CELLS + (1 + _CELLS) * len(strata)))
        blocks = self._blocks(self.totals)
        for unit in units:
            row = rows[unit.case]
            column, right, wrong = _VERDICTS.get(unit.verdict, (_UNJUDGED, 0, 0))
            self.totals[row, column] += unit.share
            if unit.verdict is None:
                continue
            block = blocks[row, strata[unit.stratum]]
            block[0] += unit.share
            if unit.label is not None:
                block[1 + right - _TP] += unit.share * unit.label
                block[1 + wrong - _TP] += unit.share * (1 - unit.label)
        self.prior = np.zeros(self.totals.shape[1])
        for verdict, each in _VERDICTS.items():
            if verdict != UNREAD or self.totals[:, _UNREAD].any():
                self.prior[list(each)] = _PRIOR
        self._scale = np.zeros(_CELLS)
        decided = {unit.stratum for unit in judged if unit.verdict != UNREAD}
        self.problem = self._problem(strata, decided, (True, False))
        self.unread_problem = self._problem(strata, strata.keys() - decided, (UNREAD,))
        """Why the labels do not give an accuracy, although they show the judge's errors."""
        if self.problem:
            return
        self.sums = self.combined(self.totals.sum(axis=0))
        weighted = (blocks[..., 1:] * _weights(blocks.sum(axis=0))[..., None]).sum(axis=1)
        self.effective = []
        for _, *columns in _VERDICTS.values():
            cells = [column - _TP for column in columns]
            counts = weighted[:, cells].sum(axis=1)
            self.effective.append(n := _effective(counts))
            self._scale[cells] = counts.sum() / n if n else 1.0

    @staticmethod
    def _blocks(sums: Floats) -> Floats:
        """The columns of each stratum: its size and its cells."""
        columns = sums[..., _TP + _CELLS :]
        return columns.reshape(*sums.shape[:-1], columns.shape[-1] // (1 + _CELLS), 1 + _CELLS)

    def combined(self, sums: Floats) -> Floats:
        """Yes, no, unread, unjudged and the cells over all strata, each label weighted, with the prior as drawn."""
        blocks = self._blocks(sums)
        cells = (blocks[..., 1:] * _weights(blocks)[..., None]).sum(axis=-2)
        return np.concatenate([sums[..., :_TP], cells + sums[..., _TP : _TP + _CELLS] * self._scale], axis=-1)

    def _problem(
        self, strata: Mapping[Hashable, int], needed: Collection[Hashable], verdicts: Sequence[Said]
    ) -> str | None:
        """Why the labels do not give an estimate for these strata and verdicts; None if they do."""
        if not strata:
            return "nothing was judged"
        blocks = self._blocks(self.totals)
        for stratum in (one for one in strata if one in needed):
            if not blocks[:, strata[stratum], 1:].any():
                return f"no label yet in {stratum} ({np.count_nonzero(blocks[:, strata[stratum], 0])} cases)"
        for verdict in verdicts:
            column, *cells = _VERDICTS[verdict]
            cases = int(np.count_nonzero(self.totals[:, column]))
            labeled = int(np.count_nonzero(self.labeled[:, [cell - _TP for cell in cells]].any(axis=1)))
            if labeled < min(MIN_LABELS, cases):
                return (
                    f"too few labels: {labeled} of the {cases} cases that the judge {_SAID[verdict]}, "
                    f"{min(MIN_LABELS, cases)} are needed"
                )
        return None

    @property
    def labeled(self) -> Floats:
        """Labels of each case, as they were given: the cells over all strata."""
        cells: Floats = self._blocks(self.totals)[:, :, 1:].sum(axis=1)
        return cells

    @property
    def cases(self) -> int:
        return int(np.count_nonzero(self.labeled.any(axis=1)))

    @property
    def caution(self) -> str | None:
        """A warning about an interval from few labels or without errors."""
        few = self.cases < ENOUGH_LABELS
        said = [f"{self.cases} labeled cases: below {ENOUGH_LABELS} the interval is rough"] if few else []
        decided = int(np.count_nonzero(self.labeled[:, : _UNREAD_RIGHT - _TP].any(axis=1)))
        if decided and not self.sums[[_FN, _FP]].any():
            most = 1 - 0.025 ** (1 / decided)
            said.append(f"no error among the labels: up to {most:.0%} of the verdicts may still be wrong")
        return "; ".join(said) or None


def _weights(blocks: Floats) -> Floats:
    """What each label of a stratum stands for: size ÷ labels; nothing if there are none."""
    labels: Floats = blocks[..., 1:].sum(axis=-1)
    weights: Floats = np.divide(blocks[..., 0], labels, out=np.zeros_like(labels), where=labels > 0)
    return weights


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
    """P(yes) · P(right | yes) + P(no) · P(right | no) + P(unread) · P(right | unread), over all units."""
    total: Floats = np.zeros(sums.shape[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        for verdict, right, wrong in _VERDICTS.values():
            share = sums[..., right] / (sums[..., right] + sums[..., wrong])
            total = total + np.where(sums[..., verdict] > 0, sums[..., verdict] * share, 0.0)
    powered: Floats = total / sums[..., :_TP].sum(axis=-1)
    return powered


def _kappa(sums: Floats) -> Floats:
    return cohen_kappa(sums[..., [_TP, _FP, _FN, _TN]])


def _error(table: _Table, draws: Floats, columns: tuple[int, int], kind: str) -> Estimate:
    """The share of the first column in both."""
    labeled = int(np.count_nonzero(table.labeled[:, [column - _TP for column in columns]].any(axis=1)))
    if not labeled:
        return Estimate(value=None, note=f"nothing is labeled {kind}")

    def share(sums: Floats) -> Floats:
        both: Floats = sums[..., columns[0]] / (sums[..., columns[0]] + sums[..., columns[1]])
        return both

    return _estimate(share, table, draws).model_copy(update={"n": labeled})
