"""Where a run is good and where not: by kind of case, by twins, by section of the chart, by test, by price."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import BaseModel

from agentclinic.cases.facts import patient_section, readable
from agentclinic.cases.model import Section
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.scoring.estimates import Proportion, proportion
from agentclinic.scoring.harm import harm_if_missed
from agentclinic.scoring.information import KeyFinding, Request, Way, key_facts, requests
from agentclinic.scoring.orders import UNANSWERED, Bill, Item, Price, PriceOf, bill, items
from agentclinic.scoring.repeats import REPEATS_AS_INDEPENDENT
from agentclinic.scoring.verdicts import case_key, strict
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.compare import Relation, compare
from agentclinic.vocabulary.text import fold

NOT_STATED = "not stated"

# --- by kind of case ------------------------------------------------------------------------------------------------


def annotation(record: Record, key: str) -> str | None:
    """A case's annotation as a word; None where it is not there or is not a single value."""
    value = (record.annotations or {}).get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return " ".join(str(value).split()) or None


def harm_step(record: Record) -> str | None:
    """The case's harm if missed, as a whole step of its scale."""
    harm = harm_if_missed(record)
    return None if harm is None else f"{harm:g}"


KINDS: dict[str, Callable[[Record], str | None]] = {
    "specialty": lambda record: annotation(record, "Specialty"),
    "difficulty": lambda record: annotation(record, "Difficulty"),
    "harm": harm_step,
}
"""The ways in which cases are grouped."""
_ORDER = {"easy": 0, "medium": 1, "hard": 2}


class Group(BaseModel):
    """Cases of one kind."""

    name: str
    cases: int
    accuracy: Proportion
    """Strict, missing data left out."""
    missing: int
    note: str | None = None


class _Group:
    def __init__(self) -> None:
        self.cases: set[str] = set()
        self.right = self.of = self.missing = 0

    def result(self, name: str) -> Group:
        note = REPEATS_AS_INDEPENDENT if self.of > len(self.cases) else None
        return Group(
            name=name,
            cases=len(self.cases),
            accuracy=proportion(self.right, self.of),
            missing=self.missing,
            note=note,
        )


class GroupTally:
    """Accuracy by kind of case, one record at a time."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str | None, _Group]] = {kind: {} for kind in KINDS}

    def add(self, record: Record) -> None:
        """Count one record."""
        right = strict(record)
        for kind, name_of in KINDS.items():
            group = self._groups[kind].setdefault(name_of(record), _Group())
            group.cases.add(case_key(record))
            group.missing += right is None
            group.of += right is not None
            group.right += right is True

    def result(self) -> dict[str, list[Group]]:
        """By kind, the groups; a kind that no case states is left out."""
        return {
            kind: [group.result(name or NOT_STATED) for name, group in sorted(groups.items(), key=_place(kind))]
            for kind, groups in self._groups.items()
            if any(name is not None for name in groups)
        }


def _place(kind: str) -> Callable[[tuple[str | None, _Group]], tuple[object, ...]]:
    """Specialties by size, the other kinds by their own order; what is not stated comes last."""

    def place(entry: tuple[str | None, _Group]) -> tuple[object, ...]:
        name, group = entry
        size = -group.of if kind == "specialty" else _ORDER.get((name or "").casefold(), len(_ORDER))
        return name is None, size, name or ""

    return place


# --- twins ----------------------------------------------------------------------------------------------------------


class TwinSide(BaseModel):
    """One of two cases that look alike at the door."""

    scenario_id: int
    repeat: int
    truth: str | None
    diagnosis: str | None
    right: bool


class TwinPair(BaseModel):
    """Two cases with the same door and different diagnoses, played in the same repeat."""

    first: TwinSide
    second: TwinSide
    outcome: Literal["told apart", "one right", "neither right"]
    same_answer: bool
    """Both got the same diagnosis, by the written rules."""


class Twins(BaseModel):
    """How often both of two twins were diagnosed rightly."""

    pairs: list[TwinPair] = []
    told_apart: Proportion
    """Pairs with both right ÷ pairs with an outcome for both."""
    same_answer: int = 0
    without_partner: int = 0
    """Records whose twin was not played in the same repeat, or has no outcome."""


class TwinTally:
    """Finds twins by the cases' `case_id` and `twin_of`."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], TwinSide] = {}
        self._pairs: list[TwinPair] = []
        self._alone = 0

    def add(self, record: Record) -> None:
        """Take one record."""
        own, other = annotation(record, "case_id"), annotation(record, "twin_of")
        if own is None or other is None or own == other:
            return
        right = strict(record)
        if right is None:
            self._alone += 1
            return
        side = TwinSide(
            scenario_id=record.scenario_id,
            repeat=record.repeat,
            truth=record.ground_truth,
            diagnosis=diagnosis_of(record),
            right=right,
        )
        partner = self._waiting.pop((other, record.repeat), None)
        if partner is None:
            self._waiting[own, record.repeat] = side
        else:
            first, second = sorted((partner, side), key=lambda one: one.scenario_id)
            self._pairs.append(_pair(first, second))

    def result(self) -> Twins:
        """The pairs, those not told apart first."""
        pairs = sorted(self._pairs, key=lambda pair: (pair.outcome == "told apart", pair.first.scenario_id))
        return Twins(
            pairs=pairs,
            told_apart=proportion(sum(pair.outcome == "told apart" for pair in pairs), len(pairs)),
            same_answer=sum(pair.same_answer for pair in pairs),
            without_partner=self._alone + len(self._waiting),
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
    """The section of the chart in which a key finding stands: that of the first path its author named."""
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
    """Those of which the records can tell whether they were found."""
    by_way: dict[str, int]
    """How those that were found first came."""
    not_found: int


class FactTally:
    """Counts key findings by section and by how they came."""

    def __init__(self) -> None:
        self._ways: dict[str, Counter[Way | None]] = {}

    def add(self, record: Record, asked: Sequence[Request] | None) -> None:
        """Count one record; `asked` are its requests."""
        if asked is None or record.status == "model_failed":
            return
        for entry in key_facts(record, asked) or ():
            self._ways.setdefault(section_of(entry.finding), Counter())[entry.way] += 1

    def result(self) -> list[FactSection]:
        """Section by section in the order of a chart."""
        order = [section.value for section in Section]
        return [
            FactSection(
                section=section,
                total=ways.total(),
                by_way={way.value: ways[way] for way in Way},
                not_found=ways[None],
            )
            for section, ways in sorted(
                self._ways.items(), key=lambda entry: order.index(entry[0]) if entry[0] in order else len(order)
            )
        ]


# --- tests ----------------------------------------------------------------------------------------------------------


class TestUse(BaseModel):
    """One test over a whole run."""

    __test__ = False  # not a test class, whatever pytest may think of the name

    name: str
    ordered: int
    """How often it was named in an order."""
    encounters: int
    """In how many encounters."""
    again: int
    """Orders after the first of the same encounter."""
    done: int
    """In how many encounters it was done."""
    unanswered: int
    """Orders to which the chart had no answer, or nobody answered."""
    usd: float | None
    """Price of one; null where the price list has none."""
    total_usd: float | None
    """Price × encounters in which it was done: within an encounter it is charged once."""


@dataclass(slots=True)
class _Use:
    name: str
    usd: float | None
    ordered: int = 0
    encounters: int = 0
    done: int = 0
    unanswered: int = 0


class UseTally:
    """Counts tests by what the price list calls them, else by their own name."""

    def __init__(self, price_of: PriceOf) -> None:
        self._price_of = price_of
        self._uses: dict[str, _Use] = {}

    def add(self, ordered: Sequence[Sequence[Item]]) -> None:
        """Count the orders of one encounter."""
        seen: set[str] = set()
        done: set[str] = set()
        for item in (item for order in ordered for item in order):
            price = self._price_of(item.name) or Price(None)
            key = price.panel or fold(item.name)
            use = self._uses.setdefault(key, _Use(_called(price, item.name), price.usd))
            use.ordered += 1
            use.encounters += key not in seen
            seen.add(key)
            if item.provenance in ("unavailable", UNANSWERED):
                use.unanswered += 1
            else:
                use.done += key not in done
                done.add(key)

    def result(self) -> list[TestUse]:
        """Every test, the most ordered first."""
        uses = sorted(self._uses.values(), key=lambda use: (-use.ordered, use.name))
        return [
            TestUse(
                name=use.name,
                ordered=use.ordered,
                encounters=use.encounters,
                again=use.ordered - use.encounters,
                done=use.done,
                unanswered=use.unanswered,
                usd=use.usd,
                total_usd=None if use.usd is None else use.usd * use.done,
            )
            for use in uses
        ]


def _called(price: Price, name: str) -> str:
    test = knowledge().tests.get(price.panel) if price.panel else None
    return test.name if test else name


# --- price against accuracy -----------------------------------------------------------------------------------------

MOST_UNPRICED = 0.1
"""With more of the tests unpriced, a sum of prices says more about the price list than about the doctor."""
PRICE_GROUPS = 4


class PriceGroup(BaseModel):
    """Encounters whose tests cost about the same."""

    n: int
    usd_low: float
    usd_high: float
    """The cheapest and the dearest encounter, by what has a price."""
    mean_usd: float
    mean_usd_most: float
    """With every unpriced test at the dearest price of the list: the mean lies between the two."""
    accuracy: Proportion


class PriceAccuracy(BaseModel):
    """Accuracy by what the tests of an encounter cost, in groups of about equal size."""

    encounters: int = 0
    """Those with a transcript and an outcome."""
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


class PriceTally:
    """Keeps the bill of every encounter."""

    def __init__(self, dearest: float) -> None:
        self._dearest = dearest
        self._bills: list[_Priced] = []
        self._priced = 0

    def add(self, record: Record, due: Bill) -> None:
        """Take one encounter's bill."""
        right = strict(record)
        if right is not None:
            self._bills.append(_Priced(due.usd, due.unpriced, right))
            self._priced += due.priced

    def result(self) -> PriceAccuracy:
        """Accuracy by price; without groups where too much has no price or every encounter costs the same."""
        without = sum(one.unpriced for one in self._bills)
        share = proportion(without, without + self._priced)
        n = len(self._bills)
        if not n:
            return PriceAccuracy(encounters=n, unpriced=share, note="no record tells of tests")
        bills = sorted(self._bills, key=lambda one: (one.usd, one.unpriced, one.right))
        whole = _price_group(bills, self._dearest)
        result = PriceAccuracy(encounters=n, unpriced=share, mean_usd=whole.mean_usd, mean_usd_most=whole.mean_usd_most)
        if share.value is None:
            result.note = "no test was done"
        elif share.value > MOST_UNPRICED:
            result.note = f"{without} of {without + self._priced} tests done have no price"
        elif bills[0].usd == bills[-1].usd:
            result.note = "every encounter's tests cost the same"
        else:
            result.groups = [_price_group(part, self._dearest) for part in _quantiles(bills)]
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
    """Everything of this module about one run."""

    groups: dict[str, list[Group]]
    twins: Twins
    fact_sections: list[FactSection]
    tests: list[TestUse]
    price: PriceAccuracy


class Tally:
    """Takes records one at a time."""

    def __init__(self, price_of: PriceOf) -> None:
        self._price_of = price_of
        self._groups, self._twins, self._facts = GroupTally(), TwinTally(), FactTally()
        self._uses = UseTally(price_of)
        self._price = PriceTally(max(test.price.usd for test in knowledge().tests.values()))

    def add(self, record: Record) -> Bill | None:
        """Count one record; returns what its tests come to, None where it is not known."""
        self._groups.add(record)
        self._twins.add(record)
        asked = requests(record)
        self._facts.add(record, asked)
        if asked is None or record.status == "model_failed":
            return None
        ordered = [items(request) for request in asked if request.kind == "test"]
        self._uses.add(ordered)
        due = bill(ordered, self._price_of)
        self._price.add(record, due)
        return due

    def result(self) -> Breakdown:
        """The measures of what was counted."""
        return Breakdown(
            groups=self._groups.result(),
            twins=self._twins.result(),
            fact_sections=self._facts.result(),
            tests=self._uses.result(),
            price=self._price.result(),
        )
