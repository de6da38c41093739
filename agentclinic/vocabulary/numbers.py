"""Numbers in a text, in digits and in words, and whether another text has them too."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from agentclinic import lazy

NUMBER_WORDS = {
    word: float(number)
    for number, word in enumerate(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split(),
        start=2,
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
"""Without "one", which is rarely a number."""
DAYS = {"second": 1 / 86400, "sec": 1 / 86400, "minute": 1 / 1440, "min": 1 / 1440, "hour": 1 / 24, "hr": 1 / 24,
         "day": 1.0, "night": 1.0, "week": 7.0, "month": 30.4, "year": 365.0, "yr": 365.0}  # fmt: skip
_UNITS = "|".join(sorted(DAYS, key=len, reverse=True))
_WORD = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
# Not the digits of a name such as B12 or T2, and not ordinals or decades.
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_NUMBER = lazy.regex(
    rf"(?<![A-Za-z\d.,])(?:(?P<digits>{_DIGITS})(?!(?:st|nd|rd|th|s)\b|\d)|\b(?P<word>{_WORD})\b)"
    rf"(?:[\s-]*(?:full |long |whole |more )?(?P<unit>{_UNITS})s?\b"
    rf"|(?=\s*(?:to|or|and|-|–)\s*(?:{_DIGITS}|{_WORD})[\s-]*(?P<shared>{_UNITS})s?\b))?",
    re.IGNORECASE,
)
"""A number, and the unit of time after it or after the other end of its range: "two to three weeks"."""
_ARTICLE = lazy.regex(
    rf"\b(?P<much>half an?|an?|one|past|last|this|next|each|every|couple of|few|several) (?P<unit>{_UNITS})s?"
    r"(?P<more> and a half)?\b",
    re.IGNORECASE,
)
_ABOUT = {"half": (0.5, 0.5), "couple of": (2, 3), "few": (2, 5), "several": (3, 9)}
"""How many of a unit people mean by a word, from and to."""
_VAGUE = lazy.regex("few|several", re.IGNORECASE)
"""Words that stand for no number."""
_SAID = lazy.regex(
    rf"(?P<before>\b(?:for|about|around|almost|nearly|over|within|only|just|maybe|roughly|lasted|lasts|takes?|took) )?"
    rf"(?:(?:about|around|almost|nearly|over|only|just|the) )?(?P<all>\b(?:a )?(?P<much>half an?|an?|one|couple of|few"
    rf"|several) (?P<unit>{_UNITS})s?(?P<more> and a half)?\b)"
    r"(?P<after> (?:ago|now|after|before|later|earlier|back|or so)\b)?",
    re.IGNORECASE,
)
"""A duration without a number. "A day" alone is none: "twice a day"."""
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_ONES = "one|two|three|four|five|six|seven|eight|nine"
_COMPOUND = lazy.regex(
    rf"\b(?:(?P<hundreds>an?|{_ONES}) hundred(?: and)?"
    rf"(?: (?P<rest>{_TENS})(?:[- ](?P<last>{_ONES}))?| (?P<few>{_WORD}|one))?"
    rf"|(?P<tens>{_TENS})(?:[- ](?P<ones>{_ONES}))?|(?P<single>{_WORD}|zero)(?= point ))"
    rf"(?: point (?P<point>zero|{_ONES}))?\b",
    re.IGNORECASE,
)
"""A number in several words: "seventy-two", "a hundred and forty", "thirty-eight point five"."""
_DOZEN = lazy.regex(r"\b(?P<how>half a|an?|two|three) dozen\b", re.IGNORECASE)
_DOZENS = {"half a": 6, "a": 12, "an": 12, "two": 24, "three": 36}
_KILOGRAM, _POUND = 1000.0, 453.6
_MEASURES: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("mcg", "microgram"), ("weight", 1e-6)),
    **dict.fromkeys(("mg", "milligram"), ("weight", 1e-3)),
    **dict.fromkeys(("g", "gram"), ("weight", 1.0)),
    **dict.fromkeys(("kg", "kilo", "kilogram"), ("weight", _KILOGRAM)),
    **dict.fromkeys(("lb", "pound"), ("weight", _POUND)),
    **dict.fromkeys(("ml", "milliliter", "millilitre"), ("volume", 1e-3)),
    **dict.fromkeys(("liter", "litre"), ("volume", 1.0)),
    "cigarette": ("tobacco", 1.0),
    "pack": ("tobacco", 20.0),
}
"""Units of amounts that are told as numbers, with what they measure and how much of it."""
_MEASURE = lazy.regex(
    rf"[\s-]*(?P<unit>{'|'.join(sorted(_MEASURES, key=len, reverse=True))})s?\b(?![- ]?year)", re.IGNORECASE
)
_PACK = lazy.regex(r"\b(?P<half>half )?(?:an?|one) (?P<unit>pack)\b", re.IGNORECASE)
_AMOUNT_SLACK = 1.06
"""Amounts are rounded when they are converted: 5 kg are 11 pounds."""
# Idioms and scales, not amounts.
_IDIOM = lazy.regex(
    r"\b24/7\b|\b50[/-]50\b|\b911\b|(?<=out of )(?:10|ten)\b|(?<=\d/)10\b|\b100\s?(?:%|percent)(?= sure| certain)"
    r"|(?<=scale of )(?:1|one)(?: to|-)(?: )?(?:10|ten)\b",
    re.IGNORECASE,
)
_SLACK = 1.2
"""People remember durations roughly: four weeks and a month are the same."""
_ROUGH_SLACK = 1.6
"""How far "a couple of weeks" may be from what it stands for: ten days are, three are not."""


@dataclass(frozen=True)
class Number:
    """A number with the unit of time after it, if there is one."""

    text: str
    value: float
    days: float | None = None
    """The duration, if it is one."""
    spelled: bool = False
    """Written as a word."""
    amount: tuple[str, float] | None = None
    """What is measured, and how much in one unit of it, if it is an amount such as 400 mg or a pack."""


@lru_cache(maxsize=16384)
def numbers(text: str) -> tuple[Number, ...]:
    """The numbers in a text, without idioms, ordinals and the digits of names."""
    text, found = _in_digits(_IDIOM.sub(" ", text)), []
    for match in _NUMBER.finditer(text):
        value = float(match["digits"].replace(",", "")) if match["digits"] else NUMBER_WORDS[match["word"].casefold()]
        unit = match["unit"] or match["shared"]
        days = value * DAYS[unit.casefold()] if unit else None
        measure = None if unit else _MEASURE.match(text, match.end())
        amount = _amount(value, measure["unit"]) if measure else None
        found.append(Number(match[0].strip(), value, days, spelled=not match["digits"], amount=amount))
    for match in _PACK.finditer(text):
        value = 0.5 if match["half"] else 1.0
        found.append(Number(match[0], value, spelled=True, amount=_amount(value, match["unit"])))
    return tuple(found)


def _amount(value: float, unit: str) -> tuple[str, float]:
    of, one = _MEASURES[unit.casefold()]
    return of, value * one


def _in_digits(text: str) -> str:
    """A text with its numbers of several words in digits; single words stay, since many are idioms."""
    text = _DOZEN.sub(lambda match: str(_DOZENS[match["how"].casefold()]), text)
    return _COMPOUND.sub(_compound, text)


def _compound(match: re.Match[str]) -> str:
    def value(name: str) -> float:
        word = (match[name] or "").casefold()
        return {"": 0.0, "zero": 0.0, "a": 1.0, "an": 1.0, "one": 1.0, **NUMBER_WORDS}[word]

    if not (match["hundreds"] or match["ones"] or match["point"]):
        return match[0]
    whole = 100 * value("hundreds") + sum(map(value, ("rest", "last", "few", "tens", "ones", "single")))
    return f"{whole + value('point') / 10:g}"


@lru_cache(maxsize=16384)
def _spans(text: str) -> tuple[float, ...]:
    """The durations in a text in days, including "a week", "half an hour" and "a couple of days"."""
    articles = (_lasting(match)[0] for match in _ARTICLE.finditer(text) if not _VAGUE.match(match["much"]))
    return (*(number.days for number in numbers(text) if number.days is not None), *articles)


def _lasting(match: re.Match[str]) -> tuple[float, ...]:
    """How many days a duration without a number may have."""
    return tuple(count * DAYS[match["unit"].casefold()] for count in _counts(match["much"], match["more"]))


def _counts(much: str, more: str | None) -> tuple[float, ...]:
    low, high = _ABOUT.get(much.casefold().removesuffix(" a").removesuffix(" an"), (1, 1))
    whole = [low + step for step in range(round(high - low) + 1)]
    return tuple(count + (0.5 if more else 0) for count in whole)


class Rough(NamedTuple):
    """A duration said without a number, in days, from and to."""

    text: str
    low: float
    high: float


def rough_durations(text: str) -> tuple[Rough, ...]:
    """The durations in a text that are not given by a number: "a couple of weeks", "for a year", "a month ago"."""
    found = []
    for match in _SAID.finditer(text):
        much, unit = match["much"].casefold(), match["unit"].casefold()
        if much in ("a", "an", "one") and not (match["before"] or match["after"] or match["more"]):
            continue
        if DAYS[unit] >= DAYS["minute"]:
            found.append(Rough(match["all"], min(_lasting(match)), max(_lasting(match))))
    return tuple(found)


class KnownNumbers:
    """The numbers in some texts, in any unit that people convert them to."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        values = {number.value for text in texts for number in numbers(text)}
        self._exact = {same for value in values for same in (value, value * 1000, value / 1000)}
        self._rounded = sorted(other for value in values for other in _rounded(value))
        self._decimals = sorted({*self._rounded, *values})
        self._spans = sorted({span for text in texts for span in _spans(text)})
        vague = (match for text in texts for match in _ARTICLE.finditer(text) if _VAGUE.match(match["much"]))
        self._vague = {span for match in vague for span in _lasting(match)}
        self._amounts: dict[str, set[float]] = {}
        for of, much in (number.amount for text in texts for number in numbers(text) if number.amount):
            self._amounts.setdefault(of, set()).add(much)

    def has(self, number: Number) -> bool:
        """Whether it is one of these: as written, rounded, converted, or as about the same duration."""
        if number.amount and (known := self._amounts.get(number.amount[0])):
            much = number.amount[1]
            return any(much <= one * _AMOUNT_SLACK and one <= much * _AMOUNT_SLACK for one in known)
        if number.days is None:
            return number.value in self._exact or self._has_rounded(number.value)
        nearest = bisect_left(self._spans, number.days, key=lambda span: span * _SLACK)
        return nearest < len(self._spans) and self._spans[nearest] <= number.days * _SLACK

    @property
    def has_durations(self) -> bool:
        return bool(self._spans or self._vague)

    def has_about(self, rough: Rough) -> bool:
        """Whether one of the durations is about as long."""
        spans = (*self._spans, *self._vague)
        return any(rough.low <= span * _ROUGH_SLACK and span <= rough.high * _ROUGH_SLACK for span in spans)

    def _has_rounded(self, said: float) -> bool:
        places = len(f"{said:g}".partition(".")[2])
        known, step = self._decimals if places else self._rounded, 10.0**-places
        near = known[bisect_left(known, said - step) : bisect_right(known, said + step)]
        return any(said == round(value, places) for value in near)


def _rounded(known: float) -> list[float]:
    """What a known value may be rounded from: itself, in the other scale of temperature, or in pounds or kilograms."""
    others = [known] if known >= 10 else []
    if 30 <= known <= 45:
        others.append(known * 9 / 5 + 32)
    elif 86 <= known <= 113:
        others.append((known - 32) * 5 / 9)
    if known >= 20:
        others += [known * 2.2046, known / 2.2046]
    return others
