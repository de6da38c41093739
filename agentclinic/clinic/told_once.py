"""What a reply repeats or no one ordered: left out when the results of all its items are put together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agentclinic.cases.completion import is_completed
from agentclinic.cases.denied_signs import stated
from agentclinic.cases.matcher import Ordered
from agentclinic.cases.matcher.order_kinds import EXAM, TAKEN
from agentclinic.cases.matcher.order_words import Reading, american, joined, reading, same_site, vocabulary
from agentclinic.cases.matcher.orders import charted_as
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary.normals import normal_of
from agentclinic.vocabulary.text import fold, words


def as_ordered(items: Sequence[Ordered], request: str) -> list[Ordered]:
    """Items without completed results of another specimen, test or place than they name, and without repeats."""
    found = _each_by_its_name([_fitting(item, reading(request)) for item in items])
    every = [fact for item in found for fact in item.facts]
    again = _in_parts(every)
    again |= _said_again([fact for fact in every if fact.path not in again], frozenset(words(request)))
    denying = _denying(every)
    kept = [_without(item, again | denying) for item in found]
    beside = [item for item in kept if not (_only_strays(item) or any(fact.path in denying for fact in item.facts))]
    return beside if any(item.facts for item in beside) else kept


def _only_strays(item: Ordered) -> bool:
    """Whether all that was found for an item is normal findings of a neighboring organ: the thyroid, of the airway."""
    return bool(item.facts) and all(
        is_completed(fact.path) and fact.section is Section.EXAMINATION and _strays(fact, item.name, ())
        for fact in item.facts
    )


def _denying(facts: Sequence[Fact]) -> frozenset[str]:
    """The completed findings that deny a sign without a place of its own which the same reply tells: a scar."""
    found = [fact for fact in facts if fact.section is Section.EXAMINATION]
    told = frozenset(
        sign for fact in found if not is_completed(fact.path) for sign, *_ in stated(fact.heads, fact.text)
    )
    return frozenset(f.path for f in found if told and is_completed(f.path) and told & set(words(f.heads[-1])))


def _each_by_its_name(items: Sequence[Ordered]) -> list[Ordered]:
    """Results that answer several items with the one that names them best: the others may be told later."""
    if len(items) < 2:
        return list(items)
    owner: dict[str, tuple[int, str]] = {}
    for item in items:
        for fact in item.facts:
            named = len({*words(item.name)} & {*words(" ".join(fact.heads))})
            if fact.path not in owner or named > owner[fact.path][0]:
                owner[fact.path] = (named, item.name)
    others = [{fact.path for fact in item.facts if owner[fact.path][1] != item.name} for item in items]
    return [_without(item, frozenset(paths)) for item, paths in zip(items, others, strict=True)]


def _without(item: Ordered, paths: frozenset[str]) -> Ordered:
    """An item without these results, if it has others."""
    kept = tuple(fact for fact in item.facts if fact.path not in paths)
    return item.with_facts(kept) if kept else item


def _fitting(item: Ordered, order: Reading) -> Ordered:
    asked = reading(item.name)
    if asked.by_kind.keys() == {"tests"} and asked.of("tests") <= TAKEN and not asked.words:
        kept = [fact for fact in item.facts if _taken_as(order, charted_as(fact))]
        if not kept and len({fact.heads[0] for fact in item.facts}) >= _MANY and order.by_kind.keys() > {"tests"}:
            # Of something that the order does not name: what was taken is charted, or waited for.
            return item.with_facts(tuple(fact for fact in item.facts if not is_completed(fact.path)))
    elif _is_germ_anywhere(asked) and all("pcr" in charted_as(fact).of("tests") for fact in item.facts):
        charted = [fact for fact in item.facts if not is_completed(fact.path)]
        kept = charted or [fact for fact in item.facts if _taken_as(order, charted_as(fact))]
        kept = kept or [fact for fact in item.facts if fact.heads[0] == item.facts[0].heads[0]]
    else:
        exact = [fact for fact in item.facts if asked.of("values") >= _values(fact) != frozenset()]
        # What is under a heading that the item names is what it names: the antibodies, of "antibodies and gastrin".
        headed = {fact.path for fact in item.facts if _joins(fact.heads[0]) <= {*words(item.name)}}
        added = [fact for fact in item.facts if is_completed(fact.path) and fact.path not in headed]
        stray = {fact.path for fact in added if _strays(fact, item.name, exact)}
        kept = [fact for fact in item.facts if fact.path not in stray]
    return item.with_facts(tuple(kept)) if kept else item


def _is_germ_anywhere(asked: Reading) -> bool:
    """Whether germs are looked for without a word of where: "HSV PCR" is not that of every specimen."""
    named = bool(asked.of("values")) and asked.by_kind.keys() <= {"tests", "values"}
    return named and asked.of("tests") <= {"pcr"} and asked.of("values") <= vocabulary().germs


def _joins(heading: str) -> set[str]:
    """The words of a heading that joins several things; that of one value, "Vitamin D", is no heading of its kinds."""
    named = {*words(heading)}
    return named if "and" in named or not reading(heading).of("values") else {heading}


_MANY = 3
"""Specimens of which a test is not meant at once."""


def _taken_as(order: Reading, charted: Reading) -> bool:
    """Whether something was taken from where an order says: its "culture" is of nothing else that it does not name."""
    if charted.of("specimens") & order.of("specimens"):
        return True
    return any(same_site(a, b) for a in charted.of("sites") for b in order.of("sites"))


def _whole(name: str) -> bool:
    """Whether an item is an examination by its name, with all that belongs to it."""
    return bool(reading(name).of("systems") or EXAM.search(fold(name)))


def _strays(fact: Fact, name: str, exact: Sequence[Fact]) -> bool:
    """Whether a completed result tells something else than what an item names."""
    entry = normal_of(fact.heads)
    named = entry.fields.get("named") if entry else None
    if fact.section is not Section.TESTS:
        return bool(named) and not _whole(name) and not re.search(str(named), american(fold(name)))
    asked, charted = reading(name), charted_as(fact)
    wanted, taken = asked.of("specimens") - {"blood"}, charted.of("specimens") - {"blood"}
    if wanted and taken and not wanted & taken:
        return True
    if asked.by_kind.keys() == {"panels"} and _outside(charted, asked):
        return True
    if not asked.of("values") or asked.of("panels") or not exact or fact in exact:
        return False
    elsewhere = all(fact.heads[0] != other.heads[0] for other in exact)
    return elsewhere and bool(_values(fact) - asked.of("values") or charted.of("panels"))


def _outside(charted: Reading, asked: Reading) -> bool:
    """Whether a value belongs to none of the panels ordered."""
    panels = [vocabulary().panels[panel] for panel in asked.of("panels")]
    values = frozenset[str]().union(*(panel.values for panel in panels))
    own = charted.of("values")
    return bool(values and own) and not (own & values or charted.of("panels") & asked.of("panels"))


def _values(fact: Fact) -> frozenset[str]:
    return reading(fact.heads[-1]).of("values") or charted_as(fact).of("values")


def _in_parts(facts: Sequence[Fact]) -> frozenset[str]:
    """The completed results of several values that are each told by themselves: "Hepatitis B and C"."""
    tested = [fact for fact in facts if fact.section is Section.TESTS and not charted_as(fact).of("modalities")]
    single = frozenset[str]().union(*(own for fact in tested if len(own := _told_values(fact)) == 1))
    several = [fact for fact in tested if is_completed(fact.path) and len(_told_values(fact)) > 1]
    return frozenset(fact.path for fact in several if _told_values(fact) <= single)


def _said_again(facts: Sequence[Fact], said: frozenset[str]) -> frozenset[str]:
    """The completed results that say what another one of the same reply says, charted or named in the order."""

    def last(fact: Fact) -> tuple[bool, bool, bool]:
        label = frozenset(words(fact.heads[-1]))
        return is_completed(fact.path), not label <= said, "and" in label

    told: dict[str, Fact] = {}
    again: set[str] = set()
    for fact in sorted(facts, key=last):
        entry = normal_of(fact.heads)
        if entry is None or entry.same is None or entry.same in _OF_SEVERAL_PLACES:
            continue
        first = told.setdefault(entry.same, fact)
        sided = entry.examination and {"Left", "Right"} & {*fact.heads[-1].split()}
        other = first.path != fact.path and (entry.examination or first.heads[0] != fact.heads[0])
        if other and not sided and is_completed(fact.path):
            again.add(fact.path)
    return frozenset(again)


_OF_SEVERAL_PLACES = frozenset({"nodes", "ears", "pleural fluid"})
"""Entries of which each says something of its own."""


def _told_values(fact: Fact) -> frozenset[str]:
    """The values in the headings of a result, or else in its text."""
    return joined(map(reading, fact.heads)).of("values") or reading(fact.text).of("values")


def each_once(ordered: Sequence[Ordered]) -> Iterator[Ordered]:
    """Items without values that were reported under another heading or with an earlier item."""
    seen: set[tuple[frozenset[str], str]] = set()
    said: list[frozenset[str]] = []
    for item in ordered:
        kept = []
        for fact in item.facts:
            value = fact.text.split(" (")[0].strip(" .").lower()
            names = {frozenset(words(fact.heads[-1])), frozenset(words(" ".join(fact.heads)))} if fact.heads else set()
            # Only values, and what has several words: "normal" is said of many things.
            own = value[:1].isdigit() or len(words(value)) >= _FEW_WORDS
            keys = {(name, value) for name in names if own and name != _FINDINGS} or {(frozenset({fact.path}), "")}
            every = frozenset(words(" ".join((*fact.heads, fact.text)))) - _FINDINGS
            finding = fact.section is Section.EXAMINATION and len(words(fact.text)) >= _FEW_WORDS
            again = finding and any(every <= before for before in said)
            if not (keys & seen or again):
                seen |= keys
                said.append(every)
                kept.append(fact)
        kept = _told_once(kept)
        if kept or not item.facts:
            yield item.with_facts(tuple(kept))
        elif item.equivalent and not _tells(item):
            yield Ordered(item.name, ())  # what would stand in for it was told as itself


def _tells(item: Ordered) -> bool:
    """Whether what stands in for a test has its result: the inspiratory pressure, in the report of a vital capacity."""
    asked = reading(item.name).of("values")
    said = joined(reading(fact.text) for fact in item.facts).of("values")
    return bool(asked and asked <= said) or set(words(item.name)) <= set(words(item.equivalent or ""))


_FINDINGS = frozenset({"finding"})
_FEW_WORDS = 5
"""Shorter findings, "not tender", are said of many things."""


def _told_once(facts: Sequence[Fact]) -> list[Fact]:
    """Findings without those that the chart has word for word under another heading too."""
    by_report: dict[str, list[Fact]] = {}
    for fact in facts:
        by_report.setdefault(fact.heads[0] if fact.heads else "", []).append(fact)
    if len(by_report) < 2:
        return list(facts)
    told: list[frozenset[str]] = []
    kept: list[Fact] = []
    for report in by_report.values():
        said = [frozenset(words(f"{' '.join(fact.heads[1:])} {fact.text}")) for fact in report]
        every = frozenset().union(*(words(fact.text) for fact in report))
        again = len(every) >= _FEW_WORDS and any(every <= before for before in told)
        kept += () if again else report
        told += said
    return kept
