"""The grid of a data set counts every case once in each dimension."""

from __future__ import annotations

from typing import Any

import pytest
from benchmark_support import load_benchmark
from helpers import case_of, osce

from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases

benchmark = load_benchmark("grid")


def case(name: str = "osce-t01", demographics: str = "40-year-old woman", seen: str = "Red", **notes: Any) -> Case:
    patient = {"Demographics": demographics, "History": "The patient has a sore toe."}
    return case_of(osce(patient=patient, exam={"Toe": seen}, case_id=name, **notes))


@pytest.mark.parametrize(
    ("demographics", "band"),
    [
        ("Newborn girl", "newborn"),
        ("27-day-old boy", "newborn"),
        ("5-week-old boy", "infant"),
        ("11-month-old girl", "infant"),
        ("12-month-old girl", "child"),
        ("12-year-old girl", "child"),
        ("13-year-old boy", "teenager"),
        ("17-year-old boy", "teenager"),
        ("18-year-old man", "18-39"),
        ("89-year-old woman", "80-89"),
        ("90-year-old woman", "90 and over"),
        ("A woman", "not stated"),
    ],
)
def test_ages_fall_into_bands(demographics: str, band: str) -> None:
    assert benchmark.age_band(case(demographics=demographics)) == band


def test_every_case_is_counted_once_in_each_dimension_and_the_lockbox_apart() -> None:
    cases = load_cases("OpenOSCE_Demo")
    for dimension in benchmark.DIMENSIONS:
        assert sum(every for every, _ in benchmark.counts(cases, dimension).values()) == len(cases)
    locked = [case("osce-t01", lockbox=True, tier="hard"), case("osce-t02", tier="hard"), case("osce-t03")]
    found = benchmark.counts(locked, "tier")
    assert found == {"core": (0, 0), "hard": (2, 1), "resource-limited": (0, 0), "not stated": (1, 0)}
    printed = "\n".join(benchmark.grid(locked))
    assert "3 cases, 1 of them in the lockbox" in printed
    assert "osce-t" not in printed


def test_presentations_of_a_diagnosis_are_counted() -> None:
    given = [("Gout", "typical"), ("gout", "early"), ("Sepsis", "typical"), ("Sepsis", "typical"), ("Croup", "early")]
    cases = [case(f"osce-t0{n}", truth=truth, presentation=kind) for n, (truth, kind) in enumerate(given)]
    assert benchmark.presentations(cases) == {2: 1, 1: 2}


@pytest.mark.parametrize(("other", "apart"), [("Pale", True), ("Red", False)])
@pytest.mark.parametrize(("harm", "unequal"), [(2, False), (4, True)])
def test_pairs_of_twins_are_described(*, other: str, apart: bool, harm: int, unequal: bool) -> None:
    findings = [{"any_of": ["Physical_Examination_Findings/Toe"], "role": "discriminating", "weight": 5}]
    notes: dict[str, Any] = {"Key_Findings": findings, "tests": {"Uric_Acid": "9"}, "Harm_If_Missed": 2}
    one = case("osce-t01", twin_of="osce-t02", **notes)
    twin = case(
        "osce-t02", seen=other, twin_of="osce-t01", **notes | {"tests": {"Uric_Acid": "5"}, "Harm_If_Missed": harm}
    )
    ((first, second),) = benchmark.twin_pairs([one, twin, case("osce-t03")])
    assert benchmark.separable(first, second) == apart
    assert benchmark.unequal_harm(first, second) == unequal
