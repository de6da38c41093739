"""Orders of examinations: the region, the signs looked for, and what the rest of the list says."""

from __future__ import annotations

import re

import pytest
from helpers import bundled_cases

from agentclinic.cases.completion import completion
from agentclinic.cases.matcher.order_words import vocabulary
from agentclinic.clinic.laboratory import matched, results_line
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.pending import hours_for


def reply(name: str, order: str) -> str:
    case = next(case for case in bundled_cases() if case.name == name)
    payload = LaboratoryPayload(case.exam_facts, order, "completed", completion(case), hours_for(case))
    return results_line(matched(payload), payload)[0]


@pytest.mark.parametrize(
    ("case", "order", "told"),
    [
        ("osce-a03", "Lung auscultation, calf exam for swelling or tenderness, JVP", "Neck Veins: Not distended"),
        ("osce-d23", "Visual fields by confrontation, pupils (RAPD)", "Left relative afferent defect"),
        ("osce-b13", "Abdomen: inspection for scars, bowel sounds", "Bursts of high-pitched sounds"),
    ],
)
def test_a_list_goes_on_after_the_reason_for_one_examination(case: str, order: str, told: str) -> None:
    assert told in reply(case, order)


@pytest.mark.parametrize("order", ["abdominal exam for spleen", "Abdominal exam: tenderness, guarding"])
def test_an_abdomen_examined_for_something_is_no_rectal_examination(order: str) -> None:
    assert "Palpation" in reply("osce-d03", order)
    assert "Rectal" not in reply("osce-d03", order)


def test_an_abdomen_examined_as_a_whole_includes_the_rectal_examination() -> None:
    assert "Rectal" in reply("osce-d03", "abdominal exam")


@pytest.mark.parametrize(
    ("case", "order", "told", "added"),
    [
        ("osce-b08", "strength, mental status", "briefly answers unseen voices", "No hallucinations"),
        ("osce-d10", "capillary refill", "Perfusion: Capillary refill 2 seconds", "Pulses:"),
        ("osce-d07", "lips and tongue", "tongue red with prominent papillae", "Neurological"),
        ("osce-d15", "Attention and orientation", "attention fluctuates", "Repeat Neurological"),
    ],
)
def test_what_the_chart_says_of_an_examination_is_told_and_not_a_normal_one(
    case: str, order: str, told: str, added: str
) -> None:
    assert told in reply(case, order)
    assert added not in reply(case, order)


@pytest.mark.parametrize(
    ("case", "order", "told"),
    [
        ("osce-a12", "Thyroid exam, cardiac rhythm", "completely regular rhythm"),
        ("osce-d10", "nasal flaring", "mild nasal flaring"),
        ("osce-c15", "Hand exam, tophi", "no tophi at the ears"),
        ("osce-c08", "GCS, speech", "cannot repeat"),
        ("osce-a21", "Cardiac exam with Valsalva and squatting", "softer on squatting"),
    ],
)
def test_a_sign_is_answered_by_the_finding_that_speaks_of_it(case: str, order: str, told: str) -> None:
    answered = reply(case, order)
    assert told in answered
    assert "not available" not in answered
    assert "No result" not in answered


@pytest.mark.parametrize(
    ("case", "order", "other"),
    [
        ("osce-a03", "Chest wall exam", "Auscultation"),
        ("osce-d11", "Otoscopy of both ears", "Nose"),
        ("osce-c15", "Hand exam: swelling, MCP squeeze test", "Ankles"),
    ],
)
def test_a_small_place_is_answered_by_its_own_findings(case: str, order: str, other: str) -> None:
    assert other not in reply(case, order)
    assert "not available" not in reply(case, order)


@pytest.mark.parametrize("case", ["osce-t13", "osce-d03"])
def test_every_part_of_an_examination_can_be_ordered(case: str) -> None:
    """Two parts may be within each other, as the lids and their fatigue test are."""
    for part in vocabulary().parts:
        assert reply(case, f"{part} examination")


@pytest.mark.parametrize(
    ("case", "order", "told"),
    [
        ("osce-c10", "Deep tendon reflexes in arms and legs, plantar responses", {"Neurological Examination"}),
        ("osce-c10", "Motor power in hip flexors, knee extensors", {"Neurological Examination"}),
        ("osce-t10", "Lhermitte's sign and neck range of motion", {"Musculoskeletal Examination"}),
        ("osce-b13", "Hernia exam (inguinal and femoral)", {"Abdominal Examination"}),
        ("osce-c06", "Lower limb reflexes and sensation by dermatome (L4, L5, S1)", {"Neurological Examination"}),
        ("osce-b08", "Abdomen: tenderness, rigidity, bowel sounds", {"Abdominal Examination"}),
        ("osce-a07", "Sacral and ankle oedema", {"Cardiovascular Examination"}),
        ("osce-a03", "Calf tenderness, Homans sign", {"Cardiovascular Examination"}),
        ("osce-b10", "Perianal inspection for skin tags, fissures", {"Abdominal Examination"}),
        ("osce-d04", "Throat: tonsillar exudate, palatal petechiae", {"ENT Examination"}),
        ("osce-b05", "Pelvic exam to exclude adnexal pathology", {"Pelvic Examination"}),
    ],
)
def test_an_examination_is_not_answered_by_that_of_another_organ(case: str, order: str, told: set[str]) -> None:
    assert set(re.findall(r"\w+ Examination", reply(case, order))) == told
    assert "pending" not in reply(case, order)


@pytest.mark.parametrize(
    ("case", "order", "told"),
    [
        ("osce-t10", "Upper limb neuro exam: tone, power, reflexes", "Arms: Small hand muscles thin"),
        ("osce-d19", "Urethral discharge, penile lesions", "Penis: No discharge"),
        ("osce-b15", "Breath odor", "fruity smell"),
        ("osce-c02", "Temporal artery tenderness", "Temporal Arteries: Soft"),
        ("osce-c06", "Pedal pulses", "Foot Pulses: "),
        ("osce-d15", "Brudzinski's sign", "Kernig and Brudzinski signs absent"),
        ("osce-c15", "Tender and swollen joint count", "Hands: Boggy tender swelling"),
        ("osce-a22", "Subcutaneous emphysema", "no crackling"),
        ("osce-t02", "Tongue", "Tongue: No bite mark"),
    ],
)
def test_a_sign_is_answered_by_the_place_where_it_is(case: str, order: str, told: str) -> None:
    assert told in reply(case, order)


def test_a_word_that_we_do_not_know_next_to_findings_is_passed_over() -> None:
    assert reply("osce-d15", "Neck stiffness, grumblosis").count(":") == reply("osce-d15", "Neck stiffness").count(":")
    assert "'grumblosis score'" in reply("osce-d15", "Neck stiffness, grumblosis score")


def test_vital_signs_with_a_posture_are_all_vital_signs_and_the_posture() -> None:
    text = reply("osce-a04", "Vitals including pulse ox and orthostatics")
    assert "Temperature: 38.2" in text
    assert "Blood Pressure Standing" in text


@pytest.mark.parametrize(
    ("order", "contradiction"),
    [
        ("Lips, tongue and oropharynx", "Throat: Normal"),
        ("Hands and feet for erythema, edema", "Hands: No swelling"),
    ],
)
def test_no_normal_finding_contradicts_what_another_examination_found(order: str, contradiction: str) -> None:
    assert contradiction not in reply("osce-d07", order)
