"""Language models as the laboratory: they choose, and code writes the results from the chart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes import Scripted
from simulator_support import CASE, Choosing, ids

from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Simulator
from agentclinic.clinic.prompts import load_prompt
from agentclinic.models.base import MalformedError, RefusedError
from agentclinic.results.turn import Provenance

pytestmark = pytest.mark.anyio


def laboratory(model: Scripted, simulator: Simulator, **more: Any) -> Laboratory:
    return Laboratory(CASE, model, load_prompt("measurement"), simulator=simulator, dialogue="chat", **more)


async def test_a_laboratory_that_lies_cannot_invent_a_value() -> None:
    model = Choosing("")
    role = laboratory(model, "grounded")
    (hemoglobin,) = ids(role, "Hemoglobin")
    model._answers = [json.dumps({"items": [hemoglobin], "not_in_chart": ["Hemoglobin 4.1 g/dL", "Troponin 900"]})]
    reply = await role.report("Complete blood count", "REQUEST TEST: Complete blood count")
    assert reply.text == "RESULTS: Complete Blood Count: Hemoglobin: 13.2 g/dL."
    assert reply.disclosures[0].provenance is Provenance.CHART
    assert reply.raw is not None


async def test_what_the_chart_lacks_is_reported_as_configured() -> None:
    answer = json.dumps({"items": [], "not_in_chart": ["Troponin"]})
    unavailable = await laboratory(Choosing(answer), "grounded").report("Troponin", "REQUEST TEST: Troponin")
    assert (unavailable.text, unavailable.disclosures[0].provenance) == (
        "RESULTS: Troponin not available.",
        Provenance.UNAVAILABLE,
    )
    normal = laboratory(Choosing(answer), "grounded", missing_test="normal")
    assert (await normal.report("Troponin", "REQUEST TEST: Troponin")).text == "RESULTS: NORMAL READINGS"


async def test_a_voiced_laboratory_asks_no_model_at_all() -> None:
    model = Scripted()
    reply = await laboratory(model, "voiced").report("Lipase", "REQUEST TEST: Lipase", turn=3)
    assert reply.text == "RESULTS: Lipase: 30 U/L."
    assert (model.requests, reply.turn) == ([], 3)
    assert reply.usage is not None
    assert reply.usage.requests == 0


@pytest.mark.parametrize("error", [MalformedError("broken", text="{"), RefusedError("declined")])
async def test_a_laboratory_model_that_does_not_choose_leaves_it_to_the_matcher(error: MalformedError) -> None:
    reply = await laboratory(Choosing(error), "grounded").report("Lipase", "REQUEST TEST: Lipase")
    assert reply.text == "RESULTS: Lipase: 30 U/L."
    assert reply.notes[0].startswith("chosen by the matcher: ")
    assert reply.slips == (error.kind,)
