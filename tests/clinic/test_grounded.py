"""The grounded patient: a choice for each part of a question, and what the model is shown and sent again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes import Scripted
from helpers import case_of, osce
from simulator_support import CASE, Choosing, ids

from agentclinic.cases.model import Case
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import load_prompt
from agentclinic.results.turn import Provenance

pytestmark = pytest.mark.anyio


def patient(model: Scripted, case: Case = CASE, **more: Any) -> Patient:
    return Patient(case, model, load_prompt("patient"), simulator="grounded", dialogue="chat", **more)


def part(asked: str, *facts: str, kind: str = "answer") -> dict[str, Any]:
    return {"asked": asked, "facts": facts, "kind": kind}


def answer(*parts: dict[str, Any], reply: str) -> str:
    return json.dumps({"parts": parts, "reply": reply})


def annotated() -> Case:
    row = osce(
        patient={
            "Demographics": "40-year-old woman",
            "History": ["Headache since Monday", "Her husband hits her", "Drinks wine"],
        },
        exam={"Physical_Examination": {"Legs": "Pitting edema of both ankles"}},
    )
    row["OSCE_Examination"] |= {
        "Patient_Facts": {
            "Patient_Actor/History[0]": {"says": "My head has been splitting since Monday.", "told": "volunteered"},
            "Patient_Actor/History[1]": {"says": "My husband hits me.", "private": True, "sensitive": True},
            "Patient_Actor/History[2]": {"says": "I drink wine.", "told": "if pressed"},
        },
        "Manner": {"manner": "Speaks in a low voice", "worry": "That I'll lose my job.", "greet": "Hello there."},
    }
    return case_of(row)


async def test_each_part_has_its_own_facts_and_disclosure() -> None:
    model = Choosing("")
    role = patient(model)
    (asthma,) = ids(role, "Asthma")
    (no_fever,) = ids(role, "Denies fever")
    given = (part("illnesses", asthma), part("fever", no_fever), part("knee pain", kind="denial"))
    model._answers = [answer(*given, reply="Asthma since childhood. No fever, and my knees don't hurt.")]
    reply = await role.answer("Any illnesses, fever or knee pain?")
    assert reply.slips == ()
    assert [(told.topic, told.provenance, len(told.paths)) for told in reply.disclosures] == [
        ("illnesses", Provenance.CHART, 1),
        ("fever", Provenance.CHART, 1),
        ("knee pain", Provenance.DEFAULT_NEGATIVE, 0),
    ]


DENIALS = {
    "Do your knees hurt?": "No, I haven't noticed that.",
    "Have you ever had an operation?": "No, I've never had an operation.",
    "Do you take any medication?": "No, I don't take anything like that.",
    "Does anyone in your family have diabetes?": "Nobody in my family that I know of.",
    "Do you smoke?": "No, I don't smoke.",
}


@pytest.mark.parametrize("question", DENIALS)
async def test_code_words_each_denial_as_people_do(question: str) -> None:
    lie = answer(part(question.rstrip("?"), kind="denial"), reply="Yes, I do.")
    reply = await patient(Choosing(lie, lie)).answer(question)
    assert (reply.text, reply.slips) == (DENIALS[question], ("polarity", "polarity"))
    assert [told.provenance for told in reply.disclosures] == [Provenance.DEFAULT_NEGATIVE]


async def test_nothing_is_added_after_a_denial() -> None:
    lie = answer(part("knees", kind="denial"), reply="No, but I've been dizzy.")
    reply = await patient(Choosing(lie, lie)).answer("Do your knees hurt?")
    assert (reply.text, reply.slips) == ("No, I haven't noticed that.", ("added", "added"))


async def test_only_what_was_said_is_sent_again() -> None:
    said = answer(part("knees", kind="denial"), reply="No, my knees are fine.")
    model = Choosing(said, said)
    role = patient(model)
    for _ in range(2):
        await role.answer("Do your knees hurt?")
    first, second = (request.messages for request in model.requests)
    assert second[0] == first[0], "the system prompt does not change"
    assert [message.content for message in second[1:3]] == ["Do your knees hurt?", "No, my knees are fine."]
    assert first[1].content.startswith("Do your knees hurt?\n"), "what is sent again begins what was sent"
    assert "(No fact seems to fit" in second[3].content
    assert model.requests[0].described, "the prompt describes the form, so the schema is not sent twice"


async def test_the_model_sees_how_freely_facts_are_told_and_the_patients_manner() -> None:
    said = answer(part("worry", kind="social"), reply="That I'll lose my job.")
    model = Choosing(said)
    role = patient(model, annotated())
    system = role.system_prompt
    assert 'Headache since Monday [tell it to an open question] "My head has been splitting since Monday."' in system
    assert "Her husband hits her [only in private, hesitantly]" in system
    assert "- You come across: Speaks in a low voice" in system
    reply = await role.answer("What worries you most?")
    assert [told.provenance for told in reply.disclosures] == [Provenance.MANNER]
    kept = [*ids(role, "hits her"), *ids(role, "Drinks wine")]
    assert f"(You keep back for now: {', '.join(kept)}.)" in model.requests[0].messages[-1].content


@pytest.mark.parametrize(
    "reply", ["My head has been splitting, and my husband hits me.", "My head has been splitting, and I drink."]
)
async def test_what_is_kept_back_is_not_told_beside_another_fact(reply: str) -> None:
    model = Choosing("")
    role = patient(model, annotated())
    given = answer(part("complaint", *ids(role, "Headache")), reply=reply)
    model._answers = [given, given]
    said = await role.answer("What brings you here?")
    assert said.slips == ("withheld", "withheld")
    assert said.text == "My head has been splitting since Monday."


async def test_what_is_kept_back_is_not_denied_either() -> None:
    no = answer(part("hit by husband", kind="denial"), reply="No, he doesn't.")
    reply = await patient(Choosing(no, no), annotated()).answer("Does your husband hit you?")
    assert (reply.text, reply.slips) == ("I'd rather not go into that right now.", ("withheld", "withheld"))


async def test_a_patient_who_does_not_know_may_not_deny() -> None:
    no = answer(part("knees", kind="denial"), reply="No, they don't.")
    reply = await patient(Choosing(no, no), silent_symptom="unknown").answer("Do your knees hurt?")
    assert (reply.text, reply.slips) == ("I'm not sure.", ("polarity", "polarity"))


async def test_what_the_examination_shows_is_not_denied() -> None:
    no = answer(part("ankle swelling", kind="denial"), reply="No, no swelling.")
    reply = await patient(Choosing(no, no), annotated()).answer("Are your ankles swollen?")
    assert (reply.text, reply.slips) == ("Maybe, I'm not sure.", ("polarity", "polarity"))


async def test_an_answer_without_parts_tells_nothing() -> None:
    reply = await patient(Choosing(answer(reply="I couldn't say."))).answer("Do your knees hurt?")
    assert [told.provenance for told in reply.disclosures] == [Provenance.UNAVAILABLE]
