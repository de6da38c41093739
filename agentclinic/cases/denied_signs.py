"""What a finding says is there, and what a normal finding would deny: the sign, and the place it is at."""

from __future__ import annotations

import re
from functools import lru_cache

from agentclinic import lazy
from agentclinic.cases.matcher.cues import Cue
from agentclinic.cases.matcher.order_words import reading, vocabulary

Sign = tuple[str, str, str]
"""A sign, the place it is at, and the side, if one is named."""

_WORDS = {
    "lump": r"lumps?|nodules?|nodes?",
    "mass": r"mass(?:es)?",
    "tender": r"tender\w*|painful|sore",
    "swelling": r"swollen|swelling|edema|puff\w+|effusions?|pitting|(?:wider|larger|thicker) than",
    "red": r"red|redness|erythema|inflamed",
    "scar": r"scars?",
    "ulcer": r"ulcers?",
    "rash": r"rash|purpur\w+|petechi\w+|blisters?|spots|vesicles?",
    "wasting": r"wast\w+|atroph\w+",
    "movement": r"(?:limited|restricted|reduced|painful) (?:\w+ )?(?:movements?|bending|turning)"
    r"|(?:movements?|bending \w+|turning) (?:is |are )?(?:limited|restricted|reduced|painful)",
    "discharge": r"discharge|pus",
    "crackles": r"crackl\w+",
}
_SIGNS = {sign: Cue(rf"\b(?:{names})\b") for sign, names in _WORDS.items()}
_CLAUSES = lazy.regex(r"[;,.:]\s+|\s+(?:and|but)\s+(?=no\b|not\b|without\b)")
_DENIED = lazy.regex(r"\b(?:no|not|none|without|free|never|normal\w*|clear)\b", re.IGNORECASE)
_FULL = lazy.regex(r"\b(?:full (?:\w+ )*movements?|moves? (?:fully|freely))\b", re.IGNORECASE)
_NOT_A_PLACE = frozenset({"joint", "muscle", "bone", "limb", "skin", "lesion", "soft tissue", "wound", "vesicle"})


@lru_cache(maxsize=16384)
def stated(heads: tuple[str, ...], text: str) -> frozenset[Sign]:
    """The signs that a finding says are there."""
    return frozenset(
        (sign, *place)
        for clause in _CLAUSES.split(text)
        for sign, name in _SIGNS.items()
        if (found := name.search(clause)) and not (_DENIED.search(clause[: found.start()]) or _FULL.search(clause))
        for place in _places(clause, heads)
    )


@lru_cache(maxsize=16384)
def denied(heads: tuple[str, ...], text: str) -> frozenset[Sign]:
    """The signs that a normal finding says are not there."""
    found: set[Sign] = set()
    for clause in _CLAUSES.split(text):
        if _FULL.search(clause):
            found |= {("movement", *place) for place in _places(clause, heads)}
        said = " ".join((*heads, clause)) if clause.strip(" .").lower() == "none" else clause
        if not _DENIED.search(clause):
            continue
        signs = [sign for sign, name in _SIGNS.items() if name.search(said)]
        found |= {(sign, *place) for sign in signs for place in _places(clause, heads)}
    return frozenset(found)


def contradict(said: frozenset[Sign], normal: frozenset[Sign]) -> bool:
    """Whether a sign is there at a place, or in a part of it, at which a normal finding denies it."""
    wider = vocabulary().wider
    return any(
        sign == other and (at == place or place in wider.get(at, ())) and (side == its_side or not (side and its_side))
        for sign, at, side in said
        for other, place, its_side in normal
    )


def _places(clause: str, heads: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """The places that a clause names, or else those of its nearest heading that names any, with their side."""
    found = next((found for text in (clause, *reversed(heads)) if (found := _named_places(text))), frozenset())
    sides = reading(" ".join((*heads, clause))).sides
    side = next(iter(sides)) if len(sides) == 1 else ""
    return frozenset((place, side) for place in found)


@lru_cache(maxsize=16384)
def _named_places(text: str) -> frozenset[str]:
    known = vocabulary()
    read = reading(text)
    of_signs = frozenset[str]().union(*(known.parts[part].of & known.wider.keys() for part in read.of("parts")))
    return (read.of("sites") | of_signs) - _NOT_A_PLACE
