"""A maneuver, a second sample or a special form of a test is reported if it is ordered, and not in place of another."""

from __future__ import annotations

import pytest
from helpers import case_of, osce

from agentclinic.cases.matcher import asked_of_measurement

CHART = case_of(
    osce(
        exam={
            "Vital_Signs": {"Blood_Pressure": "120/80 mmHg", "Oxygen_Saturation": "97% on the right hand"},
            "Cardiovascular_Examination": {"Auscultation": "Regular, no murmur", "Legs": "No edema"},
            "Leaning_Forward_Auscultation": {"Findings": "Soft sound"},
            "Left_Side_Lying_Auscultation": {"Findings": "Crunching"},
            "Postductal_Oxygen_Saturation": {"Findings": "92% on the foot"},
            "Four-Limb_Blood_Pressure": {"Findings": "Lower in the legs"},
            "Observation_of_a_Coughing_Bout": {"Findings": "Fifteen coughs"},
            "Diaper_Inspection": {"Findings": "Pale stool"},
            "Abdominal_Examination": {"Rectal": "Empty"},
            "Rectovaginal_Examination": {"Findings": "Nodule"},
            "ENT_Examination": {"Ears": "Drums gray", "Inner_Cheeks": "White grains"},
            "Musculoskeletal_Examination": {"Hips": "Painful rotation"},
            "Skin_Examination": {"Trunk": "Clear", "Nail_Folds": "Dark", "Repeat_After_One_Hour": "Wider"},
        },
        tests={
            "Arterial_Blood_Gas": {"pH": "7.40"},
            "Previous_Arterial_Blood_Gas": {"Findings": "Normal"},
            "HIV_Antigen_Antibody": "Negative",
            "Syphilis_Serology": "Non-reactive",
            "RPR_Titer_With_Dilution": {"Findings": "1:256"},
            "HHV-6_PCR_Blood": "Not detected",
            "Stool_PCR": {"Findings": "Nothing"},
            "Sputum_PCR": {"Findings": "Nothing"},
            "Sputum_Acid-Fast_Smear": {"Findings": "None"},
            "Second_Sputum_Acid-Fast_Smear": {"Findings": "Rods"},
            "Chlamydia_Gonorrhea_NAAT": {"Findings": "Not detected"},
            "Rectal_Swab_NAAT": {"Findings": "Chlamydia detected"},
            "Urethral_Smear": {"Findings": "Cocci"},
            "Smear_of_the_Blister_Base": {"Findings": "Round cells"},
            "Lumbar_Puncture": {"Gram_Stain": "None"},
            "Joint_Fluid_Analysis": {"WBC": "64,000", "Gram_Stain": "None"},
            "Gram_Stain_of_Spun_Joint_Fluid": {"Findings": "Clusters"},
            "Walk_Test": {"Findings": "98%"},
            "Depression_Questionnaire": "21",
            "Mood_Disorder_Questionnaire": "10 of 13",
            "Abdominal_Ultrasound": {"Findings": "Liver and gallbladder after a feed"},
            "Fasting_Ultrasound_of_the_Liver_Hilum": {"Findings": "Band"},
            "Appendix_Ultrasound": {"Findings": "12 mm"},
            "Pelvic_Ultrasound": {"Findings": "Ring"},
            "Adnexal_Ultrasound_with_Gentle_Pressure": {"Findings": "Glides"},
            "Chest_X-ray": {"Findings": "Clear"},
            "Bone_Marrow": {"Aspirate": "Normal"},
        },
    )
)


def reported(order: str) -> list[str]:
    """The headings of what an order returns."""
    found = (fact for answer in asked_of_measurement(order, CHART.exam_facts) for fact in answer.facts)
    return list(
        dict.fromkeys(fact.heads[0] if fact.heads[-1] == "Findings" else " / ".join(fact.heads) for fact in found)
    )


AUSCULTATION = "Cardiovascular Examination / Auscultation"
SATURATION = "Vital Signs / Oxygen Saturation"


@pytest.mark.parametrize(
    ("order", "headings"),
    [
        ("Cardiac auscultation leaning forward", ["Leaning Forward Auscultation"]),
        ("Auscultate the heart sitting up and leaning forward", ["Leaning Forward Auscultation"]),
        ("Cardiac auscultation", [AUSCULTATION]),
        ("Auscultate heart in left lateral position", ["Left Side Lying Auscultation"]),
        ("Left lateral decubitus chest x-ray", ["Chest X-ray"]),
        ("Pre- and postductal oxygen saturation", [SATURATION, "Postductal Oxygen Saturation"]),
        ("Blood pressure in arms and legs", ["Four-Limb Blood Pressure"]),
        ("Observe a coughing fit", ["Observation of a Coughing Bout"]),
        ("Look at the stool in the diaper", ["Diaper Inspection"]),
        ("Stool color", ["Diaper Inspection"]),
        ("Rectovaginal examination", ["Rectovaginal Examination"]),
        ("Rectal examination", ["Abdominal Examination / Rectal"]),
        ("Inspect the inside of the cheeks", ["ENT Examination / Inner Cheeks"]),
        ("Koplik spots", ["ENT Examination / Inner Cheeks"]),
        ("Hutchinson sign", ["Skin Examination / Nail Folds"]),
        ("Examine the nail fold and cuticle", ["Skin Examination / Nail Folds"]),
        ("Mark the border of the redness and recheck in one hour", ["Skin Examination / Repeat After One Hour"]),
        ("Log roll of the hip", ["Musculoskeletal Examination / Hips"]),
        ("Listen for murmurs", [AUSCULTATION]),
        ("Previous blood gas results", ["Previous Arterial Blood Gas"]),
        ("blood gas", ["Arterial Blood Gas / pH"]),
        ("RPR with serial dilution", ["RPR Titer With Dilution"]),
        ("HHV-6 PCR", ["HHV-6 PCR Blood"]),
        ("Repeat sputum AFB", ["Second Sputum Acid-Fast Smear"]),
        ("sputum AFB", ["Sputum Acid-Fast Smear"]),
        ("three sputum smears", ["Sputum Acid-Fast Smear", "Second Sputum Acid-Fast Smear"]),
        ("Rectal chlamydia NAAT", ["Rectal Swab NAAT"]),
        ("Rectal swab for chlamydia and gonorrhea", ["Rectal Swab NAAT"]),
        ("Tzanck smear", ["Smear of the Blister Base"]),
        ("Gram stain of centrifuged synovial fluid", ["Gram Stain of Spun Joint Fluid"]),
        ("Gram stain of synovial fluid", ["Joint Fluid Analysis / Gram Stain"]),
        ("Gastric aspirate for AFB", []),
        ("Six-minute walk test", ["Walk Test"]),
        ("Oxygen saturation at rest and walking", [SATURATION, "Walk Test"]),
        ("Mood Disorder Questionnaire", ["Mood Disorder Questionnaire"]),
        ("Fasting abdominal ultrasound of gallbladder and biliary tree", ["Fasting Ultrasound of the Liver Hilum"]),
        ("liver ultrasound", ["Abdominal Ultrasound"]),
        ("Graded compression ultrasound of the right lower quadrant", ["Appendix Ultrasound"]),
        ("Transvaginal ultrasound with sliding test", ["Adnexal Ultrasound with Gentle Pressure"]),
        ("Pelvic ultrasound", ["Pelvic Ultrasound"]),
    ],
)
def test_what_is_ordered_is_reported_and_nothing_else(order: str, headings: list[str]) -> None:
    assert reported(order) == headings
