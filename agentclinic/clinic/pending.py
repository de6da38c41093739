"""Which results are back in time, and what is said of those that are not."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from agentclinic import lazy
from agentclinic.cases.matcher import Ordered
from agentclinic.cases.matcher.not_tests import said_of_no_test
from agentclinic.cases.matcher.order_words import reading
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.vocabulary.normals import levels, normal_of, turnaround
from agentclinic.vocabulary.settings import Offer, setting_of
from agentclinic.vocabulary.text import words


def hours_for(case: Case) -> float | None:
    """The case's own horizon, or that of its setting; None if neither is known."""
    own = case.annotations.get("horizon_hours")
    if isinstance(own, int | float) and own > 0:
        return float(own)
    setting = setting_of(case.annotations)
    return setting.hours if setting else None


def late(name: str, horizon: float | None) -> str:
    """What is said of a test whose result cannot be back in time; empty if it can."""
    hours, until = turnaround(name)
    return until if horizon is not None and hours > horizon else ""


def in_time(item: Ordered, horizon: float | None, sent: str = "") -> tuple[Ordered | None, dict[str, str]]:
    """The part of an item whose results are back, and the tests that are not, with what is said of them.

    It depends on the tests and the setting alone, not on what the chart has. `sent` is what is said of a test without
    any result.
    """
    if horizon is None or (not item.facts and (said_of_no_test(item.name) or asks_for_old(item.name))):
        return item, {}
    name = capital(item.name)
    if not item.facts:
        until = late(item.name, horizon) or sent
        return (None, {name: until}) if until else (item, {})
    # Several results that are all to come are one test, by the name under which it was ordered.
    if len(item.facts) > 1 and not item.equivalent and len({late_result(fact, horizon) for fact in item.facts}) == 1:
        until = late_result(item.facts[0], horizon)
        heads = {fact.heads[0] for fact in item.facts}
        if len(heads) == 1 and set(words(item.name)) & set(words(head := heads.pop())):
            name = head
        if until and not any(_STAINED.search(fact.text) for fact in item.facts):
            return None, {name: until}
    back: list[Fact] = []
    waiting: dict[str, str] = {}
    for fact in item.facts:
        until = late_result(fact, horizon)
        early = _STAINED.search(fact.text) if until else None
        if early:
            back.append(replace(fact, text=early[0].strip()))
        elif not until:
            back.append(fact)
        if until:
            whole = all(
                late_result(other, horizon) for other in item.facts if _usual_heads(other)[0] == _usual_heads(fact)[0]
            )
            whole = whole and bool(late(_usual_heads(fact)[0], horizon))  # of a colonoscopy, only the biopsy is late
            # Of a report that comes at once, one result may have been ordered: "C3".
            whole = whole and not (set(words(item.name)) & set(words(fact.heads[-1])) and len(item.facts) == 1)
            named = [head for head in _usual_heads(fact) if head != "Findings"][: 1 if whole else None]
            if len(item.facts) == 1 and _is_one_of(item.name, fact):
                named = [name]
            waiting.setdefault(", ".join(named), until)
    return (item.with_facts(tuple(back)) if back else None), waiting


def _is_one_of(name: str, fact: Fact) -> bool:
    """Whether a test is one of a panel by another name: an antibody of the myositis panel, a gene."""
    read, heads = reading(name), _usual_heads(fact)
    single = read.of("values") or read.of("tests") == {"genetic"}
    return bool(single) and len(heads) > 1 and not (set(words(name)) - _GENERAL) & set(words(" ".join(heads)))


_GENERAL = frozenset(words("antibody panel test level serum of the and"))
"""Words that the names of two tests may share."""


def asks_for_old(name: str) -> bool:
    """Whether part of an order asks for a result from before this visit, for which nothing is taken now."""
    return bool(_OLD.search(name))


_OLD = lazy.regex(
    r"^(?:(?:the|any|all|her|his|their) )*(?:previous|prior|past|earlier|old|last|outside|pre-?existing)\b"
    r"|\b(?:excised|resected|removed)\b|\b(?:new-?born|neonatal|heel prick|bloodspot) (?:blood ?spot )?screen\w*"
    r"|\b(?:notes|records?|vaccination card|immuni[sz]ation card)$",
    re.IGNORECASE,
)


def in_its_time(item: Ordered, offer: Offer, horizon: float | None) -> tuple[Ordered | None, dict[str, str]]:
    """The same for a test of a limited setting, where the offer says how long it takes."""
    if horizon is None or offer.minutes <= horizon * 60:
        return item, {}
    return None, {capital(item.name): "taken"}


def late_result(fact: Fact, horizon: float | None) -> str:
    """What is said of a result that cannot be back in time, by its entry in the table: charts differ in headings."""
    if horizon is None or fact.section is not Section.TESTS or fact.text.startswith(_NOT_TAKEN):
        return ""
    return late(" ".join(_usual_heads(fact)), horizon)


NOTHING_TAKEN = "No fluid to sample"
"""What the table of normal results says of a tap: nothing was sent, and nothing is waited for."""
_NOT_TAKEN = (NOTHING_TAKEN, "Not done", "Not possible")
"""The same, and what charts say of a sample that no one can take: an endometrial biopsy after a hysterectomy."""


def _usual_heads(fact: Fact) -> tuple[str, ...]:
    """The heading of a result in the table, whichever the chart uses."""
    return _usual(fact.heads)


@lru_cache(maxsize=8192)
def _usual(heads: tuple[str, ...]) -> tuple[str, ...]:
    entry = normal_of(heads)
    return levels(entry.heading) if entry else heads


_STAINED = lazy.regex(r"(?:Gram stain|Smear|Microscopy)[^;:]*:[^;]*", re.IGNORECASE)
"""What is seen under the microscope on the same day, in the result of a culture."""


def capital(name: str) -> str:
    """A name as the beginning of a sentence; pH stays pH."""
    return name if name[1:2].isupper() else name[:1].upper() + name[1:]
