"""What must not be in a case: identifiers, dates, and gaps where text was removed from the source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_MONTHS = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
)
_DATES = re.compile(
    r"\b\d{4}-\d{1,2}-\d{1,2}\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d{1,2}\.\d{1,2}\.(?:19|2[01])\d{2}\b"
    rf"|\b{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!\s*(?:mg|ml|%))|\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTHS}"
    rf"|\b{_MONTHS},?\s+(?:of\s+)?(?:19|2[01])\d{{2}}\b"
)
_YEAR = re.compile(
    r"(?<![\d.,/-])(?:19|20|21)\d{2}(?![\d.,/-]\d|\d|\s*(?:m[lg]|cc|units?|mL|kcal|calories|steps|hours))"
)
_PERSONAL = (
    ("an e-mail address", re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+")),
    ("a web address", re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)),
    ("a telephone number", re.compile(r"(?<!\d)(?:\(\d{3}\)\s?|\d{3}[-. ])\d{3}[-. ]\d{4}(?!\d)")),
    ("a social security number", re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")),
    (
        "a record number",
        re.compile(r"\b(?:MRN|medical record (?:number|no)|subject[_ ]id|hadm[_ ]id|stay[_ ]id)\b", re.IGNORECASE),
    ),
    ("a person's name", re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Dr|Prof)\b\.?\s+[A-Z][a-z]+")),
)
_LONG_NUMBER = re.compile(r"(?<![\d.])\d{7,}(?![\d.])")
SOURCE_IDENTIFIER = "contains an identifier of the source"
REMOVED = re.compile(r"_{3,}")
"""What MIMIC puts in place of removed text."""


def problems(text: str, identifiers: Sequence[str], *, prose: bool) -> Iterator[tuple[str, str]]:
    """Kind and description of everything in a text that must not appear.

    Prose is checked more strictly: a bare year or a number of seven digits is a value in a laboratory report, but a
    date or an identifier in a story.
    """
    if REMOVED.search(text):
        yield "removed_text", "contains ___, the mark of removed text"
    if any(one and re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE) for one in identifiers):
        yield "identifier", SOURCE_IDENTIFIER
    for what, pattern in _PERSONAL:
        if pattern.search(text):
            yield "identifier", f"contains {what}"
    if prose and _LONG_NUMBER.search(text):
        yield "identifier", "contains a number of seven or more digits"
    if _DATES.search(text) or (prose and _YEAR.search(text)):
        yield "date", "contains a date or a year"


def unfit(text: str, identifiers: Sequence[str]) -> bool:
    """Whether a result must be left out of a case."""
    return any(problems(text, identifiers, prose=False))
