"""The builtin patient answers questions from the script, in a person's words, and invents nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from helpers import ask, case_of, needs_public_data, nejm, osce, public_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.builtin.roles import answer
from agentclinic.cases.matcher import Asked, Topic
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact, Section
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.answers import SET_PHRASES, answer_parts, payload_of, without_disease, worded
from agentclinic.clinic.first_person import own_voice
from agentclinic.results.turn import Exchange, Provenance
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
FIXED = sorted((*SET_PHRASES, "No."), key=len, reverse=True)
# Words a voice may add: who speaks, about whom, and what stands for a withheld name.
VOICE = STOP_WORDS | {"daughter", "son", "child", "condition", "myself", "themself", "dont", "him", "came", "noticed"}


def stem(word: str) -> str:
    """A word without the endings that conjugation changes: denies, deny; goes, go."""
    return re.sub(r"(?:e?s|y|ie)$", "", word)


def invented(case: Case, text: str, denied: Iterable[str] = ()) -> set[str]:
    """Words that are neither in the chart nor set phrases nor names of what is denied."""
    for phrase in FIXED:
        text = text.replace(phrase, "")
    told = (" ".join((*fact.heads, fact.says or fact.text)) for fact in case.patient_facts)
    known = {stem(word) for text in (*told, *payload_of(case, "").manner.values()) for word in words(text)}
    known |= {stem(word) for word in denied}
    return {word for word in words(text) if word not in VOICE and stem(word) not in known}


def every_case() -> list[Case]:
    return [*public_cases("MedQA_Ext"), *public_cases("NEJM_Ext"), *load_cases("OpenOSCE", lockbox=True)]


@pytest.mark.slow
@needs_public_data
def test_no_patient_invents_anything_or_reveals_what_only_an_examination_shows() -> None:
    for case in every_case():
        known = {fact.path: fact for fact in case.patient_facts}
        for question in QUESTIONS:
            reply = ask(case, question)
            where = (case.dataset, case.scenario_id, question)
            assert reply.text.strip(), where
            denied = [*words(question), *(w for d in reply.disclosures if not d.paths for w in words(d.topic))]
            strange = invented(case, reply.text, denied)
            assert not strange, (*where, strange, reply.text)
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
        "No, I haven't noticed that.",
        Provenance.DEFAULT_NEGATIVE,
    )
    assert (unknown.text, unknown.disclosures[0].provenance) == ("I'm not sure.", Provenance.UNAVAILABLE)


@pytest.mark.parametrize("question", ["Does anyone in your family have cancer?", "What is your family history?"])
def test_a_family_history_that_is_not_in_the_chart_is_denied_or_unknown(question: str) -> None:
    case = patient(History="The patient has a cough.")
    denied, unknown = (ask(case, question, silent) for silent in ("deny", "unknown"))
    assert (denied.text, denied.disclosures[0].provenance) == (
        "Nobody in my family that I know of.",
        Provenance.DEFAULT_NEGATIVE,
    )
    assert (unknown.text, unknown.disclosures[0].provenance) == (
        "I don't know about my family history.",
        Provenance.UNAVAILABLE,
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Any surgeries?", "No, I've never had an operation."),
        ("Have you had any operations?", "No, I've never had an operation."),
        ("Do you have any allergies?", "No allergies that I know of."),
        ("Are you on any meds?", "No, I don't take anything like that."),
        ("Do you smoke?", "No, I don't smoke."),
        ("Do you smoke or drink alcohol?", "No, nothing like that."),
        ("Have you ever had diabetes?", "No, nothing like that."),
    ],
)
def test_what_the_background_does_not_say_is_denied_in_its_own_words(question: str, answer: str) -> None:
    reply = ask(patient(History="The patient has a cough."), question)
    assert (reply.text, [d.provenance for d in reply.disclosures]) == (answer, [Provenance.DEFAULT_NEGATIVE])


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
    assert reply.text == "I have a cough. No fever. No chills."
    assert [d.provenance for d in reply.disclosures] == [
        Provenance.CHART,
        Provenance.CHART,
        Provenance.DEFAULT_NEGATIVE,
    ]


def test_a_question_about_work_is_not_denied() -> None:
    reply = ask(patient(History="The patient has a cough."), "What do you do for a living?")
    assert (reply.text, reply.disclosures[0].provenance) == ("There isn't much to tell there.", Provenance.UNAVAILABLE)


@pytest.mark.parametrize(
    ("question", "words"),
    [("Do you have any wuzzles?", "wuzzles"), ("Any frobbling of the zeen?", "frobbling of the zeen")],
)
def test_what_is_not_understood_is_not_denied_but_asked_back(question: str, words: str) -> None:
    reply = ask(patient(History="The patient has a cough."), question)
    assert reply.text == f"I'm not sure what you mean by “{words}”."
    assert [d.provenance for d in reply.disclosures] == [Provenance.NOT_UNDERSTOOD]


@pytest.mark.parametrize("question", ["Is it tight, squeezing or heavy?", "Any tightness, squeezing, heaviness?"])
def test_a_near_fact_is_told_rather_than_denied(question: str) -> None:
    case = patient(History="The patient describes the pain as a pressure.", Symptoms={"Primary_Symptom": "Chest pain"})
    reply = ask(case, question)
    assert Provenance.DEFAULT_NEGATIVE not in {d.provenance for d in reply.disclosures}
    assert "pressure" in reply.text or "Chest pain" in reply.text


@pytest.mark.parametrize("question", ["Are you eating well?", "Do you feel safe at home?"])
def test_what_is_asked_for_as_good_is_not_denied(question: str) -> None:
    reply = ask(patient(History="The patient has a cough."), question)
    assert [d.provenance for d in reply.disclosures] == [Provenance.UNAVAILABLE]


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
    assert ask(case, "What brings you in?").text == f"{begins} been crying. A rash."


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
    ("Denies using alcohol", "I am not using alcohol"),
    ("Denies hearing loss", "No hearing loss"),
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
    ("The patient presents for a follow-up.", "I came in for a follow-up."),
    ("The patient presents with complaints of itching.", "I came in with itching."),
    ("The patient, who lives alone, complains of itching.", "The patient, who lives alone, complains of itching."),
    ("The pain wakes her and is relieved by ice.", "The pain wakes me and is relieved by ice."),
    ("Her mother says she had a hairy chin.", "Her mother says she had a hairy chin."),
    ("The pain keeps her awake.", "The pain keeps me awake."),
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


@pytest.mark.parametrize("word", ["son", "daughter"])
def test_a_parent_does_not_report_about_the_own_child(word: str) -> None:
    sex = {"son": "boy", "daughter": "girl"}[word]
    case = patient(Demographics=f"3-year-old {sex}", History=f"The father reports that the {sex} has been crying.")
    assert ask(case, "What brings you in?").text == f"My {word} has been crying."


# ---- the patient's own words


def told(*lines: tuple[str, str, str | None], **annotations: Any) -> Case:
    """A case whose facts are statements of the history, each with what the patient says and how freely."""
    history = [statement for statement, _, _ in lines]
    facts = {f"Patient_Actor/History[{at}]": {"says": says, **_freely(how)} for at, (_, says, how) in enumerate(lines)}
    row = osce(patient={"Demographics": "40-year-old woman", "History": history}, **annotations)
    row["OSCE_Examination"]["Patient_Facts"] = facts
    return case_of(row)


def _freely(how: str | None) -> dict[str, Any]:
    return {"private": True} if how == "private" else {"told": how} if how else {}


OWN_WORDS = told(
    ("Severe headache since Monday", "My head has been splitting since Monday.", "volunteered"),
    ("Vomited twice", "I threw up twice.", "volunteered"),
    ("Light hurts her eyes", "Light hurts my eyes.", None),
    ("Denies fever", "No, I haven't had a fever.", None),
    ("Denies rash", "No, I haven't seen any rash.", None),
    ("Drinks a bottle of wine a day", "I drink a bottle of wine a day.", "if pressed"),
    ("Her husband hits her", "My husband hits me.", "private"),
    Manner={"worry": "Who will look after my dog?", "greet": "Hi."},
)


def asked_in_turn(case: Case, *questions: str) -> list[str]:
    """The replies to questions of one conversation."""
    replies: list[str] = []
    past: tuple[Exchange, ...] = ()
    for question in questions:
        reply = answer(payload_of(case, question, past))
        past = (*past, Exchange("question", question, reply.text, reply.disclosures))
        replies.append(reply.text)
    return replies


def test_the_patient_says_what_the_author_wrote() -> None:
    assert ask(OWN_WORDS, "Any fever, rash or vomiting?").text == (
        "No, I haven't had a fever. I haven't seen any rash. I threw up twice."
    )


def test_the_opening_is_what_is_volunteered_and_more_is_told_in_turn() -> None:
    first, more, rest = asked_in_turn(OWN_WORDS, "What brings you in today?", "Can you tell me more?", "Go on.")
    assert first == "My head has been splitting since Monday. I threw up twice."
    assert more == "Light hurts my eyes."
    assert rest == "I think that's everything."


def test_a_fact_told_if_pressed_is_told_when_named_or_asked_again() -> None:
    assert "wine" in ask(OWN_WORDS, "How much alcohol do you drink?").text
    assert "wine" not in ask(OWN_WORDS, "Tell me about your lifestyle.").text


def test_a_private_fact_is_told_in_private_and_never_denied_before() -> None:
    question = "Does anyone hit you or hurt you at home, your husband for example?"
    before, alone, after = asked_in_turn(OWN_WORDS, question, "Could I speak with you alone?", question)
    assert "husband" not in before
    assert not before.startswith("No")
    assert alone == "That's fine."
    assert "My husband hits me." in after


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("Hello, I'm Dr. Lee.", "Hi."),
        ("What worries you most?", "Who will look after my dog?"),
        ("What do you think is causing this?", "I don't know. I was hoping you could tell me."),
        ("How are you coping?", "I'm managing."),
        ("What are you hoping for today?", "I'd just like to find out what this is."),
        ("I'm going to order some blood tests. Is that okay?", "That's fine."),
        ("May I examine you?", "That's fine."),
        ("Thank you for telling me.", "You're welcome."),
        ("I'm going to order some tests now.", "All right, doctor."),
        ("I see. That must be hard.", "All right, doctor."),
    ],
)
def test_small_talk_feelings_and_wishes_are_answered_without_facts(said: str, reply: str) -> None:
    given = ask(OWN_WORDS, said)
    assert given.text == reply
    assert {d.provenance for d in given.disclosures} == {Provenance.MANNER}


def test_a_greeting_with_a_question_is_answered_as_a_question() -> None:
    assert ask(OWN_WORDS, "Hello, I'm Dr. Lee. Any fever?").text == "No, I haven't had a fever."


def test_what_the_examination_shows_is_not_denied() -> None:
    row = osce(
        patient={"Demographics": "40-year-old woman", "History": "The patient has a cough."},
        exam={"Vital_Signs": {"Oxygen_Saturation": "89%"}, "Legs": "Pitting edema of both ankles. No rash."},
    )
    for question in ("Are you short of breath?", "Any swelling of your ankles?"):
        reply = ask(case_of(row), question)
        assert (reply.text, reply.disclosures[0].provenance) == (
            "Maybe, I'm not sure.",
            Provenance.UNAVAILABLE,
        )
    assert ask(case_of(row), "Any rash?").text == "No, I haven't noticed that."
    assert ask(case_of(row), "Any cough, or swelling?").text == "I have a cough. Swelling, maybe, I'm not sure."


def test_what_hurts_when_it_is_pressed_may_be_denied_as_pain() -> None:
    row = osce(
        patient={"Demographics": "40-year-old woman", "History": "The patient has a cough."},
        exam={"Abdomen": "Tender in the right lower quadrant, painful on percussion."},
    )
    assert ask(case_of(row), "Any pain?").text == "No, I haven't noticed that."


def test_no_medicine_is_denied_beside_those_that_are_taken() -> None:
    takes = told(
        ("Cough for a week", "I've been coughing for a week.", "volunteered"),
        ("Takes aspirin daily", "I take aspirin every day.", None),
    )
    assert "anything like that" not in ask(takes, "Do you take aspirin? Any recreational drugs or herbal pills?").text


def test_nobody_else_is_said_to_be_ill_while_the_chart_holds_more_of_the_family() -> None:
    aunt = Fact("aunt", Section.FAMILY, (), "Aunt has epilepsy", says="My aunt has epilepsy.")
    father = Fact("father", Section.FAMILY, (), "Father had a stroke", says="My father had a stroke.")
    topics = (Topic("epilepsy", Asked.FAMILY, (aunt,)), Topic("family history", Asked.FAMILY, (), "gout"))
    payload = payload_of(OWN_WORDS, "Epilepsy or gout in the family?")
    every = answer_parts(topics, replace(payload, facts=(aunt,)))
    assert worded(every) == "My aunt has epilepsy. Nothing else runs in the family, as far as I know."
    some = answer_parts(topics, replace(payload, facts=(aunt, father)))
    assert worded(some) == "My aunt has epilepsy. No gout in the family that I know of."
    stroke = Topic("family history", Asked.FAMILY, (), "stroke")
    more = answer_parts((*topics, stroke), replace(payload, facts=(aunt, father)))
    assert worded(more) == "My aunt has epilepsy. No gout in the family that I know of."  # the father had one
    measles = Topic("family history", Asked.FAMILY, (), "measles")
    several = answer_parts((*topics, measles), replace(payload, facts=(aunt, father)))
    assert worded(several) == "My aunt has epilepsy. No gout or measles in the family that I know of."


def test_a_denial_stands_before_a_worry() -> None:
    reply = ask(OWN_WORDS, "Any rash? What worries you most? And is there any fever?").text
    assert reply.endswith("Who will look after my dog?")


def test_a_caregiver_speaks_if_the_case_says_so() -> None:
    case = told(("Found on the floor", "I found her on the floor.", "volunteered"), speaker="husband")
    assert payload_of(case, "").caregiver
    assert ask(case, "What happened?").text == "I found her on the floor."


# ---- an answer to what was asked, and no more


ATTACKS = told(
    ("Attacks of a pounding heart for a year", "For a year I've had attacks of a pounding heart.", "volunteered"),
    ("Attacks last ten minutes", "An attack lasts ten minutes.", None),
    ("Attacks stop suddenly", "The attacks stop all of a sudden.", None),
    ("About five attacks in two months", "I've had about five in two months.", None),
    ("Lightheaded during attacks", "I get lightheaded with it.", None),
    ("Denies fainting", "No, I've never fainted.", None),
    ("Took propranolol for the attacks, which helped", "I took propranolol, and it helped.", None),
    ("Wine brings the attacks on", "Wine sets the attacks off.", None),
)


def test_the_circumstances_of_a_question_are_not_what_it_asks_for() -> None:
    reply = ask(ATTACKS, "During the attacks, do you get lightheaded, or have you ever fainted?").text
    assert reply == "I get lightheaded with it. No, I've never fainted."


def test_asked_what_was_tried_the_patient_tells_treatments() -> None:
    assert ask(ATTACKS, "What have you tried, and did anything work?").text == "I took propranolol, and it helped."


def test_asked_how_often_the_patient_tells_how_often() -> None:
    assert "about five in two months" in ask(ATTACKS, "How many of these have you had?").text


def test_a_trigger_in_the_chart_is_told_and_the_habit_not_denied() -> None:
    assert ask(ATTACKS, "Does alcohol trigger the attacks?").text == "Wine sets the attacks off."


def test_what_was_told_is_told_again_only_if_asked_for() -> None:
    opening = "For a year I've had attacks of a pounding heart."
    first, course, again = asked_in_turn(
        ATTACKS, "What brings you in?", "Do the attacks stop suddenly?", "How long have you had the pounding heart?"
    )
    assert first == opening
    assert course.startswith("The attacks stop all of a sudden.")
    assert opening not in course
    assert opening in again


def test_asked_about_the_complaint_again_the_patient_goes_on_with_the_story() -> None:
    first, more = asked_in_turn(ATTACKS, "What brings you in?", "Tell me about these attacks.")
    assert first not in more
    assert "An attack lasts ten minutes." in more


def test_at_most_four_facts_answer_one_thing() -> None:
    case = told(*((f"Cough worse {when}", f"My cough is worse {when}.", None) for when in "ABCDEFG"))
    assert ask(case, "What makes the cough worse?").text.count("My cough") == 4


def test_a_question_about_relatives_is_not_answered_with_the_patients_own_illness() -> None:
    case = patient(Past_Medical_History=["Diabetes since 2010"], Family_History=["Father had a stroke"])
    assert ask(case, "Does anyone in your family have diabetes?").text == "Father had a stroke."


def test_a_private_fact_is_not_hinted_at_if_something_else_was_asked_for() -> None:
    for question in ("Any swelling in your legs?", "How long have you been at home?", "Who is at home with you?"):
        assert "rather not" not in ask(OWN_WORDS, question).text, question


def test_denials_by_default_are_joined() -> None:
    assert ask(OWN_WORDS, "Do you have diabetes? Do you take insulin?").text == "No, none of those."
