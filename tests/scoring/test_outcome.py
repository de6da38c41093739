"""Counting outcomes: who is wrong, who is missing, and how sure the share is."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentclinic.results.record import Record
from agentclinic.scoring.outcome import RunningSummary, outcome, summarise


def record(status: str = "diagnosed", correct: bool | None = None, **more: Any) -> Record:
    return Record.model_validate({"scenario_id": 0, "status": status, "correct": correct, **more})


RIGHT = record(correct=True, num_turns=4)
WRONG = record(correct=False, num_turns=6)
NO_DIAGNOSIS = record("max_infs_reached", False, num_turns=20)
DOCTOR_FAILED = record("doctor_failed", False, fault={"role": "doctor", "error": "refused"})
MODEL_FAILED = record("model_failed", fault={"role": "patient", "error": "server"})
JUDGE_FAILED = record("judge_failed", fault={"role": "moderator", "error": "timeout"})
ALL = [RIGHT, RIGHT, WRONG, NO_DIAGNOSIS, DOCTOR_FAILED, MODEL_FAILED, MODEL_FAILED, JUDGE_FAILED]


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
    running = RunningSummary()
    running.add(known)
    assert (running.tokens, running.spent) == (14, 0.5)
    running.add(unknown)

    result = running.summary()

    assert result.usage["doctor"] == {"input_tokens": None, "output_tokens": 5}
    assert result.cost_usd == {"doctor": None, "patient": 0.0}
    assert running.spent is None
    assert running.tokens == 17, "a limit counts what is known of"


records = st.lists(st.sampled_from(ALL), max_size=30)


@given(records, st.randoms())
def test_a_running_summary_equals_the_summary_of_the_list_in_any_order(entries: list[Record], mix: Any) -> None:
    numbered = [entry.model_copy(update={"scenario_id": row}) for row, entry in enumerate(entries)]
    running = RunningSummary()
    shuffled = list(numbered)
    mix.shuffle(shuffled)
    for entry in shuffled:
        running.add(entry)

    assert running.summary() == summarise(numbered)


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
