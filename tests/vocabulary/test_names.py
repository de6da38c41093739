"""Disease names in one form."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.names import (
    abbreviates,
    implied,
    is_misspelling,
    is_place,
    name,
    narrower,
    spelled,
    stands_for,
    wider,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Heart attack", "acute myocardial infarction"),
        ("MI", "acute myocardial infarction"),
        ("Oesophageal tumour", "esophageal tumor"),
        ("Anemia, iron deficiency", "iron deficiency anemia"),
        ("Stenosis of the mitral valve", "mitral valve stenosis"),
        ("Post traumatic stress disorder", "posttraumatic stress disorder"),
        ("Type II diabetes", "type 2 diabetes mellitus"),
        ("Neutropenic fever", "neutropenia fever"),
        ("Hepatitis A", "hepatitis A"),
    ],
)
def test_names_of_one_disease_have_one_form(one: str, other: str) -> None:
    assert name(one).key == name(other).key


@pytest.mark.parametrize(
    ("one", "other"),
    [("Hepatitis A", "Hepatitis B"), ("all", "as"), ("Nephritic syndrome", "Nephritis"), ("AS", "aortic stenosis")],
)
def test_names_of_different_diseases_stay_different(one: str, other: str) -> None:
    assert name(one).key != name(other).key


def test_abbreviations_are_written_out_in_the_plural_too_and_those_that_are_words_in_capitals_only() -> None:
    assert spelled("Bilateral PEs") == spelled("Bilateral pulmonary embolism")
    assert name("Severe AS").words[-1] == "spondylitis"
    assert name("fever as well").words == ("fever", "as", "well")


@pytest.mark.parametrize(
    ("typed", "word", "same"),
    [
        ("myastenia", "myasthenia", True),  # a letter missing
        ("pyleonephritis", "pyelonephritis", True),  # two letters swapped
        ("cholecystiitis", "cholecystitis", True),  # a letter too many
        ("colecistitis", "cholecystitis", True),  # two wrong in a long word
        ("kolecistitis", "cholecystitis", False),  # the first letter is never wrong
        ("hypocalcemia", "hypercalcemia", False),
        ("melanosis", "melanoma", False),
    ],
)
def test_a_misspelled_word_is_recognized_and_another_word_is_not(typed: str, word: str, same: bool) -> None:
    assert is_misspelling(typed, word) is same


def test_an_unknown_abbreviation_stands_for_a_name_with_its_initials() -> None:
    assert stands_for("FMD", "fibromuscular dysplasia")
    assert not stands_for("FDM", "fibromuscular dysplasia")
    assert not stands_for("PE", "placental expulsion"), "PE is known, and means something else"
    assert abbreviates("PE", "placental expulsion")
    assert not abbreviates("F", "fever")
    assert not abbreviates("fmd", "fibromuscular dysplasia")


def test_a_place_is_a_part_of_the_body() -> None:
    assert is_place("kidney")
    assert not is_place("stone")


def test_a_name_implies_its_only_cause() -> None:
    assert {"treponema", "bacteria"} <= implied(name("Syphilis"))
    assert "bacteria" not in implied(name("Pneumonia"))


def test_a_narrower_word_is_a_kind_of_the_wider_one() -> None:
    assert "haloperidol" in narrower("antipsychotic")
    assert {"streptococcus", "bacteria"} <= wider("pneumococcus")
