"""Reading a diagnosis completely."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.names import name
from agentclinic.vocabulary.phrases import Phrase
from agentclinic.vocabulary.reading import MOST_WORDS, Kind, read


def said(phrases: tuple[Phrase, ...]) -> list[str]:
    """The words of each phrase, in the order of its name."""
    return [" ".join((*one.added, *(one.core.spelled if one.core else ()))) for one in phrases]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Gout", Kind.COMMITS),
        ("Gout and asthma", Kind.COMMITS),
        ("Gout or asthma", Kind.HEDGES),
        ("Either gout or asthma", Kind.HEDGES),
        ("DDx: gout, asthma", Kind.HEDGES),
        ("DDx: gout", Kind.COMMITS),
        ("Not gout", Kind.DENIES),
        ("Gout was ruled out", Kind.DENIES),
        ("No signs of gout", Kind.DENIES),
        ("No gout. Asthma excluded.", Kind.DENIES),
        ("I don't know", Kind.NOTHING),
        ("No diagnosis", Kind.NOTHING),
        ("", Kind.NOTHING),
        ("Gout?", Kind.UNREAD),
        ("Gout/asthma", Kind.UNREAD),
        ("Gout or asthma, favor gout", Kind.UNREAD),
        ("Gout or asthma; gout", Kind.UNREAD),
        ("Gout, not", Kind.UNREAD),
        ("Not zzyzx", Kind.UNREAD),
        ("Gоut", Kind.UNREAD),
        ("gout " * (MOST_WORDS + 1), Kind.UNREAD),
        ("gout-" * (MOST_WORDS + 1), Kind.UNREAD),
        ("gout" * 600, Kind.UNREAD),
    ],
)
def test_an_answer_names_hedges_denies_or_is_unread(text: str, kind: Kind) -> None:
    assert read(text).kind is kind


PARTS = [
    ("Gout (podagra)", "also", ["podagra"]),
    ("Gout, likely chronic", "also", ["chronic"]),
    ("Gout, i.e. podagra", "also", ["podagra"]),
    ("Brief psychotic disorder (BPD)", "also", []),  # its initials
    ("Gout (formerly podagra)", "also", ["podagra"]),
    ("Gout due to diuretics", "causes", ["diuretic"]),
    ("Gout 2° to diuretics, obesity", "causes", ["diuretic", "obesity"]),
    ("Gout (due to diuretics)", "causes", ["diuretic"]),
    ("Gout with tophi and fever", "others", ["tophi", "fever"]),
    ("Gout w/ fever", "others", ["fever"]),
    ("Gout and asthma", "further", ["asthma"]),
    ("1. Gout 2. Asthma", "further", ["asthma"]),
    ("1. Gout\n2. Asthma\n3. Lupus", "further", ["asthma", "lupus"]),
    ("Gout. Asthma.", "further", ["asthma"]),
    ("Gout rather than asthma", "denied", ["asthma"]),
    ("Not asthma but gout", "denied", ["asthma"]),
    ("Gout; asthma excluded", "denied", ["asthma"]),
    ("Gout, no asthma", "denied", ["asthma"]),
    ("Gout without asthma", "denied", ["asthma"]),
    ("Gout, possibly asthma", "unsure", ["asthma"]),
    ("Gout due to diuretics or obesity", "unsure", ["obesity", "diuretic"]),
]


@pytest.mark.parametrize(("text", "part", "expected"), PARTS)
def test_what_is_joined_to_a_diagnosis_is_read_by_the_words_that_join_it(
    text: str, part: str, expected: list[str]
) -> None:
    answer = read(text)
    assert answer.main.core is not None
    assert answer.main.core.words[-1] in ("gout", "disorder"), answer
    assert said(getattr(answer, part)) == expected
    assert (answer.unread, answer.aside) == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        "Gout.", "My final diagnosis is gout", "Final answer: gout", "DIAGNOSIS READY: **Gout**", "> Gout", "`gout`",
        "Okay, gout", "Therefore, gout", "After reviewing the results, gout", "Gout is the leading diagnosis",
        "Gout, 95% confidence", '```json\n{"diagnosis": "Gout"}\n```', "Gout of unclear etiology", "“Gout”",
        "I have asked enough. DIAGNOSIS READY: gout", "- Gout",
    ],
)  # fmt: skip
def test_accepted_words_around_a_diagnosis_are_left_out(text: str) -> None:
    answer = read(text)
    assert (answer.kind, answer.unread) == (Kind.COMMITS, "")
    assert said((answer.main,)) == ["gout"]


@pytest.mark.parametrize(
    ("text", "unread"),
    [("Zzyzx gout", "zzyzx"), ("Gout, kqzz", "kqzz"), ("Gout (kqzz)", "kqzz"), ("Gout due to kqzz", "kqzz")],
)
def test_a_word_left_over_is_named(text: str, unread: str) -> None:
    assert read(text).unread == unread


@pytest.mark.parametrize(
    ("text", "why"),
    [("kqzz? gout", "'?'"), ("gout " * 70, "more than 60 words"), ("gout (a (b))", "brackets within brackets")],
)
def test_only_words_of_the_answer_are_quoted(text: str, why: str) -> None:
    assert read(text).unread == why


@pytest.mark.parametrize("text", ["Gout. The kqzz is low.", "Gout with kqzz", "Gout; kqzz"])
def test_a_word_left_over_beside_the_diagnosis_is_kept_apart(text: str) -> None:
    answer = read(text)
    assert "kqzz" in answer.aside
    assert answer.unread == ""


def test_a_name_may_contain_the_words_that_join() -> None:
    answer = read("Granulomatosis with polyangiitis with fever")
    assert said((answer.main, *answer.others)) == ["granulomatosis polyangiitis", "fever"]
    truths = (name("Fever or chills"),)
    assert read("Fever or chills", truths).kind is Kind.COMMITS


def test_what_comes_before_and_lacks_the_disease_belongs_to_it() -> None:
    answer = read("Hand and wrist osteoarthritis")
    assert (answer.further, answer.main.core) == ((), name("osteoarthritis"))
    assert {"hand", "wrist"} <= answer.main.words


def test_what_is_only_possible_is_left_open() -> None:
    assert "legionella" in read("Pneumonia, possibly due to Legionella").left_open
    assert "legionella" not in read("Pneumonia due to Legionella").left_open
