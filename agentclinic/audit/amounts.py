"""Amounts in a text: how long, how many, which side, which drug."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.audit.statements import data_lines
from agentclinic.cases.matcher.readings import PLACE_OF
from agentclinic.vocabulary.text import fold, singular, words

_WORDS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "dozen": 12, "once": 1, "twice": 2}
_VAGUE: dict[str, tuple[float, float]] = {
    "half a": (0.4, 0.6), "half an": (0.4, 0.6), "a couple of": (2, 3), "a couple": (2, 3), "couple of": (2, 3),
    "a few": (2, 6), "few": (2, 6), "several": (3, 10), "many": (3, 50), "some": (2, 10), "a": (1, 1), "an": (1, 1),
    "one": (1, 1), "past": (1, 1), "last": (1, 1), "this past": (1, 1),
}  # fmt: skip
_DAYS = {"second": 1 / 86400, "minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "night": 1.0, "week": 7.0, "month": 30.4,
         "year": 365.0, "decade": 3650.0}  # fmt: skip
_NUMBER = r"\d+(?:\.\d+)?|" + "|".join(sorted(_WORDS.keys() - {"once", "twice"}, key=len, reverse=True))
_RANGE = rf"(?:\s*(?:to|or|-|–)\s*(?P<high>{_NUMBER}))?"
_DURATION = re.compile(
    rf"(?<![\w.])(?:(?P<low>{_NUMBER}){_RANGE}|(?P<vague>{'|'.join(sorted(_VAGUE, key=len, reverse=True))}))"
    rf"[\s-]*(?:full |long |whole |or so )?(?P<unit>{'|'.join(_DAYS)})s?\b"
    r"(?!['’]s\b)(?![\s-]*(?:-?of-age|-?old\b|of age\b|old\b))",
    re.IGNORECASE,
)
# "Twice a day" and "every two weeks" say how often, not how long.
_HOW_OFTEN = re.compile(
    r"(?:\b(?:once|twice|times?|per|every|each|packs?|cigarettes|drinks?|beers?|glasses|mg|tablets?|pads?|\d)|/)\s*$",
    re.I,
)
_EVERY = re.compile(r"\b(?:every|each)\s*$", re.IGNORECASE)
_SPOKEN = (
    (re.compile(r"\byesterday\b", re.IGNORECASE), 0.5, 2.0),
    (re.compile(r"\b(?:this morning|last night|overnight|today)\b", re.IGNORECASE), 0.1, 1.0),
)
_COUNT = re.compile(
    rf"(?<![\w.])(?P<low>{_NUMBER}|twice|once){_RANGE}(?:\s|-)*(?:a |about |full )?"
    r"(?P<unit>pounds?|lbs?|kg|kilos?|kilograms?|stone|cigarettes?|packs?|pack-years?|drinks?|beers?|glasses|bottles"
    r"|units|mg|mcg|milligrams?|tablets?|pills|times|episodes?|degrees?|°\s?[cf]|pillows|partners?|pads"
    r"|bowel movements?|stools|steps|blocks|flights|miles|inches|cm|mm|percent|%)(?!\w)",
    re.IGNORECASE,
)
_UNIT_OF = {"lb": "pound", "kilo": "kg", "kilogram": "kg", "milligram": "mg", "degree": "°", "°f": "°", "°c": "°"}
_DAY = "day"


@dataclass(frozen=True)
class Amount:
    """A stretch of time in days, or a number of things, as a range."""

    text: str
    low: float
    high: float
    unit: str = _DAY

    def fits(self, other: Amount) -> bool:
        """Whether both can mean the same. Times are remembered less exactly than numbers."""
        slack = 1.2 if self.unit == _DAY else 1.05
        return self.low <= other.high * slack and other.low <= self.high * slack


@lru_cache(maxsize=16384)
def durations(text: str) -> tuple[Amount, ...]:
    """The stretches of time in a text, without ages."""
    text = text.replace("’", "'")
    found = []
    for match in _DURATION.finditer(text):
        before = text[: match.start()]
        if _EVERY.search(before) or (match["vague"] and _HOW_OFTEN.search(before)):
            continue
        low, high = _VAGUE[match["vague"].lower()] if match["vague"] else _range(match)
        unit = _DAYS[match["unit"].lower()]
        found.append(Amount(match[0], low * unit, high * unit))
    return (*found, *(Amount(m[0], low, high) for spoken, low, high in _SPOKEN for m in spoken.finditer(text)))


@lru_cache(maxsize=16384)
def counts(text: str) -> tuple[Amount, ...]:
    """The numbers of things in a text."""
    found = []
    for match in _COUNT.finditer(text):
        unit = singular(re.sub(r"\s", "", match["unit"].lower()))
        found.append(Amount(match[0], *_range(match), _UNIT_OF.get(unit, unit)))
    return tuple(found)


def _range(match: re.Match[str]) -> tuple[float, float]:
    low, high = (float(_WORDS.get(text.lower(), text)) for text in (match["low"], match["high"] or match["low"]))
    return min(low, high), max(low, high)


@lru_cache(maxsize=16384)
def sides(text: str) -> frozenset[tuple[str, str]]:
    """The sides that a text names, each with its part of the body."""
    found = set()
    for match in re.finditer(r"\b(left|right)\b((?:[\s-]+[a-z]+){1,3})", text, re.IGNORECASE):
        place = next((PLACE_OF[word] for word in words(match[2]) if word in PLACE_OF), None)
        if place:
            found.add((match[1].lower(), place))
    return frozenset(found)


_DRUGS = frozenset(" ".join(data_lines("drugs")).split())


@lru_cache(maxsize=16384)
def drugs(text: str) -> frozenset[str]:
    """The drugs that a text names."""
    return frozenset(word for word in fold(text).replace(".", " ").replace(",", " ").split() if word in _DRUGS)
