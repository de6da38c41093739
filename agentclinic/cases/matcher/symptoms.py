"""Which statements of a script answer the symptoms a clause asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agentclinic.cases.matcher import ontology
from agentclinic.cases.matcher.parts import ELSEWHERE, LOCAL, Item
from agentclinic.cases.matcher.readings import TRIGGERS, reading, same_place
from agentclinic.cases.model import Fact, Section

STORY = (Section.HISTORY, Section.SYMPTOMS, Section.REVIEW)
ABOUT_SYMPTOMS = (*STORY, Section.PAST)
CHANGED = re.compile(
    r"\bwors(?:e|en\w*)\b|\bimprov\w+|\bbetter\b|\brelie(?:f|ve\w*)\b|\balleviat\w+|\baggravat\w+|\bexacerbat\w+"
    r"|\btrigger\w*|\bprovok\w+|\bbrought on\b|\bbrings? (?:it |them )?on\b|\beas(?:e|es|ed|ing)\b|\bfluctuat\w+"
    r"|\bcome[s]? and go|\bgo(?:es)? away\b|\bsubsid\w+|\bdisappear\w*|\bintermittent\w*|\bresolv\w+|\bintensif\w+"
    r"|\bespecially\b|\bdecreases?\b|\bincreasing(?:ly)?\b|\bescalat\w+"
    r"|\bhelps?\b|\bprogress(?:ed|es|ing|ive|ively)\b|\bincreas(?:ed|ing|es)\b (?:in )?(?:frequency|severity|over)",
    re.IGNORECASE,
)
TRIGGERED = re.compile(
    r"\b(?:when|whenever|with|after|during|while|on|by|at|from|upon|following|toward|towards|post|trying)\b", re.I
)
_EARLIER = re.compile(r"\b(?:similar|previous(?:ly)?|prior|in the past|childhood|as a child)\b", re.IGNORECASE)
_EARLIER_TOLD = re.compile(r"\b(?:previous(?:ly)?|prior|in the past|childhood|as a child|history of|before)\b", re.I)
_NEGATIVE = re.compile(
    r"^(?:denies|denied|no|without|there(?:'s| is) no|on review, there's no|negative)\b"
    r"|\b(?:has|have|had|did|does|do) not (?:noticed?|report|have|experienced?|had)\b|\bdenies\b",
    re.IGNORECASE,
)
_ALL_OVER = re.compile(r"\b(?:generali[sz]ed|diffuse|all over|whole body|entire body|widespread)\b", re.IGNORECASE)
_KIN = (
    r"mother|father|parents?|brothers?|sisters?|siblings?|uncle|aunt|cousin|grand(?:mother|father|parents?|ma|pa)"
    r"|relatives?|family members?"
)
_FAMILY_TOLD = re.compile(
    rf"\bfamil(?:y|ial) history\b|(?<!child )\bin the family\b|\bfamily or personal\b|\bruns in\b"
    rf"|\bhereditary\b|\bgenetic diseases?\b"
    rf"|\b(?:{_KIN})\b(?!['’]?s? (?:reports?|notes?|states?|says?|mentions?|notice[sd]?|brings?|brought|describes?"
    rf"|denie[sd]|deny|gave|think|believe|is worried|are worried|is a|witnessed|took|taking))[^.;,]{{0,40}}\b(?:has|had"
    rf"|have|with|died|history|suffer\w*|diagnosed|committ\w+|similar|healthy)\b",
    re.IGNORECASE,
)
NOTHING_ELSE = re.compile(
    r"\b(?:no|denies|without|any)\b(?: any)? (?:other|additional|further|associated)(?: significant| associated"
    r"| specific| notable| new| relevant| major)* (?:symptoms?|complaints?|concerns?|issues)\b|\ball other systems\b",
    re.IGNORECASE,
)


def negative(fact: Fact) -> bool:
    """Whether a statement denies, as a whole or first of all."""
    return fact.denied or _denies(fact.text)


# A chart's statements are read again at every question.
@lru_cache(maxsize=32768)
def _denies(text: str) -> bool:
    return bool(_NEGATIVE.search(text))


@lru_cache(maxsize=32768)
def _tells_of_kin(text: str) -> bool:
    return bool(_FAMILY_TOLD.search(text))


def of_kin(fact: Fact) -> bool:
    """Whether a statement is about the patient's relatives."""
    return fact.section is Section.FAMILY or _tells_of_kin(fact.text)


def answering(item: Item, facts: Sequence[Fact]) -> list[Fact]:
    """The statements that answer one item."""
    sections = {*ABOUT_SYMPTOMS, Section.SOCIAL}
    if item.complaints & _OF_THE_PERSON:
        sections.add(Section.DEMOGRAPHICS)
    here = [f for f in facts if f.section in sections and not of_kin(f)]
    if item.conditional:
        known = any(item.complaints & ontology.told(f.text) and not negative(f) for f in here)
        found = [f for f in here if _under_condition(item, f, known=known) or (negative(f) and _denies_here(item, f))]
    elif item.complaints or item.findings:
        found = [f for f in here if _speaks_of(item, f)] or [f for f in here if negative(f) and _denies_all(item, f)]
    else:
        found = _by_things(item, here)
    if _EARLIER.search(item.text):
        found = [f for f in found if negative(f) or _EARLIER_TOLD.search(f.text) or f.section is Section.PAST]
    if item.elsewhere:
        found = [f for f in found if negative(f) or ELSEWHERE.search(f.text) or _in_another_place(f, facts)]
    return found


_OF_THE_PERSON = frozenset({"pregnancy", "menses", "birth"})
"""What a chart may tell with age and sex."""


def _in_another_place(fact: Fact, facts: Sequence[Fact]) -> bool:
    """Whether a statement is of another place than the main complaint."""
    main = [reading(f.text).places for f in facts if f.heads and f.heads[-1].lower() == "primary symptom"]
    charted = reading(fact.text).places
    return bool(charted and any(main)) and not any(same_place(places, charted) for places in main)


def speaks_of(item: Item, fact: Fact) -> bool:
    """Whether a statement is about what an item names, whatever it says of it."""
    if _speaks_of(item, fact):
        return True
    return not item.complaints and bool(item.things & reading(fact.text).things - TRIGGERS)


def _speaks_of(item: Item, fact: Fact) -> bool:
    asked = item.complaints & ontology.told(fact.text)
    if asked:
        return any(name not in LOCAL or _fits(item, fact) for name in asked)
    read = reading(fact.text)
    if "pain" in item.complaints and not item.places and read.pain:
        return True
    return not item.complaints and bool(item.findings & read.findings) and _fits(item, fact)


def _denies_here(item: Item, fact: Fact) -> bool:
    """Whether a denial is of the thing asked for, at the place asked for or anywhere."""
    charted = reading(fact.text).places
    return _speaks_of(item, fact) and (not charted or bool(item.places) or not item.complaints & LOCAL)


def _denies_all(item: Item, fact: Fact) -> bool:
    """Whether who denies this denies the thing asked for too: no bleeding, no nosebleed."""
    named = frozenset(span.name for span in ontology.spans(fact.text))
    charted = reading(fact.text).places if item.complaints & LOCAL else frozenset()
    wider = any((ontology.kinds(name) - {name}) & named for name in item.complaints)
    return wider and (not charted or same_place(item.places, charted))


def _fits(item: Item, fact: Fact) -> bool:
    """Whether a statement is about the place asked for; a denial without a place is about all places."""
    charted = reading(fact.text).places
    if not item.places or same_place(item.places, charted):
        return True
    if charted:
        return False
    return negative(fact) or bool(_ALL_OVER.search(fact.text)) or bool(item.complaints & _UNPLACED)


_UNPLACED = frozenset({"weakness", "numbness", "stiffness", "tremor"})
"""Told without a place, they may be anywhere."""


def _under_condition(item: Item, fact: Fact, *, known: bool) -> bool:
    """Whether a statement tells of the thing asked for under the condition asked for, or how the two hang together.

    A statement that names no complaint ("Relief with rest") goes with one that the patient is known to have.
    """
    read, told = reading(fact.text), ontology.told(fact.text)
    if item.bound & read.findings:
        return True
    if not (item.triggers & read.things or item.terms & (read.things | told | frozenset(read.numbers))):
        return False
    if (item.complaints | item.subject) & told:
        return True
    if item.complaints:
        return known and bool(CHANGED.search(fact.text)) and not ontology.named(fact.text)
    return bool(CHANGED.search(fact.text) or (read.pain and TRIGGERED.search(fact.text)))


# Three of five words, two of three, both of two: less is another thing.
_ENOUGH = 0.6


def _by_things(item: Item, here: Sequence[Fact]) -> list[Fact]:
    """Statements that share the most of an item's words, if that is enough, and the place where both name one."""
    asked = item.things
    if not asked:
        return []
    scores = []
    for fact in here:
        read = reading(fact.text)
        shared = len(asked & read.things)
        if shared < _ENOUGH * len(asked) or not shared:
            continue
        if item.places and read.places and not same_place(item.places, read.places):
            continue
        scores.append((shared, fact))
    most = max((shared for shared, _ in scores), default=0)
    return [fact for shared, fact in scores if shared == most]
