"""How a question is read as the things it asks, and how near the facts of a chart are to each."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from agentclinic.cases.matcher.reader import KINDS, LONGEST, MOST_WORDS, index_of, knows, read
from agentclinic.cases.model import Fact, Facts, Section
from agentclinic.cases.registry import load_cases


def fact(path: str, text: str, *asked: str, section: Section = Section.HISTORY) -> Fact:
    return Fact(path, section, (), text, denied=text.startswith("No "), says=f"{text}.", asked=asked)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Do you smoke?", ["Do you smoke"]),
        ("Are your hands stiff, and for how long?", ["Are your hands stiff", "for how long"]),
        ("Any fever, chills or night sweats?", ["Any fever", "chills", "night sweats"]),
        ("Have you ever had asthma, heartburn or hay fever?", ["Have you ever had asthma", "heartburn", "hay fever"]),
        ("Is it better or worse with use?", ["Is it better or worse with use"]),
        ("How many times, and what did it look like?", ["How many times", "what did it look like"]),
        ("Good morning. Any drugs you react to?", ["Any drugs you react to"]),
        ("", []),
        ("Anything else?", []),
    ],
)
def test_a_question_is_read_as_the_things_it_asks(question: str, parts: list[str]) -> None:
    assert [asks.text for asks in read(question)] == parts


def test_each_thing_asked_stands_in_the_question_where_it_says() -> None:
    question = "Thanks. Any FEVER — or “chills”, and how’s your appetite?"
    for asks in read(question):
        assert question[asks.start :].startswith(asks.text)
        assert asks.kind in KINDS[1:]


def test_an_item_of_a_list_asks_what_its_list_asks() -> None:
    chart = Facts(
        (
            fact("uncle", "Uncle had bowel cancer", "Has anyone in your family had cancer?", section=Section.FAMILY),
            fact("own", "No cancer", "Have you ever had cancer yourself?", section=Section.PAST),
        )
    )
    index = index_of(chart)
    *_, cancer = read("Does anyone in your family have heart disease, diabetes or cancer?")
    assert cancer.text == "cancer"
    assert index.nearness(cancer).argmax() == 0
    *_, cancer = read("Have you yourself ever had heart disease, diabetes or cancer?")
    assert index.nearness(cancer).argmax() == 1


def test_authors_questions_of_the_bundled_charts_find_their_fact() -> None:
    """Not one by one: two facts may answer the same question."""
    right = total = 0
    for case in load_cases("OpenOSCE_Demo", {}):
        index = index_of(case.patient_facts)
        for row, one in enumerate(case.patient_facts):
            for question in one.asked:
                near = [index.nearness(asks) for asks in read(question)]
                total += 1
                right += any(values[row] >= values.max() - 0.5 for values in near)
    assert total > 500
    assert right / total > 0.95


def test_a_question_in_other_words_is_near_and_one_about_something_else_is_not() -> None:
    chart = Facts((fact("wind", "Passed no gas since Monday", "Have you passed any gas?"),))
    (wind,) = read("Have you been able to break wind?")
    (asthma,) = read("Does your brother have asthma?")
    assert index_of(chart).nearness(wind)[0] > wind.needed
    assert index_of(chart).nearness(asthma)[0] < asthma.needed


def test_a_question_of_any_length_is_read() -> None:
    words = "Any pain in the chest? " * LONGEST
    parts = read(words)
    assert 2 < len(parts) <= MOST_WORDS
    assert {part.text for part in parts[:-1]} == {"Any pain in the chest"}  # the last is cut short
    assert read("pain " * 3 * LONGEST)


def test_words_that_were_learned_are_known() -> None:
    assert knows("Any heartburn?")
    assert not knows("Any zorbling?")


def test_a_chart_without_authors_questions_is_found_by_its_own_words() -> None:
    chart = Facts((fact("smoke", "Smokes a pack a day"), fact("cat", "Has a cat")))
    (smokes,) = read("Are you a smoker?")
    assert index_of(chart).nearness(smokes).argmax() == 0


def test_threads_read_the_same() -> None:
    questions = [f"Any pain in toe {number}, and does it itch?" for number in range(40)]
    alone = [[asks.vector for asks in read(question)] for question in questions]
    read.cache_clear()
    found: dict[str, list[np.ndarray]] = {}

    def work() -> None:
        for question in questions:
            found[question] = [asks.vector for asks in read(question)]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for question, vectors in zip(questions, alone, strict=True):
        assert all(np.array_equal(one, other) for one, other in zip(found[question], vectors, strict=True))


def test_a_chart_read_at_once_is_read_as_its_facts_one_by_one() -> None:
    facts = [
        fact("cough", "Dry cough", "Do you cough?", "Is it a dry cough, or do you bring anything up?"),
        fact("no words", "—", "?!", ""),
        fact("marked", "Pain \0 at night", "Any\0 pain?"),
        fact("fever", "No fever", "Any fever?", section=Section.TESTS),
    ]
    alone = np.concatenate([index_of(Facts((one,))).vectors for one in facts])
    together = index_of(Facts(facts))
    np.testing.assert_allclose(together.vectors, alone, atol=1e-5)
    assert together.starts.tolist() == [0, 4, 8, 11]
