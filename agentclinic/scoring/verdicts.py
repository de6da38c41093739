"""What a record says: which case it is about, and whether the diagnosis was right."""

from __future__ import annotations

from functools import lru_cache

from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.model import AnswerKey
from agentclinic.results.record import MISSING, Record
from agentclinic.vocabulary.compare import STRICT, compare


def case_key(record: Record) -> str:
    """What pairs a case between runs: its hash, or data set and row if the record has none."""
    return record.case_hash or f"{record.dataset}:{record.scenario_id}"


def strict(record: Record) -> bool | None:
    """Right by the strict rule; None if missing."""
    return None if record.status in MISSING else bool(record.correct)


def lenient(record: Record) -> bool | None:
    """Right by the lenient rule; None if missing or if the judge gave no relation."""
    if record.status in MISSING:
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
