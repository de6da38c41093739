"""What a record's differentials say: the truth's rank and probability, that of the diagnosis, the course by turn."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.results.turn import Differential, Hypothesis, Source
from agentclinic.scoring.verdicts import answer_key, names_truth
from agentclinic.vocabulary.base import OTHER_PRIOR, Knowledge, knowledge
from agentclinic.vocabulary.compare import Relation, compare

Scale = Literal["probability", "score"]
PREFERRED = (Source.POSTERIOR, Source.STATED, Source.ELICITED, Source.PLANNER_POSTERIOR)
"""Which probability is shown if a record has several: the doctor's own before one asked for afterwards, and both before
its planner's."""


def final_differentials(record: Record) -> dict[str, Differential]:
    """The last differential of each source: one asked for afterwards does not hide the doctor's own."""
    given = [turn.differential for turn in record.transcript or ()] + [record.differential]
    return {differential.source.value: differential for differential in given if differential is not None}


def rank_of_truth(differential: Differential, record: Record) -> int | None:
    """Rank of the first hypothesis that names the truth, counted from 1 in the stated order; None if absent."""
    ranked = enumerate(differential.hypotheses, start=1)
    return next((rank for rank, hypothesis in ranked if names_truth(hypothesis.diagnosis, record)), None)


def scale_of(differential: Differential) -> Scale:
    """What the numbers are: a planner's weights are scores in any field; others are probabilities if there are any."""
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
    """The probability given to the diagnosis, and its source; scores by weights are not probabilities."""
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


def distribution(differential: Differential) -> list[float] | None:
    """The probabilities of the hypotheses, then that of `other`; None if the numbers are not a distribution.

    An `other` that is not stated is what the hypotheses leave of 1. Sums off by rounding are scaled to 1.
    """
    stated = [hypothesis.probability for hypothesis in differential.hypotheses]
    given = [p for p in stated if p is not None]
    if differential.source is Source.PLANNER_SCORE or len(given) < len(stated):
        return None
    other = differential.other
    given.append(max(0.0, 1 - math.fsum(given)) if other is None else other)
    total = math.fsum(given)
    return [p / total for p in given] if abs(total - 1) <= _ROUNDING else None


def entropy(differential: Differential) -> float | None:
    """-Σ p·log2 p in bits, with `other` as one class; None if the numbers are not a distribution."""
    given = distribution(differential)
    return None if given is None else max(0.0, -math.fsum(p * math.log2(p) for p in given if p > 0))


# --- proper scores of the truth -------------------------------------------------------------------------------------

FLOOR = 0.001
"""The least probability of the truth in a log score: one certain miss costs 6.9 nats, not infinitely many, and `other`
alone, spread over a hundred diseases, stays above it."""


class TruthScore(NamedTuple):
    """How good the probability of the truth is, and that of the prior alone for the same case; 0 is best."""

    brier: float
    """Of all classes (Brier 1950), from 0 to 2."""
    log: float
    """In nats."""
    prior_brier: float
    prior_log: float
    diseases: int
    """How many are possible: those of the knowledge base, or of a solvable world."""


def truth_score(record: Record) -> TruthScore | None:
    """That of the first final differential of `PREFERRED` that is a distribution; None if there is none.

    None also if a failure that was not the doctor's cut the encounter short.
    """
    given = {} if record.status == "model_failed" else final_differentials(record)
    found = (score_of_truth(given[source], record) for source in PREFERRED if source in given)
    return next((score for score in found if score is not None), None)


def score_of_truth(differential: Differential, record: Record) -> TruthScore | None:
    """The scores of one differential; None if it is not a distribution or if the record does not state the truth.

    Hypotheses that name the truth are one class, and so are those that name the same other disease: listing it twice
    gains nothing. `other` is spread evenly over as many diseases as the knowledge base has, so that saying "other" is
    not an answer.
    """
    given = distribution(differential)
    if given is None or not record.ground_truth:
        return None
    *listed, other = given
    true = [names_truth(hypothesis.diagnosis, record) for hypothesis in differential.hypotheses]
    p = math.fsum(p for p, is_true in zip(listed, true, strict=True) if is_true)
    wrong: defaultdict[str, list[float]] = defaultdict(list)
    for hypothesis, probability, is_true in zip(differential.hypotheses, listed, true, strict=True):
        if not is_true:
            wrong[_class(hypothesis.diagnosis)].append(probability)
    prior = _prior_score(knowledge(), (record.ground_truth, *answer_key(record).accept))
    known = record.regret.turns[0].posterior if record.regret and record.regret.turns else {}
    if record.ground_truth in known:  # the prior of the world: what was known before the first turn
        others = math.fsum(p**2 for name, p in known.items() if name != record.ground_truth)
        prior = _scores(known[record.ground_truth], others, 0.0)
    return TruthScore(
        *_scores(p if any(true) else None, math.fsum(math.fsum(same) ** 2 for same in wrong.values()), other),
        *prior,
        len(known) or len(knowledge().diseases),
    )


@lru_cache(maxsize=65536)
def _class(diagnosis: str) -> str:
    """The disease that a hypothesis names: its id if the knowledge base has it, else its words."""
    disease = knowledge().disease_named(diagnosis)
    return disease.id if disease else _plain(diagnosis)


def _scores(p: float | None, wrong: float, other: float) -> tuple[float, float]:
    """Brier and log score from the truth's probability (None: it is not listed) and the others' Σ p².

    Brier: (1 - p)² + Σ p² of all other classes. Log: -ln max(p, FLOOR).
    """
    unlisted = len(knowledge().diseases)
    spread = other / unlisted
    classes = unlisted if p is not None else unlisted - 1
    p = spread if p is None else p
    return (1 - p) ** 2 + wrong + classes * spread**2, -math.log(max(p, FLOOR))


@lru_cache(maxsize=65536)
def _prior_score(known: Knowledge, truth: tuple[str, ...]) -> tuple[float, float]:
    """The score of how common the diseases are, before anything is known of the patient; all are listed."""
    total = math.fsum(disease.prior for disease in known.diseases.values())
    prior = {key: disease.prior / total * (1 - OTHER_PRIOR) for key, disease in known.diseases.items()}
    true = {disease.id for name in truth if (disease := known.disease_named(name))}
    p = math.fsum(prior[key] for key in true)
    wrong = math.fsum(value**2 for key, value in prior.items() if key not in true)
    return _scores(p if true else None, wrong, OTHER_PRIOR)


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
