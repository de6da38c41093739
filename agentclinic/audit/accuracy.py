"""The auditor's own errors, and rates corrected for them.

`data/accuracy.json` is written by `benchmarks/audit.py --write` and holds, for each role and kind, the counts of right
and wrong findings on planted replies and on replies that two readers labelled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from agentclinic.audit.model import Kind, Role
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.judges.agreement import MIN_CASES
from agentclinic.scoring.judges.correction import MIN_LABELS, rogan_gladen
from agentclinic.scoring.stats import case_draws, totals_by_case

DATA = Path(__file__).parent / "data" / "accuracy.json"
RESAMPLES = 4_000
"""The ends of a 95 % interval then have a Monte Carlo error of about 4 % of its width."""


class Counts(BaseModel):
    """Replies by what the reference says of them and what the auditor found.

    With two readers each counts half, so that n stays the number of replies.
    """

    found: float = 0.0
    """There, and found."""
    missed: float = 0.0
    clean: float = 0.0
    """Not there, and not found."""
    false_alarm: float = 0.0

    @property
    def positives(self) -> float:
        """Replies of which the reference says that the kind is there."""
        return self.found + self.missed

    @property
    def negatives(self) -> float:
        """Replies of which the reference says that it is not."""
        return self.clean + self.false_alarm

    @property
    def sensitivity(self) -> float | None:
        """Of the replies in which it is, the share in which it is found."""
        return self.found / self.positives if self.positives else None

    @property
    def specificity(self) -> float | None:
        """Of the replies in which it is not, the share in which it is not found."""
        return self.clean / self.negatives if self.negatives else None

    def shares(self) -> tuple[Proportion, Proportion]:
        """Sensitivity and specificity with their Wilson intervals; half replies are rounded."""
        return (
            proportion(round(self.found), round(self.positives)),
            proportion(round(self.clean), round(self.negatives)),
        )


class Reference(BaseModel):
    """One thing the auditor was measured against."""

    what: str
    replies: dict[Role, int]
    counts: dict[Role, dict[Kind, Counts]]


class Accuracy(BaseModel):
    """All that is known of the auditor's errors, best reference first."""

    made_by: str
    version: str
    rules: str
    """Hash of the auditor's source the figures belong to."""
    references: dict[str, Reference]


@lru_cache(maxsize=1)
def accuracy() -> Accuracy | None:
    """The measured accuracy shipped with the package; None where it was never measured."""
    return Accuracy.model_validate(json.loads(DATA.read_text(encoding="utf-8"))) if DATA.is_file() else None


class Usable(BaseModel):
    """The counts a correction rests on, and where they are from."""

    sensitivity_from: str
    specificity_from: str
    counts: Counts
    refused: str | None = None
    """Why the rate must not be corrected with them all the same."""

    @property
    def reference(self) -> str:
        """Both sources in words."""
        if self.sensitivity_from == self.specificity_from:
            return self.sensitivity_from
        return f"{self.sensitivity_from} (sensitivity) and {self.specificity_from} (specificity)"

    @property
    def note(self) -> str | None:
        """What a reader of the corrected rate has to know."""
        if self.sensitivity_from == "planted":
            return "planted faults are easier to find than real ones: the true rate may be higher"
        return None


def usable(measured: Accuracy | None, role: Role, kind: Kind) -> Usable | None:
    """Sensitivity and specificity each from the first reference with enough replies to tell.

    Real replies without a fault are many, with one of a kind often too few: then the planted ones tell how often it is
    found, and the real ones how often it is found where it is not. Refused where the few real ones speak against the
    planted ones: where the planted sensitivity lies outside their 95 % Wilson interval.
    """
    known = [
        (name, counts)
        for name, reference in (measured.references if measured else {}).items()
        if (counts := reference.counts.get(role, {}).get(kind))
    ]
    there = next(((name, counts) for name, counts in known if counts.positives >= MIN_LABELS), None)
    not_there = next(((name, counts) for name, counts in known if counts.negatives >= MIN_LABELS), None)
    if there is None or not_there is None:
        return None
    counts = Counts(
        found=there[1].found,
        missed=there[1].missed,
        clean=not_there[1].clean,
        false_alarm=not_there[1].false_alarm,
    )
    refused = None
    for name, few in known[: known.index(there)]:
        real = few.shares()[0]
        if real.low is not None and real.high is not None and not real.low <= (counts.sensitivity or 0.0) <= real.high:
            refused = (
                f"on {name} replies {real.count} of {real.of} were found, on {there[0]} ones "
                f"{counts.sensitivity:.0%}: these do not tell how often it is found in real ones"
            )
    return Usable(sensitivity_from=there[0], specificity_from=not_there[0], counts=counts, refused=refused)


def corrected(found: Sequence[bool], cases: Sequence[str], basis: Usable | None, seed: int = 0) -> Estimate:
    """The corrected rate on a basis, with what has to be said about it; null with the reason where there is none."""
    if basis is None:
        return Estimate(value=None, n=len(found), note="the auditor's errors of this kind are not known")
    if basis.refused:
        return Estimate(value=None, n=len(found), note=basis.refused)
    rate = corrected_rate(found, cases, basis.counts, seed)
    notes = "; ".join(note for note in (rate.note, basis.note) if note)
    return rate.model_copy(update={"note": notes or None})


def corrected_rate(found: Sequence[bool], cases: Sequence[str], counts: Counts, seed: int = 0) -> Estimate:
    """The share of replies with a finding, corrected for the auditor's sensitivity and specificity.

    rogan_gladen: (apparent + specificity - 1) / (sensitivity + specificity - 1), clipped to [0, 1]. Null where
    sensitivity + specificity is at most 1, for such an auditor is no better than a coin.

    The interval moves all three: each resample redraws the cases of the run (Bayesian bootstrap, as for judges), draws
    sensitivity from Beta(found + ½, missed + ½) and specificity from Beta(clean + ½, false alarms + ½). A resample in
    which the auditor is no better than a coin counts as 0 for the lower end and as 1 for the upper.
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
    note = "clipped: the apparent rate lies outside what the auditor's errors alone would give" if clipped else None
    totals = totals_by_case([[float(yes), float(not yes)] for yes in found], cases)
    if len(totals) < MIN_CASES:
        note = f"no interval from fewer than {MIN_CASES} cases" + (f"; {note}" if note else "")
        return Estimate(value=value, n=len(found), note=note)
    rng = np.random.default_rng(seed)
    sums = case_draws(totals, np.full(2, 0.5), rng, RESAMPLES)
    draws = rogan_gladen(
        sums[:, 0] / sums.sum(axis=1),
        rng.beta(counts.found + 0.5, counts.missed + 0.5, RESAMPLES),
        rng.beta(counts.clean + 0.5, counts.false_alarm + 0.5, RESAMPLES),
    )
    lost = np.isnan(draws)
    low = float(np.quantile(np.where(lost, 0.0, draws), 0.025))
    high = float(np.quantile(np.where(lost, 1.0, draws), 0.975))
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(found), note=note)


def apparent_rate(found: Sequence[bool], cases: Sequence[str], seed: int = 0) -> Estimate:
    """The share of units with a finding, its interval from redrawn cases with half a unit added to each side."""
    if not found:
        return Estimate(value=None, note="nothing to audit")
    value = sum(found) / len(found)
    totals = totals_by_case([[float(yes), float(not yes)] for yes in found], cases)
    if len(totals) < MIN_CASES:
        return Estimate(value=value, n=len(found), note=f"no interval from fewer than {MIN_CASES} cases")
    sums = case_draws(totals, np.full(2, 0.5), np.random.default_rng(seed), RESAMPLES)
    low, high = np.quantile(sums[:, 0] / sums.sum(axis=1), [0.025, 0.975])
    return Estimate(value=value, low=min(float(low), value), high=max(float(high), value), n=len(found))
