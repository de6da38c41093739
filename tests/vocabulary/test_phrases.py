"""Which name a phrase ends in, and which words may stand beside it."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.names import name
from agentclinic.vocabulary.phrases import is_known, is_medical, is_organism, is_sign, is_whole, phrase, phrase_of


@pytest.mark.parametrize(
    ("text", "core", "added"),
    [
        ("gout", "gout", ()),
        ("severe left gout", "gout", ("severe", "left")),
        ("gout stage 2", "gout", ("stage", "2")),
        ("acute-on-chronic gout of the knee", "gout", ("knee", "chronic", "acute")),
        ("granulomatosis with polyangiitis", "granulomatosis with polyangiitis", ()),
    ],
)
def test_a_phrase_is_a_known_name_and_the_words_that_describe_it(text: str, core: str, added: tuple[str, ...]) -> None:
    said = phrase(text)
    assert said.core is not None
    assert said.core.key == name(core).key
    assert sorted(said.added) == sorted(added)
    assert said.unread == ()


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("zzyzx gout", {"zzyzx"}),
        ("my gout", {"my"}),
        ("previous gout", {"previous"}),
        ("pseudo-gout of zzyzx", {"zzyzx"}),
        ("kein gout", {"kein"}),
        ("psoriasis gout", {"psoriasis"}),  # a second disease without a link
        ("antianti" * 9 + " gout", {"antianti" * 9}),
    ],
)
def test_a_word_that_fits_nowhere_is_unread(text: str, unread: set[str]) -> None:
    assert set(phrase(text).unread) == unread


def test_what_stands_beside_a_disease_may_be_past() -> None:
    assert phrase("previous surgery").unread
    assert not phrase("previous surgery", beside=True).unread


def test_the_true_name_is_a_name_though_no_table_has_it() -> None:
    truths = (name("Frobisher fever"),)
    assert phrase("left Frobisher fever").unread
    said = phrase("left Frobisher fever", truths)
    assert (said.core, said.added, said.unread) == (truths[0], ("left",), ())
    assert phrase("Frobischer fever", truths).core == truths[0]  # misspelled
    assert is_whole("Frobisher fever", truths)
    assert not is_whole("Frobisher fever", ())


def test_words_alone_describe_without_naming() -> None:
    said = phrase("bilateral")
    assert (said.core, said.added) == (None, ("bilateral",))
    assert "bilateral" in said.words


def test_of_a_true_name_the_known_core_is_found() -> None:
    meant = phrase_of(name("Zzyzx-related gout"))
    assert meant.core is not None
    assert meant.core.words == ("gout",)
    assert "zzyzx" in meant.added


def test_what_diseases_lead_to_is_a_sign() -> None:
    assert all(is_sign(phrase(text)) for text in ("heart failure", "hyponatremia", "chest pain", "sepsis"))
    assert not any(is_sign(phrase(text)) for text in ("gout", "psoriasis", "leukemia"))


def test_a_germ_is_not_the_disease() -> None:
    assert is_organism(phrase("Escherichia coli infection"))
    assert not is_organism(phrase("gout"))


def test_a_course_alone_is_no_known_name() -> None:
    assert is_known(name("chronic pancreatitis"))
    assert not is_known(name("acute bilateral"))
    assert not is_known(name("zzyzx"))


@pytest.mark.parametrize(("word", "medical"), [("cholangitis", True), ("itis", False), ("table", False)])
def test_a_word_is_medical_by_its_ending(word: str, medical: bool) -> None:
    assert is_medical(word) is medical
