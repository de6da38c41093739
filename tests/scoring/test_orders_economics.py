"""`test_economics_log` and its totals: the original's keys, our own prices."""

from __future__ import annotations

from typing import Any

import pytest

from agentclinic.results.record import Record
from agentclinic.results.turn import Disclosure, Provenance, Turn
from agentclinic.scoring.orders import economics, ordered_in
from agentclinic.scoring.prices import priced_test


def played(*ordered: tuple[str, str], level: str | None = None) -> Record:
    """An encounter with one order for each (test, provenance)."""
    turns = []
    for turn, (name, how) in enumerate(ordered, start=1):
        turns += [
            Turn(turn=turn, role="doctor", text=f"REQUEST TEST: {name}"),
            Turn(
                turn=turn,
                role="measurement",
                text="RESULTS: ...",
                disclosures=(Disclosure(name, Provenance(how)),),
            ),
        ]
    return Record(scenario_id=0, status="diagnosed", correct=True, transcript=turns, resource_level=level)


def entries(record: Record) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    log, totals = economics(record)
    assert log is not None
    assert totals is not None
    return log, totals


def test_each_ordered_test_has_its_price_and_its_times_from_the_table() -> None:
    log, totals = entries(played(("Complete blood count", "chart"), ("Lipase", "chart")))

    known = [priced_test(name) for name in ("Complete blood count", "Lipase")]
    assert [entry["estimate_cost"] for entry in log] == [test and test.price.usd for test in known]
    assert [entry["expected_wait_time_minutes"] for entry in log] == [test and test.wait_minutes for test in known]
    assert totals["total_estimated_cost_usd"] == sum(entry["estimate_cost"] for entry in log) > 0
    assert "Medicare" in log[0]["assumptions"], "where the number comes from"


def test_what_was_not_done_costs_nothing_and_what_is_unknown_has_no_price() -> None:
    log, totals = entries(played(("Lipase", "unavailable"), ("Frobnication assay", "chart"), ("Lipase", "chart")))

    assert [entry["estimate_cost"] for entry in log[:2]] == [0.0, None]
    assert log[1]["expected_wait_time_minutes"] is None
    assert (totals["total_estimated_cost_usd"], totals["tests_without_price"]) == (log[2]["estimate_cost"], 1)
    assert entries(played(("Frobnication assay", "chart")))[1]["total_estimated_cost_usd"] is None, "unknown, not 0"
    assert entries(played())[1]["total_estimated_cost_usd"] == 0


def test_the_cost_is_that_of_the_score() -> None:
    record = played(("Lipase", "chart"), ("Lipase", "chart"), ("Complete blood count", "unavailable"))

    seen = ordered_in(record)
    assert seen is not None
    assert entries(record)[1]["total_estimated_cost_usd"] == seen.bill.usd > 0


@pytest.mark.parametrize(("level", "factor"), [(None, 1), ("normal", 1), ("busy", 2), ("scarce", 4)])
def test_the_resource_level_lengthens_the_wait_and_nothing_else(level: str | None, factor: int) -> None:
    usual, at_level = played(("Lipase", "chart")), played(("Lipase", "chart"), level=level)

    (before,), (now,) = entries(usual)[0], entries(at_level)[0]
    assert now["expected_wait_time_minutes"] == factor * before["expected_wait_time_minutes"] > 0
    assert now["estimate_cost"] == before["estimate_cost"]
    assert now["expected_duration_minutes"] == before["expected_duration_minutes"]
    assert (f"resource level {level}, an assumption" in now["assumptions"]) == (factor > 1)
    bills = [ordered_in(record) for record in (usual, at_level)]
    assert [tests and tests.bill.hours for tests in bills] == [
        before["expected_wait_time_minutes"] / 60, now["expected_wait_time_minutes"] / 60,
    ]  # fmt: skip


def test_without_a_transcript_nothing_is_known() -> None:
    assert economics(Record(scenario_id=0, status="diagnosed")) == (None, None)
