"""What a laboratory that completes missing tests says to the orders of busy doctors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulator_support import CASE

from agentclinic.builtin.roles import report
from agentclinic.cases.completion import completion
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.clinic.payloads import LaboratoryPayload

EXAMINED = {
    ("General Appearance",): "Tired, slightly yellow",
    ("Abdominal Examination", "Palpation"): "Soft, liver edge 2 cm below the ribs",
    ("Neurological Examination", "Mental Status"): "Montreal Cognitive Assessment 22/30, clock correct",
    ("Neurological Examination", "Cranial Nerves"): "Right upper lid slightly low, pupils equal",
    ("ENT Examination", "Findings"): "No mouth ulcers",
    ("Skin Examination", "Findings"): "Scratch marks on both forearms",
}
TESTED = {
    ("Hepatitis Serology", "Hepatitis B Surface Antigen"): "Positive",
    ("Serum Protein Electrophoresis", "Findings"): "Narrow band in the gamma region; total protein 10.1 g/dL",
    ("Joint Fluid Analysis", "Crystals"): "None",
}


def charted() -> Case:
    facts = [
        Fact(f"{kind}/{'/'.join(heads)}", section, heads, text)
        for kind, section, found in (
            ("Physical_Examination_Findings", Section.EXAMINATION, EXAMINED),
            ("Test_Results", Section.TESTS, TESTED),
        )
        for heads, text in found.items()
    ]
    return replace(CASE, facts=(*CASE.patient_facts, *facts))


def reply(order: str, **more: Any) -> str:
    case = charted()
    return report(LaboratoryPayload(case.exam_facts, order, "completed", completion(case), **more)).text


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("Jaundice, splenomegaly", ["Tired, slightly yellow", "liver edge 2 cm"]),
        ("Abdo mass", ["liver edge 2 cm"]),
        ("Ptosis", ["Right upper lid slightly low"]),
        ("Excoriations", ["Scratch marks"]),
        ("Facial droop", ["Right upper lid"]),
        ("Recession, creps", ["Respiratory Examination: "]),
    ],
)
def test_a_sign_that_is_not_charted_is_answered_by_the_examination_it_belongs_to(order: str, said: list[str]) -> None:
    text = reply(order)
    assert "not available" not in text
    assert "No result" not in text
    assert all(words in text for words in said)


def test_a_sign_is_not_called_unavailable_after_the_finding_that_covers_it() -> None:
    once = reply("Abdominal examination")
    assert reply("Abdominal examination for guarding and an abdominal mass") == once


def test_a_sign_that_a_normal_summary_does_not_mention_is_completed() -> None:
    assert "Sinuses: Not tender" in reply("Sinus palpation")


@pytest.mark.parametrize("order", ["MoCA", "MMSE or MoCA with recall and cueing", "Clock drawing"])
def test_a_test_that_an_examination_mentions_is_answered_by_it(order: str) -> None:
    assert reply(order) == (
        "RESULTS: Neurological Examination: Mental Status: Montreal Cognitive Assessment 22/30, clock correct."
    )


def test_a_charted_value_is_not_contradicted_by_a_completed_one() -> None:
    assert "B and C: Negative" not in reply("Hepatitis B, hepatitis C, HIV")
    assert "Total Protein: 10.1 g/dL" in reply("Total protein")


@pytest.mark.parametrize(
    ("order", "elsewhere"),
    [
        ("Respiratory viral PCR, swabs", "Vaginal Swab"),
        ("Grip and release", "Interferon"),
        ("MRI thighs", "Brachial Plexus"),
        ("Urine microscopy for casts and crystals", "Joint Fluid"),
        ("Power L2-S1", "Cardiovascular"),
        ("Corneal oedema", "Cardiovascular"),
        ("Fluid balance", "Gait"),
        ("Varicella IgG", "Vesicle"),
        ("Pelvic XR", "MRI"),
        ("Mast cell tryptase", "Blood Count"),
        ("Temporal scalp hair", "Hearing"),
    ],
)
def test_nothing_from_another_place_answers(order: str, elsewhere: str) -> None:
    assert elsewhere not in reply(order)


@pytest.mark.parametrize(
    ("order", "pending"),
    [
        ("Beta-2 microglobulin", "Beta-2 microglobulin: taken, result pending."),
        ("IgG4, TPMT", "IgG4: taken, result pending. TPMT: taken, result pending."),
        ("Gallium scan", "Gallium scan: arranged, result pending."),
        ("Somatosensory evoked potentials", "Somatosensory evoked potentials: arranged, result pending."),
    ],
)
def test_what_takes_long_is_pending_though_the_table_lacks_it(order: str, pending: str) -> None:
    assert reply(order, horizon=72.0) == f"RESULTS: {pending}"


@pytest.mark.parametrize(
    "order",
    [
        *("hs-trop", "Sats", "HVS", "CTH non-con", "BM", "Flexi sig", "SFEMG", "G&S", "XR pelvis", "TOE"),
        *("CT perfusion", "Skeletal survey", "Fibroscan", "MAG3 renogram", "Ambulatory BP", "Calcitriol", "ERCP"),
        *(
            "Q fever serology",
            "Rubella IgG",
            "Schirmer test",
            "Carotid sinus massage",
            "Hand ultrasound",
            "Transferrin",
        ),
    ],
)
def test_what_is_often_ordered_has_a_result(order: str) -> None:
    text = reply(order)
    assert "not available" not in text
    assert "No result" not in text


def test_a_drug_level_is_found_in_those_who_take_the_drug() -> None:
    assert reply("Lithium level") == "RESULTS: Lithium Level: Not detected."
    taking = replace(charted(), facts=(*charted().facts, Fact("Drugs", Section.DRUGS, (), "Takes lithium")))
    payload = LaboratoryPayload(taking.exam_facts, "Lithium level", "completed", completion(taking))
    assert "0.8 mmol/L" in report(payload).text


def test_a_study_under_two_headings_is_reported_once() -> None:
    text = "Net-like lines at both bases"
    heads = (("High Resolution CT", "Findings"), ("CT Chest", "Findings"))
    facts = [Fact(f"Test_Results/{head}", Section.TESTS, (head, last), text + head) for head, last in heads]
    case = replace(CASE, facts=(*CASE.patient_facts, *facts))
    payload = LaboratoryPayload(case.exam_facts, "HRCT chest", "completed", completion(case))
    assert report(payload).text.count(text) == 1


def test_both_eyes_are_not_reported_again_one_by_one() -> None:
    assert "Left Fundus" not in reply("fundoscopy")
    assert "Left Fundus" in reply("left fundus")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("OGTT", "Oral Glucose Tolerance Test: Fasting 88"),
        ("Coronary calcium score", "Coronary Calcium Score: 0"),
        ("Bubble study", "No bubbles"),
        ("Ocular biometry with axial length", "Axial length 23.5 mm"),
        ("Tanner staging", "Tanner Stage: Stage 5"),
        ("Stool for Giardia antigen", "Stool Giardia Antigen: Negative"),
        ("Breath tests for lactose malabsorption and bacterial overgrowth", "Bacterial Overgrowth Breath Test"),
        ("CLO test", "Rapid Urease Test: Negative"),
        ("Neck circumference", "Neck Circumference: "),
        ("Bedside vital capacity", "Forced Vital Capacity"),
        ("Tinel and Phalen", "Negative at both wrists"),
    ],
)
def test_what_a_clinic_has_is_not_called_unavailable(order: str, said: str) -> None:
    assert said in reply(order)


def test_an_immunoglobulin_is_reported_next_to_a_normal_electrophoresis() -> None:
    case = replace(
        CASE, facts=(*CASE.patient_facts, Fact("e", Section.TESTS, ("Serum Protein Electrophoresis",), "Normal"))
    )
    text = report(LaboratoryPayload(case.exam_facts, "IgG", "completed", completion(case))).text
    assert "IgG: " in text
    assert "not done" not in text


def test_sugar_does_not_normalize_the_glucose_of_a_diabetic() -> None:
    glucose = Fact("g", Section.TESTS, ("Basic Metabolic Panel", "Glucose"), "212 mg/dL")
    case = replace(CASE, facts=(*CASE.patient_facts, glucose))
    text = report(LaboratoryPayload(case.exam_facts, "OGTT", "completed", completion(case))).text
    assert "Fasting 212 mg/dL" in text
