"""Quality checks of cases: each finds the planted defect, and nothing in a sound case."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import case_of, needs_public_data, public_cases, write_rows
from typer.testing import CliRunner

from agentclinic.cases.registry import load_cases
from agentclinic.cli import main
from agentclinic.cli.app import app
from agentclinic.lint.chart import Problem
from agentclinic.lint.quality import CHECKS, check_file_quality, check_quality, differences

SOUND: dict[str, Any] = {
    "Objective_for_Doctor": "Assess and diagnose a 44-year-old man with a sore big toe for two days.",
    "Patient_Actor": {
        "Demographics": "44-year-old man",
        "History": "The patient reports that his right big toe has been sore for two days. He took no tablets.",
        "Symptoms": {"Primary_Symptom": "Sore right big toe for two days", "Secondary_Symptoms": ["No injury"]},
        "Past_Medical_History": "Inguinal hernia repair at 31.",
        "Medications": ["Amlodipine 5 mg once daily"],
        "Allergies": "Penicillin (rash)",
        "Family_History": "Mother had ovarian cancer.",
        "Social_History": "Baker; his wife is pregnant.",
        "Review_of_Systems": "Denies cough, chills and rash; reports toe pain.",
    },
    "Physical_Examination_Findings": {
        "Vital_Signs": {
            "Temperature": "37.8°C (100.0°F)",
            "Blood_Pressure": "128/76 mmHg",
            "Heart_Rate": "84 bpm",
            "Respiratory_Rate": "16 breaths/min",
            "Oxygen_Saturation": "98% on room air",
        },
        "General_Appearance": "Limps because of his toe.",
        "Musculoskeletal_Examination": {"Toe": "Red, swollen, skin unbroken"},
    },
    "Test_Results": {
        "Complete_Blood_Count": {
            "WBC": "9.8 x10^9/L",
            "Hemoglobin": "15.0 g/dL",
            "Hematocrit": "45.0%",
            "MCV": "90 fL",
            "Platelets": "240 x10^9/L",
            "Neutrophils": "70%",
            "Lymphocytes": "22%",
            "RBC": "5.0 x10^12/L",
        },
        "Basic_Metabolic_Panel": {
            "Sodium": "139 mmol/L",
            "Potassium": "4.2 mmol/L",
            "Chloride": "103 mmol/L",
            "Bicarbonate": "25 mmol/L",
            "BUN": "15 mg/dL",
            "Creatinine": "1.0 mg/dL",
            "Glucose": "98 mg/dL",
            "Calcium": "9.4 mg/dL",
        },
        "Liver_Function_Tests": {
            "AST": "24 U/L",
            "ALT": "28 U/L",
            "Alkaline_Phosphatase": "70 U/L",
            "Total_Bilirubin": "0.8 mg/dL",
            "Direct_Bilirubin": "0.2 mg/dL",
            "Indirect_Bilirubin": "0.6 mg/dL",
            "Albumin": "4.4 g/dL",
            "Total_Protein": "7.1 g/dL",
        },
        "Urinalysis": {
            "pH": "6.0",
            "Leukocyte_Esterase": "Negative",
            "Nitrite": "Negative",
            "Blood": "Negative",
            "Protein": "1+",
            "Glucose": "Negative",
            "Ketones": "Negative",
        },
        "C_Reactive_Protein": "22 mg/L (ref <5)",
        "ESR": "25 mm/h",
        "Troponin": "<5 ng/L (ref <14)",
        "D-dimer": "300 ng/mL FEU (ref <500)",
        "TSH": "2.0 mIU/L (ref 0.4-4.0)",
        "Lactate": "1.1 mmol/L",
        "Coagulation": {"INR": "1.0", "aPTT": "30 s", "Prothrombin_Time": "12 s"},
        "Arterial_Blood_Gas": {"pH": "7.41", "pCO2": "40 mmHg", "HCO3": "25 mmol/L", "pO2": "92 mmHg", "FiO2": "0.21"},
        "Iron_Studies": {"Iron": "80 µg/dL", "TIBC": "320 µg/dL", "Transferrin_Saturation": "25%"},
        "Lipids": {
            "Total_Cholesterol": "200 mg/dL",
            "LDL": "130 mg/dL",
            "HDL": "45 mg/dL",
            "Triglycerides": "125 mg/dL",
        },
        "Serum_Osmolality": "290 mOsm/kg",
        "Spirometry": {"FEV1": "3.2 L (90% predicted)", "FVC": "4.0 L", "Ratio": "0.80"},
        "Electrocardiogram": {"Findings": "Sinus rhythm at 84 per minute, normal"},
        "Chest_X-ray": {"Findings": "Clear lungs"},
        "Joint_Fluid_Analysis": {"WBC": "18,000 cells/µL", "Crystals": "Needle-shaped", "Culture": "No growth"},
    },
    "Correct_Diagnosis": "Gout",
    "case_id": "osce-t01",
    "version": 1,
    "canary": "openosce-canary-0123abcd",
    "setting": "primary care",
    "acuity": "routine",
    "Specialty": "Rheumatology",
    "Difficulty": "easy",
    "atypical": False,
    "lockbox": False,
    "ICD10": "M10.071",
    "Answer_Key": {
        "accept": ["gouty arthritis"],
        "partial": ["crystal arthritis"],
        "reject": [
            {"text": "Septic arthritis", "reason": "Joint fluid culture without growth"},
            {"text": "Cellulitis", "reason": "Skin unbroken, pain in the joint"},
        ],
    },
    "Differential": [
        {
            "name": "Septic arthritis",
            "why_considered": "Red, swollen joint with 37.8°C",
            "refuted_by": "No growth in the joint fluid culture, unbroken skin",
        },
        {"name": "Toe fracture", "why_considered": "Sore toe", "refuted_by": "No injury"},
        {"name": "Cellulitis", "why_considered": "Red toe", "refuted_by": "Skin unbroken, crystals in joint fluid"},
    ],
    "Key_Findings": [
        {"any_of": ["Test_Results/Joint_Fluid_Analysis/Crystals"], "role": "discriminating", "weight": 5},
        {"any_of": ["Patient_Actor/History#1", "Test_Results/Joint_Fluid_Analysis"], "role": "supporting", "weight": 1},
        {"any_of": ["Physical_Examination_Findings/Musculoskeletal_Examination"], "role": "supporting", "weight": 2},
        {"any_of": ["Test_Results/Joint_Fluid_Analysis/Culture"], "role": "refuting", "weight": 4},
    ],
    "Must_Not_Miss": [{"name": "Septic arthritis", "excluded_by": "Joint fluid culture without growth"}],
    "Harm_If_Missed": 2,
    "twin_of": None,
    "references": [],
}

MISSING = object()


def row(**changes: Any) -> dict[str, Any]:
    """The sound case with some places changed; `__` in a name is `/` in the path."""
    chart = copy.deepcopy(SOUND)
    for name, value in changes.items():
        *way, last = name.split("__")
        place = chart
        for step in way:
            place = place[step]
        if value is MISSING:
            del place[last]
        else:
            place[last] = value
    return {"OSCE_Examination": chart}


def problems(**changes: Any) -> list[Problem]:
    return check_quality(case_of(row(**changes)))


CBC, BMP, LFT = (
    f"Test_Results__{p}" for p in ("Complete_Blood_Count", "Basic_Metabolic_Panel", "Liver_Function_Tests")
)
VITALS = "Physical_Examination_Findings__Vital_Signs"
GAS = "Test_Results__Arterial_Blood_Gas"
WOMAN: dict[str, Any] = {
    "Objective_for_Doctor": "Assess and diagnose a 30-year-old woman with a sore big toe for two days.",
    "Patient_Actor__Demographics": "30-year-old woman",
    "Patient_Actor__History": "The patient reports that her right big toe has been sore for two days. She rests.",
    "Patient_Actor__Social_History": "Baker.",
    "Patient_Actor__Past_Medical_History": "Tonsils removed at 6.",
    "Physical_Examination_Findings__General_Appearance": "Limps because of her toe.",
    "Test_Results__Beta_hCG": "<5 mIU/mL (negative)",
}
CHILD: dict[str, Any] = {
    "Objective_for_Doctor": "Assess and diagnose an 8-month-old boy with a sore big toe for two days.",
    "Patient_Actor__Demographics": "8-month-old boy (his mother gives the history)",
    "Patient_Actor__Past_Medical_History": "Born by vaginal delivery after a normal pregnancy.",
    f"{VITALS}__Heart_Rate": "132 bpm",
    f"{VITALS}__Respiratory_Rate": "34 breaths/min",
    f"{VITALS}__Blood_Pressure": "88/52 mmHg",
    "Test_Results__Electrocardiogram": {"Findings": "Sinus rhythm at 132 per minute"},
    f"{BMP}__Creatinine": "0.3 mg/dL",
    f"{LFT}__Alkaline_Phosphatase": "240 U/L",
}


SAID: dict[str, Any] = {
    "Patient_Actor": {
        "Demographics": "44-year-old man",
        "History": ["Took no tablets"],
        "Symptoms": {"Primary_Symptom": "Sore right big toe for two days", "Secondary_Symptoms": ["No injury"]},
    },
    "Key_Findings": [
        {"any_of": [path], "role": "discriminating", "weight": 1}
        for path in ("Patient_Actor/History", "Test_Results/Joint_Fluid_Analysis", "Test_Results/ESR", "Test_Results")
    ],
    "Patient_Facts": {
        "Patient_Actor/Demographics": {"says": "I'm 44."},
        "Patient_Actor/History[0]": {"says": "I haven't taken anything for it."},
        "Patient_Actor/Symptoms/Primary_Symptom": {
            "says": "My right big toe has been sore for two days.",
            "told": "volunteered",
        },
        "Patient_Actor/Symptoms/Secondary_Symptoms[0]": {"says": "No, I didn't hurt it."},
    },
    "Manner": {
        "manner": "Cheerful",
        "idea": "I have no idea.",
        "worry": "Who opens the shop?",
        "hope": "I want to walk again.",
        "feel": "I'm fed up with it.",
        "greet": "Good morning.",
    },
    "speaker": "patient",
    "Swappable": ["name"],
    "tier": "core",
}


@pytest.mark.parametrize(
    ("changes", "code", "at"),
    [
        ({"Patient_Facts__Patient_Actor/History[0]": {}}, "words_missing", "Patient_Actor/History[0]"),
        (
            {"Patient_Facts__Patient_Actor/Symptoms/Primary_Symptom__says": "My toe has been sore for three days."},
            "words_numbers",
            "Patient_Actor/Symptoms/Primary_Symptom",
        ),
        (
            {"Patient_Facts__Patient_Actor/Symptoms/Primary_Symptom__says": "My toe has been sore for a while."},
            "words_numbers",
            "Patient_Actor/Symptoms/Primary_Symptom",
        ),
        (
            {"Patient_Facts__Patient_Actor/Symptoms/Secondary_Symptoms[0]__says": "I hurt it."},
            "words_polarity",
            "Patient_Actor/Symptoms/Secondary_Symptoms[0]",
        ),
        (
            {"Patient_Facts__Patient_Actor/Symptoms/Primary_Symptom__says": "My toe isn't sore; two days."},
            "words_polarity",
            "Patient_Actor/Symptoms/Primary_Symptom",
        ),
        (
            {"Patient_Facts__Patient_Actor/History[0]__says": "I took nothing for my gout."},
            "words_name_disease",
            "Patient_Actor/History[0]",
        ),
        (
            {"Patient_Facts__Patient_Actor/Symptoms/Primary_Symptom__vague": "My toe has been sore for two days."},
            "vague_exact",
            "Patient_Actor/Symptoms/Primary_Symptom",
        ),
        (
            {"Patient_Facts__Patient_Actor/Symptoms/Secondary_Symptoms[0]__vague": "I may have hurt it."},
            "vague_polarity",
            "Patient_Actor/Symptoms/Secondary_Symptoms[0]",
        ),
        (
            {"Patient_Facts__Patient_Actor/History[0]__vague": "I took something for my gout."},
            "vague_names_disease",
            "Patient_Actor/History[0]",
        ),
        ({"Manner__idea": "I think it is gout."}, "words_name_disease", "Manner/idea"),
        ({"Manner__idea": MISSING}, "annotation_malformed", "Manner"),
        ({"tier": "simple"}, "annotation_malformed", "tier"),
        ({"Swappable": ["disease"]}, "annotation_malformed", "Swappable"),
        ({"Patient_Facts__Patient_Actor/Allergies": {"says": "None."}}, "path_not_in_chart", "Patient_Facts"),
        (
            {"Patient_Facts__Patient_Actor/Symptoms/Primary_Symptom__told": "if asked"},
            "nothing_volunteered",
            "Patient_Facts",
        ),
    ],
)
def test_what_a_patient_says_is_checked_against_the_fact(changes: dict[str, Any], code: str, at: str) -> None:
    sound = problems(**copy.deepcopy(SAID))
    found = problems(**copy.deepcopy(SAID | changes))
    assert [(problem.code, problem.path) for problem in found if problem not in sound] == [(code, at)]
    assert code not in {problem.code for problem in sound}


def test_a_case_in_its_patients_words_has_all_annotations_of_the_patient() -> None:
    without = {key: value for key, value in SAID.items() if key != "speaker"}
    assert ("annotation_missing", "speaker") in {(p.code, p.path) for p in problems(**copy.deepcopy(without))}


@pytest.mark.parametrize("sound", [{}, WOMAN, CHILD, {"presentation": "early", "setting": "district hospital"}])
def test_a_sound_case_has_no_problems(sound: dict[str, Any]) -> None:
    assert problems(**sound) == []


@pytest.mark.parametrize(
    ("changes", "code", "path"),
    [
        # annotations
        ({"canary": MISSING}, "annotation_missing", "canary"),
        ({"twin_of": MISSING}, "annotation_missing", "twin_of"),
        ({"canary": "openosce-canary-xyz"}, "annotation_malformed", "canary"),
        ({"case_id": "Case 1"}, "annotation_malformed", "case_id"),
        ({"version": "1"}, "annotation_malformed", "version"),
        ({"setting": "ward"}, "annotation_malformed", "setting"),
        ({"presentation": "late"}, "annotation_malformed", "presentation"),
        ({"acuity": "soon"}, "annotation_malformed", "acuity"),
        ({"Specialty": ""}, "annotation_malformed", "Specialty"),
        ({"Difficulty": "Easy"}, "annotation_malformed", "Difficulty"),
        ({"lockbox": "no"}, "annotation_malformed", "lockbox"),
        ({"ICD10": "gout"}, "annotation_malformed", "ICD10"),
        ({"Harm_If_Missed": 5}, "annotation_malformed", "Harm_If_Missed"),
        ({"Harm_If_Missed": True}, "annotation_malformed", "Harm_If_Missed"),
        ({"twin_of": 7}, "annotation_malformed", "twin_of"),
        ({"Differential": [{"name": "Cellulitis"}]}, "annotation_malformed", "Differential"),
        ({"Must_Not_Miss": [{"name": "Septic arthritis"}]}, "annotation_malformed", "Must_Not_Miss"),
        ({"Must_Not_Miss": [{"name": "Sepsis", "excluded_by": [[]]}]}, "annotation_malformed", "Must_Not_Miss"),
        (
            {"Must_Not_Miss": [{"name": "Sepsis", "excluded_by": ["Test_Results/ESR"], "harm": 5}]},
            "annotation_malformed",
            "Must_Not_Miss",
        ),
        (
            {"Must_Not_Miss": [{"name": "Sepsis", "excluded_by": [["Test_Results/ESR", "Test_Results/CT"]]}]},
            "path_not_in_chart",
            "Must_Not_Miss[0]",
        ),
        ({"Answer_Key__accept": ["", "gouty arthritis"]}, "annotation_malformed", "Answer_Key"),
        ({"Answer_Key__reject": []}, "too_few", "Answer_Key/reject"),
        ({"Differential": []}, "too_few", "Differential"),
        ({"Must_Not_Miss": []}, "too_few", "Must_Not_Miss"),
        (
            {
                "Patient_Actor__Review_of_Systems": "Reports toe pain.",
                "Patient_Actor__Symptoms__Secondary_Symptoms": ["Limp"],
            },
            "too_few",
            "Patient_Actor",
        ),
        ({"Answer_Key__partial": ["Gouty Arthritis"]}, "answer_key", "Answer_Key/partial"),
        (
            {"Differential": [{"name": "Gout", "why_considered": "Toe", "refuted_by": "Joint fluid culture"}]},
            "answer_key",
            "Differential[0]",
        ),
        (
            {"Key_Findings": [{"any_of": ["Test_Results/ECG"], "role": ["discriminating"], "weight": 3}]},
            "key_finding",
            "Key_Findings[0]",
        ),
        (
            {"Key_Findings": [{"any_of": ["Test_Results/CT"], "role": "discriminating", "weight": 3}]},
            "path_not_in_chart",
            "Key_Findings[0]",
        ),
        (
            {"Key_Findings": [{"any_of": ["Test_Results/E"], "role": "discriminating", "weight": 3}]},
            "path_not_in_chart",
            "Key_Findings[0]",
        ),
        (
            {"Key_Findings": [{"any_of": ["Test_Results/ESR"], "role": "supporting", "weight": 3}]},
            "no_discriminating_finding",
            "Key_Findings",
        ),
        (
            {"Key_Findings": [{"any_of": ["Test_Results/ESR"], "role": "discriminating", "weight": 9}]},
            "key_finding",
            "Key_Findings[0]",
        ),
        (
            {"Key_Findings": [{"any_of": [], "role": "discriminating", "weight": 1}]},
            "key_finding",
            "Key_Findings[0]",
        ),
        # the door, the patient and the results keep the secret
        ({"Objective_for_Doctor": "Assess a 44-year-old man with gout."}, "door_leak", "Objective_for_Doctor"),
        (
            {"Patient_Actor__Review_of_Systems": "Reports gouty arthritis."},
            "patient_leak",
            "Patient_Actor/Review_of_Systems",
        ),
        (
            {"Test_Results__Chest_X-ray": {"Findings": "Tophaceous gout"}},
            "result_names_diagnosis",
            "Test_Results/Chest_X-ray/Findings",
        ),
        # complete panels
        ({"Test_Results__TSH": MISSING}, "panel_incomplete", "Test_Results"),
        ({f"{CBC}__MCV": MISSING}, "panel_incomplete", "Test_Results/Complete Blood Count"),
        ({f"{VITALS}__Heart_Rate": MISSING}, "panel_incomplete", "Physical_Examination_Findings/Vital_Signs"),
        ({**WOMAN, "Test_Results__TSH": "2 mIU/L", "Test_Results__Beta_hCG": ""}, "panel_incomplete", "Test_Results"),
        # units and limits
        ({f"{BMP}__Sodium": "139"}, "unit_missing", "Test_Results/Basic_Metabolic_Panel/Sodium"),
        ({f"{BMP}__Sodium": "139 (normal)"}, "unit_missing", "Test_Results/Basic_Metabolic_Panel/Sodium"),
        ({f"{BMP}__Sodium": "139 mg/dL"}, "unit_wrong", "Test_Results/Basic_Metabolic_Panel/Sodium"),
        ({f"{VITALS}__Temperature": "37.8"}, "unit_missing", "Physical_Examination_Findings/Vital_Signs/Temperature"),
        ({f"{BMP}__Sodium": "13.9 mmol/L"}, "impossible_value", "Test_Results/Basic_Metabolic_Panel/Sodium"),
        ({f"{BMP}__Creatinine": "88 mg/dL"}, "impossible_value", "Test_Results/Basic_Metabolic_Panel/Creatinine"),
        (
            {f"{VITALS}__Oxygen_Saturation": "103% on room air"},
            "impossible_value",
            "Physical_Examination_Findings/Vital_Signs/Oxygen_Saturation",
        ),
        (
            {f"{VITALS}__Temperature": "52.0°C (125.6°F)"},
            "impossible_value",
            "Physical_Examination_Findings/Vital_Signs/Temperature",
        ),
        ({f"{CBC}__Neutrophils": "170%"}, "impossible_value", "Test_Results/Complete_Blood_Count/Neutrophils"),
        (
            {**CHILD, f"{VITALS}__Heart_Rate": "72 bpm"},
            "value_for_another_age",
            "Physical_Examination_Findings/Vital_Signs/Heart_Rate",
        ),
        (
            {**CHILD, f"{BMP}__Creatinine": "1.0 mg/dL"},
            "value_for_another_age",
            "Test_Results/Basic_Metabolic_Panel/Creatinine",
        ),
        (
            {
                f"{VITALS}__Heart_Rate": "130 bpm",
                f"{VITALS}__Respiratory_Rate": "40 breaths/min",
                f"{VITALS}__Blood_Pressure": "86/50 mmHg",
            },
            "value_for_another_age",
            "Physical_Examination_Findings/Vital_Signs",
        ),
        # physiology
        (
            {f"{VITALS}__Temperature": "37.8°C (101.0°F)"},
            "scales_disagree",
            "Physical_Examination_Findings/Vital_Signs/Temperature",
        ),
        (
            {f"{VITALS}__Blood_Pressure": "76/128 mmHg"},
            "pressure_reversed",
            "Physical_Examination_Findings/Vital_Signs/Blood_Pressure",
        ),
        ({f"{BMP}__Chloride": "90 mmol/L"}, "anion_gap", "Test_Results/Basic_Metabolic_Panel"),
        ({f"{BMP}__Chloride": "113 mmol/L"}, "anion_gap", "Test_Results/Basic_Metabolic_Panel"),
        ({f"{CBC}__Hematocrit": "35.0%"}, "hematocrit_ratio", "Test_Results/Complete_Blood_Count/Hematocrit"),
        ({f"{CBC}__MCV": "78 fL"}, "red_cell_index", "Test_Results/Complete_Blood_Count/MCV"),
        ({f"{CBC}__MCH": "24 pg"}, "red_cell_index", "Test_Results/Complete_Blood_Count/MCH"),
        ({f"{CBC}__MCHC": "28 g/dL"}, "red_cell_index", "Test_Results/Complete_Blood_Count/MCHC"),
        ({f"{CBC}__Lymphocytes": "40%"}, "differential_count", "Test_Results/Complete_Blood_Count"),
        ({f"{GAS}__pH": "7.25"}, "blood_gas", "Test_Results/Arterial_Blood_Gas/pH"),
        (
            {f"{GAS}__pH": "7.55", f"{GAS}__HCO3": "34 mmol/L"},
            "bicarbonate_disagrees",
            "Test_Results/Arterial_Blood_Gas/HCO3",
        ),
        ({f"{GAS}__pO2": "160 mmHg"}, "oxygen_impossible", "Test_Results/Arterial_Blood_Gas/pO2"),
        ({f"{GAS}__pO2": "45 mmHg"}, "oxygen_disagrees", "Test_Results/Arterial_Blood_Gas/pO2"),
        (
            {"Test_Results__Electrocardiogram": {"Findings": "Sinus tachycardia at 120 per minute"}},
            "heart_rates_disagree",
            "Test_Results/Electrocardiogram/Findings",
        ),
        (
            {"Test_Results__Electrocardiogram": {"Findings": "Sinus tachycardia at 84 per minute"}},
            "rhythm_name",
            "Test_Results/Electrocardiogram/Findings",
        ),
        ({f"{LFT}__Direct_Bilirubin": "1.9 mg/dL"}, "bilirubin", "Test_Results/Liver_Function_Tests/Total_Bilirubin"),
        ({f"{LFT}__Indirect_Bilirubin": "1.6 mg/dL"}, "bilirubin", "Test_Results/Liver_Function_Tests/Total_Bilirubin"),
        ({f"{LFT}__Total_Protein": "4.0 g/dL"}, "albumin", "Test_Results/Liver_Function_Tests/Albumin"),
        (
            {"Test_Results__Iron_Studies__Transferrin_Saturation": "40%"},
            "transferrin_saturation",
            "Test_Results/Iron_Studies/Transferrin_Saturation",
        ),
        ({"Test_Results__Lipids__LDL": "90 mg/dL"}, "cholesterol", "Test_Results/Lipids/LDL"),
        ({"Test_Results__Coagulation__INR": "2.4"}, "clotting", "Test_Results/Coagulation/INR"),
        ({"Test_Results__Serum_Osmolality": "330 mOsm/kg"}, "osmolality", "Test_Results/Serum_Osmolality"),
        ({"Test_Results__Spirometry__Ratio": "0.60"}, "spirometry", "Test_Results/Spirometry/Ratio"),
        ({"Test_Results__TSH": "2.0 mIU/L, high (ref 0.4-4.0)"}, None, None),  # the flag stands apart from the value
        ({"Test_Results__TSH": "2.0 mIU/L high (ref 0.4-4.0)"}, "flag_contradicts_range", "Test_Results/TSH"),
        # the person
        ({"Test_Results__PSA": "1 ng/mL", **WOMAN}, "wrong_sex", "Test_Results/PSA"),
        (
            {"Patient_Actor__Symptoms__Secondary_Symptoms": ["No vaginal discharge"]},
            "wrong_sex",
            "Patient_Actor/Symptoms/Secondary_Symptoms[0]",
        ),
        ({"Test_Results__Beta_hCG": "<5 mIU/mL (negative)"}, "wrong_sex", "Test_Results/Beta_hCG"),
        (
            {"Physical_Examination_Findings__General_Appearance": "She limps."},
            "pronoun",
            "Physical_Examination_Findings/General_Appearance",
        ),
        (
            {**WOMAN, "Patient_Actor__Demographics": "30-year-old woman, 20 weeks pregnant"},
            "pregnant_hcg_negative",
            "Test_Results/Beta_hCG",
        ),
        ({"Patient_Actor__Demographics": "47-year-old man"}, "age_disagrees", "Objective_for_Doctor"),
        (
            {"Patient_Actor__Social_History": "A 12-year-old boy at school."},
            "age_disagrees",
            "Patient_Actor/Social_History",
        ),
        ({"Patient_Actor__Social_History": "A woman who works at night."}, "wrong_sex", "Patient_Actor/Social_History"),
        (
            {"Patient_Actor__Past_Medical_History": "Hernia repair at 51."},
            "age_disagrees",
            "Patient_Actor/Past_Medical_History",
        ),
        (
            {"Patient_Actor__Medications": ["Amoxicillin 500 mg"]},
            "allergic_to_own_drug",
            "Patient_Actor/Medications[0]",
        ),
    ],
)
def test_a_planted_defect_is_found_where_it_was_planted(
    changes: dict[str, Any], code: str | None, path: str | None
) -> None:
    found = {(problem.code, problem.path) for problem in problems(**changes)}
    if code is None:
        assert found == set()
    else:
        assert (code, path) in found


@pytest.mark.parametrize(
    "changes",
    [
        {f"{BMP}__Sodium": "139 mEq/L"},
        {f"{BMP}__Glucose": "5.4 mmol/L"},
        {f"{BMP}__Creatinine": "88 µmol/L"},
        {f"{CBC}__WBC": "9,800 /μL"},
        {f"{CBC}__Platelets": "240,000/mm³"},
        {f"{VITALS}__Temperature": "100°F (37.8℃)"},
        {f"{VITALS}__Blood_Pressure": "128/76 mmHg right arm, 130/78 mmHg left arm"},
        {f"{BMP}__Chloride": "90 mmol/L", "Test_Results__Lactate": "9.0 mmol/L"},
        {f"{BMP}__Chloride": "90 mmol/L", "Correct_Diagnosis": "Ketoacidosis of hunger"},
        {
            "Test_Results__Electrocardiogram": {
                "Findings": "Atrial waves at 300 per minute, ventricles at 84 per minute"
            }
        },
        {"Test_Results__Serum_hCG": "40 mIU/mL", "Patient_Actor__Past_Medical_History": "Testicular tumor."},
        {"Test_Results__Cerebrospinal_Fluid": {"Glucose": "60 mg/dL", "Protein": "40 mg/dL", "WBC": "2 cells/µL"}},
        {"Must_Not_Miss": [{"name": "Sepsis", "excluded_by": "Lactate below 2 mmol/L, culture without growth"}]},
        {
            "Must_Not_Miss": [
                {"name": "Sepsis", "excluded_by": ["Test_Results/ESR"], "because": "ESR 5 mm/h", "harm": 4}
            ]
        },
        {"Patient_Actor__Allergies": "No known drug allergies", "Patient_Actor__Medications": ["Amoxicillin 500 mg"]},
        {"Patient_Actor__History": "His toe has been sore since the day before yesterday. He walks twice a day."},
        {
            **WOMAN,
            "Test_Results__Beta_hCG": "900 mIU/mL",
            "Patient_Actor__Past_Medical_History": "Last period 6 weeks ago.",
        },
    ],
)
def test_what_only_looks_like_a_defect_is_not_reported(changes: dict[str, Any]) -> None:
    assert problems(**changes) == []


@pytest.mark.slow
def test_every_check_reports_something_in_this_file() -> None:
    marks = next(mark for mark in test_a_planted_defect_is_found_where_it_was_planted.pytestmark)
    planted = [case_of(row(**changes)) for changes, _, _ in marks.args[1]]
    planted.append(case_of(row(**copy.deepcopy(SAID | {"tier": "simple"}))))
    from agentclinic.lint.chart import Chart

    silent = [check.__name__ for check in CHECKS if not any(list(check(Chart(case))) for case in planted)]
    assert silent == []


def test_unannotated_cases_need_no_annotations_and_no_panels() -> None:
    chart = {key: SOUND[key] for key in list(SOUND)[:5]}
    chart["Test_Results"] = {"ESR": "25 mm/h"}
    assert check_quality(case_of({"OSCE_Examination": chart})) == []


def twins(**changes: Any) -> list[dict[str, Any]]:
    one = row(case_id="osce-t01", twin_of="osce-t02")
    other = row(
        case_id="osce-t02",
        twin_of="osce-t01",
        canary="openosce-canary-89abcdef",
        Correct_Diagnosis="Pseudogout",
        Test_Results__Joint_Fluid_Analysis__Crystals="Rhomboid",
        Answer_Key__accept=["chondrocalcinosis"],
        **changes,
    )
    return [one, other]


def in_file(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    cases = [case_of(data, number=number) for number, data in enumerate(rows)]
    return [(located.scenario_id, located.problem.code) for located in check_file_quality(cases)]


def test_sound_twins_have_no_problems_and_differ_in_one_place() -> None:
    assert in_file(twins()) == []
    one, other = (case_of(data) for data in twins())
    assert differences(one, other) == ["Test_Results/Joint_Fluid_Analysis/Crystals"]


def _differ_widely(rows: list[dict[str, Any]]) -> None:
    rows[1]["OSCE_Examination"]["Patient_Actor"]["Review_of_Systems"] = [f"Denies {n} headaches" for n in range(13)]


def _edit(number: int, key: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows[number]["OSCE_Examination"][key] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda rows: rows.pop(), (0, "twin_missing")),
        (_edit(1, "twin_of", None), (0, "twin_not_mutual")),
        (
            _edit(1, "Objective_for_Doctor", "Assess a 44-year-old man with a toe sore for two days."),
            (0, "twin_doors_differ"),
        ),
        (_edit(1, "Correct_Diagnosis", "gout"), (0, "twin_same_truth")),
        (_edit(1, "lockbox", True), (0, "twin_split")),
        (_edit(1, "Test_Results", SOUND["Test_Results"]), (0, "twin_identical_chart")),
        (_differ_widely, (0, "twin_charts_differ")),
        (
            lambda rows: rows[1]["OSCE_Examination"]["Patient_Actor"]["Symptoms"].update(
                Primary_Symptom="Toe pain for two days"
            ),
            (0, "twin_complaints_differ"),
        ),
        (_edit(1, "canary", "openosce-canary-0123abcd"), (1, "duplicate_canary")),
        (_edit(1, "case_id", "osce-t01"), (1, "duplicate_case_id")),
        (_edit(1, "Specialty", "rheumatology"), (1, "specialty_spelling")),
    ],
)
def test_defects_between_rows_are_found(
    edit: Callable[[list[dict[str, Any]]], None], expected: tuple[int, str]
) -> None:
    rows = copy.deepcopy(twins())
    edit(rows)
    assert expected in in_file(rows)


@pytest.mark.slow
def test_the_shipped_cases_pass_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "check", "OpenOSCE", "OpenOSCE_Demo", "--quality"])
    assert capsys.readouterr().out.count("quality: error 0, warning 0") == 2


def test_the_tests_of_twins_may_differ_since_they_follow_from_the_disease() -> None:
    rows = copy.deepcopy(twins())
    for panel in rows[1]["OSCE_Examination"]["Test_Results"].values():
        for key in panel if isinstance(panel, dict) else ():
            panel[key] += " (repeated)"
    assert in_file(rows) == []


def test_the_twins_of_openosce_open_alike_and_most_can_be_told_apart_before_any_test() -> None:
    by_id = {case.annotations["case_id"]: case for case in load_cases("OpenOSCE", {}, lockbox=True)}
    pairs = [
        (case, by_id[twin]) for name, case in by_id.items() if (twin := case.annotations["twin_of"]) and name < twin
    ]
    opening = [
        {fact.text for fact in one.patient_facts if fact.told == "volunteered"} for pair in pairs for one in pair
    ]
    assert opening[::2] == opening[1::2]
    separable = [
        any(
            entry["role"] == "discriminating" and not all(path.startswith("Test_Results") for path in entry["any_of"])
            for entry in case.annotations["Key_Findings"]
        )
        for case, _ in pairs
    ]
    assert len(pairs) == 28
    assert sum(separable) >= 6


@pytest.mark.slow
@needs_public_data
def test_public_cases_are_not_checked_for_annotations() -> None:
    codes = {
        problem.code for name in ("MedQA_Ext", "NEJM_Ext") for c in public_cases(name) for problem in check_quality(c)
    }
    assert "result_names_diagnosis" in codes
    assert not codes & {"annotation_missing", "panel_incomplete", "no_discriminating_finding"}


def test_the_command_lists_problems_by_row_and_path_and_fails_on_errors(tmp_path: Path) -> None:
    good = write_rows(tmp_path / "good.jsonl", row())
    bad = write_rows(tmp_path / "bad.jsonl", row(**{f"{BMP}__Sodium": "139"}))

    done = CliRunner().invoke(app, ["data", "check", "--quality", str(good), str(bad)])

    assert done.exit_code == 1
    assert f"{good}: quality: error 0, warning 0" in done.output
    place = "row 0 (osce-t01): error unit_missing at Test_Results/Basic_Metabolic_Panel/Sodium"
    assert place in done.output
    assert CliRunner().invoke(app, ["data", "check", "--quality", str(good)]).exit_code == 0
    assert CliRunner().invoke(app, ["data", "check", str(bad)]).exit_code == 0

    as_json = json.loads(CliRunner().invoke(app, ["data", "check", "--quality", "--json", str(bad)]).output)
    (problem,) = as_json["files"][0]["problems"]
    assert (problem["code"], problem["severity"]) == ("unit_missing", "error")


def test_odd_annotations_are_checked_like_others() -> None:
    """An alternative without a name stopped the check."""
    odd = [{"refuted_by": "Sodium 13..9 and uric acid 1.2.3"}, {"name": "?", "refuted_by": "Sodium 139"}]
    codes = [problem.code for problem in problems(Differential=odd, Correct_Diagnosis="?")]
    assert codes.count("answer_key") == 2, "no name is what '?' is, too"
