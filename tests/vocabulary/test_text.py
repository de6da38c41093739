"""Words and sentences of medical prose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.vocabulary.text import content_words, fold, sentences, singular, words


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Crohn's", "Crohns"),
        ("X-ray", "X_RAY"),
        ("Sjögren", "sjogren"),
        ("Legg–Calvé", "legg calve"),
        ("Chills", "chill"),
        ("biopsies", "biopsy"),
        ("masses", "mass"),
        ("non-contrast", "noncontrast"),
        ("non contrast", "Non-Contrast"),
    ],
)
def test_spellings_of_one_word_are_equal(left: str, right: str) -> None:
    assert words(left) == words(right)


@pytest.mark.parametrize(
    ("plural", "one"), [("virus", "virus"), ("diagnosis", "diagnosis"), ("gas", "gas"), ("loss", "loss")]
)
def test_a_singular_that_ends_in_s_is_kept(plural: str, one: str) -> None:
    assert singular(plural) == one


def test_numbers_are_single_words() -> None:
    assert words("38.5 C, 120/80") == ("38.5", "c", "120", "80")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("It was 38.5 C. Then not.", ["It was 38.5 C.", "Then not."]),
        ("Seen by Dr. Fox. Sent home.", ["Seen by Dr. Fox.", "Sent home."]),
        ("One\nTwo", ["One", "Two"]),
        ("No ending", ["No ending"]),
        ("", []),
    ],
)
def test_prose_is_split_into_sentences(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


def test_stop_words_are_not_content() -> None:
    assert content_words("Have you noticed any rash on the chest?") == {"rash", "chest"}


@given(st.text(max_size=80))
@settings(max_examples=200)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
