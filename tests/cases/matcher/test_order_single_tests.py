"""A test is answered by itself: not by its panel's neighbors, another specimen, or a test of another kind."""

from __future__ import annotations

import pytest

from agentclinic.cases.completion import offered
from agentclinic.cases.matcher.order_text import conditional, one_line

IRON = {"Ferritin", "Iron Studies / Serum Iron", "Iron Studies / TIBC", "Iron Studies / Transferrin Saturation"}
AFB = {"Sputum Acid-Fast Smear / Findings", "Sputum Mycobacterial Culture / Findings"}
ORDERS = [
    ("iron panel", IRON),
    ("transferrin sat", {"Iron Studies / Transferrin Saturation"}),
    ("25(OH)D", {"Vitamin D 25-OH"}),
    ("TPO antibodies", {"Thyroid Peroxidase Antibody"}),
    ("HBsAg", {"Hepatitis Serology / Hepatitis B Surface Antigen"}),
    ("total IgA", {"Serum IgA"}),
    ("urine copper", set()),
    ("galactomannan", set()),
    ("calcium score", {"Coronary Calcium Score"}),
    ("AUDIT-C", set()),
    ("Lyme serology with reflex IgM/IgG immunoblot", {"Borrelia Serology"}),
    ("IgG, IgM", {"Serum Protein Electrophoresis / IgG", "Serum Protein Electrophoresis / IgM"}),
    ("gonorrhea NAAT", {"Chlamydia Gonorrhea NAAT / Findings"}),
    ("urine VMA/HVA", {"Urine Catecholamine Metabolites"}),
    ("fetal heart rate tracing", {"Nonstress Test / Findings"}),
    ("bilirubin fractionated", {"Liver Function Tests / Total Bilirubin", "Direct Bilirubin"}),
    ("alpha-1", {"Alpha1 Antitrypsin"}),
    ("CK isoenzymes", {"CK MB"}),
    ("sleepiness scale", {"Sleepiness Questionnaire"}),
    ("sniff nasal pressure", {"Respiratory Muscle Strength / Findings"}),
    ("optic nerve MRI", {"MRI Brain and Orbits / Findings"}),
    ("RUSH exam", {"Bedside Ultrasound / Findings"}),
    ("viral hemorrhagic fever PCR", {"Ebola and Lassa PCR"}),
    ("pulmonary function tests",
     {"Spirometry / FEV1 FVC", "Pulmonary Function Tests / FEV1", "Pulmonary Function Tests / FVC",
      "Pulmonary Function Tests / Total Lung Capacity", "Diffusing Capacity"}),
    ("urine Legionella and pneumococcal antigens", {"Urinary Antigens / Findings"}),
    ("urine colour", {"Urinalysis / Appearance"}),
    ("urine output", {"Vital Signs / Urine Output"}),
    ("serum drug levels (digoxin, lithium)", {"Digoxin Level", "Lithium Level"}),
    ("MoCA", {"Cognitive Screening / Findings"}),
    ("MRI brain for atrophy or vascular disease", {"MRI Brain / Findings"}),
    ("CT head non-con before LP", {"CT Head / Findings"}),
    ("temporal artery ultrasound", {"Temporal and Axillary Artery Ultrasound / Findings"}),
    ("spirometry", {"Spirometry / FEV1", "Spirometry / FVC", "Spirometry / FEV1 FVC"}),
    ("BAER", {"Auditory Evoked Potentials / Findings"}),
    ("IgG subclasses", set()),
    ("hep C Ab with reflex RNA", {"Hepatitis C Antibody"}),
    ("sputum for AFB smear and culture", AFB),
    ("CSF oligoclonal bands, B12", {"Lumbar Puncture / Oligoclonal Bands", "Vitamin B12"}),
    ("CT-guided percutaneous needle biopsy of the right apical lesion", {"Needle Biopsy / Findings"}),
    ("biopsy of the mass", {"Needle Biopsy / Findings"}),
    ("ascitic fluid cell count", {"Ascitic Fluid / Findings"}),
    ("bone marrow aspirate with flow cytometry", {"Bone Marrow / Aspirate", "Bone Marrow / Flow Cytometry"}),
    ("bone marrow aspirate and biopsy with cytogenetics",
     {"Bone Marrow / Aspirate", "Bone Marrow Biopsy / Findings", "Bone Marrow Cytogenetics / Findings"}),
    ("karyotype", {"Gene Panel / Findings"}),
    ("disc aspirate culture and TB PCR", set()),
    ("biopsy of the disc and vertebra with histology, bacterial culture", set()),
    ("rectal swab NAAT for chlamydia, HSV PCR", {"Rectal Swab NAAT / Findings"}),
    ("duplex ultrasound of the subclavian veins", {"Arm Vein Ultrasound / Findings"}),
    ("ultrasound of the popliteal vein", {"Leg Vein Ultrasound / Findings"}),
    ("CT chest with pulmonary angiography", {"CT Pulmonary Angiography / Findings"}),
    ("right atrial and wedge pressures", {"Right Heart Catheterization / Findings"}),
    ("specific IgE to wheat and rye flour and fungal alpha-amylase",
     {"Specific IgE / Wheat Flour", "Specific IgE / Rye Flour", "Specific IgE / Fungal Alpha Amylase"}),
    ("alpha-amylase", {"Amylase"}),
    ("viral PCR and serology", {"Respiratory Viral PCR / Findings", "Viral Serology / Parvovirus B19 IgM"}),
    ("intraocular pressure and gonioscopy, both eyes",
     {"Tonometry / Left", "Tonometry / Right", "Gonioscopy / Findings"}),
    ("visual acuity, both eyes", {"Eye Examination / Visual Acuity"}),
    ("urine protein/creatinine", {"Urine Protein Creatinine Ratio"}),
    ("urine ACR and PCR", {"Urine Albumin Creatinine Ratio", "Urine Protein Creatinine Ratio"}),
    ("upper gastrointestinal contrast series", {"Upper GI Contrast Study / Findings"}),
    ("CSF protein and biomarkers", {"Lumbar Puncture / Protein", "Lumbar Puncture / Amyloid and Tau"}),
    ("stool Entamoeba PCR", {"Stool PCR / Findings"}),
    ("serial peak flow at work and away from work", {"Peak Expiratory Flow", "Peak Flow Diary / Findings"}),
    ("ultrasound of temporal and axillary arteries", {"Temporal and Axillary Artery Ultrasound / Findings"}),
    ("H. pylori stool antigen, lipase", {"Helicobacter pylori Stool Antigen", "Lipase"}),
    ("ex lap", {"Laparoscopy / Findings"}),
    ("lap", {"Laparoscopy / Findings"}),
    ("obturator sign", {"Abdominal Examination / Obturator Sign"}),
    ("plasma glucose", {"Basic Metabolic Panel / Glucose"}),
]  # fmt: skip


@pytest.mark.parametrize(("order", "headings"), ORDERS, ids=[order for order, _ in ORDERS])
def test_a_test_is_answered_by_itself(order: str, headings: set[str]) -> None:
    assert {heading for _, found in offered(order, frozenset()) for heading in found} == headings


@pytest.mark.parametrize(
    ("order", "plainly"),
    [
        ("renal and liver function", "renal function, liver function"),
        ("liver, kidney and thyroid function tests", "liver function, kidney function, thyroid function"),
        ("lung examination on his mother's lap", "lung examination"),
        ("lung examination, observing him on his mother's lap without disturbing him", "lung examination"),
        ("throat examination without using a tongue depressor", "throat examination"),
        ("testicular and hernia examination", "testicular examination, hernia examination"),
        ("neurological examination with mental status", "neurological examination"),
    ],
)
def test_an_order_is_read_like_a_plainer_one(order: str, plainly: str) -> None:
    every = [{heading for _, found in offered(said, frozenset()) for heading in found} for said in (order, plainly)]
    assert every[0] == every[1] != set()


def test_what_depends_on_a_result_is_set_apart() -> None:
    order = "CBC; CT abdomen with contrast if ultrasound nondiagnostic"
    assert one_line(order) == "CBC"
    assert conditional(order) == ("CT abdomen with contrast if ultrasound nondiagnostic",)
    assert conditional("CT abdomen if ultrasound nondiagnostic") == ()
