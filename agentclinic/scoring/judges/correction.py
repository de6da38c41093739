"""The accuracy of a run corrected for its judge's errors, which labels reveal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.judges.agreement import interval_around
from agentclinic.scoring.stats import Floats, case_draws, totals_by_case

MIN_LABELS = 5
"""Cases of each class: after 5 of 5 the Wilson interval still starts at 57%; below that a correction is guesswork."""


def rogan_gladen(apparent: Floats, sensitivity: Floats, specificity: Floats) -> Floats:
    """The true share behind an apparent one: (apparent + specificity - 1) / (sensitivity + specificity - 1).

    Clipped to [0, 1]; NaN when sensitivity + specificity is at most 1, since such a judge is no better than a coin.
    """
    better = sensitivity + specificity - 1
    with np.errstate(invalid="ignore"):
        true: Floats = np.clip((apparent + specificity - 1) / np.where(better <= 1e-12, np.nan, better), 0.0, 1.0)
    return true


class JudgedUnit(NamedTuple):
    """What the corrected accuracy needs to know about a unit."""

    case: str
    verdict: bool | None
    """None if the unit is wrong without a judge (no diagnosis, or the doctor failed)."""
    label: bool | None = None
    """The truth about the diagnosis, if it was labelled."""


def corrected_accuracy(units: Sequence[JudgedUnit], seed: int = 0) -> Estimate:
    """The run's accuracy corrected for the judge's sensitivity and specificity on the labelled units.

    accuracy = judged ÷ all · rogan_gladen(yes ÷ judged, sensitivity, specificity): only what was judged can be
    misjudged. Each resample redraws the run's cases and with them the labelled ones, so that all three shares vary,
    together if they come from the same cases. A resample in which the judge is no better than a coin says
    nothing; it counts as 0 for the lower limit and as 1 for the upper.
    """
    rows = [_cells(unit) for unit in units]
    judged = sum(unit.verdict is not None for unit in units)
    if not judged:
        return Estimate(value=None, note="nothing was judged")
    totals = totals_by_case(rows, [unit.case for unit in units])
    _, _, _, tp, fn, tn, fp = sums = totals.sum(axis=0)
    right, wrong = (np.count_nonzero(totals[:, i] + totals[:, i + 1]) for i in (3, 5))
    if min(right, wrong) < MIN_LABELS:
        have = f"{right} cases with one labeled right, {wrong} with one labeled wrong"
        return Estimate(value=None, n=len(units), note=f"too few labels: {have}, {MIN_LABELS} of each are needed")
    value = float(_corrected(sums))
    if math.isnan(value):
        reason = f"sensitivity + specificity is {tp / (tp + fn) + tn / (tn + fp):.2f}, no better than a coin"
        return Estimate(value=None, n=len(units), note=reason)
    prior = np.array([0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.5])
    draws = _corrected(case_draws(totals, prior, np.random.default_rng(seed)))
    lost = np.isnan(draws)
    low, high = interval_around(value, np.where(lost, 0.0, draws), np.where(lost, 1.0, draws))
    share = sums[0] / (sums[0] + sums[1])
    clipped = not 1 - tn / (tn + fp) <= share <= tp / (tp + fn)
    note = "clipped: the judge's share of yes lies outside what its errors alone would give" if clipped else None
    return Estimate(value=value, low=low, high=high, n=len(units), note=note)


def _cells(unit: JudgedUnit) -> tuple[float, ...]:
    """(yes, no, wrong without a judge, then true positive, false negative, true negative, false positive)."""
    yes, no = unit.verdict is True, unit.verdict is False
    right, wrong = unit.label is True, unit.label is False
    return (yes, no, unit.verdict is None, yes and right, no and right, no and wrong, yes and wrong)


def _corrected(sums: Floats) -> Floats:
    yes, no, unjudged, tp, fn, tn, fp = (sums[..., column] for column in range(7))
    judged = yes + no
    share: Floats = judged / (judged + unjudged)
    return share * rogan_gladen(yes / judged, tp / (tp + fn), tn / (tn + fp))
