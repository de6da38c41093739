"""What a laboratory that completes missing tests says to the orders of busy doctors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulator_support import CASE

from agentclinic.builtin.roles import report
from agentclinic.cases.completion import completion
from agentclinic.cases.model import Case, Door, Fact, Section
from agentclinic.clinic.laboratory import NO_BLISTER
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


INFANT = replace(CASE, door=Door("Assess a 5-month-old boy.", "5-month-old boy"))


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
        ("Jaundice, hepatomegaly", ["Tired, slightly yellow", "liver edge 2 cm"]),
        ("Ptosis", ["Right upper lid slightly low"]),
        ("Excoriations", ["Scratch marks"]),
        ("Third nerve palsy", ["Right upper lid"]),
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
    text = reply("Abdominal examination for guarding and an olive-shaped mass")
    assert "not available" not in text
    assert text.startswith(once.removesuffix("."))
    assert text.count("liver edge 2 cm") == 1


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


ILL = {
    ("General Appearance",): "Drowsy but rouses to voice",
    ("Cardiovascular Examination", "Legs"): "Left calf swollen",
    ("Neurological Examination", "Mental Status"): "Drowsy, oriented to person",
    ("Neurological Examination", "Motor"): "Full power in legs",
    ("Neurological Examination", "Sensory"): "Normal, no level",
    ("Musculoskeletal Examination", "Findings"): "Knee and ankle move freely without pain in the joint",
    ("Needle Biopsy", "Findings"): "Disc space T9-T10 sampled, many neutrophils",
    ("Rectal Swab PCR", "Findings"): "Herpes simplex virus not detected",
    ("Throat Swab PCR", "HSV 1"): "Detected",
    ("Pericardial Fluid", "Findings"): "Pocket not reachable, no fluid obtained so far",
    ("Right Heart Catheterization", "Findings"): "Right atrial pressure 22 mmHg",
    ("CT Pulmonary Angiography", "Findings"): "No filling defect",
    ("CT Venography", "Findings"): "Left leg: popliteal vein wide; common femoral and pelvic veins fill normally",
    ("Upper GI Contrast Study", "Findings"): "Duodenum ends in a beak",
    ("Ocular Ultrasound", "Findings"): "Both eyes short, 21.0 mm",
}


def reply_of_the_ill(order: str) -> str:
    sections = {head: Section.EXAMINATION if "Exam" in head or "General" in head else Section.TESTS for head, *_ in ILL}
    facts = [Fact("/".join(heads), sections[heads[0]], heads, text) for heads, text in ILL.items()]
    case = replace(CASE, facts=(*CASE.patient_facts, *facts))
    return report(LaboratoryPayload(case.exam_facts, order, "completed", completion(case))).text


@pytest.mark.parametrize(
    ("order", "said", "not_said"),
    [
        ("disc aspirate culture and TB PCR", "Disc space T9-T10", "Culture:"),
        ("biopsy of T9-T10 disc and vertebra with histology, bacterial culture", "Disc space T9-T10", "Skin"),
        ("rectal swab NAAT for chlamydia, HSV PCR", "Herpes simplex virus not detected", "Throat"),
        ("HSV PCR from vesicle and throat swab", "HSV 1: Detected", "Strep"),
        ("neurological examination of the legs", "Full power in legs; Sensory: Normal, no level", "calf"),
        ("examination of both legs: skin, knee and ankle", "Knee and ankle move freely", "not available"),
        ("drainage of the pericardial fluid with cytology and protein", "no fluid obtained so far", "Cytology"),
        ("pericardial fluid culture, cytology and TB PCR", "no fluid obtained so far", "PCR"),
        ("drainage of pericardial fluid, right atrial pressures before and after drainage", "22 mmHg", "Skin"),
        ("contrast CT chest with pulmonary angiography", "No filling defect", "not done"),
        ("CT chest, pulmonary angiography", "CT Pulmonary Angiography: Findings: No filling defect", "not done"),
        ("CT venogram of abdomen and pelvis", "RESULTS: CT Venography", "Kidneys"),
        ("upper gastrointestinal contrast series", "Duodenum ends in a beak", "Barium"),
        ("ocular biometry with axial length", "21.0 mm", "23"),
        ("examination of both arms with circumferences", "Upper Limb", "Neck"),
        ("gait", "Drowsy", "teady"),
        ("neurological examination", "Full power", "andem"),
    ],
)
def test_what_is_charted_of_the_place_ordered_is_given(order: str, said: str, not_said: str) -> None:
    text = reply_of_the_ill(order)
    assert said in text
    assert not_said not in text


def test_allergens_are_each_told_by_name() -> None:
    text = reply("Specific IgE to rye flour, fungal alpha-amylase, cat and walnut; amylase")
    assert text.count("0.1 kU/L") == 3
    assert "Specific IgE to walnut not available" in text
    assert text.count("U/L (ref 30-110)") == 1


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


def with_findings(*found: tuple[tuple[str, str], str]) -> Case:
    facts = [Fact("/".join(heads), Section.EXAMINATION, heads, text) for heads, text in found]
    return replace(CASE, facts=(*CASE.patient_facts, *facts))


def of(case: Case, order: str) -> str:
    return report(LaboratoryPayload(case.exam_facts, order, "completed", completion(case))).text


def test_a_knee_is_not_read_as_skin_because_of_tophi() -> None:
    case = with_findings((("Musculoskeletal Examination", "Right Knee"), "Large effusion, warm"))
    assert "Large effusion" in of(case, "examination of the right knee, hands, and skin and ears for tophi")


def test_a_thyroid_examination_of_the_hands_includes_the_tremor() -> None:
    case = with_findings((("Neurological Examination", "Tremor"), "Fine and fast"))
    assert "Fine and fast" in of(case, "examination of the thyroid, eyes, hands, skin and heart")


def test_completed_findings_do_not_contradict_charted_ones() -> None:
    case = with_findings(
        (("Neurological Examination", "Mental Status"), "Glasgow Coma Scale 14, does not know the month"),
        (("Musculoskeletal Examination", "Shoulders"), "Abduction to 90 degrees, tender over the upper arms"),
    )
    assert "tandem" not in of(case, "full neurological examination")
    assert "memory and attention normal" not in of(case, "psychiatric examination")
    assert "Not tender" not in of(case, "muscle tenderness")


def test_a_general_examination_beside_named_systems_adds_no_others() -> None:
    text = reply("vital signs, general examination including mouth and nails, cardiovascular and abdominal examination")
    assert "Abdominal Examination" in text
    assert "Neurological Examination" not in text


def test_a_maneuver_charted_twice_is_told_once() -> None:
    case = with_findings(
        (("Neurological Examination", "Dix-Hallpike Maneuver"), "Upbeating nystagmus on the right"),
        (("Dix-Hallpike Test", "Right"), "Upbeating nystagmus on the right after 4 seconds"),
    )
    assert of(case, "Dix-Hallpike").count("Upbeating") == 1


def test_a_dose_keeps_its_unit() -> None:
    assert "0.6 mg/kg: a treatment" in reply("oral dexamethasone 0.6 mg/kg and nebulised epinephrine, stridor")


def test_what_was_to_be_found_after_a_drug_is_not_answered_with_what_was_found_before() -> None:
    text = reply("peak flow before and after salbutamol")
    assert "Peak flow after salbutamol: no result under this condition." in text
    assert "Diary" not in text
    assert reply("repeat saturation 10 minutes after a nebuliser") == (
        "RESULTS: Repeat saturation 10 minutes after a nebuliser: not done yet."
    )
    case = with_findings((("Neurological Examination", "Special Signs"), "After 30 bites the jaw tires"))
    assert "After 30 bites" in of(case, "jaw after repeated biting")


def test_a_test_after_a_treatment_is_not_called_a_treatment() -> None:
    assert "Repeat glucose after insulin 6 units: not done yet." in reply("HbA1c, repeat glucose after insulin 6 units")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("Hoffmann's, clonus, jaw jerk", ["Hoffmann Sign: Negative", "Clonus: ", "Jaw Jerk: "]),
        ("Rinne and Weber", ["Rinne Test: ", "Weber"]),
        ("GCS, tandem gait, pull test", ["Glasgow Coma Scale: 15", "Tandem Gait: ", "Pull Test: "]),
        ("Kernig and Brudzinski signs", ["Kernig Sign: Absent", "Brudzinski Sign: Absent"]),
        ("Thrills, pericardial rub", ["Thrills: None", "Friction Rub: None"]),
        ("Psoas sign, succussion splash", ["Psoas Sign: Negative", "Succussion Splash: None"]),
        ("Facial and sacral oedema", ["Facial Edema: ", "Sacral Edema: "]),
        (
            "Listen for subclavian, carotid and abdominal bruits",
            ["Subclavian Bruits: ", "Abdominal Bruits: "],
        ),
        ("Thyroid palpation and bruit", ["Thyroid: ", "Thyroid Bruit: "]),
        ("Inspect and percuss the lumbar spine", ["Spine: "]),
        ("Calves, skin turgor", ["Calves: Soft", "Turgor: Normal"]),
        ("Bowel sounds", ["Auscultation: "]),
        ("Listen leaning forward for a rub, lung bases, throat", ["Respiratory Examination: ", "ENT Examination: "]),
        ("Varicose veins, tar staining", ["Varicose Veins: None", "Tar Staining: None"]),
    ],
)
def test_a_single_sign_has_a_result_of_its_own(order: str, said: list[str]) -> None:
    text = reply(order)
    assert "not available" not in text
    assert all(words in text for words in said)


@pytest.mark.parametrize(
    ("order", "unsaid"),
    [
        ("Reflexes", "Hoffmann"),
        ("Neck examination, muscle strength", "Neck Strength"),
        ("Neurological examination", "Glasgow"),
        ("Heart sounds", "Radiation of Murmur"),
        ("Skin examination", "Turgor"),
        ("Shins for erythema nodosum", "Calves"),
        ("Gait, stand from chair without arms", "Upper Limb"),
        ("Lung auscultation front and back", "Spine"),
        ("Rectal examination for prostate and stool", "Stool Culture"),
        ("Respiratory rate; color of the hands", "Urinalysis"),
    ],
)
def test_a_single_sign_or_a_word_of_an_examination_brings_nothing_else(order: str, unsaid: str) -> None:
    assert unsaid not in reply(order)


def test_a_charted_finding_that_speaks_of_a_sign_is_given_in_its_place() -> None:
    told = Fact(
        "Physical_Examination_Findings/Neurological_Examination/Arms",
        Section.EXAMINATION,
        ("Neurological Examination", "Arms"),
        "Flicking the middle fingertip bends the thumb on both sides",
    )
    case = replace(charted(), facts=(*charted().facts, told))
    payload = LaboratoryPayload(case.exam_facts, "Hoffmann's sign", "completed", completion(case))
    assert report(payload).text == f"RESULTS: Neurological Examination: Arms: {told.text}."


def test_the_places_of_a_list_of_nodes_are_those_of_the_nodes() -> None:
    text = reply("Heart, lymph nodes in neck, axillae and groins")
    assert "Lymph Node Examination" in text
    assert "not available" not in text
    assert "Breast" not in text
    assert "Genitourinary" not in text


def test_results_under_one_heading_share_it() -> None:
    text = reply("heart rate, temperature, oxygen saturation")
    assert text.count("Vital Signs: ") == 1
    assert text.count("; ") == 2


def test_what_two_headings_say_is_told_once() -> None:
    case = with_findings(
        (("Neurological Examination", "Motor"), "Full power; tone slightly raised in both legs when moving"),
        (("Neurological Examination", "Tone"), "Slightly raised in both legs when moving"),
    )
    assert of(case, "power, tone and reflexes").count("lightly raised in both legs") == 1
    assert reply("hepatitis B surface antigen and anti-HCV").count("Hepatitis B and C") == 0
    assert reply("full neurological examination, gait").count("Gait and Reflexes") == 0


def test_a_vitamin_ordered_by_its_usual_name_brings_no_other_form_of_it() -> None:
    assert "Dihydroxy" not in reply("vitamin D, calcium")
    assert "1,25-Dihydroxyvitamin D: " in reply("25-OH and 1,25-dihydroxy vitamin D")
    assert "RESULTS: PTHrP: " in reply("PTHrP")


def test_a_sign_of_one_organ_brings_no_finding_of_its_neighbor() -> None:
    assert "Thyroid" not in reply("carotid bruits, heart sounds")
    assert "Thyroid" in reply("neck, heart sounds")


def test_words_of_two_clauses_name_no_result_together() -> None:
    assert "Blood Pressure Arms" not in reply("arm and leg reflexes; lying and standing blood pressure")
    assert "Height" not in reply("vital signs, uterine fundal height")


def test_a_result_that_answers_two_items_is_told_with_the_one_that_names_it() -> None:
    heads = ("Autoimmune Panel", "Myositis Panel")
    facts = (*CASE.patient_facts, Fact("/".join(heads), Section.TESTS, heads, "Negative"))
    case = replace(CASE, facts=facts)
    payload = LaboratoryPayload(case.exam_facts, "ENA, myositis panel", "completed", completion(case), 6)
    assert "Myositis" in report(payload).text


def test_a_test_of_a_relative_is_not_answered_with_the_patients() -> None:
    text = reply("TSH, ECGs of mother and siblings")
    assert "ECGs of mother and siblings: only the patient is examined here." in text
    assert "Sinus rhythm" not in text
    assert "only the patient" not in reply("abdominal examination on the mother's lap")


def test_a_panel_brings_no_values_of_another() -> None:
    assert "Salicylate" not in reply("urine tox screen")
    assert "salicylate" in reply("toxicology screen").lower()
    assert "Diffusing Capacity" not in reply("spirometry")


def test_a_reply_does_not_deny_elsewhere_a_sign_that_it_tells() -> None:
    case = with_findings((("Skin Examination", "Left Leg"), "Pale scar of 4 cm on the calf"))
    assert "None" not in of(case, "skin of the left leg and the scar")


def test_why_a_test_is_ordered_is_no_part_of_its_name() -> None:
    assert "TPMT: " in reply("TPMT before starting azathioprine", horizon=6)


FOUND = {
    ("Genitourinary Examination", "Findings"): "Testes normal, no scrotal swelling",
    ("Musculoskeletal Examination", "Left Knee"): "Large effusion, slightly warm",
    ("Musculoskeletal Examination", "Heels"): "Tender at both Achilles insertions",
    ("Skin Examination", "Findings"): "Left shin hot and red, three small blisters",
    ("Eye Examination", "Right Eye"): "Redness around the cornea, pupil oval",
    ("Abdominal Examination", "Palpation"): "Tender with guarding low on the right",
    ("Neurological Examination", "Findings"): "Alert, strength and reflexes normal",
    ("Repeat Neurological Examination", "Findings"): "Four hours later: drowsier",
}
MEASURED = {
    ("Cerebrospinal Fluid", "Appearance"): "Cloudy",
    ("Cerebrospinal Fluid", "WBC"): "1860 cells/µL, 92% neutrophils",
    ("Cerebrospinal Fluid", "Glucose"): "38 mg/dL",
    ("Urinary Antigens", "Findings"): "Streptococcus pneumoniae antigen positive",
}


def answer(order: str) -> str:
    facts = [
        Fact(f"{kind}/{'/'.join(heads)}", section, heads, text)
        for kind, section, found in (
            ("Physical_Examination_Findings", Section.EXAMINATION, FOUND),
            ("Test_Results", Section.TESTS, MEASURED),
        )
        for heads, text in found.items()
    ]
    case = replace(CASE, facts=(*CASE.patient_facts, *facts))
    payload = LaboratoryPayload(case.exam_facts, order, "completed", completion(case), horizon=24)
    return report(payload).text


CHECK = "Chest auscultation, check for bullae, crepitus or skin necrosis"


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (CHECK, "Left shin hot and red, three small blisters"),
        (CHECK, "Skin Crepitus: None"),
        (CHECK, "Skin Necrosis: None"),
        ("Throat, check for oedema", "Edema: None"),
        ("Abdominal examination with rebound", "Rebound: Not tested further because of the guarding"),
        ("Skin examination, abdominal examination, scrotal examination", "Testes normal, no scrotal swelling"),
        ("Knee examination both sides", "Right Knee: "),
        ("Peripheral joint and enthesis examination", "Tender at both Achilles insertions"),
        ("Pelvic ultrasound, FAST scan for free fluid", "Bedside Ultrasound: "),
        ("Blood group, crossmatch", "Crossmatch: "),
    ],
)
def test_what_an_order_names_last_is_answered_too(order: str, said: str) -> None:
    assert said in answer(order)


@pytest.mark.parametrize(
    ("order", "unsaid"),
    [
        ("Knee examination", "Right Knee"),
        ("Eye examination: conjunctiva and cornea", "Conjunctiva: "),
        ("CSF cell count, pneumococcal antigen", "Urinary Antigens"),
        ("Full neurological examination with neck stiffness, GCS", "Four hours later"),
    ],
)
def test_nothing_is_told_that_the_chart_contradicts_or_no_one_ordered(order: str, unsaid: str) -> None:
    assert unsaid not in answer(order)


def test_a_second_examination_is_told_when_it_is_ordered() -> None:
    assert "Four hours later: drowsier" in answer("Repeat neurological examination")


def test_a_culture_that_is_waited_for_is_named_once() -> None:
    text = answer("Lumbar puncture with cell count, glucose, Gram stain, culture")
    assert text.lower().count("culture: taken") == 1


def test_a_dressed_joint_or_a_noisy_neck_is_not_completed_as_normal() -> None:
    found = {
        ("Cardiovascular Examination", "Legs"): "Left knee dressing dry, both calves soft",
        ("Respiratory Examination", "Upper Airway Noise"): "High-pitched noise on inspiration when crying",
    }
    facts = [Fact("/".join(heads), Section.EXAMINATION, heads, text) for heads, text in found.items()]
    case = replace(CASE, facts=(*CASE.patient_facts, *facts))
    for order, said in (("knee wound examination", "dressing dry"), ("auscultation over the neck", "High-pitched")):
        text = report(LaboratoryPayload(case.exam_facts, order, "completed", completion(case))).text
        assert said in text
        assert "Full" not in text
        assert "bruit" not in text


def test_a_germ_is_looked_for_in_a_blister_only_if_the_order_names_one() -> None:
    assert NO_BLISTER not in reply("HSV PCR")
    assert NO_BLISTER in reply("swab of the blister for HSV PCR")


def test_a_sign_is_told_although_it_is_listed_after_another_examination() -> None:
    told = reply("lower limb neurological examination including saddle sensation, tender points")
    assert "Tender Points: None" in told


@pytest.mark.parametrize("order", ["spirometry", "Peak flow", "lung volumes, DLCO", "Chest X-ray, FeNO", "walk test"])
def test_what_an_infant_cannot_do_is_not_waited_for(order: str) -> None:
    payload = LaboratoryPayload((), order, "completed", completion(INFANT), 72)
    assert "not possible at this age" in report(payload).text
    assert "pending" not in report(payload).text
    assert "not possible" not in reply(order, horizon=72)


def test_what_only_sounds_like_a_test_for_other_ages_is_none() -> None:
    payload = LaboratoryPayload((), "reassessment after dexamethasone", "completed", completion(INFANT), 72)
    assert "at this age" not in report(payload).text


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("saline sonogram", "Saline sonogram: arranged"),
        ("CT colonography", "CT colonography: arranged"),
        ("pain diary", "Pain diary: arranged"),
        ("visual field perimetry", "Visual field perimetry: arranged"),
        ("FLIP", "FLIP: arranged"),
        ("lymph node aspirate", "Lymph Node Biopsy: taken"),
    ],
)
def test_a_study_without_a_result_is_arranged(order: str, said: str) -> None:
    assert said in reply(order, horizon=72)


def test_a_score_beside_the_findings_it_is_worked_out_from_is_not_passed_over() -> None:
    said = "NIHSS: a score to work out from the findings, not a test."
    assert said in reply("Neurological examination, NIHSS, ECG")
    assert "Neurological Examination: " in reply("NIHSS, ECG")
    assert said not in reply("NIHSS")
    assert reply("ECG, HEART score").count("a score to work out") == 1


def test_an_image_with_contrast_is_of_the_same_place_if_there_is_one() -> None:
    found = {
        ("CT Chest", "Findings"): "Rounded area beside the heart, without contrast",
        ("CT Chest Abdomen Pelvis", "Findings"): "Rounded area, not enhancing; liver normal",
        ("CT Angiography Chest", "Findings"): "Rounded area, not enhancing; single lumen",
    }
    facts = [Fact("/".join(heads), Section.TESTS, heads, text) for heads, text in found.items()]
    case = replace(CASE, facts=(*CASE.patient_facts, *facts))
    payload = LaboratoryPayload(case.exam_facts, "CT chest with contrast", "completed", completion(case))
    assert "single lumen" in report(payload).text
    assert "liver" not in report(payload).text


def test_a_mental_status_examination_is_told_whole_beside_other_orders_and_with_its_parts_listed() -> None:
    for order in ("Mental status examination, CBC", "Mental status examination with mood and insight, ECG"):
        assert "Rating Scale:" in reply(order), order
        assert "Thought:" in reply(order), order
    assert "Rating Scale:" not in reply("mental status, CBC")
