"""A solvable world as the builtin doctor knows it: the menu as its whole knowledge base.

If the probabilities are shown, it uses those. If they are hidden, it uses its own for the names it knows; a disease or
a finding that it does not know tells it nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from statistics import fmean

from agentclinic.clinic.findings import Evidence, asked_findings
from agentclinic.results.turn import Exchange
from agentclinic.vocabulary.base import Disease, Finding, Knowledge, Link, shipped
from agentclinic.vocabulary.tests import Price, Test
from agentclinic.worlds.menu import read_answer, request
from agentclinic.worlds.model import Finding as Item
from agentclinic.worlds.model import World

_NOTHING_KNOWN = 0.5
_LEVELS = (50.0, 300.0)
"""The highest prices of a cheap test and of a medium one: in the table of tests, the level is low up to $50 and high
from $300."""

_BEFORE = re.compile(r"^.*\b(?:Patient|Measurement): ", re.DOTALL)
"""What a doctor's notes have before an answer: the question, and who answered."""


@lru_cache(maxsize=16)
def known_in(menu: World) -> Knowledge:
    """The diseases and findings of a menu, and nothing else."""
    table = {name: _probabilities(menu, name, item) for name, item in menu.findings.items()}
    return Knowledge(
        {name: _disease(menu, name, table) for name in menu.diseases},
        {name: _finding(name, item, fmean(table[name].values())) for name, item in menu.findings.items()},
        {name: _test(name, item) for name, item in menu.findings.items() if item.by != "question"},
        other=0.0,
    )


def evidence_in(menu: World, exchanges: Iterable[Exchange]) -> Evidence:
    return facts_in(menu, (exchange.reply for exchange in exchanges))


def facts_in(menu: World, replies: Iterable[str]) -> Evidence:
    """What exact answers say."""
    return dict(found for reply in replies if (found := read_answer(menu, _BEFORE.sub("", reply.strip()))))


def _probabilities(menu: World, name: str, item: Item) -> dict[str, float]:
    if item.probability is not None:
        return item.probability
    found = {finding for given in (name, *item.synonyms) for finding in asked_findings(given)}
    if len(found) != 1:
        return dict.fromkeys(menu.diseases, _NOTHING_KNOWN)
    (finding,) = found
    leak = shipped().findings[finding].leak
    listed = {disease: shipped().disease_named(disease) for disease in menu.diseases}
    return {
        disease: next((link.p for link in known.links if link.finding == finding), leak) if known else leak
        for disease, known in listed.items()
    }


def _disease(menu: World, name: str, table: dict[str, dict[str, float]]) -> Disease:
    prior = menu.diseases[name].prior
    if prior is None:
        own = [known.prior for each in menu.diseases if (known := shipped().disease_named(each))]
        known = shipped().disease_named(name)
        prior = known.prior if known else fmean(own or [1.0])
    links = tuple(Link(finding, p[name], p[name], p[name], None) for finding, p in table.items())
    return Disease(name, name, "", menu.diseases[name].synonyms, prior, (), {}, links)


def _finding(name: str, item: Item, leak: float) -> Finding:
    asked = item.by == "question"
    ask, order = (request(name, item), None) if asked else (None, name)
    return Finding(name, name, "symptom" if asked else "lab", leak, (name,), (), ask, order)


def _test(name: str, item: Item) -> Test:
    level = ("low", "medium", "high")[sum(item.price > most for most in _LEVELS)]
    price = Price(item.price, "estimate")
    return Test(name, name, item.by, (), (), 0, level, price, item.minutes, 0.0, ())  # type: ignore[arg-type]
