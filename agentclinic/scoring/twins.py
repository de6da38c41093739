"""Twins: two cases that look alike at the door, with different diagnoses. A pair is played within one repeat."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.scoring.clusters import annotation, case_key
from agentclinic.scoring.verdicts import strict
from agentclinic.vocabulary.compare import Relation, compare


class Twin(NamedTuple):
    """A case that has a twin, and what was said about it."""

    case: str
    """What pairs it between runs."""
    case_id: str
    twin_of: str
    scenario_id: int
    repeat: int
    truth: str | None
    diagnosis: str | None
    right: bool | None
    unread: bool = False


class TwinPair(NamedTuple):
    """Two twins in the same repeat."""

    first: Twin
    second: Twin
    right: int | None
    """How many of the two are right; an answer that could not be read is not. None if one is missing."""
    same_answer: bool | None
    """Both got the same diagnosis by the written rules; None if one got none."""

    @property
    def cases(self) -> tuple[str, str]:
        """The same for all repeats of a pair, in every run."""
        low, high = sorted((self.first.case, self.second.case))
        return low, high

    @property
    def both_right(self) -> bool | None:
        return None if self.right is None else self.right == 2


Waiting = dict[tuple[str, str, int], Twin]
"""Twins whose partner has not been seen, by their two ids and the repeat."""


def twin_in(record: Record) -> Twin | None:
    """A record as one of two twins; None if its case has no twin."""
    own, other = annotation(record, "case_id"), annotation(record, "twin_of")
    if own is None or other is None or own == other:
        return None
    said, unread = diagnosis_of(record), record.status == "not_readable"
    case, number, truth = case_key(record), record.scenario_id, record.ground_truth
    return Twin(case, own, other, number, record.repeat, truth, said, strict(record), unread)


def meet(twin: Twin, waiting: Waiting) -> TwinPair | None:
    """The pair, if the partner is waiting; otherwise the twin waits."""
    partner = waiting.pop((twin.twin_of, twin.case_id, twin.repeat), None)
    if partner is None:
        waiting[twin.case_id, twin.twin_of, twin.repeat] = twin
        return None
    first, second = sorted((partner, twin), key=lambda one: one.scenario_id)
    right = None if first.right is None or second.right is None else first.right + second.right
    return TwinPair(first, second, right, same_diagnosis(first.diagnosis, second.diagnosis))


def twin_pairs(twins: Iterable[Twin | None]) -> list[TwinPair]:
    waiting: Waiting = {}
    return [pair for twin in twins if twin is not None and (pair := meet(twin, waiting)) is not None]


@lru_cache(maxsize=65536)
def same_diagnosis(one: str | None, other: str | None) -> bool | None:
    """Either may be the fuller wording, so they are compared both ways."""
    if not one or not other:
        return None
    return Relation.SAME in (compare(one, other).relation, compare(other, one).relation)
