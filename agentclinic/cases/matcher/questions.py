"""Find the facts in the patient's script that a question asks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.asking import Clause, Part, clauses
from agentclinic.cases.matcher.cues import Asked
from agentclinic.cases.matcher.relevance import chances, chart_of, parts_of, threshold
from agentclinic.cases.matcher.statements import statement
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import content_words


@dataclass(frozen=True)
class Topic:
    """One thing a question or an order is about, and the facts that answer it."""

    name: str
    kind: Asked
    facts: tuple[Fact, ...]


def asked_of_patient(question: str, facts: Sequence[Fact]) -> list[Topic]:
    return list(_asked_of_patient(question, tuple(facts)))


@lru_cache(maxsize=4096)  # doctors repeat themselves, and scoring asks again
def _asked_of_patient(question: str, facts: tuple[Fact, ...]) -> list[Topic]:
    read = clauses(question)
    told = _choose_facts(read, facts)
    topics: list[Topic] = []
    for at, clause in enumerate(read):
        for topic in _topics(clause, {part: found for (place, part), found in told.items() if place == at}, facts):
            _add(topics, topic)
    if any(topic.facts for topic in topics):
        # If anything is answered, skip what could not be named and what the opening already tells.
        topics = [t for t in topics if t.facts or (t.kind is not Asked.UNCLEAR and t.name != "demographics")]
    clear = [topic for topic in topics if topic.kind is not Asked.UNCLEAR]
    return clear or [Topic(question.strip(), Asked.UNCLEAR, ())]


def _choose_facts(read: tuple[Clause, ...], facts: tuple[Fact, ...]) -> dict[tuple[int, int], list[Fact]]:
    """The facts that answer, by the clause and part each answers best."""
    asked = parts_of(read)
    chart = chart_of(facts)
    found = chances(read, chart)
    for kind, rows in chart.alike.items():
        settled = [_settled(clause, *kind) for clause in read]
        for at, one in enumerate(asked):
            if (certain := settled[one.at]) is not None:
                found[rows, at] = certain
    told: dict[tuple[int, int], list[Fact]] = {}
    if found.size:
        for row in np.flatnonzero(found.max(axis=1) >= threshold()):
            best = asked[found[row].argmax()]
            told.setdefault((best.at, best.part.place), []).append(facts[row])
    return told


_WHOLE_SECTIONS = {
    Section.DRUGS: "medication",
    Section.ALLERGIES: "allergy",
    Section.PAST: "medical condition",
}
"""Sections that a question can ask for as a whole: "what medications do you take?"."""


def _settled(clause: Clause, section: Section, timed: bool) -> bool | None:
    """Whether a clause certainly asks for a statement or certainly does not; None if the trees decide."""
    asked = clause.sections
    if section is Section.FAMILY and clause.of_kin and not clause.main & _of_a_kind():
        return True
    name = _WHOLE_SECTIONS.get(section)
    if name and section in asked and not clause.of_kin and clause.main & lexicon.bit(name):
        return True
    if section is Section.ALLERGIES and section not in asked:
        return False
    return False if clause.when and not timed else None


@lru_cache(maxsize=1)
def _of_a_kind() -> int:
    """Diseases and symptoms: a question that names one asks about that one."""
    return lexicon.of_types("disease", "symptom") & ~lexicon.roots()


def _add(topics: list[Topic], topic: Topic) -> None:
    for place, earlier in enumerate(topics):
        if earlier.name == topic.name and earlier.kind is topic.kind:
            topics[place] = Topic(topic.name, topic.kind, tuple(dict.fromkeys(earlier.facts + topic.facts)))
            return
    topics.append(topic)


def _topics(clause: Clause, told: dict[int, list[Fact]], facts: Sequence[Fact]) -> list[Topic]:
    everything = tuple(fact for found in told.values() for fact in found)
    if cues.EXAMINED.search(clause.text) and not everything:
        return [Topic("examination or result", Asked.RESULT, ())]
    background = [part for part, on in zip(cues.BACKGROUND, clause.background, strict=True) if on]
    if cues.OPENING.search(clause.text) and not background:
        return [Topic("opening", Asked.OPENING, _opening(facts))]
    if background:
        return _background_topics(background, everything) + _other_symptoms(clause, told)
    if cues.ANYTHING_ELSE.search(clause.text) and not any(_finding_names(part.text) for part in clause.parts):
        return [Topic("other symptoms", Asked.SYMPTOM, everything)]
    aspects = [aspect.name for aspect, on in zip(cues.ASPECTS, clause.aspects, strict=True) if on]
    if aspects and clause.parts and len([part for part in clause.parts if not part.whole]) <= 1:
        return [Topic(aspects[0], Asked.SYMPTOM, everything)]
    return _symptom_topics(clause, told)


def _opening(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What a patient says first: the main complaint and the start of the story."""
    primary = [fact for fact in facts if statement(fact).primary]
    story = [fact for fact in facts if fact.section is Section.HISTORY]
    return tuple(dict.fromkeys(primary + story[:2])) or tuple(facts[:1])


def _background_topics(asked: Sequence[cues.Background], told: tuple[Fact, ...]) -> list[Topic]:
    """The background sections asked for. A fact goes to its own section if asked for, otherwise to the first."""
    by_section: dict[Section, list[Fact]] = {part.section: [] for part in asked}
    for fact in told:
        section = Section.FAMILY if statement(fact).of_kin else fact.section
        by_section[section if section in by_section else asked[0].section].append(fact)
    return [Topic(part.section.value.replace("_", " "), part.kind, tuple(by_section[part.section])) for part in asked]


def _other_symptoms(clause: Clause, told: dict[int, list[Fact]]) -> list[Topic]:
    silent = [part for part in clause.parts if not part.whole and part.place not in told]
    names = dict.fromkeys(name for part in silent for name in _finding_names(part.text) if name in _symptom_names())
    return [Topic(name, Asked.SYMPTOM, ()) for name in names]


@lru_cache(maxsize=1)
def _symptom_names() -> frozenset[str]:
    return frozenset(finding.name for finding in knowledge().findings.values() if finding.kind == "symptom")


def _symptom_topics(clause: Clause, told: dict[int, list[Fact]]) -> list[Topic]:
    topics: list[Topic] = []
    nameless: list[str] = []
    for part in clause.parts:
        found = tuple(told.get(part.place, ()))
        names = [] if part.whole and not found else _finding_names(part.text)
        for name in names[:1]:
            _add(topics, Topic(name, Asked.SYMPTOM, found))
        for name in names[1:]:
            _add(topics, Topic(name, Asked.SYMPTOM, ()))
        if not names and found:
            _add(topics, Topic(_label(part), Asked.SYMPTOM, found))
        elif not names and not part.whole and (part.main or part.stems):
            nameless.append(_label(part))
    if nameless and not topics and cues.ASKS.search(clause.text):
        topics.append(Topic(" ".join(nameless), Asked.SYMPTOM, ()))
    return topics or [Topic(clause.text, Asked.UNCLEAR, ())]


@lru_cache(maxsize=16384)
def _finding_names(text: str) -> tuple[str, ...]:
    mentions = knowledge().finding_terms.find(text)
    return tuple(knowledge().findings[key].name for key in dict.fromkeys(mention.key for mention in mentions))


def _label(part: Part) -> str:
    return " ".join(sorted(content_words(part.text))) or part.text
