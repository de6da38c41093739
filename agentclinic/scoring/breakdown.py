"""Where a run does well and where it does not: by kind of case, twins, section of the chart, test and price."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel

from agentclinic.cases.model import Section
from agentclinic.scoring.information import LearnedFrom
from agentclinic.scoring.orders import NOT_DONE, Bill, Ordered
from agentclinic.scoring.rows import Row
from agentclinic.scoring.stats import Proportion, share
from agentclinic.scoring.twins import TwinPair, twin_pairs
from agentclinic.scoring.verdicts import KINDS, NOT_STATED
from agentclinic.vocabulary.base import knowledge

# --- by kind of case ------------------------------------------------------------------------------------------------

_ORDER = {"easy": 0, "medium": 1, "hard": 2}


class Group(BaseModel):
    """Cases of one kind."""

    name: str
    cases: int
    accuracy: Proportion
    """Strict, without missing data; an answer that could not be read is not right."""
    missing: int
    not_readable: int = 0


def groups(rows: Sequence[Row]) -> dict[str, list[Group]]:
    """Accuracy by kind of case; a kind that no case states is left out."""
    found = {}
    for place, kind in enumerate(KINDS):
        members: dict[str | None, list[Row]] = {}
        for row in rows:
            members.setdefault(row.kinds[place], []).append(row)
        if set(members) - {None}:
            # Specialties by size, the other kinds in their own order; cases that state nothing come last.
            made = [(name is None, _group(name or NOT_STATED, given)) for name, given in members.items()]
            made.sort(
                key=lambda entry: (
                    entry[0],
                    -entry[1].accuracy.of if kind == "specialty" else _ORDER.get(entry[1].name.casefold(), len(_ORDER)),
                    entry[1].name,
                )
            )
            found[kind] = [group for _, group in made]
    return found


def _group(name: str, members: Sequence[Row]) -> Group:
    verdicts = [(row.cluster, row.right, 1) for row in members if row.right is not None]
    return Group(
        name=name,
        cases=len({row.case for row in members}),
        accuracy=share(verdicts),
        missing=len(members) - len(verdicts),
        not_readable=sum(row.unread for row in members),
    )


# --- twins ----------------------------------------------------------------------------------------------------------


def judged_pairs(rows: Sequence[Row]) -> list[TwinPair]:
    """The pairs of twins with none missing; those without two right diagnoses come first."""
    pairs = [pair for pair in twin_pairs(row.twin for row in rows) if pair.right is not None]
    return sorted(pairs, key=lambda pair: (pair.both_right, pair.first.scenario_id))


# --- key facts by section -------------------------------------------------------------------------------------------


class FactSection(BaseModel):
    """The key findings of one section of the charts."""

    section: str
    total: int
    """Key findings for which the records show whether they were found."""
    by_way: dict[str, int]
    """How the doctor first learned those that were found."""
    not_found: int


def fact_sections(rows: Sequence[Row]) -> list[FactSection]:
    """Key findings by section, in the order of a chart, and by how the doctor learned them."""
    found: dict[str, Counter[LearnedFrom | None]] = {}
    for row in rows:
        for section, way in row.dialogue.facts if row.dialogue else ():
            found.setdefault(section, Counter())[way] += 1
    order = [*(section.value for section in Section), NOT_STATED]
    return [
        FactSection(
            section=section,
            total=ways.total(),
            by_way={way.value: ways[way] for way in LearnedFrom if way is not LearnedFrom.DOOR},
            not_found=ways[None],
        )
        for section, ways in sorted(found.items(), key=lambda entry: order.index(entry[0]))
    ]


# --- tests ----------------------------------------------------------------------------------------------------------


class TestUse(BaseModel):
    """One test over a whole run."""

    __test__ = False  # not a test class, despite its name

    name: str
    ordered: int = 0
    """How often it was named in an order."""
    encounters: int = 0
    """In how many encounters it was ordered."""
    again: int = 0
    """How often it had been ordered before in the same encounter."""
    done: int = 0
    """In how many encounters it was done."""
    unanswered: int = 0
    """Orders without an answer, from the chart or at all."""
    usd: float | None = None
    """Price of one; null if the price list has none."""
    total_usd: float | None = None
    """Price × encounters in which it was done: it is charged once per encounter."""


def tests_used(rows: Sequence[Row]) -> list[TestUse]:
    """Every test, the most ordered first."""
    uses: dict[str, TestUse] = {}
    for row in rows:
        by_key: dict[str, list[Ordered]] = {}
        for one in row.tests.items if row.tests else ():
            by_key.setdefault(one.key, []).append(one)
        for key, given in by_key.items():
            use = uses.get(key)
            if use is None:
                use = uses[key] = TestUse(name=given[0].name, usd=given[0].usd)
            done = sum(one.provenance not in NOT_DONE for one in given)
            use.ordered += len(given)
            use.encounters += 1
            use.again += len(given) - 1
            use.done += done > 0
            use.unanswered += len(given) - done
    for use in uses.values():
        use.total_usd = None if use.usd is None else use.usd * use.done
    return sorted(uses.values(), key=lambda use: (-use.ordered, use.name))


# --- price against accuracy -----------------------------------------------------------------------------------------

MOST_UNPRICED = 0.1
"""If more of the tests are unpriced, a sum of prices says more about the price list than about the doctor."""
PRICE_GROUPS = 4


_Billed = tuple[Bill, bool, str]


class PriceGroup(BaseModel):
    """Encounters whose tests cost about the same."""

    n: int
    usd_low: float
    usd_high: float
    """The cheapest and the most expensive encounter, by known prices."""
    mean_usd: float
    mean_usd_most: float
    """With every unpriced test at the highest price on the list: the mean lies between the two."""
    accuracy: Proportion


class PriceAccuracy(BaseModel):
    """Accuracy by what the tests of an encounter cost, in groups of about equal size."""

    encounters: int = 0
    """Encounters with a transcript and a verdict."""
    unpriced: Proportion
    """Tests done that have no price ÷ tests done."""
    mean_usd: float | None = None
    mean_usd_most: float | None = None
    groups: list[PriceGroup] = []
    note: str | None = None
    """Why there are no groups."""


def price_accuracy(rows: Sequence[Row], dearest: float) -> PriceAccuracy:
    """Accuracy by price; without groups if too much has no price or every encounter costs the same.

    An answer that could not be read is not right, as in the headline.
    `dearest` is the highest price on the list.
    """
    given = [(row.tests.bill, row.right, row.cluster) for row in rows if row.tests and row.right is not None]
    bills = sorted(given, key=_usd)
    priced, unpriced = (sum(getattr(bill, name) for bill, *_ in given) for name in ("priced", "unpriced"))
    without = share((cluster, bill.unpriced, bill.unpriced + bill.priced) for bill, _, cluster in given)
    if not bills:
        return PriceAccuracy(unpriced=without, note="no record says which tests were done")
    whole = _price_group(bills, dearest)
    result = PriceAccuracy(
        encounters=len(bills), unpriced=without, mean_usd=whole.mean_usd, mean_usd_most=whole.mean_usd_most
    )
    if without.value is None:
        result.note = "no test was done"
    elif without.value > MOST_UNPRICED:
        result.note = f"{unpriced} of {unpriced + priced} tests done have no price"
    elif _usd(bills[0]) == _usd(bills[-1]):
        result.note = "every encounter's tests cost the same"
    else:
        # Up to four parts of about equal size; encounters of the same price stay together.
        parts: dict[int, list[_Billed]] = {}
        for one in bills:
            place = bisect_left(bills, _usd(one), key=_usd)
            parts.setdefault(place * PRICE_GROUPS // len(bills), []).append(one)
        result.groups = [_price_group(parts[key], dearest) for key in sorted(parts)]
    return result


def _usd(entry: _Billed) -> float:
    return entry[0].usd


def _price_group(bills: Sequence[_Billed], dearest: float) -> PriceGroup:
    """A group of bills in ascending order."""
    n = len(bills)
    mean = sum(map(_usd, bills)) / n
    return PriceGroup(
        n=n,
        usd_low=_usd(bills[0]),
        usd_high=_usd(bills[-1]),
        mean_usd=mean,
        mean_usd_most=mean + dearest * sum(bill.unpriced for bill, *_ in bills) / n,
        accuracy=share((cluster, right, 1) for _, right, cluster in bills),
    )


# --- the whole ------------------------------------------------------------------------------------------------------


class Breakdown(BaseModel):
    """A run broken down in every way."""

    groups: dict[str, list[Group]]
    twins: list[TwinPair]
    fact_sections: list[FactSection]
    tests: list[TestUse]
    price: PriceAccuracy


def breakdown(rows: Sequence[Row]) -> Breakdown:
    """Break a run down by kind of case, twins, section, test and price."""
    used = tests_used(rows)
    known = (*(test.price.usd for test in knowledge().tests.values()), *(use.usd or 0.0 for use in used))
    return Breakdown(
        groups=groups(rows),
        twins=judged_pairs(rows),
        fact_sections=fact_sections(rows),
        tests=used,
        price=price_accuracy(rows, max(known)),
    )
