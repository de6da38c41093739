"""What a limited setting offers: which orders it carries out, in whole or in part, and which results it can have.

It depends on the setting and on the names in orders and charts alone, never on what a chart holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from agentclinic.cases.matcher import Ordered
from agentclinic.cases.matcher.not_tests import said_of_no_test
from agentclinic.cases.matcher.order_kinds import EXAM, LABORATORY, MEASURED
from agentclinic.cases.matcher.order_words import Reading, reading, same_site, vocabulary
from agentclinic.cases.matcher.orders import charted_as
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary.settings import Offer, Pattern, Setting, bedside

_BLOOD = frozenset({"blood"})
_SEROLOGY = frozenset({"serology"})
"""How something is measured, not what."""


class Part(NamedTuple):
    """What is done of an item, and as which offer of the setting."""

    item: Ordered
    offer: Offer | None = None
    """None for an examination, and for a test that we do not know."""


def parts_of(setting: Setting, item: Ordered, request: str = "") -> tuple[list[Part], bool]:
    """The parts of an item that a setting offers, and whether they are all of it; none at all if it is not offered."""
    read = reading(item.name)
    if setting.nothing:
        return [], False
    if not any(read.of(kind) for kind in MEASURED) or _at_bedside(read):
        done = item.with_facts(tuple(fact for fact in item.facts if has(setting, fact)))
        return ([Part(done)], True) if done.facts or not _is_unknown_test(item.name, read) else ([], False)
    if offer := _offer(setting, item.name, f"{item.name} {request}"):
        return [Part(_reported(setting, item, offer), offer)], True
    offers, rest = _fewest(setting, _values(read))
    if offers:
        return [Part(_named(item, offer), offer) for offer in offers], not rest
    known = set(read.by_kind) <= {"values", "specimens", "timings"} and not item.equivalent
    if known and item.facts and all(has(setting, fact) for fact in item.facts):
        return [Part(item)], True  # part of what was taken with another item: "lumbar puncture with opening pressure"
    return [], False


def is_all_laboratory(name: str) -> bool:
    """Whether an order asks for everything measured in blood: it names no test, and can have no price."""
    read = reading(name)
    return bool(LABORATORY.search(name)) and not read.words and set(read.by_kind) <= {"specimens"}


def offer_of(setting: Setting, name: str) -> Offer | None:
    """The offer as which a setting does a test of this name."""
    named = next((offer for offer in setting.offers or () if offer.name.lower() == name.lower()), None)
    return named or _offer(setting, name, name)


def has(setting: Setting, fact: Fact) -> bool:
    """Whether a charted or completed result can be had in a setting."""
    if setting.nothing:
        return False
    return fact.section is not Section.TESTS or _at_bedside(charted_as(fact)) or offer_for(setting, fact) is not None


@lru_cache(maxsize=32768)  # a chart with all that completes it has hundreds of results
def offer_for(setting: Setting, fact: Fact) -> Offer | None:
    """The offer that a result belongs to; None if a part of it belongs to none."""
    heads = " ".join(fact.heads)
    whole = next((offer for offer in setting.offers or () if _fits_one(offer, reading(heads), heads)), None)
    offers, rest = _fewest(setting, _values(reading(heads)))
    return whole or (offers[0] if offers and not rest else None)


def _shows(offer: Offer, fact: Fact) -> bool:
    """Whether an offer shows a result, or a part of it: "Syphilis and HIV Serology"."""
    heads = " ".join(fact.heads)
    values = _values(reading(heads)).values()
    return _fits_one(offer, reading(heads), heads) or any(_fits_one(offer, one) for one in values)


def _at_bedside(read: Reading) -> bool:
    return bool(read.of("tests")) and read.of("tests") <= bedside()


def _is_unknown_test(name: str, read: Reading) -> bool:
    """Whether a name is neither an examination nor "all laboratory tests", and is nothing else that we know."""
    known = read.by_kind.keys() - {"specimens", "timings", "qualifiers"} or not read.words or said_of_no_test(name)
    return not (known or EXAM.search(name) or LABORATORY.search(name))


def _reported(setting: Setting, item: Ordered, offer: Offer) -> Ordered:
    """An item that a setting offers, with the results that it can have."""
    facts = tuple(fact for fact in item.facts if has(setting, fact))
    facts = tuple(fact for fact in facts if _shows(offer, fact)) or facts
    special = any(pattern.said for pattern in offer.patterns)
    return Ordered(offer.name if special else item.name, facts, item.equivalent if facts else None)


def _named(item: Ordered, offer: Offer) -> Ordered:
    """The part of an item that one offer is, by its name."""
    return Ordered(offer.name, tuple(fact for fact in item.facts if _shows(offer, fact)))


def _offer(setting: Setting, name: str, said: str) -> Offer | None:
    read = reading(name)
    return next((offer for offer in setting.offers or () if _fits_one(offer, read, name, said)), None)


def _fits_one(offer: Offer, read: Reading, name: str = "", said: str | None = None) -> bool:
    """Whether one of an offer's patterns fits a name, and what was said in the whole order, if it is one."""
    return any(
        _fits(pattern, read)
        and not (pattern.unless and pattern.unless.search(name))
        and (pattern.said is None or said is None or bool(pattern.said.search(said)))
        for pattern in offer.patterns
    )


def _fits(pattern: Pattern, read: Reading) -> bool:
    asked = _measured(read)
    specimens, wanted = read.of("specimens"), pattern.of.get("specimens", frozenset())
    return (
        any(asked.values())
        and all(concepts <= _covered(pattern, kind) for kind, concepts in asked.items())
        and wanted in (specimens, specimens - _BLOOD)
        and _is_there(pattern, read)
    )


def _measured(read: Reading) -> dict[str, frozenset[str]]:
    """What is measured, by kind; in "Complete Blood Count / Hemoglobin", the panel is only where it is charted."""
    panels, tests = read.of("panels"), read.of("tests")
    if read.of("values") or tests:
        panels = frozenset(panel for panel in panels if vocabulary().panels[panel].specimen)
    tests -= _SEROLOGY if read.of("values") else frozenset()
    return {**{kind: read.of(kind) for kind in MEASURED}, "panels": panels, "tests": tests}


def _covered(pattern: Pattern, kind: str) -> frozenset[str]:
    named = pattern.of.get(kind, frozenset())
    if kind == "values" and "specimens" not in pattern.of:
        panels = pattern.of.get("panels", frozenset())
        return named.union(*(vocabulary().panels[panel].values for panel in panels))
    return named


def _is_there(pattern: Pattern, read: Reading) -> bool:
    """Whether a test is of one of the pattern's parts of the body, or says not of which."""
    sites = pattern.of.get("sites")
    return sites is None or not read.of("sites") or any(same_site(a, b) for a in read.of("sites") for b in sites)


def _fewest(setting: Setting, values: Mapping[str, Reading]) -> tuple[list[Offer], set[str]]:
    """The offers that measure these values, those that measure most of them first, and the values that none does."""
    by_offer = {
        offer: {value for value, one in values.items() if _fits_one(offer, one)} for offer in setting.offers or ()
    }
    chosen, rest = [], set(values)
    while any(measured & rest for measured in by_offer.values()):
        chosen.append(max(by_offer, key=lambda offer: len(by_offer[offer] & rest)))
        rest -= by_offer[chosen[-1]]
    return chosen, rest


_ONE_MEASUREMENT = frozenset({"blood gas", "co oximetry", "spirometry", "pulmonary function"})
"""Panels of which no part is measured alone: the bicarbonate of a blood gas is not that of a metabolic panel."""


def _values(read: Reading) -> dict[str, Reading]:
    """What a name measures, if that is several values, each as if it were ordered alone."""
    if read.of("modalities") or read.of("tests") - _SEROLOGY:
        return {}
    panels = [vocabulary().panels[panel].values for panel in read.of("panels") - _ONE_MEASUREMENT]
    values = sorted(read.of("values") or frozenset().union(*panels))
    of = {"specimens": read.of("specimens")}
    return {value: Reading({"values": frozenset({value}), **of}) for value in values}
