"""Reading findings from a dialogue: present, absent, or not mentioned."""

from __future__ import annotations

import pytest

from agentclinic.cases.model import Door
from agentclinic.clinic.findings import Evidence, gather
from agentclinic.results.turn import Disclosure, Exchange, Provenance

DOOR = Door("Find out what is wrong.", "40-year-old woman")


def heard(question: str, reply: str, *disclosures: Disclosure) -> Evidence:
    return gather(DOOR, [Exchange("question", question, reply, disclosures)])


def reported(order: str, reply: str, *disclosures: Disclosure) -> Evidence:
    return gather(DOOR, [Exchange("test", order, reply, disclosures)])


@pytest.mark.parametrize(
    ("question", "reply", "evidence"),
    [
        ("Do you have a cough?", "Yes.", {"cough": True}),
        ("Do you have a cough?", "No.", {"cough": False}),
        ("Do you have a cough?", "Not really.", {"cough": False}),
        ("Do you have a cough?", "I do.", {"cough": True}),
        ("Do you have a cough or chills?", "Yes.", {}),
        ("Do you have a cough or chills?", "No.", {}),
        ("Do you have a cough?", "I have chills.", {"chills": True}),
        ("Do you have a cough?", "I have no complaints of that kind.", {}),
        ("Do you have a cough?", "No, but I have chills.", {"cough": False, "chills": True}),
        ("What brings you in?", "I have chills but no cough.", {"cough": False, "chills": True}),
        ("What brings you in?", "A non-productive cough.", {"cough": True, "productive_cough": False}),
        ("What brings you in?", "I am not sure.", {}),
    ],
)
def test_a_bare_yes_or_no_counts_only_if_one_thing_was_asked(question: str, reply: str, evidence: Evidence) -> None:
    assert heard(question, reply) == evidence


@pytest.mark.parametrize("provenance", [Provenance.DEFAULT_NEGATIVE, Provenance.UNAVAILABLE])
def test_a_default_answer_of_the_patient_is_not_evidence(provenance: Provenance) -> None:
    assert heard("Do you have a cough?", "No, I have not noticed that.", Disclosure("Cough", provenance)) == {}
    assert heard("Do you have a cough?", "No cough.", Disclosure("Cough", provenance)) == {}


def test_what_is_charted_counts_next_to_a_default() -> None:
    evidence = heard(
        "Do you have a cough or chills?",
        "No chills. I have not noticed the rest.",
        Disclosure("Chills or rigors", Provenance.CHART, ("a",)),
        Disclosure("Cough", Provenance.DEFAULT_NEGATIVE),
    )
    assert evidence == {"chills": False}


@pytest.mark.parametrize("provenance", [Provenance.DEFAULT_NORMAL, Provenance.UNAVAILABLE])
@pytest.mark.parametrize(
    "reply",
    [
        "RESULTS: NORMAL READINGS",
        "RESULTS: Electrocardiogram not available.",
        "RESULTS: No result available for 'ECG'.",
    ],
)
def test_a_default_result_is_not_evidence(provenance: Provenance, reply: str) -> None:
    assert reported("ECG", reply, Disclosure("Electrocardiogram", provenance)) == {}
    assert reported("ECG", reply) == {}, "also where the laboratory is a language model that says so in words"


def test_a_charted_normal_report_makes_what_its_test_shows_absent() -> None:
    evidence = reported("ECG", "RESULTS: Normal.", Disclosure("Electrocardiogram", Provenance.CHART, ("a",)))
    assert evidence["st_elevation"] is False
    assert "lung_infiltrate" not in evidence


def test_a_charted_normal_report_says_nothing_about_a_test_not_done() -> None:
    evidence = reported(
        "ECG and chest x-ray",
        "RESULTS: Electrocardiogram: Normal. NORMAL READINGS",
        Disclosure("Electrocardiogram", Provenance.CHART, ("a",)),
        Disclosure("Chest X-ray", Provenance.DEFAULT_NORMAL),
    )
    assert evidence["st_elevation"] is False
    assert "lung_infiltrate" not in evidence


def test_default_normal_readings_next_to_a_charted_report_are_not_evidence() -> None:
    evidence = reported(
        "ECG and chest x-ray",
        "RESULTS: Electrocardiogram: Rate 90. NORMAL READINGS",
        Disclosure("Electrocardiogram", Provenance.CHART, ("a",)),
        Disclosure("Chest X-ray", Provenance.DEFAULT_NORMAL),
    )
    assert evidence == {}


NUMBERS = [
    ("Temperature: 38.3°C", "fever_measured", True),
    ("Temperature: 101°F (38.3°C)", "fever_measured", True),
    ("Temperature: 38.3°C (101°F)", "fever_measured", True),
    ("Temperature: 36.8°C (98.2°F)", "fever_measured", False),
    ("Temperature: 98.6 F", "fever_measured", False),
    ("Temp 39.1", "fever_measured", True),
    ("Blood Pressure: 85/60 mmHg", "hypotension", True),
    ("BP 120/80", "hypotension", False),
    ("BP: 165/85", "hypertension_measured", True),
    ("Heart Rate: 120/min", "tachycardia", True),
    ("Heart Rate: 120/min", "bradycardia", False),
    ("WBC: 14,500/mm3", "leukocytosis", True),
    ("WBC: 14500 cells/µL", "leukocytosis", True),
    ("WBC 14.5 x 10^9/L", "leukocytosis", True),
    ("WBC: 7.2 K/uL", "leukocytosis", False),
    ("White blood cell count: 2,100/mm3", "leukopenia", True),
    ("WBC: 2.1 x10^3/µL", "leukopenia", True),
    ("Hemoglobin: 8.3 g/dL (low)", "low_hemoglobin", True),
    ("Hemoglobin (Hb): 83 g/L", "low_hemoglobin", True),
    ("Hemoglobin: 14 g/dL", "low_hemoglobin", False),
    ("Platelets: 35,600 /mm3", "thrombocytosis", False),
    ("Glucose: 320 mg/dL", "high_glucose", True),
    ("Glucose: 18 mmol/L", "high_glucose", True),
    ("Oxygen Saturation: 88% on room air", "hypoxia", True),
    ("Sodium is 128 mEq/L", "hyponatremia", True),
    ("pH: 7.15", "acidosis", True),
]


@pytest.mark.parametrize(("report", "finding", "present"), NUMBERS)
def test_a_number_is_read_in_its_unit_and_magnitude(report: str, finding: str, present: bool) -> None:
    assert reported("Tests", f"RESULTS: {report}.")[finding] is present


@pytest.mark.parametrize(
    ("order", "report"),
    [
        ("Lumbar puncture", "Lumbar Puncture: WBC: 14,500; Glucose: 320 mg/dL."),
        ("Lumbar_puncture", "WBC: 14,500; Glucose: 320 mg/dL."),
        ("Joint aspiration", "Synovial Fluid: WBC: 60,000."),
        ("CBC and CSF", "CSF: Red blood cells: 5; White blood cells: 14,500; Glucose: 320 mg/dL."),
        ("Thoracentesis", "Pleural Fluid Analysis: WBC 20,000, glucose 300 mg/dL."),
        ("Urinalysis", "Urinalysis: Glucose: 500 mg/dL; WBC: 30/hpf."),
    ],
)
def test_values_of_another_fluid_are_not_blood_values(order: str, report: str) -> None:
    evidence = reported(order, f"RESULTS: {report}")
    assert not {"leukocytosis", "high_glucose", "leukopenia"} & set(evidence)


def test_blood_values_are_read_next_to_those_of_another_fluid() -> None:
    evidence = reported(
        "CBC and CSF", "RESULTS: Lumbar Puncture: WBC: 3. Complete Blood Count: WBC: 14,500/mm3; Hemoglobin: 8 g/dL."
    )
    assert evidence["leukocytosis"] is True
    assert evidence["leukopenia"] is False
    assert evidence["low_hemoglobin"] is True


def test_septic_joint_fluid_is_read_from_the_joint() -> None:
    assert reported("Joint aspiration", "RESULTS: Synovial fluid WBC: 90,000/µL.")["septic_synovial_fluid"] is True


def test_a_later_denial_does_not_undo_a_finding() -> None:
    exchanges = [
        Exchange("question", "What brings you in?", "I have a cough."),
        Exchange("question", "Anything else?", "No cough at the moment."),
    ]
    assert gather(DOOR, exchanges) == {"cough": True}


def test_what_the_doctor_is_told_first_is_evidence() -> None:
    assert gather(Door("See a patient with a cough.", ""), []) == {"cough": True}
