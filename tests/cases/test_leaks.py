"""Where cases give their diagnosis away, and where they only seem to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from helpers import case_of, needs_public_data, osce, public_cases, public_path, write_rows

from agentclinic.cases.leaks import Leak, leaks
from agentclinic.lint.check import check_file, overlaps

TRUTH = "Acute pulmonary embolism (APE)"


def found(**row: Any) -> set[tuple[Leak, str]]:
    row.setdefault("truth", TRUTH)
    return {(leak.kind, leak.path) for leak in leaks(case_of(osce(**row)))}


def patient(**sections: Any) -> dict[str, Any]:
    return {"Demographics": "40-year-old woman", **sections}


@pytest.mark.parametrize(
    ("row", "kind", "path"),
    [
        ({"objective": "Find the pulmonary embolism."}, Leak.DOOR, "Objective_for_Doctor"),
        ({"patient": patient(Demographics="40-year-old woman with pulmonary embolism")}, Leak.DOOR, "Demographics"),
        ({"patient": patient(History="Her doctor saw a pulmonary embolism.")}, Leak.PATIENT, "Patient_Actor/History"),
        ({"patient": patient(Symptoms=["A lung clot"])}, Leak.PATIENT, "Patient_Actor/Symptoms[0]"),
        ({"patient": patient(Review_of_Systems="Pulmonary embolus")}, Leak.PATIENT, "Patient_Actor/Review_of_Systems"),
        ({"patient": patient(Social_History="Fears an APE")}, Leak.PATIENT, "Patient_Actor/Social_History"),
        (
            {"patient": patient(Past_Medical_History="Pulmonary embolism in 2019")},
            Leak.HISTORY,
            "Patient_Actor/Past_Medical_History",
        ),
        ({"patient": patient(Family_History="APE in a sister")}, Leak.HISTORY, "Patient_Actor/Family_History"),
        (
            {"patient": patient(Medications="Warfarin for pulmonary embolism")},
            Leak.HISTORY,
            "Patient_Actor/Medications",
        ),
        ({"exam": {"Chest": "Signs of pulmonary embolism"}}, Leak.RESULT, "Physical_Examination_Findings/Chest"),
        ({"tests": {"CT": {"Findings": "Acute pulmonary embolism."}}}, Leak.RESULT, "Test_Results/CT/Findings"),
        ({"tests": {"Pulmonary_embolism": "Present"}}, Leak.RESULT, "Test_Results/Pulmonary_embolism"),
    ],
)
def test_a_planted_name_is_found_where_it_was_planted(row: dict[str, Any], kind: Leak, path: str) -> None:
    assert found(**row) == {(kind, path)}


@pytest.mark.parametrize(
    "text",
    [
        "No pulmonary embolism.",
        "No evidence of acute pulmonary embolism",
        "Pulmonary embolism was ruled out.",
        "Negative for deep vein thrombosis and pulmonary embolism",
        "Clear lungs without infiltrate, effusion or pulmonary embolism",
        "Pulmonary embolism: none",
        "Embolism of a renal artery",
    ],
)
def test_a_negated_or_partial_mention_is_not_a_leak(text: str) -> None:
    assert found(tests={"CT": text}) == set()
    assert found(patient=patient(History=text)) == set()


def test_a_denial_does_not_hide_what_comes_after_but() -> None:
    assert found(tests={"CT": "No effusion, but pulmonary embolism on the left"})


@pytest.mark.parametrize(
    ("truth", "text"),
    [
        ("Crohn disease", "Crohn's disease is likely"),
        ("Chronic obstructive pulmonary disease", "Known COPD"),
        ("Systemic lupus erythematosus (SLE)", "Consistent with SLE"),
        ("Frobisher fever", "FROBISHER-FEVER"),
        ("Severe frobisheritis", "Typical frobisheritis"),
    ],
)
def test_synonyms_abbreviations_and_spellings_are_found(truth: str, text: str) -> None:
    assert found(truth=truth, tests={"Biopsy": text}) == {(Leak.RESULT, "Test_Results/Biopsy")}


def test_a_name_accepted_by_the_answer_key_is_a_leak() -> None:
    case = case_of(osce(tests={"Biopsy": "Marsh ague"}, Answer_Key={"accept": ["Marsh ague"]}))
    assert [leak.kind for leak in leaks(case)] == [Leak.RESULT]


def test_a_generic_word_is_not_a_leak() -> None:
    assert found(truth="Acute infection", tests={"Swab": "Infection"}) == set()


def test_annotations_cannot_leak() -> None:
    assert found(Differential=["Acute pulmonary embolism"], Key_Findings="pulmonary embolism") == set()


def test_copies_within_a_file_and_between_files_are_named_by_row(tmp_path: Any) -> None:
    first = write_rows(tmp_path / "a.jsonl", osce(truth="A fever"), osce(truth="B fever"), osce(truth="a  FEVER"))
    second = write_rows(tmp_path / "b.jsonl", osce(truth="B fever"))
    reports = [check_file(path, path.stem) for path in (first, second)]
    assert reports[0].duplicates == [(0, 2)]
    (overlap,) = overlaps(reports)
    assert (overlap.first, overlap.second, overlap.pairs) == (first, second, ((1, 0),))


@needs_public_data
@pytest.mark.parametrize(
    ("name", "expected"),
    [("MedQA", {Leak.RESULT: 22}), ("MedQA_Ext", {Leak.RESULT: 39}), ("NEJM", {}), ("NEJM_Ext", {})],
)
def test_the_public_sets_have_as_many_leaks_as_a_person_counted(name: str, expected: dict[Leak, int]) -> None:
    assert public_path(name).exists()
    assert Counter(leak.kind for case in public_cases(name) for leak in leaks(case)) == expected
