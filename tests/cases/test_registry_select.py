"""Which rows are selected for a run."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from helpers import case_of, osce

from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases, parse_rows, select
from agentclinic.errors import ConfigError

CASES: list[Case] = [case_of(osce(truth=f"Fever {i}"), number=i) for i in range(30)]


def rows(**choice: Any) -> list[int]:
    return [case.scenario_id for case in select(CASES, **choice)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", [3]),
        ("3,7,10-12", [3, 7, 10, 11, 12]),
        (" 12 - 13 , 0 ", [0, 12, 13]),
        ("5,5,4-6", [4, 5, 6]),
        ("29", [29]),
        ("0-0", [0]),
    ],
)
def test_rows_and_ranges_give_each_row_once_in_file_order(text: str, expected: list[int]) -> None:
    assert parse_rows(text, 30) == expected
    assert rows(scenarios=text) == expected


def test_openosce_is_mixed_so_that_twins_are_not_neighbors_and_version_1_is_not() -> None:
    cases = load_cases("OpenOSCE", lockbox=True)
    played = select(cases)
    assert [case.scenario_id for case in cases] == list(range(160))
    locked = {case.scenario_id for case in cases if case.in_lockbox}
    assert len(locked) == 48
    assert {case.scenario_id for case in played} == set(range(160)) - locked
    assert len(select(cases, lockbox=True)) == 160
    assert not any(after.annotations["twin_of"] == one.name for one, after in pairwise(played))
    assert select(cases, num_scenarios=12) == played[:12]
    assert len({case.annotations["Specialty"] for case in played[:12]}) > 6
    assert [case.scenario_id for case in select(cases, scenarios="0-3")] == [0, 1, 2, 3]
    assert [case.scenario_id for case in select(load_cases("OpenOSCE_1"), num_scenarios=3)] == [0, 1, 2]


def test_a_case_may_be_chosen_by_its_id_or_its_name() -> None:
    names = [CASES[4].name, CASES[2].name]
    assert rows(scenarios=f"{names[0]}, {names[1]},7") == [2, 4, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read ''"),
        ("3,,4", "cannot read ''"),
        ("a", "cannot read 'a'"),
        ("-3", "cannot read '-3'"),
        ("3-", "cannot read '3-'"),
        ("1-2-3", "cannot read '1-2-3'"),
        ("7-3", "the range 7-3 runs backwards"),
        ("30", "row 30 does not exist; the data set has rows 0-29"),
        ("28-30", "row 30 does not exist"),
    ],
)
def test_an_invalid_selection_is_explained(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_rows(text, 30)


def test_by_default_every_case_is_selected() -> None:
    assert rows() == list(range(30))


def test_the_first_cases_after_an_offset_are_selected() -> None:
    assert rows(num_scenarios=3) == [0, 1, 2]
    assert rows(offset=27) == [27, 28, 29]
    assert rows(offset=10, num_scenarios=2) == [10, 11]
    assert rows(num_scenarios=99) == list(range(30)), "asking for too many gives all of them, as in the original"


def test_a_sample_is_the_same_for_the_same_seed_and_keeps_file_order() -> None:
    first = rows(sample=8, seed=1)
    assert first == rows(sample=8, seed=1) == sorted(set(first))
    assert len(first) == 8
    assert any(rows(sample=8, seed=seed) != first for seed in range(2, 6))


def test_a_sample_is_drawn_after_the_offset_and_before_the_limit() -> None:
    assert min(rows(sample=5, offset=25, seed=3)) == 25
    assert rows(sample=5, num_scenarios=2, seed=3) == rows(sample=5, seed=3)[:2]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"offset": 30}, "offset 30 skips all 30 scenarios"),
        ({"sample": 31}, "sample 31 is more than the 30"),
        ({"offset": 25, "sample": 6}, "sample 6 is more than the 5"),
        ({"scenarios": "1", "sample": 1}, "leave out offset and sample"),
        ({"scenarios": "1", "offset": 1}, "leave out offset and sample"),
    ],
)
def test_an_impossible_choice_is_explained(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rows(**choice)


LOCKED: list[Case] = [replace(case, annotations={"lockbox": case.scenario_id % 3 == 0}) for case in CASES]


def test_the_lockbox_stays_closed_by_default() -> None:
    assert all(case.scenario_id % 3 for case in select(LOCKED))
    assert len(select(LOCKED)) == 20
    assert len(select(LOCKED, lockbox=True)) == 30
    assert len(select(LOCKED, sample=20, seed=1)) == 20


def test_a_row_that_was_not_loaded_is_never_another_case() -> None:
    loaded = [case for case in LOCKED if not case.in_lockbox]
    assert [case.scenario_id for case in select(loaded, scenarios="4,5,28")] == [4, 5, 28]
    with pytest.raises(ConfigError, match="row 3 is not among these cases"):
        select(loaded, scenarios="3")


def test_naming_a_row_in_the_lockbox_says_how_to_open_it() -> None:
    with pytest.raises(ConfigError, match="row 3 is in the lockbox; --lockbox opens it"):
        select(LOCKED, scenarios="1-4")
    assert [case.scenario_id for case in select(LOCKED, scenarios="1-4", lockbox=True)] == [1, 2, 3, 4]
    assert [case.scenario_id for case in select(LOCKED, scenarios="1,2,4")] == [1, 2, 4]
