"""What a doctor is told at the door, and how names in its words and exact answers are read."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from worlds import random_world, without_deferral

from agentclinic.worlds.menu import HEADINGS, answer, menu_text, named_ending, named_items, read_answer, request
from agentclinic.worlds.model import DEFER, World

WORLD = World.model_validate(
    {
        "name": "small",
        "title": "A small world",
        "patient": "An adult",
        "objective": "Find out what it is.",
        "diseases": {
            "Influenza": {"prior": 0.625, "synonyms": ["flu", "the grippe"]},
            "Pneumonia": {"prior": 0.25, "synonyms": ["lung infection"]},
            "Viral pneumonia": {"prior": 0.125},
        },
        "findings": {
            "cough": {
                "by": "question",
                "synonyms": ["coughing", "tussis"],
                "probability": {"Influenza": 0.71, "Pneumonia": 0.8125, "Viral pneumonia": 0.9},
            },
            "dry cough": {
                "by": "question",
                "minutes": 1.5,
                "probability": {"Influenza": 0.5, "Pneumonia": 0.005, "Viral pneumonia": 0.35},
            },
            "crackles": {
                "by": "examination",
                "minutes": 2,
                "synonyms": ["rales", "lung sounds"],
                "probability": {"Influenza": 0.07, "Pneumonia": 0.6, "Viral pneumonia": 0.3},
            },
            "chest x-ray": {
                "by": "test",
                "price": 40,
                "minutes": 15,
                "synonyms": ["radiograph"],
                "present": "a shadow",
                "absent": "clear",
                "probability": {"Influenza": 0.03, "Pneumonia": 0.95, "Viral pneumonia": 0.4},
            },
            "night sweats": {
                "by": "question",
                "price": 3.25,
                "probability": {"Influenza": 0.45, "Pneumonia": 0.15, "Viral pneumonia": 0.2},
            },
        },
        "utilities": {
            "right": 10,
            "wrong": -5.5,
            "wrong_pairs": {"Pneumonia": {"Influenza": -30, "Viral pneumonia": -2}},
            "deferred": 1,
            "no_answer": -31,
        },
        "costs": {"dollar": 0.02, "minute": 0.01, "turn": 0.1},
    }
)

TOLD = """\
Each turn, name one thing from these lists. The answer is always exact. If you name several, only the first counts. \
A message that names none of them gets no answer and still costs a turn.

You can ask the patient about:
- cough
- dry cough (1.5 min)
- night sweats ($3.25)

You can examine (REQUEST TEST: NAME):
- crackles (2 min)

You can order (REQUEST TEST: NAME):
- chest x-ray: a shadow or clear ($40, 15 min)

When you are ready, write DIAGNOSIS READY: and the name of one disease, \
or DIAGNOSIS READY: DEFER to hand the patient over.

The patient has exactly one of these: Influenza; Pneumonia; Viral pneumonia.

Points: 10 for the right diagnosis; -5.5 for a wrong one; -30 for Influenza if the patient has Pneumonia; \
-2 for Viral pneumonia if the patient has Pneumonia; 1 for DEFER; \
-31 for any other answer, or none within 13 turns. \
Costs in points: 0.02 per dollar, 0.01 per minute, 0.1 per turn before the diagnosis."""

TABLE = """

How common each is, and how often it shows each finding:
- Influenza: 62.5% of the patients; \
cough 71%, dry cough 50%, crackles 7%, chest x-ray (a shadow) 3%, night sweats 45%.
- Pneumonia: 25% of the patients; \
cough 81.25%, dry cough 0.5%, crackles 60%, chest x-ray (a shadow) 95%, night sweats 15%.
- Viral pneumonia: 12.5% of the patients; \
cough 90%, dry cough 35%, crackles 30%, chest x-ray (a shadow) 40%, night sweats 20%."""


# --- the menu ---------------------------------------------------------------------------------------------------------


def test_a_doctor_who_is_shown_the_table_is_told_everything() -> None:
    assert menu_text(WORLD.told(shown=True)) == TOLD + TABLE


def test_a_doctor_who_is_not_shown_the_table_is_told_the_rest() -> None:
    assert menu_text(WORLD.told(shown=False)) == TOLD


def test_deferring_is_offered_only_where_it_is_allowed() -> None:
    text = menu_text(without_deferral(WORLD))
    assert "When you are ready, write DIAGNOSIS READY: and the name of one disease.\n" in text
    assert DEFER not in text


def test_a_way_without_items_is_left_out() -> None:
    questions = {name: one for name, one in WORLD.findings.items() if one.by == "question"}
    text = menu_text(WORLD.model_copy(update={"findings": questions}))
    assert HEADINGS["question"] in text
    assert "REQUEST TEST" not in text


def test_every_item_is_under_its_way_with_its_price() -> None:
    for seed in range(10):
        world = random_world(12, 8, seed)
        blocks = {block.split("\n")[0]: block.split("\n")[1:] for block in menu_text(world).split("\n\n")}
        seen = []
        for way, heading in HEADINGS.items():
            for line in blocks.get(heading, []):
                item = re.fullmatch(r"- ([^(]+?)(?: \((?:\$(\d+))?(?:, )?(?:(\d+) min)?\))?", line)
                assert item, line
                name, price, minutes = item.groups()
                given = world.findings[name]
                assert (given.by, given.price, given.minutes) == (way, int(price or 0), int(minutes or 0))
                seen.append(name)
        assert sorted(seen) == sorted(world.findings)


def test_the_table_is_exact() -> None:
    world = random_world(12, 12, 3)
    lines = menu_text(world).split("finding:\n")[1].split("\n")
    for line, (disease, one) in zip(lines, world.diseases.items(), strict=True):
        name, prior, rest = re.fullmatch(r"- (.+): (.+)% of the patients; (.+)\.", line).groups()  # type: ignore[union-attr]
        assert name == disease
        assert Decimal(prior) == 100 * Decimal(str(one.prior))
        shown = dict(part.rsplit(" ", 1) for part in rest.split(", "))
        assert list(shown) == list(world.findings)
        for finding, percent in shown.items():
            held = (world.findings[finding].probability or {})[disease]
            assert Decimal(percent.removesuffix("%")) == 100 * Decimal(str(held))


def test_a_hidden_table_leaves_no_number() -> None:
    for seed in range(10):
        world = random_world(12, 12, seed)
        text = menu_text(world.told(shown=False))
        assert "%" not in text
        assert "How common" not in text
        numbers = set(re.findall(r"\d+(?:\.\d+)?", text))
        given, costs = world.utilities, world.costs
        points = [
            given.right,
            given.wrong,
            given.no_answer,
            given.deferred or 0,
            costs.dollar,
            costs.minute,
            costs.turn,
        ]
        points += [value for row in given.wrong_pairs.values() for value in row.values()]
        points += [part for one in world.findings.values() for part in (one.price, one.minutes)]
        assert numbers <= {f"{abs(value):g}" for value in (*points, world.turns)}


# --- asking and answering ---------------------------------------------------------------------------------------------


def test_how_an_item_is_asked_for_and_answered() -> None:
    cough, xray = WORLD.findings["cough"], WORLD.findings["chest x-ray"]
    assert request("cough", cough) == "cough?"
    assert request("chest x-ray", xray) == "REQUEST TEST: chest x-ray"
    assert answer("cough", cough, True) == "cough: yes."
    assert answer("chest x-ray", xray, False) == "chest x-ray: clear."


@pytest.mark.parametrize("seed", range(5))
def test_what_asks_for_an_item_names_it_alone(seed: int) -> None:
    for world in (WORLD, random_world(12, 12, seed)):
        for name, one in world.findings.items():
            assert named_items(world, request(name, one)) == [name]


@pytest.mark.parametrize("shown", [True, False])
def test_every_exact_answer_is_read(shown: bool) -> None:
    for world in (WORLD, random_world(12, 12, 1)):
        told = world.told(shown=shown)
        for name, one in world.findings.items():
            for present in (True, False):
                reply = answer(name, one, present)
                assert read_answer(told, reply) == (name, present)
                assert read_answer(told, f"RESULTS: {reply}") == (name, present)


@pytest.mark.parametrize("reply", ["", "cough", "cough: yes", "Cough: yes.", "cough: maybe.", "cough: yes. rash: no."])
def test_other_words_are_no_exact_answer(reply: str) -> None:
    assert read_answer(WORLD, reply) is None


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("Do you have night sweats, or a cough?", ["night sweats", "cough"]),
        ("A cough? Any night sweats?", ["cough", "night sweats"]),
        ("Any coughing?", ["cough"]),
        ("Tussis? And any cough?", ["cough"]),
        ("REQUEST TEST: Radiograph", ["chest x-ray"]),
        ("REQUEST TEST: CHEST X-RAY", ["chest x-ray"]),
        ("request test: chest_x_ray", ["chest x-ray"]),
        ("Is it a dry cough?", ["dry cough"]),
        ("Is the cough dry?", ["cough"]),
        ("A dry cough or just a cough?", ["dry cough", "cough"]),
        ("Do you cough at night? Do you sweat?", ["cough"]),
        ("One night sweat?", ["night sweats"]),
        ("I hear a crackle: lung sound, please.", ["crackles"]),
        ("You have no cough, do you?", ["cough"]),
        ("A chest problem, then an x-ray?", []),
        ("Coughdrops?", []),
        ("Is it influenza?", []),
        ("", []),
    ],
)
def test_the_items_that_a_text_names(text: str, items: list[str]) -> None:
    assert named_items(WORLD, text) == items


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("DIAGNOSIS READY: Influenza", "Influenza"),
        ("INFLUENZA", "Influenza"),
        ("It is the flu.", "Influenza"),
        ("Influenza (flu)", "Influenza"),
        ("the grippe", "Influenza"),
        ("viral pneumonia", "Viral pneumonia"),
        ("pneumonia", "Pneumonia"),
        ("lung infection", "Pneumonia"),
        ("Influenza or pneumonia", None),
        ("viral pneumonia, a pneumonia", None),
        ("DEFER", DEFER),
        ("defer to a specialist", DEFER),
        ("DEFER, perhaps influenza", None),
        ("deferral", None),
        ("a cough", None),
        ("", None),
    ],
)
def test_the_one_ending_that_a_diagnosis_names(text: str, ending: str | None) -> None:
    assert named_ending(WORLD, text) == ending


def test_deferring_is_no_ending_where_it_is_not_allowed() -> None:
    world = without_deferral(WORLD)
    assert named_ending(world, "DEFER") is None
    assert named_ending(world, "DEFER, perhaps influenza") == "Influenza"


def test_every_ending_is_read() -> None:
    for world in (WORLD, random_world(8, 12, 1)):
        assert [named_ending(world, f"DIAGNOSIS READY: {said}") for said in world.endings] == list(world.endings)


def test_worlds_of_one_name_are_read_each_by_its_own_words() -> None:
    """What was prepared for one world is not used for another that has the same names."""
    deaf = WORLD.findings | {"cough": WORLD.findings["cough"].model_copy(update={"synonyms": (), "present": "often"})}
    other = WORLD.model_copy(update={"findings": deaf})
    assert hash(other) == hash(WORLD)
    assert (named_items(WORLD, "tussis"), named_items(other, "tussis")) == (["cough"], [])
    assert read_answer(WORLD, "cough: often.") is None
    assert read_answer(other, "cough: often.") == ("cough", True)
