"""Finding where a text names a diagnosis. See also cases/test_leaks."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.disease_names import Names, diagnosis_names


def test_a_diagnosis_is_named_in_full_by_abbreviations_and_by_synonyms() -> None:
    names = diagnosis_names("Acute pulmonary embolism (PE)")
    assert {"Acute pulmonary embolism (PE)", "Acute pulmonary embolism", "pulmonary embolism"} <= set(names)
    assert "pulmonary embolus" in names


def test_a_generic_word_alone_does_not_name_a_diagnosis() -> None:
    assert diagnosis_names("Infection") == []
    assert "infection" not in diagnosis_names("Acute infection")
    assert "syndrome" not in [name.lower() for name in diagnosis_names("Chronic syndrome")]


def test_names_from_the_answer_key_name_the_diagnosis() -> None:
    assert "Frobisher fever" in diagnosis_names("Marsh fever", ("Frobisher fever",))


@pytest.mark.parametrize(
    ("diagnosis", "text", "found"),
    [
        ("Sepsis", "He had septic shock.", True),  # only the leak checker knows this name
        ("Aortic stenosis", "Known AS, awaiting surgery", True),
        ("Ankylosing spondylitis", "Severe aortic stenosis", False),  # AS abbreviates both
        ("Gallbladder cancer", "A carcinoma of the gallbladder", True),
        ("Acute lymphoblastic leukemia", "All results are normal.", False),
        ("Acute lymphoblastic leukemia", "ALL in remission", True),
        ("Gout", "No gout", False),
        ("Gastric ulcer", "A bleeding ulcer", True),
    ],
)
def test_a_diagnosis_is_found_by_any_of_its_names(diagnosis: str, text: str, found: bool) -> None:
    assert bool(list(Names(diagnosis).find(text))) is found


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        ("M10.9", "Coded as M10.9", True),
        ("M10.9", "HLA-M10", False),
        ("274.9", "274.9 on the sheet", True),
        ("274", "A weight of 274 pounds", False),
        ("274", "ICD-9: 274", True),
    ],
)
def test_a_diagnosis_is_found_by_its_code(code: str, text: str, found: bool) -> None:
    assert bool(list(Names("Gout", codes=[code]).find(text))) is found
