"""Rewards: each part against a value worked out by hand, sums, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from helpers import osce, write_rows

from agentclinic.envs.episode import Episode, open_clinic
from agentclinic.envs.rewards import PARTS, REWARDS, reward_of
from agentclinic.errors import ConfigError

ROW = osce(
    truth="Gout",
    patient={"Demographics": "60-year-old man", "History": "The patient has had a painful toe since last night."},
    tests={"Uric_Acid": "9.1 mg/dL", "Troponin": "2 ng/L"},
    Key_Findings=[
        {"any_of": ["Test_Results/Uric_Acid"], "weight": 3},
        {"any_of": ["Test_Results/Troponin"], "weight": 1},
    ],
)
EVERY = {name: 1.0 for name, part in PARTS.items() if not part.world}


def after(path: Path | str, *said: str, differential: dict[str, float] | None = None, reward: Any = None) -> Episode:
    """An episode in which the doctor said these words; the differential belongs to the last."""
    clinic = open_clinic(str(path), reward)
    episode = Episode(clinic, clinic.unit(0, 0))
    for words in said:
        episode.say(words, differential if words is said[-1] else None)
    return episode


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "cases.jsonl", ROW)


@pytest.mark.parametrize(
    ("said", "differential", "worth"),
    [
        # Uric acid costs $5; two of 20 turns; 3 of 4 by weight; certain and right.
        (["REQUEST TEST: uric acid", "DIAGNOSIS READY: Gout"], None, (1, 1, 1, 0.75, -0.005, -0.1, 0)),
        # 1 - (0.4² + 0.4²)
        (["DIAGNOSIS READY: Gout"], {"Gout": 0.6, "Cellulitis": 0.4}, (1, 1, 0.68, 0, 0, -0.05, 0)),
        # 1 - (1² + 1²)
        (["DIAGNOSIS READY: Cellulitis"], None, (0, 0, -1, 0, 0, -0.05, 0)),
        # The diagnosis is wrong and the differential is not: 1 - (0.3² + 0.3²)
        (["DIAGNOSIS READY: Cellulitis"], {"Gout": 0.7, "Cellulitis": 0.3}, (0, 0, 0.82, 0, 0, -0.05, 0)),
        # Two slips, of 20: nothing, and the same again.
        (["Where is the pain?", "", "Where is the pain?", "DIAGNOSIS READY: Gout"], None, (1, 1, 1, 0, 0, -0.2, -0.1)),
        # $13 + $5, and no diagnosis: the turns are charged as if all had been taken, and nothing counts as found.
        (["REQUEST TEST: troponin", "REQUEST TEST: uric acid"], None, (0, 0, -1, 0, -0.018, -1, 0)),
        ([], None, (0, 0, -1, 0, 0, -1, 0)),
        # It cannot be read as one disease.
        (["DIAGNOSIS READY: something rheumatic, see my note"], None, (0, 0, -1, 0, 0, -1, 0)),
    ],
)
def test_the_parts_are_worth_what_the_page_says(
    cases: Path, said: list[str], differential: dict[str, float] | None, worth: tuple[float, ...]
) -> None:
    episode = after(cases, *said, differential=differential, reward=EVERY)
    episode.record()
    names = ("right", "lenient", "proper", "key_findings", "price", "turns", "slips")
    assert episode.rewards() == pytest.approx(dict(zip(names, worth, strict=True)), abs=1e-9)


def test_a_broader_name_is_right_by_the_lenient_rule_only(tmp_path: Path) -> None:
    cases = write_rows(
        tmp_path / "cases.jsonl", osce(truth="Bacterial pneumonia", Answer_Key={"partial": ["Pneumonia"]})
    )
    parts = after(cases, "DIAGNOSIS READY: Pneumonia", reward={"right": 1, "lenient": 1}).rewards()
    assert parts == {"right": 0, "lenient": 1}


def test_weights_multiply_and_parts_of_weight_zero_are_off(cases: Path) -> None:
    reward = {"right": 2, "price": 10, "turns": 0}
    parts = after(cases, "REQUEST TEST: uric acid", "DIAGNOSIS READY: Gout", reward=reward).rewards()
    assert parts == pytest.approx({"right": 2, "price": -0.05})


def test_the_users_own_prices_count(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cases.parent)
    Path("prompts").mkdir()
    known = {"name": "Uric acid", "cost_min": 100, "cost_max": 300, "duration_min": 1, "wait_min": 1}
    Path("prompts/measurement_cost.json").write_text(json.dumps({"known_costs": [known]}), encoding="utf-8")
    for said in (["REQUEST TEST: uric acid"], ["REQUEST TEST: uric acid", "DIAGNOSIS READY: Gout"]):
        assert after(cases, *said, reward={"right": 1, "price": 1}).rewards()["price"] == -0.2


def test_the_rewards_of_the_steps_add_up_and_the_truth_is_paid_at_the_end(cases: Path) -> None:
    said = ["Where is the pain?", "", "REQUEST TEST: troponin", "REQUEST TEST: troponin", "DIAGNOSIS READY: Gout"]
    episode, steps = after(cases, reward=EVERY), []
    for words in said:
        before = math.fsum(episode.rewards().values())
        assert episode.rewards().keys() == {"price", "turns", "slips"}, "nothing that depends on the truth"
        episode.say(words)
        steps.append(math.fsum(episode.rewards().values()) - before)
    assert steps == pytest.approx([-0.05, -0.1, -0.063, -0.1, 3.2])  # a test is charged once; saying it again is a slip
    assert math.fsum(steps) == pytest.approx(math.fsum(episode.rewards().values()))


# --- worlds -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> str:
    """A world in which nothing says anything: the best play is to name the most common disease at once."""
    diseases = {"Alder fever": 0.5, **{f"{name} fever": 0.1 for name in "Birch Cedar Elm Fir Hazel".split()}}
    findings = {
        f"{name} sign": {"by": "test", "price": 10, "minutes": 3, "probability": dict.fromkeys(diseases, 0.5)}
        for name in "Ash Beech Larch Linden Maple Oak Pine Rowan".split()
    }
    path = tmp_path / "dull.json"
    given = {
        "name": "dull",
        "title": "Nothing helps",
        "patient": "A patient",
        "objective": "Find out.",
        "diseases": {name: {"prior": prior} for name, prior in diseases.items()},
        "findings": findings,
        "utilities": {"right": 100, "wrong": 0, "deferred": 20, "no_answer": -10},
        "costs": {"dollar": 0.1, "minute": 0.5, "turn": 2},
    }
    path.write_text(json.dumps(given))
    return f"Solvable:{path}"


@pytest.mark.parametrize(
    ("said", "utility", "regret"),
    [
        ([], -10, 50 + 10),  # the best play is worth 50
        (["DIAGNOSIS READY: DEFER"], 20, 30),
        (["DIAGNOSIS READY: Birch fever"], 0, 40),
        (["DIAGNOSIS READY: Alder fever"], None, 0),
        (["REQUEST TEST: Oak sign", "DIAGNOSIS READY: DEFER"], 20 - 4.5, 4.5 + 30),  # 10 x 0.1 + 3 x 0.5 + 2
        (["How are you?", "DIAGNOSIS READY: DEFER"], 20 - 2, 2 + 30),
    ],
)
def test_the_rewards_of_a_world_are_its_points(
    world: str, said: list[str], utility: float | None, regret: float
) -> None:
    truth = open_clinic(world).unit(0, 0).case.diagnosis
    assert truth != "Birch fever", "the table has it as a wrong answer"
    for reward, worth in (
        ("utility", 100.0 * (truth == "Alder fever") if utility is None else utility),
        ("regret", -regret),
    ):
        episode = after(world, *said, reward=reward)
        episode.record()
        assert episode.rewards() == pytest.approx({reward: worth})


def test_regret_is_paid_after_every_turn_and_utility_at_the_end(world: str) -> None:
    episode, earned = after(world, reward="regret"), []
    for words in ("How are you?", "REQUEST TEST: Oak sign", "REQUEST TEST: Oak sign", "DIAGNOSIS READY: Birch fever"):
        episode.say(words)
        earned.append(episode.rewards()["regret"])
    assert earned == pytest.approx([-2, -6.5, -11, -51])
    assert after(world, "How are you?").rewards() == {}


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "world", "said"),
    [
        ("rigth", False, "there is no reward 'rigth'; did you mean 'right'"),
        ({"rigth": 1}, False, "there is no part 'rigth'; did you mean 'right'"),
        ({"right": -1}, False, "numbers from 0 up"),
        ({"right": math.nan}, False, "numbers from 0 up"),
        ({"right": "much"}, False, "numbers from 0 up"),
        ({"turns": 1, "price": 1}, False, "the diagnosis does not matter"),
        ({"key_findings": 1}, False, "the diagnosis does not matter"),
        ({"right": 0, "turns": 1}, False, "the diagnosis does not matter"),
        ({}, False, "the diagnosis does not matter"),
        ({"utility": 1, "right": 1}, True, "stand alone"),
        ({"utility": 1, "regret": 1}, True, "stand alone"),
        ({"regret": 1, "turns": 0.1}, True, "stand alone"),
        ("utility", False, "outside solvable worlds, its parts are right, lenient"),
        ("right", True, "in a solvable world, its parts are utility, regret"),
    ],
)
def test_a_reward_that_cannot_be_meant_is_refused(given: Any, world: bool, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        reward_of(given, world=world)


def test_the_rewards_with_a_name_are_accepted_and_there_is_a_usual_one() -> None:
    for name, weights in REWARDS.items():
        assert reward_of(name, world=any(PARTS[part].world for part in weights)).weights == weights
    assert reward_of(None, world=False).weights == {"right": 1}
    assert reward_of(None, world=True).weights == {"utility": 1}


def test_a_diagnosis_with_the_originals_token_is_worth_the_same(cases: Path) -> None:
    record = after(cases, "DIAGNOSIS READY: Gout").record()
    theirs = record.model_copy(update={"diagnosis_text": record.final_doctor_dialogue})
    assert record.diagnosis_text == "Gout"
    assert theirs.diagnosis_text == "DIAGNOSIS READY: Gout"
    assert PARTS["proper"].worth(theirs) == PARTS["proper"].worth(record) == 1
