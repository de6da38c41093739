"""Each item of an order gets its own reply, once; an explanation gets none."""

from __future__ import annotations

import pytest
from helpers import case_of, order, osce

CHART = case_of(
    osce(
        exam={
            "Vital_Signs": {"Blood_Pressure": "120/80 mmHg", "Oxygen_Saturation": "98%"},
            "Cardiovascular_Examination": {"Auscultation": "No murmur"},
            "Respiratory_Examination": {"Auscultation": "Clear"},
            "Abdominal_Examination": {"Palpation": "Soft", "Rectal": "Empty"},
            "Skin_Examination": {"Nails": "Pitted", "Trunk": "Scaly"},
            "ENT_Examination": {"Ears": "Drums gray", "Nose": "Clear"},
        },
        tests={
            "Complete_Blood_Count": {"WBC": "7", "Hemoglobin": "13", "Platelets": "200"},
            "Basic_Metabolic_Panel": {"Sodium": "140", "Potassium": "4", "Creatinine": "1", "Calcium": "9"},
            "Liver_Function_Tests": {"ALT": "20", "Albumin": "4.1"},
            "Coagulation": {"INR": "1.0", "aPTT": "30 s"},
            "C_Reactive_Protein": "3 mg/L",
            "ESR": "10 mm/h",
            "TSH": "2 mU/L",
            "Troponin": "5 ng/L",
            "Urinalysis": {"Protein": "Negative", "Microscopy": "No cells"},
            "Urine_Porphobilinogen_and_ALA": {"Porphobilinogen": "Normal", "Delta-Aminolevulinic_Acid": "Normal"},
            "Urine_Protein_Creatinine_Ratio": "0.1",
            "Lumbar_Puncture": {"Glucose": "60", "Protein": "40", "WBC": "1"},
            "Chest_X-ray": {"Findings": "Clear"},
            "CT_Abdomen_and_Pelvis": {"Findings": "Normal"},
            "Hand_and_Foot_X-ray": {"Hands": "Normal", "Feet": "Normal"},
            "Throat_Culture": {"Findings": "No growth"},
        },
    )
)
CBC = "Complete Blood Count: WBC: 7; Hemoglobin: 13; Platelets: 200."
BMP = "Basic Metabolic Panel: Sodium: 140; Potassium: 4; Creatinine: 1; Calcium: 9."
X_RAY = "Chest X-ray: Findings: Clear."
CRP, ESR, TSH = "C Reactive Protein: 3 mg/L.", "ESR: 10 mm/h.", "TSH: 2 mU/L."

ORDERS = [
    # However the list is written.
    ("CBC, CRP and chest X-ray", [CBC, CRP, X_RAY]),
    ("1. CBC 2. BMP 3. TSH", [CBC, BMP, TSH]),
    ("1) CBC\n2) ESR\n3) Chest X-ray (PA and lateral) to look for pneumonia", [CBC, ESR, X_RAY]),
    ("- CBC\n- CRP\n- chest X-ray", [CBC, CRP, X_RAY]),
    ("ESR/CRP; TSH.", [CRP, ESR, TSH]),
    ("I would like a CBC. Can we also get a TSH? Then a CXR!", [CBC, TSH, X_RAY]),
    ("Blood tests: CBC, U&Es, CRP. Imaging: chest X-ray.", [CBC, BMP, CRP, X_RAY]),
    ("routine labs (CBC, TSH)", [CBC, TSH]),
    ("Complete blood count (CBC) – anemia?", [CBC]),
    # What the chart does not have is named as the order names it, next to what it has.
    ("CBC, frobnication level, TSH", [CBC, "No result available for 'frobnication level'.", TSH]),
    (
        "TSH, free T4, TSH receptor antibodies",
        [TSH, "Free T4 not available.", "TSH receptor antibodies not available."],
    ),
    ("amylase & lipase", ["Amylase not available.", "Serum lipase not available."]),
    ("LDH, haptoglobin", ["LDH not available.", "Haptoglobin not available."]),
    (
        "electrolytes including Mg",
        ["Basic Metabolic Panel: Sodium: 140; Potassium: 4; Calcium: 9.", "Mg not available."],
    ),
    (
        "CT angiogram of the head and neck",
        ["CT angiogram of the head not available.", "CT angiogram neck not available."],
    ),
    # A reason is no item, even if it is a list.
    (
        "Chest X-ray to rule out pneumonia, effusion, or a mass, and TSH since he is tired",
        [X_RAY, TSH],
    ),
    ("CT abdomen/pelvis with IV contrast because I suspect appendicitis", ["CT Abdomen and Pelvis: Findings: Normal."]),
    # Nothing is called unavailable after it was reported, and nothing is reported twice.
    (
        "urine porphobilinogen and ALA, urine porphobilinogen",
        ["Urine Porphobilinogen and ALA: Porphobilinogen: Normal; Delta-Aminolevulinic Acid: Normal."],
    ),
    ("CBC, hemoglobin, complete blood count", [CBC]),
    ("abdominal X-ray and CT abdomen", ["Abdominal X-ray not available.", "CT Abdomen and Pelvis: Findings: Normal."]),
    # The specimen of one item is not that of the next.
    (
        "urine protein/creatinine ratio, platelets, albumin",
        [
            "Urine Protein Creatinine Ratio: 0.1.",
            "Complete Blood Count: Platelets: 200.",
            "Liver Function Tests: Albumin: 4.1.",
        ],
    ),
    ("serum and urine osmolality", ["Serum osmolality not available.", "Urine osmolality not available."]),
    ("CSF glucose, protein", ["Lumbar Puncture: Glucose: 60.", "Lumbar Puncture: Protein: 40."]),
    ("glucose", ["Glucose not available."]),
    ("KOH preparation", ["KOH preparation not available."]),
    # Examinations.
    ("Skin exam, including nails and scalp", ["Skin Examination: Nails: Pitted; Trunk: Scaly."]),
    (
        "Please listen to the heart and lungs, and check oxygen saturation",
        [
            "Cardiovascular Examination: Auscultation: No murmur.",
            "Respiratory Examination: Auscultation: Clear.",
            "Vital Signs: Oxygen Saturation: 98%.",
        ],
    ),
    ("small bowel series", ["Small bowel series not available."]),
]


@pytest.mark.parametrize(("request_", "replies"), ORDERS)
def test_each_item_of_an_order_gets_its_own_reply(request_: str, replies: list[str]) -> None:
    assert order(CHART, request_).text == f"RESULTS: {' '.join(replies)}"


def test_a_culture_is_of_the_site_that_the_order_is_about() -> None:
    assert "No growth" not in order(CHART, "swab of the vesicle, Tzanck smear, bacterial culture").text
    assert "No growth" in order(CHART, "throat swab, bacterial culture").text


def test_a_site_or_system_named_with_commas_is_one_item() -> None:
    reply = order(CHART, "ear, nose and throat exam; X-rays of the hands and feet").text
    assert reply == (
        "RESULTS: ENT Examination: Ears: Drums gray; Nose: Clear. Hand and Foot X-ray: Hands: Normal; Feet: Normal."
    )
