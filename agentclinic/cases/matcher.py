"""The chart matcher: which facts a question or an order is about.

Used by the builtin patient and laboratory. It sees the role's own facts only and nothing of the truth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from agentclinic.cases.model import Fact, Section
from agentclinic.knowledge.base import Test, knowledge
from agentclinic.knowledge.text import content_words, fold, words


class Asked(StrEnum):
    """What kind of thing a question is about: decides what silence of the chart means."""

    OPENING = "opening"
    SYMPTOM = "symptom"
    BACKGROUND = "background"
    FAMILY = "family"
    RESULT = "result"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Topic:
    """One thing a question or an order is about, and the facts that answer it."""

    name: str
    kind: Asked
    facts: tuple[Fact, ...]


_OPENING = re.compile(
    r"what (?:brings|brought|seems|can i|made you|is going on|has been going|are your (?:main )?(?:symptoms|concerns))"
    r"|how can i help|what's (?:going on|been|wrong|the (?:matter|problem))|main (?:concern|complaint|problem)"
    r"|tell me (?:more |a bit more )?about (?:your (?:symptoms?|problem|complaint)|what|how|yourself|why)"
    r"|describe (?:your|the) (?:symptoms?|problem|complaint)|in your own words|how are you feeling",
    re.IGNORECASE,
)
_TIMING = re.compile(
    r"\bwhen (?:did|do|does|was|were)\b|how long|how often|\bonset\b|start(?:ed|s)?\b|\bbegan?\b|begin|duration"
    r"|suddenly|gradual|come and go|constant|progress|getting (?:worse|better)|wors(?:en|e)\b|how (?:fast|quickly)",
    re.IGNORECASE,
)
_TIME_WORDS = re.compile(
    r"\b(?:ago|hours?|days?|weeks?|months?|years?|since|sudden(?:ly)?|gradual(?:ly)?|yesterday|today|morning|night"
    r"|began|started|start|progressive(?:ly)?|intermittent(?:ly)?|episodes?|constant|worsen(?:ed|ing|s)?)\b",
    re.IGNORECASE,
)
_EXAMINED = re.compile(
    r"\b(?:let me|i(?:'d| would) like to|can i|may i|i will|i'll) (?:examine|check|listen|look|palpate|feel|measure)"
    r"|\bblood pressure (?:today|reading|now)"
    r"|\b(?:test|lab|scan|x-?ray|biopsy|imaging|ecg|ekg|mri|ct) (?:results?|show)"
    r"|\bresults? of\b|\bwhat (?:is|was|are) your (?:temperature|blood pressure|heart rate|pulse|vital|oxygen)",
    re.IGNORECASE,
)
_BACKGROUND: tuple[tuple[Section, re.Pattern[str], Asked], ...] = tuple(
    (section, re.compile(pattern, re.IGNORECASE), kind)
    for section, kind, pattern in (
        (
            Section.FAMILY,
            Asked.FAMILY,
            r"\bfamily|\bparents?\b|\bmother|\bfather|sibling|relatives?|runs? in|heredit",
        ),
        (Section.ALLERGIES, Asked.BACKGROUND, r"allerg"),
        (
            Section.DRUGS,
            Asked.BACKGROUND,
            r"medications?|medicines?|\bmeds\b|prescri|\bpills?\b|supplements?|over.the.counter"
            r"|taking any(?:thing)?\b|what drugs",
        ),
        (
            Section.PAST,
            Asked.BACKGROUND,
            r"(?:past |previous |medical |prior |health )(?:medical |health )?(?:history|conditions?|problems?|illness)"
            r"|chronic (?:conditions?|illness|diseases?)|diagnosed|surger|operations?\b|hospitali"
            r"|other (?:health|medical)|underlying",
        ),
        (
            Section.SOCIAL,
            Asked.BACKGROUND,
            r"smok|tobacco|cigarette|alcohol|\bdrink\b|recreational|illicit|street drugs|drug use|occupation|\bwork\b"
            r"|\bjob\b|for a living|\blive\b|living|travel|sexual|partners?\b|\bdiet\b|\bhobb|\bpets?\b|lifestyle"
            r"|social history",
        ),
        (Section.DEMOGRAPHICS, Asked.BACKGROUND, r"how old|your age|what age"),
    )
)
_SOCIAL_TOPICS = (
    re.compile(r"smok|tobacco|cigarette|vap", re.IGNORECASE),
    re.compile(r"alcohol|\bdrink|\bwine|\bbeer", re.IGNORECASE),
    re.compile(r"recreational|illicit|drug|marijuana|cocaine|cannabis|substance", re.IGNORECASE),
    re.compile(r"occupation|\bwork|\bjob|employ|retired|\bliving\b|student", re.IGNORECASE),
    re.compile(r"travel|\btrip|abroad", re.IGNORECASE),
    re.compile(r"sexual|partner|condom|married", re.IGNORECASE),
    re.compile(r"\bdiet|\beat\b", re.IGNORECASE),
    re.compile(r"\bpets?\b|animal|\bcats?\b|\bdogs?\b", re.IGNORECASE),
)
# Words that many facts share; agreeing on one of them alone says nothing.
_VAGUE = frozenset(
    "pain ache day week month year hour time ago since start began change trouble problem issue normal history "
    "past medical health condition illness family last long often usually associated worse better severe mild "
    "new recent significant any anything else thing area body side left right able come go make take use used "
    "during after before first second further detail detailed specifically related concern area kind type".split()
)
# "Any pain?" asks for any: the vague word is all there is.
_ANY_PAIN = frozenset({"pain", "ache"})
_BODY_QUESTION = re.compile(r"\b(?:do|does|did|have|has|had|are|is|was|were|any|ever|can|could)\b", re.IGNORECASE)


def asked_of_patient(question: str, facts: Sequence[Fact]) -> list[Topic]:
    """What a question to the patient is about, part by part, each with the facts that answer it."""
    if _EXAMINED.search(question):
        return [Topic("examination or result", Asked.RESULT, ())]
    topics = _background_topics(question, facts)
    if _OPENING.search(question):
        topics.insert(0, Topic("opening", Asked.OPENING, _opening_facts(facts)))
    symptoms = _symptom_topics(question, facts)
    if _TIMING.search(question):
        about = [fact for topic in symptoms for fact in topic.facts if _TIME_WORDS.search(fact.text)]
        timed = about or [f for f in facts if f.section is Section.HISTORY and _TIME_WORDS.search(f.text)]
        topics.append(Topic("timing", Asked.SYMPTOM, tuple(dict.fromkeys(timed))))
        symptoms = [topic for topic in symptoms if topic.facts]
    # Asked about smoking, the social history speaks or is silent; it is no symptom to deny on top of that.
    topics += [topic for topic in symptoms if topic.facts or not topics or topic.name in _symptom_names()]
    answered = any(topic.facts for topic in topics)
    topics = [topic for topic in topics if topic.facts or not (answered and topic.name == "demographics")]
    return topics or [Topic(question.strip(), Asked.UNCLEAR, ())]


def _background_topics(question: str, facts: Sequence[Fact]) -> list[Topic]:
    topics = []
    for section, pattern, kind in _BACKGROUND:
        if not pattern.search(question):
            continue
        here = [fact for fact in facts if fact.section is section]
        if section is Section.SOCIAL:
            wanted = [topic for topic in _SOCIAL_TOPICS if topic.search(question)]
            here = [fact for fact in here if not wanted or any(t.search(_whole(fact)) for t in wanted)]
        elif section is Section.FAMILY:
            here += [
                f for f in facts if f.section is Section.PAST and re.search(r"\bfamily|mother|father", f.text, re.I)
            ]
        elif section is Section.DRUGS:
            told = re.compile(r"\bmedications?\b|\btak(?:es|ing)\b|\bprescribed\b", re.IGNORECASE)
            here += [f for f in facts if f.section in (Section.HISTORY, Section.PAST) and told.search(f.text)]
        topics.append(Topic(section.value.replace("_", " "), kind, tuple(here)))
    return topics


def _background_asked(question: str) -> bool:
    return any(pattern.search(question) for _, pattern, _ in _BACKGROUND)


def _opening_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What a patient says first: the main complaint and how the story begins."""
    primary = [f for f in facts if any(fold(head) == "primary symptom" for head in f.heads)]
    story = [f for f in facts if f.section is Section.HISTORY]
    return tuple(dict.fromkeys(primary + story[:2])) or tuple(facts[:1])


@lru_cache(maxsize=1)
def _symptom_names() -> frozenset[str]:
    return frozenset(finding.name for finding in knowledge().findings.values() if finding.kind == "symptom")


_ABOUT_SYMPTOMS = (Section.HISTORY, Section.SYMPTOMS, Section.REVIEW, Section.PAST)


def _symptom_topics(question: str, facts: Sequence[Fact]) -> list[Topic]:
    known = knowledge()
    here = [fact for fact in facts if fact.section in _ABOUT_SYMPTOMS]
    topics: list[Topic] = []
    covered: set[str] = set()
    for mention in known.finding_terms.find(question):
        finding = known.findings[mention.key]
        covered.update(mention.words)
        if any(topic.name == finding.name for topic in topics):
            continue
        about = tuple(f for f in here if any(m.key == finding.id for m in known.finding_terms.find(f.text)))
        topics.append(Topic(finding.name, Asked.SYMPTOM, about))
    asked = content_words(question)
    rest = {word for word in (asked - _VAGUE or asked & _ANY_PAIN) if word not in covered}
    seen = {fact.path for topic in topics for fact in topic.facts}
    spoken = tuple(f for f in here if f.path not in seen and rest & content_words(f.text))
    if spoken:
        topics.append(Topic(" ".join(sorted(rest)), Asked.SYMPTOM, spoken))
    elif rest and not topics and _BODY_QUESTION.search(question) and not _background_asked(question):
        topics.append(Topic(" ".join(sorted(rest)), Asked.SYMPTOM, ()))
    return topics


def _whole(fact: Fact) -> str:
    return " ".join((*fact.heads, fact.text))


@dataclass(frozen=True)
class Ordered:
    """One thing an order names, and the chart's answer."""

    name: str
    facts: tuple[Fact, ...]
    equivalent: str | None = None
    """Name of the test that stands in for the one ordered."""


_SEPARATORS = re.compile(r"\s*(?:,|;|\+|\band\b|&|\bwith\b|\bplus\b)\s*", re.IGNORECASE)
_WHOLE_EXAMINATION = re.compile(
    r"^(?:a |full |complete |comprehensive |thorough |general |focused |detailed )*physical exam(?:ination)?\b"
    r"|^physical$|^full exam",
    re.IGNORECASE,
)
# Words that say how a test is to be done rather than which test it is.
_MANNER = frozenset(
    "test testing level serum plasma blood study panel result finding urgent stat repeat complete full total "
    "routine examination exam scan imaging contrast without please order request check measurement value "
    "screening screen analysis bilateral left right bedside detailed focused w wo".split()
)
# A value under one of these is not the blood's: the glucose of a spinal tap is no blood glucose.
_SPECIMENS = frozenset(
    "csf cerebrospinal lumbar spinal synovial joint arthrocentesis urine urinalysis urinary stool sputum pleural "
    "ascitic peritoneal".split()
)


def asked_of_measurement(order: str, facts: Sequence[Fact]) -> list[Ordered]:
    """What an order names, each with the charted facts that answer exactly that."""
    order = re.sub(r"[()\[\]]", ",", fold(order)).strip(" .:,")
    if _WHOLE_EXAMINATION.search(order):
        here = tuple(f for f in facts if f.section in (Section.EXAMINATION, Section.VITALS))
        return [Ordered("Physical examination", here)]
    known = knowledge()
    answers: list[Ordered] = []
    covered: set[str] = set()
    for mention in known.test_names.find(order):
        test = known.tests[mention.key]
        if any(answer.name == test.name for answer in answers):
            continue
        covered.update(mention.words)
        answers.append(_answer(test, facts, _part_about(mention.words, order)))
    for part in _SEPARATORS.split(order):
        left = [word for word in words(part) if word not in covered]
        if set(left) - _MANNER:
            found = _by_words(part, facts)
            if found or not answers:
                answers.append(Ordered(part, found))
    return _once(answers) or [Ordered(order, ())]


def _part_about(named: tuple[str, ...], order: str) -> str:
    """The part of an order that names a test, with what else it says of it: the site, the side."""
    return next((part for part in _SEPARATORS.split(order) if set(named) <= set(words(part))), " ".join(named))


def _answer(test: Test, facts: Sequence[Fact], part: str) -> Ordered:
    own = _charted(test, facts)
    if own:
        return Ordered(test.name, own)
    for other in test.equivalents:
        stand_in = _standing_in(test, knowledge().tests[other], facts)
        if stand_in:
            return Ordered(test.name, stand_in, knowledge().tests[other].name)
    return Ordered(test.name, _by_words(part, facts))


def _standing_in(test: Test, other: Test, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What another test's result says of this one: of a whole panel, the values that were ordered alone."""
    wanted = {words(component) for component in test.components}
    others = {words(component) for component in other.components} - wanted
    return tuple(fact for fact in _charted(other, facts) if words(fact.heads[-1]) not in others)


def _charted(test: Test, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    if test.category == "vital":
        vitals = tuple(f for f in facts if f.section is Section.VITALS)
        names = {words(component) for component in test.components}
        return vitals if test.id == "vital_signs" else tuple(f for f in vitals if words(f.heads[-1]) in names)
    components = {words(component) for component in test.components}
    return tuple(
        fact
        for fact in facts
        if fact.section is not Section.VITALS
        and (_headed(test, fact.heads) or (fact.heads and words(fact.heads[-1]) in components and _open(fact.heads)))
    )


def _headed(test: Test, heads: tuple[str, ...]) -> bool:
    return any(mention.key == test.id for mention in knowledge().test_names.find(". ".join(heads)))


def _open(heads: tuple[str, ...]) -> bool:
    """Whether a value stands alone or under a heading that names no test of its own.

    The white cells of a joint fluid are not those of a blood count.
    """
    above = ". ".join(heads[:-1])
    return not knowledge().test_names.find(above) and not _SPECIMENS & set(words(above))


def _by_words(part: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Facts whose heading and the order's words name the same thing, word for word."""
    exact = tuple(fact for fact in facts if fact.heads and words(fact.heads[-1]) == words(part) and _open(fact.heads))
    wanted = _without_manner(part)
    if exact or not wanted:
        return exact
    elsewhere = _SPECIMENS - set(words(part)) if len(wanted) == 1 or _of_blood(part) else frozenset()
    return tuple(fact for fact in facts if _names(fact, wanted) and not elsewhere & _head_words(fact))


def _of_blood(part: str) -> bool:
    """Whether a value is one of a blood test, as far as its name tells."""
    tests = (knowledge().tests[mention.key] for mention in knowledge().test_components.find(part))
    return any(not _SPECIMENS & set(words(" ".join((test.name, *test.synonyms)))) for test in tests)


def _names(fact: Fact, wanted: frozenset[str]) -> bool:
    if not fact.heads:
        return wanted <= set(words(fact.text))
    last = _without_manner(fact.heads[-1])
    return wanted <= _head_words(fact) or bool(last and last <= wanted)


def _head_words(fact: Fact) -> frozenset[str]:
    return frozenset(word for head in fact.heads for word in words(head))


def _without_manner(text: str) -> frozenset[str]:
    named = words(text)
    # Every pressure but this one can do without the word before it.
    return frozenset(named) - (_MANNER - {"blood"} if "pressure" in named else _MANNER)


def _once(answers: list[Ordered]) -> list[Ordered]:
    """Leave out of later answers what an earlier one already told, and answers left empty by that."""
    told: set[str] = set()
    kept = []
    for answer in answers:
        fresh = tuple(f for f in answer.facts if f.path not in told)
        told.update(f.path for f in fresh)
        if fresh or not answer.facts:
            kept.append(Ordered(answer.name, fresh, answer.equivalent))
    return kept
