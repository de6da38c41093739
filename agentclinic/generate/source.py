"""What a source provides for one case, and what must be kept out of the case: identifiers, dates, gaps in the text.

This is the boundary between reading a source and writing a case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentclinic.cases.model import HistorySource
from agentclinic.privacy import DataClass

StorySetting = Literal["facts", "model"]
"""Whether a story tells only what is on record, or a model makes one up where no symptoms are on record."""


@dataclass(frozen=True)
class Measured:
    name: str
    value: str
    """As written in the source; digits are never rewritten."""
    unit: str = ""
    low: str = ""
    high: str = ""
    flag: str = ""
    """abnormal, or empty."""
    group: str = ""
    """Its heading in the case: fluid and category of a lab, "Vital_Signs", ..."""
    hours: float | None = None
    """From admission; negative before it."""
    rows: tuple[str, ...] = ()
    """Where it comes from, as `table:row`, so that a number can be traced."""
    repeats: int = 0
    """How many later rows of the same test, within the hours read, were left out."""


@dataclass(frozen=True)
class Culture:
    specimen: str
    test: str
    organism: str = ""
    """Empty if nothing grew or nothing was reported."""
    sensitivities: tuple[tuple[str, str], ...] = ()
    """Antibiotic and interpretation (S, I, R)."""
    comment: str = ""
    hours: float | None = None
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Truth:
    """The diagnosis: put into the case by code and never shown to a writer."""

    title: str
    code: str = ""
    version: int | None = None
    """9 or 10 for an ICD code."""
    chapter: str = ""
    synonyms: tuple[str, ...] = ()
    """Other names that would give it away."""


@dataclass(frozen=True)
class SourceCase:
    """One patient's stay, or one question: everything a case can be made from."""

    key: str
    """Stable within the source, and salted: it cannot be turned back into an identifier."""
    source: str
    """mimic or medqa."""
    data_class: DataClass
    truth: Truth
    age: int | None = None
    """In years. From MIMIC-IV, 90 means 90 or older."""
    sex: str = ""
    """Male, Female, or empty."""
    arrival: str = ""
    """How the patient arrived, if that gives nothing away."""
    history_source: HistorySource = "none"
    story: tuple[str, ...] = ()
    """What the writer may tell the patient's story from, in the source's words; empty if history_source is none."""
    past: tuple[str, ...] = ()
    """Earlier diagnoses, as titles."""
    coded: tuple[str, ...] = ()
    """The other diagnoses of this stay, as titles; no writer is told them unless it has to make up the story."""
    drugs: tuple[str, ...] = ()
    """Taken before admission."""
    vitals: tuple[Measured, ...] = ()
    labs: tuple[Measured, ...] = ()
    cultures: tuple[Culture, ...] = ()
    other_results: tuple[tuple[str, str], ...] = ()
    """Section and text of results given as text (a MedQA vignette's)."""
    identifiers: tuple[str, ...] = field(default=(), repr=False)
    """What must not appear anywhere in the case."""


@dataclass(frozen=True)
class Selection:
    data_class: DataClass
    keys: tuple[str, ...]
    """Every chosen case, in order."""
    read: Callable[[Collection[str]], Iterator[SourceCase]]
    """Reads the chosen cases except those with these keys."""
    report: Mapping[str, Any] = field(default_factory=dict)
    """What was chosen and why the rest was not, for the manifest."""
    lines: Sequence[str] = ()
    """The same report for people."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the source that change its cases (hours of results)."""


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
    return any(problems(text, identifiers, prose=False))
