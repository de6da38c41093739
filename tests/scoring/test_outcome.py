"""Counting outcomes: what is wrong, what is missing, and how certain the share is."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentclinic.results.record import Record
from agentclinic.scoring.outcome import RunningSummary, nothing_judged, outcome, summarise


def record(status: str = "diagnosed", correct: bool | None = None, **more: Any) -> Record:
    return Record.model_validate({"scenario_id": 0, "status": status, "correct": correct, **more})


RIGHT = record(correct=True, num_turns=4)
WRONG = record(correct=False, num_turns=6)
NO_DIAGNOSIS = record("max_infs_reached", False, num_turns=20)
DOCTOR_FAILED = record("doctor_failed", False, fault={"role": "doctor", "error": "refused"})
MODEL_FAILED = record("model_failed", fault={"role": "patient", "error": "server"})
JUDGE_FAILED = record("judge_failed", fault={"role": "moderator", "error": "timeout"})
UNREAD = record("not_readable", num_turns=5, judgement={"reason": "cannot read 'zzyzx'"})
ALL = [RIGHT, RIGHT, WRONG, NO_DIAGNOSIS, DOCTOR_FAILED, MODEL_FAILED, MODEL_FAILED, JUDGE_FAILED]


def cases(*records: Record) -> list[Record]:
    """The same outcomes, each of a case of its own."""
    return [one.model_copy(update={"scenario_id": row}) for row, one in enumerate(records)]


def test_each_outcome_is_counted_separately() -> None:
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


def test_accuracy_is_correct_by_presented_as_in_the_original() -> None:
    assert summarise(ALL).accuracy == 2 / 8


def test_the_doctors_faults_and_missing_diagnoses_are_wrong_and_missing_data_is_left_out() -> None:
    strict = summarise(ALL).accuracy_strict

    assert strict is not None
    assert (strict.count, strict.of) == (2, 5)


def test_the_bounds_take_missing_as_all_wrong_and_all_right() -> None:
    result = summarise(ALL)

    assert (result.if_missing_wrong, result.if_missing_right) == (2 / 8, 5 / 8)


def test_a_diagnosis_without_a_verdict_is_missing_and_not_wrong() -> None:
    result = summarise([record(correct=None), RIGHT])

    assert outcome(record(correct=None)) == "judge_failed"
    assert result.accuracy_strict is not None
    assert (result.accuracy_strict.count, result.accuracy_strict.of) == (1, 1)


def test_a_summary_of_nothing_claims_nothing() -> None:
    result = summarise([])

    assert (result.accuracy, result.if_missing_right, result.mean_turns, result.presented) == (None, None, None, 0)


def test_lenient_accuracy_needs_a_judge_that_gives_relations() -> None:
    partly = record(correct=False, judgement={"relation": "broader", "correct_lenient": True})
    strictly = record(correct=True, judgement={"relation": "same", "correct_lenient": True})

    lenient = summarise([partly, strictly, NO_DIAGNOSIS, MODEL_FAILED]).accuracy_lenient

    assert lenient is not None
    assert (lenient.count, lenient.of) == (2, 3)
    assert summarise([partly, WRONG]).accuracy_lenient is None


def test_an_unknown_part_makes_tokens_and_cost_unknown_never_less() -> None:
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


records = st.lists(st.sampled_from([*ALL, UNREAD]), max_size=30)


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
def test_outcomes_add_up_and_the_bounds_enclose_the_accuracy(entries: list[Record]) -> None:
    result = summarise(entries)

    assert sum(result.outcomes.values()) == result.presented == len(entries)
    if entries:
        assert result.accuracy is not None
        assert result.if_missing_wrong is not None
        assert result.if_missing_right is not None
        strict = result.accuracy_strict
        assert strict is not None
        assert result.if_missing_wrong == result.accuracy
        most = result.accuracy_at_most
        assert (strict.value is None) == (most is None)
        if strict.value is not None and most is not None:
            assert result.if_missing_wrong <= strict.value <= most <= result.if_missing_right


def test_the_example_of_a_fault_is_that_of_the_first_row_whatever_finished_first() -> None:
    def failed(row: int, message: str) -> Record:
        fault = {"role": "patient", "error": "server", "message": message}
        return Record.model_validate({"scenario_id": row, "status": "model_failed", "fault": fault})

    assert summarise([failed(2, "later"), failed(1, "first"), failed(3, "last")]).fault_examples == {
        "patient.server": "first"
    }


def test_a_record_with_only_the_originals_fields_is_read_and_counted() -> None:
    original = {
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
    result = summarise([Record.model_validate(original)])

    assert (result.accuracy, result.mean_turns, result.accuracy_lenient) == (1.0, 9.0, None)


def test_an_unread_answer_is_not_right_and_the_headline_says_what_it_is_at_most() -> None:
    result = summarise(cases(*[RIGHT] * 31, *[WRONG] * 28, *[UNREAD] * 5))
    strict = result.accuracy_strict

    assert outcome(UNREAD) == "not_readable"
    assert strict is not None
    assert (strict.count, strict.of, result.not_readable, result.missing) == (31, 64, 5, 0)
    assert result.accuracy_at_most == 36 / 64
    assert result.headline() == "48.4% (36.6% to 60.4%; 31 of 64), at most 56.2%: 5 of 64 not readable"
    assert "; judged" not in result.headline()
    assert summarise(cases(RIGHT, WRONG)).headline() == "50.0% (9.5% to 90.5%; 1 of 2)"


def test_the_bounds_with_missing_data_hold_for_unread_answers_too() -> None:
    result = summarise([RIGHT, WRONG, UNREAD, JUDGE_FAILED])

    assert (result.if_missing_wrong, result.accuracy_at_most, result.if_missing_right) == (1 / 4, 2 / 3, 3 / 4)


def test_what_to_do_about_unread_answers_is_said_only_if_there_are_any() -> None:
    (said,) = summarise([RIGHT, UNREAD]).unread_advice("runs/x")

    assert said.startswith("1 answer could not be read. Unread answers count as not right, in the interval too.")
    assert "agentclinic judge label runs/x --unread" in said
    assert "agentclinic regrade runs/x --moderator-llm MODEL" in said
    assert summarise([UNREAD, UNREAD]).unread_advice()[0].startswith("No answer could be read.")
    assert summarise([RIGHT, WRONG, NO_DIAGNOSIS]).unread_advice() == []


def test_a_run_of_unread_answers_has_been_judged() -> None:
    assert not nothing_judged(summarise([UNREAD, MODEL_FAILED]))
    assert nothing_judged(summarise([MODEL_FAILED]))


def test_a_doctor_that_judges_itself_is_named_unless_code_or_another_endpoint_decided() -> None:
    def judged(by: str | None, **models: str) -> Record:
        both = {"doctor_llm": "large", "moderator_llm": "large", **models}
        return record(correct=True, judgement={"correct": True, "decided_by": by}, **both)

    own = "; judged by the doctor's own model"
    assert summarise([judged(None)]).headline().endswith(own)
    assert summarise([judged("code"), judged("model")]).headline().endswith(own)
    for other in (
        [judged("code"), judged("person")],
        [judged("model", moderator_llm="small")],
        [judged("model", doctor_llm="builtin", moderator_llm="builtin")],
        [NO_DIAGNOSIS.model_copy(update={"doctor_llm": "large", "moderator_llm": "large"})],
    ):
        assert not summarise(other).own_judge
    elsewhere = RunningSummary(judge_elsewhere=True)
    elsewhere.add(judged("model"))
    assert not elsewhere.summary().own_judge


def test_verdicts_are_counted_by_who_decided() -> None:
    said = [record(correct=True, judgement={"correct": True, "decided_by": by}) for by in ("code", "code", "model")]

    assert summarise([*said, RIGHT, UNREAD]).decided_by == {"code": 2, "model": 1}
