"""Doctors in solvable worlds: the reference doctors, ours, and language models."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from scripted_server import ScriptedServer
from solvable_support import CHEST_PAIN, Saying, case_with, played, words

from agentclinic.cases.registry import load_cases
from agentclinic.doctors.solvable import CHOICES
from agentclinic.results.record import Record
from agentclinic.results.regret import Regret
from agentclinic.results.utterance import UNCLEAR
from agentclinic.worlds.menu import answers_text, menu_text
from agentclinic.worlds.model import BUNDLED, World, bundled, read_world
from agentclinic.worlds.solve import UNKNOWN, random_value, solution

pytestmark = pytest.mark.anyio

FEW, MANY = 50, 500


def regret_in(record: Record) -> Regret:
    assert record.regret is not None
    return record.regret


def bundled_world(name: str) -> World:
    return read_world(BUNDLED / f"{name}.json").in_order()


def within(values: Sequence[float], mean: float, errors: float = 3) -> bool:
    """Whether the mean of these is within so many standard errors of a number."""
    return abs(fmean(values) - mean) <= errors * stdev(values) / math.sqrt(len(values))


def check_identity(records: Sequence[Record]) -> None:
    for found in map(regret_in, records):
        assert found.best_value - found.utility == pytest.approx(found.regret + found.luck, abs=1e-9)
        assert found.regret == pytest.approx(math.fsum(turn.regret for turn in found.turns), abs=1e-9)
        assert min(turn.regret for turn in found.turns) > -1e-9


# --- reference doctors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", bundled())
async def test_the_optimal_doctor_has_no_regret_in_any_turn_and_earns_the_best_value(name: str, count: int) -> None:
    records = await played(f"Solvable:{name}", "optimal", num_scenarios=count)
    assert len(records) == count
    best = solution(bundled_world(name)).value((UNKNOWN,) * len(bundled_world(name).findings))
    for found in map(regret_in, records):
        assert {turn.kind for turn in found.turns} == {"best"}
        assert all(abs(turn.regret) < 1e-9 for turn in found.turns)
        assert abs(found.regret) < 1e-9
        assert found.best_value == pytest.approx(best, abs=1e-9)
        assert all(turn.action == turn.best for turn in found.turns)
    check_identity(records)
    assert within([regret_in(record).utility for record in records], best)
    assert within([regret_in(record).luck for record in records], 0)


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("doctor", ["greedy", "random_actions"])
async def test_other_doctors_have_regret_no_luck_on_average_and_an_exact_account(doctor: str, count: int) -> None:
    records = await played(CHEST_PAIN, doctor, num_scenarios=count)
    check_identity(records)
    assert fmean(regret_in(record).regret for record in records) > 1
    assert within([regret_in(record).luck for record in records], 0)
    if doctor == "random_actions":
        expected = random_value(bundled_world("chest-pain"))
        assert within([regret_in(record).utility for record in records], expected)


@pytest.mark.parametrize("name", bundled())
async def test_who_asks_everything_asks_each_item_once_and_then_answers_best(name: str) -> None:
    world = bundled_world(name)
    asked = {
        "ask_everything": list(world.findings),
        "checklist": [item for item, one in world.findings.items() if one.by != "test"],
    }
    for doctor, items in asked.items():
        records = await played(f"Solvable:{name}", doctor, num_scenarios=3)
        check_identity(records)
        for found in map(regret_in, records):
            assert [turn.action for turn in found.turns[:-1]] == items
            assert found.turns[-1].kind in ("best", "stopped_early"), "the best answer for what it knows"
            assert found.price == sum(world.findings[item].price for item in items)


async def test_all_states_of_reference_doctors_are_the_exact_posterior() -> None:
    for doctor in CHOICES:
        for record in await played(CHEST_PAIN, doctor, num_scenarios=5):
            assert all(turn.kl is not None and turn.kl < 1e-8 for turn in regret_in(record).turns)
            assert record.differential is not None
            assert record.differential.source == "posterior"
            (used,) = (record.usage or {}).values()
            assert set(used.values()) == {0}, "it asks no model"


async def test_reference_doctors_play_the_same_whether_or_not_the_numbers_are_shown_to_others() -> None:
    for doctor in CHOICES:
        shown, hidden = [
            [record.doctor_hist for record in await played(f"{CHEST_PAIN}{marks}", doctor, num_scenarios=10)]
            for marks in ("", ",hidden")
        ]
        assert shown == hidden


def test_a_doctor_that_acts_at_random_takes_each_unknown_thing_and_answering_with_the_same_chance() -> None:
    world, draws = bundled_world("chest-pain"), 5000
    solved = solution(world)
    known = solved.state({"Heartburn": True})
    chosen = Counter(CHOICES["random_actions"](solved, known, random.Random(seed)) for seed in range(draws))
    unknown = [name for name in world.findings if name != "Heartburn"]
    assert set(chosen) == {*unknown, *world.endings}
    share = draws / (len(unknown) + 1)
    expected = dict.fromkeys(unknown, share) | dict.fromkeys(world.endings, share / len(world.endings))
    squares = math.fsum((chosen[name] - e) ** 2 / e for name, e in expected.items())
    degrees, log = len(expected) - 1, math.log(1000)
    assert squares < degrees + 2 * math.sqrt(degrees * log) + 2 * log, "exceeded with a chance of 0.001 at most"


async def test_a_doctor_that_acts_at_random_is_drawn_by_the_seed_of_the_unit() -> None:
    first, second = [
        [words(record, "doctor") for record in await played(CHEST_PAIN, "random_actions", num_scenarios=5, repeats=2)]
        for _ in range(2)
    ]
    assert first == second
    assert first[:5] != first[5:], "repeats differ"


# --- every other doctor -------------------------------------------------------------------------------------------

OURS: dict[str, dict[str, Any]] = {
    "plain": {},
    "uncertainty": {"doctor": "uncertainty"},
    "separate policy": {"doctor_test_policy_enabled": True},
    "inline policy": {"doctor_test_policy_enabled": True, "doctor_test_policy_mode": "inline"},
    "uncertainty with a policy": {"doctor": "uncertainty", "doctor_test_policy_enabled": True},
    "elicited confidence": {"elicit_confidence": True},
    "transcript": {"dialogue": "transcript"},
    "custom class": {"doctor": Saying("Heartburn?", "DIAGNOSIS READY: GERD")},
    **{name: {"doctor": name} for name in CHOICES},
}


@pytest.mark.parametrize("marks", ["", ",invented,hidden"])
@pytest.mark.parametrize("given", OURS.values(), ids=OURS)
async def test_every_doctor_plays_a_world_to_the_end_and_has_its_regret(given: dict[str, Any], marks: str) -> None:
    records = await played(f"{CHEST_PAIN}{marks}", num_scenarios=4, **given)
    assert {record.status for record in records} == {"diagnosed"}
    check_identity(records)
    if not (isinstance(given.get("doctor"), Saying) and marks):
        assert all(regret_in(record).ending for record in records)


async def test_elicited_confidence_is_a_belief_on_the_last_turn() -> None:
    (record,) = await played(elicit_confidence=True)
    assert "confidence" in {turn.role for turn in record.transcript or ()}
    assert len(regret_in(record).turns) == record.num_turns


STEP = {
    "new_information": "Heartburn: yes.",
    "current_uncertainties": [{"diagnosis": "GERD", "probability": 0.9, "reason": "typical"}],
    "next_step_action": "DIAGNOSIS READY",
}
ASK = {**STEP, "new_information": "The patient has chest pain.", "next_step_action": "ASK PATIENT: Sweating?"}
LINES = ["Sweating?", "REQUEST TEST: Troponin", "DIAGNOSIS READY: Acute myocardial infarction"]


def texts(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False).replace("\\n", "\n")


async def test_a_language_model_is_told_the_menu_and_its_words_count(server: ScriptedServer) -> None:
    server.control(doctor=LINES)
    (record,) = await played(doctor_llm="scripted", base_url=server.base_url)
    assert (record.status, record.num_turns) == ("diagnosed", 3)
    assert [turn.action for turn in regret_in(record).turns] == ["Sweating", "Troponin", "Acute myocardial infarction"]
    check_identity([record])
    assert {entry["purpose"] for entry in server.log()} == {"doctor"}, "no one else asks a model"
    menu = load_cases(CHEST_PAIN, count=1)[0].door.menu
    assert menu is not None
    for body in server.bodies():
        assert menu_text(menu) in texts(body)


async def test_a_recorded_run_is_replayed_to_the_same_regret(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(doctor=LINES)
    recording = tmp_path / "recording.jsonl"
    given: dict[str, Any] = {"num_scenarios": 3}
    first = await played(doctor_llm="scripted", base_url=server.base_url, record=str(recording), **given)
    before = len(server.log())
    again = await played(doctor_llm=f"replay:{recording}", **given)
    assert [record.regret for record in again] == [record.regret for record in first]
    assert len(server.log()) == before


async def test_the_prompt_is_the_same_for_cases_that_differ_only_in_disease_and_findings(
    server: ScriptedServer,
) -> None:
    server.control(doctor=["DIAGNOSIS READY: Panic disorder"])
    for given in ({}, {"doctor": "uncertainty", "synthesis_llm": "builtin"}, {"doctor_test_policy_enabled": True}):
        before = len(server.log())
        cases = [case_with("Panic disorder"), case_with("Aortic dissection", {"Tearing pain": True, "D-dimer": True})]
        first_requests = []
        for case in cases:
            start = len(server.log())
            await played(CHEST_PAIN, cases=[case], doctor_llm="scripted", base_url=server.base_url, **given)
            first_requests.append(server.log()[start]["body"])
        assert len(server.log()) > before
        assert json.dumps(first_requests[0]) == json.dumps(first_requests[1])


def with_other_numbers(folder: Path) -> str:
    """The same world with another prior and another table, as a data set."""
    data = json.loads((BUNDLED / "chest-pain.json").read_text())
    priors = [disease["prior"] for disease in data["diseases"].values()]
    for disease, prior in zip(data["diseases"].values(), reversed(priors), strict=True):
        disease["prior"] = prior
    for finding in data["findings"].values():
        finding["probability"] = {name: 0.9 * (1 - p) + 0.05 for name, p in finding["probability"].items()}
    path = folder / "chest-pain.json"
    path.write_text(json.dumps(data))
    return f"Solvable:{path}"


async def test_nothing_that_a_language_model_is_sent_depends_on_a_hidden_table_or_on_the_disease(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Two worlds with the same names: as long as the answers are the same, so is every byte that is sent."""
    asked = ["Sweating?", "Hm.", "REQUEST IMAGES", "REQUEST TEST: ECG", "DIAGNOSIS READY: GERD or panic disorder"]
    other = with_other_numbers(tmp_path)
    ways: list[dict[str, Any]] = [
        {},
        {"doctor": "uncertainty"},
        {"doctor_test_policy_enabled": True},
        {"doctor_test_policy_enabled": True, "doctor_test_policy_mode": "inline"},
        {"elicit_confidence": True},
    ]
    purposes: set[str] = set()
    for marks, same in ((",hidden", True), ("", False)):
        for given in ways:
            sent = []
            for case in (
                case_with("Aortic dissection", {"Tearing pain": True}, f"{CHEST_PAIN}{marks}"),
                case_with("Panic disorder", {"Palpitations": True}, f"{other}{marks}"),
            ):
                server.reset()
                server.control(doctor=asked, **({"steps": [ASK, STEP]} if "doctor" in given else {}))
                await played(CHEST_PAIN, cases=[case], doctor_llm="scripted", base_url=server.base_url, **given)
                sent.append([re.sub(r"call_\d+", "call", json.dumps(body)) for body in server.bodies()])
                purposes |= {entry["purpose"] for entry in server.log()}
            assert (sent[0] == sent[1]) is same
            assert len(sent[0]) > 1
    assert purposes == {"doctor", "planner", "synthesis", "confidence"}


async def test_a_diagnosis_that_names_two_diseases_is_asked_for_once_more(server: ScriptedServer) -> None:
    server.control(doctor=["DIAGNOSIS READY: GERD or panic disorder", "Panic disorder"])
    (record,) = await played(doctor_llm="scripted", base_url=server.base_url, cases=[case_with("Panic disorder")])
    assert len(server.log()) == 2
    assert (record.correct, regret_in(record).ending) == (True, "Panic disorder")
    assert UNCLEAR in (record.transcript or [])[-1].slips
    server.reset()
    server.control(doctor=["DIAGNOSIS READY: Gout", "Gout, I said"])
    (record,) = await played(doctor_llm="scripted", base_url=server.base_url)
    assert len(server.log()) == 2, "asked once only"
    assert (regret_in(record).ending, regret_in(record).turns[-1].kind) == (None, "no_answer")
    server.reset()
    server.control(doctor=["DIAGNOSIS READY: DEFER"])
    (record,) = await played(doctor_llm="scripted", base_url=server.base_url)
    assert (len(server.log()), regret_in(record).ending) == (1, "DEFER")


@pytest.mark.parametrize("marks", ["", ",hidden"])
async def test_the_synthesis_is_told_the_possible_diseases(server: ScriptedServer, marks: str) -> None:
    server.control(steps=[STEP], synthesis="GERD")
    dataset = f"{CHEST_PAIN}{marks}"
    (record,) = await played(dataset, "uncertainty", doctor_llm="scripted", base_url=server.base_url)
    (asked,) = [entry["body"] for entry in server.log() if entry["purpose"] == "synthesis"]
    menu = load_cases(dataset, count=1)[0].door.menu
    assert menu is not None
    assert answers_text(menu) in texts(asked)
    assert "How common each is" in texts(asked) or marks
    assert regret_in(record).ending == "Gastroesophageal reflux disease"


async def test_a_synthesis_that_names_two_diseases_is_asked_once_for_one_name(server: ScriptedServer) -> None:
    two = {"match": {"purpose": "synthesis", "nth": 1}, "reply": "GERD or panic disorder"}
    server.control(steps=[STEP], rules=[two], synthesis="Panic disorder")
    (record,) = await played(CHEST_PAIN, "uncertainty", doctor_llm="scripted", base_url=server.base_url)
    assert sum(entry["purpose"] == "synthesis" for entry in server.log()) == 2
    assert regret_in(record).ending == "Panic disorder"
