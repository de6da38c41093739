from __future__ import annotations

import random
from typing import Any

import pytest

from agentclinic.results.record import Record
from agentclinic.results.turn import Differential, Hypothesis, Source, Turn
from agentclinic.scoring.metrics import Harm, harm
from agentclinic.scoring.rows import row_of
from agentclinic.scoring.verdicts import missed


def ended(case: int, level: Any, right: bool | None, status: str = "diagnosed") -> Record:
    return Record(scenario_id=case, dataset="x", status=status, correct=right, annotations={"Harm_If_Missed": level})


def stating(*names: str) -> Differential:
    return Differential(source=Source.STATED, hypotheses=tuple(Hypothesis(diagnosis=name) for name in names))


def thinking(case: int, *by_turn: Differential | None, said: str = "Gout") -> Record:
    """A doctor with these differentials, on a case in which two diseases must not be missed."""
    return Record(
        scenario_id=case,
        dataset="x",
        status="diagnosed",
        correct=True,
        diagnosis_text=said,
        differential=by_turn[-1],
        transcript=[
            Turn(turn=turn, role="doctor", text="?", differential=d) for turn, d in enumerate(by_turn, start=1)
        ],
        annotations={"Must_Not_Miss": [{"name": "Septic arthritis"}, {"name": "Osteomyelitis", "excluded_by": "MRI"}]},
    )


def score(records: list[Record]) -> Harm:
    return harm([row_of(record) for record in records])


def test_the_loss_weighs_errors_by_harm() -> None:
    found = score(
        [
            ended(0, 4, True),
            ended(1, 3, False),
            ended(2, 1, False, "max_infs_reached"),
            ended(3, 0, False),
            ended(4, 4, None, "judge_failed"),
            ended(5, None, False),
        ]
    )
    assert found.weighted_loss.value == pytest.approx((3 + 1) / (4 + 3 + 1))
    assert (found.stated, found.not_stated, found.missing) == (4, 1, 1)


def test_wrong_diagnoses_on_serious_cases_are_counted() -> None:
    found = score(
        [
            ended(0, 4, True),
            ended(1, 3, False),
            ended(2, 4, False, "max_infs_reached"),
            ended(3, 2, False),
            ended(4, 4, None, "model_failed"),
        ]
    )
    assert (found.serious_wrong.count, found.serious_wrong.of) == (1, 3)


@pytest.mark.parametrize("level", [None, "high", True, -1, 5, [3]])
def test_a_level_off_the_scale_counts_as_not_stated(level: Any) -> None:
    found = score([ended(0, level, False)])
    assert (found.not_stated, found.weighted_loss.value) == (1, None)


def test_harmless_cases_alone_give_no_loss() -> None:
    assert score([ended(0, 0, False)]).weighted_loss.value is None


def test_a_disease_in_any_differential_was_considered() -> None:
    found = score(
        [
            thinking(0, stating("Gout", "Septic arthritis"), stating("Gout")),
            thinking(1, stating("Gout"), stating("Osteomyelitis", "Septic arthritis")),
            thinking(2, stating("Gout"), stating("Pseudogout")),
        ]
    )
    assert found.must_not_miss_missed.value == pytest.approx((1 + 0 + 2) / 6)
    assert (found.encounters_with_a_miss.count, found.encounters_with_a_miss.of) == (2, 3)


def test_the_diagnosis_itself_was_considered() -> None:
    assert missed(thinking(0, stating("Gout"), said="Septic arthritis")) == ("Osteomyelitis",)


def test_without_differentials_it_is_unknown_what_was_considered() -> None:
    found = score([thinking(0, None, None)])
    assert missed(thinking(0, None)) is None
    assert (found.not_assessable, found.must_not_miss_missed.value) == (1, None)
    assert found.encounters_with_a_miss.value is None


@pytest.mark.parametrize("annotations", [None, {}, {"Must_Not_Miss": "sepsis"}, {"Must_Not_Miss": [3, {"name": 4}]}])
def test_cases_that_name_nothing_are_not_assessed(annotations: dict[str, Any] | None) -> None:
    record = thinking(0, stating("Gout"))
    record.annotations = annotations
    found = score([record])
    assert (found.not_assessable, found.encounters_with_a_miss.of) == (0, 0)


def test_a_record_of_the_original_gives_null() -> None:
    found = score([Record(scenario_id=0, status="diagnosed", correct=False, ground_truth="Gout")])
    assert found.weighted_loss.value is None
    assert found.serious_wrong.value is None
    assert found.must_not_miss_missed.value is None


def test_the_order_of_records_changes_nothing() -> None:
    rng = random.Random(2)
    records = [ended(i // 2, rng.randrange(5), rng.random() < 0.5) for i in range(30)]
    before = score(records)
    rng.shuffle(records)
    assert score(records) == before
    loss = before.weighted_loss
    assert loss.low is not None
    assert loss.value is not None
    assert loss.high is not None
    assert 0 <= loss.low <= loss.value <= loss.high <= 1


def test_an_answer_that_could_not_be_read_is_no_error() -> None:
    read = [ended(0, 4, True), ended(1, 3, False)]
    found = score([*read, ended(2, 4, None, "not_readable"), ended(3, None, None, "not_readable")])
    assert (found.weighted_loss, found.serious_wrong) == (score(read).weighted_loss, score(read).serious_wrong)
    assert (found.stated, found.not_stated, found.missing, found.not_readable) == (2, 0, 0, 2)
