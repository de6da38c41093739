"""What wrong answers could do: loss weighted by harm, and dangerous diseases never thought of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from pydantic import BaseModel

from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.sample import Cases, Sample
from agentclinic.scoring.verdicts import strict
from agentclinic.vocabulary.compare import Relation, compare

SERIOUS = 3
"""The two highest steps of the cases' scale, which runs from 0 to 4."""
_CONSIDERED = frozenset({Relation.SAME, Relation.NARROWER_CONSISTENT, Relation.NARROWER_UNSUPPORTED, Relation.BROADER})
"""Who thinks of a kind of the disease, or of the family it belongs to, has not missed it."""


def harm_if_missed(record: Record) -> float | None:
    """The case's `Harm_If_Missed`, 0 to 4; None where the case does not state it."""
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
    """Every diagnosis in any differential, and the one committed to; None when the doctor gave no differential."""
    given = [turn.differential for turn in record.transcript or ()] + [record.differential]
    if not any(given):
        return None
    names = {hypothesis.diagnosis for differential in given if differential for hypothesis in differential.hypotheses}
    return frozenset(names | ({record.diagnosis_text} if record.diagnosis_text else set()))


def missed(record: Record) -> tuple[str, ...] | None:
    """The must-not-miss diseases the doctor never considered; None when that cannot be known.

    Considered is what stands in a differential or is the diagnosis: same, narrower or broader by the written rules.
    A differential lists a few hypotheses only, so a disease dismissed without being listed counts as missed.
    """
    names = considered(record)
    if names is None:
        return None
    return tuple(name for name in must_not_miss(record) if not any(_is_about(said, name) for said in names))


class Harm(BaseModel):
    """What the errors could have done; null where cases or records do not tell."""

    stated: int = 0
    """Records of cases that state their harm, missing data left out."""
    not_stated: int = 0
    missing: int = 0
    weighted_loss: Estimate
    """Σ harm over records not right ÷ Σ harm over all that state it; between 0 and 1."""
    serious_wrong: Proportion
    """Wrong diagnoses ÷ records of cases with a harm of 3 or more; ending without a diagnosis is not counted here."""
    must_not_miss_missed: Estimate
    """Must-not-miss diseases never considered ÷ those of all records where it can be assessed."""
    encounters_with_a_miss: Proportion
    """Records with at least one such disease never considered ÷ records where it can be assessed."""
    not_assessable: int = 0
    """Records of cases with must-not-miss diseases whose doctor gave no differential."""


class Tally:
    """Sums harm one record at a time."""

    def __init__(self) -> None:
        self._cases = Cases()
        self._loss = Sample(0, 1)
        self._missed = Sample(0, 1)
        self._stated = self._not_stated = self._missing = self._not_assessable = 0
        self._serious = self._serious_wrong = self._assessed = self._with_a_miss = 0

    def add(self, record: Record) -> None:
        """Count one record."""
        case = self._cases.number(record)
        right, harm = strict(record), harm_if_missed(record)
        if record.status != "model_failed":
            self._add_missed(case, record)
        if right is None:
            self._missing += 1
        elif harm is None:
            self._not_stated += 1
        else:
            self._stated += 1
            self._loss.add(case, 0.0 if right else harm, harm)
            if harm >= SERIOUS:
                self._serious += 1
                self._serious_wrong += record.status == "diagnosed" and not right

    def _add_missed(self, case: int, record: Record) -> None:
        names, gone = must_not_miss(record), missed(record)
        if not names:
            return
        if gone is None:
            self._not_assessable += 1
            return
        self._missed.add(case, len(gone), len(names))
        self._assessed += 1
        self._with_a_miss += bool(gone)

    def result(self, seed: int = 0) -> Harm:
        """The measures of what was counted."""
        return Harm(
            stated=self._stated,
            not_stated=self._not_stated,
            missing=self._missing,
            weighted_loss=self._loss.estimate(seed),
            serious_wrong=proportion(self._serious_wrong, self._serious),
            must_not_miss_missed=self._missed.estimate(seed),
            encounters_with_a_miss=proportion(self._with_a_miss, self._assessed),
            not_assessable=self._not_assessable,
        )


@lru_cache(maxsize=65536)
def _is_about(said: str, disease: str) -> bool:
    return compare(said, disease).relation in _CONSIDERED


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()
