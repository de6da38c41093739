"""The builtin patient answers questions from the script, in a person's words, and invents nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from helpers import ask, case_of, needs_public_data, nejm, osce, public_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact, Section
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.answers import without_disease
from agentclinic.clinic.first_person import own_voice
from agentclinic.results.turn import Provenance
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import STOP_WORDS, words

QUESTIONS = [
    "What brings you in today?",
    "Can you describe your symptoms in your own words?",
    "When did it start, and is it getting worse?",
    "How long has this been going on?",
    "Have you had a fever or chills?",
    "Do you have any pain?",
    "Any chest pain or shortness of breath?",
    "Have you had nausea, vomiting or diarrhea?",
    "Have you lost weight?",
    "Have you noticed a rash or any swelling?",
    "Do you have headaches or changes in vision?",
    "Any weakness, numbness or tingling?",
    "Do you have any past medical problems?",
    "Have you ever had surgery?",
    "What medications are you taking?",
    "Are you allergic to anything?",
    "Does anyone in your family have a similar problem?",
    "Do you smoke, drink alcohol or use drugs?",
    "What do you do for a living?",
    "Have you traveled recently?",
    "Are you sexually active?",
    "How old are you?",
    "What is your blood pressure?",
    "What did the biopsy show? Any test results?",
    "Is there blood in your urine or stool?",
    "Does anything make it better or worse?",
    "Do you think you have pulmonary embolism, gout or lupus?",
]
FIXED = (
    "No, I have not noticed that.",
    "I have not noticed the rest.",
    "I am not sure.",
    "I am not sure what you mean. Could you ask in another way?",
    "You would have to examine or test that yourself, doctor.",
    "I don't know about my family history.",
    "No.",
)
# Words a voice may add: who speaks, about whom, and what stands for a withheld name.
VOICE = STOP_WORDS | {"daughter", "son", "child", "condition", "myself", "themself", "dont", "him"}


def stem(word: str) -> str:
    """A word without the endings that conjugation changes: denies, deny; goes, go."""
    return re.sub(r"(?:e?s|y|ie)$", "", word)


def invented(case: Case, text: str) -> set[str]:
    for phrase in FIXED:
        text = text.replace(phrase, "")
    known = {stem(word) for fact in case.patient_facts for word in words(" ".join((*fact.heads, fact.text)))}
    return {word for word in words(text) if word not in VOICE and stem(word) not in known}


def every_case() -> list[Case]:
    return [*public_cases("MedQA_Ext"), *public_cases("NEJM_Ext"), *load_cases("OpenOSCE_Demo")]


@pytest.mark.slow
@needs_public_data
def test_no_patient_invents_anything_or_reveals_what_only_an_examination_shows() -> None:
    for case in every_case():
        known = {fact.path: fact for fact in case.patient_facts}
        for question in QUESTIONS:
            reply = ask(case, question)
            where = (case.dataset, case.scenario_id, question)
            assert reply.text.strip(), where
            assert not invented(case, reply.text), (*where, invented(case, reply.text), reply.text)
            for disclosure in reply.disclosures:
                assert all(path in known for path in disclosure.paths), where
                assert bool(disclosure.paths) == (disclosure.provenance is Provenance.CHART), where


@needs_public_data
@pytest.mark.slow
def test_a_reply_does_not_depend_on_the_true_diagnosis() -> None:
    for case in public_cases("MedQA_Ext")[::7]:
        other = replace(case, diagnosis="Gout", id="x")
        for question in QUESTIONS:
            assert ask(case, question) == ask(other, question)


def patient(**sections: Any) -> Case:
    sections.setdefault("Demographics", "40-year-old woman")
    return case_of(osce(patient=sections, truth=sections.pop("truth", "Frobisher fever")))


def said(text: str, section: str = "History", question: str = "What brings you in?", **more: Any) -> str:
    return ask(patient(**{section: text}, **more), question).text


@pytest.mark.parametrize("name", ["pulmonary embolism", "Crohn's disease", "GOUT", "lupus", "COPD", "PE"])
@pytest.mark.parametrize("truth", ["Pulmonary embolism", "Gout", "Frobisher fever"])
def test_the_patient_names_no_disease_whatever_the_true_diagnosis(name: str, truth: str) -> None:
    reply = said(f"The patient fears that {name} made her tired.", truth=truth)
    assert reply == "I fear that a condition made me tired."


@pytest.mark.parametrize(
    ("section", "question"),
    [
        ("Past_Medical_History", "Any past medical history?"),
        ("Medications", "What medications do you take?"),
        ("Family_History", "What runs in your family?"),
    ],
)
def test_past_drug_and_family_history_may_name_diseases(section: str, question: str) -> None:
    assert "gout" in said("Something against gout", section, question)


def test_every_name_of_every_disease_is_withheld() -> None:
    names = [name for disease in knowledge().diseases.values() for name in (disease.name, *disease.synonyms)]
    facts = [Fact("History", Section.HISTORY, (), f"She was told of {name} last year.") for name in names]
    assert [fact.text for fact in facts if "a condition" not in without_disease(fact)] == []


def test_a_withheld_name_reads_naturally_after_a_possessive() -> None:
    assert said("The patient has a flare of her Crohn’s disease.") == "I have a flare of my condition."


def test_a_symptom_that_is_not_in_the_chart_is_denied_or_left_open_as_configured() -> None:
    case = patient(History="The patient has a cough.")
    denied, unknown = (ask(case, "Do you have a fever?", silent) for silent in ("deny", "unknown"))
    assert (denied.text, denied.disclosures[0].provenance) == (
        "No, I have not noticed that.",
        Provenance.DEFAULT_NEGATIVE,
    )
    assert (unknown.text, unknown.disclosures[0].provenance) == ("I am not sure.", Provenance.UNAVAILABLE)


@pytest.mark.parametrize("silent", ["deny", "unknown"])
@pytest.mark.parametrize(
    "question", ["Does anyone in your family have cancer?", "What is your family history?", "Are your parents well?"]
)
def test_a_family_history_that_is_not_in_the_chart_is_unknown(silent: Any, question: str) -> None:
    reply = ask(patient(History="The patient has a cough."), question, silent)
    assert reply.text == "I don't know about my family history."
    assert [d.provenance for d in reply.disclosures] == [Provenance.UNAVAILABLE]


@pytest.mark.parametrize(
    "question",
    [
        "Let me examine your abdomen.",
        "I'd like to listen to your heart.",
        "What is your blood pressure today?",
        "What were the test results?",
        "What is your temperature?",
        "Can I check your reflexes?",
    ],
)
def test_a_patient_who_is_asked_for_an_examination_refers_the_doctor_to_a_request(question: str) -> None:
    reply = ask(patient(History="The patient has a cough."), question)
    assert reply.text == "You would have to examine or test that yourself, doctor."
    assert [(d.provenance, d.paths) for d in reply.disclosures] == [(Provenance.UNAVAILABLE, ())]


def test_each_part_of_a_question_gets_its_own_answer() -> None:
    case = patient(History="The patient has a cough.", Review_of_Systems="Denies fever.")
    reply = ask(case, "Do you have a cough, a fever or chills?")
    assert reply.text == "I have a cough. No fever. I have not noticed the rest."
    assert [d.provenance for d in reply.disclosures] == [
        Provenance.CHART,
        Provenance.CHART,
        Provenance.DEFAULT_NEGATIVE,
    ]


def test_a_question_about_habits_is_not_denied_like_a_symptom() -> None:
    case = patient(History="The patient has a cough.")
    assert ask(case, "Do you smoke or drink alcohol?").text == "I am not sure."
    assert ask(case, "What do you do for a living?").text == "I am not sure."


def test_the_patient_asks_for_an_unclear_question_to_be_rephrased() -> None:
    reply = ask(patient(History="The patient has a cough."), "Hm.")
    assert "another way" in reply.text


def test_an_opening_question_gets_the_complaint_and_how_it_began() -> None:
    case = patient(
        History="The patient woke with a sore toe. It is red. It throbs. She took a tablet.",
        Symptoms={"Primary_Symptom": "Sore toe", "Secondary_Symptoms": ["Feeling hot"]},
    )
    assert ask(case, "What brings you in today?").text == "Sore toe. I woke with a sore toe. It is red."


def test_only_the_habit_asked_about_is_told() -> None:
    case = patient(Social_History="Smokes a pipe. Drinks wine. Works as a nurse.")
    assert ask(case, "Do you smoke?").text == "I smoke a pipe."
    assert ask(case, "What is your job?").text == "I work as a nurse."


@pytest.mark.parametrize(
    ("age", "begins"),
    [("3-year-old boy", "My son has"), ("6-month-old girl", "My daughter has"), ("2-week-old infant", "My child has")],
)
def test_a_caregiver_speaks_for_a_small_child(age: str, begins: str) -> None:
    case = patient(Demographics=age, History="The patient has been crying. Mother reports a rash.")
    assert ask(case, "What brings you in?").text == f"{begins} been crying. I report a rash."


def test_a_caregiver_does_not_call_an_unresponsive_adult_a_child() -> None:
    case = patient(Demographics="60-year-old unresponsive man", History="The patient was found on the floor.")
    assert ask(case, "What happened? What brings him in?").text == "The patient was found on the floor."


def test_a_caregiver_can_use_a_script_that_says_you() -> None:
    case = case_of(nejm(patient_info="You are a 3-year-old girl. You've been coughing and your nose runs."))
    assert ask(case, "Is there coughing?").text == "My daughter has been coughing and her nose runs."


VOICES = [
    ("The patient has a cough and denies fever.", "I have a cough and deny fever."),
    (
        "She is uncooperative, refuses to answer, and exhibits fear.",
        "I am uncooperative, refuse to answer, and exhibit fear.",
    ),
    ("Patient reports a cough.", "I have had a cough."),
    ("The patient reports that his toe hurts.", "my toe hurts."),
    ("He reports feeling tired.", "I have been feeling tired."),
    ("Reports of dizziness", "I have had dizziness"),
    ("He lies in bed and tries to sleep.", "I lie in bed and try to sleep."),
    ("Denies any cough", "No cough"),
    ("Denies using alcohol", "I have not been using alcohol"),
    ("Drinks beer, does not smoke, uses no drugs.", "I drink beer, do not smoke, use no drugs."),
    ("Never smoked", "I never smoked"),
    ("The patient's mother is worried about her.", "my mother is worried about me."),
    ("He hurt himself.", "I hurt myself."),
    ("A clinic gave her amoxicillin.", "A clinic gave me amoxicillin."),
    ("The patient has pain that comes at night and wakes her.", "I have pain that comes at night and wakes me."),
    ("The patient describes the pain as sharp.", "I describe the pain as sharp."),
    ("You have noticed that your skin bothers you.", "I have noticed that my skin bothers me."),
    ("You've been well until you were bitten.", "I have been well until I was bitten."),
    ("The toe is red.", "The toe is red."),
    ("During these fits, he is pale and does not answer.", "During these fits, I am pale and do not answer."),
    ("The patient presents for a follow-up.", "I present for a follow-up."),
    ("The patient, who lives alone, complains of itching.", "I, who lives alone, complain of itching."),
    ("For your role as the patient, you have a cough.", "I have a cough."),
    ("The boy shouted 'You are mean' and left.", "The boy shouted 'You are mean' and left."),
    ("Gets headaches and chills", "I get headaches and chills"),
]


@pytest.mark.parametrize(("chart", "spoken"), VOICES)
def test_the_patient_puts_the_chart_into_the_first_person(chart: str, spoken: str) -> None:
    assert own_voice(chart, Section.HISTORY) == spoken


def test_a_relative_keeps_the_third_person() -> None:
    text = "Father has gout and he takes allopurinol; her sister is well."
    assert own_voice(text, Section.FAMILY) == text


@given(st.text(max_size=80))
@settings(max_examples=100)
def test_any_question_is_answered_from_the_patients_facts_alone(question: str) -> None:
    case = case_of(osce(tests={"Biopsy": "zyxwort"}))
    reply = ask(case, question)
    known = {fact.path for fact in case.facts if fact.section in PATIENT_SECTIONS}
    assert reply.text
    assert "zyxwort" not in reply.text
    assert all(path in known for disclosure in reply.disclosures for path in disclosure.paths)
