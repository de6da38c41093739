"""However a question is phrased, the same facts come back."""

from __future__ import annotations

import pytest
from helpers import ask, case_of, osce

ADULT = case_of(
    osce(
        patient={
            "Demographics": "52-year-old man",
            "History": "The patient has had a burning pain behind the breastbone for 3 weeks. "
            "It gets worse when he lies flat and is relieved by antacids. "
            "He has lost 4 kg since the summer. He was treated for pneumonia in a hospital last year.",
            "Symptoms": {
                "Primary_Symptom": "Burning chest pain",
                "Secondary_Symptoms": ["Difficulty swallowing", "Dry cough at night", "Hoarse voice"],
            },
            "Past_Medical_History": "Hypertension. Appendectomy at age 20, no other surgery.",
            "Medications": ["Lisinopril 10 mg daily", "Antacids when needed"],
            "Allergies": "Penicillin causes a rash.",
            "Family_History": "Father died of a heart attack. Sister has asthma.",
            "Social_History": "Smokes ten cigarettes a day. Drinks two beers on weekends. Works as a bus driver. "
            "Lives with his wife. Returned from a trip to Peru in May.",
            "Review_of_Systems": "Denies fever, chills, or night sweats. No vomiting. Denies dizziness. "
            "Denies swelling of the legs. No black stools. No headache.",
        }
    )
)
CHILD = case_of(
    osce(
        patient={
            "Demographics": "3-year-old girl",
            "History": "The mother reports that the rash began 2 days ago on the face. "
            "The girl scratches it and sleeps badly.",
            "Symptoms": {"Primary_Symptom": "Itchy rash", "Secondary_Symptoms": ["Runny nose", "Eating less"]},
            "Past_Medical_History": "Born at term. Vaccinations are up to date.",
            "Social_History": "Attends a nursery. Another child there has the same rash. The family has a cat.",
            "Review_of_Systems": "No fever. No diarrhea.",
        }
    )
)
A = "Patient_Actor/"
ALL_DRUGS = {f"{A}Medications[0]", f"{A}Medications[1]"}

REWORDED: list[tuple[str, set[str], tuple[str, str, str, str, str]]] = [
    (
        "opening",
        {f"{A}Symptoms/Primary_Symptom", f"{A}History#0", f"{A}History#1"},
        (
            "What brings you in today?",
            "How can I help you?",
            "What seems to be the problem?",
            "Can you tell me what is going on?",
            "Please describe your symptoms in your own words.",
        ),
    ),
    (
        "onset",
        {f"{A}History#0"},
        (
            "When did the pain start?",
            "How long have you had the chest pain?",
            "When did you first notice the pain?",
            "For how long has the pain been there?",
            "What was the onset of the pain?",
        ),
    ),
    (
        "course",
        {f"{A}History#1"},
        (
            "Does anything make the pain better or worse?",
            "What makes it better or worse?",
            "Is there anything that relieves it?",
            "Are there any aggravating or relieving factors?",
            "What brings it on, and what helps?",
        ),
    ),
    (
        "posture",
        {f"{A}History#1"},
        (
            "Is it worse when you lie flat?",
            "Does it get worse with lying down?",
            "Does the pain worsen when you are lying flat?",
            "Does lying down aggravate it?",
            "Is the pain worse in a lying position?",
        ),
    ),
    (
        "swallowing",
        {f"{A}Symptoms/Secondary_Symptoms[0]"},
        (
            "Do you have difficulty swallowing?",
            "Any trouble swallowing?",
            "Have you noticed dysphagia?",
            "Are there problems with swallowing?",
            "Is it hard to swallow?",
        ),
    ),
    (
        "cough",
        {f"{A}Symptoms/Secondary_Symptoms[1]"},
        (
            "Do you have a cough?",
            "Have you been coughing?",
            "Any cough?",
            "Is there any coughing?",
            "Have you noticed a cough lately?",
        ),
    ),
    (
        "hoarseness",
        {f"{A}Symptoms/Secondary_Symptoms[2]"},
        (
            "Is your voice hoarse?",
            "Any hoarseness?",
            "Have you noticed a hoarse voice?",
            "Do you have hoarseness?",
            "Have you become hoarse?",
        ),
    ),
    (
        "weight",
        {f"{A}History#2"},
        (
            "Have you lost weight?",
            "Any weight loss?",
            "Has your weight changed?",
            "Have you noticed any changes in weight?",
            "Are you losing weight?",
        ),
    ),
    (
        "fever",
        {f"{A}Review_of_Systems#0.0"},
        (
            "Have you had a fever?",
            "Any fever?",
            "Do you feel feverish?",
            "Have you been running a temperature?",
            "Did you have any fevers recently?",
        ),
    ),
    (
        "fever and sweats",
        {f"{A}Review_of_Systems#0.0", f"{A}Review_of_Systems#0.2"},
        (
            "Have you had fever or night sweats?",
            "Any night sweats or fever?",
            "Do you have fevers, or do you sweat at night?",
            "Any fever? Any night sweats?",
            "Have you noticed fever and night sweats?",
        ),
    ),
    (
        "vomiting",
        {f"{A}Review_of_Systems#1"},
        (
            "Have you vomited?",
            "Any vomiting?",
            "Have you been throwing up?",
            "Did you throw up?",
            "Has there been any vomiting?",
        ),
    ),
    (
        "dizziness",
        {f"{A}Review_of_Systems#2"},
        (
            "Do you feel dizzy?",
            "Any dizziness?",
            "Have you had dizzy spells?",
            "Are you lightheaded or dizzy?",
            "Have you noticed dizziness?",
        ),
    ),
    (
        "leg swelling",
        {f"{A}Review_of_Systems#3"},
        (
            "Do you have swollen legs?",
            "Any swelling in your legs?",
            "Have your legs been swollen?",
            "Have you noticed leg swelling?",
            "Is there any edema of the legs?",
        ),
    ),
    (
        "black stools",
        {f"{A}Review_of_Systems#4"},
        (
            "Have you noticed black stools?",
            "Any black or tarry stools?",
            "Is there any blood in your stool?",
            "Have you had bloody or black bowel movements?",
            "Any melena?",
        ),
    ),
    (
        "headache",
        {f"{A}Review_of_Systems#5"},
        (
            "Do you have headaches?",
            "Any headache?",
            "Have you had a headache?",
            "Are you having headaches?",
            "Have you been bothered by headaches?",
        ),
    ),
    (
        "drugs",
        ALL_DRUGS,
        (
            "What medications are you taking?",
            "Do you take any medicines?",
            "Are you on any medication?",
            "Which pills do you take?",
            "Do you use any prescription or over-the-counter drugs?",
        ),
    ),
    (
        "allergies",
        {f"{A}Allergies"},
        (
            "Do you have any allergies?",
            "Are you allergic to anything?",
            "Any known allergies?",
            "Are there any allergies I should know about?",
            "Do you have an allergy?",
        ),
    ),
    (
        "family",
        {f"{A}Family_History#0", f"{A}Family_History#1"},
        (
            "Does anything run in your family?",
            "What is your family history?",
            "Are there illnesses in your family?",
            "Do any of your relatives have health problems?",
            "Have your parents or siblings been ill?",
        ),
    ),
    (
        "smoking",
        {f"{A}Social_History#0"},
        (
            "Do you smoke?",
            "Are you a smoker?",
            "Do you use tobacco?",
            "How many cigarettes do you smoke?",
            "Have you ever smoked?",
        ),
    ),
    (
        "alcohol",
        {f"{A}Social_History#1"},
        (
            "Do you drink alcohol?",
            "How much alcohol do you drink?",
            "Any alcohol use?",
            "Do you drink?",
            "What about alcohol?",
        ),
    ),
    (
        "work",
        {f"{A}Social_History#2"},
        (
            "What do you do for a living?",
            "What is your job?",
            "What is your occupation?",
            "Do you work?",
            "What kind of work do you do?",
        ),
    ),
    (
        "travel",
        {f"{A}Social_History#4"},
        (
            "Have you traveled recently?",
            "Any recent travel?",
            "Have you been traveling abroad?",
            "Did you travel anywhere lately?",
            "Have you travelled outside the country?",
        ),
    ),
    (
        "home",
        {f"{A}Social_History#3"},
        (
            "Who do you live with?",
            "Do you live alone?",
            "What is your living situation?",
            "Do you live with anyone?",
            "Do you live alone or with somebody?",
        ),
    ),
    (
        "age",
        {f"{A}Demographics"},
        (
            "How old are you?",
            "What is your age?",
            "Can you tell me your age?",
            "What age are you?",
            "May I ask your age?",
        ),
    ),
    (
        "surgery",
        {f"{A}Past_Medical_History#1"},
        (
            "Have you ever had surgery?",
            "Any previous operations?",
            "Have you had any surgeries?",
            "Were you ever operated on? Any surgery?",
            "Any prior surgery?",
        ),
    ),
    (
        "breath",
        set(),
        (
            "Are you short of breath?",
            "Any shortness of breath?",
            "Do you have trouble breathing?",
            "Have you noticed any dyspnea?",
            "Do you get breathless?",
        ),
    ),
]
REWORDED_CHILD: list[tuple[str, set[str], tuple[str, str, str, str, str]]] = [
    (
        "onset",
        {f"{A}History#0"},
        (
            "When did the rash start?",
            "How long has she had the rash?",
            "When did you first notice the rash?",
            "When did the rash begin?",
            "For how long has the rash been there?",
        ),
    ),
    (
        "vaccinations",
        {f"{A}Past_Medical_History#1"},
        (
            "Are her vaccinations up to date?",
            "Is she vaccinated?",
            "Has she had her immunizations?",
            "Is she up to date on her vaccines?",
            "Has she received all vaccinations?",
        ),
    ),
    (
        "nose",
        {f"{A}Symptoms/Secondary_Symptoms[0]"},
        (
            "Does she have a runny nose?",
            "Any nasal congestion or discharge?",
            "Is her nose running?",
            "Has she got a stuffy or runny nose?",
            "Any runny nose?",
        ),
    ),
    (
        "appetite",
        {f"{A}Symptoms/Secondary_Symptoms[1]"},
        (
            "How is her appetite?",
            "Has she been eating less?",
            "Any loss of appetite?",
            "Does she have a poor appetite?",
            "Has her appetite changed?",
        ),
    ),
    (
        "fever",
        {f"{A}Review_of_Systems#0"},
        (
            "Has she had a fever?",
            "Any fever?",
            "Was she feverish?",
            "Did she have a high temperature?",
            "Has there been any fever?",
        ),
    ),
]


def _told(case: str, question: str) -> set[str]:
    reply = ask({"adult": ADULT, "child": CHILD}[case], question)
    return {path for disclosure in reply.disclosures for path in disclosure.paths}


@pytest.mark.parametrize(
    ("case", "facts", "question"),
    [
        pytest.param(case, facts, question, id=f"{case}-{name}-{number}")
        for case, table in (("adult", REWORDED), ("child", REWORDED_CHILD))
        for name, facts, questions in table
        for number, question in enumerate(questions)
    ],
)
def test_a_reworded_question_returns_the_same_facts(case: str, facts: set[str], question: str) -> None:
    assert _told(case, question) == facts
