"""Where a run does well and where it does not: by kind of case, twins, section of the chart, test and price."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel

from agentclinic.cases.facts import patient_section, readable
from agentclinic.cases.model import Section
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.scoring.estimates import Proportion, proportion
from agentclinic.scoring.harm import harm_if_missed
from agentclinic.scoring.information import KeyFinding, Way, key_facts, requests
from agentclinic.scoring.orders import UNANSWERED, Bill, Item, Price, PriceOf, bill, items
from agentclinic.scoring.repeats import REPEATS_AS_INDEPENDENT
from agentclinic.scoring.verdicts import case_key, strict
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.compare import Relation, compare
from agentclinic.vocabulary.text import fold

NOT_STATED = "not stated"

# --- by kind of case ------------------------------------------------------------------------------------------------


def annotation(record: Record, key: str) -> str | None:
    """A case's annotation as text; None if it is absent or not a single value."""
    value = (record.annotations or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return " ".join(str(value).split()) or None


def harm_step(record: Record) -> str | None:
    """The case's harm if missed, as a level of its scale."""
    harm = harm_if_missed(record)
    return None if harm is None else f"{harm:g}"


KINDS: dict[str, Callable[[Record], str | None]] = {
    "specialty": lambda record: annotation(record, "Specialty"),
    "difficulty": lambda record: annotation(record, "Difficulty"),
    "harm": harm_step,
}
"""How cases are grouped."""
_ORDER = {"easy": 0, "medium": 1, "hard": 2}


class Group(BaseModel):
    """Cases of one kind."""

    name: str
    cases: int
    accuracy: Proportion
    """Strict, without missing data."""
    missing: int
    note: str | None = None


def groups(observations: Sequence[Observation]) -> dict[str, list[Group]]:
    """Accuracy by kind of case; a kind that no case states is left out."""
    found = {}
    for place, kind in enumerate(KINDS):
        members: dict[str | None, list[Observation]] = {}
        for seen in observations:
            members.setdefault(seen.kinds[place], []).append(seen)
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


def _group(name: str, members: Sequence[Observation]) -> Group:
    cases = len({seen.case for seen in members})
    verdicts = [seen.right for seen in members if seen.right is not None]
    return Group(
        name=name,
        cases=cases,
        accuracy=proportion(sum(verdicts), len(verdicts)),
        missing=len(members) - len(verdicts),
        note=REPEATS_AS_INDEPENDENT if len(verdicts) > cases else None,
    )


# --- twins ----------------------------------------------------------------------------------------------------------


class TwinSide(BaseModel):
    """One of two cases that look alike at the door."""

    scenario_id: int
    repeat: int
    truth: str | None
    diagnosis: str | None
    right: bool


class TwinPair(BaseModel):
    """Two cases that look alike at the door, with different diagnoses, played in the same repeat."""

    first: TwinSide
    second: TwinSide
    outcome: Literal["told apart", "one right", "neither right"]
    same_answer: bool
    """Both got the same diagnosis by the written rules."""


class Twins(BaseModel):
    """How often both twins were diagnosed correctly."""

    pairs: list[TwinPair] = []
    told_apart: Proportion
    """Pairs with both right ÷ pairs with an outcome for both."""
    same_answer: int = 0
    without_partner: int = 0
    """Records whose twin was not played in the same repeat, or has no outcome."""


class _Twin(NamedTuple):
    """A case that has a twin."""

    case_id: str
    twin_of: str
    side: TwinSide | None
    """None without an outcome."""


def _twin(record: Record, right: bool | None) -> _Twin | None:
    own, other = annotation(record, "case_id"), annotation(record, "twin_of")
    if own is None or other is None or own == other:
        return None
    if right is None:
        return _Twin(own, other, None)
    side = TwinSide(
        scenario_id=record.scenario_id,
        repeat=record.repeat,
        truth=record.ground_truth,
        diagnosis=diagnosis_of(record),
        right=right,
    )
    return _Twin(own, other, side)


def twins(observations: Iterable[Observation]) -> Twins:
    """Pair the cases by `case_id` and `twin_of`, within a repeat; pairs without two right diagnoses come first."""
    waiting: dict[tuple[str, int], TwinSide] = {}
    pairs = []
    without_outcome = 0
    for twin in (seen.twin for seen in observations if seen.twin):
        if twin.side is None:
            without_outcome += 1
        elif (partner := waiting.pop((twin.twin_of, twin.side.repeat), None)) is None:
            waiting[twin.case_id, twin.side.repeat] = twin.side
        else:
            pairs.append(_pair(*sorted((partner, twin.side), key=lambda side: side.scenario_id)))
    pairs.sort(key=lambda pair: (pair.outcome == "told apart", pair.first.scenario_id))
    return Twins(
        pairs=pairs,
        told_apart=proportion(sum(pair.outcome == "told apart" for pair in pairs), len(pairs)),
        same_answer=sum(pair.same_answer for pair in pairs),
        without_partner=without_outcome + len(waiting),
    )


def _pair(first: TwinSide, second: TwinSide) -> TwinPair:
    right = first.right + second.right
    said = first.diagnosis, second.diagnosis
    same = bool(said[0] and said[1]) and compare(said[0] or "", said[1] or "").relation is Relation.SAME
    outcome: Literal["told apart", "one right", "neither right"] = (
        "told apart" if right == 2 else "one right" if right else "neither right"
    )
    return TwinPair(first=first, second=second, outcome=outcome, same_answer=same)


# --- key facts by section -------------------------------------------------------------------------------------------

_ROOTS = {
    "physical_exams": Section.EXAMINATION,
    "Physical_Examination_Findings": Section.EXAMINATION,
    "Test_Results": Section.TESTS,
}


def section_of(finding: KeyFinding) -> str:
    """The chart section of a key finding: that of the first path its author named."""
    if not finding.paths:
        return NOT_STATED
    root, _, rest = finding.paths[0].partition("/")
    head = readable(rest.split("/")[0].split("#")[0].split("[")[0])
    root = root.split("#")[0]
    if root in _ROOTS:
        return Section.VITALS.value if "vital sign" in fold(head) else _ROOTS[root].value
    return patient_section(head).value


class FactSection(BaseModel):
    """The key findings of one section of the charts."""

    section: str
    total: int
    """Key findings for which the records show whether they were found."""
    by_way: dict[str, int]
    """How the doctor first learned those that were found."""
    not_found: int


def fact_sections(observations: Iterable[Observation]) -> list[FactSection]:
    """Key findings by section, in the order of a chart, and by how the doctor learned them."""
    found: dict[str, Counter[Way | None]] = {}
    for seen in observations:
        for section, way in seen.facts:
            found.setdefault(section, Counter())[way] += 1
    order = [*(section.value for section in Section), NOT_STATED]
    return [
        FactSection(
            section=section,
            total=ways.total(),
            by_way={way.value: ways[way] for way in Way},
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
    """Orders after the first in the same encounter."""
    done: int = 0
    """In how many encounters it was done."""
    unanswered: int = 0
    """Orders without an answer, from the chart or at all."""
    usd: float | None = None
    """Price of one; null if the price list has none."""
    total_usd: float | None = None
    """Price × encounters in which it was done: it is charged once per encounter."""


class _Ordered(NamedTuple):
    """A test as it was ordered once."""

    key: str
    """What the price list calls it, else its own name."""
    name: str
    usd: float | None
    done: bool


def _ordered(item: Item, price_of: PriceOf) -> _Ordered:
    price = price_of(item.name) or Price(None)
    test = knowledge().tests.get(price.panel) if price.panel else None
    done = item.provenance not in ("unavailable", UNANSWERED)
    return _Ordered(price.panel or fold(item.name), test.name if test else item.name, price.usd, done)


def tests_used(observations: Iterable[Observation]) -> list[TestUse]:
    """Every test, the most ordered first."""
    uses: dict[str, TestUse] = {}
    for seen in observations:
        by_key: dict[str, list[_Ordered]] = {}
        for one in seen.tests:
            by_key.setdefault(one.key, []).append(one)
        for key, given in by_key.items():
            use = uses.get(key)
            if use is None:
                use = uses[key] = TestUse(name=given[0].name, usd=given[0].usd)
            done = sum(one.done for one in given)
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


class _Priced(NamedTuple):
    usd: float
    unpriced: int
    right: bool


def price_accuracy(observations: Iterable[Observation], dearest: float) -> PriceAccuracy:
    """Accuracy by price; without groups if too much has no price or every encounter costs the same.

    `dearest` is the highest price on the list.
    """
    given = [(seen.bill, seen.right) for seen in observations if seen.bill is not None and seen.right is not None]
    bills = sorted(_Priced(bill.usd, bill.unpriced, right) for bill, right in given)
    priced, unpriced = (sum(getattr(bill, name) for bill, _ in given) for name in ("priced", "unpriced"))
    share = proportion(unpriced, unpriced + priced)
    if not bills:
        return PriceAccuracy(unpriced=share, note="no record says which tests were done")
    whole = _price_group(bills, dearest)
    result = PriceAccuracy(
        encounters=len(bills), unpriced=share, mean_usd=whole.mean_usd, mean_usd_most=whole.mean_usd_most
    )
    if share.value is None:
        result.note = "no test was done"
    elif share.value > MOST_UNPRICED:
        result.note = f"{unpriced} of {unpriced + priced} tests done have no price"
    elif bills[0].usd == bills[-1].usd:
        result.note = "every encounter's tests cost the same"
    else:
        result.groups = [_price_group(part, dearest) for part in _quantiles(bills)]
    return result


def _quantiles(bills: Sequence[_Priced]) -> list[list[_Priced]]:
    """Up to four parts of about equal size; encounters of the same price stay together."""
    parts: dict[int, list[_Priced]] = {}
    for one in bills:
        place = bisect_left(bills, one.usd, key=lambda other: other.usd)
        parts.setdefault(place * PRICE_GROUPS // len(bills), []).append(one)
    return [parts[key] for key in sorted(parts)]


def _price_group(bills: Sequence[_Priced], dearest: float) -> PriceGroup:
    n = len(bills)
    mean = sum(one.usd for one in bills) / n
    return PriceGroup(
        n=n,
        usd_low=bills[0].usd,
        usd_high=bills[-1].usd,
        mean_usd=mean,
        mean_usd_most=mean + dearest * sum(one.unpriced for one in bills) / n,
        accuracy=proportion(sum(one.right for one in bills), n),
    )


# --- the whole ------------------------------------------------------------------------------------------------------


class Breakdown(BaseModel):
    """A run broken down in every way."""

    groups: dict[str, list[Group]]
    twins: Twins
    fact_sections: list[FactSection]
    tests: list[TestUse]
    price: PriceAccuracy


class Observation(NamedTuple):
    """What one record contributes."""

    case: str
    right: bool | None
    kinds: tuple[str | None, ...]
    """In the order of `KINDS`."""
    twin: _Twin | None
    facts: tuple[tuple[str, Way | None], ...] = ()
    """Section and way of each key finding that can be assessed."""
    tests: tuple[_Ordered, ...] = ()
    bill: Bill | None = None
    """What the tests cost; None if the record does not say."""


def observe(record: Record, price_of: PriceOf) -> Observation:
    """Reduce a record to what the breakdown needs."""
    right = strict(record)
    seen = Observation(
        case_key(record), right, tuple(name_of(record) for name_of in KINDS.values()), _twin(record, right)
    )
    asked = requests(record)
    if asked is None or record.status == "model_failed":
        return seen
    ordered = [items(request) for request in asked if request.kind == "test"]
    return seen._replace(
        facts=tuple((section_of(entry.finding), entry.way) for entry in key_facts(record, asked) or ()),
        tests=tuple(_ordered(item, price_of) for order in ordered for item in order),
        bill=bill(ordered, price_of),
    )


def summarise(observations: Iterable[Observation]) -> Breakdown:
    """Break a run down by kind of case, twins, section, test and price."""
    seen = list(observations)
    return Breakdown(
        groups=groups(seen),
        twins=twins(seen),
        fact_sections=fact_sections(seen),
        tests=tests_used(seen),
        price=price_accuracy(seen, max(test.price.usd for test in knowledge().tests.values())),
    )
