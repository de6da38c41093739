"""The tests the doctor ordered: how many, how answered, at what price, and what silence of the chart did."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from agentclinic.cases.matcher import asked_of_measurement
from agentclinic.results.record import Record
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.information import NOT_RECORDED, Request, repeated, requests
from agentclinic.scoring.sample import Cases, Sample
from agentclinic.scoring.verdicts import strict

UNKNOWN = "unknown"
"""Provenance of what a laboratory without disclosures (a language model) reported."""
UNANSWERED = "unanswered"
"""Provenance of what was ordered with the last turn."""
ANSWERED_BY = ("chart", "chart_equivalent", "default_normal", "unavailable", UNKNOWN, UNANSWERED)
_NOT_DONE = frozenset({"unavailable", UNANSWERED})
_NO_ANSWER = frozenset({"unavailable", "default_normal"})


class Price(NamedTuple):
    """What a test costs and how long its result takes; null where not known."""

    usd: float | None
    waiting_hours: float | None = None
    panel: str | None = None
    """What it is billed as part of: the members of a panel are charged once per encounter, with the panel."""


PriceOf = Callable[[str], Price | None]
"""Looks up a test by name; None when it has no price."""


def no_prices(name: str) -> Price | None:  # noqa: ARG001
    """The price list of today: empty."""
    return None


class Item(NamedTuple):
    """One thing ordered."""

    name: str
    provenance: str


def items(request: Request) -> tuple[Item, ...]:
    """What an order names, each with how it was answered; where the reply does not tell, by the order's words."""
    if request.reply and request.reply.disclosures:
        return tuple(Item(part.topic, part.provenance) for part in request.reply.disclosures)
    how = UNKNOWN if request.reply else UNANSWERED
    return tuple(Item(ordered.name, how) for ordered in asked_of_measurement(request.content, ()))


class Bill(NamedTuple):
    """What the orders of one encounter come to."""

    usd: float
    """Sum of what has a price."""
    hours: float
    priced: int
    unpriced: int
    untimed: int


def bill(orders: Sequence[Sequence[Item]], price_of: PriceOf) -> Bill:
    """Σ prices of the items that were done, a panel once; waiting is Σ over orders of the longest of their items.

    Items of one order run side by side, orders one after another. What was not available or not answered was not done.
    A single test done twice is charged twice. Items without a price or a time are counted, not taken as 0.
    """
    charged: set[str] = set()
    usd, hours = [], []
    priced = unpriced = untimed = 0
    for order in orders:
        waits = [0.0]
        for item in order:
            if item.provenance in _NOT_DONE:
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
    return Bill(math.fsum(usd), math.fsum(hours), priced, unpriced, untimed)


STRATA = ("0", "(0, 0.25]", "(0.25, 0.5]", "> 0.5")
NO_TESTS = "no tests"


def unanswerable_rate(ordered: Iterable[Item]) -> float | None:
    """Items answered "unavailable" or by default ÷ items answered; None when none was, or where it is not known."""
    answered = [item.provenance for item in ordered if item.provenance != UNANSWERED]
    if not answered or UNKNOWN in answered:
        return None
    return sum(how in _NO_ANSWER for how in answered) / len(answered)


def stratum(ordered: Sequence[Item]) -> str:
    """The class of an encounter by its unanswerable rate."""
    rate = unanswerable_rate(ordered)
    if rate is None:
        return UNKNOWN if any(item.provenance == UNKNOWN for item in ordered) else NO_TESTS
    return STRATA[0 if rate == 0 else 1 if rate <= 0.25 else 2 if rate <= 0.5 else 3]


class Orders(BaseModel):
    """What was ordered; null, with a note, where the records do not tell."""

    encounters: int = 0
    """Records with a transcript, without those cut short by a failure that was not the doctor's."""
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
    """Mean price per encounter; null while any item done has no price."""
    priced_usd: float | None = None
    """Sum of the prices that are known: the whole costs at least this. Null when none is."""
    priced: int = 0
    unpriced: int = 0
    """Items done without a price."""
    waiting_hours: Estimate
    """Mean waiting per encounter; null while any item done has no waiting time."""
    untimed: int = 0
    resource_level: dict[str, int] = {}
    """Records by the run's `resource_level`."""
    accuracy_by_unanswerable: dict[str, Proportion] = {}
    """Strict accuracy by the share of an encounter's items that the chart could not answer; missing data left out."""
    note: str | None = None


class Tally:
    """Counts orders one record at a time."""

    def __init__(self, price_of: PriceOf = no_prices) -> None:
        self._price_of = price_of
        self._cases = Cases()
        self._means = {name: Sample(0) for name in ("orders", "items", "usd", "hours")}
        self._counts: Counter[str] = Counter()
        self._provenance: Counter[str] = Counter()
        self._levels: Counter[str] = Counter()
        self._strata: Counter[tuple[str, bool]] = Counter()

    def add(self, record: Record) -> None:
        """Count one record."""
        self._levels[record.resource_level or NOT_RECORDED] += 1
        asked = requests(record)
        if record.status == "model_failed":
            self._counts["missing"] += 1
        elif asked is None:
            self._counts["not_recorded"] += 1
        else:
            self._add_orders(record, [request for request in asked if request.kind == "test"])

    def _add_orders(self, record: Record, tests: Sequence[Request]) -> None:
        case = self._cases.number(record)
        ordered = [items(request) for request in tests]
        every = [item for order in ordered for item in order]
        due = bill(ordered, self._price_of)
        values = {"orders": len(tests), "items": len(every), "usd": due.usd, "hours": due.hours}
        for name, value in values.items():
            self._means[name].add(case, value)
        self._provenance.update(item.provenance for item in every)
        self._counts.update(
            {
                "encounters": 1,
                "orders": len(tests),
                "items": len(every),
                "repeated": repeated([request.content for request in tests]),
                "priced": due.priced,
                "unpriced": due.unpriced,
                "untimed": due.untimed,
            }
        )
        right = strict(record)
        if right is not None:
            self._strata[stratum(every), right] += 1

    def result(self, seed: int = 0) -> Orders:
        """The measures of what was counted."""
        counts, means = self._counts, {name: sample.estimate(seed) for name, sample in self._means.items()}
        recorded = counts["encounters"] > 0
        unknown = Estimate(value=None, note=NOT_RECORDED)
        return Orders(
            encounters=counts["encounters"],
            not_recorded=counts["not_recorded"],
            missing=counts["missing"],
            orders=means["orders"] if recorded else unknown,
            items=means["items"] if recorded else unknown,
            answered_by={how: proportion(n, counts["items"]) for how, n in self._by_provenance()},
            repeated=proportion(counts["repeated"], counts["orders"]),
            price_usd=_complete(means["usd"], counts["unpriced"], "price") if recorded else unknown,
            priced_usd=self._means["usd"].total if counts["priced"] else None,
            priced=counts["priced"],
            unpriced=counts["unpriced"],
            waiting_hours=_complete(means["hours"], counts["untimed"], "waiting time") if recorded else unknown,
            untimed=counts["untimed"],
            resource_level=dict(sorted(self._levels.items())),
            accuracy_by_unanswerable=self._accuracies(),
            note=None if recorded else NOT_RECORDED,
        )

    def _by_provenance(self) -> list[tuple[str, int]]:
        if not self._provenance:
            return []
        return [(how, self._provenance[how]) for how in dict.fromkeys((*ANSWERED_BY, *sorted(self._provenance)))]

    def _accuracies(self) -> dict[str, Proportion]:
        sizes = {name: self._strata[name, True] + self._strata[name, False] for name in (*STRATA, NO_TESTS, UNKNOWN)}
        return {name: proportion(self._strata[name, True], n) for name, n in sizes.items() if n}


def _complete(estimate: Estimate, without: int, what: str) -> Estimate:
    return Estimate(value=None, note=f"{without} items have no {what}") if without else estimate
