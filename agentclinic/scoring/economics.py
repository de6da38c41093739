"""What an encounter's tests cost and how long they take, under the original's keys and from our own table of tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentclinic.results.record import Record
from agentclinic.scoring.information import requests
from agentclinic.scoring.orders import NOT_DONE, Item, items, priced_test, waiting_factor
from agentclinic.vocabulary.tests import table


def economics(record: Record) -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None]:
    """One entry for each test that was ordered, and their sums; null without a transcript.

    As in `score`, a test is charged once per encounter, and a test that was not done costs nothing. A test that is not
    in the table has no price and no times (null), and is counted in `tests_without_price`.
    """
    orders = by_order(record)
    if orders is None:
        return None, None
    log = [entry for order in orders for entry in order]
    return log, {
        "total_estimated_cost_usd": _sum(log, "estimate_cost"),
        "total_expected_wait_time_minutes": _sum(log, "expected_wait_time_minutes"),
        "total_expected_duration_minutes": _sum(log, "expected_duration_minutes"),
        "tests_without_price": sum(entry["estimate_cost"] is None for entry in log),
    }


def by_order(record: Record) -> list[list[dict[str, Any]]] | None:
    """The same entries, order by order; None without a transcript."""
    asked = requests(record)
    if asked is None:
        return None
    charged: set[str] = set()
    orders = [items(order) for order in asked if order.kind == "test"]
    return [[_entry(item, record.resource_level, charged) for item in order] for order in orders]


def _entry(item: Item, level: str | None, charged: set[str]) -> dict[str, Any]:
    test = priced_test(item.name)
    waiting = waiting_factor(level)
    cost: float | None
    wait: float | None
    duration: float | None
    if item.provenance in NOT_DONE:
        cost = wait = duration = 0.0
        why = "not done"
    elif test is None:
        cost = wait = duration = None
        why = "not in the table of tests"
    else:
        again = test.id in charged
        charged.add(test.id)
        cost = 0.0 if again else test.price.usd
        wait, duration = test.wait_minutes * waiting, test.duration_minutes
        why = f"{test.name}; " + ("charged once per encounter" if again else str(table()["pricing"]["perspective"]))
        if waiting != 1:
            why += f"; waiting time x {waiting:g}: resource level {level}, an assumption"
    return {
        "test_name": item.name,
        "estimate_currency": "USD",
        "estimate_cost": cost,
        "expected_wait_time_minutes": wait,
        "expected_duration_minutes": duration,
        "assumptions": why,
        "resource_level": level,
    }


def _sum(log: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Σ of what is known; null if there are entries but none of them is known."""
    known = [entry[key] for entry in log if entry[key] is not None]
    return math.fsum(known) if known or not log else None
