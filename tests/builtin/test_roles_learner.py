"""The builtin learner, and the builtin doctor that follows what it suggests."""

from __future__ import annotations

from helpers import case_of, osce

from agentclinic.builtin.doctor import act
from agentclinic.builtin.roles import learn
from agentclinic.cases.model import Door
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.doctors.reference import chart_exchanges
from agentclinic.memory.experience import MOST, Experience, LearnerPayload, Written
from agentclinic.results.turn import Exchange

CASE = case_of(
    osce(
        patient={
            "Demographics": "58-year-old man",
            "History": "The patient has had chest pain for two hours. It radiates to the left arm. He sweats.",
            "Symptoms": {"Primary_Symptom": "Chest pain", "Secondary_Symptoms": ["Nausea", "Sweating"]},
        },
        tests={"ECG": "ST elevation in leads II, III and aVF", "Troponin": "Troponin I 4.2 ng/mL, elevated"},
        truth="Acute myocardial infarction",
        objective="Assess a man with chest pain.",
    )
)
OPENING = Exchange("question", "What brings you to the clinic today?", "I have chest pain.")


def learned(*exchanges: Exchange, diagnosis: str = "Costochondritis") -> list[Experience]:
    payload = LearnerPayload(CASE.door, exchanges, chart_exchanges(CASE), diagnosis, CASE.diagnosis)
    written = learn(payload).parsed
    assert isinstance(written, Written)
    return [each.kept() for each in written.experiences]


def test_it_suggests_what_the_chart_held_and_was_not_asked_for() -> None:
    experiences = learned(OPENING)
    steps = [each.step.id for each in experiences if each.step]
    assert 0 < len(steps) == len(experiences) <= MOST
    assert "test:electrocardiogram" in steps
    assert len(set(steps)) == len(steps)
    for each in experiences:
        assert each.observation.startswith("man, ")
        assert "chest pain" in each.observation.lower()
        assert "infarction" not in each.model_dump_json().lower()

    told = Exchange("test", "ECG", "ST elevation in leads II, III and aVF")
    assert "test:electrocardiogram" not in [each.step.id for each in learned(OPENING, told) if each.step]
    assert learned(*chart_exchanges(CASE)) == [], "nothing was missed"
    assert learned() == learned(), "the same every time"


def test_an_encounter_that_was_right_teaches_what_would_have_made_it_surer() -> None:
    steps = [each.step.id for each in learned(OPENING, diagnosis=CASE.diagnosis) if each.step]
    assert "test:electrocardiogram" in steps


def asked(*advised: str, last: bool = False, exchanges: tuple[Exchange, ...] = (OPENING,)) -> str:
    """What the builtin doctor says on the second turn."""
    door = Door("Assess a man with chest pain.", "58-year-old man")
    return act(DoctorPayload(door, exchanges, 2, 20, last, advised=advised)).text


def test_the_builtin_doctor_takes_the_first_step_that_can_still_tell_something() -> None:
    usual = asked()
    question = asked("finding:fever_reported")
    assert question != usual
    assert asked("test:d_dimer", "finding:fever_reported").startswith("REQUEST TEST:")
    assert asked("finding:no_such_thing", "finding:fever_reported") == question
    assert asked("finding:no_such_thing") == usual
    answered = (OPENING, Exchange("question", question, "No."))
    assert asked("finding:fever_reported", exchanges=answered) != question, "it was answered"
    assert asked("finding:fever_reported", last=True).startswith("DIAGNOSIS READY:")
    assert asked("finding:fever_reported", exchanges=()) == asked(exchanges=()), "the opening stays the opening"
