"""How often an auditor is right, and rates corrected for its errors.

`data/exact.json`, written by `benchmarks/audit.py --write`, has the errors of the exact checks on planted replies and
on replies that two readers labeled. A reviewer's errors are measured on planted replies with `--calibrate`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from agentclinic.audit.model import ROLES, Kind, Role
from agentclinic.scoring.judges.agreement import MIN_CASES, interval_around
from agentclinic.scoring.judges.correction import MIN_LABELS
from agentclinic.scoring.stats import Estimate, Floats, Proportion, case_draws, proportion, totals_by_case

DATA = Path(__file__).parent / "data" / "exact.json"
RESAMPLES = 4_000
"""The Monte Carlo error of the ends of a 95% interval is then about 4% of its width."""


class Counts(BaseModel):
    """Replies by whether they have a fault and whether the auditor found it; each of two readers counts half."""

    found: float = 0.0
    """Has the fault, and it was found."""
    missed: float = 0.0
    clean: float = 0.0
    """Does not have it, and it was not found."""
    false_alarm: float = 0.0

    def add(self, *, found: bool, faulty: bool, weight: float = 1.0) -> None:
        name = ("found" if found else "missed") if faulty else ("false_alarm" if found else "clean")
        setattr(self, name, getattr(self, name) + weight)

    @property
    def sensitivity(self) -> Proportion:
        """The share of faulty replies in which the fault is found; Wilson interval, half replies rounded."""
        return proportion(round(self.found), round(self.found + self.missed))

    @property
    def specificity(self) -> Proportion:
        return proportion(round(self.clean), round(self.clean + self.false_alarm))


Measured = dict[Role, dict[Kind, Counts]]


def measure(rows: Iterable[tuple[Role, Collection[Kind], Collection[Kind]]], kinds: Sequence[Kind]) -> Measured:
    """Count an auditor's errors, given each reply's role, planted faults (none if faithful) and findings."""
    measured: Measured = {role: {kind: Counts() for kind in kinds} for role in ROLES}
    for role, planted, found in rows:
        for kind in kinds:
            if kind in planted or not planted:
                measured[role][kind].add(found=kind in found, faulty=bool(planted))
    return measured


@lru_cache(maxsize=1)
def exact_accuracy() -> dict[str, Measured]:
    """The shipped errors of the exact checks on `planted` and on `labelled` replies."""
    shipped = json.loads(DATA.read_text(encoding="utf-8"))["measured"] if DATA.is_file() else {}
    return {
        name: {role: {Kind(kind): Counts(**c) for kind, c in kinds.items()} for role, kinds in measured.items()}
        for name, measured in shipped.items()
    }


def rogan_gladen(apparent: Floats, sensitivity: Floats, specificity: Floats) -> Floats:
    """The true share behind an apparent one: (apparent + specificity - 1) / (sensitivity + specificity - 1).

    Clipped to [0, 1]; NaN when sensitivity + specificity is at most 1, since such an auditor is no better than a coin.
    """
    better = sensitivity + specificity - 1
    with np.errstate(invalid="ignore"):
        true: Floats = np.clip((apparent + specificity - 1) / np.where(better <= 1e-12, np.nan, better), 0.0, 1.0)
    return true


def corrected_rate(found: Sequence[bool], cases: Sequence[str], counts: Counts, seed: int = 0) -> Estimate:
    """The share of replies with a finding, corrected by `rogan_gladen`.

    The interval varies all three: each resample redraws the cases of the run (Bayesian bootstrap, as for judges) and
    draws sensitivity from Beta(found + ½, missed + ½) and specificity from Beta(clean + ½, false alarms + ½). If the
    auditor of a resample is no better than chance, it counts as 0 for the lower end and as 1 for the upper.
    """
    if not found:
        return Estimate(value=None, note="no reply")
    positives, negatives = counts.found + counts.missed, counts.clean + counts.false_alarm
    if min(positives, negatives) < MIN_LABELS:
        return Estimate(value=None, n=len(found), note="the auditor's errors are not known well enough")
    sensitivity, specificity = counts.found / positives, counts.clean / negatives
    if sensitivity + specificity <= 1:
        reason = f"sensitivity + specificity is {sensitivity + specificity:.2f}, no better than a coin"
        return Estimate(value=None, n=len(found), note=reason)
    apparent = sum(found) / len(found)
    value = float(rogan_gladen(np.array(apparent), np.array(sensitivity), np.array(specificity)))
    clipped = not 1 - specificity <= apparent <= sensitivity
    note = "clipped: the apparent rate is outside the range that the auditor's errors allow" if clipped else None
    rng = np.random.default_rng(seed)
    rates = _redrawn(found, cases, rng)
    if rates is None:
        return Estimate(value=value, n=len(found), note="; ".join(filter(None, (_FEW_CASES, note))))
    draws = rogan_gladen(
        rates,
        rng.beta(counts.found + 0.5, counts.missed + 0.5, RESAMPLES),
        rng.beta(counts.clean + 0.5, counts.false_alarm + 0.5, RESAMPLES),
    )
    lost = np.isnan(draws)
    low = float(np.quantile(np.where(lost, 0.0, draws), 0.025))
    high = float(np.quantile(np.where(lost, 1.0, draws), 0.975))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(found), note=note)


def apparent_rate(found: Sequence[bool], cases: Sequence[str], seed: int = 0) -> Estimate:
    """The share of replies with a finding; interval from redrawn cases with half a reply added to each side."""
    if not found:
        return Estimate(value=None, note="no reply")
    value = sum(found) / len(found)
    rates = _redrawn(found, cases, np.random.default_rng(seed))
    if rates is None:
        return Estimate(value=value, n=len(found), note=_FEW_CASES)
    low, high = interval_around(value, rates)
    return Estimate(value=value, low=low, high=high, n=len(found))


_FEW_CASES = f"no interval from fewer than {MIN_CASES} cases"


def _redrawn(found: Sequence[bool], cases: Sequence[str], rng: np.random.Generator) -> Floats | None:
    """The share in each resample of the cases; None if there are too few cases."""
    totals = totals_by_case([[float(yes), float(not yes)] for yes in found], cases)
    if len(totals) < MIN_CASES:
        return None
    sums = case_draws(totals, np.full(2, 0.5), rng, RESAMPLES)
    return np.asarray(sums[:, 0] / sums.sum(axis=1))
