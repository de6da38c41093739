"""What traits make of a patient: what is kept back, told vaguely, not understood or added, and never what is true.

Code decides from the seed, the fact and what was said before; the truth plays no part. A fact that a trait touches at
one level is touched at every higher one, and each is told in the end if the doctor keeps asking.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from agentclinic import lazy
from agentclinic.cases.matcher.asking import LISTED, clause_texts
from agentclinic.cases.matcher.talk import asks_for_privacy
from agentclinic.cases.model import Fact, Section
from agentclinic.clinic.payloads import PatientPayload
from agentclinic.config import STRONGEST
from agentclinic.results.turn import Effect, Exchange
from agentclinic.vocabulary.jargon import Mention, Term, mentions
from agentclinic.vocabulary.numbers import numbers

NOT_EXACT = "recall: not exact"
NOT_RECALLED = "recall: not recalled"
NOT_DIRECT = "disclosure: not asked directly"
RELUCTANT = "disclosure: reluctant"
PLAYED_DOWN = "disclosure: played down"
WORD = "Word"
"""Begins the path of a word that was not understood in a question about nothing in the chart."""
WORD_UNKNOWN = "literacy: word not known"
MISUNDERSTOOD = "literacy: misunderstood"
BESIDE_THE_POINT = "verbosity: beside the point"
FEELING = "verbosity: feelings"


class Treatment(NamedTuple):
    """What a trait does to a fact that would be told."""

    effect: Effect
    vague: str | None = None
    """The sentence that is said instead; None if the fact is kept back."""


@lru_cache(maxsize=65536)
def _draw(seed: int, trait: str, name: str) -> float:
    """A number from 0 to 1 that decides whether a trait touches something: the same at every level."""
    drawn = hashlib.sha256(f"{seed}:{trait}:{name}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") / 2**64


# --- recall and disclosure: single facts ----------------------------------------------------------------------------

_TIME = lazy.regex(
    r"\b(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|decades?|ago|since|yesterday|today|tonight"
    r"|morning|evening|afternoon|noon|midnight|once|twice|daily|weekly|monthly|childhood|half|couple|dozen|mg|doses?"
    r"|tablets?|drops?|puffs?|units?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|spring|summer|autumn|fall|winter"
    r"|january|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_PRECISELY = lazy.regex(
    r"\b(?:exact\w*|precise\w*|specific\w*|best guess|roughly|approximate\w*|about how|try to remember|think back"
    r"|as best you can|can you remember|do you remember|do you recall)\b",
    re.IGNORECASE,
)
_IN_CONFIDENCE = lazy.regex(
    r"\bconfidential\w*|\bin confidence\b|\bbetween (?:us|you and me|the two of us)\b|\bstays? (?:here|in this room)\b"
    r"|\bno one else will\b|\bnobody else will\b|\bnot (?:here )?to judge\b|\bwithout judg",
    re.IGNORECASE,
)
_DETAILS = frozenset({Section.HISTORY, Section.SYMPTOMS, Section.PAST, Section.DRUGS, Section.FAMILY, Section.SOCIAL})


def in_confidence(payload: PatientPayload) -> bool:
    """Whether the doctor has offered privacy or discretion, now or before."""
    said = (payload.question, *(exchange.content for exchange in payload.asked if exchange.kind == "question"))
    return any(asks_for_privacy(text) or _IN_CONFIDENCE.search(text) for text in said)


def treated(fact: Fact, payload: PatientPayload, *, direct: bool, opening: bool) -> Treatment | None:
    """What the traits do to a fact that would be told; None if it is told as it is.

    `direct`: the question names it. `opening`: the patient was asked to tell the story, and does.
    """
    traits = payload.traits
    sensitive = (fact.sensitive or fact.private) and not fact.denied and fact.told != "volunteered"
    if traits.disclosure and sensitive and not direct and not in_confidence(payload):
        return Treatment(Effect(fact.path, NOT_DIRECT))
    before = frozenset(_effects(payload.asked))
    steps = _steps(fact, payload, sensitive=sensitive, direct=direct)
    return next((step for step in steps if (step.vague or not opening) and step.effect not in before), None)


def _steps(fact: Fact, payload: PatientPayload, *, sensitive: bool, direct: bool) -> Iterator[Treatment]:
    """What is done to a fact, once each, before it is told as it is."""
    traits, path = payload.traits, fact.path
    if sensitive and traits.disclosure >= STRONGEST and not in_confidence(payload):
        yield Treatment(Effect(path, RELUCTANT))
    if sensitive and traits.disclosure >= 2 and fact.vague:
        yield Treatment(Effect(path, PLAYED_DOWN), fact.vague)
        return
    if not traits.recall or fact.denied:
        return
    pressed = traits.recall < STRONGEST and _PRECISELY.search(payload.question)
    if _is_exact(fact) and not pressed and _draw(traits.seed, "recall", path) < traits.recall / STRONGEST:
        # Where the author gives no vague sentence, nothing true can be said without the time or the dose.
        yield Treatment(Effect(path, NOT_EXACT), fact.vague) if fact.vague else Treatment(Effect(path, NOT_RECALLED))
        return
    detail = fact.told == "if asked" and fact.section in _DETAILS and not _is_main(fact)
    if detail and not direct and _draw(traits.seed, "recall of details", path) < (traits.recall - 1) / STRONGEST:
        yield Treatment(Effect(path, NOT_RECALLED))


def _is_main(fact: Fact) -> bool:
    """Whether a fact is the reason for the visit, which no one forgets."""
    return "primary" in " ".join(fact.heads).lower()


@lru_cache(maxsize=16384)
def _is_exact(fact: Fact) -> bool:
    """Whether a fact has a time, a dose or an amount that a person may forget."""
    if fact.section is Section.DEMOGRAPHICS or (not fact.vague and (fact.says or _is_main(fact))):
        return False  # the author found nothing to be vague about
    return bool(_TIME.search(fact.text) or any(True for _ in numbers(fact.text)))


def _effects(asked: tuple[Exchange, ...]) -> Iterator[Effect]:
    for exchange in asked:
        for part in exchange.disclosures:
            yield from part.withheld
            yield from part.vague


# --- literacy: what is understood -----------------------------------------------------------------------------------


class Heard(NamedTuple):
    """A question as the patient hears it."""

    understood: str
    """What is left of it; empty if nothing is."""
    unknown: tuple[Mention, ...] = ()
    """The words that were not understood, each once."""
    taken: tuple[tuple[Mention, str], ...] = ()
    """The words that were misunderstood, with their clause as the patient hears it."""


def heard(payload: PatientPayload) -> Heard:
    """What a patient understands of the question; everything without the trait `literacy`."""
    if not payload.traits.literacy:
        return Heard(payload.question)
    question, strange = _EXPLANATION.sub("", payload.question).strip() or payload.question, _strange(payload)
    if not strange:
        return Heard(question)
    kept: list[str] = []
    unknown: dict[str, Mention] = {}
    taken: dict[str, tuple[Mention, str]] = {}
    for clause in clause_texts(question):
        here = [one for one in mentions(clause) if one.term in strange]
        if not here:
            kept.append(clause)
            continue
        first = here[0]
        if first.term.taken_for:
            taken.setdefault(first.word.lower(), (first, clause.replace(first.word, first.term.taken_for)))
            continue
        unknown |= {one.word.lower(): one for one in here}
        kept += filter(None, [_without(clause, here)])
    return Heard("? ".join(kept) + ("?" if kept else ""), tuple(unknown.values()), tuple(taken.values()))


# "By edema I mean swelling." helps to understand a question and asks for nothing more.
_EXPLANATION = lazy.regex(
    r"\b(?:by|with) [^.?!]{1,40}?,? I mean [^.?!]{1,120}[.?!]?"
    r"|\((?:that is|meaning|i\.e\.|in other words),? [^)]{1,120}\)",
    re.IGNORECASE,
)


def _without(clause: str, strange: list[Mention]) -> str:
    """A clause without the unknown words in its list; empty if it is not a list or nothing else is in it."""
    items = LISTED.split(clause)
    words = {one.word for one in strange}
    left = [item for item in items if item.strip() and not any(word in item for word in words)]
    if len(items) < 2 or not left:
        return ""
    first = items[0]
    lead = re.split("|".join(map(re.escape, words)), first)[0].strip() if first not in left else ""
    return f"{lead} {', '.join(item.strip() for item in left)}".strip()


def _strange(payload: PatientPayload) -> frozenset[Term]:
    """The terms in the question that the patient does not know and that no question so far has explained."""
    earlier = [exchange.content for exchange in payload.asked if exchange.kind == "question"]
    named = (one.term for one in mentions(payload.question) if one.term.level <= payload.traits.literacy)
    return frozenset(
        term
        for term in named
        if not term.explained_in(payload.question)
        and not any(term.explained_in(text) for text in earlier if any(one.term == term for one in mentions(text)))
    )


# --- verbosity: what is added ---------------------------------------------------------------------------------------

_FEELINGS = ("worry", "hope", "feel")


class Addition(NamedTuple):
    """Something that was not asked for."""

    effect: Effect
    fact: Fact | None
    text: str
    """What is said, if it is no fact."""


def additions(payload: PatientPayload, told: frozenset[str]) -> tuple[Addition, ...]:
    """What a talkative patient adds to this reply: facts of daily life and feelings that were not told before.

    They are chosen by their section alone, so that what is added says nothing about what matters.
    """
    traits = payload.traits
    turn = sum(exchange.kind == "question" for exchange in payload.asked)
    if not traits.verbosity or _draw(traits.seed, "verbosity", str(turn)) >= traits.verbosity / STRONGEST:
        return ()
    used = told | {effect.path for each in payload.asked for part in each.disclosures for effect in part.added}
    pool = [
        *(
            Addition(Effect(fact.path, BESIDE_THE_POINT), fact, "")
            for fact in payload.facts
            if fact.section is Section.SOCIAL and not (fact.denied or fact.sensitive or fact.private)
            and fact.told != "if pressed"
        ),
        *(
            Addition(Effect(f"Manner/{kind}", FEELING), None, payload.manner[kind])
            for kind in _FEELINGS
            if payload.manner.get(kind)
        ),
    ]  # fmt: skip
    unused = [one for one in pool if one.effect.path not in used]
    ordered = sorted(unused, key=lambda one: _draw(traits.seed, "addition", one.effect.path))
    return tuple(ordered[: 2 if traits.verbosity == STRONGEST else 1])
