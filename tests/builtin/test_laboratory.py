"""The builtin laboratory reports what was ordered, as the chart has it, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from helpers import PUBLIC, case_of, needs_public_data, nejm, order, osce, public_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.cases.model import PATIENT_SECTIONS
from agentclinic.results.turn import Provenance

CASE = case_of(
    osce(
        patient={"Demographics": "40-year-old woman", "History": "The patient secretly swallowed a marble."},
        exam={
            "Vital_Signs": {"Temperature": "38.2°C", "Blood_Pressure": "120/80 mmHg", "Heart_Rate": "104 bpm"},
            "Cardiovascular_Examination": {"Auscultation": "Soft systolic murmur"},
            "Abdominal_Examination": {"Palpation": "Tender on the left"},
            "Eye_Examination": {"Intraocular_Pressure": "14 mmHg"},
        },
        tests={
            "Complete_Blood_Count": {"WBC": "14,000/µL", "Hemoglobin": "11.1 g/dL", "Platelets": "300,000/µL"},
            "Blood_Tests": {"Sodium": "139 mEq/L", "Lipase": "30 U/L"},
            "Peripheral_Blood_Smear": "Toxic granulation",
            "Lumbar_Puncture": {"Glucose": "31 mg/dL", "WBC": "900/µL", "Opening_Pressure": "24 cmH2O"},
            "Urine_Culture": "Escherichia coli",
            "MRI_Brain": {"Findings": "A small cyst"},
            "CT_Abdomen_and_Pelvis": {"Findings": "Thick sigmoid wall"},
            "Ventilation_Perfusion_Scan": {"Findings": "Low probability"},
        },
    )
)


def told(request: str) -> set[str]:
    """The chart values in a report."""
    paths = {path for disclosure in order(CASE, request).disclosures for path in disclosure.paths}
    return {path.split("/", 1)[1] for path in paths}


ORDERS: list[tuple[str, set[str]]] = [
    ("CBC", {"Complete_Blood_Count/WBC", "Complete_Blood_Count/Hemoglobin", "Complete_Blood_Count/Platelets"}),
    ("Hemoglobin", {"Complete_Blood_Count/Hemoglobin"}),
    ("hemoglobin level", {"Complete_Blood_Count/Hemoglobin"}),
    ("serum sodium", {"Blood_Tests/Sodium"}),
    ("Lipase", {"Blood_Tests/Lipase"}),
    ("Temperature", {"Vital_Signs/Temperature"}),
    ("blood pressure", {"Vital_Signs/Blood_Pressure"}),
    ("intraocular pressure", {"Eye_Examination/Intraocular_Pressure"}),
    ("opening pressure", {"Lumbar_Puncture/Opening_Pressure"}),
    ("Vital signs", {"Vital_Signs/Temperature", "Vital_Signs/Blood_Pressure", "Vital_Signs/Heart_Rate"}),
    ("vitals", {"Vital_Signs/Temperature", "Vital_Signs/Blood_Pressure", "Vital_Signs/Heart_Rate"}),
    ("cardiac exam", {"Cardiovascular_Examination/Auscultation"}),
    ("Abdominal examination, please", {"Abdominal_Examination/Palpation"}),
    (
        "CBC_with_differential_and_peripheral_smear",
        {
            "Complete_Blood_Count/WBC",
            "Complete_Blood_Count/Hemoglobin",
            "Complete_Blood_Count/Platelets",
            "Peripheral_Blood_Smear",
        },
    ),
    ("MRI brain w/wo contrast", {"MRI_Brain/Findings"}),
    ("Brain_MRI_with_and_without_contrast", {"MRI_Brain/Findings"}),
    ("abdominal CT", {"CT_Abdomen_and_Pelvis/Findings"}),
    ("lumbar puncture", {"Lumbar_Puncture/Glucose", "Lumbar_Puncture/WBC", "Lumbar_Puncture/Opening_Pressure"}),
    ("Lipase, sodium and temperature", {"Blood_Tests/Lipase", "Blood_Tests/Sodium", "Vital_Signs/Temperature"}),
    ("urine culture", {"Urine_Culture"}),
]
NOT_THERE = [
    "serum lactate",
    "blood glucose",
    "glucose",
    "blood culture",
    "rectal examination",
    "MRI knee",
    "CT head",
    "chest x-ray",
    "edrophonium test (Tensilon)",
    "frobnication",
    "troponin",
    "marble",
]


@pytest.mark.parametrize(("request_", "expected"), ORDERS)
def test_an_order_gets_only_what_it_names(request_: str, expected: set[str]) -> None:
    reply = order(CASE, request_)
    assert told(request_) == expected
    assert {disclosure.provenance for disclosure in reply.disclosures} == {Provenance.CHART}
    assert reply.text.startswith("RESULTS: ")


@pytest.mark.parametrize("request_", NOT_THERE)
def test_a_test_that_is_not_in_the_chart_is_unavailable_or_normal_as_configured(request_: str) -> None:
    unavailable, normal = order(CASE, request_), order(CASE, request_, "normal")
    assert [d.provenance for d in unavailable.disclosures] == [Provenance.UNAVAILABLE]
    assert "available" in unavailable.text
    assert [d.provenance for d in normal.disclosures] == [Provenance.DEFAULT_NORMAL]
    assert normal.text == "RESULTS: NORMAL READINGS"


def test_what_is_no_known_test_is_quoted_as_it_was_written() -> None:
    assert (
        order(CASE, "can I have a cheeseburger").text == "RESULTS: No result available for 'can I have a cheeseburger'."
    )
    assert order(CASE, "tilt table test").text == "RESULTS: Tilt table test not available."


def test_a_reviewed_equivalent_answers_and_says_so() -> None:
    reply = order(CASE, "CT pulmonary angiography")
    assert [d.provenance for d in reply.disclosures] == [Provenance.CHART_EQUIVALENT]
    assert "CT pulmonary angiography was not done; Ventilation-perfusion scan" in reply.text
    assert "Low probability" in reply.text


def test_each_of_several_orders_in_one_line_gets_its_own_answer() -> None:
    reply = order(CASE, "Lipase and troponin")
    assert {d.provenance for d in reply.disclosures} == {Provenance.CHART, Provenance.UNAVAILABLE}
    assert "30 U/L" in reply.text
    assert "Cardiac troponin not available." in reply.text


EXAMINED = {
    "Cardiovascular_Examination/Auscultation",
    "Abdominal_Examination/Palpation",
    "Eye_Examination/Intraocular_Pressure",
}


@pytest.mark.parametrize(
    ("request_", "vitals"),
    [
        ("Physical examination", set()),
        ("Comprehensive physical exam (heart, lungs)", set()),
        ("Physical exam with blood pressure", {"Vital_Signs/Blood_Pressure"}),
        ("Physical exam including temperature and BP", {"Vital_Signs/Temperature", "Vital_Signs/Blood_Pressure"}),
    ],
)
def test_an_examination_includes_the_vital_signs_it_names_and_no_tests(request_: str, vitals: set[str]) -> None:
    assert told(request_) == EXAMINED | vitals


@pytest.mark.parametrize("request_", ["full physical exam", "Comprehensive physical exam (heart, lungs, vital signs)"])
def test_a_full_examination_includes_vital_signs_but_no_tests(request_: str) -> None:
    assert told(request_) == {
        "Vital_Signs/Temperature",
        "Vital_Signs/Blood_Pressure",
        "Vital_Signs/Heart_Rate",
        "Cardiovascular_Examination/Auscultation",
        "Abdominal_Examination/Palpation",
        "Eye_Examination/Intraocular_Pressure",
    }


def test_values_are_listed_under_one_heading_as_in_the_chart() -> None:
    assert order(CASE, "CBC").text == (
        "RESULTS: Complete Blood Count: WBC: 14,000/µL; Hemoglobin: 11.1 g/dL; Platelets: 300,000/µL."
    )


@pytest.mark.parametrize("fluid", ["Pleural_Fluid", "CSF_Analysis", "Synovial_Fluid", "Urinalysis", "Ascitic_Fluid"])
def test_the_cells_of_another_fluid_are_not_a_blood_count(fluid: str) -> None:
    case = case_of(osce(tests={fluid: {"WBC": "900", "Glucose": "31"}}))
    for request in ("CBC", "blood glucose", "WBC"):
        (disclosure,) = order(case, request).disclosures
        assert disclosure.provenance is Provenance.UNAVAILABLE, request


def test_results_in_prose_are_found_by_their_words() -> None:
    case = case_of(nejm(physical_exams="Temperature: 38.5 C. The toe is red."))
    assert "38.5 C" in order(case, "temperature").text
    assert "The toe is red" in order(case, "toe").text


def test_a_report_does_not_depend_on_the_true_diagnosis() -> None:
    for request in [request for request, _ in ORDERS] + NOT_THERE:
        rows = [osce(tests={"Blood_Tests": {"Lipase": "30"}}, truth=truth) for truth in ("Gout", "Lipase fever")]
        first, second = (order(case_of(row), request) for row in rows)
        assert first == second


@given(st.text(max_size=60))
@settings(max_examples=100)
def test_any_order_is_answered_from_the_charts_facts_alone(request_: str) -> None:
    known = {fact.path for fact in CASE.exam_facts}
    reply = order(CASE, request_)
    assert reply.text.startswith("RESULTS: ")
    assert reply.disclosures
    assert all(path in known for disclosure in reply.disclosures for path in disclosure.paths)
    assert "marble" not in reply.text or "marble" in request_.lower()


@needs_public_data
def test_the_orders_of_a_real_doctor_are_answered_from_the_chart() -> None:
    cases = public_cases("MedQA_Ext")
    provenance: dict[Provenance, int] = {}
    for line in (PUBLIC / "judge" / "test_requests.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        case = cases[row["scenario_id"]]
        known = {fact.path: fact for fact in case.exam_facts}
        reply = order(case, row["request"].split("REQUEST TEST:")[-1])
        for disclosure in reply.disclosures:
            provenance[disclosure.provenance] = provenance.get(disclosure.provenance, 0) + 1
            assert all(known[path].section not in PATIENT_SECTIONS for path in disclosure.paths)
            assert bool(disclosure.paths) == (disclosure.provenance is not Provenance.UNAVAILABLE)
    assert provenance[Provenance.CHART] > 50
