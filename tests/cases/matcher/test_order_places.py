"""Orders that name a place and what to look for there, a specimen and what is done with it, a study and how."""

from __future__ import annotations

import pytest
from helpers import bundled_cases

from agentclinic.cases.completion import completion
from agentclinic.clinic.laboratory import matched, results_line
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.pending import hours_for


def reply(name: str, order: str) -> str:
    case = next(case for case in bundled_cases() if case.name == name)
    payload = LaboratoryPayload(case.exam_facts, order, "completed", completion(case), hours_for(case))
    return results_line(matched(payload), payload)[0]


@pytest.mark.parametrize(
    ("case", "order", "told", "untold"),
    [
        ("osce-t03", "palpation of neck and chest wall for crepitus and tenderness", "fine crackling", "Thyroid"),
        ("osce-t03", "neck for crepitus", "fine crackling", "Thyroid"),
        ("osce-t03", "tophi on ears and elbows", "Skin Examination", "Ears"),
        ("osce-c07", "palpation of pericranial, temporal, neck and shoulder muscles", "Tender temporalis", "Thyroid"),
        ("osce-a22", "web spaces, axillae and genitals for burrows", "Skin Examination", "Feet"),
        ("osce-d15", "neck stiffness, rash on trunk and legs, GCS", "No rash, no petechiae", "Cardiovascular"),
        ("osce-c07", "Rotator cuff strength, Spurling test", "Shoulders", "Motor"),
        ("osce-c10", "Otoscopy", "Drums", "not available"),
        ("osce-c10", "Hearing by whisper, Rinne and Weber", "Whispered voice heard", "Thyroid"),
        ("osce-a04", "Look at the left knee portals for infection", "healing portals", "Knees: "),
        ("osce-b01", "percussion tenderness, pelvic exam", "Bimanual", "Rectal"),
        ("osce-a07", "JVP, ascites, pedal oedema", "Distended to 6 cm", "Ascitic Fluid"),
        (
            "osce-c16",
            "cardiovascular exam including neck veins, joint examination of the hands and knees",
            "middle finger joints",
            "not available",
        ),
        ("osce-c16", "skin exam including scalp, small joints of the hands", "middle finger joints", "not available"),
        (
            "osce-c16",
            "joint examination of the hands and knees, examination of the legs for oedema",
            "middle finger joints",
            "not available",
        ),
    ],
)
def test_a_place_is_examined_for_what_the_order_looks_for(case: str, order: str, told: str, untold: str) -> None:
    text = reply(case, order)
    assert told in text
    assert untold not in text


@pytest.mark.parametrize(
    ("case", "order", "told", "untold"),
    [
        (
            "osce-a23",
            "Punch biopsy of the plaque with histology, fungal stains and polarised light",
            "Skin",
            "Scraping",
        ),
        ("osce-t08", "diagnostic laparoscopy with biopsy for histology and TB PCR/culture", "Laparoscopy", "Vaginal"),
        ("osce-b12", "Colonoscopy with terminal ileal biopsies", "Colonoscopy, Biopsy", "Upper Endoscopy"),
        ("osce-b11", "colonoscopy to the terminal ileum with segmental biopsies", "Findings: Normal", "not available"),
        ("osce-a22", "measles PCR throat swab", "Measles PCR", "Chlamydia"),
        ("osce-t03", "rectal swab for gonorrhoea and chlamydia PCR", "Rectal Swab", "Throat"),
        ("osce-d04", "throat swab for group A strep, ASO", "Rapid Group A Antigen", "HSV"),
        ("osce-d17", "knee aspiration: cell count, Kingella PCR, Lyme PCR", "Borrelia burgdorferi PCR", "Chlamydia"),
        ("osce-d15", "CSF cell count, culture, pneumococcal antigen and HSV PCR", "HSV PCR", "Vesicle"),
        ("osce-t04", "pertussis PCR and culture of nasopharyngeal swab", "charcoal", "Stool"),
        (
            "osce-b12",
            "stool microscopy for ova and parasites and Giardia antigen",
            "Giardia Antigen: Neg",
            "Salmonella",
        ),
        ("osce-b19", "speculum with cervical smear", "Pap Smear", "Blood Film"),
        ("osce-b19", "diagnostic laparoscopy with biopsy of lesions", "Laparoscopy, Biopsy", "Marrow"),
        ("osce-b19", "laparoscopy and biopsy of any suspicious lesions", "Laparoscopy, Biopsy", "Endoscopy"),
        ("osce-a17", "CT-guided biopsy of any apical lesion", "Needle Biopsy", "Skin"),
        ("osce-a17", "percutaneous needle biopsy of the right apical lung mass with histology", "Needle", "Marrow"),
        ("osce-t12", "biopsy of the psoas", "psoas muscle: taken", "Marrow"),
        ("osce-t12", "bone biopsy", "Bone biopsy: taken", "Marrow"),
        ("osce-t12", "iliac crest biopsy", "Bone Marrow", "Needle"),
    ],
)
def test_what_is_done_with_a_specimen_is_of_that_specimen(case: str, order: str, told: str, untold: str) -> None:
    text = reply(case, order)
    assert told in text
    assert untold not in text


@pytest.mark.parametrize(
    ("case", "order", "told", "untold"),
    [
        ("osce-a22", "HRCT chest", "stacked small cysts", "CT Chest"),
        ("osce-a22", "CT chest", "CT Chest: ", "High Resolution"),
        ("osce-c01", "MRI brain with FLAIR, susceptibility-weighted and diffusion sequences", "MRI Brain", "available"),
        ("osce-c01", "vessel wall imaging of the anterior communicating artery", "saccular", "Skeletal Survey"),
        ("osce-a20", "ultrasound of the shoulder, x-ray AP and axillary views", "Shoulder X-ray", "Breast"),
        ("osce-c13", "nerve conduction studies of the median and ulnar nerves", "Nerve Conduction", "Spine"),
        ("osce-b17", "ultrasound of the kidneys, ureters and bladder", "Renal Ultrasound", "CT Kidneys"),
        ("osce-a17", "MRI of the thoracic inlet", "Brachial Plexus MRI", "Cardiac"),
        ("osce-a17", "MRI thoracic outlet", "Brachial Plexus MRI", "Spine"),
    ],
)
def test_how_a_study_is_done_is_no_other_study(case: str, order: str, told: str, untold: str) -> None:
    text = reply(case, order)
    assert told in text
    assert untold not in text


@pytest.mark.parametrize(
    ("case", "order", "untold"),
    [
        ("osce-c10", "lying and standing blood pressure at 1 and 3 minutes", "Tryptase"),
        ("osce-b22", "liver screen: hepatitis B serology, ferritin", "Abdominal"),
        ("osce-b02", "AFP, inhibin and LDH tumour markers", "CEA"),
        ("osce-d17", "anti-DNase B, Lyme serology with western blot", "western blot"),
        ("osce-d21", "skin scraping in mineral oil", "not available"),
        ("osce-b09", "B12/folate/ferritin", "Homocysteine"),
        ("osce-a21", "MRI foot, probe-to-bone test", "MRI probe"),
    ],
)
def test_what_only_says_when_or_how_orders_nothing(case: str, order: str, untold: str) -> None:
    assert untold not in reply(case, order)
