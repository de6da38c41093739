"""What people at the terminal are told about a run; apart from `play`, whose help needs none of these imports."""

from __future__ import annotations

from collections.abc import Iterator

from agentclinic.cases.model import Case
from agentclinic.config import RunSettings, is_person
from agentclinic.report.debriefing import debriefing
from agentclinic.results.record import Record
from agentclinic.runs.human import Screen
from agentclinic.runs.progress import Progress


class People(Progress):
    """No bar, which would be drawn over the prompt: a heading before each case and a debriefing after it."""

    def __init__(self, run: RunSettings) -> None:
        self._doctor = "You" if is_person(run.doctor_llm) else "The doctor"
        self._screen = Screen()
        self._total = self._done = 0

    def start(self, total: int, done: int, what: str = "scenarios") -> None:
        del what
        self._total, self._done = total, done
        self._announce()

    def advance(self, line: str) -> None:
        del line
        self._done += 1
        self._announce()

    def played(self, record: Record, case: Case) -> None:
        """Say how the encounter ended and what the chart held."""
        self._screen.show("", *_debriefing_lines(record, case, self._doctor))

    def _announce(self) -> None:
        if self._total > 1 and self._done < self._total:
            self._screen.show("", f"=== Case {self._done + 1} of {self._total} ===", "")


def _debriefing_lines(record: Record, case: Case, doctor: str) -> Iterator[str]:
    end = debriefing(record, case)
    yield f"=== The verdict: {end.verdict} ==="
    yield f"{doctor} said: {end.said or '(no diagnosis)'}"
    yield f"The truth: {end.truth}"
    if end.why:
        yield f"Why: {end.why}."
    if record.fault:
        yield record.fault.message
    if end.ordered and is_person(record.patient_llm):
        yield f"{doctor} ordered: {'; '.join(end.ordered)}"
    if end.against:
        yield end.against
    if end.found or end.missed:
        yield from ("", f"Key findings: {len(end.found)} of {len(end.found) + len(end.missed)} found")
        yield from (f"  - {way}: {words}" for way, words in (*end.found, *(("MISSED", words) for words in end.missed)))
    if end.untold:
        yield from ("", "Not asked:", *(f"  - {fact}" for fact in end.untold))
    if end.unordered:
        yield from ("", f"Not ordered: {', '.join(end.unordered)}")
    if end.points:
        yield from ("", "Against the best play:", *(f"  - {line}" for line in (*end.points, *end.best)))
