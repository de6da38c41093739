"""Splits: what belongs together stays together, and a changed file is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from helpers import case_of, osce
from memory_support import story, story_rows

from agentclinic.cases.model import Case
from agentclinic.errors import ConfigError
from agentclinic.memory.split import make_split, read_split, write_split


def cases() -> list[Case]:
    """The six stories with a copy, a synonym, a twin and a near copy of one case each."""
    rows = story_rows()
    named = {row["OSCE_Examination"]["Correct_Diagnosis"]: row for row in rows}
    named["Gout"]["case_id"] = "original"
    near = copy.deepcopy(named["Asthma"])
    near["OSCE_Examination"]["Patient_Actor"]["Demographics"] = "8-year-old boy"
    near["OSCE_Examination"]["Correct_Diagnosis"] = "Croup"
    further = [
        copy.deepcopy(named["Migraine"]),
        osce(patient={"History": "She had a blood clot."}, truth="Pulmonary thromboembolism"),
        osce(patient={"History": "He fell off a ladder."}, truth="Fracture", case_id="other", twin_of="original"),
        near,
    ]
    return [case_of(row, "stories", number) for number, row in enumerate([*rows, *further])]


def test_copies_synonyms_twins_and_near_copies_are_on_the_same_side() -> None:
    made = cases()
    for seed in range(20):
        split = make_split(made, seed)
        assert split.train | split.test == {case.id for case in made}
        parts = [split.part_of(case.id) for case in made]
        gout, _, asthma, _, embolism, migraine, copied, synonym, twin, near = parts
        assert (gout, asthma, embolism, migraine) == (twin, near, synonym, copied)
        assert {"train", "test"} == set(parts)


def test_a_split_depends_on_cases_and_seed_and_not_on_their_order() -> None:
    made = cases()
    assert make_split(made, 1) == make_split(made[::-1], 1)
    assert len({make_split(made, seed).train for seed in range(10)}) > 1
    assert make_split(made, 1).checksum != make_split(made[:-3], 1).checksum


def test_cases_that_all_belong_together_cannot_be_divided() -> None:
    with pytest.raises(ConfigError, match="cannot be divided: they have the same diagnosis or are copies"):
        make_split([story("Gout"), case_of(osce(truth="Gout"))], 1)


def test_a_part_is_chosen_and_a_case_that_the_split_does_not_know_is_refused() -> None:
    made = cases()
    split = make_split(made, 1)
    assert {case.id for case in split.choose(made, "test")} == split.test
    with pytest.raises(ConfigError, match="Test/0 is in neither part"):
        split.choose([*made, case_of(osce())], "test")
    with pytest.raises(ConfigError, match="none of the chosen cases is in the test part"):
        split.choose(split.choose(made, "train"), "test")


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    split = make_split(cases(), 1)
    write_split(path, split)
    assert read_split(path) == split
    whole = json.loads(path.read_text())
    moved = {**whole, "train": whole["train"] + whole["test"][:1], "test": whole["test"][1:]}
    without = {key: value for key, value in moved.items() if key != "checksum"}
    both = {**whole, "train": whole["train"] + whole["test"][:1]}
    for changed in (moved, without, both, {**whole, "seed": 2}, {**whole, "seed": "1"}):
        path.write_text(json.dumps(changed))
        with pytest.raises(ConfigError, match="has been changed since it was made"):
            read_split(path)
    for other in ("[]", '{"train": [1], "test": []}', '{"train": []}'):
        path.write_text(other)
        with pytest.raises(ConfigError, match="not a split"):
            read_split(path)
    path.unlink()
    with pytest.raises(ConfigError, match="does not exist; `agentclinic study learn` writes one"):
        read_split(path)
