"""What the patient says to a question that a plain "no" answers."""

from __future__ import annotations

import pytest

from agentclinic.cases.registry import load_cases
from agentclinic.clinic.answers import SET_PHRASES, matched, payload_of, worded
from agentclinic.clinic.short_answers import SHORT, short_no


@pytest.mark.parametrize(
    ("clause", "answer"),
    [
        ("are you limping", "No, I'm not."),
        ("and did you hurt it", "No, I didn't."),
        ("have you been abroad", "No, I haven't."),
        ("Were you drinking", "No, I wasn't."),
        ("is he limping", "No, he isn't."),
        ("does it spread to the neck", "No, it doesn't."),
        ("has your face been droopy", "No, it hasn't."),
        ("do your eyes hurt", "No, they don't."),
        ("is that worse at night", "No, it isn't."),
        ("does it go away if you cover one eye", "Not that I've noticed."),
        ("is there any blood", "No, there isn't."),
        ("does a cold cloth help", "No, it doesn't."),
        ("does anyone at home itch", "No, nobody."),
        ("does anything ease it", "No, nothing."),
    ],
)
def test_a_yes_or_no_question_gets_the_answer_that_fits_its_verb(clause: str, answer: str) -> None:
    assert short_no(clause) == answer
    assert answer in SHORT
    assert answer in SET_PHRASES


@pytest.mark.parametrize(
    "clause",
    [
        "any fever",
        "how long does it last",
        "worse at night",
        "has your husband been ill",
        "do you or your wife smoke",
        "",
    ],
)
def test_what_is_no_such_question_or_is_about_others_gets_none(clause: str) -> None:
    assert not short_no(clause)


def replied(name: str, question: str) -> str:
    (case,) = (case for case in load_cases("OpenOSCE", {}) if case.name == name)
    return worded(matched(payload_of(case, question)))


@pytest.mark.parametrize(
    ("name", "question", "says"),
    [
        ("osce-d17", "How long has the knee been swollen, and did you hurt it?", "No, I didn't."),
        (
            "osce-b11",
            "Are your periods regular or heavy, or have they stopped, and any hot flushes?",
            "No hot flushes.",
        ),
        ("osce-d15", "Has he had any tick bites, rash or cold sores?", "No tick bites or cold sores."),
    ],
)
def test_beside_other_answers_a_denial_says_what_it_denies(name: str, question: str, says: str) -> None:
    reply = replied(name, question)
    assert says in reply
    assert "nothing like that" not in reply


def test_beside_what_is_kept_back_nothing_is_denied_without_a_name() -> None:
    reply = replied("osce-d19", "Do you have any pain in your testicles, your groin or your tongue?")
    assert "nothing like that" not in reply
    assert reply.endswith("As for the rest, I'd rather not go into that right now.")


@pytest.mark.parametrize(
    ("name", "question", "says"),
    [
        ("osce-d17", "How old is your mother?", "I'd have to work that out."),
        ("osce-t07", "Where did you grow up?", "Is that important, doctor?"),
        ("osce-b05", "What do you usually eat?", "I don't really keep track of meals."),
        ("osce-d17", "How much coffee do you drink?", "I couldn't put a number on it."),
    ],
)
def test_what_every_patient_knows_is_neither_made_up_nor_unknown(name: str, question: str, says: str) -> None:
    assert replied(name, question) == says
    assert says in SET_PHRASES


@pytest.mark.parametrize(
    ("name", "question", "unsaid"),
    [
        (
            "osce-b21",
            "What illnesses have you had in the past, for instance with your heart, and have you ever had an operation"
            " on your belly?",
            "nothing like that",
        ),
        (
            "osce-d19",
            "This is a question I ask every boy with belly pain, and there is nothing to be embarrassed about: do you"
            " have any swelling in your groin?",
            "My belly hurts",
        ),
        ("osce-c24", "When you say you can't take much more, have you had thoughts of harming yourself?", "I pace up"),
        ("osce-c24", "How is your eyesight, during and between the attacks?", "I pace up"),
        (
            "osce-t09",
            "You said your flatmate gets the same headaches in the back room. What is in that room, is there a gas"
            " boiler, heater or stove, and do your headaches go away when you are out of the flat?",
            "heater or",
        ),
        ("osce-a04", "Tell me a little more about that left leg, please.", "left side of my chest"),
        (
            "osce-a21",
            "You mentioned a squeezing in your chest when practice gets hard. Can you tell me more about that?",
            "I passed out",
        ),
    ],
)
def test_what_is_not_asked_is_neither_told_nor_denied(name: str, question: str, unsaid: str) -> None:
    assert unsaid not in replied(name, question)
