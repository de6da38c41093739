"""The builtin patient: answers what was asked from the script, in the first person or through a caregiver."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from agentclinic.cases.demographics import age_in_years, sex
from agentclinic.cases.matcher import Asked, Topic, asked_of_patient
from agentclinic.cases.model import Fact, Section
from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import fold
from agentclinic.models.base import Disclosure, Provenance, Reply
from agentclinic.models.builtin import NO_TOKENS
from agentclinic.models.payloads import PatientPayload

# More than this at once is a recital, not an answer; the rest is told when asked for.
_MOST_FACTS = 4
_MAY_NAME_DISEASES = frozenset({Section.PAST, Section.DRUGS, Section.FAMILY, Section.ALLERGIES})


def answer(payload: PatientPayload) -> Reply:
    """Answer each part of the question with the facts it asks for, or as configured where there are none."""
    voice = _caregiver_voice(payload) if payload.caregiver else _own_voice
    parts, disclosures = [], []
    told: set[str] = set()
    for topic in asked_of_patient(payload.question, payload.facts):
        facts = [fact for fact in _distinct(topic.facts) if fact.path not in told][:_MOST_FACTS]
        if topic.facts and not facts:
            continue
        told.update(fact.path for fact in facts)
        text, provenance = (_tell(topic, facts, voice), Provenance.CHART) if facts else _silence(topic, payload)
        parts.append(text)
        disclosures.append(Disclosure(topic.name, provenance, tuple(fact.path for fact in facts)))
    return Reply(" ".join(dict.fromkeys(parts)), usage=NO_TOKENS, disclosures=tuple(disclosures))


def _distinct(facts: tuple[Fact, ...]) -> list[Fact]:
    """Facts in order, each wording once: charts repeat themselves between sections."""
    return list({fold(fact.text).strip(" ."): fact for fact in reversed(facts)}.values())[::-1]


def _tell(topic: Topic, facts: list[Fact], voice: Callable[[str], str]) -> str:
    sentences = [_sentence(voice(_without_disease(fact))) for fact in facts]
    if topic.kind is Asked.SYMPTOM and all(fact.denied for fact in facts):
        return "No. " + " ".join(sentences)
    return " ".join(sentences)


def _silence(topic: Topic, payload: PatientPayload) -> tuple[str, Provenance]:
    match topic.kind:
        case Asked.RESULT:
            return "You would have to examine or test that yourself, doctor.", Provenance.UNAVAILABLE
        case Asked.UNCLEAR:
            return "I am not sure what you mean. Could you ask in another way?", Provenance.UNAVAILABLE
        case Asked.SYMPTOM if payload.silent_symptom == "deny" and topic.name != "timing":
            return "No, I have not noticed that.", Provenance.DEFAULT_NEGATIVE
    return (
        f"I don't know about my {topic.name}." if topic.kind is Asked.FAMILY else "I am not sure.",
        Provenance.UNAVAILABLE,
    )


@lru_cache(maxsize=1)
def _disease_pattern() -> re.Pattern[str]:
    names = {name for d in knowledge().diseases.values() for name in (d.name, *d.synonyms) if len(name) > 2}
    longest_first = sorted(names, key=len, reverse=True)
    spaced = (re.escape(name).replace(r"\ ", r"[\s-]+").replace("'", "['’]?") for name in longest_first)
    return re.compile(rf"\b(?:{'|'.join(spaced)})\b", re.IGNORECASE)


def _without_disease(fact: Fact) -> str:
    """The fact with every known disease's name withheld, unless it is told as past, drug or family history.

    All names alike: what is withheld must not depend on the case's truth.
    """
    if fact.section in _MAY_NAME_DISEASES:
        return fact.text
    return _disease_pattern().sub("a condition", fact.text)


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".;,")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


_IRREGULAR = {"has": "have", "is": "am", "was": "was", "does": "do", "goes": "go", "says": "say"}
_NOT_VERBS = frozenset(
    {"always", "sometimes", "previous", "was", "as", "this", "his", "us", "also", "works"} - {"works"}
)
_SUBJECT = re.compile(
    r"\b(?:The patient|Patient|the patient|She|she|He|he)\b(?!['’]s\b)(\s+(?:also\s+|then\s+|now\s+)?)(\w+)"
)


def _own_voice(text: str) -> str:
    """A chart's third person turned into the first."""
    text = re.sub(r"\b(?:[Tt]he patient|Patient)['’]s\b", "my", text)
    text = _SUBJECT.sub(lambda m: f"I{m[1]}{_first_person(m[2])}", text)
    text = re.sub(r"\b(?:[Tt]he patient|Patient)\b", "I", text)
    text = re.sub(r"\b(?:her|him)\b(?=\s+(?:with|to|for|in|on|at|when|while|and|or|that|from|up|down)\b)", "me", text)
    text = re.sub(r"\b(?:her|his|Her|His)\b(?=\s+\w)", "my", text)
    text = re.sub(r"\b(?:himself|herself)\b", "myself", text)
    text = re.sub(r"\b(?:her|him)\b", "me", text)
    text = re.sub(r"(?<=[a-z,;] )(?:she|he)\b(\s+)(\w+)", lambda m: f"I{m[1]}{_first_person(m[2])}", text)
    text = re.sub(
        r"^(Denies|Reports|Notes|Complains of|Mentions|reports|denies|States|Has|Is|Works|Lives|Smokes|Drinks|Takes)\b",
        _led_by_verb,
        text,
    )
    # Scripts in prose address the actor: "You have been coughing".
    text = re.sub(r"^(?:For your role as a patient|As a patient(?: actor)?|For the patient actor)[,:]?\s*", "", text)
    text = re.sub(r"\b(?:You are|you are)\b", "I am", text)
    text = re.sub(r"\b(?:You've|you've|You’ve|you’ve)\b", "I have", text)
    text = re.sub(r"\b(?:You're|you're|You’re|you’re)\b", "I am", text)
    text = re.sub(r"\b(?:Your|your)\b", "my", text)
    text = re.sub(r"\b(?:yourself)\b", "myself", text)
    return re.sub(r"\b(?:You|you)\b", "I", text)


def _led_by_verb(match: re.Match[str]) -> str:
    verb = match[1].capitalize()
    if verb == "Denies":
        return "I have not had"
    if verb in ("Reports", "Complains of", "Notes"):
        return "I have"
    return f"I {_first_person(verb.lower())}"


def _first_person(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("ies"):
        return verb[:-3] + "y"
    if verb.endswith(("sses", "ches", "shes", "xes")):
        return verb[:-2]
    if verb.endswith("s") and not verb.endswith("ss") and verb not in _NOT_VERBS:
        return verb[:-1]
    return verb


def _caregiver_voice(payload: PatientPayload) -> Callable[[str], str]:
    """The chart's third person, with the patient called what a caregiver would."""
    age = age_in_years(payload.door.demographics)
    child = age is not None and age < 18
    someone = {"female": "my daughter", "male": "my son"}.get(sex(payload.door.demographics) or "", "my child")
    subject = someone if child else "the patient"

    def voice(text: str) -> str:
        text = re.sub(r"\b(?:[Tt]he patient|Patient)['’]s mother\b|\b(?:His|Her|The) mother\b|^Mother\b", "I", text)
        text = re.sub(
            r"\bI (reports|says|notes|states|denies|describes|gives|brings|recalls)\b",
            lambda m: f"I {_first_person(m[1])}",
            text,
        )
        text = re.sub(
            r"\b(?:[Tt]he patient|[Tt]he (?:infant|child|baby|newborn|boy|girl|toddler)|Patient)\b",
            subject,
            text,
        )
        return re.sub(r"^Denies\b", "There has been no", text)

    return voice
