from __future__ import annotations

import random
from typing import Any

import pytest

from agentclinic.results.record import Record
from agentclinic.scoring.metrics import Harm, harm
from agentclinic.scoring.rows import row_of


def ended(case: int, level: Any, right: bool | None, status: str = "diagnosed") -> Record:
    return Record(scenario_id=case, dataset="x", status=status, correct=right, annotations={"Harm_If_Missed": level})


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


def test_a_record_of_the_original_gives_null() -> None:
    found = score([Record(scenario_id=0, status="diagnosed", correct=False, ground_truth="Gout")])
    assert found.weighted_loss.value is None
    assert found.serious_wrong.value is None
    assert found.excluded.value is None


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
