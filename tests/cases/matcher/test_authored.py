"""Questions that an author says a fact answers."""

from __future__ import annotations

import pytest

from agentclinic.cases.matcher import Asked, asked_of_patient
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


STORY = Facts(
    (
        fact("back", "Pain to the back", "It goes through to my back.", "Does the pain go anywhere else?"),
        fact("abroad", "No travel", "I haven't been abroad.", "Have you traveled anywhere?", section=Section.SOCIAL),
        fact("gas", "Passes gas", "Yes, I've passed gas.", "Have you passed any gas?"),
        fact("mother", "Mother had gallstones", "My mother had gallstones.", "Any gallstones in the family?",
             section=Section.FAMILY),
        fact("weight", "Lost 6 kg", "I've lost 6 kilos.", "Have you lost weight?", "How much weight have you lost?"),
        fact("beer", "Beer at weekends", "A beer on weekends.", "How much do you drink?", section=Section.SOCIAL),
        fact("same", "No change of medicines", "My pills are the same.", "Any new medicines?", section=Section.DRUGS),
        fact("pill", "Takes enalapril", "I take enalapril.", "Which medicines do you take?", section=Section.DRUGS),
        fact("appetite", "Poor appetite", "I have little appetite.", "How is your appetite?"),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("Have you been able to pass wind?", ["gas"]),  # another word for the same thing
        ("Is the pain bad? Does it go anywhere?", ["back"]),  # "it" is the pain
        ("Have you lost weight - how much?", ["weight"]),  # and "how much" is not asked of beer
        ("Do you have gallstones?", []),  # the family's are not the patient's
        ("Have you started any new medicines?", ["same"]),
        ("So, to be clear: which medicines do you take?", ["pill"]),
        ("How are you coping, and is the appetite gone?", ["appetite"]),
    ],
)
def test_a_part_is_answered_by_what_it_asks_in_context(question: str, paths: list[str]) -> None:
    told = dict.fromkeys(fact.path for topic in asked_of_patient(question, STORY) for fact in topic.facts)
    assert list(told) == paths


def test_a_part_that_nothing_is_like_is_denied_beside_an_answer() -> None:
    topics = asked_of_patient("How is your appetite, and are your ankles swollen?", STORY)
    assert [(topic.kind, bool(topic.facts)) for topic in topics] == [(Asked.SYMPTOM, True), (Asked.SYMPTOM, False)]
    assert topics[1].concepts
