"""The tests a doctor ordered: how they were answered, what they cost, and what the chart lacked.

Prices are from the knowledge base: one perspective and one year, stated in `vocabulary/data/tests.json`. A record with
a `price_table` has those of the user's own table; what that lacks is priced by ours.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from agentclinic.cases.matcher import asked_of_measurement
from agentclinic.results.record import PriceTable, Record
from agentclinic.scoring.information import Request, requests
from agentclinic.scoring.prices import estimate, priced_test
from agentclinic.vocabulary.tests import table
from agentclinic.vocabulary.text import fold
from agentclinic.worlds.model import World


def economics(record: Record, world: World | None = None) -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None]:
    """One entry for each test that was ordered, and their sums; null without a transcript.

    As in `score`, a test is charged once per encounter, and a test that was not done costs nothing. A test that is not
    in the table has no price and no times (null), and is counted in `tests_without_price`. A solvable world has its
    own prices, and charges every time.
    """
    orders = by_order(record, world)
    if orders is None:
        return None, None
    log = [entry for order in orders for entry in order]
    return log, {
        "total_estimated_cost_usd": _sum(log, "estimate_cost"),
        "total_expected_wait_time_minutes": _sum(log, "expected_wait_time_minutes"),
        "total_expected_duration_minutes": _sum(log, "expected_duration_minutes"),
        "tests_without_price": sum(entry["estimate_cost"] is None for entry in log),
    }


def by_order(record: Record, world: World | None = None) -> list[list[dict[str, Any]]] | None:
    """The same entries, order by order; None without a transcript.

    In a solvable world there is one for every request: a test counts as one even if the patient was asked about it.
    """
    asked = requests(record)
    if asked is None:
        return None
    charged: set[str] = set()
    orders = [items(order) for order in asked if order.kind == "test"]
    if world:
        return [_entries_in(world, request) for request in asked]
    return [[_entry(item, record, charged) for item in order] for order in orders]


def _entry(item: Item, record: Record, charged: set[str]) -> dict[str, Any]:
    own, level = record.price_table, record.resource_level
    test = price_of(item.name, own)
    waiting = waiting_of(record)
    cost: float | None
    wait: float | None
    duration: float | None
    if item.provenance in NOT_DONE:
        cost = wait = duration = 0.0
        why = "not done"
    elif test is None:
        cost = wait = duration = None
        why = "not in the table of tests" if own is None else f"neither in {own.file} nor in our table of tests"
    else:
        again = test.key in charged
        charged.add(test.key)
        cost = 0.0 if again else test.usd
        wait = 0.0 if item.provenance == PENDING else test.wait_minutes * waiting
        duration = test.duration_minutes
        why = f"{test.name}; " + ("charged once per encounter" if again else test.source)
        if waiting != 1:
            by = own.file if own and own.waiting_known else "an assumption"
            why += f"; waiting time x {waiting:g}: resource level {level or 'normal'}, {by}"
    return {
        "test_name": item.name,
        "estimate_currency": "USD",
        "estimate_cost": cost,
        "expected_wait_time_minutes": wait,
        "expected_duration_minutes": duration,
        "assumptions": why,
        "resource_level": level,
    }


def _entries_in(world: World, request: Request) -> list[dict[str, Any]]:
    """The test or examination that a request got; none if it got something else."""
    told = request.reply.disclosures[:1] if request.reply else ()
    return [_entry_in(world, part.topic) for part in told if world.findings[part.topic].by != "question"]


def _entry_in(world: World, name: str) -> dict[str, Any]:
    found = world.findings[name]
    return {
        "test_name": name,
        "estimate_currency": "USD",
        "estimate_cost": found.price,
        "expected_wait_time_minutes": found.minutes,
        "expected_duration_minutes": 0.0,
        "assumptions": f"the world {world.name}",
        "resource_level": None,
    }


def _sum(log: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Σ of what is known; null if there are entries but none of them is known."""
    known = [entry[key] for entry in log if entry[key] is not None]
    return math.fsum(known) if known or not log else None


UNKNOWN = "unknown"
"""Provenance of what a laboratory without disclosures (a language model) reported."""
UNANSWERED = "unanswered"
"""Provenance of what was ordered on the last turn."""
PENDING = "pending"
REFUSED = "refused"
"""Provenance of what a laboratory with a budget or a limited setting did not do."""
ANSWERED_BY = ("chart", "chart_equivalent", "default_normal", PENDING, "unavailable", UNKNOWN, UNANSWERED)
NOT_DONE = frozenset({"unavailable", REFUSED, UNANSWERED})
"""Provenances of what was ordered and not done."""
_NO_ANSWER = frozenset({"unavailable", "default_normal"})


_WAITING = {"busy": 2.0, "scarce": 4.0}
"""Factor on waiting times; it doubles with each level above normal. An assumption, not a measurement."""


def waiting_factor(resource_level: str | None) -> float:
    """How much longer results take at a resource level; prices and the time of a test itself do not depend on it."""
    return _WAITING.get(resource_level or "", 1.0)


def waiting_of(record: Record) -> float:
    """The factor on a record's waiting times: its own table's, or ours."""
    return record.price_table.waiting if record.price_table else waiting_factor(record.resource_level)


def table_of(record: Record) -> str:
    """Which table a record's tests are priced by, in words."""
    if record.regret:
        return "the solvable world"
    ours = f"our table of tests ({table()['pricing']['perspective']})"
    return f"{record.price_table}, else {ours}" if record.price_table else ours


class Item(NamedTuple):
    """One thing ordered."""

    name: str
    provenance: str
    completed: bool = False
    """Answered with a result from the table of normal results (`missing_test: completed`)."""


def items(request: Request) -> tuple[Item, ...]:
    """What an order names and how each was answered; read from the order's words if the reply does not say."""
    if request.reply and request.reply.disclosures:
        # A panel may be part chart, part completed or pending; the first says how the item was answered.
        first = {part.topic: part for part in reversed(request.reply.disclosures)}
        told = dict.fromkeys(part.topic for part in request.reply.disclosures)
        return tuple(Item(topic, first[topic].provenance, first[topic].completed) for topic in told)
    if request.reply and request.reply.charges:
        return tuple(Item(charge.name, REFUSED if charge.refused else UNKNOWN) for charge in request.reply.charges)
    how = UNKNOWN if request.reply else UNANSWERED
    return tuple(Item(ordered.name, how) for ordered in asked_of_measurement(request.content, ()))


class Bill(NamedTuple):
    """The cost of one encounter's orders."""

    usd: float
    """Sum of the known prices."""
    hours: float
    priced: int
    unpriced: int
    estimated: float = 0.0
    """Sum of the estimates for tests without a price; `usd` does not contain it."""


def bill(orders: Sequence[Sequence[Item]], waiting: float = 1.0, own: PriceTable | None = None) -> Bill:
    """Σ prices of the items that were done, each test once; waiting is Σ over orders of the longest of their items.

    The items of one order run in parallel, the orders one after another. Anything unavailable or unanswered was not
    done, and no one waits for what stays pending. Items that are not in the table are counted and estimated apart.
    `waiting` multiplies the waiting time.
    """
    charged: dict[str, float] = {}
    estimated: dict[str, float] = {}
    hours = []
    unpriced = 0
    for order in orders:
        done = [(item.name, price_of(item.name, own)) for item in order if item.provenance not in NOT_DONE]
        without = [name for name, test in done if test is None]
        unpriced += len(without)
        estimated |= {fold(name): estimate(name) for name in without}
        charged |= {test.key: test.usd for _, test in done if test is not None}
        back = [price_of(item.name, own) for item in order if item.provenance not in NOT_DONE | {PENDING}]
        hours.append(max((test.wait_minutes / 60 for test in back if test is not None), default=0.0))
    return Bill(
        math.fsum(charged.values()),
        waiting * math.fsum(hours),
        len(charged),
        unpriced,
        math.fsum(estimated.values()),
    )


STRATA = ("0", "(0, 0.25]", "(0.25, 0.5]", "> 0.5")
NO_TESTS = "no tests"


def unanswerable_rate(ordered: Iterable[Item]) -> float | None:
    """Items answered "unavailable" or by default ÷ items answered; None if none was, or if it is not known."""
    answered = [item for item in ordered if item.provenance != UNANSWERED]
    if not answered or any(item.provenance == UNKNOWN for item in answered):
        return None
    return sum(item.provenance in _NO_ANSWER and not item.completed for item in answered) / len(answered)


def stratum(ordered: Sequence[Item]) -> str:
    """The stratum of an encounter by its unanswerable rate."""
    rate = unanswerable_rate(ordered)
    if rate is None:
        return UNKNOWN if any(item.provenance == UNKNOWN for item in ordered) else NO_TESTS
    return STRATA[bisect_left((0, 0.25, 0.5), rate)]


# --- prices ---------------------------------------------------------------------------------------------------------


class Priced(NamedTuple):
    """A test at the prices of a run."""

    key: str
    """Its id in our table, or its name in the user's."""
    name: str
    usd: float
    wait_minutes: float
    """Until the result is available, at the resource level `normal`."""
    duration_minutes: float
    source: str
    """Where these numbers come from."""


def price_of(name: str, own: PriceTable | None = None) -> Priced | None:
    """A test's price in the user's own table, if there is one that has it, or else in ours; None if unknown."""
    if own and (found := own.tests.get(name)):
        source = own.source
        times = found.wait_minutes, found.duration_minutes
        return Priced(f"{own.file}: {found.name}", found.name, found.usd, *times, source)
    test = priced_test(name)
    if test is None:
        return None
    ours = str(table()["pricing"]["perspective"])
    source = f"not in {own.file}, so from our own table: {ours}" if own else ours
    return Priced(test.id, test.name, test.price.usd, test.wait_minutes, test.duration_minutes, source)


# --- one encounter --------------------------------------------------------------------------------------------------


class Ordered(NamedTuple):
    """A test as it was ordered once."""

    key: str
    """Its id in the table of tests, or its name in the user's table; else its own name."""
    name: str
    usd: float | None
    provenance: str


class Tests(NamedTuple):
    """The tests of one encounter."""

    orders: int
    """Messages to the laboratory; one may name several tests."""
    items: tuple[Ordered, ...]
    """Tests and examinations, each time that one was ordered."""
    bill: Bill
    stratum: str

    @property
    def again(self) -> int:
        """Items that had been ordered before in the encounter."""
        return len(self.items) - len({item.key for item in self.items})

    @property
    def done(self) -> int:
        return sum(item.provenance not in NOT_DONE for item in self.items)


def ordered_in(record: Record, asked: Sequence[Request] | None = None) -> Tests | None:
    """The tests of a record and their bill; None without a transcript. `asked` saves reading the transcript again."""
    asked = requests(record) if asked is None else asked
    if asked is None:
        return None
    orders = [request for request in asked if request.kind == "test"]
    ordered = [items(order) for order in orders]
    every = [item for order in ordered for item in order]
    if record.regret:
        return _in_world(record)
    return Tests(
        len(orders),
        tuple(_ordered(item, price_of(item.name, record.price_table)) for item in every),
        bill(ordered, waiting_of(record), record.price_table),
        stratum(every),
    )


@lru_cache(maxsize=4096)  # equal ones are kept once: a run may have 100,000 records
def _ordered(item: Item, test: Priced | None) -> Ordered:
    if test is None:
        return Ordered(fold(item.name), item.name, None, item.provenance)
    return Ordered(test.key, test.name, test.usd, item.provenance)


def _in_world(record: Record) -> Tests:
    """The tests of an encounter in a solvable world, at its own prices."""
    log = record.test_economics_log or []
    ordered = [Ordered(fold(e["test_name"]), e["test_name"], e["estimate_cost"], "chart") for e in log]
    hours = math.fsum(entry["expected_wait_time_minutes"] for entry in log) / 60
    spent = Bill(math.fsum(entry["estimate_cost"] for entry in log), hours, len(log), 0)
    return Tests(len(log), tuple(ordered), spent, STRATA[0] if log else NO_TESTS)
