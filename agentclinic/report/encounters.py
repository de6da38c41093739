"""One line about every encounter: what came of it, how sure the doctor was, what it cost, and why it went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentclinic.results.differential import Source
from agentclinic.results.outcome import MISSING
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.scoring.breakdown import annotation, harm_step
from agentclinic.scoring.calibration import committed, number_of, scale_of
from agentclinic.scoring.harm import SERIOUS, harm_if_missed, missed
from agentclinic.scoring.information import course, differentials, premature_closure
from agentclinic.scoring.orders import Bill
from agentclinic.scoring.outcome import outcome
from agentclinic.scoring.ranking import final_differentials
from agentclinic.scoring.verdicts import case_key, strict

PREFERRED = (Source.POSTERIOR, Source.STATED, Source.ELICITED)
"""Whose probability is shown where a record has several: the doctor's own before one asked for afterwards."""
OVERCONFIDENT = 0.8
"""From here on a wrong diagnosis is called confident: fewer than one in five should be wrong."""


class Reason(NamedTuple):
    """Why an encounter is not right."""

    kind: str
    """The same for all encounters of which this holds."""
    text: str


@dataclass(frozen=True, slots=True)
class Encounter:
    """An encounter in a few words."""

    scenario_id: int
    repeat: int
    case: str
    """What pairs the case between runs."""
    dataset: str | None
    outcome: str
    right: bool | None
    """By the strict rule; None when missing."""
    truth: str | None
    diagnosis: str | None
    relation: str | None
    confidence: float | None
    confidence_source: str | None
    turns: int | None
    tests_usd: float | None
    """What the tests with a price come to; None where the record does not tell of tests."""
    tests_unpriced: int | None
    specialty: str | None
    difficulty: str | None
    harm: str | None
    reasons: tuple[Reason, ...]
    """Why it is not right, as far as the record tells; empty when it is."""
    block: int
    position: int
    """Where its transcript is packed."""


def encounter_of(record: Record, due: Bill | None, block: int, position: int) -> Encounter:
    """The line about a record."""
    sure, source = confidence(record)
    came = outcome(record)
    return Encounter(
        scenario_id=record.scenario_id,
        repeat=record.repeat,
        case=case_key(record),
        dataset=record.dataset,
        outcome=came,
        right=None if came in MISSING else strict(record),
        truth=record.ground_truth,
        diagnosis=diagnosis_of(record),
        relation=record.judgement.relation if record.judgement else None,
        confidence=sure,
        confidence_source=source,
        turns=record.num_turns,
        tests_usd=due.usd if due else None,
        tests_unpriced=due.unpriced if due else None,
        specialty=annotation(record, "Specialty"),
        difficulty=annotation(record, "Difficulty"),
        harm=harm_step(record),
        reasons=() if came == "diagnosed_right" else tuple(reasons(record, sure)),
        block=block,
        position=position,
    )


def confidence(record: Record) -> tuple[float | None, str | None]:
    """The probability the doctor gave its diagnosis, and whose number it is; planner scores are none."""
    given = final_differentials(record)
    for source in PREFERRED:
        differential = given.get(source.value)
        if differential is None or scale_of(differential) != "probability":
            continue
        hypothesis = committed(record, differential)
        number = number_of(hypothesis, differential) if hypothesis else None
        if number is not None:
            return number, source.value
    return None, None


_RELATIONS = {
    "narrower_unsupported": "more precise than the chart supports",
    "broader": "too broad",
    "manifestation_or_complication": "a manifestation or complication, not the disease",
    "sibling": "a related disease",
    "different": "another disease",
    "hedged": "more than one diagnosis named",
}


PLAINLY_WRONG = frozenset({"another disease", "judged wrong"})
"""Kinds of reason that say no more than that the diagnosis is wrong."""


def reasons(record: Record, sure: float | None) -> Sequence[Reason]:
    """Why an encounter is not right, as far as its record tells; the first is how it ended."""
    came = outcome(record)
    if record.status not in ("diagnosed", "judge_failed"):
        return [_without_diagnosis(record), *(_dangers(record) if came not in MISSING else ())]
    if came in MISSING:
        return [_failed(record) if record.fault else Reason("not judged", "no verdict on the diagnosis")]
    relation = record.judgement.relation if record.judgement else None
    wrong = _RELATIONS.get(relation or "", "judged wrong")
    found = [Reason(wrong, wrong)]
    if sure is not None and sure >= OVERCONFIDENT:
        found.append(Reason(f"wrong, though {100 * OVERCONFIDENT:.0f} % sure or more", f"{100 * sure:.0f} % sure"))
    return [*found, *_course(record), *_dangers(record)]


def _without_diagnosis(record: Record) -> Reason:
    if record.fault:
        return _failed(record)
    if record.status == "max_infs_reached":
        limit = f"no diagnosis within {record.max_infs} turns" if record.max_infs else "no diagnosis within the turns"
        return Reason("no diagnosis within the turns", limit)
    ended = record.status.replace("_", " ")
    return Reason(ended, ended)


def _failed(record: Record) -> Reason:
    fault = record.fault
    said = f"{fault.role} failed: {fault.error.replace('_', ' ')}" if fault else "failed"
    return Reason(said, said)


def _course(record: Record) -> list[Reason]:
    """What became of the truth in the doctor's own differentials, and whether it stopped too early."""
    found = []
    by_source = differentials(record)
    stated = next((by_source[source.value] for source in PREFERRED if source.value in by_source), None)
    stated = stated or by_source.get(Source.PLANNER_SCORE.value)
    if stated and record.ground_truth:
        seen = course(stated, record)
        if seen.appeared is None:
            found.append(Reason("the truth was never in its differential", "truth never considered"))
        elif seen.dropped:
            found.append(Reason("the truth led, then was dropped", f"truth led at turn {seen.led}, then dropped"))
        elif seen.led is None:
            found.append(Reason("the truth was considered, never first", "truth considered, never first"))
    if premature_closure(record):
        found.append(Reason("a finding that could have told was never requested", "stopped too early"))
    return found


def _dangers(record: Record) -> list[Reason]:
    harm = harm_if_missed(record)
    found = []
    if harm is not None and harm >= SERIOUS:
        found.append(Reason(f"in cases of harm {SERIOUS} or more if missed", f"harm {harm:g} of 4"))
    never = missed(record)
    if never:
        found.append(Reason("a disease not to be missed was never considered", "never considered: " + ", ".join(never)))
    return found
