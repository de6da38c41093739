from __future__ import annotations

import random

import pytest

from agentclinic.results.record import Record
from agentclinic.results.turn import Differential, Hypothesis, Source, Turn
from agentclinic.scoring.metrics import Ranking, ranking
from agentclinic.scoring.rows import row_of

TRUTH = "Acute appendicitis"
OTHERS = ["Asthma", "Migraine", "Gout", "Pneumonia", "Psoriasis", "Glaucoma"]


def differential(rank: int | None, source: Source = Source.STATED) -> Differential:
    """Six hypotheses with the truth at that rank."""
    names = list(OTHERS)
    if rank:
        names.insert(rank - 1, TRUTH)
    return Differential(source=source, hypotheses=tuple(Hypothesis(diagnosis=name) for name in names))


def ended(case: int, last: Differential | None, status: str = "diagnosed", *, truth: str | None = TRUTH) -> Record:
    return Record(scenario_id=case, dataset="x", status=status, ground_truth=truth, differential=last)


def score(records: list[Record]) -> Ranking:
    return ranking([row_of(record) for record in records])


def test_ranks_are_those_worked_by_hand() -> None:
    ranks = [1, 1, 2, 4, 6, None]
    found = score([ended(i, differential(rank)) for i, rank in enumerate(ranks)]).by_source["stated"]
    assert {k: (p.count, p.of) for k, p in found.top.items()} == {1: (2, 6), 3: (3, 6), 5: (4, 6)}
    # Reciprocals: twice one, a half, a quarter, a sixth and nothing.
    assert found.mean_reciprocal_rank.value == pytest.approx((2 + 1 / 2 + 1 / 4 + 1 / 6) / 6)
    # Wilson for 3 of 6: 0.5 ± 1.96·sqrt(0.25/6 + 3.84/144) / (1 + 3.84/6) = 0.5 ± 0.3124.
    assert found.top[3].low == pytest.approx(0.1876, abs=5e-5)
    assert found.top[3].high == pytest.approx(0.8124, abs=5e-5)


def test_sources_are_never_pooled() -> None:
    found = score([ended(0, differential(1, Source.POSTERIOR)), ended(1, differential(None, Source.ELICITED))])
    assert {name: entry.top[1].value for name, entry in found.by_source.items()} == {"posterior": 1.0, "elicited": 0.0}


def test_a_differential_asked_for_afterwards_does_not_hide_the_doctors_own() -> None:
    record = ended(0, differential(2, Source.ELICITED))
    record.transcript = [
        Turn(turn=1, role="doctor", text="a", differential=differential(5)),
        Turn(turn=2, role="doctor", text="b", differential=differential(3)),
    ]
    found = score([record]).by_source
    assert found["stated"].mean_reciprocal_rank.value == pytest.approx(1 / 3)
    assert found["elicited"].mean_reciprocal_rank.value == pytest.approx(1 / 2)


def test_what_cannot_be_ranked_is_counted_separately() -> None:
    found = score(
        [
            ended(0, None),
            ended(1, differential(1), "model_failed"),
            ended(2, differential(1), truth=None),
            ended(3, differential(1), "judge_failed"),
        ]
    )
    assert (found.without_differential, found.missing, found.without_truth) == (1, 1, 1)
    assert found.by_source["stated"].records == 1


def test_an_empty_differential_misses_the_truth() -> None:
    found = score([ended(0, Differential(source=Source.STATED, hypotheses=(), other=1.0))])
    assert found.by_source["stated"].top[5].value == 0


def test_the_answer_key_decides_what_names_the_truth() -> None:
    record = ended(0, Differential(source=Source.STATED, hypotheses=(Hypothesis(diagnosis="Hot belly"),)))
    assert score([record]).by_source["stated"].top[1].value == 0
    record.annotations = {"Answer_Key": {"accept": ["hot belly"]}}
    assert score([record]).by_source["stated"].top[1].value == 1


def test_repeats_of_a_case_are_one_cluster() -> None:
    found = score([ended(0, differential(1)), ended(0, differential(2))]).by_source["stated"]
    assert (found.records, found.top[1].clustered) == (2, True)


def test_the_order_of_records_changes_nothing() -> None:
    rng = random.Random(3)
    records = [ended(i // 2, differential(rng.choice([1, 2, 3, 7, None]))) for i in range(40)]
    before = score(records)
    rng.shuffle(records)
    assert score(records) == before


def test_a_record_of_the_original_has_no_ranking() -> None:
    found = score([Record(scenario_id=0, status="diagnosed", correct=True, ground_truth=TRUTH, diagnosis_text=TRUTH)])
    assert found == Ranking(without_differential=1)
