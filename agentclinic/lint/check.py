"""What is wrong with a case file: unreadable rows, copies, and cases that give their diagnosis away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from agentclinic.cases.formats import Format, read_case, read_rows
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Section
from agentclinic.errors import CaseError
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.disease_names import Names


class Leak(StrEnum):
    """Where a case names its own diagnosis."""

    DOOR = "door_leak"
    """In the objective or demographics: every doctor reads it at once."""
    PATIENT = "patient_leak"
    """In what the patient can tell."""
    RESULT = "result_names_diagnosis"
    """In an examination finding or test result."""
    HISTORY = "history_of_same"
    """In past, drug or family history: often legitimate (a known chronic disease), worth a look."""


@dataclass(frozen=True)
class LeakFound:
    """One place where a case names its diagnosis."""

    kind: Leak
    scenario_id: int
    path: str
    phrase: str


@dataclass
class FileReport:
    """What was found in one file."""

    path: Path
    rows: int = 0
    errors: list[CaseError] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    duplicates: list[tuple[int, int]] = field(default_factory=list)
    """Rows with the same clinical content: (first, copy)."""
    leaks: list[LeakFound] = field(default_factory=list)


@dataclass(frozen=True)
class Overlap:
    """Rows of one file whose clinical content also stands in another."""

    first: Path
    second: Path
    pairs: tuple[tuple[int, int], ...]


def check_file(path: Path, dataset: str, expected: Format | None = None) -> FileReport:
    """Read a whole file, collecting every problem instead of stopping at the first."""
    report = FileReport(path)
    seen: dict[str, int] = {}
    for row in read_rows(path, on_error=report.errors.append):
        try:
            case = read_case(row, dataset, expected)
        except CaseError as error:
            report.errors.append(error)
            continue
        report.cases.append(case)
        report.leaks.extend(leaks(case))
        first = seen.setdefault(case.id, case.scenario_id)
        if first != case.scenario_id:
            report.duplicates.append((first, case.scenario_id))
    report.rows = len(report.cases) + len(report.errors)
    return report


def overlaps(reports: list[FileReport]) -> Iterator[Overlap]:
    """Which files share cases, pair by pair."""
    places: list[Mapping[str, int]] = [{case.id: case.scenario_id for case in report.cases} for report in reports]
    for i, left in enumerate(places):
        for j in range(i + 1, len(places)):
            pairs = tuple((row, places[j][id_]) for id_, row in left.items() if id_ in places[j])
            if pairs:
                yield Overlap(reports[i].path, reports[j].path, pairs)


def leaks(case: Case, names: Names | None = None) -> list[LeakFound]:
    """Every place where the case names its diagnosis, or what else has these names, and does not deny it."""
    names = names or names_of(case)
    found: dict[tuple[Leak, str], LeakFound] = {}

    def look(kind: Leak, path: str, text: str, heads: tuple[str, ...] = ()) -> None:
        for name in names.find(text, heads, result=kind is Leak.RESULT):
            if not (name.broad and kind is Leak.HISTORY):
                found.setdefault((kind, path), LeakFound(kind, case.scenario_id, path, name.phrase))

    look(Leak.DOOR, "Objective_for_Doctor", case.door.objective)
    look(Leak.DOOR, "Demographics", case.door.demographics)
    for fact in case.facts:
        if fact.denied or fact.section is Section.DEMOGRAPHICS:
            continue
        if fact.section in (Section.PAST, Section.DRUGS, Section.FAMILY):
            kind = Leak.HISTORY
        elif fact.section in PATIENT_SECTIONS:
            kind = Leak.PATIENT
        else:
            kind = Leak.RESULT
        look(kind, fact.path, fact.text, fact.heads if kind is Leak.RESULT else ())
    return list(found.values())


def names_of(case: Case) -> Names:
    """The names and codes by which a case could give its diagnosis away.

    Beside the diagnosis: names its answer key accepts, and under `truth` what the case was made with
    (`synonyms`, `code`; see docs/generate.md).
    """
    truth = case.annotations.get("truth")
    told = truth if isinstance(truth, dict) else {}
    synonyms = [str(name) for name in told.get("synonyms") or ()]
    codes = [str(told["code"])] if told.get("code") else []
    disease = knowledge().disease_named(case.diagnosis)
    if disease:
        codes.append(disease.icd10)
    return Names(case.diagnosis, (*case.answer_key.accept, *synonyms), codes)
