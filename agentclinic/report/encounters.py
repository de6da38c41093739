"""One line about every encounter: the outcome, how sure the doctor was, what it cost, and why it went wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentclinic.report.tables import Cells, Section, plural
from agentclinic.results.record import MISSING, Record
from agentclinic.results.regret import KINDS, Regret, RegretTurn
from agentclinic.results.run_data import diagnosis_of
from agentclinic.results.turn import Source
from agentclinic.scoring.clusters import annotation, case_key
from agentclinic.scoring.differentials import PREFERRED, confidence, course, differentials
from agentclinic.scoring.exclusion import dangers
from agentclinic.scoring.format import number, percent
from agentclinic.scoring.information import KeyFinding, decisive, premature_closure
from agentclinic.scoring.metrics import SERIOUS
from agentclinic.scoring.orders import Bill
from agentclinic.scoring.outcome import cost_of, outcome, tokens_of
from agentclinic.scoring.verdicts import harm_if_missed, harm_step, strict
from agentclinic.worlds.model import DEFER

OVERCONFIDENT = 0.8
"""A wrong diagnosis this sure is called confident: at most one in five such diagnoses should be wrong."""


class Reason(NamedTuple):
    """Why an encounter is not right."""

    kind: str
    """The same text for all encounters with this reason."""
    text: str


@dataclass(frozen=True, slots=True)
class Encounter:
    """An encounter in one line; the fields up to `decided_by` are the columns of the CSV format."""

    scenario_id: int
    repeat: int
    case: str
    """Pairs the case between runs."""
    case_name: str
    """What people call it."""
    dataset: str | None
    outcome: str
    right: bool | None
    """By the strict rule; False if it could not be read, None if missing."""
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
    decided_by: str | None = None
    block: int = 0
    position: int = 0
    """Where its transcript is packed."""
    chart: tuple[int, int] | None = None
    """Where the chart of its case is packed; None if the run does not hold the case."""
    regret: float | None = None
    """In points; None outside solvable worlds."""


def encounter_of(record: Record, bill: Bill | None) -> Encounter:
    sure, source = confidence(record)
    ended = outcome(record)
    return Encounter(
        scenario_id=record.scenario_id,
        repeat=record.repeat,
        case=case_key(record),
        case_name=record.case_name,
        dataset=record.dataset,
        outcome=ended,
        right=strict(record),
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
        decided_by=record.judgement.decided_by if record.judgement else None,
        regret=record.regret.regret if record.regret else None,
    )


RELATIONS = {
    "narrower_unsupported": "more specific than the chart supports",
    "broader": "too broad",
    "manifestation_or_complication": "a manifestation or complication, not the disease",
    "sibling": "a related disease",
    "different": "another disease",
    "hedged": "more than one diagnosis",
}
HARM = ("none", "minor", "moderate", "serious", "death or lasting damage")
"""What the steps of the scale of harm mean, from 0 to 4."""


def related(relation: str) -> str:
    """How a diagnosis relates to the truth, in words; a relation that is not known keeps its name."""
    right = {"same": "the same disease", "narrower_consistent": "a more specific form that fits the chart"}
    return (right | RELATIONS).get(relation, relation.replace("_", " "))


def deferred(record: Record) -> bool:
    """Whether the doctor of a solvable world handed the patient on."""
    return record.regret is not None and record.regret.ending == DEFER


def wrong_as(record: Record) -> str | None:
    """How a wrong diagnosis relates to the truth, in words; None if that is not known."""
    if deferred(record):
        return "deferred"
    return RELATIONS.get((record.judgement and record.judgement.relation) or "")


def reasons(record: Record, sure: float | None) -> list[Reason]:
    """Why an encounter is not right, if its record tells; the first reason is how it ended."""
    missing = outcome(record) in MISSING
    if record.status == "not_readable":
        return [Reason("not readable", (record.judgement and record.judgement.reason) or "not readable")]
    if record.fault and (missing or record.status not in ("diagnosed", "judge_failed")):
        failed = f"{record.fault.role} failed: {record.fault.error.replace('_', ' ')}"
        found = [Reason(failed, failed)]
    elif record.status not in ("diagnosed", "judge_failed"):
        found = [_without_diagnosis(record)]
    elif missing:
        found = [Reason("not judged", "the diagnosis was not judged")]
    else:
        wrong = wrong_as(record) or "judged wrong"
        found = [Reason(wrong, wrong)]
        if sure is not None and sure >= OVERCONFIDENT:
            found.append(Reason(_CONFIDENT, f"{percent(sure, 0)} sure"))
        found += _course(record)
    return found if missing else [*found, *_dangers(record)]


def _without_diagnosis(record: Record) -> Reason:
    if record.status == "max_infs_reached":
        within = f" within {plural(record.max_infs, 'turn')}" if record.max_infs else " within the turn limit"
        return Reason("no diagnosis within the turn limit", f"no diagnosis{within}")
    ended = record.status.replace("_", " ")
    return Reason(ended, ended)


def _course(record: Record) -> list[Reason]:
    """What became of the true diagnosis in the doctor's differentials, and which decisive findings were not sought."""
    found = []
    by_source = differentials(record)
    stated = next((by_source[source] for source in (*PREFERRED, Source.PLANNER_SCORE) if source in by_source), None)
    if stated and record.ground_truth:
        seen = course(stated, record)
        if seen.appeared is None:
            found.append(Reason(NEVER_LISTED, NEVER_LISTED))
        elif seen.dropped:
            found.append(Reason(DROPPED, f"true diagnosis first at turn {seen.led}, then dropped"))
        elif seen.led is None:
            found.append(Reason(NEVER_FIRST, NEVER_FIRST))
    overlooked = [finding for finding, sought in decisive(record) or () if not sought]
    if overlooked:
        found.append(Reason(_CLOSED if premature_closure(record) else _UNSOUGHT, _overlooked(record, overlooked)))
    return found


NEVER_LISTED, NEVER_FIRST = "true diagnosis never listed", "true diagnosis listed but never first"
DROPPED = "true diagnosis first, then dropped"
_CONFIDENT, _CLOSED = f"at least {percent(OVERCONFIDENT, 0)} sure", "premature closure"
_UNSOUGHT = "decisive finding missed"
_HARMFUL, _OPEN = f"harm if missed {SERIOUS} or 4", "dangerous disease not excluded"
_BESIDE = (_CONFIDENT, _CLOSED, _UNSOUGHT, _HARMFUL, _OPEN)


def _overlooked(record: Record, findings: Sequence[KeyFinding]) -> str:
    """The decisive findings that were not requested, by where they are in the chart, and whether there was time."""
    missed: dict[str, dict[str, dict[str, None]]] = {"not asked": {}, "not ordered": {}}
    for finding in findings:
        root, *parts = re.split(r"[/#]", finding.paths[0])
        heads = [part.split("_") for part in parts if part != "Findings" and not part.isdigit()] or [root.split("_")]
        # Within a sentence a heading loses its capitals; an abbreviation keeps them.
        name, *rest = (" ".join(word.lower() if word[1:].islower() else word for word in words) for words in heads)
        how = "not asked" if root in ("Patient_Actor", "patient_info") else "not ordered"
        missed[how].setdefault(name, {}).update(dict.fromkeys(rest))
    left = (record.max_infs or 0) - (record.num_turns or 0)
    said = [f"stopped with {plural(left, 'turn')} left" if left > 0 else "used all its turns"]
    for how, names in missed.items():
        listed = [f"{name} ({', '.join(rest)})" if rest else name for name, rest in names.items()]
        said += [f"{how}: {', '.join(listed)}"] if listed else []
    return "; ".join(said)


def _dangers(record: Record) -> list[Reason]:
    found = []
    harm = harm_if_missed(record)
    if harm is not None and harm >= SERIOUS:
        meaning = f" ({HARM[int(harm)]})" if harm == int(harm) else ""
        found.append(Reason(_HARMFUL, f"harm if missed {harm:g} of 4{meaning}"))
    never = [one.name for one in dangers(record) if one.minutes is None and one.unknown is None]
    if never:
        found.append(Reason(_OPEN, "not excluded: " + ", ".join(never)))
    return found


def where_wrong(encounters: Sequence[Encounter]) -> Section:
    """Every wrong encounter in one row, by what went wrong first; the columns tell what else did.

    An answer that could not be read is not wrong, and not counted here.
    """
    wrong = [one for one in encounters if one.right is False and one.outcome != "not_readable"]
    bad = [(one, {reason.kind for reason in one.reasons}) for one in wrong]
    columns = [kind for kind in _BESIDE if any(kind in kinds for _, kinds in bad)]
    groups: dict[str, list[set[str]]] = {}
    for one, kinds in bad:
        first = next((kind for kind in (NEVER_LISTED, NEVER_FIRST, DROPPED) if kind in kinds), one.reasons[0].kind)
        groups.setdefault(first, []).append(kinds)
    rows: list[Cells] = [
        [name, len(several), *(sum(kind in kinds for kinds in several) for kind in columns)]
        for name, several in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    ]
    said = ["Each encounter counts in one row, but may count in several columns."] if columns else []
    scale = ", ".join(f"{step} {name}" for step, name in enumerate(HARM))
    said += [f"Harm if missed is rated by the case's author: {scale}."] if _HARMFUL in columns else []
    return Section("Where it went wrong", rows, said, ("", "encounters", *columns), (0,))


# --- against the best play, in solvable worlds ------------------------------------------------------------------------


def best_action(turn: RegretTurn) -> str:
    """A turn against the best action: `Best: Troponin. Regret 0.43 points: stopped early.`, or `Best action.`."""
    if turn.kind == "best":
        return "Best action."
    best = f"the diagnosis {turn.best}" if turn.best in turn.posterior else turn.best
    return f"Best: {best}. Regret {number(turn.regret)} points: {KINDS[turn.kind]}."


def best_play(found: Regret) -> list[str]:
    """An encounter against the best play: its utility, its regret by kind, and its luck."""
    lost = {kind: math.fsum(turn.regret for turn in found.turns if turn.kind == kind) for kind in KINDS}
    by_kind = ", ".join(f"{KINDS[kind]} {number(points)}" for kind, points in lost.items() if points)
    return [
        f"Utility {number(found.utility)} points; the best play is worth {number(found.best_value)} on average.",
        f"Regret {number(found.regret)} points{f': {by_kind}' if by_kind else ''}.",
        f"Luck: chance {'took' if found.luck > 0 else 'gave'} {number(abs(found.luck))} points.",
    ]
