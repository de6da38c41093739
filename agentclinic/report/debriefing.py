"""What a person is told after an encounter: the verdict, the truth, and what the chart held that was not asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact, Section
from agentclinic.report.encounters import best_action, best_play, deferred, reasons
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.information import KeyFinding, LearnedFrom, below, discloses, key_facts, requests
from agentclinic.scoring.verdicts import decided
from agentclinic.vocabulary.compare import Relation, compare

_WAYS = {
    LearnedFrom.DOOR: "known at the door",
    LearnedFrom.VOLUNTEERED: "volunteered",
    LearnedFrom.ASKED: "asked",
    LearnedFrom.ORDERED: "ordered",
}
_LONGEST = 200
"""Characters of a key finding that are shown: about three lines."""


@dataclass(frozen=True)
class Debriefing:
    """How an encounter ended and what it left out.

    What a role does not disclose cannot be counted: if a person is the patient, what the patient told is left out.
    """

    verdict: str
    """right, wrong, deferred, not readable or no verdict."""
    said: str | None
    truth: str
    why: str | None
    """Why it is not right."""
    against: str | None
    """What the case's author says against a wrong diagnosis."""
    ordered: tuple[str, ...]
    """Tests that the doctor ordered."""
    found: tuple[tuple[str, str], ...]
    """Key findings that were found: how, and in the words of the chart."""
    missed: tuple[str, ...]
    """Key findings that were not."""
    untold: tuple[str, ...]
    """What the patient was not asked, by heading."""
    unordered: tuple[str, ...]
    """Examinations and tests in the chart that were never ordered."""
    points: tuple[str, ...] = ()
    """In a solvable world: utility, regret by kind and luck."""
    best: tuple[str, ...] = ()
    """In a solvable world: what was best, turn by turn."""


def debriefing(record: Record, case: Case) -> Debriefing:
    """What to tell a person about an encounter."""
    right = decided(record)
    undecided = "not readable" if record.status == "not_readable" else "no verdict"
    found = key_facts(record) or ()
    asked = requests(record) or ()
    untold, unordered = _left_out(record, case)
    return Debriefing(
        verdict="right" if right else undecided if right is None else "deferred" if deferred(record) else "wrong",
        said=diagnosis_of(record),
        truth=case.diagnosis,
        why=None if right else "; ".join(reason.text for reason in reasons(record, confidence(record)[0])),
        against=_against(record, case),
        ordered=tuple(request.content for request in asked if request.kind == "test"),
        found=tuple((_WAYS[entry.way], _worded(entry.finding, case)) for entry in found if entry.way),
        missed=tuple(_worded(entry.finding, case) for entry in found if not entry.way),
        untold=untold,
        unordered=unordered,
        points=tuple(best_play(record.regret)) if record.regret else (),
        best=tuple(f"Turn {turn.turn}: {best_action(turn)}" for turn in record.regret.turns) if record.regret else (),
    )


def _against(record: Record, case: Case) -> str | None:
    said = diagnosis_of(record)
    if not said or decided(record) is not False or case.drawn:
        return None
    listed = case.annotations.get("Differential")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    known = [(str(entry.get("name")), str(entry.get("refuted_by"))) for entry in entries if entry.get("refuted_by")]
    for name, refuted in (*case.answer_key.reject, *known):
        if compare(said, name).relation is Relation.SAME:
            return f"Against {name}: {refuted}."
    return None


def _worded(finding: KeyFinding, case: Case) -> str:
    """A key finding in the words of the chart."""
    facts = [fact for fact in case.facts if any(below(fact.path, path) for path in finding.paths)]
    text = "; ".join(_by_heading(facts, case)) or " or ".join((*finding.phrases, *finding.paths))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."


def _by_heading(facts: Iterable[Fact], case: Case) -> Iterator[str]:
    """`Social History: Baker; does not smoke`: the statements under each heading of the chart."""
    groups: dict[str, list[str]] = {}
    for fact in facts:
        *above, last = [head for head in fact.heads if head != "Findings"] or [""]
        measured = above and (fact.section not in PATIENT_SECTIONS or case.drawn)
        groups.setdefault(above[0] if above else last, []).append(f"{last} {fact.text}" if measured else fact.text)
    for heading, texts in groups.items():
        told = "; ".join(text.rstrip(".") for text in texts)
        yield f"{heading}: {told}" if heading else told


def _left_out(record: Record, case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the patient did not say, and what was never ordered."""
    asked = requests(record) or ()
    paths = {path for turn in record.transcript or () for part in turn.disclosures for path in part.paths}

    def left(facts: tuple[Fact, ...]) -> list[Fact]:
        return [fact for fact in facts if not any(below(fact.path, path) for path in paths)]

    untold: tuple[str, ...] = ()
    names: dict[str, None] = {}
    if discloses(record, "patient", asked):
        silent = [fact for fact in left(case.patient_facts) if fact.section is not Section.DEMOGRAPHICS]
        untold = tuple(_by_heading(silent, case))
    if discloses(record, "measurement", asked):
        rest = left(case.exam_facts)
        told = {fact.heads[:1] for fact in case.exam_facts if fact not in rest}
        names = dict.fromkeys(fact.heads[0] for fact in rest if fact.heads and fact.heads[:1] not in told)
    return untold, tuple(names)
