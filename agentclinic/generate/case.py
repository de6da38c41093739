"""One case as it is written to the file: chart, script, label, and what it was made from.

Results and vital signs are built by code from the source's rows: no model writes a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentclinic.cases.facts import readable
from agentclinic.cases.formats import OSCE, Row
from agentclinic.cases.model import Case, WrittenStory
from agentclinic.generate.source import Culture, Measured, SourceCase, StorySetting, unfit
from agentclinic.generate.story import Brief, brief, objective, script
from agentclinic.privacy import DataClass
from agentclinic.vocabulary.disease_names import Names

EXAMINATION = "Physical_Examination_Findings"
TESTS = "Test_Results"
VITALS = "Vital_Signs"
_EXAMINED = frozenset({VITALS, "Physical_Examination"})
"""Sections of results given as text that belong to the examination; all others are tests."""
_DAYS_FROM = 72
"""From this many hours on, a time is given in days: an outpatient weight from last month."""
_SENSITIVITY = {"S": "sensitive to", "I": "intermediate to", "R": "resistant to"}


@dataclass(frozen=True)
class Entry:
    place: tuple[str, ...]
    """Keys, from the root of the chart."""
    text: str
    rows: tuple[str, ...]


@dataclass
class Chart:
    """Examination and tests as they are in the case, and where each line comes from."""

    examination: dict[str, Any] = field(default_factory=dict)
    tests: dict[str, Any] = field(default_factory=dict)
    trace: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By path of the fact in the case: the source's rows."""
    telling: list[str] = field(default_factory=list)
    """Lines, each with its headings, without results that are normal by their own range."""
    withheld: int = 0
    """Lines left out because they name the diagnosis or contain an identifier, a date or removed text."""


def build_chart(source: SourceCase, names: Names) -> Chart:
    chart = Chart()
    placed: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries(source):
        heads = tuple(readable(key) for key in entry.place[1:])
        line = " ".join((*heads, entry.text))
        if unfit(line, source.identifiers) or any(names.find(entry.text, heads, result=True)):
            chart.withheld += 1
        else:
            placed.setdefault(entry.place, []).append(entry)
            if "(reference" not in entry.text or "abnormal" in entry.text:
                chart.telling.append(f"{' / '.join(heads)}: {entry.text}")
    for place, lines in placed.items():
        _put(chart, place, lines)
    return chart


def entries(source: SourceCase) -> Iterator[Entry]:
    """Every line of the source's results, in the order of the source."""
    for vital in source.vitals:
        yield Entry((EXAMINATION, key(vital.group or VITALS), key(vital.name)), measured_text(vital), vital.rows)
    for lab in source.labs:
        yield Entry((TESTS, key(lab.group or "Laboratory"), key(lab.name)), measured_text(lab), lab.rows)
    for culture in source.cultures:
        place = (TESTS, "Microbiology", key(culture.specimen or "Specimen"), key(culture.test or "Culture"))
        yield Entry(place, culture_text(culture), culture.rows)
    for index, (section, text) in enumerate(source.other_results):
        root = EXAMINATION if section in _EXAMINED else TESTS
        yield Entry((root, key(section), "Findings"), text.strip(), (f"text:{index}",))


def key(name: str) -> str:
    return re.sub(r"[\s/]+", "_", name.strip()) or "Unnamed"


def measured_text(measured: Measured) -> str:
    value = " ".join(part for part in (measured.value, measured.unit) if part)
    about = []
    if measured.low and measured.high:
        about.append(f"reference {measured.low}-{measured.high}")
    elif measured.low or measured.high:
        about.append(f"reference {'above ' + measured.low if measured.low else 'below ' + measured.high}")
    if measured.flag:
        about.append(measured.flag)
    return _timed(f"{value} ({'; '.join(about)})" if about else value, measured.hours)


def culture_text(culture: Culture) -> str:
    parts = [culture.organism] if culture.organism else [culture.comment or "no organism reported"]
    if culture.organism and culture.comment:
        parts.append(culture.comment)
    for letter, words in _SENSITIVITY.items():
        drugs = [drug for drug, found in culture.sensitivities if found == letter]
        if drugs:
            parts.append(f"{words} {', '.join(drugs)}")
    return _timed("; ".join(parts), culture.hours)


def _timed(text: str, hours: float | None) -> str:
    return text if hours is None else f"{text}, {when(hours)}"


def when(hours: float) -> str:
    side = "after" if hours > 0 else "before"
    if abs(hours) >= _DAYS_FROM:
        return f"{abs(hours) / 24:.0f} days {side} admission"
    rounded = f"{abs(hours):.1f}".removesuffix(".0")
    return "at admission" if rounded == "0" else f"{rounded} h {side} admission"


def _put(chart: Chart, place: tuple[str, ...], lines: list[Entry]) -> None:
    """Put lines under their keys: one as text, several as a list in order of time."""
    at = chart.examination if place[0] == EXAMINATION else chart.tests
    for name in place[1:-1]:
        at = at.setdefault(name, {})
    path = "/".join(place)
    if len(lines) == 1:
        at[place[-1]] = lines[0].text
        chart.trace[path] = lines[0].rows
        return
    at[place[-1]] = [line.text for line in lines]
    for number, line in enumerate(lines):
        chart.trace[f"{path}[{number}]"] = line.rows


@dataclass(frozen=True)
class Prepared:
    """A source that is ready for a writer: chart built, diagnosis withheld."""

    source: SourceCase
    names: Names
    chart: Chart
    brief: Brief

    @property
    def labs_only(self) -> bool:
        return self.brief.payload.history_source == "none"


def prepare(source: SourceCase, setting: StorySetting = "facts") -> Prepared:
    """Do everything that needs no writer."""
    truth = source.truth
    names = Names(truth.title, truth.synonyms, [truth.code] if truth.code else [])
    chart = build_chart(source, names)
    return Prepared(source, names, chart, brief(source, names, chart.telling, setting))


def case_row(prepared: Prepared, story: WrittenStory | None, generation: dict[str, Any]) -> dict[str, Any]:
    """The case in the layout of the public OSCE cases; label and results are set here, not by the writer."""
    source, payload = prepared.source, prepared.brief.payload
    return {
        "OSCE_Examination": {
            "Objective_for_Doctor": objective(payload, story),
            "Patient_Actor": script(payload, story),
            EXAMINATION: prepared.chart.examination,
            TESTS: prepared.chart.tests,
            "Correct_Diagnosis": source.truth.title,
        },
        "data_class": str(source.data_class),
        "history_source": payload.history_source,
        "labs_only": prepared.labs_only,
        "source": source.source,
        "truth": {
            "code": source.truth.code,
            "icd_version": source.truth.version,
            "chapter": source.truth.chapter,
            "synonyms": list(source.truth.synonyms),
        },
        "withheld": {"story": prepared.brief.withheld, "results": prepared.chart.withheld},
        "generation": {"key": source.key, **generation},
    }


def read_back(row: dict[str, Any]) -> Case:
    """The case as the clinic will read it; a `CaseError` if it cannot."""
    return OSCE.read(Row(Path("case"), 1, 0, row), "generated", DataClass.PUBLIC)
