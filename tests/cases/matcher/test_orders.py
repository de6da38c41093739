"""An order is answered with the results it names and no others."""

from __future__ import annotations

import pytest
from helpers import case_of, order, osce

from agentclinic.results.turn import Provenance

CHART = case_of(
    osce(
        exam={
            "Vital_Signs": {
                "Temperature": "37.0°C",
                "Blood_Pressure": "120/80 mmHg",
                "Heart_Rate": "70 bpm",
                "Respiratory_Rate": "14/min",
                "Oxygen_Saturation": "98%",
            },
            "General_Appearance": "Comfortable at rest",
            "HEENT": {"Ears": "Drums gray", "Throat": "Red", "Eyes": "Conjunctivae pink"},
            "Neck": {"Thyroid": "Smooth goiter"},
            "Cardiovascular_Examination": {"Auscultation": "No murmur", "Jugular_Venous_Pressure": "6 cm"},
            "Respiratory_Examination": {"Auscultation": "Clear", "Percussion": "Resonant"},
            "Abdominal_Examination": {
                "Inspection": "Flat",
                "Auscultation": "Bowel sounds present",
                "Palpation": "Murphy's sign negative",
            },
            "Neurological_Examination": {
                "Mental_Status": "Alert",
                "Cranial_Nerves": "Intact",
                "Motor_Strength": "5/5",
                "Sensory_Exam": "Intact",
                "Deep_Tendon_Reflexes": "2+",
                "Gait": "Steady",
            },
            "Musculoskeletal_Examination": {
                "Right_Knee": "Effusion",
                "Lumbar_Spine": "Tender",
                "Special_Tests": "None",
            },
            "Lower_Extremities": {"Edema": "None", "Pulses": "Palpable"},
            "Skin": {"Inspection": "Dry"},
            "Genitourinary_Examination": {"Testes": "Normal"},
            "Rectal_Examination": {"Findings": "Brown stool"},
        },
        tests={
            "Complete_Blood_Count": {"WBC": "7", "Hemoglobin": "13", "Platelets": "200", "MCV": "90"},
            "Chemistry": {"Sodium": "140", "Potassium": "4", "Creatinine": "1", "Blood_Urea_Nitrogen": "12"},
            "Liver_Panel": {"ALT": "20", "AST": "21", "Total_Bilirubin": "0.5", "Direct_Bilirubin": "0.1"},
            "Coagulation": {"Prothrombin_Time": "12 s", "INR": "1.0", "aPTT": "30 s"},
            "Iron_Studies": {"Ferritin": "50", "TIBC": "300"},
            "Laboratory_Studies": {
                "Amylase": "40",
                "Lipase": "30",
                "LDH": "150",
                "Reticulocyte_Count": "1%",
                "CK-MB": "2",
                "Calcium": "9",
                "Parathyroid_Hormone": "40",
            },
            "Voltage-Gated_Calcium_Channel_Antibody": "Negative",
            "Thyroid_Function": {"TSH": "2", "Free_Thyroxine": "1.1"},
            "Antinuclear_Antibodies": "Negative",
            "Anti-Neutrophil_Cytoplasmic_Antibodies": "Negative",
            "Complement": {"C3": "100", "C4": "20"},
            "Urinalysis": {"Protein": "1+", "Glucose": "Negative", "RBC": "0"},
            "Urine_Sodium": "30 mEq/L",
            "Urine_Culture": "No growth",
            "Blood_Culture": "No growth at 48 h",
            "Cerebrospinal_Fluid": {"Glucose": "60", "Protein": "40", "Gram_Stain": "No organisms"},
            "Synovial_Fluid_Analysis": {"WBC": "500", "Crystals": "None"},
            "Stool_Occult_Blood": "Negative",
            "Serology": "Hepatitis B surface antigen negative. HIV negative.",
            "Lyme_Serology": "Negative",
            "Chest_Radiograph": {"Findings": "Clear"},
            "X-ray_Right_Knee": {"Findings": "No fracture"},
            "CT_Abdomen_and_Pelvis": {"Findings": "Normal"},
            "MRI_Lumbar_Spine": {"Findings": "Bulge"},
            "MRI_Brain": {"Findings": "Normal"},
            "Ultrasound_of_the_Thyroid": {"Findings": "Nodule"},
            "Imaging": {"Findings": "Bone scan shows no uptake"},
            "Electrocardiogram": {"Findings": "Sinus rhythm"},
            "Echocardiogram": {"Findings": "EF 60%"},
            "Pulmonary_Function_Tests": {"FEV1": "90%", "FVC": "95%", "DLCO": "88%"},
            "Nerve_Conduction_Studies": {"Findings": "Slowed"},
            "Thyroid_Biopsy": {"Histopathology": "Benign"},
            "Skin_Punch_Biopsy": {"Findings": "Spongiosis"},
            "Colonoscopy": {"Findings": "Normal"},
            "Audiogram": {"Findings": "Normal"},
            "Dix-Hallpike_Maneuver": "Negative",
        },
    )
)

CBC = {"Complete_Blood_Count/WBC", "Complete_Blood_Count/Hemoglobin", "Complete_Blood_Count/Platelets"} | {
    "Complete_Blood_Count/MCV"
}
RENAL = {"Chemistry/Creatinine", "Chemistry/Blood_Urea_Nitrogen"}
LIVER = {f"Liver_Panel/{name}" for name in ("ALT", "AST", "Total_Bilirubin", "Direct_Bilirubin")}
COAGULATION = {f"Coagulation/{name}" for name in ("Prothrombin_Time", "INR", "aPTT")}
CSF = {f"Cerebrospinal_Fluid/{name}" for name in ("Glucose", "Protein", "Gram_Stain")}
JOINT = {"Synovial_Fluid_Analysis/WBC", "Synovial_Fluid_Analysis/Crystals"}
URINE = {f"Urinalysis/{name}" for name in ("Protein", "Glucose", "RBC")}
VITALS = {
    f"Vital_Signs/{name}"
    for name in ("Temperature", "Blood_Pressure", "Heart_Rate", "Respiratory_Rate", "Oxygen_Saturation")
}
NEURO = {
    f"Neurological_Examination/{name}"
    for name in ("Mental_Status", "Cranial_Nerves", "Motor_Strength", "Sensory_Exam", "Deep_Tendon_Reflexes", "Gait")
}
ABDOMEN = {f"Abdominal_Examination/{name}" for name in ("Inspection", "Auscultation", "Palpation")}
HEART = {"Cardiovascular_Examination/Auscultation", "Cardiovascular_Examination/Jugular_Venous_Pressure"}
LUNGS = {"Respiratory_Examination/Auscultation", "Respiratory_Examination/Percussion"}
HEENT = {"HEENT/Ears", "HEENT/Throat", "HEENT/Eyes"}
LUNG_FUNCTION = {f"Pulmonary_Function_Tests/{name}" for name in ("FEV1", "FVC", "DLCO")}

REQUESTS: list[tuple[str, set[str]]] = [
    # A value alone, by any of its names.
    ("Hgb", {"Complete_Blood_Count/Hemoglobin"}),
    ("platelet count", {"Complete_Blood_Count/Platelets"}),
    ("serum amylase", {"Laboratory_Studies/Amylase"}),
    ("TIBC", {"Iron_Studies/TIBC"}),
    ("INR", {"Coagulation/INR"}),
    ("lactate dehydrogenase", {"Laboratory_Studies/LDH"}),
    ("retic count", {"Laboratory_Studies/Reticulocyte_Count"}),
    ("serum calcium", {"Laboratory_Studies/Calcium"}),
    ("iPTH and Ca", {"Laboratory_Studies/Parathyroid_Hormone", "Laboratory_Studies/Calcium"}),
    ("FT4", {"Thyroid_Function/Free_Thyroxine"}),
    ("ANA", {"Antinuclear_Antibodies"}),
    ("ANCA (PR3/MPO)", {"Anti-Neutrophil_Cytoplasmic_Antibodies"}),
    ("anti-VGCC antibodies", {"Voltage-Gated_Calcium_Channel_Antibody"}),
    ("C3/C4", {"Complement/C3", "Complement/C4"}),
    # Panels, with their values wherever they stand.
    ("CBC w/ diff", CBC),
    ("FBC, U&E", CBC | RENAL | {"Chemistry/Sodium", "Chemistry/Potassium", "Laboratory_Studies/Calcium"}),
    ("Renal function panel (BUN, Cr)", RENAL),
    ("LFTs_and_lipase", LIVER | {"Laboratory_Studies/Lipase"}),
    ("PT/INR and PTT", COAGULATION),
    ("total and direct bilirubin", {"Liver_Panel/Total_Bilirubin", "Liver_Panel/Direct_Bilirubin"}),
    ("cardiac enzymes", {"Laboratory_Studies/CK-MB"}),
    ("pancreatic enzymes", {"Laboratory_Studies/Amylase", "Laboratory_Studies/Lipase"}),
    ("TSH_CBC_urine_culture", CBC | {"Thyroid_Function/TSH", "Urine_Culture"}),
    ("Hormones (TSH, PTH)", {"Thyroid_Function/TSH", "Laboratory_Studies/Parathyroid_Hormone"}),
    # The specimen tells which value.
    ("UA with microscopy", URINE),
    ("urine protein", {"Urinalysis/Protein"}),
    ("urine electrolytes (Na, K)", {"Urine_Sodium"}),
    ("CSF glucose", {"Cerebrospinal_Fluid/Glucose"}),
    ("spinal tap (cell count, protein, gram stain)", CSF),
    ("arthrocentesis: cell count, crystals", JOINT),
    ("blood cultures x2", {"Blood_Culture"}),
    ("urine C&S", {"Urine_Culture"}),
    ("FOBT", {"Stool_Occult_Blood"}),
    # Results named in the text of a heading that names none.
    ("HIV test", {"Serology"}),
    ("nuclear bone scan", {"Imaging/Findings"}),
    ("Borrelia antibodies", {"Lyme_Serology"}),
    # Images by kind and site.
    ("CXR PA/lateral", {"Chest_Radiograph/Findings"}),
    ("plain films of the right knee, 3 views", {"X-ray_Right_Knee/Findings"}),
    ("MRI L-spine w/wo gadolinium", {"MRI_Lumbar_Spine/Findings"}),
    ("MRI of the brain and lumbar spine", {"MRI_Brain/Findings", "MRI_Lumbar_Spine/Findings"}),
    ("head MRI to rule out demyelination of the spine", {"MRI_Brain/Findings"}),
    ("CT A/P", {"CT_Abdomen_and_Pelvis/Findings"}),
    ("neck ultrasound", {"Ultrasound_of_the_Thyroid/Findings"}),
    ("TTE", {"Echocardiogram/Findings"}),
    ("12-lead EKG", {"Electrocardiogram/Findings"}),
    ("spirometry with DLCO", LUNG_FUNCTION),
    ("NCS", {"Nerve_Conduction_Studies/Findings"}),
    ("FNA or biopsy of the thyroid nodule", {"Thyroid_Biopsy/Histopathology"}),
    ("biopsy of the skin for histology", {"Skin_Punch_Biopsy/Findings"}),
    ("audiometry", {"Audiogram/Findings"}),
    # Examinations by system, region, part and manoeuvre.
    ("vitals incl. pulse oximetry", VITALS),
    ("BP and pulse", {"Vital_Signs/Blood_Pressure", "Vital_Signs/Heart_Rate"}),
    ("cardiopulmonary exam", HEART | LUNGS),
    ("cardiac auscultation", {"Cardiovascular_Examination/Auscultation"}),
    ("auscultation of the chest", {"Respiratory_Examination/Auscultation"}),
    ("abdominal palpation and auscultation", ABDOMEN - {"Abdominal_Examination/Inspection"}),
    ("Murphy sign", {"Abdominal_Examination/Palpation"}),
    ("JVP", {"Cardiovascular_Examination/Jugular_Venous_Pressure"}),
    ("neuro exam", NEURO),
    ("motor and reflexes", {f"Neurological_Examination/{name}" for name in ("Motor_Strength", "Deep_Tendon_Reflexes")}),
    ("sensory exam (pinprick, temperature, vibration)", {"Neurological_Examination/Sensory_Exam"}),
    ("Neuro exam (power, gait)", {"Neurological_Examination/Motor_Strength", "Neurological_Examination/Gait"}),
    (
        "right knee exam with Lachman",
        {f"Musculoskeletal_Examination/{name}" for name in ("Right_Knee", "Special_Tests")},
    ),
    ("peripheral pulses and edema", {"Lower_Extremities/Edema", "Lower_Extremities/Pulses"}),
    ("otoscopy", {"HEENT/Ears"}),
    ("HEENT exam", HEENT),
    ("palpation of the thyroid", {"Neck/Thyroid"}),
    ("scrotal exam", {"Genitourinary_Examination/Testes"}),
    ("DRE", {"Rectal_Examination/Findings"}),
    ("Dix-Hallpike", {"Dix-Hallpike_Maneuver"}),
]
NOTHING = [
    "serum glucose",
    "blood glucose",
    "urine potassium",
    "CSF culture",
    "stool culture",
    "orthostatic vital signs",
    "MRI of the cervical spine",
    "x-ray of the left knee",
    "CT of the sinuses",
    "mixing study for PTT prolongation",
    "stress echocardiogram",
    "dexamethasone suppression test",
    "parathyroid hormone related peptide",
    "pulmonary capillary wedge pressure",
    "gastric emptying study",
    "single-fiber EMG",
    "muscle biopsy",
    "hepatitis C antibody",
    "serum lactate",
    "breast exam",
]


def told(request: str) -> set[str]:
    """The charted values in a report."""
    paths = {path for disclosure in order(CHART, request).disclosures for path in disclosure.paths}
    return {path.split("/", 1)[1] for path in paths}


@pytest.mark.parametrize(("request_", "expected"), REQUESTS)
def test_a_request_is_answered_with_only_the_results_it_names(request_: str, expected: set[str]) -> None:
    assert told(request_) == expected


@pytest.mark.parametrize("request_", NOTHING)
def test_a_test_that_was_not_done_is_not_answered_with_another(request_: str) -> None:
    assert told(request_) == set()


def test_a_similar_test_is_reported_as_a_different_test() -> None:
    case = case_of(
        osce(
            tests={
                "CT_Angiography_Chest": {"Findings": "No embolus"},
                "NT-proBNP": "900 pg/mL",
                "Colonoscopy": {"Findings": "Polyp"},
                "Urine_Pregnancy_Test": "Negative",
            }
        )
    )
    for request, said in [
        ("CT chest", "CT Angiography Chest"),
        ("BNP", "NT-proBNP"),
        ("sigmoidoscopy", "Colonoscopy"),
        ("serum hCG", "Urine Pregnancy Test"),
    ]:
        reply = order(case, request)
        assert [d.provenance for d in reply.disclosures] == [Provenance.CHART_EQUIVALENT], request
        assert f"was not done; {said}" in reply.text


def test_a_value_from_a_blood_gas_is_given_only_if_it_was_not_measured_otherwise() -> None:
    gas, panel = {"pH": "7.40", "Sodium": "139"}, {"Sodium": "141"}
    both = case_of(osce(tests={"Arterial_Blood_Gas": gas, "Basic_Metabolic_Panel": panel}))
    assert order(both, "sodium").text == "RESULTS: Basic Metabolic Panel: Sodium: 141."
    alone = case_of(osce(tests={"Arterial_Blood_Gas": gas}))
    assert order(alone, "sodium").text == "RESULTS: Arterial Blood Gas: Sodium: 139."


def test_bicarbonate_or_lactate_alone_is_not_a_blood_gas() -> None:
    case = case_of(osce(tests={"Laboratory_Studies": {"Bicarbonate": "24", "Lactate": "1.1"}}))
    assert order(case, "blood gas").disclosures[0].provenance is Provenance.UNAVAILABLE
    gas = case_of(osce(tests={"Laboratory_Studies": {"PCO2": "40", "Lactate": "1.1"}}))
    assert [d.paths for d in order(gas, "blood gas").disclosures] == [("Test_Results/Laboratory_Studies/PCO2",)]


def test_a_panel_charted_as_one_text_answers_for_its_values() -> None:
    case = case_of(osce(tests={"Basic_Labs": {"Complete_Blood_Count": "Normal", "Electrolytes": "Normal"}}))
    assert "Complete Blood Count: Normal" in order(case, "hemoglobin").text
    assert "Electrolytes: Normal" in order(case, "BMP").text
    assert order(case, "creatinine").disclosures[0].provenance is Provenance.UNAVAILABLE


def test_an_examination_charted_as_one_text_answers_for_its_parts_if_it_sums_them_up() -> None:
    summed = case_of(osce(exam={"Neurological_Examination": {"Findings": "Normal, no focal deficit"}}))
    single = case_of(osce(exam={"Neurological_Examination": {"Findings": "Left facial droop"}}))
    assert "no focal deficit" in order(summed, "reflexes").text
    assert order(single, "reflexes").disclosures[0].provenance is Provenance.UNAVAILABLE


@pytest.mark.parametrize(
    ("exam", "given"),
    [
        (
            {"Psychiatric_Evaluation": {"Mood": "Low"}, "General": {"Appearance": "Anxious"}},
            {"Psychiatric_Evaluation/Mood"},
        ),
        ({"General": {"Appearance": "Anxious", "Speech": "Pressured"}}, {"General/Appearance", "General/Speech"}),
        ({"General": {"Appearance": "Pale"}, "Neurological": {"Orientation": "Full"}}, {"Neurological/Orientation"}),
    ],
)
def test_the_mental_status_is_found_wherever_it_is_charted(exam: dict[str, object], given: set[str]) -> None:
    reply = order(case_of(osce(exam=exam)), "Mental status examination")
    paths = {path for disclosure in reply.disclosures for path in disclosure.paths}
    assert {path.split("/", 1)[1] for path in paths} == given


def test_a_leg_examination_answers_for_the_knee_if_the_chart_has_no_knee() -> None:
    case = case_of(
        osce(exam={"Lower_Extremity_Examination": {"Inspection": "No swelling"}, "Hand": {"Nails": "Clean"}})
    )
    assert "No swelling" in order(case, "knee exam (Lachman, McMurray)").text
    assert "Clean" not in order(case, "knee exam").text


def test_a_missing_panel_is_reported_once_not_value_by_value() -> None:
    case = case_of(osce(tests={"Urine_Sodium": "20"}))
    reply = order(case, "CBC with differential, urine sodium")
    assert [d.provenance for d in reply.disclosures] == [Provenance.UNAVAILABLE, Provenance.CHART]
