"""What code finds in a single reply, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import ask, case_of, order, osce

from agentclinic.audit.exact import exact_audit, exact_findings
from agentclinic.audit.model import AuditedReply, Kind, Role, suggestions
from agentclinic.cases.completion import completed
from agentclinic.cases.registry import load_cases
from agentclinic.results.turn import Disclosure, Provenance

CASE = case_of(
    osce(
        patient={
            "Demographics": "58-year-old man",
            "History": "The patient reports severe pain in the left knee for three weeks. It is worse on stairs.",
            "Symptoms": {"Primary_Symptom": "Left knee pain", "Secondary_Symptoms": ["Night sweats", "No cough"]},
            "Past_Medical_History": "Gout. Appendectomy at 20.",
            "Medications": ["Allopurinol 100 mg once daily", "Ramipril 5 mg once daily"],
            "Family_History": "Father died of a stroke.",
            "Social_History": "Does not smoke. Works as a tailor.",
            "Review_of_Systems": "Denies fever, chills.",
        },
        exam={"Vital_Signs": {"Temperature": "38.3°C", "Heart_Rate": "92 bpm"}},
        tests={
            "Complete_Blood_Count": {"WBC": "14,200 /µL", "Hemoglobin": "14.1 g/dL"},
            "Uric_Acid": "9.8 mg/dL (ref <7.0)",
            "Knee_X-ray": {"Findings": "Soft tissue swelling of the knee, no fracture"},
        },
        truth="Septic arthritis",
        objective="Assess a man with a painful knee.",
    )
)


def kinds(role: Role, asked: str, text: str, **more: Any) -> set[str]:
    return {finding.kind.value for finding in exact_findings(AuditedReply(role, asked, text, **more), CASE)}


@pytest.mark.parametrize(
    "text",
    [
        "It has hurt for 8 days.",
        "It has hurt for eleven days.",
        "I have lost 14 pounds.",
        "The pain is 8 out of 10.",
        "It started on day 1, about 5 months ago.",
    ],
)
def test_a_number_that_nothing_supports_is_invented(text: str) -> None:
    assert "invented_number" in kinds("patient", "Tell me about the pain.", text)


@pytest.mark.parametrize(
    "text",
    [
        "It has hurt for three weeks.",
        "It has hurt for 3 weeks, so about 21 days.",
        "It began about a month ago.",
        "I take 5 mg of ramipril, and I am 58.",
        "It hurts 24/7, and I am not 100% sure why.",
        "One of the two knees hurts, I told a friend or two.",
        "Both knees are 2nd to none, and I take vitamin B12.",
        "I am in my 50s.",
        "Yes, all four of those, doctor.",
    ],
)
def test_numbers_of_the_chart_idioms_and_names_are_left_alone(text: str) -> None:
    assert "invented_number" not in kinds("patient", "Tell me about the pain.", text)


def test_numbers_of_the_question_and_of_the_other_role_may_be_repeated() -> None:
    assert kinds("patient", "Have you had it for 9 days?", "No, not for 9 days.") == set()
    lab = AuditedReply("measurement", "Uric Acid", "RESULTS: Uric Acid: 9.8 mg/dL")
    assert kinds("patient", "What did they say?", "They told me 9.8.", earlier=(lab,)) == set()
    assert kinds("patient", "What did they say?", "They told me 9.8.") == {"invented_number"}


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("RESULTS: Temperature: 38.3°C (100.9°F)", False),
        ("RESULTS: WBC: 14.2 x10^3/µL", True),  # the 3 of 10^3 is no number of this chart
        ("RESULTS: WBC: 14.2 thousand", False),
        ("RESULTS: Uric Acid: 4.1 mg/dL", True),
    ],
)
def test_a_laboratory_may_convert_a_value_but_not_change_it(text: str, invented: bool) -> None:
    order = "WBC, uric acid and vital signs"
    assert ("invented_number" in kinds("measurement", order, text)) is invented


def test_a_disease_that_nothing_supports_is_named() -> None:
    assert kinds("patient", "What is wrong?", "I was told that I have lupus.") == {"disease_named"}
    said = "RESULTS: Suggestive of osteosarcoma."
    assert kinds("measurement", "Knee X-ray", said) == {"disease_named", "omitted"}, "the charted result is missing"


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Any illnesses?", "I have gout."),
        ("Any illnesses in the family?", "My father had a stroke."),
        ("Do you have lupus?", "Yes, lupus, I think."),
        ("Any illnesses?", "I do not have lupus."),
        ("Any headaches?", "I get migraines."),
    ],
)
def test_diseases_of_the_chart_or_question_denials_and_complaints_are_left_alone(asked: str, text: str) -> None:
    assert kinds("patient", asked, text) == set()


def test_the_diagnosis_is_revealed_unless_the_roles_own_chart_names_it() -> None:
    assert kinds("patient", "What is wrong?", "They said septic arthritis.") == {"diagnosis_revealed"}
    row = osce(tests={"Aspirate": "Consistent with septic arthritis"}, truth="Septic arthritis")
    case = case_of(row)
    said = "RESULTS: Aspirate: Consistent with septic arthritis"
    assert exact_findings(AuditedReply("measurement", "Aspirate", said), case) == []
    told = exact_findings(AuditedReply("patient", "What is wrong?", "I have septic arthritis."), case)
    assert [finding.kind for finding in told] == [Kind.DIAGNOSIS_REVEALED]


def chosen(*paths: str) -> tuple[Disclosure, ...]:
    return (Disclosure("x", Provenance.CHART, paths),)


def test_a_chosen_fact_of_a_section_that_no_question_asked_for_is_unasked() -> None:
    drug = "Patient_Actor/Medications[1]"
    reply = "No fever, and I take ramipril."
    assert kinds("patient", "Any fever?", reply, disclosures=chosen(drug)) == {"unasked"}
    assert kinds("patient", "Any fever? Do you take any medicines?", reply, disclosures=chosen(drug)) == set()
    before = AuditedReply("patient", "What medications do you take?", "Some.")
    assert kinds("patient", "Any fever?", reply, disclosures=chosen(drug), earlier=(before,)) == set()
    assert kinds("patient", "Tell me about yourself.", reply, disclosures=chosen(drug)) == set()


def test_in_free_text_only_the_charts_own_words_show_what_was_told() -> None:
    assert kinds("patient", "Any fever?", "No fever. Ramipril 5 mg once daily, by the way.") == {"unasked"}
    assert kinds("patient", "Any fever?", "No fever. I am on something for my pressure.") == set()
    recited = "RESULTS: Uric Acid: 9.8 mg/dL (ref <7.0). Knee X-ray: Soft tissue swelling of the knee, no fracture"
    assert kinds("measurement", "Uric Acid", recited) == {"unasked"}
    assert kinds("measurement", "Uric Acid and knee X-ray", recited) == set()


# --- builtin replies, and what provenance guarantees ---------------------------------------------------------------


def test_what_our_matcher_chose_is_not_audited_by_our_matcher() -> None:
    for case in load_cases("OpenOSCE")[:4]:
        said: tuple[AuditedReply, ...] = ()
        for role, asked in (("patient", "What medications do you take?"), ("measurement", "Vital signs")):
            reply = ask(case, asked) if role == "patient" else order(case, asked)
            who: Role = "patient" if role == "patient" else "measurement"
            audited = AuditedReply(who, asked, reply.text, said, reply.disclosures)
            assert exact_findings(audited, case) == []
            assert audited.chosen <= suggestions(audited, case), "what needs pressing is kept back"
            assert Kind.UNASKED not in exact_audit(audited, case)
            said += (audited,)


def test_facts_beyond_the_matchers_suggestions_and_free_text_are_audited() -> None:
    drug = "Patient_Actor/Medications[1]"

    def audited(**more: Any) -> bool:
        return Kind.UNASKED in exact_audit(AuditedReply("patient", "Any fever?", "Ramipril.", **more), CASE)

    assert audited()
    assert audited(disclosures=chosen(drug), suggested=())
    assert not audited(disclosures=chosen(drug), suggested=(drug,))
    assert not audited(suggested=()), "the matcher was asked and chose nothing"


def test_a_completed_normal_result_is_no_invention() -> None:
    """`missing_test: completed`: the numbers come from the table of normal results, not from the chart."""
    fact = next(fact for fact in completed(CASE) if any(char.isdigit() for char in fact.text))
    added = (Disclosure("x", Provenance.DEFAULT_NORMAL, (fact.path,)),)
    said = f"RESULTS: {', '.join(fact.heads)}: {fact.text}, 77.7."
    told = exact_findings(AuditedReply("measurement", "x", said, (), added, missing_test="completed"), CASE)
    assert [finding.why.split(":")[0] for finding in told if finding.kind is Kind.INVENTED_NUMBER] == ["77.7"]


def test_a_report_that_code_writes_cannot_invent_a_value() -> None:
    """A laboratory only chooses items; whatever it chooses, the words come from the chart."""
    for asked in ("Uric Acid", "Complete Blood Count", "Knee X-ray", "Vital signs", "Ferritin"):
        reply = order(CASE, asked)
        found = exact_findings(AuditedReply("measurement", asked, reply.text, disclosures=reply.disclosures), CASE)
        assert found == []
