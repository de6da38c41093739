"""The auditor's own errors, and rates corrected for them.

`data/accuracy.json`, written by `benchmarks/audit.py --write`, holds for each role and kind how often the auditor was
right and wrong on planted replies and on replies that two readers labelled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from agentclinic.audit.model import Kind, Role
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.judges.agreement import MIN_CASES
from agentclinic.scoring.judges.correction import MIN_LABELS, rogan_gladen
from agentclinic.scoring.stats import case_draws, totals_by_case

DATA = Path(__file__).parent / "data" / "accuracy.json"
RESAMPLES = 4_000
"""Gives the ends of a 95 % interval a Monte Carlo error of about 4 % of its width."""


class Counts(BaseModel):
    """Replies by whether they have a fault and whether the auditor found it; each of two readers counts half."""

    found: float = 0.0
    """Has the fault, and it was found."""
    missed: float = 0.0
    clean: float = 0.0
    """Does not have it, and it was not found."""
    false_alarm: float = 0.0

    @property
    def positives(self) -> float:
        """Replies with the fault."""
        return self.found + self.missed

    @property
    def negatives(self) -> float:
        """Replies without the fault."""
        return self.clean + self.false_alarm

    @property
    def sensitivity(self) -> float | None:
        """The share of replies with the fault in which it is found."""
        return self.found / self.positives if self.positives else None

    @property
    def specificity(self) -> float | None:
        """The share of replies without the fault in which it is not found."""
        return self.clean / self.negatives if self.negatives else None

    def shares(self) -> tuple[Proportion, Proportion]:
        """Sensitivity and specificity with their Wilson intervals; half replies are rounded."""
        return (
            proportion(round(self.found), round(self.positives)),
            proportion(round(self.clean), round(self.negatives)),
        )


class Reference(BaseModel):
    """A set of replies that the auditor was measured on."""

    what: str
    replies: dict[Role, int]
    counts: dict[Role, dict[Kind, Counts]]


class Accuracy(BaseModel):
    """The auditor's measured errors, best reference first."""

    made_by: str
    version: str
    rules: str
    """Hash of the auditor's source when it was measured."""
    references: dict[str, Reference]


@lru_cache(maxsize=1)
def accuracy() -> Accuracy | None:
    """The accuracy that ships with the package; None if it was never measured."""
    return Accuracy.model_validate(json.loads(DATA.read_text(encoding="utf-8"))) if DATA.is_file() else None


class Usable(BaseModel):
    """The counts that a correction is based on, and the references they come from."""

    sensitivity_from: str
    specificity_from: str
    counts: Counts
    refused: str | None = None
    """Why they must not be used after all."""

    @property
    def reference(self) -> str:
        """Both sources in words."""
        if self.sensitivity_from == self.specificity_from:
            return self.sensitivity_from
        return f"{self.sensitivity_from} (sensitivity) and {self.specificity_from} (specificity)"

    @property
    def note(self) -> str | None:
        """What a reader of the corrected rate should know."""
        if self.sensitivity_from == "planted":
            return "planted faults are easier to find than real ones: the true rate may be higher"
        return None


def usable(measured: Accuracy | None, role: Role, kind: Kind) -> Usable | None:
    """Sensitivity and specificity, each from the first reference with enough replies.

    There are many real replies without a fault, but often too few with one: then sensitivity comes from planted faults
    and specificity from real replies. Refused if the planted sensitivity is outside the 95 % Wilson interval of the
    few real faults.
    """
    known = [
        (name, counts)
        for name, reference in (measured.references if measured else {}).items()
        if (counts := reference.counts.get(role, {}).get(kind))
    ]
    faulty = next(((name, counts) for name, counts in known if counts.positives >= MIN_LABELS), None)
    faultless = next(((name, counts) for name, counts in known if counts.negatives >= MIN_LABELS), None)
    if faulty is None or faultless is None:
        return None
    counts = faulty[1].model_copy(update={name: getattr(faultless[1], name) for name in ("clean", "false_alarm")})
    refused = None
    for name, few in known[: known.index(faulty)]:
        real = few.shares()[0]
        if real.low is not None and real.high is not None and not real.low <= (counts.sensitivity or 0.0) <= real.high:
            refused = (
                f"{real.count} of {real.of} faults were found in {name} replies but {counts.sensitivity:.0%} in "
                f"{faulty[0]} ones, which therefore do not show how often real faults are found"
            )
    return Usable(sensitivity_from=faulty[0], specificity_from=faultless[0], counts=counts, refused=refused)


def corrected(found: Sequence[bool], cases: Sequence[str], basis: Usable | None, seed: int = 0) -> Estimate:
    """The corrected rate with what a reader should know about it; null with the reason if there is no basis."""
    if basis is None:
        return Estimate(value=None, n=len(found), note="the auditor's errors of this kind are not known")
    if basis.refused:
        return Estimate(value=None, n=len(found), note=basis.refused)
    rate = corrected_rate(found, cases, basis.counts, seed)
    return rate.model_copy(update={"note": "; ".join(note for note in (rate.note, basis.note) if note) or None})


def corrected_rate(found: Sequence[bool], cases: Sequence[str], counts: Counts, seed: int = 0) -> Estimate:
    """The share of replies with a finding, corrected for the auditor's sensitivity and specificity.

    rogan_gladen: (apparent + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1]. Null if
    sensitivity + specificity is at most 1, because such an auditor is no better than a coin.

    The interval varies all three: each resample redraws the cases of the run (Bayesian bootstrap, as for judges) and
    draws sensitivity from Beta(found + ½, missed + ½) and specificity from Beta(clean + ½, false alarms + ½). If the
    auditor of a resample is no better than a coin, it counts as 0 for the lower end and as 1 for the upper.
    """
    if not found:
        return Estimate(value=None, note="no reply")
    if min(counts.positives, counts.negatives) < MIN_LABELS:
        return Estimate(value=None, n=len(found), note="the auditor's errors are not known well enough")
    sensitivity, specificity = counts.sensitivity or 0.0, counts.specificity or 0.0
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
        return Estimate(value=value, n=len(found), note=f"{_FEW_CASES}; {note}" if note else _FEW_CASES)
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
    """The share of units with a finding; interval from redrawn cases with half a unit added to each side."""
    if not found:
        return Estimate(value=None, note="nothing to audit")
    value = sum(found) / len(found)
    rates = _redrawn(found, cases, np.random.default_rng(seed))
    if rates is None:
        return Estimate(value=value, n=len(found), note=_FEW_CASES)
    low, high = np.quantile(rates, [0.025, 0.975])
    return Estimate(value=value, low=min(float(low), value), high=max(float(high), value), n=len(found))


_FEW_CASES = f"no interval from fewer than {MIN_CASES} cases"


def _redrawn(found: Sequence[bool], cases: Sequence[str], rng: np.random.Generator) -> NDArray[np.float64] | None:
    """The share in each resample of the cases; None if there are too few cases."""
    totals = totals_by_case([[float(yes), float(not yes)] for yes in found], cases)
    if len(totals) < MIN_CASES:
        return None
    sums = case_draws(totals, np.full(2, 0.5), rng, RESAMPLES)
    return np.asarray(sums[:, 0] / sums.sum(axis=1))
