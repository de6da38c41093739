"""What the examination shows and the patient would notice: it must not be denied.

A chart that finds swollen legs or an oxygen saturation of 91% may not say whether the patient noticed. A denial by
default would contradict it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from agentclinic import lazy
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.denial import is_denial

_PIECE = lazy.regex(r"[.;,]|\b(?:but|without|with no|and no)\b")
_NORMAL = lazy.regex(
    r"\b(?:no|not|without|normal|clear|intact|unremarkable|absent|negative|none|free)\b", re.IGNORECASE
)
_NUMBER = lazy.regex(r"\d+(?:\.\d+)?")
_FAHRENHEIT_FROM = 80.0
"""No body temperature in degrees Celsius is as high."""
_VITALS: tuple[tuple[str, float, bool, str], ...] = (
    (r"oxygen|spo2|saturation", 93, False, "breathlessness"),
    (r"respiratory rate|respirations", 25, True, "breathlessness"),
    (r"temperature|\btemp\b", 38.3, True, "fever"),
)
"""Vital signs that a patient would notice: from which value, whether above it, and as what."""


@lru_cache(maxsize=512)
def shown_by_examination(facts: tuple[Fact, ...]) -> int:
    """The complaints that charted findings show, with everything they are kinds of.

    Not pain in general: that something hurts when pressed does not say that it hurts.
    """
    shown = 0
    for fact in facts:
        if fact.section is Section.VITALS:
            shown |= _vital(fact)
        elif fact.section is Section.EXAMINATION and not fact.denied:
            shown |= _noticed(fact.text)
    return shown & lexicon.of_types("symptom") & ~lexicon.roots() & ~lexicon.bit("pain")


@lru_cache(maxsize=8192)  # charts say in the same words that something is normal
def _noticed(text: str) -> int:
    pieces: Iterable[str] = _PIECE.split(text)
    return _all(piece for piece in pieces if not _NORMAL.search(piece) and not is_denial(piece))


def _all(texts: Iterable[str]) -> int:
    shown = 0
    for text in texts:
        shown |= lexicon.named(text).closed
    return shown


def _vital(fact: Fact) -> int:
    name = " ".join((*fact.heads, fact.text)).lower()
    number = _NUMBER.search(fact.text)
    for pattern, bound, above, complaint in _VITALS:
        if number and re.search(pattern, name):
            value = float(number[0])
            if complaint == "fever" and value > _FAHRENHEIT_FROM:
                value = (value - 32) / 1.8
            if value >= bound if above else value <= bound:
                return lexicon.closed(complaint)
    return 0
