"""The audit of a run: every reply in its transcripts against the chart of its case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel

from agentclinic.audit.accuracy import Accuracy, accuracy, apparent_rate, corrected, usable
from agentclinic.audit.chart import Chart
from agentclinic.audit.model import ROLES, AuditedReply, Finding, Kind, Role
from agentclinic.audit.reply import audit_reply
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.errors import InputError
from agentclinic.results.record import Record
from agentclinic.results.run_cases import CASES, read_cases
from agentclinic.results.run_data import load_run
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.verdicts import case_key


class Listed(Finding):
    """A finding with its place in the run."""

    scenario_id: int
    repeat: int
    case_hash: str | None
    turn: int
    role: Role
    asked: str


class Rate(BaseModel):
    """How often a kind was found in the replies of a role."""

    role: Role
    kind: Kind
    found: int
    """Replies with at least one finding of this kind."""
    per_reply: Estimate
    corrected: Estimate
    """Per reply, corrected for the auditor's errors; null if these are unknown or too large."""
    reference: str | None = None
    """What the auditor's errors were measured on."""
    sensitivity: float | None = None
    specificity: float | None = None
    per_encounter: Estimate
    """Encounters with at least one finding; not corrected."""


class AuditReport(BaseModel):
    """The result of `agentclinic audit`."""

    run: str
    dataset: str | None
    models: dict[Role, list[str]]
    encounters: int
    """Encounters that were audited."""
    without_transcript: int = 0
    without_case: int = 0
    replies: dict[Role, int]
    rates: list[Rate]
    findings: list[Listed]
    notes: list[str]


_Unit = tuple[str, set[Kind]]
"""The case of a reply or an encounter, and the kinds found in it."""


def audit_run(place: Path, cases: Path | None = None, seed: int = 0) -> AuditReport:
    """Audit a run, named by its folder or its file of records, with its own cases or those of another file."""
    data = load_run(place)
    played = load_cases(str(cases)) if cases else read_cases(data.path.parent)
    if not played:
        raise InputError(
            f"{place}: this run does not contain its cases (there is no {CASES}), and without charts there is nothing "
            "to audit; name the file they were played from with --cases FILE"
        )
    chart_of = _charts(played)
    replies: dict[Role, list[_Unit]] = {role: [] for role in ROLES}
    encounters: dict[Role, list[_Unit]] = {role: [] for role in ROLES}
    models: dict[Role, set[str]] = {role: set() for role in ROLES}
    findings: list[Listed] = []
    audited = without_transcript = without_case = 0
    for record in data.records():
        if not record.transcript:
            without_transcript += 1
            continue
        chart = chart_of(record)
        if chart is None:
            without_case += 1
            continue
        audited += 1
        per_role: dict[Role, set[Kind]] = {}
        for turn, reply in audited_replies(record):
            found = [_listed(finding, record, turn, reply) for finding in audit_reply(reply, chart)]
            kinds = {finding.kind for finding in found}
            findings += found
            replies[reply.role].append((case_key(record), kinds))
            per_role.setdefault(reply.role, set()).update(kinds)
        for role, kinds in per_role.items():
            encounters[role].append((case_key(record), kinds))
            models[role].add(getattr(record, f"{role}_llm") or "not recorded")
    source = str(cases or data.path.parent / CASES)
    if not audited and without_case:
        raise InputError(
            f"{place}: none of its cases is in {source} (they are matched by content); "
            "name the file they were played from with --cases FILE"
        )
    if not audited and without_transcript:
        raise InputError(f"{place}: its records have no turn-by-turn transcript, so there is nothing to audit")
    if not audited:
        raise InputError(f"{place}: there are no records to audit")
    measured = accuracy()
    notes = {
        f"{without_transcript} records have no transcript and were not audited": without_transcript,
        f"{without_case} records are of cases that are not in {source}, and were not audited": without_case,
        "the auditor's errors have not been measured: no rate is corrected": measured is None,
    }
    return AuditReport(
        run=data.name,
        dataset=str(cases) if cases else played[0].dataset,
        models={role: sorted(models[role]) for role in ROLES},
        encounters=audited,
        without_transcript=without_transcript,
        without_case=without_case,
        replies={role: len(replies[role]) for role in ROLES},
        rates=[_rate(role, kind, replies[role], encounters[role], measured, seed) for role in ROLES for kind in Kind],
        findings=findings,
        notes=[note for note, applies in notes.items() if applies],
    )


def _charts(cases: Sequence[Case]) -> Callable[[Record], Chart | None]:
    """A function that gives the chart of a record's case, read once; None if the case is not among these."""
    by_hash = {case.id: case for case in cases}
    # Records of the original have no hash: both row and diagnosis must agree.
    by_row = {(case.scenario_id, case.diagnosis): case for case in cases}
    charts: dict[str, Chart] = {}

    def chart_of(record: Record) -> Chart | None:
        if record.case_hash:
            case = by_hash.get(record.case_hash)
        else:
            case = by_row.get((record.scenario_id, record.ground_truth or ""))
        if case and case.id not in charts:
            charts[case.id] = Chart(case)
        return charts[case.id] if case else None

    return chart_of


def audited_replies(record: Record) -> Iterator[tuple[int, AuditedReply]]:
    """Each reply of the patient and the laboratory with its turn and the question or order before it."""
    asked = ""
    before: dict[Role, tuple[str, ...]] = dict.fromkeys(ROLES, ())
    for turn in record.transcript or ():
        if turn.action:
            asked = turn.action.content
        elif turn.role in ROLES:
            role: Role = "patient" if turn.role == "patient" else "measurement"
            yield (
                turn.turn,
                AuditedReply(
                    role,
                    asked,
                    turn.text,
                    before[role],
                    record.silent_symptom or "deny",
                    # The original's laboratory was told to report tests that are not in the chart as normal.
                    record.missing_test or "normal",
                ),
            )
            before[role] += (turn.text,)


def _listed(finding: Finding, record: Record, turn: int, reply: AuditedReply) -> Listed:
    return Listed(
        **finding.model_dump(),
        scenario_id=record.scenario_id,
        repeat=record.repeat,
        case_hash=record.case_hash,
        turn=turn,
        role=reply.role,
        asked=reply.asked,
    )


def _rate(
    role: Role, kind: Kind, replies: list[_Unit], encounters: list[_Unit], measured: Accuracy | None, seed: int
) -> Rate:
    found, cases = [kind in kinds for _, kinds in replies], [case for case, _ in replies]
    basis = usable(measured, role, kind)
    return Rate(
        role=role,
        kind=kind,
        found=sum(found),
        per_reply=apparent_rate(found, cases, seed),
        corrected=corrected(found, cases, basis, seed),
        reference=basis.reference if basis else None,
        sensitivity=basis.counts.sensitivity if basis else None,
        specificity=basis.counts.specificity if basis else None,
        per_encounter=apparent_rate([kind in kinds for _, kinds in encounters], [case for case, _ in encounters], seed),
    )
