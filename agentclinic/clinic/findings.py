"""Read findings from a dialogue: present, absent, or not mentioned."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from agentclinic.cases.model import Door, age_in_years
from agentclinic.results.turn import Exchange, Provenance
from agentclinic.vocabulary.base import Finding, Rule, knowledge
from agentclinic.vocabulary.denial import answers_no, answers_yes, finds_nothing
from agentclinic.vocabulary.text import fold

Evidence = dict[str, bool]
"""Maps the id of a finding to present (True) or absent (False); other findings are unknown."""

_DEFAULTS = frozenset(
    {
        Provenance.DEFAULT_NEGATIVE,
        Provenance.DEFAULT_NORMAL,
        Provenance.UNAVAILABLE,
        Provenance.PENDING,
        Provenance.REFUSED,
        Provenance.NOT_UNDERSTOOD,
        Provenance.MANNER,
    }
)
_DEFAULT_WORDS = re.compile(r"\bnormal readings\b", re.IGNORECASE)
_SAID_UNAVAILABLE = re.compile(
    r"(?i)not? (?:result )?available|normal readings|not in (?:the|my) chart|not done|result pending"
)


def gather(door: Door, exchanges: Iterable[Exchange]) -> Evidence:
    """What is known so far. A finding once stated as present stays present."""
    return _dialogue(door.objective, age_in_years(door.demographics)).evidence(tuple(exchanges))


class _Dialogue:
    """The dialogue with a patient, as far as it has been read: a doctor gathers all of it again on each turn."""

    def __init__(self, objective: str, age: float | None) -> None:
        self._at_door = _at_door(objective)
        self._age = age
        self._read: tuple[tuple[Exchange, ...], Evidence] = (), self._at_door

    def evidence(self, said: tuple[Exchange, ...]) -> Evidence:
        """What is known after these exchanges; carried on from the last time if they begin with the same ones."""
        before, known = self._read
        if said[: len(before)] != before:
            before, known = (), self._at_door
        evidence = dict(known)
        for exchange in said[len(before) :]:
            if told := evidence_in(exchange, self._age):
                _merge(evidence, told)
        if said:  # a planner also asks what was known at the door, in between
            self._read = said, dict(evidence)
        return evidence


@lru_cache(maxsize=512)  # more encounters than that at the same time read their dialogues from the start
def _dialogue(objective: str, age: float | None) -> _Dialogue:
    return _Dialogue(objective, age)


def gather_facts(facts: Iterable[str], age: float | None) -> Evidence:
    """What written facts say: findings by name, separated by semicolons, or in other words."""
    evidence: Evidence = {}
    for fact in facts:
        for part in dict.fromkeys(fact.split(";")):
            name = fold(part)
            if name in _by_name():
                _merge(evidence, {_by_name()[name]: True})
            elif name.startswith("no ") and name.removeprefix("no ") in _by_name():
                _merge(evidence, {_by_name()[name.removeprefix("no ")]: False})
            else:
                _merge(evidence, evidence_in(Exchange("test", "", part.strip()), age))
    return evidence


@lru_cache(maxsize=4096)  # laboratories report the same normal results in every encounter
def evidence_in(exchange: Exchange, age: float | None) -> Evidence:
    if exchange.kind == "question":
        return _from_patient(exchange)
    return _from_result(exchange, age) if exchange.kind == "test" else {}


@lru_cache(maxsize=1024)
def _at_door(objective: str) -> Evidence:
    return _stated(objective)


def _merge(evidence: Evidence, new: Evidence) -> None:
    for finding, present in new.items():
        evidence[finding] = evidence.get(finding, False) or present


def _stated(text: str) -> Evidence:
    known = knowledge()
    found: Evidence = {}
    for mention in known.finding_terms.find(text):
        found[mention.key] = found.get(mention.key, False) or not mention.negated
    for mention in known.absent_terms.find(text):
        found.setdefault(mention.key, False)
    return found


def asked_findings(text: str) -> set[str]:
    return {mention.key for mention in knowledge().finding_terms.find(text)}


def _defaulted(exchange: Exchange) -> set[str]:
    """Findings that the reply covers only by default: they are not evidence (likelihood ratio 1)."""
    names = {fold(d.topic) for d in exchange.disclosures if d.provenance in _DEFAULTS}
    named = {_by_name()[name] for name in names if name in _by_name()}
    return named | {finding for name in names for finding in asked_findings(name)}


@lru_cache(maxsize=1)
def _by_name() -> dict[str, str]:
    return {fold(finding.name): finding.id for finding in knowledge().findings.values()}


def _from_patient(exchange: Exchange) -> Evidence:
    found = _stated(exchange.reply)
    asked = {f for f in asked_findings(exchange.content) if knowledge().findings[f].ask}
    charted = not exchange.disclosures or any(d.provenance not in _DEFAULTS for d in exchange.disclosures)
    if charted and len(asked) == 1:
        # "Yes." and "No." count only if a single finding was asked about.
        (finding,) = asked
        if finding not in found and answers_no(exchange.reply):
            found[finding] = False
        elif finding not in found and answers_yes(exchange.reply):
            found[finding] = True
    for finding in _defaulted(exchange):
        if not found.get(finding, False):
            found.pop(finding, None)
    return found


def _from_result(exchange: Exchange, age: float | None) -> Evidence:
    if exchange.disclosures:
        if all(d.provenance in _DEFAULTS for d in exchange.disclosures):
            return {}
    elif _SAID_UNAVAILABLE.search(exchange.reply):
        return {}
    reply = _DEFAULT_WORDS.sub("", exchange.reply)
    found = _stated(reply)
    found.update(_measured(exchange.content, reply, age))
    # A report that finds nothing makes everything it could have shown absent. One that finds something may mention
    # the rest in words we do not know, so the rest stays unknown.
    if not any(found.values()) and finds_nothing(reply):
        shown = _reported(exchange)
        for finding in knowledge().findings.values() if shown else ():
            if finding.order in shown and finding.measure is None:
                found.setdefault(finding.id, False)
    return found


def _reported(exchange: Exchange) -> set[str]:
    """The tests named in an order, except those answered only by default."""
    known = knowledge()
    ordered = {mention.key for mention in known.test_names.find(exchange.content)}
    defaulted = {d.topic for d in exchange.disclosures if d.provenance in _DEFAULTS}
    return {test for test in ordered if known.tests[test].name not in defaulted}


def _measured(order: str, reply: str, age: float | None) -> Evidence:
    found: Evidence = {}
    said = frozenset(_NAME_PART.findall(reply.casefold()))
    named = {measure.place: measure for word in _measures().keys() & said for measure in _measures()[word]}
    for _, measure in sorted(named.items()):
        if not any(name <= said for name in measure.names):
            continue
        present = _read_number(measure.finding, measure.of_blood, order, reply, age)
        if present is not None:
            found[measure.finding.id] = present
    return found


_NAME_PART = re.compile(r"[^\W_]+")


class _Measured(NamedTuple):
    """A measured finding."""

    place: int
    finding: Finding
    names: tuple[frozenset[str], ...]
    """The words of each of its names."""
    of_blood: bool


@lru_cache(maxsize=1)
def _measures() -> dict[str, list[_Measured]]:
    """The measured findings by the first words of their names: most results have none of these."""
    found: dict[str, list[_Measured]] = {}
    for place, finding in enumerate(knowledge().findings.values()):
        if finding.measure is None:
            continue
        names = [_NAME_PART.findall(name.casefold()) for name in finding.measure.names]
        of_blood = finding.kind == "lab" and not _SPECIMEN.search(finding.measure.names[0])
        measured = _Measured(place, finding, tuple(map(frozenset, names)), of_blood)
        for word in dict.fromkeys(words[0] for words in names):
            found.setdefault(word, []).append(measured)
    return found


# The specimen of a value is the last one named before it in the report, or else in the order.
_SPECIMEN = re.compile(
    r"(?P<fluid>\bcsf\b|cerebrospinal|lumbar puncture|spinal tap|synovial|\bjoint|arthrocentesis|pleural|thoracentesis"
    r"|ascit|peritoneal|paracentesis|\burin|\bstool)"
    r"|(?<!white )(?<!red )\bblood\b(?! cells?)|\bserum\b|\bplasma\b|\bcbc\b|hematolog|metabolic panel|chemistry"
    r"|electrolytes|function tests|laborator",
    re.IGNORECASE,
)


_FLUIDS = (
    "csf", "cerebrospinal", "lumbar puncture", "spinal tap", "synovial", "joint", "arthrocentesis", "pleural",
    "thoracentesis", "ascit", "peritoneal", "paracentesis", "urin", "stool",
)  # fmt: skip
"""Without any of these no fluid matches `_SPECIMEN`, which is slow to look for."""


@lru_cache(maxsize=512)
def _may_name_fluid(text: str) -> bool:
    lower = text.replace("_", " ").lower()
    return any(fluid in lower for fluid in _FLUIDS)


def _from_another_fluid(order: str, reply: str, place: int) -> bool:
    if not (_may_name_fluid(reply) or _may_name_fluid(order)):
        return False
    before = bisect_right(_specimens(reply), place, key=lambda named: named[0])
    named = _specimens(reply)[before - 1 : before] if before else _specimens(order.replace("_", " "))[-1:]
    return any(fluid for _, fluid in named)


@lru_cache(maxsize=512)
def _specimens(text: str) -> list[tuple[int, bool]]:
    """Where the name of each specimen in a text ends, and whether it is a fluid other than blood."""
    return [(named.end(), bool(named["fluid"])) for named in _SPECIMEN.finditer(text)]


@lru_cache(maxsize=512)
def _pattern(finding_id: str) -> re.Pattern[str]:
    measure = knowledge().findings[finding_id].measure
    assert measure is not None
    names = "|".join(
        re.escape(name).replace(r"\ ", r"[\s_-]+") for name in sorted(measure.names, key=len, reverse=True)
    )
    return re.compile(
        rf"\b(?:{names})\b(?:\s*\([^)\d]{{0,80}}\))?[\s:=,]*(?:is|was|of|level)?[\s<>≥≤~]*"
        r"(?P<number>\d[\d,]*(?:\.\d+)?)(?:\s*/\s*(?P<second>\d{2,3}))?(?P<after>[^;\n]{0,14})",
        re.IGNORECASE,
    )


def _read_number(finding: Finding, of_blood: bool, order: str, reply: str, age: float | None) -> bool | None:
    measure = finding.measure
    assert measure is not None
    for match in _pattern(finding.id).finditer(reply):
        if of_blood and _from_another_fluid(order, reply, match.start()):
            continue
        number = match["second"] if measure.part == "diastolic" else match["number"]
        if number is None:
            continue
        value = float(number.replace(",", ""))
        for rule in measure.rules:
            if _applies(rule, value, match["after"], age):
                return (rule.above is not None and value > rule.above) or (
                    rule.below is not None and value < rule.below
                )
    return None


# Assumed if the age is unknown: most patients are adults.
_ADULT = 40.0


def _applies(rule: Rule, value: float, after: str, age: float | None) -> bool:
    years = _ADULT if age is None else age
    return (
        (rule.age_min is None or years >= rule.age_min)
        and (rule.age_max is None or years < rule.age_max)
        and (rule.min is None or value >= rule.min)
        and (rule.max is None or value <= rule.max)
        and rule.unit.lower() in after.lower()
    )
