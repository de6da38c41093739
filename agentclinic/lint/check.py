"""Check a case file: unreadable rows, copies, and cases that give their diagnosis away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from agentclinic.cases.formats import Format, read_case, read_rows
from agentclinic.cases.leaks import LeakFound, leaks
from agentclinic.cases.model import Case
from agentclinic.errors import CaseError


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
    """Rows of one file whose clinical content is also in another."""

    first: Path
    second: Path
    pairs: tuple[tuple[int, int], ...]


def check_file(path: Path, dataset: str, expected: Format | None = None) -> FileReport:
    """Read a whole file, collecting all problems instead of stopping at the first."""
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
    """Which files share cases, by pair of files."""
    for left, right in combinations(reports, 2):
        rows = {case.id: case.scenario_id for case in right.cases}
        pairs = {case.id: (case.scenario_id, rows[case.id]) for case in left.cases if case.id in rows}
        if pairs:
            yield Overlap(left.path, right.path, tuple(pairs.values()))
