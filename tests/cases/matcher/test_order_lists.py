"""Each item of an order gets its own reply, once; an explanation gets none."""

from __future__ import annotations

import pytest
from helpers import case_of, order, osce

from agentclinic.cases.matcher import parts_of_others
from agentclinic.cases.matcher.order_items import items
from agentclinic.cases.matcher.order_text import one_line

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
    ("ESR/CRP; TSH.", [ESR, CRP, TSH]),
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
    ("CSF glucose, protein", ["Lumbar Puncture: Glucose: 60; Protein: 40."]),
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
def test_each_item_of_an_order_is_answered(request_: str, replies: list[str]) -> None:
    assert order(CHART, request_).text == f"RESULTS: {' '.join(replies)}"


def test_a_culture_is_of_the_site_that_the_order_is_about() -> None:
    assert "No growth" not in order(CHART, "swab of the vesicle, Tzanck smear, bacterial culture").text
    assert "No growth" in order(CHART, "throat swab, bacterial culture").text


def test_a_site_or_system_named_with_commas_is_one_item() -> None:
    reply = order(CHART, "ear, nose and throat exam; X-rays of the hands and feet").text
    assert reply == (
        "RESULTS: ENT Examination: Ears: Drums gray; Nose: Clear. Hand and Foot X-ray: Hands: Normal; Feet: Normal."
    )


SPECIMENS = case_of(
    osce(
        exam={
            "Vital_Signs": {
                "Blood_Pressure": "174/108 mmHg",
                "Heart_Rate": "96 bpm",
                "Blood_Pressure_Standing": "142/88 mmHg with a heart rate of 118 bpm",
            },
            "Cardiovascular_Examination": {"Auscultation": "No murmur"},
            "Respiratory_Examination": {"Auscultation": "Clear"},
            "Abdominal_Examination": {"Palpation": "Soft", "Flank": "Tender on tapping the left side"},
            "Skin_Examination": {"Findings": "Fingertips clubbed, no rash"},
            "Pelvic_Examination": {"Bimanual": "Normal"},
            "Breast_Examination": {"Findings": "No mass"},
        },
        tests={
            "Complete_Blood_Count": {"Hemoglobin": "9"},
            "Basic_Metabolic_Panel": {"Creatinine": "1.1"},
            "Peripheral_Smear": {"Findings": "Oval red cells"},
            "Chest_X-ray": {"Findings": "Clear"},
            "MRI_Thoracic_Spine": {"Findings": "Cord normal"},
            "MRI_Sacroiliac_Joints": {"Findings": "No edema"},
            "Interferon_Gamma_Release_Assay": {"Findings": "Indeterminate"},
            "Sputum_Acid-Fast_Smear": {"Findings": "Bacilli in two samples"},
            "Sputum_Culture": {"Findings": "Normal flora"},
            "Sputum_PCR": {"Findings": "IS6110 target DNA detected"},
            "Throat_Swab_PCR": {"HSV_1": "Not detected", "Enterovirus": "Not detected"},
            "Rapid_Group_A_Antigen_Throat_Swab": "Negative",
            "Throat_Culture": {"Findings": "No streptococci"},
            "Cerebrospinal_Fluid": {"WBC": "1860", "HSV_PCR": "Negative"},
            "Lumbar_Puncture": {"Opening_Pressure": "29 cmH2O"},
            "CMV_Serology": "IgM negative",
            "Plasma_Metanephrines": "Raised",
            "Morning_Cortisol": "13",
            "Transesophageal_Echocardiogram": {"Findings": "Flap in the aorta"},
            "CT_Angiography_Chest": {"Findings": "Flap, branches free"},
            "CT_Angiography_Chest_Abdomen": {"Findings": "Flap, abdominal aorta free"},
            "Spirometry": {"FEV1": "2.05 L", "FVC": "2.36 L"},
            "Pulmonary_Function_Tests": {"FEV1": "2.05 L", "FVC": "2.36 L", "Total_Lung_Capacity": "61%"},
            "Autoantibodies": {"Anti-Ro": "Negative", "ANCA": "Negative"},
            "Urinary_Antigens": {"Findings": "Pneumococcal antigen positive, Legionella antigen negative"},
        },
    )
)


@pytest.mark.parametrize(
    ("request_", "replies"),
    [
        # Another specimen, germ, method or part of the body is another test.
        ("CBC with film", ["Complete Blood Count: Hemoglobin: 9.", "Peripheral Smear: Findings: Oval red cells."]),
        ("chest film", ["Chest X-ray: Findings: Clear."]),
        ("MRI spine", ["MRI Thoracic Spine: Findings: Cord normal."]),
        ("TB PCR", ["Sputum PCR: Findings: IS6110 target DNA detected."]),
        ("Sputum Xpert MTB/RIF", ["Sputum PCR: Findings: IS6110 target DNA detected."]),
        ("QuantiFERON-TB Gold", ["Interferon Gamma Release Assay: Findings: Indeterminate."]),
        ("sputum fungal culture", ["Sputum fungal culture not available."]),
        ("Sputum smear for acid-fast bacilli", ["Sputum Acid-Fast Smear: Findings: Bacilli in two samples."]),
        (
            "Sputum for acid-fast bacilli (smear and culture)",
            ["Sputum Acid-Fast Smear: Findings: Bacilli in two samples.", "Sputum Culture: Findings: Normal flora."],
        ),
        ("CSF HSV PCR", ["Cerebrospinal Fluid: HSV PCR: Negative."]),
        (
            "Throat swab: rapid strep antigen and culture",
            ["Rapid Group A Antigen Throat Swab: Negative.", "Throat Culture: Findings: No streptococci."],
        ),
        ("CMV stain", ["CMV stain not available."]),
        ("urine metanephrines", ["Urine metanephrines not available."]),
        ("salivary cortisol", ["Salivary cortisol not available."]),
        ("ENA", ["Autoantibodies: Anti-Ro: Negative."]),
        (
            "Legionella and pneumococcal urinary antigens",
            ["Urinary Antigens: Findings: Pneumococcal antigen positive, Legionella antigen negative."],
        ),
        # What is said of one item does not qualify the next.
        (
            "transesophageal echo, creatinine",
            [
                "Transesophageal Echocardiogram: Findings: Flap in the aorta.",
                "Basic Metabolic Panel: Creatinine: 1.1.",
            ],
        ),
        (
            "pulse (lying and standing)",
            ["Vital Signs: Heart Rate: 96 bpm; Blood Pressure Standing: 142/88 mmHg with a heart rate of 118 bpm."],
        ),
        # One study is reported once.
        (
            "CT angiography of the chest and abdomen",
            ["CT Angiography Chest Abdomen: Findings: Flap, abdominal aorta free."],
        ),
        ("CT angiography of the chest", ["CT Angiography Chest: Findings: Flap, branches free."]),
        ("PFTs", ["Pulmonary Function Tests: FEV1: 2.05 L; FVC: 2.36 L; Total Lung Capacity: 61%."]),
        (
            "lumbar puncture",
            ["Cerebrospinal Fluid: WBC: 1860; HSV PCR: Negative; Lumbar Puncture: Opening Pressure: 29 cmH2O."],
        ),
        # Examinations.
        ("Costovertebral angle tenderness", ["Abdominal Examination: Flank: Tender on tapping the left side."]),
        ("finger clubbing", ["Skin Examination: Findings: Fingertips clubbed, no rash."]),
        (
            "Physical examination: heart and lungs",
            ["Cardiovascular Examination: Auscultation: No murmur.", "Respiratory Examination: Auscultation: Clear."],
        ),
        # What is not there keeps its capitals, and a treatment is none.
        (
            "CT angiogram of the head, neck and pelvis",
            [
                "CT angiogram of the head not available.",
                "CT angiogram neck not available.",
                "CT angiogram pelvis not available.",
            ],
        ),
        ("Coombs", ["Coombs not available."]),
        (
            "physical_exam (heart, lungs), ratio of pH",
            [
                "Cardiovascular Examination: Auscultation: No murmur.",
                "Respiratory Examination: Auscultation: Clear.",
                "Ratio of pH not available.",
            ],
        ),
        (
            "Lumbar puncture with glucose and HSV PCR, creatinine",
            [
                "Cerebrospinal Fluid: WBC: 1860; HSV PCR: Negative; Lumbar Puncture: Opening Pressure: 29 cmH2O.",
                "Glucose not available.",
                "Basic Metabolic Panel: Creatinine: 1.1.",
            ],
        ),
        (
            "X-ray and MRI of the sacroiliac joints",
            ["X ray sacroiliac joint not available.", "MRI Sacroiliac Joints: Findings: No edema."],
        ),
        ("racemic epinephrine neb", ["Racemic epinephrine neb: a treatment, not a test."]),
        (
            "Dexamethasone 0.6 mg/kg orally, IV fluids and creatinine",
            [
                "Dexamethasone 0.6 mg/kg orally: a treatment, not a test.",
                "IV fluids: a treatment, not a test.",
                "Basic Metabolic Panel: Creatinine: 1.1.",
            ],
        ),
        ("dexamethasone 1 mg suppression test", ["Dexamethasone 1 mg suppression test not available."]),
    ],
)
def test_an_order_returns_the_specimen_germ_and_study_it_names(request_: str, replies: list[str]) -> None:
    assert order(SPECIMENS, request_).text == f"RESULTS: {' '.join(replies)}"


@pytest.mark.parametrize("request_", ["Physical examination", "complete physical exam"])
def test_a_physical_examination_includes_private_parts_only_if_they_are_named(request_: str) -> None:
    assert "Breast" not in order(SPECIMENS, request_).text
    named = order(SPECIMENS, f"{request_} including a pelvic exam").text
    assert "Pelvic Examination: Bimanual: Normal" in named
    assert "Breast" not in named


def test_tests_ordered_after_a_physical_examination_are_reported_too() -> None:
    assert "Hemoglobin: 9" in order(SPECIMENS, "Full physical exam, CBC").text


WRITTEN = case_of(
    osce(
        exam={
            "Vital_Signs": {
                "Blood_Pressure": "136/82 mmHg",
                "Heart_Rate": "80 bpm",
                "Blood_Pressure_Standing": "134/80 mmHg",
            },
            "Cardiovascular_Examination": {"Auscultation": "No murmur", "Neck_Veins": "Flat", "Pulse": "Full"},
            "Skin_Examination": {"Findings": "Fingertips clubbed"},
            "Lymph_Node_Examination": {"Findings": "None enlarged"},
        },
        tests={
            "Complete_Blood_Count": {"WBC": "7", "Hemoglobin": "13"},
            "Coagulation": {"INR": "1.0", "aPTT": "30 s"},
            "TSH": "2 mU/L",
            "Complement": {"C3": "90 mg/dL", "C4": "20 mg/dL"},
            "Hepatitis_Serology": {"Hepatitis_C_RNA": "Not detected"},
            "Gastric_Antibodies_and_Gastrin": {"Intrinsic_Factor_Antibody": "Negative", "Gastrin": "40 pg/mL"},
            "Arterial_Blood_Gas": {"pH": "7.4"},
            "Lactate": "1.0 mmol/L",
            "Sputum_Acid-Fast_Smear": {"Findings": "No bacilli"},
            "Sputum_Culture": {"Findings": "No growth"},
            "Blood_Cultures": {"Findings": "No growth"},
            "Urine_Culture": {"Findings": "No growth"},
        },
    )
)


@pytest.mark.parametrize(
    ("request_", "replies"),
    [
        (
            "CBC/TSH/aPTT",
            ["Complete Blood Count: WBC: 7; Hemoglobin: 13.", "TSH: 2 mU/L.", "Coagulation: aPTT: 30 s."],
        ),
        ("PT/INR", ["Coagulation: INR: 1.0."]),
        ("complement C3/C4", ["Complement: C3: 90 mg/dL; C4: 20 mg/dL."]),
        ("C4", ["Complement: C4: 20 mg/dL."]),
        ("anti-HCV", ["Anti-HCV not available."]),
        ("serum gastrin", ["Gastric Antibodies and Gastrin: Gastrin: 40 pg/mL."]),
        ("ABG with lactate", ["Arterial Blood Gas: pH: 7.4.", "Lactate: 1.0 mmol/L."]),
        ("acid-fast stain of sputum", ["Sputum Acid-Fast Smear: Findings: No bacilli."]),
        ("blood and urine cultures", ["Blood Cultures: Findings: No growth.", "Urine Culture: Findings: No growth."]),
        (
            "lying and standing BP",
            ["Vital Signs: Blood Pressure: 136/82 mmHg; Blood Pressure Standing: 134/80 mmHg."],
        ),
        ("standing BP", ["Vital Signs: Blood Pressure Standing: 134/80 mmHg."]),
        ("heart rate", ["Vital Signs: Heart Rate: 80 bpm."]),
        ("cardiac auscultation", ["Cardiovascular Examination: Auscultation: No murmur."]),
        ("look at the fingers for clubbing", ["Skin Examination: Findings: Fingertips clubbed."]),
        ("look for cervical and axillary lymph nodes", ["Lymph Node Examination: Findings: None enlarged."]),
        ("TSH and observe", ["TSH: 2 mU/L.", "Observe: a treatment, not a test."]),
    ],
)
def test_orders_are_understood_as_doctors_write_them(request_: str, replies: list[str]) -> None:
    assert order(WRITTEN, request_).text == f"RESULTS: {' '.join(replies)}"


DROPPED = case_of(
    osce(
        exam={
            "General_Appearance": "Drowsy, dry lips",
            "Vital_Signs": {"Heart_Rate": "80 bpm"},
            "Cardiovascular_Examination": {"Auscultation": "No murmur", "Legs": "No edema"},
            "Respiratory_Examination": {"Auscultation": "Clear"},
            "Abdominal_Examination": {"Palpation": "Soft"},
            "Pelvic_Examination": {"Bimanual": "Normal"},
            "Genitourinary_Examination": {"Rectal_Examination": "Tone firm; prostate not enlarged"},
            "Neck_Examination": {"Thyroid": "Normal size"},
            "Lymph_Node_Examination": {"Neck": "Two tender nodes"},
            "Musculoskeletal_Examination": {
                "Chest_Wall": "Ribs not tender",
                "Left_Ankle": "Warm",
                "Thighs": "Swollen but compressible",
                "Sacroiliac_Joints": "Pain on compression",
            },
            "Spine_Examination": {"Straight_Leg_Raise": "Positive at 35 degrees"},
            "Neurological_Examination": {
                "Cranial_Nerves": "Equal",
                "Legs_Motor": "Full power",
                "Reflexes": "Equal",
                "Meningeal_Signs": "None",
                "Perianal_Sensation": "Felt",
            },
            "Skin_Examination": {"Findings": "No rash"},
        },
        tests={
            "Complete_Blood_Count": {"WBC": "7", "Blood_Film": "Band forms"},
            "Basic_Metabolic_Panel": {"Glucose": "100"},
            "Lactate": "1.5 mmol/L",
            "GAD65_Antibody": "Positive",
            "Lumbar_Puncture": {"Red_Cells_Tube_1": "20", "Red_Cells_Tube_4": "10", "Glucose": "60", "Culture": "None"},
            "Cerebrospinal_Fluid": {"HSV_PCR": "Not detected"},
            "Joint_Fluid_Analysis": {"WBC": "900", "Bacterial_PCR": "No DNA"},
            "Skin_Scraping_Microscopy": {"Findings": "No mites"},
            "Sputum_Culture": {"Findings": "Flora"},
            "Urinalysis": {"Appearance": "Clear, yellow"},
            "Rapid_Group_A_Antigen_Throat_Swab": "Negative",
            "CT_Angiography_Head_and_Neck": {"Findings": "Arteries smooth"},
            "CT_Venography": {"Findings": "All dural sinuses open"},
        },
    )
)
HEART = "Cardiovascular Examination: Auscultation: No murmur; Legs: No edema."
SKIN = "Skin Examination: Findings: No rash."
NEUROLOGICAL = (
    "Neurological Examination: Cranial Nerves: Equal; Legs Motor: Full power; Reflexes: Equal; Meningeal Signs: None; "
    "Perianal Sensation: Felt."
)
RECTAL = "Genitourinary Examination: Rectal Examination: Tone firm; prostate not enlarged."
SPINAL_TAP = "Lumbar Puncture: Red Cells Tube 1: 20; Red Cells Tube 4: 10; Glucose: 60; Culture: None"


@pytest.mark.parametrize(
    ("request_", "replies"),
    [
        # How one place is examined is not how the next one is.
        (
            "chest wall palpation, heart and lung exam",
            [
                "Musculoskeletal Examination: Chest Wall: Ribs not tender.",
                HEART,
                "Respiratory Examination: Auscultation: Clear.",
            ],
        ),
        # A list ends where another part of the body begins.
        ("abdominal exam for spleen, skin", ["Abdominal Examination: Palpation: Soft.", SKIN]),
        ("abdomen for spleen, skin", ["Abdominal Examination: Palpation: Soft.", SKIN]),
        ("abdominal examination including liver, skin check", ["Abdominal Examination: Palpation: Soft.", SKIN]),
        (
            "examination of both ankles including skin around them, and heart",
            ["Musculoskeletal Examination: Left Ankle: Warm.", SKIN, HEART],
        ),
        # What an examination includes is not all of it; what a colon introduces is.
        ("neurological examination including meningeal signs", [NEUROLOGICAL]),
        ("neurological examination: reflexes", ["Neurological Examination: Reflexes: Equal."]),
        (
            "neurological examination of the legs including straight leg raise, power, perianal sensation, anal tone",
            [
                "Neurological Examination: Legs Motor: Full power; Reflexes: Equal; Meningeal Signs: None; "
                "Perianal Sensation: Felt.",
                "Spine Examination: Straight Leg Raise: Positive at 35 degrees.",
                RECTAL,
            ],
        ),
        (
            "examination of the ankles including leg power",
            ["Musculoskeletal Examination: Left Ankle: Warm.", "Neurological Examination: Legs Motor: Full power."],
        ),
        # What was reported is not called unavailable.
        ("rectal examination with prostate and anal tone", [RECTAL]),
        ("pelvic examination including rectovaginal exam", ["Pelvic Examination: Bimanual: Normal.", RECTAL]),
        (
            "examination of the thighs: compartments, passive stretch",
            ["Musculoskeletal Examination: Thighs: Swollen but compressible."],
        ),
        ("SI joint provocation tests", ["Musculoskeletal Examination: Sacroiliac Joints: Pain on compression."]),
        ("hydration", ["General Appearance: Drowsy, dry lips."]),
        ("neck nodes", ["Lymph Node Examination: Neck: Two tender nodes."]),
        # All of a lumbar puncture is of the spinal fluid.
        (
            "lumbar puncture with cell counts in first and last tubes, glucose, culture and PCR",
            [f"{SPINAL_TAP}; Cerebrospinal Fluid: HSV PCR: Not detected."],
        ),
        (
            "synovial fluid lactate and bacterial PCR (16S)",
            ["Synovial fluid lactate not available.", "Joint Fluid Analysis: Bacterial PCR: No DNA."],
        ),
        ("CBC with differential and smear", ["Complete Blood Count: WBC: 7; Blood Film: Band forms."]),
        ("GAD65, IA-2 antibodies", ["GAD65 Antibody: Positive.", "IA-2 antibodies not available."]),
        ("group A strep throat PCR", ["Group A strep throat PCR not available."]),
        (
            "CT angiogram head and neck, CT venogram",
            [
                "CT Angiography Head and Neck: Findings: Arteries smooth.",
                "CT Venography: Findings: All dural sinuses open.",
            ],
        ),
    ],
)
def test_nothing_is_dropped_or_denied_or_from_another_place(request_: str, replies: list[str]) -> None:
    assert order(DROPPED, request_).text == f"RESULTS: {' '.join(replies)}"


@pytest.mark.parametrize(
    ("order_", "named"),
    [
        # A title names the specimen of its list.
        ("urine: dip, microscopy and culture (clean catch)", ["dip", "urine microscopy", "urine culture"]),
        ("septic screen: CBC, CRP", ["cbc", "crp"]),
        # A reason ends with its clause.
        ("auscultation of the heart for a rub; JVP", ["auscultation of the heart", "jvp"]),
        # What follows by the same method is of the same specimen; a value in a new clause is of blood.
        ("CSF PCR for HSV and VZV", ["csf pcr  hsv", "vzv"]),
        ("urine albumin:creatinine ratio", ["urine albumin creatinine ratio"]),
        ("CBC w/ differential, CMP", ["cbc", "cmp"]),
        ("ECG, repeat in 20 minutes", ["ecg"]),
        ("EBV VCA IgM/IgG and EBNA", ["ebv vca igm", "ebna"]),
        ("viral serology (chikungunya, EBV)", ["chikungunya serology", "ebv"]),
        ("mammogram and ultrasound", ["mammogram", "breast ultrasound"]),
        # A place after a test is examined by itself; only an image or a biopsy is of it.
        ("slit lamp for uveitis; skin for psoriasis; nodes", ["slit lamp", "skin", "nodes"]),
        ("ECG, lungs, abdomen", ["ecg", "lungs", "abdomen"]),
        ("legs: swelling, redness; Doppler ultrasound of both legs", ["legs", "doppler ultrasound of both legs"]),
        # A reason ends with its brackets, and a list that brackets interrupt goes on after them.
        ("throat (do not touch if epiglottitis is likely), ears, rash", ["throat", "ears", "rash"]),
        ("anemia work-up: CBC (film for spherocytes), ferritin", ["cbc", "blood film", "ferritin"]),
        # A title that names a complaint, what to note, and when are not ordered.
        ("dementia bloods: CBC, TSH", ["cbc", "tsh"]),
        (
            "Dix-Hallpike test, noting latency and direction; head impulse test",
            ["dix hallpike test", "head impulse test"],
        ),
        ("troponin now and at 3 h, lactate", ["troponin now", "lactate"]),
        ("renal ultrasound - hydronephrosis/collection; CRP", ["renal ultrasound", "crp"]),
        (
            "lung biopsy with AFB culture and TB PCR, CRP",
            ["lung biopsy", "afb culture of the biopsy", "tb pcr of the biopsy", "crp"],
        ),
        (
            "needle biopsy for histology and immunohistochemistry, CRP",
            ["needle biopsy for histology", "immunohistochemistry of the biopsy", "crp"],
        ),
        ("CT angiogram of the head and venogram", ["ct angiogram of the head", "ct venogram head"]),
        ("G&S, PR, BM", ["blood group", "rectal exam", "fingerstick glucose"]),
        ("RR, PR, BP", ["rr", "pulse rate", "bp"]),
    ],
)
def test_each_item_is_read_with_what_the_order_says_about_it(order_: str, named: list[str]) -> None:
    assert [item.text for item in items(one_line(order_))] == named


@pytest.mark.parametrize(
    ("order_", "specimens"),
    [
        ("urine sodium, potassium", [{"urine"}, {"urine"}]),
        ("CK, urine myoglobin, potassium", [set(), {"urine"}, set()]),
        ("myoglobin in urine; potassium", [{"urine"}, set()]),
        ("urine sodium, morning cortisol", [{"urine"}, set()]),
        ("CSF PCR for HSV and VZV", [{"csf"}, {"csf"}]),
    ],
)
def test_a_specimen_holds_for_the_values_that_belong_to_it(order_: str, specimens: list[set[str]]) -> None:
    assert [set(item.read.of("specimens")) for item in items(one_line(order_))] == specimens


def test_what_is_listed_after_a_test_is_part_of_it() -> None:
    assert parts_of_others("lumbar puncture (protein), CRP") == {"csf protein"}
    assert parts_of_others("bloods: CBC, CRP") == frozenset()


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ("heart and lung auscultation", ["heart auscultation", "lung auscultation"]),
        ("thyroid palpation, heart and lungs exam", ["thyroid palpation", "heart exam", "lungs exam"]),
        ("Pertussis PCR cycle threshold (Ct value), CBC", ["pertussis pcr", "cbc"]),
        ("skin prick test with flour and bakery allergens, TSH", ["skin prick test", "tsh"]),
        ("skin prick tests to cat, grass", ["skin prick tests to cat", "skin prick test to grass"]),
        ("pericardial fluid cytology, chemistry and culture", ["pericardial fluid cytology", "pericardial culture"]),
        ("avian and mould precipitins", ["avian precipitins", "mould precipitins"]),
        ("EBV PCR and IgM, CRP", ["ebv pcr", "ebv igm", "crp"]),
        ("throat swab for CMV PCR and antibodies", ["throat swab for cmv pcr", "cmv antibodies"]),
        ("venous blood gas with lactate and ketones", ["venous blood gas", "lactate", "blood ketones"]),
        ("urinalysis, ketones", ["urinalysis", "ketones"]),
        ("TTE then TEE", ["tte", "tee"]),
        (
            "transthoracic and transoesophageal echo",
            ["transthoracic echocardiogram", "transoesophageal echo"],
        ),
    ],
)
def test_a_shared_word_or_a_detail_belongs_to_each_item_it_is_said_of(request_: str, named: list[str]) -> None:
    found = [item.text for item in items(one_line(request_))]
    assert [text for text in found if text != "fluid chemistry"] == named


def test_percussion_is_of_the_place_named_with_it_and_blood_follows_the_antigen_of_a_stool() -> None:
    percussed = items(one_line("lung auscultation and percussion, throat inspection"))[1]
    assert percussed.read.of("sites") == {"lung"}
    assert not items(one_line("H. pylori stool antigen, creatinine"))[-1].read.of("specimens")
    assert items(one_line("stool sodium, potassium"))[-1].read.of("specimens") == {"stool"}


@pytest.mark.parametrize(
    ("request_", "places"),
    [
        ("skin examination including palms, mouth and heart, abdomen", ["skin", "mouth", "heart", "abdomen"]),
        ("full skin examination, including scalp, nails, thyroid", ["skin", "scalp", "nail", "thyroid"]),
        ("cardiovascular examination including murmurs, eyes, throat", ["", "", "eye", "throat"]),
        ("thyroid, joint examination, heart auscultation", ["thyroid", "joint", "heart"]),
        ("legs, knees, peripheral pulses", ["lower limb", "knee", ""]),
        ("neck, abdominal examination, neck stiffness", ["neck", "abdomen", ""]),
    ],
)
def test_an_examination_in_a_list_ends_the_details_of_another_and_takes_no_word_from_a_third(
    request_: str, places: list[str]
) -> None:
    assert [min(item.read.of("sites"), default="") for item in items(one_line(request_))] == places


def test_the_nodes_of_the_neck_are_not_those_of_a_thyroid_named_before_them() -> None:
    assert not items(one_line("thyroid, neck lymph nodes"))[0].read.of("parts")
    assert items(one_line("palms and soles"))[1].read.of("sites") == {"foot"}


def test_magnesium_is_of_blood_after_the_sodium_of_a_spot_urine_and_the_glucose_of_a_tap() -> None:
    assert not items(one_line("urine sodium, magnesium"))[-1].read.of("specimens")
    assert not items(one_line("CSF protein and glucose, phosphate"))[-1].read.of("specimens")
    assert items(one_line("24-hour urine sodium, magnesium"))[-1].read.of("specimens") == {"urine"}
    assert not items(one_line("24-hour urine calcium to creatinine ratio, magnesium"))[-1].read.of("specimens")
    assert items(one_line("urine sodium, osmolality"))[-1].read.of("specimens") == {"urine"}


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (
            "CSF PCR for HSV, pneumococcus and Listeria, CBC",
            ["csf pcr  hsv", "pneumococcus pcr", "spinal fluid listeria pcr", "cbc"],
        ),
        ("HSV PCR, neopterin", ["hsv pcr", "neopterin"]),
        ("CT head with contrast including temporal bones", ["ct head", "ct temporal bones"]),
        ("echocardiogram with LVOT gradient at rest and Valsalva, troponin", ["echocardiogram", "troponin"]),
        ("pleural fluid culture, adenosine deaminase", ["pleural fluid culture", "pleural adenosine deaminase"]),
        ("genital examination, joints skin and eyes", ["genital examination", "joints", "skin", "eyes"]),
        ("CT liver with arterial and portal venous phases, CBC", ["ct liver", "cbc"]),
        ("RET and VHL and SDHx genetic testing, CBC", ["ret and vhl and sdhx genetic testing", "cbc"]),
        (
            "urine porphobilinogen with creatinine, sodium, CBC",
            ["urine porphobilinogen", "urine creatinine", "sodium", "cbc"],
        ),
        ("urgent surgical or urology review, CBC", ["urgent surgical review", "urology review", "cbc"]),
    ],
)
def test_a_list_says_of_its_items_what_they_are_of_and_how_they_are_done(request_: str, named: list[str]) -> None:
    assert [item.text for item in items(one_line(request_))] == named


def test_what_is_done_with_a_biopsy_of_no_place_is_done_with_a_biopsy() -> None:
    found = items(one_line("biopsy, histology, mycobacterial PCR"))
    assert found[-1].read.of("tests") == {"biopsy", "pcr"}


def test_carbon_monoxide_in_the_air_is_not_that_in_blood() -> None:
    (air,) = items(one_line("ambient carbon monoxide measurement"))
    assert not air.read.of("values")


def test_an_ultrasound_of_the_chest_is_of_the_lungs_and_a_swab_for_two_germs_no_screen_of_blood() -> None:
    assert items(one_line("thoracic ultrasound"))[0].read.of("sites") == {"lung"}
    chart = case_of(osce(tests={"HIV_Antigen_Antibody": "Negative", "Chlamydia_Gonorrhea_NAAT": {"Findings": "None"}}))
    assert "HIV" not in order(chart, "chlamydia and gonorrhoea swabs").text


def test_the_palate_moves_in_a_neurological_list_only() -> None:
    assert items(one_line("arm span, palate"))[-1].read.by_kind == {"sites": {"mouth"}}
    assert "palate" in items(one_line("pupils, palate"))[-1].read.of("parts")


def test_a_method_of_one_place_takes_no_word_from_the_next_and_inspection_alone_is_of_the_whole() -> None:
    percussed = items(one_line("auscultation and percussion of the lungs, heart sounds"))[1]
    assert percussed.read.by_kind == {"methods": {"percussion"}, "sites": {"lung"}}
    assert items(one_line("observation, ECG"))[0].read.of("systems") == {"general"}
