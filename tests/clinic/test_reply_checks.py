"""What code checks in a patient's words: deliberate errors of a capable writer, and faultless replies."""

from __future__ import annotations

from typing import Any

import pytest
from benchmark_support import load_benchmark

from agentclinic.cases.model import Fact, Section
from agentclinic.clinic.reply_checks import Told, problems

B = load_benchmark("reply_checks")
ROWS = B.read_rows(*B.LABELS)
MISSED = {
    "It comes and goes.",  # for a pain that has not let up: no word of it is in the fact
    "No, but her neck has a big lump on the side.",  # not in the lexicon
}
REJECTED = {
    "Yeah, it's looked like strong tea these last two days. I blamed the heat.",  # told only if asked directly
}
pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.error}: {row.answer['reply'][:50]}")
async def test_errors_are_kept_from_the_doctor_and_faultless_words_are_not(row: Any) -> None:
    said, turn = row.answer["reply"], await B.played(row)
    if row.error:
        assert B.rejected(turn) or said in MISSED
    else:
        assert not B.rejected(turn) or said in REJECTED, turn.notes


def test_there_are_enough_labeled_replies() -> None:
    errors = [row for row in ROWS if row.error]
    assert len(errors) >= 60
    assert len(ROWS) - len(errors) >= 60
    assert {row.error for row in errors} == {"number", "disease", "polarity", "added", "withheld", "result"}


def fact(text: str, **more: object) -> Fact:
    return Fact("History", Section.HISTORY, ("History",), text, **more)  # type: ignore[arg-type]


PAIN = fact("Knee pain for two weeks")


def kinds(said: str, told: Told, question: str = "How is the knee?") -> list[str]:
    return [problem.kind for problem in problems(said, told, question)]


FAINT = Told((fact("Passed out while playing basketball"),), ("I passed out while playing basketball.",))


@pytest.mark.parametrize(
    ("said", "question", "slips"),
    [
        ("Oh, that sounds like a tough day for your boy. Did he talk to anyone?", "What happened?", ["role"]),
        ("I'm sorry, but I cannot diagnose the patient. Can you give me details?", "What happened?", ["role"]),
        ("I’m the patient, and I passed out on the court.", "Who are you?", []),
        ("As an AI, I have no symptoms.", "What happened?", ["role"]),
        ("Good to hear. Can you tell me more about your dizziness?", "What happened?", ["role"]),
        ("Can you tell me what happened to you?", "Hello. Can you tell me what happened to you?", ["role"]),
        ("What happened to me?", "Can you tell me what happened to you?", ["untold"]),
        ("Oh, that sounds like a very long day for everyone.", "What happened?", ["untold"]),
        ("I just keeled over on the court during basketball.", "What happened?", []),
        ("I fainted, out of the blue, just like that.", "What happened?", []),
        ("Yes, doctor.", "Did anything happen to you?", ["untold"]),
        ("I understand.", "Did anything happen to you?", ["untold"]),
        ("Yes, I did.", "Did you pass out while playing basketball?", []),
    ],
)
def test_the_patient_speaks_as_the_patient_and_tells_what_it_is_asked(
    said: str, question: str, slips: list[str]
) -> None:
    assert kinds(said, FAINT, question) == slips


def test_words_of_the_chart_are_the_patients_own() -> None:
    told = Told((fact("Nurses the patient next door"),))
    assert kinds("I look after the patient next door as a nurse.", told, "What do you do?") == []


@pytest.mark.parametrize(
    ("said", "slips"),
    [
        ("It's hurt for two weeks.", []),
        ("It's hurt for fourteen days.", []),
        ("It's hurt for a couple of weeks.", []),
        ("It's hurt for two days.", ["number"]),
        ("It's hurt for a couple of months.", ["number"]),
        ("It's hurt for half a year.", ["number"]),
        ("It's hurt for twenty-two weeks.", ["number"]),
    ],
)
def test_durations_are_compared_whatever_words_they_are_in(said: str, slips: list[str]) -> None:
    assert kinds(said, Told((PAIN,))) == slips


@pytest.mark.parametrize(
    ("said", "slips"),
    [
        ("I've lost 5 kilos.", []),
        ("I've lost eleven pounds.", []),
        ("I've lost five pounds.", ["number"]),
        ("I've lost 5 grams.", ["number"]),
        ("I've lost a dozen kilos.", ["number"]),
    ],
)
def test_amounts_are_compared_with_their_units(said: str, slips: list[str]) -> None:
    assert kinds(said, Told((fact("Loss of 5 kg"),)), "Any weight loss?") == slips


def test_what_was_told_before_may_be_mentioned_beside_an_answer_but_not_after_a_denial() -> None:
    nausea = fact("Nausea")
    assert kinds("The knee hurts, and like I said, I feel sick.", Told((PAIN,), before=(nausea,))) == []
    after_denial = Told(before=(nausea,), denied=("fever",), silent=True)
    assert kinds("No fever. But I feel sick.", after_denial, "Any fever?") == ["added"]


def test_a_no_is_not_said_of_what_is_not_known() -> None:
    unknown = Told(denied=("fever",), silent=True, open=True)
    assert kinds("No, no fever.", unknown, "Any fever?") == ["polarity"]
    assert kinds("No idea, I'm not sure.", unknown, "Any fever?") == []
