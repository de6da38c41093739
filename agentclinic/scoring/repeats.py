"""Repeats of a case: how often they disagree, and what that means."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import BaseModel

from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate, mean, ratio
from agentclinic.scoring.verdicts import case_key, strict

DETERMINISTIC = "deterministic: no variance between repeats"
NOT_REPEATED = "no case was repeated"
REPEATS_AS_INDEPENDENT = "the intervals of the shares treat repeats of a case as independent: they are too narrow"


def flipped_pairs(right: int, of: int) -> int:
    """Pairs of a case's repeats of which one is right and one is wrong: c · (n - c)."""
    return right * (of - right)


def pass_k(right: int, of: int, k: int) -> float:
    """Chance that k repeats drawn without replacement are all right: C(c, k) ÷ C(n, k); unbiased for p^k."""
    return math.comb(right, k) / math.comb(of, k)


def majority(right: int, of: int) -> float:
    """1 if more than half of the repeats are right, 0 if fewer; a tie counts ½, as a fair coin would break it."""
    return 0.5 if 2 * right == of else float(2 * right > of)


class Repeats(BaseModel):
    """How the repeats of the same cases compare."""

    cases: int = 0
    """Cases with at least one repeat that is not missing."""
    repeated: int = 0
    """Cases with two or more of those."""
    missing: int = 0
    """Records without a verdict: left out."""
    deterministic: bool | None = None
    """Whether the transcripts of every repeated case are identical; null if there is nothing to compare."""
    flip_rate: Estimate
    """Share of pairs of repeats of a case that disagree in strict correctness: Σ c(n-c) ÷ Σ n(n-1)/2."""
    pass_k: dict[int, Estimate] = {}
    """By k: mean over the cases with at least k repeats of C(c, k) ÷ C(n, k)."""
    majority_vote: Estimate
    """Accuracy if each case were decided by most of its repeats; a tie counts half.

    The vote is on being right, not on a name: a plurality for the truth against scattered errors is not credited.
    """
    note: str | None = None


class Observation(NamedTuple):
    """One repeat of a case."""

    case: str
    right: bool | None
    transcript: bytes | None
    """Fingerprint; None if there is none, or if a failure cut it short."""


def observe(record: Record) -> Observation:
    """Reduce a record to its verdict and a hash of its transcript."""
    return Observation(
        case_key(record), strict(record), None if record.status == "model_failed" else fingerprint(record)
    )


def summarise(observations: Iterable[Observation], seed: int = 0) -> Repeats:
    """Flip rate, pass^k and majority vote over cases."""
    verdicts: defaultdict[str, list[bool]] = defaultdict(list)
    transcripts: defaultdict[str, list[bytes]] = defaultdict(list)
    missing = 0
    for seen in observations:
        if seen.right is None:
            missing += 1
        else:
            verdicts[seen.case].append(seen.right)
        if seen.transcript is not None:
            transcripts[seen.case].append(seen.transcript)
    cases = [(case, sum(given), len(given)) for case, given in verdicts.items()]
    repeated = sum(n > 1 for _, _, n in cases)
    same = [len(set(given)) == 1 for given in transcripts.values() if len(given) > 1]
    deterministic = all(same) if same else None
    flips = ratio(((case, flipped_pairs(c, n), math.comb(n, 2)) for case, c, n in cases), seed, low=0, high=1)
    not_repeated = Estimate(value=None, note=NOT_REPEATED)
    return Repeats(
        cases=len(cases),
        repeated=repeated,
        missing=missing,
        deterministic=deterministic,
        flip_rate=flips if repeated else not_repeated,
        pass_k={
            k: mean(((case, pass_k(c, n, k)) for case, c, n in cases if n >= k), seed, low=0, high=1)
            for k in range(1, max((n for _, _, n in cases), default=0) + 1)
        },
        majority_vote=mean(((case, majority(c, n)) for case, c, n in cases), seed, low=0, high=1)
        if repeated
        else not_repeated,
        note=_note(deterministic, flips.value) if repeated else NOT_REPEATED,
    )


def _note(deterministic: bool | None, flip_rate: float | None) -> str | None:
    if not deterministic:
        return None
    return f"{DETERMINISTIC}; the verdicts on identical transcripts differ" if flip_rate else DETERMINISTIC


def fingerprint(record: Record) -> bytes | None:
    """A hash of everything said, equal for identical transcripts; None if nothing was kept."""
    said = [f"{turn.role}: {turn.text}" for turn in record.transcript or ()]
    if record.transcript is None:
        if not record.doctor_hist:
            return None
        said = [record.doctor_hist, record.diagnosis_text or ""]
    return hashlib.blake2b("\0".join(said).encode("utf-8", "surrogatepass"), digest_size=8).digest()
