"""What question, chart and reply decide word for word, without our matcher."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import case_of, osce

from agentclinic.audit.literal import elsewhere, falsely_denied, withheld
from agentclinic.audit.model import AuditedReply, Role
from agentclinic.results.turn import Disclosure, Provenance

CASE = case_of(
    osce(
        patient={
            "Demographics": "58-year-old man",
            "History": "The patient reports severe chest pain for two hours. His brother has a cough.",
            "Symptoms": {
                "Primary_Symptom": "Severe chest pain",
                "Secondary_Symptoms": ["Vomiting twice", "Headache, no neck stiffness", "Palpitations as a child"],
            },
            "Review_of_Systems": "Denies fever.",
        },
        exam={"Skin_Examination": {"Findings": "Clammy", "Nails": "Splinter hemorrhages"}},
        tests={
            "Troponin": "18 ng/L (ref <14)",
            "Hemoglobin": "14.1 g/dL",
            "Chest_X-ray": {"Findings": "Clear lungs"},
            "Bedside_Ultrasound": {"Findings": "Hyperdynamic heart, no pericardial fluid"},
            "Urinalysis": {"Glucose": "Negative", "Leukocyte_Esterase": "Negative"},
        },
        truth="Myocardial infarction",
    )
)
NOT_NOTICED = "No, I have not noticed that."
NEGATIVE = Disclosure("x", Provenance.DEFAULT_NEGATIVE)


def reply(role: Role, asked: str, text: str, *disclosures: Disclosure, **more: Any) -> AuditedReply:
    return AuditedReply(role, asked, text, disclosures=disclosures, **more)


def chart(*paths: str) -> Disclosure:
    return Disclosure("x", Provenance.CHART, paths)


# --- false denials ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    ["Have you had any chest pain?", "Any fever, chest pain or rash?", "So, do you have vomiting?", "Any headaches?"],
)
@pytest.mark.parametrize("disclosures", [(), (NEGATIVE,)])
def test_a_charted_complaint_that_is_denied_is_contradicted(asked: str, disclosures: tuple[Disclosure, ...]) -> None:
    found = falsely_denied(reply("patient", asked, NOT_NOTICED, *disclosures), CASE)
    assert found
    assert "but the chart has it" in found[0].why


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Any fever?", NOT_NOTICED),
        ("Any fever?", "No fever."),
        ("Any fever or chest pain?", "No, I have not had fever."),
    ],
)
def test_a_denial_that_the_chart_confirms_is_clean(asked: str, text: str) -> None:
    assert falsely_denied(reply("patient", asked, text), CASE) == []


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Any chest pain?", "Yes, severe chest pain."),
        ("Any chest pain?", "I am not sure."),
        ("Any chest pain?", "No, but it does press."),
        ("Does the chest pain move?", NOT_NOTICED),
        ("When you have chest pain, do you sweat?", NOT_NOTICED),
        ("Any crushing chest pain?", NOT_NOTICED),
        ("Any tightness in your chest?", NOT_NOTICED),
        ("Do you have a cough?", NOT_NOTICED),
        ("Any neck stiffness?", NOT_NOTICED),
        ("Any palpitations?", NOT_NOTICED),
        ("Has anyone in your family had chest pain?", NOT_NOTICED),
        ("Where does it hurt?", NOT_NOTICED),
    ],
)
def test_what_the_charts_words_do_not_decide_is_not_judged(asked: str, text: str) -> None:
    assert falsely_denied(reply("patient", asked, text), CASE) is None


def test_the_rest_of_a_question_is_denied_only_if_the_record_says_so() -> None:
    fever = chart("Patient_Actor/Review_of_Systems")
    rest = Disclosure("Chest pain", Provenance.DEFAULT_NEGATIVE)
    asked, text = "Any vomiting or chest pain?", "Vomiting twice. I have not noticed the rest."
    vomiting = chart("Patient_Actor/Symptoms/Secondary_Symptoms[0]")
    assert [f.words for f in falsely_denied(reply("patient", asked, text, vomiting, rest), CASE) or ()] == [
        "The patient reports severe chest pain for two hours."
    ]
    assert falsely_denied(reply("patient", asked, text, vomiting), CASE) is None
    assert falsely_denied(reply("patient", "Any fever?", "No fever.", fever), CASE) == [], "the chart itself denies it"


# --- withheld results ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "text", "disclosures"),
    [
        ("Troponin", "RESULTS: Troponin not available.", (Disclosure("Troponin", Provenance.UNAVAILABLE),)),
        ("Troponin", "RESULTS: No result available for 'Troponin'.", ()),
        ("Please order a troponin level, stat", "RESULTS: Not available.", ()),
        ("Urinalysis and chest X-ray", "RESULTS: Urinalysis: Glucose: Negative; Leukocyte Esterase: Negative.",
         (chart("Test_Results/Urinalysis/Glucose", "Test_Results/Urinalysis/Leukocyte_Esterase"),)),
        ("Skin examination", "RESULTS: Skin Examination: Findings: Clammy.",
         (chart("Physical_Examination_Findings/Skin_Examination/Findings"),)),
    ],
)  # fmt: skip
def test_a_result_ordered_by_its_heading_and_not_reported_is_omitted(
    asked: str, text: str, disclosures: tuple[Disclosure, ...]
) -> None:
    assert withheld(reply("measurement", asked, text, *disclosures), CASE)


TROPONIN = AuditedReply("measurement", "Troponin", "RESULTS: Troponin: 18 ng/L (ref <14)")


@pytest.mark.parametrize(
    ("asked", "text", "earlier"),
    [
        ("Troponin", "RESULTS: Troponin: 18 ng/L (ref <14).", ()),
        ("Troponin", "RESULTS: It is 18.", ()),
        ("Chest X-ray", "RESULTS: Chest X-ray: normal.", ()),
        ("Troponin", "RESULTS: Troponin: taken, result pending.", ()),
        ("Troponin", "RESULTS: as before.", (TROPONIN,)),
    ],
)
def test_a_result_that_is_told_in_any_words_pending_or_reported_before_is_not_omitted(
    asked: str, text: str, earlier: tuple[AuditedReply, ...]
) -> None:
    assert withheld(reply("measurement", asked, text, earlier=earlier), CASE) == []


@pytest.mark.parametrize(
    "asked",
    ["Hemoglobin A1c", "Glucose", "Lumbar X-ray", "Troponin if the ECG is normal", "Blood tests", "Cardiac enzymes"],
)
def test_an_order_in_other_words_is_not_judged(asked: str) -> None:
    assert withheld(reply("measurement", asked, "RESULTS: not available."), CASE) is None


# --- another place or specimen ---------------------------------------------------------------------------------------

ULTRASOUND = chart("Test_Results/Bedside_Ultrasound/Findings")
URINE = chart("Test_Results/Urinalysis/Glucose")


@pytest.mark.parametrize(
    ("asked", "told", "wrong"),
    [
        ("Scrotal ultrasound", ULTRASOUND, True),
        ("Carotid ultrasound", ULTRASOUND, True),
        ("Blood glucose", URINE, True),
        ("Cardiac ultrasound", ULTRASOUND, False),
        ("Chest ultrasound", ULTRASOUND, False),
        ("Urine glucose", URINE, False),
        ("Ultrasound", ULTRASOUND, None),
        ("Scrotal and cardiac ultrasound", ULTRASOUND, None),
        ("Scrotal ultrasound", Disclosure("x", Provenance.UNAVAILABLE), None),
        ("Heart exam", chart("Physical_Examination_Findings/Skin_Examination/Nails"), None),
    ],
)
def test_a_result_of_another_place_or_specimen_is_unasked(asked: str, told: Disclosure, wrong: bool | None) -> None:
    found = elsewhere(reply("measurement", asked, "RESULTS: ...", told), CASE)
    assert (None if found is None else bool(found)) is wrong
