"""One line about every encounter: the outcome, how sure the doctor was, what it cost, and why it went wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from agentclinic.report.tables import plural
from agentclinic.results.record import MISSING, Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.results.turn import Source
from agentclinic.scoring.differentials import PREFERRED, confidence, course, differentials
from agentclinic.scoring.format import percent
from agentclinic.scoring.information import never_requested, premature_closure
from agentclinic.scoring.metrics import SERIOUS
from agentclinic.scoring.orders import Bill
from agentclinic.scoring.outcome import cost_of, outcome, tokens_of
from agentclinic.scoring.verdicts import annotation, case_key, harm_if_missed, harm_step, missed, strict

OVERCONFIDENT = 0.8
"""A wrong diagnosis this sure is called confident: at most one in five such diagnoses should be wrong."""


class Reason(NamedTuple):
    """Why an encounter is not right."""

    kind: str
    """The same text for all encounters with this reason."""
    text: str


@dataclass(frozen=True, slots=True)
class Encounter:
    """An encounter in one line; the fields up to `reasons` are the columns of the CSV format."""

    scenario_id: int
    repeat: int
    case: str
    """Pairs the case between runs."""
    dataset: str | None
    outcome: str
    right: bool | None
    """By the strict rule; None if missing."""
    truth: str | None
    diagnosis: str | None
    relation: str | None
    confidence: float | None
    confidence_source: str | None
    turns: int | None
    input_tokens: int | None
    output_tokens: int | None
    models_usd: float | None
    """Tokens and cost of all models; None if they are not all known."""
    tests_usd: float | None
    """Simulated: the sum of the known prices; None if the record does not say which tests were done."""
    tests_unpriced: int | None
    specialty: str | None
    difficulty: str | None
    harm: str | None
    reasons: tuple[Reason, ...]
    """Why it is not right, if the record tells; empty if it is right."""
    block: int = 0
    position: int = 0
    """Where its transcript is packed."""
    chart: tuple[int, int] | None = None
    """Where the chart of its case is packed; None if the run does not hold the case."""


def encounter_of(record: Record, bill: Bill | None) -> Encounter:
    sure, source = confidence(record)
    ended = outcome(record)
    return Encounter(
        scenario_id=record.scenario_id,
        repeat=record.repeat,
        case=case_key(record),
        dataset=record.dataset,
        outcome=ended,
        right=None if ended in MISSING else strict(record),
        truth=record.ground_truth,
        diagnosis=diagnosis_of(record),
        relation=record.judgement.relation if record.judgement else None,
        confidence=sure,
        confidence_source=source,
        turns=record.num_turns,
        input_tokens=tokens_of(record, "input_tokens"),
        output_tokens=tokens_of(record, "output_tokens"),
        models_usd=cost_of(record),
        tests_usd=bill.usd if bill else None,
        tests_unpriced=bill.unpriced if bill else None,
        specialty=annotation(record, "Specialty"),
        difficulty=annotation(record, "Difficulty"),
        harm=harm_step(record),
        reasons=() if ended == "diagnosed_right" else tuple(reasons(record, sure)),
    )


RELATIONS = {
    "narrower_unsupported": "more specific than the chart supports",
    "broader": "too broad",
    "manifestation_or_complication": "a manifestation or complication, not the disease",
    "sibling": "a related disease",
    "different": "another disease",
    "hedged": "more than one diagnosis",
}
PLAINLY_WRONG = frozenset({"another disease", "judged wrong"})
"""Kinds of reason that say only that the diagnosis is wrong."""


def reasons(record: Record, sure: float | None) -> list[Reason]:
    """Why an encounter is not right, if its record tells; the first reason is how it ended."""
    missing = outcome(record) in MISSING
    if record.fault and (missing or record.status not in ("diagnosed", "judge_failed")):
        failed = f"{record.fault.role} failed: {record.fault.error.replace('_', ' ')}"
        found = [Reason(failed, failed)]
    elif record.status not in ("diagnosed", "judge_failed"):
        found = [_without_diagnosis(record)]
    elif missing:
        found = [Reason("not judged", "the diagnosis was not judged")]
    else:
        wrong = RELATIONS.get((record.judgement and record.judgement.relation) or "", "judged wrong")
        found = [Reason(wrong, wrong)]
        if sure is not None and sure >= OVERCONFIDENT:
            found.append(Reason(f"wrong, but at least {percent(OVERCONFIDENT, 0)} sure", f"{percent(sure, 0)} sure"))
        found += _course(record)
    return found if missing else [*found, *_dangers(record)]


def _without_diagnosis(record: Record) -> Reason:
    if record.status == "max_infs_reached":
        within = f" within {plural(record.max_infs, 'turn')}" if record.max_infs else " within the turn limit"
        return Reason("no diagnosis within the turn limit", f"no diagnosis{within}")
    ended = record.status.replace("_", " ")
    return Reason(ended, ended)


def _course(record: Record) -> list[Reason]:
    """What happened to the truth in the doctor's differentials, and which decisive findings it never asked for."""
    found = []
    by_source = differentials(record)
    stated = next((by_source[source] for source in (*PREFERRED, Source.PLANNER_SCORE) if source in by_source), None)
    if stated and record.ground_truth:
        seen = course(stated, record)
        if seen.appeared is None:
            found.append(Reason("the truth was never in the differential", "truth never considered"))
        elif seen.dropped:
            found.append(
                Reason("the truth was first, then dropped", f"truth was first at turn {seen.led}, then dropped")
            )
        elif seen.led is None:
            found.append(Reason("the truth was considered but never first", "truth considered but never first"))
    if premature_closure(record):
        found.append(Reason("a decisive finding was available but never requested", _overlooked(record)))
    return found


def _overlooked(record: Record) -> str:
    """The decisive findings that were not asked for, by where they are in the chart, and whether there was time."""
    places = dict.fromkeys(_place(finding.paths[0]) for finding in never_requested(record) or ())
    left = (record.max_infs or 0) - (record.num_turns or 0)
    early = f"stopped with {plural(left, 'turn')} left" if left > 0 else "used all its turns"
    return f"{early} and never asked for {'; '.join(places)}"


def _place(path: str) -> str:
    """A chart path as words: the test or examination, or the part of the patient's story."""
    root, *parts = re.split(r"[/#]", path)
    named = [part.replace("_", " ") for part in parts if not part.isdigit() and part != "Findings"] or [root]
    return f"{'patient, ' if root in ('Patient_Actor', 'patient_info') else ''}{', '.join(named)}"


def _dangers(record: Record) -> list[Reason]:
    found = []
    harm = harm_if_missed(record)
    if harm is not None and harm >= SERIOUS:
        found.append(Reason(f"the harm if missed is {SERIOUS} or more", f"harm {harm:g} of 4"))
    never = missed(record)
    if never:
        found.append(Reason("a must-not-miss disease was never considered", "never considered: " + ", ".join(never)))
    return found
