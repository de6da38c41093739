"""Language models as the patient: they tell only what is in the chart, and what they tell is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes import Scripted
from helpers import case_of, osce
from simulator_support import CASE, Choosing, ids

from agentclinic.clinic.patient import Patient, Simulator
from agentclinic.clinic.prompts import load_prompt
from agentclinic.models.base import MalformedError, RefusedError, ServerError
from agentclinic.models.structured import format_of
from agentclinic.results.turn import Exchange, Provenance, Turn, Usage

pytestmark = pytest.mark.anyio


def patient(model: Scripted, simulator: Simulator, **more: Any) -> Patient:
    return Patient(CASE, model, load_prompt("patient"), simulator=simulator, dialogue="chat", **more)


def part(*facts: str, kind: str = "answer", asked: str = "") -> dict[str, Any]:
    return {"asked": asked, "facts": facts, "kind": kind}


def chosen(*facts: str, kind: str = "answer", reply: str) -> str:
    return answered(part(*facts, kind=kind), reply=reply)


def answered(*parts: dict[str, Any], reply: str) -> str:
    return json.dumps({"parts": parts, "reply": reply})


def paths(turn: Turn) -> set[str]:
    return {path for told in turn.disclosures for path in told.paths}


# Voiced: our matcher chooses, the model finds the words.


async def test_a_voiced_patient_words_what_the_matcher_chose() -> None:
    model = Scripted("It has been burning in my stomach for three weeks, doctor.")
    reply = await patient(model, "voiced").answer("How long have you had the stomach pain?", turn=4)
    assert reply.text == "It has been burning in my stomach for three weeks, doctor."
    assert (reply.turn, reply.role, reply.raw, reply.slips) == (4, "patient", None, ())
    assert any("History" in path for path in paths(reply))
    assert reply.disclosures[0].provenance is Provenance.CHART
    assert reply.details is not None
    assert (reply.details["simulator"], reply.details["worded_by"]) == ("voiced", "model")
    assert "3 weeks" in model.prompts[0]
    assert "Duodenal" not in str(model.requests)


LIES = {
    "It has been burning for five weeks.": "number",
    "It has been burning for 3 weeks; I think it is an ulcer, or pancreatitis.": "disease",
    "Doctor: What else?": "empty",
}


@pytest.mark.parametrize("lie", LIES)
async def test_words_that_say_more_than_the_facts_are_repaired_once(lie: str) -> None:
    model = Scripted(lie, "For 3 weeks now.")
    reply = await patient(model, "voiced").answer("How long have you had the stomach pain?")
    assert reply.text == "For 3 weeks now."
    assert LIES[lie] in reply.slips
    assert [message.role for message in model.requests[1].messages[-2:]] == ["assistant", "user"]


@pytest.mark.parametrize("lie", LIES)
async def test_after_a_failed_repair_code_words_the_facts(lie: str) -> None:
    reply = await patient(Scripted(lie, lie), "voiced").answer("How long have you had the stomach pain?")
    assert "3 weeks" in reply.text
    assert reply.raw == lie
    assert reply.details is not None
    assert reply.details["worded_by"] == "code"
    assert any(note.startswith("worded by code: ") for note in reply.notes)
    assert "History" in str(paths(reply)), "what was told is known, even if code found the words"


async def test_a_denial_must_not_turn_into_a_yes() -> None:
    model = Scripted("Yes, my knees hurt a lot.", "Yes, they do.")
    reply = await patient(model, "voiced").answer("Do your knees hurt?")
    assert reply.slips == ("polarity", "polarity")
    assert reply.text.startswith("No")
    assert reply.disclosures[0].provenance is Provenance.DEFAULT_NEGATIVE


async def test_a_denial_in_the_chart_must_not_turn_into_a_yes_either() -> None:
    reply = await patient(Scripted("Yes, a high one.", "I do have a fever."), "voiced").answer("Do you have a fever?")
    assert (reply.slips, reply.disclosures[0].provenance) == (("polarity", "polarity"), Provenance.CHART)
    assert reply.text.startswith("No")


async def test_silent_symptoms_stay_unknown_where_the_run_says_so() -> None:
    model = Scripted("I'm not sure about that.")
    reply = await patient(model, "voiced", silent_symptom="unknown").answer("Do your knees hurt?")
    assert reply.disclosures[0].provenance is Provenance.UNAVAILABLE
    assert "not sure" in model.prompts[0]


async def test_names_that_are_in_the_facts_or_the_question_may_be_said() -> None:
    model = Scripted("I have had asthma since I was a child.", "No, I don't know of any diabetes.")
    voiced = patient(model, "voiced")
    assert (await voiced.answer("Any past illnesses?")).slips == ()
    assert (await voiced.answer("Do you have diabetes?")).slips == ()


async def test_another_speakers_line_is_cut_and_counted() -> None:
    reply = await patient(Scripted("For 3 weeks.\nDoctor: I see."), "voiced").answer("How long has the pain lasted?")
    assert (reply.text, reply.raw, reply.slips) == ("For 3 weeks.", "For 3 weeks.\nDoctor: I see.", ("other_speaker",))


@pytest.mark.parametrize("error", [MalformedError("no text"), RefusedError("declined")])
@pytest.mark.parametrize("simulator", ["voiced", "grounded"])
async def test_a_patient_model_that_gives_no_words_does_not_end_the_encounter(
    simulator: Simulator, error: MalformedError
) -> None:
    error.usage = Usage(5, 1)
    reply = await patient(Scripted(error), simulator).answer("How long have you had the stomach pain?")
    assert "3 weeks" in reply.text
    assert (reply.slips, reply.usage) == ((error.kind,), Usage(5, 1))


async def test_an_endpoint_that_fails_is_not_papered_over() -> None:
    with pytest.raises(ServerError):
        await patient(Scripted(ServerError("down")), "voiced").answer("How are you?")


async def test_biases_and_the_caregiver_reach_every_way_of_playing() -> None:
    prompt = load_prompt("patient")
    infant = case_of(osce(patient={"Demographics": "8-month-old boy", "History": "The infant has a fever."}))
    for simulator in ("grounded", "voiced", "free"):
        system = Patient(infant, Scripted(), prompt, simulator=simulator, bias="recency").system_prompt
        assert prompt.text("caregiver") in system
        assert prompt.bias("recency") in system


# Grounded: the model chooses, then speaks.


async def test_a_grounded_patient_chooses_facts_and_speaks() -> None:
    model = Choosing("")
    role = patient(model, "grounded")
    (asthma,) = ids(role, "Asthma")
    model._answers = [chosen(asthma, reply="I have had asthma since I was a child.")]
    reply = await role.answer("Do you have any other illnesses?")
    assert reply.text == "I have had asthma since I was a child."
    assert [path.rpartition("/")[2] for path in paths(reply)] == ["Past_Medical_History"]
    assert reply.details is not None
    assert reply.details["simulator"] == "grounded"


async def test_the_matchers_suggestions_are_marked_and_the_schema_lists_the_ids() -> None:
    model = Choosing("")
    role = patient(model, "grounded")
    (asthma,) = ids(role, "Asthma")
    model._answers = [chosen(asthma, reply="Asthma, since childhood.")]
    await role.answer("Do you have asthma?")
    assert asthma in model.prompts[0]
    shape = model.requests[0].schema
    assert shape is not None
    schema = format_of(shape, bounds=True).schema
    one = schema["$defs"]["GroundedPart"]["properties"]
    assert set(one["facts"]["items"]["enum"]) == {f"f{n}" for n in range(1, len(CASE.patient_facts) + 1)}
    assert (list(one), list(schema["properties"])) == (["asked", "facts", "kind"], ["parts", "reply"]), (
        "words come last"
    )
    assert schema["properties"]["parts"]["maxItems"]
    assert one["facts"]["maxItems"]
    assert one["asked"]["maxLength"]
    assert schema["properties"]["reply"]["maxLength"]


async def test_words_beyond_the_chosen_facts_are_repaired_and_then_replaced() -> None:
    model = Choosing("")
    role = patient(model, "grounded")
    (asthma,) = ids(role, "Asthma")
    lie = chosen(asthma, reply="I have had asthma for 25 years, and gout.")
    model._answers = [lie, lie]
    reply = await role.answer("Any illnesses?")
    assert reply.slips == ("number", "disease", "number", "disease")
    assert "sthma" in reply.text
    assert "25" not in reply.text


KINDS = {
    "denial": Provenance.DEFAULT_NEGATIVE,
    "unknown": Provenance.UNAVAILABLE,
    "not_for_the_patient": Provenance.UNAVAILABLE,
}


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_without_facts_has_the_provenance_of_its_kind(kind: str) -> None:
    model = Choosing(chosen(kind=kind, reply="No, I don't know of that."))
    reply = await patient(model, "grounded").answer("Do your knees hurt?")
    assert [told.provenance for told in reply.disclosures] == [KINDS[kind]]


# Free: the original's way.


async def test_a_free_reply_is_said_as_it_is_and_has_no_provenance() -> None:
    model = Scripted("I have had it for 99 weeks.")
    reply = await patient(model, "free").answer("How long?")
    assert (reply.text, reply.disclosures, reply.slips) == ("I have had it for 99 weeks.", (), ())
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]


async def test_the_dialogue_is_a_chat_for_every_role() -> None:
    model = Scripted("For 3 weeks.", "No, no fever.")
    role = patient(model, "voiced")
    await role.answer("How long has the pain lasted?")
    role.history.add("Doctor", "REQUEST TEST: Lipase")
    role.history.add("Measurement", "RESULTS: 30")
    await role.answer("Any fever?")
    first, second = (request.messages for request in model.requests)
    assert second[: len(first)] == first, "nothing that was sent changes, so a prompt cache can reuse it"
    assert [message.role for message in second[len(first) :]] == ["assistant", "user"]
    assert "RESULTS" not in str(model.requests[1]), "results are not the patient's to know"


# The patient's own words, and what is kept back.


def guarded(model: Scripted, simulator: Simulator) -> Patient:
    """A patient with words of their own, one fact told only in private and one told only if asked about directly."""
    row = osce(
        patient={
            "Demographics": "40-year-old woman",
            "History": ["Headache since Monday", "Her husband hits her", "Drinks a bottle of wine a day"],
        }
    )
    row["OSCE_Examination"]["Patient_Facts"] = {
        "Patient_Actor/History[0]": {"says": "My head has been splitting since Monday.", "told": "volunteered"},
        "Patient_Actor/History[1]": {"says": "My husband hits me.", "private": True},
        "Patient_Actor/History[2]": {"says": "I drink a bottle of wine a day.", "told": "if pressed"},
    }
    return Patient(case_of(row), model, load_prompt("patient"), simulator=simulator, dialogue="chat")


HITS = "Does your husband hit you?"
ALONE = Exchange("question", "Could I speak with you alone?", "That's fine.", ())


async def test_a_voiced_patient_is_given_the_patients_own_words() -> None:
    model = Scripted("It's been splitting since Monday.")
    reply = await guarded(model, "voiced").answer("When did the headache start?")
    assert "- My head has been splitting since Monday." in model.prompts[0]
    assert (reply.slips, paths(reply)) == ((), {"Patient_Actor/History[0]"})


async def test_a_voiced_patient_is_not_given_what_is_kept_back() -> None:
    model = Scripted("I'd rather not say.", "He does hit me.")
    before = await guarded(model, "voiced").answer(HITS)
    assert "hits" not in str(model.requests[0].messages)
    assert paths(before) == set()
    after = await guarded(model, "voiced").answer(HITS, (ALONE,))
    assert "- My husband hits me." in model.prompts[1]
    assert paths(after) == {"Patient_Actor/History[1]"}


async def test_a_grounded_patient_who_tells_what_is_kept_back_is_repaired_and_then_replaced() -> None:
    model = Choosing("")
    role = guarded(model, "grounded")
    told = chosen(*ids(role, "husband"), reply="He hits me.")
    model._answers = [told, told]
    reply = await role.answer(HITS)
    assert reply.slips == ("withheld", "withheld")
    assert (reply.text, paths(reply)) == ("I'd rather not go into that right now.", set())


async def test_a_grounded_patient_tells_in_private_what_is_kept_back() -> None:
    model = Choosing("")
    role = guarded(model, "grounded")
    model._answers = [chosen(*ids(role, "husband"), reply="He hits me.")]
    reply = await role.answer(HITS, (ALONE,))
    assert (reply.text, reply.slips, paths(reply)) == ("He hits me.", (), {"Patient_Actor/History[1]"})


@pytest.mark.parametrize(("question", "slips"), [("How do you spend your evenings?", 1), ("Do you drink alcohol?", 0)])
async def test_a_grounded_patient_tells_only_if_asked_directly_what_needs_pressing(question: str, slips: int) -> None:
    model = Choosing("")
    role = guarded(model, "grounded")
    (wine,) = ids(role, "wine")
    model._answers = [chosen(wine, reply="I drink wine."), chosen(kind="unknown", reply="I couldn't say.")]
    reply = await role.answer(question)
    assert reply.slips == ("withheld",) * slips
    assert reply.text == ("I couldn't say." if slips else "I drink wine.")
