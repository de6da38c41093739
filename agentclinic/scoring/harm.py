"""What wrong answers could do: loss weighted by harm, and dangerous diseases never considered."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pydantic import BaseModel

from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate, Proportion, proportion, ratio
from agentclinic.scoring.verdicts import case_key, strict
from agentclinic.vocabulary.compare import Relation, compare

SERIOUS = 3
"""The two highest levels of the scale, which runs from 0 to 4."""
_CONSIDERED = frozenset({Relation.SAME, Relation.NARROWER_CONSISTENT, Relation.NARROWER_UNSUPPORTED, Relation.BROADER})
"""A doctor who considers a kind of the disease, or the family it belongs to, has not missed it."""


def harm_if_missed(record: Record) -> float | None:
    """The case's `Harm_If_Missed`, 0 to 4; None if the case does not state it."""
    harm = (record.annotations or {}).get("Harm_If_Missed")
    if isinstance(harm, bool) or not isinstance(harm, int | float) or not 0 <= harm <= 4:
        return None
    return float(harm)


def must_not_miss(record: Record) -> tuple[str, ...]:
    """The names under the case's `Must_Not_Miss`."""
    entries = (record.annotations or {}).get("Must_Not_Miss")
    names = [entry.get("name") for entry in _list(entries) if isinstance(entry, dict)]
    return tuple(name for name in names if isinstance(name, str) and name.strip())


def considered(record: Record) -> frozenset[str] | None:
    """Every diagnosis in any differential, and the final one; None if the doctor gave no differential."""
    given = [turn.differential for turn in record.transcript or ()] + [record.differential]
    if not any(given):
        return None
    names = {hypothesis.diagnosis for differential in given if differential for hypothesis in differential.hypotheses}
    return frozenset(names | ({record.diagnosis_text} if record.diagnosis_text else set()))


def missed(record: Record) -> tuple[str, ...] | None:
    """The must-not-miss diseases the doctor never considered; None if that cannot be known.

    A disease was considered if a differential or the diagnosis names it, or something narrower or broader by the
    written rules. A differential lists only a few hypotheses, so a disease dismissed without being listed is missed.
    """
    names = considered(record)
    if names is None:
        return None
    return tuple(name for name in must_not_miss(record) if not any(_is_about(said, name) for said in names))


class Harm(BaseModel):
    """What the errors could have done; null if the cases or records do not say."""

    stated: int = 0
    """Records of cases that state their harm, without missing data."""
    not_stated: int = 0
    missing: int = 0
    weighted_loss: Estimate
    """Σ harm over records not right ÷ Σ harm over all that state it; between 0 and 1."""
    serious_wrong: Proportion
    """Wrong diagnoses ÷ records of cases with a harm of 3 or more; ending without a diagnosis is not one."""
    must_not_miss_missed: Estimate
    """Must-not-miss diseases never considered ÷ all of those in records where this can be assessed."""
    encounters_with_a_miss: Proportion
    """Records with at least one such disease never considered ÷ records where this can be assessed."""
    not_assessable: int = 0
    """Records of cases with must-not-miss diseases whose doctor gave no differential."""


class Observation(NamedTuple):
    """What one record contributes."""

    case: str
    right: bool | None
    harm: float | None
    diagnosed: bool
    listed: int | None
    """Must-not-miss diseases of the case; None if a failure cut the encounter short."""
    missed: int | None
    """How many of them were never considered; None if that cannot be known."""


def observe(record: Record) -> Observation:
    """Reduce a record to its verdict, its harm and the diseases missed."""
    names = must_not_miss(record)
    gone = missed(record) if names else ()
    return Observation(
        case_key(record),
        strict(record),
        harm_if_missed(record),
        record.status == "diagnosed",
        None if record.status == "model_failed" else len(names),
        None if gone is None else len(gone),
    )


def summarise(observations: Iterable[Observation], seed: int = 0) -> Harm:
    """Loss weighted by harm, and dangerous diseases missed."""
    seen = list(observations)
    judged = [one for one in seen if one.right is not None]
    stated = [(one, one.harm) for one in judged if one.harm is not None]
    serious = [one for one, harm in stated if harm >= SERIOUS]
    relevant = [one for one in seen if one.listed]
    assessed = [(one.case, one.missed, one.listed or 0) for one in relevant if one.missed is not None]
    return Harm(
        stated=len(stated),
        not_stated=len(judged) - len(stated),
        missing=len(seen) - len(judged),
        weighted_loss=ratio(
            ((one.case, 0.0 if one.right else harm, harm) for one, harm in stated), seed, low=0, high=1
        ),
        serious_wrong=proportion(sum(one.diagnosed and not one.right for one in serious), len(serious)),
        must_not_miss_missed=ratio(assessed, seed, low=0, high=1),
        encounters_with_a_miss=proportion(sum(bool(gone) for _, gone, _ in assessed), len(assessed)),
        not_assessable=len(relevant) - len(assessed),
    )


@lru_cache(maxsize=65536)
def _is_about(said: str, disease: str) -> bool:
    return compare(said, disease).relation in _CONSIDERED


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()
