"""Counting outcomes: who is wrong, who is missing, and how sure the share is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentclinic.results.record import Record
from agentclinic.scoring.estimates import proportion
from agentclinic.scoring.outcome import Tally, outcome, summarise


def record(status: str = "diagnosed", correct: bool | None = None, **more: Any) -> Record:
    return Record.model_validate({"scenario_id": 0, "status": status, "correct": correct, **more})


RIGHT = record(correct=True, num_turns=4)
WRONG = record(correct=False, num_turns=6)
NO_DIAGNOSIS = record("max_infs_reached", False, num_turns=20)
DOCTOR_FAILED = record("doctor_failed", False, fault={"role": "doctor", "error": "refused"})
MODEL_FAILED = record("model_failed", fault={"role": "patient", "error": "server"})
JUDGE_FAILED = record("judge_failed", fault={"role": "moderator", "error": "timeout"})
ALL = [RIGHT, RIGHT, WRONG, NO_DIAGNOSIS, DOCTOR_FAILED, MODEL_FAILED, MODEL_FAILED, JUDGE_FAILED]


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        # Worked by hand from Wilson's formula with z = 1.959964 (z² = 3.841459):
        (8, 10, 0.490162, 0.943318),  # (0.8 + 0.192073 ± 0.313696) / 1.384146
        (0, 10, 0.0, 0.277533),  # z² / (n + z²)
        (10, 10, 0.722467, 1.0),  # n / (n + z²)
        (0, 1, 0.0, 0.793450),
        (50, 100, 0.403832, 0.596168),
    ],
)
def test_the_wilson_interval_agrees_with_hand_worked_values(count: int, of: int, low: float, high: float) -> None:
    share = proportion(count, of)

    assert share.value == count / of
    assert share.low == pytest.approx(low, abs=2e-6)
    assert share.high == pytest.approx(high, abs=2e-6)


def test_nothing_to_count_has_no_share_and_no_interval() -> None:
    share = proportion(0, 0)

    assert (share.value, share.low, share.high) == (None, None, None)


@given(st.integers(1, 10**6).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_interval_holds_the_share_and_stays_between_0_and_1(pair: tuple[int, int]) -> None:
    count, of = pair
    share = proportion(count, of)

    assert share.value is not None
    assert share.low is not None
    assert share.high is not None
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert share.high - share.low > 0
    mirror = proportion(of - count, of)
    assert mirror.low == pytest.approx(1 - share.high)


def test_each_outcome_is_counted_apart() -> None:
    result = summarise(ALL)

    assert result.outcomes == {
        "diagnosed_right": 2,
        "diagnosed_wrong": 1,
        "doctor_failed": 1,
        "judge_failed": 1,
        "max_infs_reached": 1,
        "model_failed": 2,
    }
    assert result.faults == {"doctor.refused": 1, "moderator.timeout": 1, "patient.server": 2}


def test_accuracy_is_the_seeds_correct_by_presented() -> None:
    assert summarise(ALL).accuracy == 2 / 8


def test_the_doctors_faults_and_silence_are_wrong_and_missing_data_is_left_out() -> None:
    strict = summarise(ALL).accuracy_strict

    assert strict is not None
    assert (strict.count, strict.of) == (2, 5)


def test_the_bounds_take_missing_as_all_wrong_and_all_right() -> None:
    result = summarise(ALL)

    assert (result.if_missing_wrong, result.if_missing_right) == (2 / 8, 5 / 8)


def test_a_diagnosis_nobody_judged_is_missing_and_not_wrong() -> None:
    result = summarise([record(correct=None), RIGHT])

    assert outcome(record(correct=None)) == "judge_failed"
    assert result.accuracy_strict is not None
    assert (result.accuracy_strict.count, result.accuracy_strict.of) == (1, 1)


def test_a_summary_of_nothing_claims_nothing() -> None:
    result = summarise([])

    assert (result.accuracy, result.if_missing_right, result.mean_turns, result.presented) == (None, None, None, 0)


def test_lenient_accuracy_is_told_only_where_the_judge_gives_relations() -> None:
    partly = record(correct=False, judgement={"relation": "broader", "correct_lenient": True})
    strictly = record(correct=True, judgement={"relation": "same", "correct_lenient": True})

    lenient = summarise([partly, strictly, NO_DIAGNOSIS, MODEL_FAILED]).accuracy_lenient

    assert lenient is not None
    assert (lenient.count, lenient.of) == (2, 3)
    assert summarise([partly, WRONG]).accuracy_lenient is None


def test_an_unknown_part_makes_tokens_and_money_unknown_never_less() -> None:
    known = record(
        correct=True,
        usage={"doctor": {"input_tokens": 10, "output_tokens": 2}, "patient": {"input_tokens": 1, "output_tokens": 1}},
        cost_usd={"doctor": 0.5, "patient": 0.0},
    )
    unknown = record(
        correct=True, usage={"doctor": {"input_tokens": None, "output_tokens": 3}}, cost_usd={"doctor": None}
    )
    tally = Tally()
    tally.add(known)
    assert (tally.tokens, tally.spent) == (14, 0.5)
    tally.add(unknown)

    result = tally.summary()

    assert result.usage["doctor"] == {"input_tokens": None, "output_tokens": 5}
    assert result.cost_usd == {"doctor": None, "patient": 0.0}
    assert tally.spent is None
    assert tally.tokens == 17, "a limit counts what is known of"


records = st.lists(st.sampled_from(ALL), max_size=30)


@given(records, st.randoms())
def test_a_tally_kept_along_the_way_equals_the_summary_of_the_list_in_any_order(
    entries: list[Record], mix: Any
) -> None:
    numbered = [entry.model_copy(update={"scenario_id": row}) for row, entry in enumerate(entries)]
    tally = Tally()
    shuffled = list(numbered)
    mix.shuffle(shuffled)
    for entry in shuffled:
        tally.add(entry)

    assert tally.summary() == summarise(numbered)


@given(records)
def test_outcomes_add_up_and_the_bounds_enclose(entries: list[Record]) -> None:
    result = summarise(entries)

    assert sum(result.outcomes.values()) == result.presented == len(entries)
    if entries:
        assert result.accuracy is not None
        assert result.if_missing_wrong is not None
        assert result.if_missing_right is not None
        strict = result.accuracy_strict
        assert strict is not None
        assert result.if_missing_wrong == result.accuracy
        assert strict.value is None or result.if_missing_wrong <= strict.value <= result.if_missing_right


def test_the_example_of_a_fault_is_that_of_the_first_row_whoever_finished_first() -> None:
    def failed(row: int, message: str) -> Record:
        fault = {"role": "patient", "error": "server", "message": message}
        return Record.model_validate({"scenario_id": row, "status": "model_failed", "fault": fault})

    assert summarise([failed(2, "later"), failed(1, "first"), failed(3, "last")]).fault_examples == {
        "patient.server": "first"
    }


def test_a_record_with_only_the_seeds_fields_is_read_and_counted() -> None:
    seeds = {
        "scenario_id": 3,
        "dataset": "MedQA",
        "status": "diagnosed",
        "num_turns": 9,
        "correct": True,
        "ground_truth": "Gout",
        "diagnosis_text": "DIAGNOSIS READY: Gout",
        "doctor_llm": "gpt-4o",
        "max_infs": 20,
        "doctor_hist": "...",
    }
    result = summarise([Record.model_validate(seeds)])

    assert (result.accuracy, result.mean_turns, result.accuracy_lenient) == (1.0, 9.0, None)
