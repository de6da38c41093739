"""Which facts of the patient's script a question is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agentclinic.cases.matcher.aspects import WHEN, aspect_topics
from agentclinic.cases.matcher.background import background_topics, names_sickness, said_as_background
from agentclinic.cases.matcher.parts import Item, clauses, items
from agentclinic.cases.matcher.symptoms import NOTHING_ELSE, answering
from agentclinic.cases.matcher.topics import Asked, Topic
from agentclinic.cases.model import Fact, Section
from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import content_words, fold

_OPENING = re.compile(
    r"what (?:(?:brings|brought)(?! (?:it|this|them|the \w+) on)|seems|can i|made you|is going on|has been going"
    r"|are your (?:main )?(?:symptoms|concerns))"
    r"|how can i help|what's (?:going on|been|wrong|the (?:matter|problem))|main (?:concern|complaint|problem)"
    r"|tell me (?:more |a bit more )?about (?:your (?:symptoms?|problem|complaint)|what|how|yourself|why)"
    r"|(?:describe|explain) (?:your|the|all (?:your|the)|his|her) (?:current |main )?(?:symptoms?|problem|complaint)"
    r"|in your own words|how are you feeling|main symptoms?|what (?:symptoms|happened)|reason for (?:your|the"
    r"|this) visit"
    r"|why (?:have you come|are you here)|what is (?:the matter|wrong|bothering)",
    re.IGNORECASE,
)
_EXAMINED = re.compile(
    r"\b(?:let me|i(?:'d| would) like to|can i|may i|i will|i'll) (?:examine|check|listen|look|palpate|feel|measure)"
    r"|\bblood pressure (?:today|reading|now)|\bon (?:\w+ )?(?:exam|examination|palpation|auscultation|inspection)\b"
    r"|\b(?:test|lab|scan|x-?ray|biopsy|imaging|ecg|ekg|mri|ct) (?:results?|show)"
    r"|\b(?:maneuver|manoeuvre|impingement test|\w+ (?:test|sign) (?:positive|negative)"
    r"|(?:\w+-\w+|\w+['’]s) (?:test|sign|maneuver|manoeuvre))\b"
    r"|\bresults? of\b|\bwhat (?:is|was|are) your (?:temperature|blood pressure|heart rate|pulse|vital|oxygen)",
    re.IGNORECASE,
)
_BODY_QUESTION = re.compile(r"\b(?:do|does|did|have|has|had|are|is|was|were|any|ever|can|could)\b", re.IGNORECASE)
_ANYTHING_ELSE = re.compile(
    r"\b(?:any|other|additional|associated|new|what) (?:other |additional |associated |new )*symptoms?\b[^,(:]{0,25}$"
    r"|\banything else\b",
    re.IGNORECASE,
)


def asked_of_patient(question: str, facts: Sequence[Fact]) -> list[Topic]:
    """What a question to the patient is about, part by part, each with the facts that answer it."""
    topics: list[Topic] = []
    before = ""
    for clause in clauses(question):
        for topic in _asked_in(clause, facts, before):
            _add(topics, topic)
        before = clause
    if any(topic.facts for topic in topics):
        # Beside an answer, what nobody could name and what the door tells is left unsaid.
        topics = [t for t in topics if t.facts or (t.kind is not Asked.UNCLEAR and t.name != "demographics")]
    clear = [topic for topic in topics if topic.kind is not Asked.UNCLEAR]
    return clear or [Topic(question.strip(), Asked.UNCLEAR, ())]


def _add(topics: list[Topic], topic: Topic) -> None:
    """Add a topic, or its facts to an earlier one of the same name."""
    for place, earlier in enumerate(topics):
        if earlier.name == topic.name and earlier.kind is topic.kind:
            topics[place] = Topic(topic.name, topic.kind, tuple(dict.fromkeys(earlier.facts + topic.facts)))
            return
    topics.append(topic)


def _asked_in(clause: str, facts: Sequence[Fact], before: str) -> list[Topic]:
    if _EXAMINED.search(clause):
        return [Topic("examination or result", Asked.RESULT, ())]
    if WHEN.match(clause) and (aspects := aspect_topics(clause, facts, before)):
        return aspects
    topics = background_topics(clause, facts)
    if _OPENING.search(clause) and not topics:
        return [Topic("opening", Asked.OPENING, _opening_facts(facts))]
    aspects = [] if topics else aspect_topics(clause, facts, before)
    if aspects:
        return aspects
    return topics + _symptom_topics(clause, facts, background=bool(topics))


def _opening_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What a patient says first: the main complaint and how the story begins."""
    primary = [f for f in facts if any(fold(head) == "primary symptom" for head in f.heads)]
    story = [f for f in facts if f.section is Section.HISTORY]
    return tuple(dict.fromkeys(primary + story[:2])) or tuple(facts[:1])


# "No other symptoms" says nothing of these.
_NO_SYMPTOMS = frozenset(
    {"menses", "ovulation", "pregnancy", "fertility", "birth", "birth problem", "vaccination", "development",
     "exposure", "sick contacts", "sun", "food", "caffeine", "stress", "prenatal care", "bite"}
)  # fmt: skip


@lru_cache(maxsize=1)
def _symptom_names() -> frozenset[str]:
    return frozenset(finding.name for finding in knowledge().findings.values() if finding.kind == "symptom")


def _symptom_topics(clause: str, facts: Sequence[Fact], *, background: bool) -> list[Topic]:
    listed = items(clause)
    if _ANYTHING_ELSE.search(clause) and not background and not any(item.findings for item in listed):
        return [Topic("other symptoms", Asked.SYMPTOM, _other_symptoms(facts))]
    topics: list[Topic] = []
    silent = False
    nameless: list[str] = []
    for item in listed:
        if background and said_as_background(item):
            continue
        about = tuple(answering(item, facts))
        names = _finding_names(item)
        if background and not about:
            names = [] if names_sickness(item) else [name for name in names if name in _symptom_names()]
        if names:
            _add(topics, Topic(names[0], Asked.SYMPTOM, about))
            for name in names[1:]:
                _add(topics, Topic(name, Asked.SYMPTOM, ()))
        elif about:
            _add(topics, Topic(_label(item), Asked.SYMPTOM, about))
        elif item.names_something:
            nameless.append(_label(item))
        silent |= not about and bool(item.complaints - _NO_SYMPTOMS or item.findings) and not item.conditional
    asks = bool(_BODY_QUESTION.search(clause)) and not background
    if nameless and not topics and asks:
        topics.append(Topic(" ".join(nameless), Asked.SYMPTOM, ()))
    if asks and silent:
        nothing = tuple(f for f in facts if f.section is Section.REVIEW and NOTHING_ELSE.search(f.text))
        if nothing:
            topics.append(Topic("other symptoms", Asked.SYMPTOM, nothing))
    if not topics and not background:
        topics.append(Topic(clause, Asked.UNCLEAR, ()))
    return topics


def _finding_names(item: Item) -> list[str]:
    """The findings an item names, in the order in which it names them."""
    mentions = knowledge().finding_terms.find(item.text)
    return [knowledge().findings[key].name for key in dict.fromkeys(mention.key for mention in mentions)]


def _label(item: Item) -> str:
    return " ".join(sorted(content_words(item.text))) or item.text


def _other_symptoms(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    return tuple(
        f
        for f in facts
        if (f.section is Section.SYMPTOMS and not any(fold(head) == "primary symptom" for head in f.heads))
        or (f.section is Section.REVIEW and NOTHING_ELSE.search(f.text))
    )
