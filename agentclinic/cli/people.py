"""What people at the terminal are told about a run: which case comes next, and after each one what it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact, Section
from agentclinic.config import RunSettings
from agentclinic.report.encounters import confidence, reasons
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.runs.human import Screen
from agentclinic.runs.progress import Progress
from agentclinic.scoring.information import KeyFinding, Way, below, discloses, key_facts, requests
from agentclinic.scoring.verdicts import strict
from agentclinic.vocabulary.compare import Relation, compare

_WAYS = {
    Way.DOOR: "known at the door",
    Way.VOLUNTEERED: "volunteered",
    Way.ASKED: "asked",
    Way.ORDERED: "ordered",
}
_LONGEST = 200
"""Characters of a key finding that are shown: about three lines."""


class People(Progress):
    """No bar, which would be drawn over the prompt: a heading before each case and a debriefing after it."""

    def __init__(self, run: RunSettings) -> None:
        self._doctor = "You" if run.doctor_llm == "human" else "The doctor"
        self._screen = Screen()
        self._total = self._done = 0

    def start(self, total: int, done: int, what: str = "scenarios") -> None:
        """Announce the first case."""
        del what
        self._total, self._done = total, done
        self._announce()

    def advance(self, line: str) -> None:
        """Announce the next case."""
        del line
        self._done += 1
        self._announce()

    def played(self, record: Record, case: Case) -> None:
        """Say how the encounter ended and what the chart held."""
        self._screen.show("", *debriefing(record, case, self._doctor))

    def _announce(self) -> None:
        if self._total > 1 and self._done < self._total:
            self._screen.show("", f"=== Case {self._done + 1} of {self._total} ===", "")


def debriefing(record: Record, case: Case, doctor: str = "The doctor") -> Iterator[str]:
    """The verdict, the truth, key findings found and missed, and what was never asked for.

    What a role does not disclose cannot be counted: if a person is the patient, what the patient told is left out.
    """
    right, said = strict(record), diagnosis_of(record)
    yield f"=== The verdict: {'right' if right else 'no verdict' if right is None else 'wrong'} ==="
    yield f"{doctor} said: {said or '(no diagnosis)'}"
    yield f"The truth: {case.diagnosis}"
    if not right:
        yield f"Why: {'; '.join(reason.text for reason in reasons(record, confidence(record)[0]))}."
    if record.fault:
        yield record.fault.message
    ordered = [request.content for request in requests(record) or () if request.kind == "test"]
    if ordered and record.patient_llm == "human":
        yield f"{doctor} ordered: {'; '.join(ordered)}"
    yield from _against(record, case)
    yield from _key_findings(record, case)
    yield from _never_asked(record, case)


def _against(record: Record, case: Case) -> Iterator[str]:
    """What the case's author says against a wrong diagnosis."""
    said = diagnosis_of(record)
    if not said or strict(record) is not False:
        return
    listed = case.annotations.get("Differential")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    known = [(str(entry.get("name")), str(entry.get("refuted_by"))) for entry in entries if entry.get("refuted_by")]
    for name, refuted in (*case.answer_key.reject, *known):
        if compare(said, name).relation is Relation.SAME:
            yield f"Against {name}: {refuted}."
            return


def _key_findings(record: Record, case: Case) -> Iterator[str]:
    found = key_facts(record) or ()
    if not found:
        return
    yield ""
    yield f"Key findings: {sum(entry.way is not None for entry in found)} of {len(found)} found"
    for entry in sorted(found, key=lambda entry: entry.way is None):
        yield f"  - {_WAYS[entry.way] if entry.way else 'MISSED'}: {_worded(entry.finding, case)}"


def _worded(finding: KeyFinding, case: Case) -> str:
    """A key finding in the words of the chart."""
    facts = [fact for fact in case.facts if any(below(fact.path, path) for path in finding.paths)]
    text = "; ".join(_by_heading(facts)) or " or ".join((*finding.phrases, *finding.paths))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."


def _by_heading(facts: Iterable[Fact]) -> Iterator[str]:
    """`Social History: Baker; does not smoke`: the statements under each heading of the chart."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        *above, last = [head for head in fact.heads if head != "Findings"] or [""]
        measured = above and fact.section not in PATIENT_SECTIONS
        groups.setdefault(above[0] if above else last, []).append(f"{last} {fact.text}" if measured else fact.text)
    for heading, texts in groups.items():
        told = "; ".join(text.rstrip(".") for text in texts)
        yield f"{heading}: {told}" if heading else told


def _never_asked(record: Record, case: Case) -> Iterator[str]:
    asked = requests(record) or ()
    paths = {path for turn in record.transcript or () for part in turn.disclosures for path in part.paths}

    def untold(facts: tuple[Fact, ...]) -> list[Fact]:
        return [fact for fact in facts if not any(below(fact.path, path) for path in paths)]

    if discloses(record, "patient", asked):
        silent = [fact for fact in untold(case.patient_facts) if fact.section is not Section.DEMOGRAPHICS]
        if silent:
            yield ""
            yield "The patient was not asked, and so did not say:"
            yield from (f"  - {told}" for told in _by_heading(silent))
    if discloses(record, "measurement", asked):
        left = untold(case.exam_facts)
        told = {fact.heads[:1] for fact in case.exam_facts if fact not in left}
        names = dict.fromkeys(fact.heads[0] for fact in left if fact.heads and fact.heads[:1] not in told)
        if names:
            yield ""
            yield f"In the chart and never ordered: {', '.join(names)}"
