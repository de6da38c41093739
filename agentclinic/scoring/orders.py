"""The tests the doctor ordered: how many, how they were answered, what they cost, and what the chart lacked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from agentclinic.cases.matcher import asked_of_measurement
from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate, Proportion, mean, proportion
from agentclinic.scoring.information import NOT_RECORDED, Request, repeated, requests
from agentclinic.scoring.verdicts import case_key, strict

UNKNOWN = "unknown"
"""Provenance of what a laboratory without disclosures (a language model) reported."""
UNANSWERED = "unanswered"
"""Provenance of what was ordered on the last turn."""
ANSWERED_BY = ("chart", "chart_equivalent", "default_normal", "unavailable", UNKNOWN, UNANSWERED)
NOT_DONE = frozenset({"unavailable", UNANSWERED})
"""Provenances of what was ordered and not done."""
_NO_ANSWER = frozenset({"unavailable", "default_normal"})


class Price(NamedTuple):
    """What a test costs and how long its result takes; None if not known."""

    usd: float | None
    waiting_hours: float | None = None
    panel: str | None = None
    """What it is billed under: the members of a panel are charged once per encounter, with the panel."""


_WAITING = {"busy": 2.0, "scarce": 4.0}
"""Factor on waiting times; it doubles with each level above normal. An assumption, not a measurement."""


def waiting_factor(resource_level: str | None) -> float:
    """How much longer results take at a resource level; prices and the time of a test itself do not depend on it."""
    return _WAITING.get(resource_level or "", 1.0)


PriceOf = Callable[[str], Price | None]
"""Looks up a test by name; None if it has no price."""


def no_prices(name: str) -> Price | None:  # noqa: ARG001
    """A price list without prices."""
    return None


class Item(NamedTuple):
    """One thing ordered."""

    name: str
    provenance: str


def items(request: Request) -> tuple[Item, ...]:
    """What an order names and how each was answered; read from the order's words if the reply does not say."""
    if request.reply and request.reply.disclosures:
        return tuple(Item(part.topic, part.provenance) for part in request.reply.disclosures)
    how = UNKNOWN if request.reply else UNANSWERED
    return tuple(Item(ordered.name, how) for ordered in asked_of_measurement(request.content, ()))


class Bill(NamedTuple):
    """The cost of one encounter's orders."""

    usd: float
    """Sum of the known prices."""
    hours: float
    priced: int
    unpriced: int
    untimed: int


def bill(orders: Sequence[Sequence[Item]], price_of: PriceOf, waiting: float = 1.0) -> Bill:
    """Σ prices of the items that were done, a panel once; waiting is Σ over orders of the longest of their items.

    The items of one order run in parallel, the orders one after another. Anything unavailable or unanswered was not
    done. A single test done twice is charged twice. Items without a price or a time are counted, not taken as 0.
    `waiting` multiplies the waiting time.
    """
    charged: set[str] = set()
    usd, hours = [], []
    priced = unpriced = untimed = 0
    for order in orders:
        waits = [0.0]
        for item in order:
            if item.provenance in NOT_DONE:
                continue
            price = price_of(item.name) or Price(None)
            untimed += price.waiting_hours is None
            waits.append(price.waiting_hours or 0.0)
            if price.panel is not None and price.panel in charged:
                continue
            if price.panel is not None:
                charged.add(price.panel)
            priced += price.usd is not None
            unpriced += price.usd is None
            usd.append(price.usd or 0.0)
        hours.append(max(waits))
    return Bill(math.fsum(usd), waiting * math.fsum(hours), priced, unpriced, untimed)


STRATA = ("0", "(0, 0.25]", "(0.25, 0.5]", "> 0.5")
NO_TESTS = "no tests"


def unanswerable_rate(ordered: Iterable[Item]) -> float | None:
    """Items answered "unavailable" or by default ÷ items answered; None if none was, or if it is not known."""
    answered = [item.provenance for item in ordered if item.provenance != UNANSWERED]
    if not answered or UNKNOWN in answered:
        return None
    return sum(how in _NO_ANSWER for how in answered) / len(answered)


def stratum(ordered: Sequence[Item]) -> str:
    """The stratum of an encounter by its unanswerable rate."""
    rate = unanswerable_rate(ordered)
    if rate is None:
        return UNKNOWN if any(item.provenance == UNKNOWN for item in ordered) else NO_TESTS
    return STRATA[0 if rate == 0 else 1 if rate <= 0.25 else 2 if rate <= 0.5 else 3]


class Orders(BaseModel):
    """What was ordered; null, with a note, if the records do not say."""

    encounters: int = 0
    """Records with a transcript, except those cut short by a failure that was not the doctor's."""
    not_recorded: int = 0
    """Records without a transcript."""
    missing: int = 0
    orders: Estimate
    """Mean orders (turns with `REQUEST TEST`) per encounter."""
    items: Estimate
    """Mean tests and examinations named in them."""
    answered_by: dict[str, Proportion] = {}
    """Items by provenance ÷ items."""
    repeated: Proportion
    """Orders that repeat an earlier one of the encounter ÷ orders."""
    price_usd: Estimate
    """Mean price per encounter; null if any item done has no price."""
    priced_usd: float | None = None
    """Sum of the known prices: everything costs at least this. Null if none is known."""
    priced: int = 0
    unpriced: int = 0
    """Items done without a price."""
    waiting_hours: Estimate
    """Mean waiting time per encounter; null if any item done has none."""
    untimed: int = 0
    resource_level: dict[str, int] = {}
    """Records by the run's `resource_level`."""
    accuracy_by_unanswerable: dict[str, Proportion] = {}
    """Strict accuracy by the share of an encounter's items that the chart could not answer, without missing data."""
    note: str | None = None


class Tests(NamedTuple):
    """The tests of one encounter."""

    orders: int
    repeated: int
    provenance: tuple[str, ...]
    """Of each item."""
    bill: Bill
    stratum: str


class Observation(NamedTuple):
    """What one record contributes."""

    case: str
    right: bool | None
    resource_level: str
    missing: bool
    """The encounter was cut short by a failure that was not the doctor's."""
    tests: Tests | None
    """None if missing or without a transcript."""


def observe(record: Record, price_of: PriceOf = no_prices) -> Observation:
    """Reduce a record to counts of its orders and their bill."""
    missing, asked = record.status == "model_failed", requests(record)
    waiting = waiting_factor(record.resource_level)
    tests = None if missing or asked is None else _tests([r for r in asked if r.kind == "test"], price_of, waiting)
    return Observation(case_key(record), strict(record), record.resource_level or NOT_RECORDED, missing, tests)


def _tests(orders: Sequence[Request], price_of: PriceOf, waiting: float) -> Tests:
    ordered = [items(order) for order in orders]
    every = [item for order in ordered for item in order]
    return Tests(
        len(orders),
        repeated([order.content for order in orders]),
        tuple(item.provenance for item in every),
        bill(ordered, price_of, waiting),
        stratum(every),
    )


def summarise(observations: Iterable[Observation], seed: int = 0) -> Orders:
    """Counts, answers, prices and accuracy by what the chart could not answer."""
    levels: Counter[str] = Counter()
    strata: Counter[tuple[str, bool]] = Counter()
    missing = not_recorded = 0
    seen: list[tuple[str, Tests]] = []
    for one in observations:
        levels[one.resource_level] += 1
        missing += one.missing
        not_recorded += one.tests is None and not one.missing
        if one.tests is not None:
            seen.append((one.case, one.tests))
            if one.right is not None:
                strata[one.tests.stratum, one.right] += 1
    answers = Counter(how for _, tests in seen for how in tests.provenance)
    ways = dict.fromkeys((*ANSWERED_BY, *sorted(answers))) if answers else ()
    priced, unpriced, untimed = (
        sum(getattr(tests.bill, name) for _, tests in seen) for name in ("priced", "unpriced", "untimed")
    )

    def per_encounter(value: Callable[[Tests], float], without: int = 0, what: str = "") -> Estimate:
        if without or not seen:
            return Estimate(value=None, note=f"{without} items have no {what}" if without else NOT_RECORDED)
        return mean(((case, value(tests)) for case, tests in seen), seed, low=0)

    return Orders(
        encounters=len(seen),
        not_recorded=not_recorded,
        missing=missing,
        orders=per_encounter(lambda tests: tests.orders),
        items=per_encounter(lambda tests: len(tests.provenance)),
        answered_by={how: proportion(answers[how], answers.total()) for how in ways},
        repeated=proportion(sum(tests.repeated for _, tests in seen), sum(tests.orders for _, tests in seen)),
        price_usd=per_encounter(lambda tests: tests.bill.usd, unpriced, "price"),
        priced_usd=math.fsum(tests.bill.usd for _, tests in seen) if priced else None,
        priced=priced,
        unpriced=unpriced,
        waiting_hours=per_encounter(lambda tests: tests.bill.hours, untimed, "waiting time"),
        untimed=untimed,
        resource_level=dict(sorted(levels.items())),
        accuracy_by_unanswerable={
            name: proportion(strata[name, True], n)
            for name in (*STRATA, NO_TESTS, UNKNOWN)
            if (n := strata[name, True] + strata[name, False])
        },
        note=None if seen else NOT_RECORDED,
    )
