"""The audit of single replies: what it finds, what it accepts, and what each finding is based on."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import ask, case_of, order, osce

from agentclinic.audit.chart import Chart
from agentclinic.audit.model import AuditedReply, Finding, Kind, Role
from agentclinic.audit.reply import audit_reply
from agentclinic.cases.registry import load_cases

CASE = case_of(
    osce(
        patient={
            "Demographics": "58-year-old man",
            "History": "The patient reports severe pain in the left knee for three weeks. It is worse when "
            "climbing stairs.",
            "Symptoms": {
                "Primary_Symptom": "Left knee pain",
                "Secondary_Symptoms": ["Swelling of the left knee", "Night sweats", "No cough"],
            },
            "Past_Medical_History": "Gout. Appendectomy at 20.",
            "Medications": ["Allopurinol 100 mg once daily", "Ramipril 5 mg once daily"],
            "Family_History": "Father died of a stroke.",
            "Social_History": "Does not smoke. Works as a tailor.",
            "Review_of_Systems": "Denies fever, chills.",
        },
        exam={
            "Vital_Signs": {"Temperature": "36.8°C", "Heart_Rate": "72 bpm"},
            "Knee_Examination": {"Inspection": "Swollen left knee, no redness", "Palpation": "Effusion, tender"},
        },
        tests={
            "Complete_Blood_Count": {"WBC": "7.2 x10^9/L", "Hemoglobin": "14.1 g/dL", "Platelets": "210 x10^9/L"},
            "Uric_Acid": "9.8 mg/dL (ref <7.0)",
            "Knee_X-ray": {"Findings": "Soft tissue swelling, no fracture"},
        },
        truth="Septic arthritis",
        objective="Assess a man with a painful knee.",
    )
)
CHART = Chart(CASE)


def found(role: Role, asked: str, reply: str, **settings: Any) -> list[Finding]:
    return audit_reply(AuditedReply(role, asked, reply, **settings), CHART)


def kinds(role: Role, asked: str, reply: str, **settings: Any) -> set[Kind]:
    return {finding.kind for finding in found(role, asked, reply, **settings)}


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("What brings you in today?", "My left knee has been really painful for three weeks, doctor."),
        ("Any fever or chills?", "No, no fever and no chills."),
        ("Do you have night sweats?", "Yes, I do get night sweats."),
        ("Do you have a headache?", "No, nothing like that."),
        ("What medications do you take?", "I take allopurinol and ramipril, one of each daily."),
        ("How long has the pain been there?", "About 3 weeks now."),
        ("Do you smoke?", "No, I don't smoke."),
        ("Any trouble with your hearing?", "I'm not sure, sorry."),
        ("What makes it worse?", "It gets worse when I climb stairs."),
    ],
)
def test_a_faithful_patient_has_no_findings(asked: str, reply: str) -> None:
    assert found("patient", asked, reply) == []


@pytest.mark.parametrize(
    ("asked", "reply", "kind", "path", "term"),
    [
        ("Any fever?", "Yes, I have had a fever.", Kind.CONTRADICTED, "Patient_Actor/Review_of_Systems", "ever"),
        ("Do you have night sweats?", "No, no night sweats.", Kind.CONTRADICTED, "Secondary_Symptoms[1]", "sweats"),
        ("When did it start?", "It began nine months ago.", Kind.CONTRADICTED, "Patient_Actor/History", "nine months"),
        (
            "What medications do you take?",
            "I take 300 mg of allopurinol, and ramipril.",
            Kind.CONTRADICTED,
            "Medications[0]",
            "300 mg",
        ),
        ("Where is the pain?", "In my right knee.", Kind.CONTRADICTED, "Patient_Actor", "right knee"),
        ("Do you smoke?", "Yes, I smoke a lot.", Kind.CONTRADICTED, "Patient_Actor/Social_History", "smok"),
        ("Any fever?", "No, but I have been vomiting.", Kind.INVENTED_MATERIAL, None, "omiting"),
        (
            "What medications do you take?",
            "Allopurinol, ramipril and warfarin.",
            Kind.INVENTED_MATERIAL,
            None,
            "warfarin",
        ),
        ("Any other illnesses?", "Gout, an appendectomy, and epilepsy.", Kind.INVENTED_MATERIAL, None, "epilepsy"),
        ("Any other symptoms?", "I have lost 20 pounds.", Kind.INVENTED_MATERIAL, None, "20 pounds"),
        ("What makes it worse?", "It gets worse when I eat.", Kind.INVENTED_MATERIAL, None, "meals"),
        ("What is the pain like?", "It is a sharp pain in my left knee.", Kind.INVENTED_MATERIAL, None, "sharp"),
        (
            "Any fever?",
            "No. My neighbour drove me over in his old tractor.",
            Kind.INVENTED_BENIGN,
            None,
            "tracto",
        ),
        ("What medications do you take?", "I take allopurinol.", Kind.OMITTED, "Patient_Actor/Medications[1]", "drugs"),
        ("Do you have night sweats?", "I am not sure.", Kind.OMITTED, "Secondary_Symptoms[1]", "sweats"),
        ("Any fever?", "No fever. My father died of a stroke.", Kind.OVERSHARED, "Patient_Actor/Family_History", None),
        ("Any fever?", "No. They told me it is septic arthritis.", Kind.REVEALED, None, "eptic arthritis"),
    ],
)
def test_a_patients_fault_is_found_with_its_words_and_its_place_in_the_chart(
    asked: str, reply: str, kind: Kind, path: str | None, term: str | None
) -> None:
    of_kind = [finding for finding in found("patient", asked, reply) if finding.kind is kind]
    assert of_kind, f"not found in {found('patient', asked, reply)}"
    assert [f for f in of_kind if (path or "") in (f.path or "") and (term or "") in (f.term or "")], of_kind
    assert all(f.words.rstrip(".") in reply for f in of_kind)


def test_a_reply_with_one_fault_has_findings_of_one_kind_only() -> None:
    assert kinds("patient", "Any fever?", "No, but I have been vomiting.") == {Kind.INVENTED_MATERIAL}
    assert kinds("patient", "Any fever?", "No. They told me it is septic arthritis.") == {Kind.REVEALED}


def test_denying_an_uncharted_symptom_is_invented_only_if_silent_symptom_is_unknown() -> None:
    asked, reply = "Do you have a headache?", "No, I have no headache."
    assert kinds("patient", asked, reply, silent_symptom="deny") == set()
    assert kinds("patient", asked, reply, silent_symptom="unknown") == {Kind.INVENTED_MATERIAL}


def test_what_was_told_before_is_neither_omitted_nor_overshared() -> None:
    told = ("My father died of a stroke.",)
    reply = "No fever. As I said, my father died of a stroke."
    assert Kind.OVERSHARED in kinds("patient", "Any fever?", reply)
    assert Kind.OVERSHARED not in kinds("patient", "Any fever?", reply, told_before=told)
    again = "I told you already."
    asked = "Does anything run in your family?"
    assert Kind.OMITTED in kinds("patient", asked, again)
    assert Kind.OMITTED not in kinds("patient", asked, again, told_before=told)


def test_the_diagnosis_as_past_history_is_not_revealed() -> None:
    row = osce(
        patient={
            "Demographics": "30-year-old woman",
            "History": "The patient has had wheezing for two days.",
            "Past_Medical_History": "Asthma since childhood.",
        },
        truth="Asthma",
    )
    chart = Chart(case_of(row))
    said = AuditedReply("patient", "Any past medical history?", "I have had asthma since childhood.")
    assert Kind.REVEALED not in {finding.kind for finding in audit_reply(said, chart)}


def test_a_synonym_that_the_judge_accepts_reveals_the_diagnosis_but_a_denial_does_not() -> None:
    row = osce(truth="Myocardial infarction", objective="Assess a man with chest pain.")
    chart = Chart(case_of(row))
    for reply, revealed in (
        ("The other doctor said I had a heart attack.", True),
        ("Nobody ever said it was a heart attack.", False),
        ("I have not had a heart attack.", False),
    ):
        found_kinds = {f.kind for f in audit_reply(AuditedReply("patient", "What did they say?", reply), chart)}
        assert (Kind.REVEALED in found_kinds) is revealed, reply


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Complete Blood Count", "RESULTS: WBC: 7.2 x10^9/L, Hemoglobin: 14.1 g/dL, Platelets: 210 x10^9/L"),
        ("CBC", "RESULTS: Complete Blood Count: within normal limits"),
        ("Uric Acid", "RESULTS: Uric Acid: 9.8 mg/dL"),
        ("Knee X-ray", "RESULTS: Soft tissue swelling, no fracture"),
        ("Echocardiogram", "RESULTS: Echocardiogram not available."),
    ],
)
def test_a_faithful_laboratory_has_no_findings(asked: str, reply: str) -> None:
    assert found("measurement", asked, reply) == []


@pytest.mark.parametrize(
    ("asked", "reply", "kind", "path"),
    [
        ("Uric Acid", "RESULTS: Uric Acid: 4.1 mg/dL", Kind.CONTRADICTED, "Test_Results/Uric_Acid"),
        ("Uric Acid", "RESULTS: NORMAL READINGS", Kind.CONTRADICTED, "Test_Results/Uric_Acid"),
        ("Knee X-ray", "RESULTS: Knee X-ray: displaced fracture", Kind.CONTRADICTED, "Test_Results/Knee_X-ray"),
        ("Knee examination", "RESULTS: Inspection: Swollen right knee", Kind.CONTRADICTED, "Patient_Actor/History"),
        ("Knee examination", "RESULTS: Palpation: No effusion", Kind.CONTRADICTED, "Knee_Examination/Palpation"),
        ("Sodium", "RESULTS: Sodium: 140 mmol/L", Kind.INVENTED_BENIGN, None),
        ("Ferritin", "RESULTS: Ferritin: 4 ng/mL (low)", Kind.INVENTED_MATERIAL, None),
        ("Echocardiogram", "RESULTS: Echocardiogram: large pericardial effusion", Kind.INVENTED_MATERIAL, None),
        ("Echocardiogram", "RESULTS: NORMAL READINGS", Kind.INVENTED_BENIGN, None),
        ("Complete Blood Count", "RESULTS: WBC: 7.2 x10^9/L", Kind.OMITTED, "Complete_Blood_Count"),
        ("Uric Acid", "RESULTS: not available", Kind.OMITTED, "Test_Results/Uric_Acid"),
        (
            "Uric Acid",
            "RESULTS: Uric Acid: 9.8 mg/dL; Hemoglobin: 14.1 g/dL",
            Kind.OVERSHARED,
            "Test_Results/Complete_Blood_Count/Hemoglobin",
        ),
        ("Knee X-ray", "RESULTS: Soft tissue swelling. Consistent with septic arthritis.", Kind.REVEALED, None),
    ],
)
def test_a_laboratorys_fault_is_found(asked: str, reply: str, kind: Kind, path: str | None) -> None:
    of_kind = [finding for finding in found("measurement", asked, reply) if finding.kind is kind]
    assert of_kind, f"not found in {found('measurement', asked, reply)}"
    assert path is None or path in (of_kind[0].path or "")


def test_normal_for_an_uncharted_test_is_accepted_if_missing_test_is_normal() -> None:
    assert kinds("measurement", "Echocardiogram", "RESULTS: NORMAL READINGS", missing_test="normal") == set()


def test_a_diagnosis_named_by_a_charted_result_is_found_with_its_path() -> None:
    row = osce(tests={"Skin_Biopsy": "Features of leprosy."}, truth="Leprosy")
    said = AuditedReply("measurement", "Skin biopsy", "RESULTS: Features of leprosy.")
    (finding,) = audit_reply(said, Chart(case_of(row)))
    assert (finding.kind, finding.path) == (Kind.REVEALED, "Test_Results/Skin_Biopsy")
    assert "as the chart does" in finding.why


def test_builtin_patient_and_laboratory_invent_and_contradict_nothing() -> None:
    """They copy the chart, so any finding would be a bug in them or in the auditor."""
    questions = (
        "What brings you in today?",
        "Any fever, cough or shortness of breath?",
        "When did this start?",
        "What medications do you take?",
        "Do you smoke or drink alcohol?",
        "Does anything run in your family?",
    )
    departed = []
    for case in [c for c in load_cases("OpenOSCE") if not c.annotations.get("lockbox")][::8]:
        chart = Chart(case)
        for question in questions:
            departed += audit_reply(AuditedReply("patient", question, ask(case, question).text), chart)
        for request in ("Complete blood count", "Physical examination", "Chest X-ray", "Mammography"):
            departed += audit_reply(AuditedReply("measurement", request, order(case, request).text), chart)
    assert [f for f in departed if f.kind in (Kind.CONTRADICTED, Kind.INVENTED_MATERIAL, Kind.INVENTED_BENIGN)] == []
