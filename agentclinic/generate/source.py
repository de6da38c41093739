"""What a source provides for one case: the boundary between reading a source and writing a case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentclinic.privacy import DataClass

HistorySource = Literal["note", "triage", "codes", "none"]
"""Where the patient's story comes from: a clinical note, triage words, titles of earlier diagnoses, or nowhere."""


@dataclass(frozen=True)
class Measured:
    """One result as a row of the source has it."""

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
    """One microbiology specimen."""

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
    """What was chosen from a source, and how to read it."""

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
