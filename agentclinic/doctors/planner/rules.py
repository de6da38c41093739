"""The planning rules that can be checked, using the tests of the knowledge base, their kinds and their cost."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from agentclinic.cases.model import Door
from agentclinic.clinic.findings import gather
from agentclinic.doctors.planner.settings import PolicyFile
from agentclinic.results.turn import Exchange
from agentclinic.results.utterance import REQUEST_TEST
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import content_words, fold, says


@dataclass(frozen=True)
class OrderedTest:
    """One test of an order."""

    name: str
    kind: str
    cost_level: str
    usd: float
    """Its price in our table; if it is not listed, that of the middle one of its cost level."""


@dataclass(frozen=True)
class Ruling:
    """What the rules say about an order."""

    broken: tuple[str, ...] = ()
    excused: tuple[str, ...] = ()
    """Rules that a red flag or the notes set aside."""
    unknown: bool = False
    """The test is not known, so nothing could be checked."""

    @property
    def lines(self) -> tuple[str, ...]:
        return (
            *(f"rule broken: {rule}" for rule in self.broken),
            *(f"rule set aside: {rule}" for rule in self.excused),
            *(("rules not checked: the test is not known",) if self.unknown else ()),
        )


def check_order(policy: PolicyFile, door: Door, order: str, before: Sequence[Exchange]) -> Ruling:
    """Check an order against the rules, given what was done and learned before it."""
    tests = named_tests(policy, order)
    if not tests:
        return Ruling(unknown=True)
    rules = policy.constraints
    broken, excusable = [], []
    if rules.one_test_per_turn and len(tests) > 1:
        broken.append(f"one test per turn ({', '.join(test.name for test in tests)} at once)")
    earlier = [named_tests(policy, exchange.content) for exchange in before if exchange.kind == "test"]
    if rules.low_cost_first:
        costly = [test.name for test in tests if test.cost_level == "high"]
        if costly and all(test.cost_level == "high" for done in earlier for test in done):
            excusable.append(f"low cost first ({', '.join(costly)} before any cheaper test or examination)")
    just_done = earlier[-1] if earlier and before[-1].kind == "test" else []
    for test in tests:
        for last in just_done:
            if _imaging(test) and _imaging(last):
                if rules.no_back_to_back_imaging:
                    excusable.append(f"no back-to-back imaging ({test.name} right after {last.name})")
            elif test.kind not in policy.transitions.get(last.kind, (test.kind,)):
                excusable.append(f"transitions ({test.name}, {test.kind}, right after {last.name}, {last.kind})")
    flag = red_flag(policy, door, before) if excusable and rules.red_flag_override else None
    if flag:
        return Ruling(tuple(broken), tuple(f"{rule}, for a red flag: {flag}" for rule in excusable))
    return Ruling((*broken, *excusable))


def is_done(policy: PolicyFile, request: str, before: Sequence[Exchange]) -> bool:
    """Whether a question was asked or a test ordered, by its words or as the same tests."""
    test, wanted = _read(request)
    done = [exchange.content for exchange in before if (exchange.kind == "test") == test]
    if any(fold(wanted) == fold(said) for said in done):
        return True
    tests = {known.name for known in named_tests(policy, wanted)} if test else set()
    return bool(tests) and tests <= {known.name for said in done for known in named_tests(policy, said)}


def just_asked(request: str, before: Sequence[Exchange]) -> bool:
    """Whether the last utterance asked for the same, in other words: all that one clause of the request names."""
    test, wanted = _read(request)
    if not before or (before[-1].kind == "test") != test:
        return False
    said = content_words(before[-1].content)
    clauses = [content_words(clause) for clause in _CLAUSE.split(wanted)]
    whole = content_words(wanted)
    return bool(whole) and (whole <= said or any(len(clause) > 1 and clause <= said for clause in clauses))


_CLAUSE = re.compile(r"[,;:.?!]")


def as_advised(policy: PolicyFile, ruling: Ruling, order: str, step: str) -> Ruling:
    """The ruling on an order, without fault if all of it is in the step that the notes advised."""
    test, advised = _read(step)
    if not (ruling.broken and test and is_done(policy, f"{REQUEST_TEST}: {order}", [Exchange("test", advised, "")])):
        return ruling
    excused = (f"{rule}, as the notes advised" for rule in ruling.broken)
    return replace(ruling, broken=(), excused=(*ruling.excused, *excused))


def expense(policy: PolicyFile, request: str) -> tuple[int, float]:
    """What a request costs, for comparison: a question, then an examination, then tests by price, unknown ones last."""
    test, wanted = _read(request)
    if not test:
        return 0, 0.0
    tests = named_tests(policy, wanted)
    if tests and all(named.kind in _EXAMINATIONS for named in tests):
        return 1, 0.0
    return 2, sum(named.usd for named in tests) if tests else math.inf


_EXAMINATIONS = ("vital", "examination")


def _read(request: str) -> tuple[bool, str]:
    """Whether a request is for a test, and what it asks for."""
    test = request.upper().startswith(REQUEST_TEST)
    return test, request[len(REQUEST_TEST) :].strip(" :") if test else request


def red_flag(policy: PolicyFile, door: Door, exchanges: Sequence[Exchange]) -> str | None:
    """The first red flag present at the door or in the dialogue."""
    evidence = gather(door, exchanges)
    return next((knowledge().findings[flag].name for flag in policy.red_flags if evidence.get(flag)), None)


def named_tests(policy: PolicyFile, order: str) -> list[OrderedTest]:
    """The tests an order names; members of a panel that is also named are part of the panel."""
    known = knowledge()
    named = {name for word, name in policy.synonyms.items() if says(order, word)}
    found = {mention.key: known.tests[mention.key] for mention in known.test_names.find(order)}
    found |= {test.id: test for test in known.tests.values() if test.name in named}
    members = {member for test in found.values() for member in test.panel_of}
    tests = [OrderedTest(t.name, t.category, t.cost_level, t.price.usd) for t in found.values() if t.id not in members]
    if tests:
        return tests
    for kind, category in policy.categories.items():
        if any(says(order, word) for word in category.words):
            level = category.cost_level
            usd = median(test.price.usd for test in known.tests.values() if test.cost_level == level)
            return [OrderedTest(order.strip(), kind, level, usd)]
    return []


def _imaging(test: OrderedTest) -> bool:
    """Whether a test is an imaging study, including special kinds such as `imaging_ct`."""
    return test.kind.partition("_")[0] == "imaging"
