"""Disease names in one form."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.names import corrected, implied, name, narrower, stands_for, wider


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


@pytest.mark.parametrize(
    ("typed", "truth", "same"),
    [
        ("Myastenia gravis", "Myasthenia gravis", True),  # a letter missing
        ("Pyleonephritis", "Pyelonephritis", True),  # two letters swapped
        ("Cholecystiitis", "Cholecystitis", True),  # a letter too many
        ("Colecistitis", "Cholecystitis", True),  # two wrong in a long word
        ("Kolecistitis", "Cholecystitis", False),  # the first letter is never wrong
        ("Dysphasia", "Dysphagia", False),  # both are words
        ("Hypocalcemia", "Hypercalcemia", False),
        ("Melanosis", "Melanoma", False),
    ],
)
def test_a_misspelled_word_is_corrected_and_another_word_is_not(typed: str, truth: str, same: bool) -> None:
    assert (corrected(name(typed), name(truth)).key == name(truth).key) is same


def test_an_unknown_abbreviation_stands_for_a_name_with_its_initials() -> None:
    assert stands_for("MCTD", "mixed connective tissue disease")
    assert not stands_for("MTCD", "mixed connective tissue disease")
    assert not stands_for("PE", "placental expulsion"), "PE is known, and means something else"


def test_a_name_implies_its_only_cause() -> None:
    assert {"treponema", "bacteria"} <= implied("Syphilis")
    assert "bacteria" not in implied("Pneumonia")


def test_a_narrower_word_is_a_kind_of_the_wider_one() -> None:
    assert "haloperidol" in narrower("antipsychotic")
    assert {"streptococcus", "bacteria"} <= wider("pneumococcus")
