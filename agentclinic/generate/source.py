"""What a source hands over for one case: the boundary between reading a source and writing a case from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentclinic.privacy import DataClass

HistorySource = Literal["note", "triage", "codes", "none"]
"""Where the patient's story comes from: a clinical note, triage words, earlier diagnoses' titles, or nowhere."""


@dataclass(frozen=True)
class Measured:
    """One result as a row of the source gives it."""

    name: str
    value: str
    """As written in the source; digits are never rewritten."""
    unit: str = ""
    low: str = ""
    high: str = ""
    flag: str = ""
    """abnormal, or empty."""
    group: str = ""
    """What it is filed under in the case: category and fluid of a lab, "Vital_Signs", ..."""
    hours: float | None = None
    """From admission; negative before it."""
    rows: tuple[str, ...] = ()
    """Where it comes from, as `table:rownumber` or `table:labevent_id`: so that a number can be traced."""
    repeats: int = 0
    """How many later rows of the same test, within the hours read, were left out."""


@dataclass(frozen=True)
class Culture:
    """One microbiology specimen."""

    specimen: str
    test: str
    organism: str = ""
    """Empty: nothing grew or none was reported."""
    sensitivities: tuple[tuple[str, str], ...] = ()
    """Antibiotic and interpretation (S, I, R)."""
    comment: str = ""
    hours: float | None = None
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Truth:
    """The diagnosis: set into the case by code and shown to no writer."""

    title: str
    code: str = ""
    version: int | None = None
    """9 or 10 for an ICD code."""
    chapter: str = ""
    synonyms: tuple[str, ...] = ()
    """Other names by which the case must not give it away."""


@dataclass(frozen=True)
class SourceCase:
    """One patient's stay, or one question: everything a case can be made of."""

    key: str
    """Stable identity within the source, salted: it cannot be turned back into an identifier."""
    source: str
    """mimic or medqa."""
    data_class: DataClass
    truth: Truth
    age: int | None = None
    """In years. From MIMIC-IV, 90 means 90 or older: the source says no more."""
    sex: str = ""
    """Male, Female, or empty."""
    arrival: str = ""
    """How the patient came, as far as it gives nothing away."""
    history_source: HistorySource = "none"
    story: tuple[str, ...] = ()
    """What the writer may tell the patient's story from, in the source's words; empty with history_source none."""
    past: tuple[str, ...] = ()
    """Earlier diagnoses, as titles."""
    drugs: tuple[str, ...] = ()
    """Taken before the admission."""
    vitals: tuple[Measured, ...] = ()
    labs: tuple[Measured, ...] = ()
    cultures: tuple[Culture, ...] = ()
    other_results: tuple[tuple[str, str], ...] = ()
    """Section and text of results given as text (a MedQA vignette's)."""
    identifiers: tuple[str, ...] = field(default=(), repr=False)
    """What must appear nowhere in the case."""


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
