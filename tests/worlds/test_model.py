"""A world's file: what is read, what is refused and how, what decides the digest, and what a doctor is told."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted_server import LONG
from worlds import random_world

from agentclinic.errors import InputError
from agentclinic.worlds.model import DEFER, DISEASES, FINDINGS, World, read_world

Json = dict[str, Any]


def entry(**changes: Any) -> Json:
    """A finding as it is in a file, as likely in every disease."""
    return {"by": "question", "probability": dict.fromkeys(NAMES, 0.5)} | changes


NAMES = ["Influenza", "Pneumonia", "Asthma", "Migraine", "Gout", "Anemia"]
GOOD: Json = {
    "_note": "a comment",
    "name": "small",
    "title": "A small world",
    "about": "Invented.",
    "patient": "An adult",
    "objective": "Find out what it is.",
    "diseases": {
        "Influenza": {"prior": 0.3, "synonyms": ["flu"]},
        "Pneumonia": {"prior": 0.2},
        "Asthma": {"prior": 0.2},
        "Migraine": {"prior": 0.1},
        "Gout": {"prior": 0.1},
        "Anemia": {"prior": 0.1},
    },
    "findings": {
        "cough": entry(synonyms=["coughing"]),
        "thirst": entry(),
        "rash": entry(by="examination", minutes=2),
        "heart murmur": entry(by="examination"),
        "neck stiffness": entry(by="examination"),
        "chest x-ray": entry(by="test", price=40, minutes=15, present="shadow", absent="clear"),
        "troponin": entry(by="test", price=25.5),
        "urinalysis": entry(by="test", price=5),
    },
    "utilities": {"right": 10, "wrong": -5, "wrong_pairs": {"Gout": {"Anemia": -20}}, "deferred": 2, "no_answer": -8},
    "costs": {"dollar": 0.01, "minute": 0.02, "turn": 0.1},
}

GONE = object()


def changed(changes: Json) -> Json:
    """The good file with other values at some places, such as `diseases.Gout.prior`."""
    data = copy.deepcopy(GOOD)
    for place, value in changes.items():
        *parents, last = place.split(".")
        held = data
        for name in parents:
            held = held[name]
        if value is GONE:
            del held[last]
        else:
            held[last] = value
    return data


def written(tmp_path: Path, content: Json | str | bytes) -> Path:
    path = tmp_path / "world.json"
    text = json.dumps(content) if isinstance(content, dict) else content
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refusal(path: Path) -> str:
    """What is said of a file, without its name."""
    with pytest.raises(InputError) as error:
        read_world(path)
    assert error.value.exit_code == 2
    said = str(error.value)
    assert all(line.startswith(str(path)) for line in said.splitlines()), said
    return "\n".join(line.removeprefix(f"{path}").removeprefix(": ") for line in said.splitlines())


# --- good files -------------------------------------------------------------------------------------------------------


def test_a_good_file_is_read(tmp_path: Path) -> None:
    world = read_world(written(tmp_path, GOOD))
    assert list(world.diseases) == NAMES
    assert world.priors == pytest.approx([0.3, 0.2, 0.2, 0.1, 0.1, 0.1], abs=1e-15)
    assert world.findings["chest x-ray"].probability == dict.fromkeys(NAMES, 0.5)
    assert world.turns == 8 + 8
    assert world.endings == (*NAMES, DEFER)
    assert world.shown


def test_what_an_action_costs_and_an_ending_is_worth(tmp_path: Path) -> None:
    world = read_world(written(tmp_path, GOOD))
    assert world.cost("chest x-ray") == pytest.approx(0.01 * 40 + 0.02 * 15 + 0.1)
    assert world.cost("cough") == pytest.approx(0.1)
    assert world.utility("Gout", "Gout") == 10
    assert world.utility("Gout", "Asthma") == -5
    assert world.utility("Gout", "Anemia") == -20
    assert world.utility("Anemia", "Gout") == -5
    assert world.utility("Gout", DEFER) == 2
    assert world.utility("Gout", None) == -8
    assert [row[NAMES.index("Gout")] for row in world.utility_rows] == [-5, -5, -5, -5, 10, -20, 2]


def test_a_finding_says_what_it_is(tmp_path: Path) -> None:
    findings = read_world(written(tmp_path, GOOD)).findings
    assert [findings["cough"].says(present) for present in (True, False)] == ["yes", "no"]
    assert [findings["rash"].says(present) for present in (True, False)] == ["present", "absent"]
    assert [findings["troponin"].says(present) for present in (True, False)] == ["present", "absent"]
    assert [findings["chest x-ray"].says(present) for present in (True, False)] == ["shadow", "clear"]


def test_without_deferring_there_is_no_such_ending(tmp_path: Path) -> None:
    world = read_world(written(tmp_path, changed({"utilities.deferred": None, "utilities.no_answer": -20})))
    assert world.endings == tuple(NAMES)
    assert world.utility("Gout", DEFER) == -20


def test_priors_are_made_to_add_up_exactly(tmp_path: Path) -> None:
    world = read_world(written(tmp_path, changed({"diseases.Influenza.prior": 0.3000009})))
    assert sum(world.priors) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("size", [(8, 6), (12, 12)])
def test_the_smallest_and_the_largest_world_are_read(size: tuple[int, int], tmp_path: Path) -> None:
    assert size in ((FINDINGS[0], DISEASES[0]), (FINDINGS[1], DISEASES[1]))
    world = random_world(*size, seed=1)
    read = read_world(written(tmp_path, world.model_dump()))
    assert (len(read.findings), len(read.diseases)) == size
    assert read.findings == world.findings


# --- bad files --------------------------------------------------------------------------------------------------------

THIRTEEN = {f"finding {letter}": entry() for letter in "ABCDEFGHIJKLM"}
BAD: dict[str, tuple[Json, str]] = {
    "a probability over 1": (
        {"findings.cough.probability.Gout": 1.2},
        "findings.cough.probability.Gout: must be less than 1",
    ),
    "a probability of 1": (
        {"findings.cough.probability.Gout": 1},
        "findings.cough.probability.Gout: must be less than 1",
    ),
    "a probability of 0": (
        {"findings.cough.probability.Gout": 0},
        "findings.cough.probability.Gout: must be greater than 0",
    ),
    "a prior over 1": ({"diseases.Gout.prior": 1.5}, "diseases.Gout.prior: must be less than 1"),
    "a probability that is not a number": (
        {"findings.cough.probability.Gout": "often"},
        "findings.cough.probability.Gout: must be a valid number",
    ),
    "a missing cell": (
        {"findings.cough.probability.Gout": GONE},
        "findings.cough.probability has no number for Gout; add one between 0 and 1",
    ),
    "two missing cells": (
        {"findings.cough.probability.Gout": GONE, "findings.cough.probability.Asthma": GONE},
        "findings.cough.probability has no number for Asthma, Gout; add one between 0 and 1",
    ),
    "no table": (
        {"findings.cough.probability": GONE},
        f"findings.cough.probability has no number for {', '.join(NAMES)}; add one between 0 and 1",
    ),
    "an unknown disease in the table": (
        {"findings.cough.probability.Gowt": 0.5},
        "findings.cough.probability.Gowt: there is no such disease; use a name from `diseases`",
    ),
    "an unknown true disease in a pair": (
        {"utilities.wrong_pairs": {"Gowt": {"Anemia": -20}}},
        "utilities.wrong_pairs.Gowt: there is no disease 'Gowt'; use a name from `diseases`",
    ),
    "an unknown answer in a pair": (
        {"utilities.wrong_pairs.Gout": {"Anaemia": -20}},
        "utilities.wrong_pairs.Gout: there is no disease 'Anaemia'; use a name from `diseases`",
    ),
    "deferring in a pair": (
        {"utilities.wrong_pairs.Gout": {"DEFER": -20}},
        "utilities.wrong_pairs.Gout: there is no disease 'DEFER'; use a name from `diseases`",
    ),
    "the right answer in a pair": (
        {"utilities.wrong_pairs.Gout": {"Gout": -20}},
        "utilities.wrong_pairs.Gout.Gout is right, not wrong; remove it",
    ),
    "a negative price": (
        {"findings.troponin.price": -1},
        "findings.troponin.price: must be greater than or equal to 0",
    ),
    "negative minutes": ({"findings.rash.minutes": -1}, "findings.rash.minutes: must be greater than or equal to 0"),
    "a negative cost": ({"costs.turn": -0.1}, "costs.turn: must be greater than or equal to 0"),
    "an infinite price": (
        {"findings.troponin.price": float("inf")},
        "findings.troponin.price: must be a finite number",
    ),
    "a price of NaN": ({"findings.troponin.price": float("nan")}, "findings.troponin.price: must be a finite number"),
    "an infinite utility": ({"utilities.wrong": float("-inf")}, "utilities.wrong: must be a finite number"),
    "a utility of NaN": ({"utilities.right": float("nan")}, "utilities.right: must be a finite number"),
    "a probability of NaN": (
        {"findings.cough.probability.Gout": float("nan")},
        "findings.cough.probability.Gout: must be a finite number",
    ),
    "names that differ only in case": (
        {"findings.COUGH": entry()},
        "findings.COUGH: 'COUGH' cannot be told from 'cough'; change or remove one of the two names",
    ),
    "names that differ only in number": (
        {"findings.rashes": entry()},
        "findings.rashes: 'rashes' cannot be told from 'rash'; change or remove one of the two names",
    ),
    "names that differ only in signs": (
        {"findings.chest X ray": entry()},
        "findings.chest X ray: 'chest X ray' cannot be told from 'chest x-ray'; change or remove one of the two names",
    ),
    "a name that is another's synonym": (
        {"findings.Coughing": entry()},
        "findings.Coughing: 'Coughing' cannot be told from 'coughing'; change or remove one of the two names",
    ),
    "a synonym that is another's name": (
        {"diseases.Gout.synonyms": ["influenza"]},
        "diseases.Gout: 'influenza' cannot be told from 'Influenza'; change or remove one of the two names",
    ),
    "two synonyms alike": (
        {"diseases.Gout.synonyms": ["The Flu", "FLU"]},
        "diseases.Gout: 'FLU' cannot be told from 'flu'; change or remove one of the two names",
    ),
    "a name without words": (
        {"findings.?!": entry()},
        "findings.?!: '?!' has no words; write letters or digits",
    ),
    "an empty name": ({"findings.": entry()}, "findings..[key]: string should have at least 1 character"),
    "DEFER as a disease": (
        {"diseases.Gout.synonyms": ["defer"]},
        "diseases.Gout: 'defer' means that the doctor defers; use another name",
    ),
    "too few diseases": (
        {"diseases": {name: {"prior": 0.2} for name in NAMES[:5]}},
        "diseases: there are 5; write 6 to 12",
    ),
    "too many diseases": (
        {"diseases": {f"disease {letter}": {"prior": 1 / 13} for letter in "ABCDEFGHIJKLM"}},
        "diseases: there are 13; write 6 to 12",
    ),
    "too few findings": ({"findings.rash": GONE}, "findings: there are 7; write 8 to 12"),
    "too many findings": ({"findings": THIRTEEN}, "findings: there are 13; write 8 to 12"),
    "priors that do not add up": (
        {"diseases.Influenza.prior": 0.25},
        "diseases: the priors add up to 0.95; make them add up to 1",
    ),
    "no prior": (
        {"diseases.Gout": {}, "diseases.Anemia.prior": 0.2},
        "diseases.Gout.prior is missing; say how common it is, e.g. 0.1",
    ),
    "right is not more than wrong": (
        {"utilities.right": -5},
        "utilities.right (-5) must be more than every wrong answer (-5); raise it",
    ),
    "right is not more than a wrong pair": (
        {"utilities.wrong_pairs.Gout": {"Anemia": 12}},
        "utilities.right (10) must be more than every wrong answer (12); raise it",
    ),
    "silence pays more than deferring": (
        {"utilities.no_answer": 3},
        "utilities.no_answer (3) must not be more than deferring (2); lower it",
    ),
    "silence pays more than a wrong answer": (
        {"utilities.deferred": None},
        "utilities.no_answer (-8) must not be more than the worst wrong answer (-20); lower it",
    ),
    "an unknown key": ({"utility": {}}, "unknown key 'utility'; did you mean 'utilities'?"),
    "an unknown key of a finding": (
        {"findings.cough.prise": 3},
        "unknown key 'findings.cough.prise'; did you mean 'price'?",
    ),
    "an unknown way": (
        {"findings.cough.by": "guess"},
        "findings.cough.by: must be 'question', 'examination' or 'test'",
    ),
    "a missing key": ({"costs": GONE}, "costs: field required"),
    "a name with a slash": ({"name": "a/b"}, "name: string should match pattern '^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$'"),
    "no way up to another folder": (
        {"name": ".."},
        "name: string should match pattern '^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_its_key_and_what_to_do(case: str, tmp_path: Path) -> None:
    changes, said = BAD[case]
    first, *others = refusal(written(tmp_path, changed(changes))).splitlines()
    assert first == said
    assert not others or "diseases" in changes  # without a disease, or with another, the table does not fit


def test_every_problem_is_named(tmp_path: Path) -> None:
    changes = {"findings.rash": GONE, "findings.cough.probability.Gout": GONE, "utilities.no_answer": 3}
    assert refusal(written(tmp_path, changed(changes))).splitlines() == [
        "findings: there are 7; write 8 to 12",
        "findings.cough.probability has no number for Gout; add one between 0 and 1",
        "utilities.no_answer (3) must not be more than deferring (2); lower it",
    ]


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    text = json.dumps(GOOD).replace('"Gout": {"prior"', '"Asthma": {"prior"', 1)
    assert refusal(written(tmp_path, text)) == "'Asthma' appears twice; rename or remove one of the two"
    text = json.dumps(GOOD).replace('"Anemia": 0.5', '"Gout": 0.5', 1)
    assert refusal(written(tmp_path, text)) == "'Gout' appears twice; rename or remove one of the two"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{'name': 1}", " line 1: not valid JSON (Expecting property name enclosed in double quotes)"),
        (b"", " line 1: not valid JSON (Expecting value)"),
        (b'{\n"name": "small"', " line 2: not valid JSON (Expecting ',' delimiter)"),
        (b'{"name": "\xff"}', "not UTF-8 text; save it as UTF-8"),
        (b"[" * 100_000, "not readable JSON; shorten its numbers and its nesting"),
        (b"[1]", "expected a JSON object, found a list"),
    ],
)
def test_a_file_that_is_not_json_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    assert refusal(written(tmp_path, content)) == said


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.json") == "no such file; check the path"
    assert refusal(tmp_path) == "cannot be read (Is a directory)"


def test_a_device_is_not_read_to_its_end() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31)); "
        "from pathlib import Path; from agentclinic.worlds.model import read_world; read_world(Path('/dev/zero'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG, check=False)
    assert "/dev/zero: cannot be read (it has more than 256 MB; is this the right file?)" in done.stderr


@pytest.mark.parametrize("name", ["Gout", DEFER])
def test_a_finding_that_has_the_name_of_an_ending_is_refused(name: str, tmp_path: Path) -> None:
    assert f"findings.{name}" in refusal(written(tmp_path, changed({f"findings.{name}": entry()})))


@pytest.mark.parametrize("says", [{"present": "no"}, {"absent": "yes"}, {"present": "dry", "absent": "dry"}])
def test_a_finding_that_says_the_same_either_way_is_refused(says: dict[str, str], tmp_path: Path) -> None:
    assert "findings.cough" in refusal(written(tmp_path, changed({"findings.cough": entry(**says)})))


@pytest.mark.parametrize("name", ["ECG; resting", "St. Vitus dance", "chest x-ray report", "positive for HIV"])
def test_a_name_that_cannot_be_read_in_a_sentence_is_refused(name: str, tmp_path: Path) -> None:
    data = copy.deepcopy(GOOD)
    data["findings"][name] = entry()
    assert f"findings.{name}" in refusal(written(tmp_path, data))


# --- the digest -------------------------------------------------------------------------------------------------------


def test_names_and_texts_do_not_change_the_digest(tmp_path: Path) -> None:
    world = read_world(written(tmp_path, GOOD))
    new = {name: f"disease {place}" for place, name in enumerate(world.diseases)}
    text = json.dumps(GOOD | {"name": "other", "title": "Another", "about": "", "patient": "A child"})
    for old, name in new.items():
        text = text.replace(f'"{old}"', f'"{name}"')
    other = read_world(written(tmp_path, text.replace('"cough"', '"sneeze"').replace('"shadow"', '"white"')))
    assert list(other.diseases) == list(new.values())
    assert other != world
    assert other.digest == world.digest


NUMBERS = {
    "findings.cough.probability.Gout": 0.501,
    "findings.cough.price": 1,
    "findings.cough.minutes": 1,
    "utilities.right": 11,
    "utilities.wrong": -6,
    "utilities.wrong_pairs.Gout.Anemia": -21,
    "utilities.wrong_pairs.Asthma": {"Gout": -6},
    "utilities.deferred": 3,
    "utilities.no_answer": -9,
    "costs.dollar": 0.011,
    "costs.minute": 0.021,
    "costs.turn": 0.11,
}


def test_every_number_changes_the_digest(tmp_path: Path) -> None:
    digests = {read_world(written(tmp_path, changed({place: value}))).digest for place, value in NUMBERS.items()}
    digests.add(read_world(written(tmp_path, GOOD)).digest)
    digests.add(read_world(written(tmp_path, changed({"utilities.deferred": None, "utilities.no_answer": -20}))).digest)
    priors = {"diseases.Gout.prior": 0.11, "diseases.Anemia.prior": 0.09}
    digests.add(read_world(written(tmp_path, changed(priors))).digest)
    assert len(digests) == len(NUMBERS) + 3
    assert all(len(digest) == 16 for digest in digests)


# --- what a doctor is told --------------------------------------------------------------------------------------------


def test_a_doctor_who_is_not_shown_the_table_is_told_no_number_of_it() -> None:
    world = random_world(8, 6, 1)
    told = world.told(shown=False)
    assert not told.shown
    assert not any(told.priors)
    assert all(one.prior is None for one in told.diseases.values())
    assert all(one.probability is None for one in told.findings.values())
    said = told.model_dump_json()
    table = [p for one in world.findings.values() for p in (one.probability or {}).values()]
    assert len(table) == 48
    assert not [p for p in (*table, *world.priors) if str(p) in said]


def test_the_rest_is_told() -> None:
    world = random_world(8, 6, 1)
    told = world.told(shown=False)
    assert list(told.diseases) == list(world.diseases)
    assert {name: (one.by, one.price, one.minutes) for name, one in told.findings.items()} == {
        name: (one.by, one.price, one.minutes) for name, one in world.findings.items()
    }
    assert (told.utilities, told.costs, told.turns) == (world.utilities, world.costs, world.turns)
    assert world.told(shown=True).findings == world.findings


@pytest.mark.parametrize("shown", [True, False])
def test_no_doctor_sees_where_the_numbers_come_from(shown: bool) -> None:
    assert random_world(8, 6, 1, about="Gout is 0.25 of them.").told(shown=shown).about == ""


def test_in_order_sorts_by_name_and_keeps_everything() -> None:
    world = random_world(10, 8, 2)
    ordered = world.in_order()
    assert list(ordered.diseases) == sorted(world.diseases)
    assert list(ordered.findings) == sorted(world.findings)
    assert ordered == world  # mappings are equal in any order
    assert isinstance(ordered, World)
