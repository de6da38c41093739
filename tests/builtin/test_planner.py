"""The builtin doctor as planner, discriminator and synthesis, with tools, and asked for its confidence."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import pytest

from agentclinic.builtin import Builtin
from agentclinic.builtin.doctor import think
from agentclinic.cases.model import Door
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.config import RunSettings, Settings
from agentclinic.doctors.plain import ConfidencePayload, StatedDifferential
from agentclinic.doctors.planner.payloads import DiscriminatorPayload, PlannerPayload
from agentclinic.doctors.planner.schema import Discriminators, PlannerReply, TableReply
from agentclinic.doctors.planner.table import Table
from agentclinic.doctors.uncertainty.synthesis import SynthesisPayload
from agentclinic.models.base import Purpose, Reply, Request, Tool
from agentclinic.results.record import Record
from agentclinic.results.turn import Exchange, Hypothesis, Source, as_differential
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play
from agentclinic.scoring.information import requests

DOOR = Door("Assess a patient with knee pain.", "60-year-old man")
KNEE = (
    Exchange(
        "question", "What brings you in?", "Sudden severe pain and swelling in one joint, my knee, since last night."
    ),
    Exchange("test", "Joint fluid analysis", "RESULTS: Crystals: needle-shaped, negatively birefringent crystals."),
)
TOOLS = (Tool("diagnosis_step", "", {}), Tool("final_diagnosis", "", {}))


def reply(payload: object, purpose: Purpose = Purpose.PLANNER, tools: tuple[Tool, ...] = ()) -> Reply:
    return anyio.run(Builtin().reply, Request(purpose, (), tools=tools, payload=payload))


def test_a_plan_has_as_many_hypotheses_and_findings_as_asked_for() -> None:
    plan = reply(PlannerPayload(DOOR, KNEE, min_findings=4, max_hypotheses=3)).parsed
    assert isinstance(plan, PlannerReply)
    assert len(plan.hypotheses) == 3
    assert all(len(hypothesis.findings) == 4 for hypothesis in plan.hypotheses)
    assert plan.hypotheses[0].diagnosis == "Gout"
    states = {finding.finding: finding.observed for finding in plan.hypotheses[0].findings}
    assert "present" in states.values(), "the crystals were reported"
    assert "unknown" in states.values(), "not everything was"


def test_with_a_table_it_adds_what_is_new_and_the_probabilities_are_near_its_own() -> None:
    table, payload = Table(), PlannerPayload(DOOR, (), min_findings=4, max_hypotheses=5, table=Table())
    for exchanges in ((), KNEE[:1], KNEE):
        plan = reply(replace(payload, exchanges=exchanges, table=table)).parsed
        assert isinstance(plan, TableReply)
        table, remarks = table.added(plan)
        assert remarks == []
    leader = table.ranked[0]
    assert leader.diagnosis == "Gout"
    own = think(DOOR, KNEE).differential.hypotheses[0]
    assert own.diagnosis == "Gout"
    assert leader.confidence == pytest.approx(own.probability, abs=0.05)
    again = reply(replace(payload, exchanges=KNEE, table=table)).parsed
    assert isinstance(again, TableReply)
    assert (again.hypotheses, again.ratings, again.observed) == ([], [], []), "nothing is new"


def discriminators(exchanges: tuple[Exchange, ...]) -> list[str]:
    named = ("Gout", "Septic arthritis")
    found = reply(DiscriminatorPayload(DOOR, exchanges, named), Purpose.DISCRIMINATOR).parsed
    assert isinstance(found, Discriminators)
    assert all(item.tells_apart == list(named) for item in found.discriminators)
    return [item.request for item in found.discriminators]


def test_discriminators_separate_the_named_hypotheses_and_are_not_repeated() -> None:
    first = discriminators(KNEE[:1])[0]
    assert first.startswith("REQUEST TEST: ")
    ordered = Exchange("test", first.removeprefix("REQUEST TEST: "), "RESULTS: not available.")
    again = discriminators((*KNEE[:1], ordered))
    assert again
    assert first not in again


def test_synthesis_uses_the_facts_alone() -> None:
    facts = (
        "60-year-old man with a hot swollen joint",
        "needle-shaped, negatively birefringent crystals in joint fluid",
    )
    assert reply(SynthesisPayload(facts), Purpose.SYNTHESIS).text == "Gout"


def test_with_tools_it_speaks_through_them() -> None:
    both = ("diagnosis_step", "final_diagnosis")
    asked = reply(DoctorPayload(DOOR, (), 1, 20, last=False, offered=both), Purpose.DOCTOR, TOOLS).tool_calls[0]
    arguments = json.loads(asked.arguments)
    assert asked.name == "diagnosis_step"
    assert arguments["next_step_action"].startswith("ASK PATIENT: ")
    assert len(arguments["current_uncertainties"]) == 4
    ready = reply(DoctorPayload(DOOR, KNEE, 20, 20, last=True, offered=both), Purpose.DOCTOR, TOOLS).tool_calls[0]
    assert json.loads(ready.arguments)["next_step_action"] == "DIAGNOSIS READY"
    assert "crystals" in json.loads(ready.arguments)["new_information"]
    only = reply(DoctorPayload(DOOR, KNEE, 20, 20, last=True, offered=both[1:]), Purpose.DOCTOR, TOOLS[1:]).tool_calls[
        0
    ]
    assert only.name == "final_diagnosis"


def test_it_says_how_sure_it_is() -> None:
    stated = reply(ConfidencePayload(DOOR, KNEE, "Gout"), Purpose.CONFIDENCE).parsed
    assert isinstance(stated, StatedDifferential)
    assert stated.hypotheses[0].diagnosis == "Gout"
    assert stated.hypotheses[0].probability > 0.5


def test_stated_probabilities_above_one_are_scaled_and_the_remainder_goes_to_other() -> None:
    sure = Hypothesis(diagnosis="Gout", probability=0.9)
    less = Hypothesis(diagnosis="Septic arthritis", probability=0.3)
    scaled, alone = as_differential(Source.ELICITED, [less, sure]), as_differential(Source.ELICITED, [less])
    assert scaled is not None
    assert alone is not None
    assert [h.probability for h in scaled.hypotheses] == pytest.approx([0.75, 0.25])
    assert scaled.other == 0
    assert alone.other == pytest.approx(0.7)


def test_the_confidence_question_is_outside_the_dialogue_and_is_not_a_turn() -> None:
    async def played(sure: bool) -> Record:
        plan = make_plan(Settings(run=RunSettings(scenarios="3", elicit_confidence=sure)))
        async with Models(plan.settings) as models:
            return await play(plan, plan.units[0], models)

    plain, asked = anyio.run(played, False), anyio.run(played, True)
    assert asked.num_turns == plain.num_turns
    assert (asked.doctor_hist, asked.final_doctor_dialogue) == (plain.doctor_hist, plain.final_doctor_dialogue)
    last = (asked.transcript or [])[-1]
    assert last.role == "confidence"
    assert requests(asked) == requests(plain), "the confidence question is not a question to the patient"
    assert asked.differential is not None
    assert asked.differential.source == "elicited"
