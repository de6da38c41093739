"""What the patient answers: which facts answer a question, and how code words them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.cases.matcher import Asked, Topic, asked_of_patient
from agentclinic.cases.model import Fact, Section, age_in_years, sex
from agentclinic.clinic.first_person import caregiver_voice, own_voice
from agentclinic.clinic.payloads import PatientPayload
from agentclinic.results.turn import Disclosure, Provenance
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import fold

MOST_FACTS = 6
"""More facts at once would be a recitation, not an answer; the doctor can ask for the rest."""
NOT_NOTICED = "No, I have not noticed that."
REST_NOT_NOTICED = "I have not noticed the rest."
NOT_SURE = "I am not sure."
UNCLEAR = "I am not sure what you mean. Could you ask in another way?"
EXAMINE = "You would have to examine or test that yourself, doctor."
NO_FAMILY = "I don't know about my family history."
_MAY_NAME_DISEASES = frozenset({Section.PAST, Section.DRUGS, Section.FAMILY, Section.ALLERGIES})


@dataclass(frozen=True)
class Part:
    """The answer to one part of a question."""

    disclosure: Disclosure
    facts: tuple[Fact, ...]
    text: str
    """The answer in code's words."""


def matched(payload: PatientPayload) -> tuple[Part, ...]:
    """The answer to each part of the question, from the facts our matcher finds; without any, as configured."""
    return answer_parts(asked_of_patient(payload.question, payload.facts), payload)


def answer_parts(topics: Iterable[Topic], payload: PatientPayload) -> tuple[Part, ...]:
    """The answers to topics; no fact is mentioned twice."""
    voice = _voice(payload)
    parts: list[Part] = []
    seen: set[str] = set()
    for topic in topics:
        facts = [fact for fact in _distinct(topic.facts) if fact.path not in seen][:MOST_FACTS]
        if topic.facts and not facts:
            continue
        same = {_wording(fact) for fact in facts}
        paths = tuple(fact.path for fact in topic.facts if _wording(fact) in same)
        seen.update(paths)
        text, provenance = (_tell(topic, facts, voice), Provenance.CHART) if facts else _silence(topic, payload)
        parts.append(Part(Disclosure(topic.name, provenance, paths), tuple(facts), text))
    return tuple(parts)


def worded(parts: Sequence[Part]) -> str:
    return _joined([part.text for part in parts])


def _joined(parts: list[str]) -> str:
    """The parts as one reply, each said once; after other answers, "no" refers to the rest."""
    said = list(dict.fromkeys(part for part in parts if part != NOT_NOTICED))
    if NOT_NOTICED not in parts:
        return " ".join(said)
    return " ".join([*said, REST_NOT_NOTICED]) if said else NOT_NOTICED


def _distinct(facts: tuple[Fact, ...]) -> list[Fact]:
    """Facts in order, without repeated wordings: charts say the same thing in several sections."""
    return list({_wording(fact): fact for fact in reversed(facts)}.values())[::-1]


def _wording(fact: Fact) -> str:
    return fold(fact.text).strip(" .")


def _tell(topic: Topic, facts: list[Fact], voice: Callable[[Fact, str], str]) -> str:
    sentences = list(dict.fromkeys(_sentence(voice(fact, without_disease(fact))) for fact in facts))
    text = " ".join(sentences)
    denied = topic.kind is Asked.SYMPTOM and all(fact.denied for fact in facts)
    return f"No. {text}" if denied and not text.startswith("No ") else text


def _silence(topic: Topic, payload: PatientPayload) -> tuple[str, Provenance]:
    match topic.kind:
        case Asked.RESULT:
            return EXAMINE, Provenance.UNAVAILABLE
        case Asked.UNCLEAR:
            return UNCLEAR, Provenance.UNAVAILABLE
        case Asked.SYMPTOM if payload.silent_symptom == "deny" and topic.name != "timing":
            return NOT_NOTICED, Provenance.DEFAULT_NEGATIVE
    return NO_FAMILY if topic.kind is Asked.FAMILY else NOT_SURE, Provenance.UNAVAILABLE


@lru_cache(maxsize=1)
def _disease_names() -> dict[str, list[str]]:
    """All names of diseases, the longest first, by the words that a text with one of them has: its first."""
    by_word: dict[str, list[str]] = {}
    names = {name for d in knowledge().diseases.values() for name in (d.name, *d.synonyms)}
    for name in sorted(names, key=len, reverse=True):
        first = _WORD.findall(name.lower().replace("'", ""))[0].removesuffix("s")
        for word in (first, f"{first}s"):
            by_word.setdefault(word, []).append(name)
    return by_word


@lru_cache(maxsize=1024)
def _disease_pattern(*first: str) -> re.Pattern[str]:
    """Matches the names of diseases that begin with one of these words."""
    names = dict.fromkeys(name for word in first for name in _disease_names()[word])
    patterns = [_name_pattern(name) for name in sorted(names, key=len, reverse=True)]
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b")


_WORD = re.compile(r"\w+")


def _name_pattern(name: str) -> str:
    """A name in any case, with or without possessives and hyphens; an abbreviation exactly as written."""
    if name.isupper():
        return re.escape(name)
    stems = (re.escape(word.removesuffix("s")) for word in re.split(r"[\s-]+", name.replace("'", "")))
    return "(?i:" + r"(?:['’]?s)?[\s-]+".join(stems) + "(?:['’]?s)?)"


_A_CONDITION = re.compile(r"\ban? a condition\b", re.IGNORECASE)
# "my old a condition", after a name was withheld, becomes "my old condition".
_HIS_CONDITION = re.compile(
    r"\b((?:my|your|his|her|their|the|this)(?: (?:old|known|usual|chronic|previous|past))?) a condition\b",
    re.IGNORECASE,
)


def without_disease(fact: Fact) -> str:
    """The fact with the names of all known diseases withheld, unless it is past, drug or family history or an allergy.

    All names alike: what is withheld must not depend on the true diagnosis.
    """
    first = sorted(_disease_names().keys() & set(_WORD.findall(fact.text.lower())))
    if fact.section in _MAY_NAME_DISEASES or not any(_disease_pattern(word).search(fact.text) for word in first):
        return fact.text
    withheld = _disease_pattern(*first).sub("a condition", fact.text)
    withheld = _A_CONDITION.sub("a condition", withheld)
    return _HIS_CONDITION.sub(r"\1 condition", withheld)


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".;,")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _voice(payload: PatientPayload) -> Callable[[Fact, str], str]:
    """Who speaks: the patient, or a caregiver who says "my daughter"."""
    if not payload.caregiver:
        return lambda fact, text: own_voice(text, fact.section)
    age = age_in_years(payload.door.demographics)
    gender = sex(payload.door.demographics) or ""
    child = {"female": "my daughter", "male": "my son"}.get(gender, "my child")
    subject = child if age is not None and age < 18 else "the patient"
    pronoun = {"female": "she", "male": "he"}.get(gender, subject)
    return lambda _, text: caregiver_voice(text, subject, pronoun)
