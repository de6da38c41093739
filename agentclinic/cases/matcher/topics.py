"""What a question is about: topics, and what the things are called that a patient denies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentclinic import lazy
from agentclinic.cases.matcher.asking import VAGUE
from agentclinic.cases.matcher.cues import Asked
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import Mention
from agentclinic.vocabulary.text import STOP_WORDS, content_words, fold, singular, words


@dataclass(frozen=True)
class Topic:
    """One thing a question or an order is about, and the facts that answer it."""

    name: str
    kind: Asked
    facts: tuple[Fact, ...]
    words: str = ""
    """For what is not in the chart: what it is called, in the doctor's words."""
    concepts: int = 0
    """For what may be denied: the concepts that would be denied."""
    asked: str = ""
    """For what may be denied: the doctor's whole words."""
    direct: frozenset[str] = frozenset()
    """The paths of the facts that answer a part of the question best."""


def is_primary(fact: Fact) -> bool:
    """Whether a fact is the main complaint."""
    return any(fold(head) == "primary symptom" for head in fact.heads)


def opening(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What a patient says first: what its author marked, or else the main complaint and the start of the story."""
    volunteered = tuple(
        sorted((fact for fact in facts if fact.told == "volunteered"), key=lambda fact: not is_primary(fact))
    )
    primary = [fact for fact in facts if is_primary(fact)]
    story = [fact for fact in facts if fact.section is Section.HISTORY and fact.told == "if asked" and not fact.private]
    return volunteered or tuple(dict.fromkeys(primary + story[:2])) or tuple(facts[:1])


_NORMAL = lazy.regex(r"\b(?:normal(?:ly)?|clear|fine|good|unchanged|regular|up to date|okay)\b", re.IGNORECASE)


def says_no_harm(fact: Fact) -> bool:
    """Whether a fact denies something, or calls something normal."""
    return fact.denied or (fact.section is Section.SYMPTOMS and bool(_NORMAL.search(fact.text)))


MORE_OF_STORY = 2
"""Facts of each kind that are told beyond the opening if the doctor asks for the whole story."""


def story(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What a patient says who is asked to tell it all: the opening, how it went on, and what else is wrong."""
    open_ones = [fact for fact in facts if fact.told == "if asked" and not says_no_harm(fact) and not fact.private]
    told = opening(facts)
    rest = {
        section: [fact for fact in open_ones if fact.section is section and fact not in told]
        for section in (Section.HISTORY, Section.SYMPTOMS)
    }
    return (*told, *(fact for more in rest.values() for fact in more[:MORE_OF_STORY]))


@lru_cache(maxsize=1)
def deniable() -> int:
    return lexicon.of_types("symptom", "disease", "procedure", "drug", "exposure", "habit")


WELL = lazy.regex(
    r"\b(?:well|normal(?:ly)?|ok(?:ay)?|fine|safe|regular(?:ly)?|healthy|up to date|properly|enough|good|usual|able"
    r"|appetite|energy|enjoy\w*|interest\w*|pleasure)\b",
    re.IGNORECASE,
)
"""What is asked for as good: a denial would make it a complaint."""


def strange_words(text: str) -> list[str]:
    """The words of a text that name nothing we know and are not plain."""
    words = lexicon.tokens(text)
    known = {place for hit in lexicon.found(text) for place in range(hit.start, hit.end)}
    named = {word for mention in _mentions(text) for word in mention.words}
    return [
        word
        for place, word in enumerate(words)
        if place not in known and word.isalpha() and len(word) > 2 and word not in _plain() and word not in named
    ]


@lru_cache(maxsize=1)
def _plain() -> frozenset[str]:
    return frozenset(map(singular, STOP_WORDS | VAGUE | frozenset(_EVERYDAY.split())))


_EVERYDAY = """
about above actually all almost already alright although always among another anybody anyone anyway anywhere apart
appear around bad because become before begin behind below beside besides better between big both bring brought came
cannot cant care carry case catch cause certain close come coming complete completely could dealing despite did didnt
different doesnt doing dont down each early easily either else end enough especially even evening everyone everything
exactly example face fact far feel few find fine following found full fully gave get getting give given go goes going
gone gotten great hand happen happening hard hardly has hear help here high him home hour how however inside instead
isnt just keep kept kind know later least leave less let life little long look looking lot low made main maybe mean
mind moment most move much must need next nice night normally nothing number odd off okay once open ordinary other
outside own part people perhaps place please point possible probably put rather ready regular regularly right same see
seem seemed seen several share short should show similar since single small somebody someone something sometimes
somewhat soon sort spent start stay stayed still stop strange sure tell than their them themselves then there they
thing think thought through time today together told tonight too toward tried true try trying turn turned twice until
use used using usual usually want way well went were what whatever when whenever where while whole whose wont word
work worst yes yet young
"""


def span(text: str, strange: Sequence[str]) -> str:
    """The doctor's words from the first to the last that we do not know."""
    words = list(re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text))
    hits = [word for word in words if any(singular(piece) in strange for piece in lexicon.tokens(word[0]))]
    return text[hits[0].start() : hits[-1].end()] if hits else ""


_BEFORE_NOUN = lazy.regex(
    r"^(?:(?:and|or|so|any|some|a|an|the|do|does|did|have|has|had|are|is|was|were|been|you|he|she|they|your child"
    r"|ever|also"
    r"|having|noticed|notice|experienced|experiencing|experience|get|getting|gotten|there|with|recent|recently|new"
    r"|other"
    r"|currently|suffered|suffering|from|developed|seen)\s+)*(?=(.*))",
    re.IGNORECASE | re.DOTALL,
)
_NOUN = lazy.regex(
    r"(?:[a-z]+ ){0,2}(?:pains?|aches?|[a-z]*ache|swelling|bleeding|discharge|loss|gain|sweats|chills|fevers?"
    r"|rash(?:es)?|cough(?:ing)?"
    r"|vomiting|nausea|diarrhea|constipation|heartburn|headaches?|numbness|tingling|weakness|dizziness|fatigue"
    r"|tiredness"
    r"|seizures?|palpitations|wheez(?:e|ing)|breathlessness|shortness of breath|cramps?|spasms?|stiffness|itch(?:ing"
    r"|iness)?|redness"
    r"|bruis(?:es|ing)|lumps?|sores?|ulcers?|blisters?|nosebleeds?|hair loss|blurred vision|double vision"
    r"|vision changes"
    r"|sore throat|runny nose|congestion|burning|urgency|infections?|injur(?:y|ies)|trauma|falls?|problems?|changes"
    r"|tremors?"
    r"|confusion|hallucinations|anxiety|nightmares|snoring|thirst|jaundice|heat intolerance|cold intolerance|fainting)"
    r"|(?:blood|mucus) in (?:your|the) \w+|trouble (?:\w+ing)|difficulty (?:\w+ing)"
)


_SEVERAL = lazy.regex(r"[,(]|\b(?:or|and)\b")
"""In the name of a finding that stands for several things."""


_PARTICLE = lazy.regex(r"^(?:your|the|this|that)\b|\b(?:up|out|over|off|down|at|on|for|to|when|while|than)\b")
"""In what is no noun by itself: "picking up infections"."""


_GENERAL = lazy.regex(r"pains?|problems?|changes")
"""What a patient does not deny by name, since something may hurt elsewhere."""


def called(text: str, names: Sequence[str]) -> str:
    """What a patient calls the thing when denying it: the doctor's own noun, or else its name.

    The name of a finding says too much if the doctor asked for less: "waking at night short of breath".
    """
    begins = _BEFORE_NOUN.match(text.strip(" ?."))
    noun = begins[1].lower() if begins else ""
    if _NOUN.fullmatch(noun) and not _PARTICLE.search(noun) and not _GENERAL.fullmatch(noun):
        return noun.replace("your ", "the ")
    if not names or _SEVERAL.search(names[0]):
        return ""
    named = {word for mention in _mentions(text) for word in mention.words}
    return names[0].lower() if content_words(text) <= named else ""


_LISTS_NOUNS = lazy.regex(
    r"\b(?:any|(?:have (?:you|they)|has (?:he|she))(?: ever)? (?:had|noticed)|do (?:you|they)(?: ever)? (?:have|get)"
    r"|does (?:he|she)(?: ever)? (?:have|get)|(?:is|was|are|were) there"
    r"|(?:any(?:one|body)|relatives?|parents|family)(?: \w+){0,4} (?:have|has|had|with|get)(?: ever)?(?: had)?)\b",
    re.IGNORECASE,
)
_CLAUSE = lazy.regex(
    r"[;?]|\b(?:trouble|problems?|difficult\w*|changes?|issues?|history|loss|pain)\b.*\b(?:with|in|of|to)\b"
    r"|\b(?:been|fel[lt]|feel\w*|lost|seen|do|does|did|is|are|was|were|can|could|will|would|how|what|when|where"
    r"|who|which|why|ma[dk]es?|that|than|if|has|have|had|gets?|getting|got|you|i|he|she|it|they"
    r"|(?:your|him|her|them)sel(?:f|ves))\b",
    re.IGNORECASE,
)
"""In what is no plain list of nouns."""
_NO_NOUN = lazy.regex(
    r"(?:better|worse|to|not|just|such|like|even|else|other|more|less|kind|sort|of|before|after|now|ever|yet|too|either"
    r"|with|without|while|when|during|since|from|by|unable|hard|able|above|below|under|around|over|in|on|at|for|up|out|off|away|back|down|through|along|one|body|\w+ed|\w+ly"
    r"|(?!body|kidney|allergy|surgery|injury|biopsy|therapy|anxiety)\w+y$|\w+ing(?! (?:in|of|when|on|at|from|after)\b))"
    r"(?: |$)|(?:torn|worn|broken|burst|bent|blown|stuck|split|sunken|swollen)$",
    re.IGNORECASE,
)
"""The beginning of what is no noun: adjectives by themselves, and what someone does."""
_TAKES_AWAY = lazy.regex(r"\b(?:los[et]|losing|gain\w*|miss\w*|skip\w*|chang\w*|stop\w*|put on) any$", re.IGNORECASE)
"""What is lost or changed is not something the patient has: "lost any weight" is not denied as "no weight"."""
_BEFORE_LISTED = lazy.regex(r"^(?:(?:and|or|any|an?|some|the|many|much) )+", re.IGNORECASE)
_EXAMPLES = lazy.regex(r",| (?:such as|like|including) ", re.IGNORECASE)
_WHEN_YOU = lazy.regex(r"\bwhen you(?= \w+$)", re.IGNORECASE)
_YOUR = lazy.regex(r"\byour\b", re.IGNORECASE)


def listed_noun(text: str, before: str) -> str:
    """What is denied of a list of nouns, as "hot flushes" in "any fever or hot flushes?"; empty if it may be no noun.

    `before` is what comes before it in its sentence.
    """
    said = f"{before}{text}"
    lists = list(_LISTS_NOUNS.finditer(said))
    if not lists or _CLAUSE.search(before[lists[-1].end() :]) or _TAKES_AWAY.search(said[: lists[-1].end()]):
        return ""
    item = text[max(0, lists[-1].end() - len(before)) :].strip(" ?.,")
    noun = _YOUR.sub("the", _EXAMPLES.split(_BEFORE_LISTED.sub("", item))[0])
    plain = _WHEN_YOU.sub("", noun)
    words = plain.split()
    if not 0 < len(words) <= 6 or words[-1] == "such" or "or" in words:
        return ""
    if _CLAUSE.search(plain) or _NO_NOUN.match(plain):
        return ""
    named = lexicon.named(noun).closed & ~lexicon.roots()
    if named and not named & ~lexicon.of_types("place"):
        return ""
    noun = _WHEN_YOU.sub("when I", noun)
    return noun if noun[:2].isupper() else f"{noun[:1].lower()}{noun[1:]}"


@lru_cache(maxsize=16384)
def _mentions(text: str) -> Sequence[Mention]:
    """The findings that a text names."""
    terms = knowledge().finding_terms
    return terms.find(text) if terms.may_find(words(text)) else ()


def finding_names(text: str) -> tuple[str, ...]:
    return tuple([knowledge().findings[key].name for key in dict.fromkeys(one.key for one in _mentions(text))])


def label(text: str) -> str:
    return " ".join(sorted(content_words(text))) or text
