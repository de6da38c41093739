"""How a question is split and answered where the author says which questions facts answer."""

from __future__ import annotations

import numpy as np
import pytest

from agentclinic.cases.matcher import Asked, asked_of_patient
from agentclinic.cases.matcher.spoken import asked_directly, asks
from agentclinic.cases.matcher.talk import small_talk
from agentclinic.cases.matcher.vectors import index_of, vector
from agentclinic.cases.model import Fact, Facts, Section


def fact(path: str, text: str, *asked: str, section: Section = Section.HISTORY) -> Fact:
    return Fact(path, section, (), text, denied=text.startswith("No "), says=f"{text}.", asked=asked)


CHART = Facts(
    (
        fact("stiff", "Hands stiff for two hours", "Are your hands stiff?", "How long does the stiffness last?"),
        fact("use", "Stiffness eases with use", "Does moving help the stiffness?", "Is it better with use?"),
        fact("smoke", "Smoked for 30 years", "Do you smoke?", "How long have you smoked?", section=Section.SOCIAL),
        fact("aunt", "Aunt had arthritis", "Any arthritis in the family?", section=Section.FAMILY),
        fact("skin", "No psoriasis in the family", "Does psoriasis run in the family?", section=Section.FAMILY),
        fact("sugar", "No diabetes", "Do you have diabetes?", section=Section.PAST),
        fact("mouth", "Can open the mouth", "Is it hard to open your mouth?"),
        fact("air", "Breathes well", "Do you have trouble breathing?"),
    )
)


def told(question: str) -> list[str]:
    return list(dict.fromkeys(fact.path for topic in asked_of_patient(question, CHART) for fact in topic.facts))


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("Are your hands stiff, and for how long?", ["stiff"]),  # not how long the patient smoked
        ("Does anyone in the family have arthritis or psoriasis? Any diabetes?", ["aunt", "skin", "sugar"]),
        ("How are you managing with opening your mouth and breathing?", ["mouth", "air"]),
        ("Take your time. Do you smoke?", ["smoke"]),
    ],
)
def test_each_thing_asked_gets_its_fact_and_nothing_else_is_told(question: str, paths: list[str]) -> None:
    assert told(question) == paths


def test_what_nothing_in_the_chart_is_like_is_denied_beside_the_answers() -> None:
    topics = asked_of_patient("Do you smoke? Have you had a nosebleed?", CHART)
    assert [(topic.kind, bool(topic.facts)) for topic in topics] == [(Asked.SYMPTOM, True), (Asked.SYMPTOM, False)]


def test_a_word_that_no_one_knows_is_asked_back_about() -> None:
    (topic,) = asked_of_patient("Any zorbling or quaxly?", CHART)[:1]
    assert topic.kind is Asked.UNCLEAR


def test_two_ends_of_one_thing_are_asked_together() -> None:
    assert [one.text for one in asks("Is it better or worse with use?")] == ["Is it better worse with use"]


def test_another_way_to_say_the_same_is_near_and_another_thing_is_not() -> None:
    wind = vector("Have you been able to pass wind?")
    assert wind @ vector("Have you passed any gas?") > 0.6
    assert wind @ vector("Does your brother have asthma?") < 0.3


def test_a_chart_is_read_as_each_of_its_questions_is() -> None:
    index = index_of(CHART)
    assert index is not None
    texts = [text for one in CHART for text in one.asked]
    assert np.allclose(index.vectors, np.stack([vector(text) for text in texts]), atol=1e-5)


def test_what_follows_a_circumstance_is_not_asked_about_by_itself() -> None:
    moving, coughing = asks("Does it get worse when you move or cough?")
    assert "cough" not in coughing.wordings
    assert all("worse" in wording for wording in (*moving.wordings, *coughing.wordings))


def test_it_is_what_was_just_asked_about() -> None:
    assert asks("When was your last meal, and was it a big one?")[1].means == "was meal a big one"


def test_an_item_of_a_list_is_also_looked_up_without_when_it_happens() -> None:
    assert "coughing" in asks("Do you get shoulder pain or coughing when your period is on?")[1].wordings


def test_no_item_of_a_list_is_lost() -> None:
    """Not even one that begins like "hear", and none beside a question that begins with "or"."""
    assert [one.text for one in asks("Have you ever had asthma, heartburn or hay fever?")][1:] == [
        "heartburn",
        "hay fever",
    ]
    assert [one.text for one in asks("Any weight loss, had fevers, or does it ever wake you?")][1:] == [
        "had fevers",
        "does it ever wake you",
    ]


def test_two_answers_to_one_question_are_one_thing_asked() -> None:
    assert len(asks("Does it stay there, or does it travel?")) == 1


def test_a_sentence_that_names_nothing_is_not_asked_back_about() -> None:
    topics = asked_of_patient("Hi, congratulations on your little one. Do you smoke?", CHART)
    assert [topic.kind for topic in topics] == [Asked.SYMPTOM]


def test_a_fact_is_asked_for_directly_in_the_words_of_its_questions_only() -> None:
    direct = asked_directly("Do you smoke? And how is your mood?", Facts.of(CHART))
    assert direct
    assert direct < {fact.path for fact in CHART}
    assert not asked_directly("Any rash on your legs?", Facts.of(CHART))


def test_what_is_asked_before_a_worry_is_asked_for_as_well() -> None:
    said = small_talk("What medicines have you taken for it, and what worries you most about this?")
    assert said.rest == "What medicines have you taken for it?"
    assert len(said.kinds) == 1
