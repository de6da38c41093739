"""Questions that an author says a fact answers."""

from __future__ import annotations

import pytest

from agentclinic.cases.matcher import asked_of_patient
from agentclinic.cases.matcher.authored import likeness
from agentclinic.cases.model import Fact, Facts, Section


def fact(path: str, text: str, says: str, *asked: str, section: Section = Section.HISTORY) -> Fact:
    return Fact(path, section, (), text, denied=text.startswith("No "), says=says, asked=asked)


FACTS = Facts(
    (
        fact("pain", "Pain in the chest for two days", "My chest has hurt for two days.", "How long has it hurt?"),
        fact("waves", "Pain constant", "It never lets up.", "Is it steady or in waves?", "Does it come and go?"),
        fact("bad", "Pain 6 out of 10", "I'd say a 6 out of 10.", "How bad is it?", "How would you rate it?"),
        fact("help", "Daughter shops", "My daughter shops for me.", "Who helps you?", section=Section.SOCIAL),
        fact("alone", "Lives alone", "I live by myself.", "Do you live alone?", section=Section.SOCIAL),
    )
)


def told(question: str) -> list[str]:
    return [fact.path for topic in asked_of_patient(question, FACTS) for fact in topic.facts]


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("Is it steady, or does it come in waves?", ["waves"]),
        ("How bad is it at the moment?", ["bad"]),
        ("And who helps you at home?", ["help"]),
        ("Do you live alone, and who helps you?", ["alone", "help"]),
        ("How bad is it? Does it come and go?", ["bad", "waves"]),
    ],
)
def test_a_question_like_one_of_the_authors_gets_its_fact(question: str, paths: list[str]) -> None:
    assert sorted(told(question)) == sorted(paths)


def test_the_same_question_is_wholly_like_its_own_and_one_about_something_else_is_not() -> None:
    found = likeness(["Who helps you?", "Any rash on the legs?"], FACTS)
    assert found is not None
    assert found[3, 0] == pytest.approx(1)
    assert found[:, 1].max() == 0


def test_without_authored_questions_there_is_no_likeness() -> None:
    assert likeness(["Who helps you?"], Facts((Fact("a", Section.HISTORY, (), "Pain"),))) is None


def test_the_order_of_the_facts_does_not_matter() -> None:
    turned = Facts(reversed(FACTS))
    first, second = likeness(["Who helps you?"], FACTS), likeness(["Who helps you?"], turned)
    assert first is not None
    assert second is not None
    assert first[:, 0].tolist() == second[::-1, 0].tolist()
