"""A laboratory with limits: what its setting offers, the money for tests, and how many items an order may have."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from fakes import Scripted
from simulator_support import CASE, Choosing, ids

from agentclinic.cases.completion import completion
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.laboratory import Laboratory, matched, results_line
from agentclinic.clinic.limits import Limits
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.prompts import load_prompt
from agentclinic.models.base import Request
from agentclinic.results.turn import Charge, Provenance, Turn
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.settings import settings

pytestmark = pytest.mark.anyio
PRICES = {"Complete blood count": 8.0, "Serum lipase": 7.0, "MRI brain": 410.0, "Cardiac troponin": 13.0}


def price(name: str) -> tuple[str, float]:
    return name, PRICES.get(name, 0.0)


def limited(setting: str | None = None, **limits: Any) -> Limits:
    return Limits(price, settings()[setting] if setting else None, **limits)


def laboratory(limits: Limits, case: Case = CASE, **more: Any) -> Laboratory:
    given = {"simulator": "voiced", "dialogue": "chat", "missing_test": "completed", "pending_results": True, **more}
    model = given.pop("model", None) or Scripted()
    if limits.setting:
        case = replace(case, annotations={**case.annotations, "setting": limits.setting.name})
    return Laboratory(case, model, load_prompt("measurement"), limits=limits, **given)


async def said(order: str, limits: Limits, **more: Any) -> str:
    return (await laboratory(limits, **more).report(order, f"REQUEST TEST: {order}")).text.removeprefix("RESULTS: ")


def charged(turn: Turn) -> Mapping[str, float | None]:
    """What was charged; None for what was refused."""
    return {charge.name: None if charge.refused else charge.usd for charge in turn.charges}


# --- money and items --------------------------------------------------------------------------------------------------


async def test_items_are_done_in_their_order_until_the_money_is_spent() -> None:
    role = laboratory(limited(budget=20))
    reply = await role.report("CBC, troponin, lipase", "REQUEST TEST: CBC, troponin, lipase", turn=4)
    assert "Hemoglobin: 13.2 g/dL" in reply.text
    assert "Lipase: 30 U/L." in reply.text, "it is cheap enough, although what came before was not"
    assert "Cardiac troponin ($13): not done, only $12 is left." in reply.text
    assert reply.text.endswith(" Left for tests: $5 of $20.")
    assert charged(reply) == {"Complete blood count": 8.0, "Serum lipase": 7.0, "Cardiac troponin": None}
    refused = [part.topic for part in reply.disclosures if part.provenance is Provenance.REFUSED]
    assert refused == ["Cardiac troponin"]


async def test_a_test_is_charged_once_as_in_scoring() -> None:
    role = laboratory(limited(budget=10))
    for expected in ({"Complete blood count": 8.0}, {"Complete blood count": 0.0}):
        reply = await role.report("CBC", "REQUEST TEST: CBC")
        assert charged(reply) == expected
        assert reply.text.endswith("Left for tests: $2 of $10.")


async def test_when_nothing_is_left_only_examinations_are_done() -> None:
    limits = limited(budget=0)
    assert await said("lipase", limits) == "Serum lipase ($7): not done, no money is left. Left for tests: $0 of $0."
    assert (await said("heart rate", limits)).startswith("Vital Signs: Heart Rate: 78/min.")


async def test_what_an_order_names_beyond_the_limit_is_refused_by_name() -> None:
    reply = await said("CBC, lipase, troponin, ESR and ferritin", limited(items=3))
    assert reply.endswith("Only 3 items an order: Erythrocyte sedimentation rate, ferritin not done.")
    assert "Troponin: " in reply
    assert (await said("CBC and lipase", limited(items=1))).endswith("Only 1 item an order: Serum lipase not done.")


async def test_what_is_listed_in_brackets_after_a_test_counts_with_it() -> None:
    reply = await said("Lumbar puncture (opening pressure, cell count, protein), troponin", limited(items=2))
    assert "Troponin: " in reply
    assert "an order" not in reply


async def test_an_order_for_all_blood_tests_is_not_carried_out_for_the_price_of_one() -> None:
    assert (
        await said("blood tests", limited(budget=50))
        == "Blood tests: please name the tests. Left for tests: $50 of $50."
    )


async def test_without_limits_nothing_is_charged_or_said() -> None:
    role = Laboratory(CASE, Scripted(), load_prompt("measurement"), simulator="voiced", dialogue="chat")
    reply = await role.report("Lipase", "REQUEST TEST: Lipase")
    assert (reply.text, reply.charges, role.may_order) == ("RESULTS: Lipase: 30 U/L.", (), None)
    assert "charges" not in reply.model_dump(), "records of such runs are as before"


def test_a_turn_with_charges_can_be_read_back_and_so_can_one_of_an_older_version() -> None:
    turn = Turn(turn=1, role="measurement", text="", charges=(Charge("CBC", 8.0), Charge("MRI", refused=True)))
    written = json.loads(turn.model_dump_json())
    assert Turn.model_validate(written) == turn
    del written["charges"]
    assert Turn.model_validate(written).charges == ()


async def test_what_is_not_in_the_chart_costs_nothing() -> None:
    reply = await laboratory(limited(budget=50), missing_test="unavailable").report(
        "Troponin", "REQUEST TEST: Troponin"
    )
    assert reply.text == "RESULTS: Cardiac troponin not available. Left for tests: $50 of $50."
    assert reply.charges == ()


# --- what a doctor without prompts may order --------------------------------------------------------------------------


async def test_a_doctor_can_ask_whether_an_order_would_be_carried_out() -> None:
    role = laboratory(limited(budget=10, items=2))
    assert role.may_order
    assert role.may_order("CBC")
    assert not role.may_order("MRI brain")
    assert not role.may_order("CBC and lipase"), "together they cost too much"
    assert not role.may_order("heart rate, temperature and blood pressure"), "too many"
    await role.report("lipase", "REQUEST TEST: lipase")
    assert not role.may_order("CBC"), "only $3 is left"
    assert not Limits(price, settings()["telephone"]).would_do("heart rate")


# --- settings ---------------------------------------------------------------------------------------------------------

CT = Fact("Test_Results/CT_Head", Section.TESTS, ("CT Head", "Findings"), "3 cm mass in the left frontal lobe")
WITH_CT = replace(CASE, facts=(*CASE.facts, CT))


@pytest.mark.parametrize("order", ["heart rate", "CBC, lipase and CT head", "blood tests", "physical examination"])
async def test_on_the_telephone_every_order_gets_the_same_line(order: str) -> None:
    line = "This is a telephone consultation: nothing can be examined or tested."
    assert await said(order, limited("telephone", budget=300, items=1)) == line
    assert limited("telephone", budget=300, items=1).told == line


@pytest.mark.parametrize("missing", ["completed", "unavailable", "normal"])
async def test_what_a_setting_does_not_offer_is_refused_by_name_and_each_item_has_its_reply(missing: str) -> None:
    order = "heart rate, CT head and hemoglobin"
    reply = await said(order, limited("rural clinic"), case=WITH_CT, missing_test=missing)
    assert "Heart Rate: 78/min" in reply
    assert "Hemoglobin: 13.2 g/dL" in reply
    assert reply.endswith("CT head: not available in this setting.")
    assert "mass" not in reply


async def test_a_panel_is_done_in_part_and_what_is_missing_is_said() -> None:
    role = laboratory(limited("rural clinic"))
    reply = await role.report("CBC", "REQUEST TEST: CBC")
    assert reply.text == (
        "RESULTS: Complete Blood Count: Hemoglobin: 13.2 g/dL. "
        "Complete blood count: of this, only hemoglobin can be done in this setting."
    )
    assert [charge.name for charge in reply.charges] == ["hemoglobin"]


async def test_parts_of_one_report_that_are_not_offered_are_named() -> None:
    reply = await said("lumbar puncture with culture and HSV PCR", limited("district hospital"))
    assert "Gram Stain: " in reply
    assert reply.endswith(
        "Spinal fluid culture: not available in this setting. HSV PCR: not available in this setting."
    )


@pytest.mark.parametrize(
    ("setting", "order", "done"),
    [
        ("rural clinic", "blood sugar", True),
        ("rural clinic", "urine pregnancy test", True),
        ("rural clinic", "thick and thin blood film", True),
        ("rural clinic", "RPR", True),
        ("rural clinic", "sputum AFB", True),
        ("rural clinic", "visual acuity", True),
        ("rural clinic", "mini mental state examination", True),
        ("rural clinic", "pulse oximetry", True),
        ("rural clinic", "ECG", False),
        ("rural clinic", "creatinine", False),
        ("rural clinic", "sputum culture", False),
        ("rural clinic", "chest X-ray", False),
        ("rural clinic", "slit lamp", False),
        ("district hospital", "CMP", True),
        ("district hospital", "INR", True),
        ("district hospital", "X-ray of the left hip", True),
        ("district hospital", "renal ultrasound", True),
        ("district hospital", "obstetric ultrasound", True),
        ("district hospital", "bedside echocardiogram", True),
        ("district hospital", "hepatitis B surface antigen", True),
        ("district hospital", "echocardiogram", False),
        ("district hospital", "leg vein ultrasound", False),
        ("district hospital", "arterial blood gas", False),
        ("district hospital", "lactate", False),
        ("district hospital", "D-dimer", False),
        ("district hospital", "troponin", False),
        ("district hospital", "TSH", False),
        ("district hospital", "CSF culture", False),
        ("district hospital", "upper endoscopy", False),
    ],
)
async def test_what_is_offered_where(setting: str, order: str, done: bool) -> None:
    reply = await said(order, limited(setting))
    assert ("not available in this setting" not in reply) is done, reply


async def test_a_setting_has_its_own_times() -> None:
    assert await said("blood cultures", limited("district hospital")) == "Blood cultures: taken, result pending."
    assert await said("syphilis serology", limited("rural clinic")) == "Syphilis Serology: Non-reactive."


async def test_a_test_that_a_setting_has_is_not_answered_by_one_that_it_has_not() -> None:
    mass = Fact("Test_Results/CT_Chest", Section.TESTS, ("CT Chest", "Findings"), "3 cm mass in the left upper lobe")
    case = replace(CASE, facts=(*CASE.facts, mass))
    assert "mass" in await said("chest X-ray", limited(budget=500), case=case)
    assert "mass" not in await said("chest X-ray", limited("district hospital"), case=case)


OPEN = load_cases("OpenOSCE", {})


@pytest.mark.parametrize("setting", ["rural clinic", "district hospital"])
def test_what_can_be_ordered_depends_on_the_setting_and_never_on_the_case(setting: str) -> None:
    """Each test in three patients of the same kind: done or refused alike, whatever their charts hold."""
    limits, draw, odd = limited(setting), random.Random(0), {}
    kinds = defaultdict(list)
    for case in OPEN:
        kinds[completion(case).not_offered].append(case)
    largest = sorted(kinds.values(), key=len)[-4:]

    def refused(case: Case, name: str) -> bool:
        payload = LaboratoryPayload(
            case.exam_facts, name, "completed", completion(case), settings()[setting].hours, limits
        )
        _, disclosures = results_line(matched(payload), payload)
        return all(part.provenance in (Provenance.REFUSED, Provenance.UNAVAILABLE) for part in disclosures)

    for place, test in enumerate(knowledge().tests.values()):
        found = {refused(case, test.name) for case in draw.sample(largest[place % 4], 3)}
        if len(found) > 1:
            odd[test.name] = found
    assert odd == {}


# --- language models as laboratories ----------------------------------------------------------------------------------


async def test_a_grounded_laboratory_cannot_choose_what_its_setting_has_not() -> None:
    model = Choosing("")
    role = laboratory(limited("rural clinic"), case=WITH_CT, model=model, simulator="grounded")
    assert ids(role, "CT Head") == []
    (hemoglobin,) = ids(role, "Hemoglobin")
    model._answers = [json.dumps({"items": [hemoglobin], "not_in_chart": []})]
    reply = await role.report("hemoglobin and CT head", "REQUEST TEST: hemoglobin and CT head")
    assert reply.text == (
        "RESULTS: Complete Blood Count: Hemoglobin: 13.2 g/dL. CT head: not available in this setting."
    )


def last_message(request: Request) -> str:
    return request.messages[-1].content


async def test_a_laboratory_that_writes_what_it_likes_hears_only_of_what_is_done() -> None:
    model = Scripted("Lipase 30 U/L.")
    role = laboratory(limited(budget=20), model=model, simulator="free")
    reply = await role.report("lipase and MRI brain", "I want REQUEST TEST: lipase and MRI brain")
    assert last_message(model.requests[0]) == "REQUEST TEST: Serum lipase"
    assert reply.text == (
        "RESULTS: Lipase 30 U/L. MRI brain ($410): not done, only $13 is left. Left for tests: $13 of $20."
    )
    assert charged(reply) == {"Serum lipase": 7.0, "MRI brain": None}
    again = await role.report("MRI brain", "REQUEST TEST: MRI brain")
    assert len(model.requests) == 1, "nothing is left to ask the model about"
    assert again.usage is not None
    assert again.usage.requests == 0


async def test_a_free_laboratory_within_its_limits_hears_the_doctors_own_words() -> None:
    model = Scripted("Lipase 30 U/L.")
    await laboratory(limited(budget=20), model=model, simulator="free").report("lipase", "Please REQUEST TEST: lipase")
    assert last_message(model.requests[0]) == "Please REQUEST TEST: lipase"
