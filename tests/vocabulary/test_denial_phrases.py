"""Finding phrases in a text as whole words, and which of them are negated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.vocabulary.denial import Phrasebook

BOOK = Phrasebook(
    {
        "fever": ("fever",),
        "chills": ("chills",),
        "cough": ("cough",),
        "productive": ("productive cough", "sputum"),
        "pain": ("pain",),
        "chest_pain": ("chest pain",),
        "embolism": ("pulmonary embolism", "PE"),
        "ct": ("CT",),
        "murmur": ("murmur",),
    }
)


def present(text: str) -> set[str]:
    return {mention.key for mention in BOOK.find(text) if not mention.negated}


def absent(text: str) -> set[str]:
    return {mention.key for mention in BOOK.find(text) if mention.negated}


NEGATIONS: list[tuple[str, set[str], set[str]]] = [
    ("Fever and chills", {"fever", "chills"}, set()),
    ("No fever, chills or cough", set(), {"fever", "chills", "cough"}),
    ("Denies fever and chills", set(), {"fever", "chills"}),
    ("The patient denied fever", set(), {"fever"}),
    ("Fever, no chills", {"fever"}, {"chills"}),
    ("Fever without chills, with cough", {"fever", "cough"}, {"chills"}),
    ("Denies fever but has chills", {"chills"}, {"fever"}),
    ("No fever; cough for days", {"cough"}, {"fever"}),
    ("No fever. Cough for days", {"cough"}, {"fever"}),
    ("No fever, has chills", {"chills"}, {"fever"}),
    ("No reports of fever", set(), {"fever"}),
    ("Denies fever and reports cough", {"cough"}, {"fever"}),
    ("Negative for fever and cough", set(), {"fever", "cough"}),
    ("Absence of fever", set(), {"fever"}),
    ("Absent fever, cough", {"cough"}, {"fever"}),
    ("Cough absent, fever present", {"fever"}, {"cough"}),
    ("Murmurs: none", set(), {"murmur"}),
    ("Fever: no", set(), {"fever"}),
    ("Cough: no sputum", {"cough"}, {"productive"}),
    ("PE ruled out", set(), {"embolism"}),
    ("Pulmonary embolism was ruled out, cough persists", {"cough"}, {"embolism"}),
    ("CT to rule out PE", {"ct"}, {"embolism"}),
    ("Pulmonary embolism was not seen", set(), {"embolism"}),
    ("I have not noticed any fever, and it hurts: chest pain", {"chest_pain"}, {"fever"}),
    ("I haven't had a fever", set(), {"fever"}),
    ("No, I have a cough", {"cough"}, set()),
    ("No evidence of pulmonary embolism", set(), {"embolism"}),
    ("Swelling without fever, consistent with pulmonary embolism", {"embolism"}, {"fever"}),
    ("No findings consistent with pulmonary embolism", set(), {"embolism"}),
    ("Neither fever nor chills", set(), {"fever", "chills"}),
    ("Non-productive cough", {"cough"}, set()),
    ("nonproductive cough", {"cough"}, set()),
    ("Productive cough", {"productive"}, set()),
]


@pytest.mark.parametrize(("text", "there", "not_there"), NEGATIONS)
def test_a_negation_reaches_as_far_as_a_reader_would_take_it(text: str, there: set[str], not_there: set[str]) -> None:
    assert (present(text), absent(text)) == (there, not_there)


def test_the_longest_phrase_wins() -> None:
    assert present("chest pain") == {"chest_pain"}


@pytest.mark.parametrize("text", ["rectal examination", "painting", "coughdrop", "lactate", "direct"])
def test_a_phrase_is_found_as_whole_words_only(text: str) -> None:
    assert BOOK.find(text) == []


@pytest.mark.parametrize("text", ["CT", "ct", "CT-head", "head_CT_scan", "(CT)"])
def test_a_phrase_is_found_whatever_surrounds_it(text: str) -> None:
    assert present(text) == {"ct"}


@given(st.text(max_size=80))
@settings(max_examples=200)
def test_any_text_is_searched_without_failing(text: str) -> None:
    BOOK.find(text)
