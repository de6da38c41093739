"""Numbers in a text, in digits and in words, and whether another text has them too."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

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
_NUMBER = re.compile(
    rf"(?<![A-Za-z\d.,])(?:(?P<digits>{_DIGITS})(?!(?:st|nd|rd|th|s)\b|\d)|\b(?P<word>{_WORD})\b)"
    rf"(?:[\s-]*(?:full |long |whole |more )?(?P<unit>{_UNITS})s?\b"
    rf"|(?=\s*(?:to|or|and|-|–)\s*(?:{_DIGITS}|{_WORD})[\s-]*(?P<shared>{_UNITS})s?\b))?",
    re.IGNORECASE,
)
"""A number, and the unit of time after it or after the other end of its range: "two to three weeks"."""
_ARTICLE = re.compile(
    rf"\b(?:(?P<half>half an?)|an?|one|past|last|this|next|each|every|couple of|few|several) (?P<unit>{_UNITS})s?\b",
    re.IGNORECASE,
)
# Idioms and scales, not amounts.
_IDIOM = re.compile(
    r"\b24/7\b|\b50[/-]50\b|\b911\b|(?<=out of )(?:10|ten)\b|(?<=\d/)10\b|\b100\s?(?:%|percent)(?= sure| certain)"
    r"|(?<=scale of )(?:1|one)(?: to|-)(?: )?(?:10|ten)\b",
    re.IGNORECASE,
)
_SLACK = 1.2
"""People remember durations roughly: four weeks and a month are the same."""


@dataclass(frozen=True)
class Number:
    """A number with the unit of time after it, if there is one."""

    text: str
    value: float
    days: float | None = None
    """The duration, if it is one."""
    spelled: bool = False
    """Written as a word."""


@lru_cache(maxsize=16384)
def numbers(text: str) -> tuple[Number, ...]:
    """The numbers in a text, without idioms, ordinals and the digits of names."""
    found = []
    for match in _NUMBER.finditer(_IDIOM.sub(" ", text)):
        value = float(match["digits"].replace(",", "")) if match["digits"] else NUMBER_WORDS[match["word"].lower()]
        unit = match["unit"] or match["shared"]
        days = value * DAYS[unit.lower()] if unit else None
        found.append(Number(match[0].strip(), value, days, spelled=not match["digits"]))
    return tuple(found)


@lru_cache(maxsize=16384)
def _spans(text: str) -> tuple[float, ...]:
    """The durations in a text in days, including "a week" and "half an hour"."""
    articles = ((0.5 if match["half"] else 1.0) * DAYS[match["unit"].lower()] for match in _ARTICLE.finditer(text))
    return (*(number.days for number in numbers(text) if number.days is not None), *articles)


class KnownNumbers:
    """The numbers in some texts, in any unit that people convert them to."""

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        values = {number.value for text in texts for number in numbers(text)}
        self._exact = {same for value in values for same in (value, value * 1000, value / 1000)}
        self._rounded = sorted(other for value in values for other in _rounded(value))
        self._decimals = sorted({*self._rounded, *values})
        self._spans = sorted({span for text in texts for span in _spans(text)})

    def has(self, number: Number) -> bool:
        """Whether it is one of these: as written, rounded, converted, or as about the same duration."""
        if number.days is None:
            return number.value in self._exact or self._has_rounded(number.value)
        nearest = bisect_left(self._spans, number.days, key=lambda span: span * _SLACK)
        return nearest < len(self._spans) and self._spans[nearest] <= number.days * _SLACK

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
