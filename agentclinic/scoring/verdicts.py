"""What a record says: which case it is about, whether the diagnosis was right, and what it could have missed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.model import AnswerKey
from agentclinic.results.record import MISSING, Record
from agentclinic.scoring.outcome import outcome
from agentclinic.vocabulary.compare import STRICT, Relation, compare

_CONSIDERED = frozenset({Relation.SAME, Relation.NARROWER_CONSISTENT, Relation.NARROWER_UNSUPPORTED, Relation.BROADER})
"""A doctor who considers a kind of the disease, or the family it belongs to, has not missed it."""

NOT_STATED = "not stated"


def case_key(record: Record) -> str:
    """What pairs a case between runs: its hash, or data set and row if the record has none."""
    return record.case_hash or f"{record.dataset}:{record.scenario_id}"


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
    harm = (record.annotations or {}).get("Harm_If_Missed")
    if isinstance(harm, bool) or not isinstance(harm, int | float) or not 0 <= harm <= 4:
        return None
    return float(harm)


def must_not_miss(record: Record) -> tuple[str, ...]:
    """The names under the case's `Must_Not_Miss`."""
    entries = (record.annotations or {}).get("Must_Not_Miss")
    listed = entries if isinstance(entries, list) else ()
    names = [entry.get("name") for entry in listed if isinstance(entry, dict)]
    return tuple(name for name in names if isinstance(name, str) and name.strip())


def missed(record: Record) -> tuple[str, ...] | None:
    """The must-not-miss diseases the doctor never considered; None if that cannot be known.

    A disease was considered if a differential or the diagnosis names it, or something narrower or broader by the
    written rules. A differential lists only a few hypotheses, so a disease dismissed without being listed is missed.
    """
    given = [turn.differential for turn in record.transcript or ()] + [record.differential]
    if not any(given):
        return None
    names = {hypothesis.diagnosis for differential in given if differential for hypothesis in differential.hypotheses}
    names |= {record.diagnosis_text} if record.diagnosis_text else set()
    return tuple(name for name in must_not_miss(record) if not any(_is_about(said, name) for said in names))


@lru_cache(maxsize=65536)
def _is_about(said: str, disease: str) -> bool:
    return compare(said, disease).relation in _CONSIDERED


def annotation(record: Record, key: str) -> str | None:
    """A case's annotation as text; None if it is absent or not a single value."""
    value = (record.annotations or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return " ".join(str(value).split()) or None


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
