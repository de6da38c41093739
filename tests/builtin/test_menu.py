"""The builtin doctor in a solvable world: with the table, with its own knowledge, and without any."""

from __future__ import annotations

import math

import pytest
from solvable_support import CHEST_PAIN, played

from agentclinic.builtin.beliefs import beliefs
from agentclinic.builtin.menu import evidence_in, facts_in, known_in
from agentclinic.builtin.planner import synthesize
from agentclinic.cases.registry import load_cases
from agentclinic.doctors.uncertainty.synthesis import SynthesisPayload
from agentclinic.results.turn import Exchange
from agentclinic.vocabulary.base import shipped
from agentclinic.worlds.model import World, bundled

pytestmark = pytest.mark.anyio


def menu_of(dataset: str) -> World:
    (case,) = load_cases(dataset, count=1)
    assert case.door.menu is not None
    return case.door.menu


@pytest.mark.parametrize("marks", ["", ",invented"])
@pytest.mark.parametrize("name", bundled())
async def test_with_the_table_it_states_the_exact_posterior_on_every_turn(name: str, marks: str) -> None:
    records = await played(f"Solvable:{name}{marks}", num_scenarios=10)
    turns = [turn for record in records if record.regret for turn in record.regret.turns]
    assert len(turns) > 30, "it asks before it commits"
    assert all(turn.stated is not None and turn.kl is not None and turn.kl < 1e-6 for turn in turns)


async def test_without_the_table_it_uses_its_own_numbers_for_the_names_it_knows() -> None:
    menu = menu_of(f"{CHEST_PAIN},hidden")
    known = known_in(menu)
    infarction = shipped().disease_named("Acute myocardial infarction")
    embolism = shipped().disease_named("Pulmonary embolism")
    assert infarction is not None
    assert embolism is not None
    assert known.diseases["Acute myocardial infarction"].prior == infarction.prior
    own = {link.finding: link.p for link in known.diseases["Acute myocardial infarction"].links}
    shown = {name: one.probability or {} for name, one in menu_of(CHEST_PAIN).findings.items()}
    assert any(own[name] != pytest.approx(p["Acute myocardial infarction"]) for name, p in shown.items())
    assert len(set(own.values())) > 3, "it knows something"
    records = await played(f"{CHEST_PAIN},hidden", num_scenarios=10)
    turns = [turn for record in records if record.regret for turn in record.regret.turns]
    assert all(turn.kl is not None and turn.kl > 1e-3 for turn in turns), "its own numbers are not the world's"
    assert {record.status for record in records} == {"diagnosed"}
    assert len(turns) > 30, "it asks before it commits"


@pytest.mark.parametrize("name", bundled())
async def test_without_the_table_and_under_invented_names_it_knows_nothing_and_commits_at_once(name: str) -> None:
    records = await played(f"Solvable:{name},invented,hidden", num_scenarios=5)
    for record in records:
        assert record.regret is not None
        (turn,) = record.regret.turns
        assert turn.stated is not None
        even = 1 / len(turn.stated)
        assert list(turn.stated.values()) == pytest.approx([even] * len(turn.stated), abs=1e-6)
        exact = turn.posterior.values()
        assert turn.kl == pytest.approx(math.fsum(p * math.log(p / even) for p in exact), abs=1e-4)


@pytest.mark.parametrize("marks", ["", ",hidden", ",invented"])
def test_nothing_beyond_the_menu_is_possible(marks: str) -> None:
    menu = menu_of(f"{CHEST_PAIN}{marks}")
    known = known_in(menu)
    assert (set(known.diseases), set(known.findings)) == (set(menu.diseases), set(menu.findings))
    assert set(known.tests) == {name for name, one in menu.findings.items() if one.by != "question"}
    posterior = beliefs(known).posterior("", {})
    assert posterior[:-1].sum() == pytest.approx(1)
    assert posterior[-1] < 1e-9


def test_only_exact_answers_are_evidence() -> None:
    menu = menu_of(CHEST_PAIN)
    said = [
        Exchange("question", "Heartburn?", "Heartburn: yes."),
        Exchange("test", "Troponin", "RESULTS: Troponin: normal."),
        Exchange("question", "Sweating and more", "Perhaps some sweating: yes."),
    ]
    assert evidence_in(menu, said) == {"Heartburn": True, "Troponin": False}


def test_answers_are_read_from_the_notes_of_a_doctor_too() -> None:
    """What a planner asks is noted with the question and who answered it."""
    menu = menu_of(CHEST_PAIN)
    facts = (
        "Patient: An adult with chest pain in the emergency department; Objective: Find out.",
        "Heartburn? Patient: Heartburn: yes.",
        "Troponin Measurement: RESULTS: Troponin: normal.",
        "Palpitations: no.",
    )
    assert facts_in(menu, facts) == {"Heartburn": True, "Troponin": False, "Palpitations": False}
    assert synthesize(SynthesisPayload(facts, menu)).text == "Gastroesophageal reflux disease"


async def test_prices_of_the_menu_decide_what_counts_as_cheap() -> None:
    levels = {name: test.cost_level for name, test in known_in(menu_of(CHEST_PAIN)).tests.items()}
    assert (levels["Electrocardiogram"], levels["CT angiography of the aorta"]) == ("low", "medium")


async def test_it_never_asks_for_the_same_thing_twice() -> None:
    for record in await played("Solvable:headache", num_scenarios=20):
        assert record.regret is not None
        actions = [turn.action for turn in record.regret.turns]
        assert len(set(actions)) == len(actions)
        assert "wasted" not in {turn.kind for turn in record.regret.turns}
