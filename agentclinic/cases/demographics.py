"""Read age and sex from the line that introduces a patient."""

from __future__ import annotations

import re

# From about 7, children can usually describe their symptoms; a caregiver speaks for younger ones.
_SPEAKS_FROM = 7
_CANNOT_SPEAK = re.compile(
    r"\b(?:newborn|neonate|infant|toddler|unresponsive|unconscious|comatose|non-?verbal|intubated)\b",
    re.IGNORECASE,
)
_AGE = re.compile(r"(\d{1,3}(?:\.\d+)?)[- ]*(year|month|week|day|hour)", re.IGNORECASE)
_YEARS_PER = {"year": 1.0, "month": 1 / 12, "week": 7 / 365, "day": 1 / 365, "hour": 1 / 8766}
_FEMALE = re.compile(r"\b(?:female|woman|girl|lady|gravida|daughter)\b", re.IGNORECASE)
_MALE = re.compile(r"\b(?:male|man|boy|gentleman|son)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\([^)]{0,200}\)")


def age_in_years(demographics: str) -> float | None:
    """The stated age in years (0 for a newborn); None if there is none."""
    if re.search(r"\b(?:newborn|neonate)\b", demographics, re.IGNORECASE):
        return 0.0
    found = _AGE.search(demographics)
    return float(found[1]) * _YEARS_PER[found[2].lower()] if found else None


def sex(demographics: str) -> str | None:
    """`female`, `male`, or None if not stated. Companions in parentheses do not count."""
    patient = _ASIDE.sub("", demographics)
    if _FEMALE.search(patient):
        return "female"
    return "male" if _MALE.search(patient) else None


def speaks_for_self(demographics: str) -> bool:
    """Whether the patient gives the history; otherwise a caregiver does."""
    age = age_in_years(demographics)
    if age is not None and age < _SPEAKS_FROM:
        return False
    return not _CANNOT_SPEAK.search(demographics)
