"""What is wrong with a case file: unreadable rows, copies, and cases that give their diagnosis away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from agentclinic.cases.formats import Format, read_case, read_rows
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Section
from agentclinic.errors import CaseError
from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import Phrasebook, words


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


def leaks(case: Case) -> list[LeakFound]:
    """Every place where the case names its diagnosis and does not deny it."""
    names = Phrasebook({name: (name,) for name in diagnosis_names(case.diagnosis, case.answer_key.accept)})
    found: dict[tuple[Leak, str], LeakFound] = {}

    def look(kind: Leak, path: str, text: str) -> None:
        for mention in names.find(text):
            if not mention.negated:
                found.setdefault((kind, path), LeakFound(kind, case.scenario_id, path, mention.key))

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
        look(kind, fact.path, " ".join((*fact.heads, fact.text)) if kind is Leak.RESULT else fact.text)
    return list(found.values())


# Qualifiers without which a name still names the disease.
_QUALIFIERS = frozenset(
    "acute chronic subacute active severe mild moderate primary secondary recurrent idiopathic stable unstable "
    "bilateral unilateral left right possible probable early late advanced classic typical uncomplicated".split()
)
# What is left of a name must be more than these to count as the name.
_GENERIC = frozenset(
    "disease syndrome disorder infection injury failure tumor cancer carcinoma anemia deficiency normal behavior "
    "toxic exposure reaction fracture rupture dislocation cyst".split()
)


def diagnosis_names(diagnosis: str, synonyms: tuple[str, ...] = ()) -> list[str]:
    """The ways in which a text might name a diagnosis: whole, without brackets, the brackets, synonyms."""
    outside = re.sub(r"\s*\([^)]*\)", "", diagnosis).strip()
    inside = re.findall(r"\(([^)]*)\)", diagnosis)
    names = [diagnosis, outside, *inside, *synonyms]
    for name in (outside, *inside):
        disease = knowledge().disease_named(name)
        if disease:
            names += [disease.name, *disease.synonyms]
    core = [word for word in words(outside) if word not in _QUALIFIERS]
    if core and set(core) - _GENERIC and len(core) < len(words(outside)):
        names.append(" ".join(core))
    return [name for name in dict.fromkeys(names) if set(words(name)) - _GENERIC and len("".join(words(name))) > 2]
