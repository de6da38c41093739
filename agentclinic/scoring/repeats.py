"""Repeats of a case: how often they disagree, and what that says."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from pydantic import BaseModel

from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.sample import Sample
from agentclinic.scoring.verdicts import case_key, strict

DETERMINISTIC = "deterministic: no variance between repeats"
NOT_REPEATED = "no case was repeated"
REPEATS_AS_INDEPENDENT = "the intervals of the shares take repeats of a case as independent: they are too narrow"


def flipped_pairs(right: int, of: int) -> int:
    """Pairs of a case's repeats of which one is right and one is wrong: c · (n - c)."""
    return right * (of - right)


def pass_k(right: int, of: int, k: int) -> float:
    """Chance that k repeats drawn without replacement are all right: C(c, k) ÷ C(n, k); unbiased for p^k."""
    return math.comb(right, k) / math.comb(of, k)


def majority(right: int, of: int) -> float:
    """1 when more than half of the repeats are right, 0 when fewer; a tie counts ½, as a fair coin would break it."""
    return 0.5 if 2 * right == of else float(2 * right > of)


class Repeats(BaseModel):
    """What the repeats of the same cases say about each other."""

    cases: int = 0
    """Cases with at least one repeat that is not missing."""
    repeated: int = 0
    """Cases with two or more of those."""
    missing: int = 0
    """Records nobody could judge: left out."""
    deterministic: bool | None = None
    """Whether the transcripts of every repeated case are identical; null when there is nothing to compare."""
    flip_rate: Estimate
    """Share of pairs of repeats of a case that disagree in strict correctness: Σ c(n-c) ÷ Σ n(n-1)/2."""
    pass_k: dict[int, Estimate] = {}
    """By k: mean over the cases with at least k repeats of C(c, k) ÷ C(n, k)."""
    majority_vote: Estimate
    """Accuracy if each case were decided by most of its repeats; a tie counts half.

    The vote is on being right, not on a name: a plurality for the truth against scattered errors is not credited.
    """
    note: str | None = None


@dataclass(slots=True)
class _Case:
    number: int
    right: int = 0
    of: int = 0
    first: bytes | None = None
    """Fingerprint of the first transcript."""
    transcripts: int = 0
    varied: bool = False


class Tally:
    """Counts right and judged repeats by case, and whether their transcripts differ."""

    def __init__(self) -> None:
        self._cases: dict[str, _Case] = {}
        self._missing = 0

    def add(self, record: Record) -> None:
        """Count one record."""
        case = self._cases.setdefault(case_key(record), _Case(len(self._cases)))
        right = strict(record)
        if right is None:
            self._missing += 1
        else:
            case.of += 1
            case.right += right
        seen = None if record.status == "model_failed" else fingerprint(record)
        if seen is not None:
            case.transcripts += 1
            case.varied |= case.first is not None and case.first != seen
            case.first = case.first or seen

    def result(self, seed: int = 0) -> Repeats:
        """The measures of what was counted."""
        cases = [case for case in self._cases.values() if case.of]
        flips, votes = Sample(0, 1), Sample(0, 1)
        passed = {k: Sample(0, 1) for k in range(1, max((case.of for case in cases), default=0) + 1)}
        for case in cases:
            flips.add(case.number, flipped_pairs(case.right, case.of), math.comb(case.of, 2))
            votes.add(case.number, majority(case.right, case.of))
            for k in range(1, case.of + 1):
                passed[k].add(case.number, pass_k(case.right, case.of, k))
        repeated = sum(case.of > 1 for case in cases)
        compared = [case.varied for case in self._cases.values() if case.transcripts > 1]
        deterministic = not any(compared) if compared else None
        flip_rate = flips.estimate(seed)
        return Repeats(
            cases=len(cases),
            repeated=repeated,
            missing=self._missing,
            deterministic=deterministic,
            flip_rate=flip_rate if repeated else Estimate(value=None, note=NOT_REPEATED),
            pass_k={k: sample.estimate(seed) for k, sample in passed.items()},
            majority_vote=votes.estimate(seed) if repeated else Estimate(value=None, note=NOT_REPEATED),
            note=_note(deterministic, flip_rate.value) if repeated else NOT_REPEATED,
        )


def _note(deterministic: bool | None, flip_rate: float | None) -> str | None:
    if not deterministic:
        return None
    return DETERMINISTIC if not flip_rate else f"{DETERMINISTIC}; the verdicts on identical transcripts differ"


def fingerprint(record: Record) -> bytes | None:
    """A hash of all that was said, equal for identical transcripts; None when nothing was kept."""
    said = [f"{turn.role}: {turn.text}" for turn in record.transcript or ()]
    if record.transcript is None:
        if not record.doctor_hist:
            return None
        said = [record.doctor_hist, record.diagnosis_text or ""]
    return hashlib.blake2b("\0".join(said).encode("utf-8", "surrogatepass"), digest_size=8).digest()
