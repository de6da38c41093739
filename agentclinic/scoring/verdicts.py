"""What a record says: whether the diagnosis was right, and how much harm missing it would do."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.model import AnswerKey
from agentclinic.results.record import MISSING, Record
from agentclinic.scoring.clusters import annotation
from agentclinic.scoring.outcome import outcome
from agentclinic.vocabulary.compare import STRICT, compare

NOT_STATED = "not stated"


def strict(record: Record) -> bool | None:
    """Right by the strict rule, as the accuracy counts it: an answer that could not be read is not; None if missing."""
    return None if outcome(record) in MISSING else bool(record.correct)


def decided(record: Record) -> bool | None:
    """Right or wrong by the strict rule; None if missing or not readable: there is no outcome to compare with."""
    return None if record.status == "not_readable" else strict(record)


def lenient(record: Record) -> bool | None:
    """Right by the lenient rule, not if it could not be read; None if missing or if the judge gave no relation."""
    if outcome(record) in MISSING:
        return None
    if record.status != "diagnosed":
        return False
    if record.judgement is None:
        return True if record.correct else None
    return record.judgement.correct_lenient


def answer_key(record: Record) -> AnswerKey:
    """The case's answer key, as recorded."""
    return answer_key_of((record.annotations or {}).get("Answer_Key"))


def names_truth(diagnosis: str, record: Record) -> bool:
    """Whether a hypothesis is the truth, by the written rules of the builtin judge."""
    return _names_truth(diagnosis, record.ground_truth or "", answer_key(record))


@lru_cache(maxsize=65536)
def _names_truth(diagnosis: str, truth: str, key: AnswerKey) -> bool:
    return compare(diagnosis, truth, key.accept, key.partial, key.reject).relation in STRICT


def harm_if_missed(record: Record) -> float | None:
    """The case's `Harm_If_Missed`, 0 to 4; None if the case does not state it."""
    return level((record.annotations or {}).get("Harm_If_Missed"))


def level(harm: object) -> float | None:
    """A level of the scale of harm, 0 to 4; None if it is not one."""
    if isinstance(harm, bool) or not isinstance(harm, int | float) or not 0 <= harm <= 4:
        return None
    return float(harm)


def harm_step(record: Record) -> str | None:
    """The case's harm if missed, as a level of its scale."""
    harm = harm_if_missed(record)
    return None if harm is None else f"{harm:g}"


KINDS: dict[str, Callable[[Record], str | None]] = {
    "specialty": lambda record: annotation(record, "Specialty"),
    "difficulty": lambda record: annotation(record, "Difficulty"),
    "harm": harm_step,
}
"""How cases are grouped."""
