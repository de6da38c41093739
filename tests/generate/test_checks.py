"""What must not be in a case is found wherever it is planted; a clean case raises no alarm."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from generate_support import STORY, good, source
from helpers import needs_public_data, public_cases

from agentclinic.cases.leaks import leaks
from agentclinic.generate.case import case_row, prepare
from agentclinic.generate.checks import Problem, check
from agentclinic.generate.source import SourceCase, Truth
from agentclinic.vocabulary.disease_names import Names

Row = dict[str, Any]

SECTIONS: dict[str, tuple[str, ...]] = {
    "objective": ("Objective_for_Doctor",),
    "history": ("Patient_Actor", "History"),
    "primary symptom": ("Patient_Actor", "Symptoms", "Primary_Symptom"),
    "secondary symptoms": ("Patient_Actor", "Symptoms", "Secondary_Symptoms"),
    "past history": ("Patient_Actor", "Past_Medical_History"),
    "medications": ("Patient_Actor", "Medications"),
    "social history": ("Patient_Actor", "Social_History"),
    "family history": ("Patient_Actor", "Family_History"),
    "review of systems": ("Patient_Actor", "Review_of_Systems"),
    "vital signs": ("Physical_Examination_Findings", "Vital_Signs", "Temperature"),
    "laboratory": ("Test_Results", "Blood_Chemistry", "Sodium"),
    "microbiology": ("Test_Results", "Microbiology", "URINE", "URINE_CULTURE"),
}
STORY_SECTIONS = [name for name, place in SECTIONS.items() if not place[0].startswith(("Physical", "Test"))]
RESULT_SECTIONS = [name for name in SECTIONS if name not in STORY_SECTIONS]


def plant(row: Row, section: str, text: str) -> tuple[Row, str]:
    """A copy of the case with the text at the end of a section, and where that is."""
    row = copy.deepcopy(row)
    *above, last = SECTIONS[section]
    at = row["OSCE_Examination"]
    for name in above:
        at = at[name]
    if isinstance(at[last], list):
        at[last].append(text)
    else:
        at[last] = f"{at[last]} {text}"
    return row, "/".join(SECTIONS[section])


def found_in(problems: list[Problem], path: str) -> set[str]:
    return {problem.kind for problem in problems if problem.path.startswith(path)}


def test_the_case_before_anything_is_planted_is_clean() -> None:
    row, prepared = good()
    assert check(row, prepared) == []


HEART = Truth("Non-ST elevation (NSTEMI) myocardial infarction", "I214", 10)
NERVE = Truth("Amyotrophic lateral sclerosis", "33520", 9)
BOWEL = Truth("Intestinal infection due to Clostridium difficile", "00845", 9)
LIVER = Truth("Alcoholic cirrhosis of liver with ascites", "K7031", 10)
LUNG = Truth("Saddle embolus of pulmonary artery with acute cor pulmonale", "I2602", 10)
CANCER = Truth("Malignant neoplasm of gallbladder", "1560", 9)
KINDS = {"door_leak", "patient_leak", "result_names_diagnosis", "history_of_same"}
LEAKS = [
    ("title", HEART, "Then a non-ST elevation myocardial infarction was seen."),
    ("everyday synonym", HEART, "It was a heart attack."),
    ("abbreviation", HEART, "NSTEMI is suspected."),
    ("code with dot", HEART, "Filed under I21.4 today."),
    ("code without dot", HEART, "Filed under I214 today."),
    ("code's category", HEART, "Filed under I21 today."),
    ("eponym", NERVE, "This is Lou Gehrig's disease."),
    ("abbreviation of three letters", NERVE, "Looks like ALS to us."),
    ("announced numeric code", NERVE, "ICD-9 code 335.20 was given."),
    ("synonym", BOWEL, "Known for pseudomembranous colitis."),
    ("new name of the organism", BOWEL, "A Clostridioides difficile infection is likely."),
    ("abbreviation of the vocabulary", BOWEL, "Treated for CDI."),
    ("companion disease by eponym", LIVER, "Laennec's cirrhosis was told."),
    ("companion disease", LIVER, "An alcoholic cirrhosis was told."),
    ("abbreviation of two letters", LUNG, "Scan for PE was positive."),
    ("other word order", LUNG, "An embolism of the pulmonary artery was found."),
    ("everyday name of a tumour", CANCER, "A cancer of the gallbladder."),
    ("another everyday name of it", CANCER, "Gallbladder carcinoma."),
]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(("what", "truth", "text"), LEAKS, ids=[what for what, _, _ in LEAKS])
def test_a_planted_leak_is_found_in_every_section(what: str, truth: Truth, text: str, section: str) -> None:
    row, prepared = good(source(truth))
    assert check(row, prepared) == []
    planted, path = plant(row, section, text)
    leaked = found_in(check(planted, prepared), path) & KINDS
    # "Cirrhosis with ascites": that the patient is known to have cirrhosis may be in the past history, nowhere else.
    may_be_told = what.startswith("companion") and section in ("past history", "medications", "family history")
    assert bool(leaked) is not may_be_told


@pytest.mark.parametrize(("what", "truth", "text"), LEAKS, ids=[what for what, _, _ in LEAKS])
def test_what_the_writer_is_told_about_a_leak_does_not_name_the_diagnosis(what: str, truth: Truth, text: str) -> None:
    row, prepared = good(source(truth))
    planted, _ = plant(row, "history", text)
    told = " ".join(problem.for_writer for problem in check(planted, prepared) if problem.fixable)
    assert "names a disease" in told
    assert not list(Names(truth.title, truth.synonyms, [truth.code]).find(told))


@pytest.mark.parametrize(
    ("truth", "text"),
    [
        (HEART, "No heart attack."),
        (NERVE, "Also takes all drugs as told."),
        (NERVE, "Creatine kinase 335.20 U/L"),
        (LUNG, "The PE of the chart is unremarkable in small letters: pe."),
        (BOWEL, "Clostridium difficile toxin negative"),
        (LIVER, "Liver span 12 cm"),
        (CANCER, "Gallbladder stones"),
    ],
)
def test_a_text_that_does_not_name_the_diagnosis_is_not_a_leak(truth: Truth, text: str) -> None:
    expected = truth is LUNG  # the checker reads PE in capitals as pulmonary embolism
    assert bool(list(Names(truth.title, truth.synonyms, [truth.code]).find(text, result=True))) is expected


@pytest.mark.parametrize("section", RESULT_SECTIONS)
@pytest.mark.parametrize("text", ["(then 1.7)", "range 4-9", "in 0.31 of samples", "1.31"])
def test_an_invented_number_in_a_result_is_found(text: str, section: str) -> None:
    row, prepared = good()
    planted, path = plant(row, section, text)
    assert found_in(check(planted, prepared), path) == {"invented_number"}


@pytest.mark.parametrize("section", STORY_SECTIONS)
@pytest.mark.parametrize("text", ["for 5 days", "twelve times", "at 2.5 m"])
def test_an_invented_number_in_the_story_is_found(text: str, section: str) -> None:
    row, prepared = good()
    planted, path = plant(row, section, text)
    assert found_in(check(planted, prepared), path) == {"invented_number"}


def test_a_number_from_another_row_is_invented() -> None:
    """131 is a sodium value: as a temperature it is invented."""
    row, prepared = good()
    planted, path = plant(row, "vital signs", "131")
    assert found_in(check(planted, prepared), path) == {"invented_number"}


def test_a_result_without_a_row_is_found() -> None:
    row, prepared = good()
    row["OSCE_Examination"]["Test_Results"]["Blood_Chemistry"]["Urea"] = "high"
    assert [(p.kind, p.path) for p in check(row, prepared)] == [
        ("untraced_result", "Test_Results/Blood_Chemistry/Urea")
    ]


PERSONAL = [
    ("identifier", "patient 90000001"),
    ("identifier", "stay 80000002"),
    ("identifier", "call (617) 555-0133"),
    ("identifier", "mail jane@example.org"),
    ("identifier", "MRN unknown"),
    ("identifier", "as Dr. Miller said"),
    ("identifier", "see www.example.org/x"),
    ("date", "on 2187-03-05"),
    ("date", "on 3/5/2187"),
    ("date", "on March 5"),
    ("date", "on 5 March 2187"),
    ("removed_text", "by ___ again"),
]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(("kind", "text"), PERSONAL)
def test_identifiers_dates_and_marks_of_removed_text_are_found_in_every_section(
    kind: str, text: str, section: str
) -> None:
    row, prepared = good()
    planted, path = plant(row, section, text)
    assert kind in found_in(check(planted, prepared), path)


def test_a_year_or_a_long_number_is_private_in_a_story_and_a_value_in_a_result() -> None:
    row, prepared = good()
    for text, kind in (("since 2011", "date"), ("number 7654321", "identifier")):
        planted, path = plant(row, "history", text)
        assert kind in found_in(check(planted, prepared), path)
        planted, path = plant(row, "laboratory", text)
        assert found_in(check(planted, prepared), path) == {"invented_number"}


def test_an_identifier_in_an_annotation_is_found() -> None:
    row, prepared = good()
    row["note"] = {"subject": 90000001}
    assert [problem.kind for problem in check(row, prepared)] == ["identifier"]


@pytest.mark.parametrize("text", ["She has a fever.", "She denies chest pain.", "She is short of breath."])
def test_a_symptom_that_is_not_in_the_source_is_invented(text: str) -> None:
    row, prepared = good()
    planted, path = plant(row, "history", text)
    assert found_in(check(planted, prepared), path) == {"invented_finding"}


def test_a_denied_symptom_reported_as_present_is_invented() -> None:
    told = source(story=("History of present illness: belly cramps for 3 days, no fever.",))
    row, prepared = good(told, STORY.model_copy(update={"history": "Belly cramps and fever for 3 days."}))
    assert "invented_finding" in {problem.kind for problem in check(row, prepared)}


def test_triage_shorthand_may_be_written_out() -> None:
    told = source(history_source="triage", story=("SOB", "CP"), past=(), drugs=())
    story = STORY.model_copy(
        update={
            "objective": "Assess the patient presenting with shortness of breath.",
            "history": "She has shortness of breath and chest pain.",
            "primary_symptom": "Shortness of breath",
            "secondary_symptoms": ["Chest pain"],
            "past_medical_history": "",
            "medications": "",
            "social_history": "",
            "family_history": "",
            "review_of_systems": "",
        }
    )
    row, prepared = good(told, story)
    assert check(row, prepared) == []


@pytest.mark.parametrize("field", ["primary_symptom", "review_of_systems"])
def test_symptoms_are_invented_if_only_codes_are_on_record(field: str) -> None:
    told = source(history_source="codes", story=())
    empty: dict[str, Any] = {**dict.fromkeys(WRITTEN, ""), "secondary_symptoms": []}
    story = STORY.model_copy(update={**empty, "past_medical_history": "Gallstones removed 7 years ago."})
    row, prepared = good(told, story)
    assert check(row, prepared) == []
    row, prepared = good(told, story.model_copy(update={field: "Tired"}))
    assert "invented_story" in {problem.kind for problem in check(row, prepared)}


WRITTEN = (
    "history",
    "primary_symptom",
    "past_medical_history",
    "medications",
    "social_history",
    "family_history",
    "review_of_systems",
)


def test_label_data_class_and_history_source_must_be_the_sources() -> None:
    row, prepared = good()
    row["OSCE_Examination"]["Correct_Diagnosis"] = "Something else"
    row["data_class"] = "synthetic"
    row["history_source"] = "triage"
    assert {problem.kind for problem in check(row, prepared)} == {"label", "data_class", "history_source"}


def test_a_case_that_cannot_be_read_names_the_missing_key() -> None:
    row, prepared = good()
    del row["OSCE_Examination"]["Patient_Actor"]
    (problem,) = check(row, prepared)
    assert problem.kind == "schema"
    assert "Patient_Actor is missing" in problem.detail


def test_without_any_history_the_case_is_labs_only_and_says_so() -> None:
    bare = source(history_source="none", story=(), past=(), drugs=())
    row, prepared = good(bare, None)
    assert check(row, prepared) == []
    assert (row["labs_only"], row["history_source"]) == (True, "none")
    patient = row["OSCE_Examination"]["Patient_Actor"]
    assert set(patient) == {"Demographics", "History"}
    assert "not on record" in patient["History"]
    assert "not on record" in row["OSCE_Examination"]["Objective_for_Doctor"]


def test_a_case_with_neither_history_nor_results_is_empty() -> None:
    bare = source(history_source="none", story=(), past=(), drugs=(), vitals=(), labs=(), cultures=())
    row, prepared = good(bare, None)
    assert "empty" in {problem.kind for problem in check(row, prepared)}


def given_away() -> SourceCase:
    base = source(HEART)
    return replace(
        base,
        story=("Belly cramps for 3 days. Sent for NSTEMI.", "His father had a heart attack."),
        past=("Old myocardial infarction", "Gout"),
        drugs=("aspirin after a heart attack", "allopurinol"),
        labs=(*base.labs, replace(base.labs[0], name="NSTEMI marker", rows=("labevents:99",))),
    )


def test_what_names_the_diagnosis_is_kept_from_the_writer_and_from_the_chart() -> None:
    prepared = prepare(given_away())
    payload = prepared.brief.payload
    assert payload.story == ("Belly cramps for 3 days.",)
    assert (payload.past, payload.drugs) == (("Gout",), ("allopurinol",))
    assert prepared.brief.withheld == 4
    assert prepared.chart.withheld == 1
    assert "NSTEMI" not in str(prepared.chart.tests)
    assert case_row(prepared, STORY, {})["withheld"] == {"story": 4, "results": 1}


def test_a_story_with_nothing_left_is_not_a_story() -> None:
    prepared = prepare(source(HEART, story=("Heart attack.",), past=(), drugs=()))
    assert prepared.labs_only
    assert prepare(source(HEART, story=("Heart attack.",))).brief.payload.history_source == "codes"


def test_results_have_value_unit_range_flag_and_time_from_admission() -> None:
    row, prepared = good()
    tests = row["OSCE_Examination"]["Test_Results"]
    assert tests["Blood_Chemistry"]["Sodium"] == "131 mEq/L (reference 135-147; abnormal), 1.2 h after admission"
    assert tests["Microbiology"]["URINE"]["URINE_CULTURE"] == (
        "FICTIVIBACTER MODELLII; sensitive to GENTAMICIN; resistant to AMPICILLIN, 2 h after admission"
    )
    assert prepared.chart.trace["Test_Results/Blood_Chemistry/Sodium"] == ("labevents:11",)


@pytest.mark.parametrize(
    ("age", "sex", "expected"),
    [
        (54, "Female", "54-year-old woman"),
        (7, "Male", "7-year-old boy"),
        (90, "Male", "man older than 89 years"),
        (None, "Female", "female patient"),
        (None, "", "patient"),
        (0, "Male", "infant boy"),
        (40, "", "40-year-old patient"),
    ],
)
def test_age_and_sex_are_given_if_known(age: int | None, sex: str, expected: str) -> None:
    row, prepared = good(source(age=age, sex=sex))
    assert row["OSCE_Examination"]["Patient_Actor"]["Demographics"] == expected
    assert check(row, prepared) == []


@pytest.mark.slow
@needs_public_data
def test_no_public_case_is_said_to_name_an_invented_disease() -> None:
    """Whatever is found is a false alarm."""
    invented = ("Frobisher fever", "Zyxwort syndrome", "Acute marsh ague of Quell", "Morbus Tarnow")
    for case in public_cases("MedQA_Ext"):
        for name in invented:
            assert leaks(replace(case, diagnosis=name)) == []
