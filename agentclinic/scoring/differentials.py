"""What a record's differentials say: the rank of the truth, the number given to the diagnosis, the course by turn."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.results.turn import Differential, Hypothesis, Source
from agentclinic.scoring.verdicts import names_truth
from agentclinic.vocabulary.compare import Relation, compare

Scale = Literal["probability", "score"]
PREFERRED = (Source.POSTERIOR, Source.STATED, Source.ELICITED)
"""Which probability is shown if a record has several: the doctor's own before one asked for afterwards."""


def final_differentials(record: Record) -> dict[str, Differential]:
    """The last differential of each source: one asked for afterwards does not hide the doctor's own."""
    given = [turn.differential for turn in record.transcript or ()] + [record.differential]
    return {differential.source.value: differential for differential in given if differential is not None}


def rank_of_truth(differential: Differential, record: Record) -> int | None:
    """Rank of the first hypothesis that names the truth, counted from 1 in the stated order; None if absent."""
    ranked = enumerate(differential.hypotheses, start=1)
    return next((rank for rank, hypothesis in ranked if names_truth(hypothesis.diagnosis, record)), None)


def scale_of(differential: Differential) -> Scale:
    """What the numbers are: a planner's are scores whatever the field; others are probabilities if there are any."""
    if differential.source is Source.PLANNER_SCORE:
        return "score"
    hypotheses = differential.hypotheses
    scores_only = all(h.probability is None for h in hypotheses) and any(h.score is not None for h in hypotheses)
    return "score" if scores_only else "probability"


def number_of(hypothesis: Hypothesis, differential: Differential) -> float | None:
    """The hypothesis's number on its differential's scale; None if it has none."""
    value = hypothesis.probability
    if scale_of(differential) == "score" and hypothesis.score is not None:
        value = hypothesis.score
    return value if value is not None and math.isfinite(value) else None


def committed(record: Record, differential: Differential) -> Hypothesis | None:
    """The hypothesis of a differential that the diagnosis names; None if there is none."""
    diagnosis = diagnosis_of(record)
    if not diagnosis:
        return None
    hypotheses = differential.hypotheses
    plain = _plain(diagnosis)
    for hypothesis in hypotheses:
        if _plain(hypothesis.diagnosis) == plain:
            return hypothesis
    return next((h for h in hypotheses if _same_disease(diagnosis, h.diagnosis)), None)


def confidence(record: Record) -> tuple[float | None, str | None]:
    """The probability given to the diagnosis, and its source; planner scores are not probabilities."""
    given = final_differentials(record)
    for source in PREFERRED:
        differential = given.get(source.value)
        if differential is None or scale_of(differential) != "probability":
            continue
        hypothesis = committed(record, differential)
        number = number_of(hypothesis, differential) if hypothesis else None
        if number is not None:
            return number, source.value
    return None, None


def _plain(name: str) -> str:
    return " ".join(name.casefold().split()).strip(" .")


@lru_cache(maxsize=65536)
def _same_disease(diagnosis: str, hypothesis: str) -> bool:
    return compare(diagnosis, hypothesis).relation is Relation.SAME


# Ten hypotheses rounded to whole percents add up to 1 within 0.05; anything further off is not a distribution.
_ROUNDING = 0.05


def entropy(differential: Differential) -> float | None:
    """-Σ p·log2 p in bits, with `other` as one class; None if the numbers are not a distribution.

    An `other` that is not stated is what the hypotheses leave of 1. Sums off by rounding are scaled to 1.
    """
    stated = [hypothesis.probability for hypothesis in differential.hypotheses]
    given = [p for p in stated if p is not None]
    if differential.source is Source.PLANNER_SCORE or len(given) < len(stated):
        return None
    other = differential.other
    given.append(max(0.0, 1 - math.fsum(given)) if other is None else other)
    total = math.fsum(given)
    if abs(total - 1) > _ROUNDING:
        return None
    return max(0.0, -math.fsum(p / total * math.log2(p / total) for p in given if p > 0))


class Course(NamedTuple):
    """How the truth fared in the differentials of one source."""

    appeared: int | None
    """First turn that lists it; turn 1 is before any answer."""
    led: int | None
    """First turn in which it is at the top."""
    dropped: bool
    """It led at some point but not in the last differential."""


def course(stated: Sequence[tuple[int, Differential]], record: Record) -> Course:
    """Follow the truth through differentials by turn."""
    true = {name: names_truth(name, record) for name in {h.diagnosis for _, d in stated for h in d.hypotheses}}
    listed = [turn for turn, d in stated if any(true[h.diagnosis] for h in d.hypotheses)]
    leading = [turn for turn, d in stated if d.hypotheses and true[d.hypotheses[0].diagnosis]]
    led = leading[0] if leading else None
    return Course(listed[0] if listed else None, led, led is not None and leading[-1] != stated[-1][0])


def differentials(record: Record) -> dict[str, list[tuple[int, Differential]]]:
    """The differentials of the transcript by source, each with its turn."""
    by_source: dict[str, list[tuple[int, Differential]]] = {}
    for turn in record.transcript or ():
        if turn.differential is not None:
            by_source.setdefault(turn.differential.source.value, []).append((turn.turn, turn.differential))
    return by_source


def entropy_by_turn(stated: Sequence[tuple[int, Differential]]) -> array[float]:
    """Entropy of each turn from 1 to the last stated; not a number before the first."""
    values: array[float] = array("d")
    for turn, differential in stated:
        bits = entropy(differential)
        if bits is not None and turn > len(values):
            values.extend([values[-1] if values else math.nan] * (turn - 1 - len(values)))
            values.append(bits)
    return values
