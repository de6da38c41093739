"""How English denies things; test_denial_phrases has negated phrases, cases/test_facts the lists of a chart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.vocabulary.denial import (
    answers_no,
    answers_yes,
    clauses,
    finds_nothing,
    has_denying_word,
    is_denial,
    read_denial,
    says_absent,
    split_statements,
)


@pytest.mark.parametrize("reply", ["No.", "No, never.", "Not really.", "None", "I haven't.", "I do not, no.", "**No**"])
def test_a_plain_no(reply: str) -> None:
    assert answers_no(reply)
    assert not answers_yes(reply)


@pytest.mark.parametrize("reply", ["Yes.", "Yeah, a bit.", "That's right.", "I do.", "I have, since May."])
def test_a_plain_yes(reply: str) -> None:
    assert answers_yes(reply)
    assert not answers_no(reply)


@pytest.mark.parametrize("reply", ["I have a cough.", "A cough.", "Nobody asked me.", "I do drink.", "", "Northern"])
def test_neither_yes_nor_no(reply: str) -> None:
    assert not answers_yes(reply)
    assert not answers_no(reply)


@pytest.mark.parametrize(
    ("state", "absent"),
    [
        ("no fever", True),
        ("denies it", True),
        ("not seen on CT", True),
        ("absence of rash", True),
        ("not identified", True),
        ("not sure", False),
        ("not examined", False),
        ("not ruled out", False),
        ("no information", False),
        ("no prior imaging", False),
        ("without testing", False),
        ("39 °C", False),
    ],
)
def test_a_finding_is_absent_only_if_it_was_looked_for(state: str, absent: bool) -> None:
    assert says_absent(state) is absent


@pytest.mark.parametrize(
    ("report", "nothing"),
    [
        ("Within normal limits", True),
        ("Lungs are clear.", True),
        ("No growth", True),
        ("No acute abnormality", True),
        ("Abnormal", False),
        ("A mass", False),
    ],
)
def test_a_report_that_finds_nothing(report: str, nothing: bool) -> None:
    assert finds_nothing(report) is nothing


@pytest.mark.parametrize(
    ("statement", "denies"),
    [
        ("Denies fever", True),
        ("There's no rash", True),
        ("She has not noticed any swelling", True),
        ("Never smoked", True),
        ("The patient denies pain", True),
        ("Fever without chills", False),
        ("Notices a rash", False),
    ],
)
def test_a_statement_that_denies(statement: str, denies: bool) -> None:
    assert is_denial(statement) is denies


@pytest.mark.parametrize(
    ("text", "denies"),
    [("It isn't sore", True), ("Normal", True), ("Neither", True), ("Nodules", False), ("It hurts", False)],
)
def test_a_text_with_a_denying_word(text: str, denies: bool) -> None:
    assert has_denying_word(text) is denies


def test_a_denial_that_turns_is_not_split() -> None:
    assert read_denial("Has a cough") is None
    turned = read_denial("Denies fever but has a cough")
    assert turned is not None
    assert (turned.items, turned.throughout) == ((), False)
    whole = read_denial("No changes in bowel or bladder habits")
    assert whole is not None
    assert whole.throughout


def test_a_sentence_is_split_where_it_turns_to_what_is_reported() -> None:
    assert split_statements("Denies cough; reports a rash") == ["Denies cough", "reports a rash"]
    assert split_statements("Denies cough; at night") == ["Denies cough; at night"]


def test_a_phrase_may_be_denied_by_the_words_after_it() -> None:
    (clause,) = clauses("Antigen was negative, cough")
    assert [clause.denied_after(end) for end in range(1, 5)] == [True, True, False, False]


@given(st.text(max_size=80))
@settings(max_examples=200)
def test_any_text_is_read_without_failing(text: str) -> None:
    assert all(len(clause.words) == len(clause.negated) for clause in clauses(text))
