"""The audit of a run: every reply of its transcripts against the chart of its case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentclinic.audit.accuracy import Accuracy, accuracy, apparent_rate, corrected, usable
from agentclinic.audit.chart import Chart
from agentclinic.audit.model import ROLES, Exchange, Finding, Kind, Role
from agentclinic.audit.reply import audit_reply
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.errors import CaseError, InputError
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData, load_run
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
    """Per reply, corrected for the auditor's errors; null where they are not known or too great."""
    reference: str | None = None
    """What the auditor's errors were measured on."""
    sensitivity: float | None = None
    specificity: float | None = None
    per_encounter: Estimate
    """Encounters with at least one finding; not corrected."""


class AuditReport(BaseModel):
    """All of `agentclinic audit`."""

    run: str
    dataset: str | None
    models: dict[Role, list[str]]
    encounters: int
    """Audited ones."""
    without_transcript: int = 0
    without_case: int = 0
    replies: dict[Role, int]
    rates: list[Rate]
    findings: list[Listed]
    notes: list[str]


@dataclass
class _Units:
    """Replies or encounters: their cases and which kinds were found in each."""

    cases: list[str] = field(default_factory=list)
    kinds: list[frozenset[Kind]] = field(default_factory=list)

    def add(self, case: str, kinds: Iterable[Kind]) -> None:
        self.cases.append(case)
        self.kinds.append(frozenset(kinds))

    def having(self, kind: Kind) -> list[bool]:
        return [kind in kinds for kinds in self.kinds]


def audit_run(place: Path, cases: Path | None = None, seed: int = 0) -> AuditReport:
    """Audit a run by its folder or file of records; `cases` names a case file in place of the run's own data set."""
    data = load_run(place)
    charts = _Charts(data, cases)
    replies: dict[Role, _Units] = {role: _Units() for role in ROLES}
    encounters: dict[Role, _Units] = {role: _Units() for role in ROLES}
    models: dict[Role, Counter[str]] = {role: Counter() for role in ROLES}
    listed: list[Listed] = []
    skipped: Counter[str] = Counter()
    audited = 0
    for record in data.records():
        if not record.transcript:
            skipped["transcript"] += 1
            continue
        chart = charts.of(record)
        if chart is None:
            skipped["case"] += 1
            continue
        audited += 1
        per_role: dict[Role, set[Kind]] = {}
        for turn, exchange in exchanges(record):
            found = audit_reply(exchange, chart)
            kinds = {finding.kind for finding in found}
            replies[exchange.role].add(case_key(record), kinds)
            per_role.setdefault(exchange.role, set()).update(kinds)
            listed += [_listed(finding, record, turn, exchange) for finding in found]
        for role, kinds in per_role.items():
            encounters[role].add(case_key(record), kinds)
            models[role][getattr(record, f"{role}_llm") or "not recorded"] += 1
    _refuse_nothing(place, audited, skipped, charts)
    measured = accuracy()
    return AuditReport(
        run=data.name,
        dataset=charts.name,
        models={role: sorted(models[role]) for role in ROLES},
        encounters=audited,
        without_transcript=skipped["transcript"],
        without_case=skipped["case"],
        replies={role: len(replies[role].cases) for role in ROLES},
        rates=[_rate(role, kind, replies[role], encounters[role], measured, seed) for role in ROLES for kind in Kind],
        findings=listed,
        notes=_notes(data, skipped, measured),
    )


def exchanges(record: Record) -> Iterator[tuple[int, Exchange]]:
    """Each patient and measurement reply with the doctor's words before it, and its turn."""
    doctor = ""
    before: dict[str, list[str]] = {role: [] for role in ROLES}
    for turn in record.transcript or ():
        if turn.action:
            doctor = turn.action.content
        elif turn.role in ROLES:
            role: Role = "patient" if turn.role == "patient" else "measurement"
            yield (
                turn.turn,
                Exchange(
                    role=role,
                    asked=doctor,
                    reply=turn.text,
                    told_before=tuple(before[role]),
                    silent_symptom=record.silent_symptom or "deny",
                    # The original's laboratory was told to call normal what the chart does not hold.
                    missing_test=record.missing_test or "normal",
                ),
            )
            before[role].append(turn.text)


def _listed(finding: Finding, record: Record, turn: int, exchange: Exchange) -> Listed:
    return Listed(
        **finding.model_dump(),
        scenario_id=record.scenario_id,
        repeat=record.repeat,
        case_hash=record.case_hash,
        turn=turn,
        role=exchange.role,
        asked=exchange.asked,
    )


def _rate(role: Role, kind: Kind, replies: _Units, encounters: _Units, measured: Accuracy | None, seed: int) -> Rate:
    found = replies.having(kind)
    known = usable(measured, role, kind)
    return Rate(
        role=role,
        kind=kind,
        found=sum(found),
        per_reply=apparent_rate(found, replies.cases, seed),
        corrected=corrected(found, replies.cases, known, seed),
        reference=known.reference if known else None,
        sensitivity=known.counts.sensitivity if known else None,
        specificity=known.counts.specificity if known else None,
        per_encounter=apparent_rate(encounters.having(kind), encounters.cases, seed),
    )


# --- the run's cases -------------------------------------------------------------------------------------------------


class _Charts:
    """The charts of a run's cases, read when first asked for."""

    def __init__(self, data: RunData, file: Path | None) -> None:
        self.name, self._cases = _cases_of(data, file)
        self._by_hash = {case.id: case for case in self._cases}
        self._by_row = {case.scenario_id: case for case in self._cases}
        self._charts: dict[str, Chart] = {}

    def of(self, record: Record) -> Chart | None:
        """The chart of a record's case; None where the data set holds no such case (any more)."""
        case = self._by_hash.get(record.case_hash) if record.case_hash else self._by_place(record)
        return None if case is None else self._charts.setdefault(case.id, Chart(case))

    def _by_place(self, record: Record) -> Case | None:
        """A record of the original has no hash: row and diagnosis must both be the case's."""
        case = self._by_row.get(record.scenario_id)
        return case if case and case.diagnosis == record.ground_truth else None


def _cases_of(data: RunData, file: Path | None) -> tuple[str | None, list[Case]]:
    run: Mapping[str, Any] = data.config.get("run") or {}
    name = str(file) if file else str(run.get("dataset") or "") or _dataset_in(data)
    if not name:
        raise InputError(f"{data.path}: does not say which data set it played; name the case file with --cases")
    paths = data.config.get("datasets")
    try:
        return name, load_cases(name, paths if isinstance(paths, dict) else {})
    except CaseError as error:
        raise InputError(
            f"{data.path}: the cases of this run cannot be read, and without charts there is nothing to audit "
            f"({error}); name their file with --cases FILE"
        ) from None


def _dataset_in(data: RunData) -> str:
    return next((record.dataset for record in data.records() if record.dataset), "")


def _refuse_nothing(place: Path, audited: int, skipped: Mapping[str, int], charts: _Charts) -> None:
    if audited:
        return
    if skipped["case"]:
        raise InputError(
            f"{place}: none of its cases is in {charts.name} (they are matched by content); "
            "name the file they were played from with --cases FILE"
        )
    if skipped["transcript"]:
        raise InputError(f"{place}: its records keep no transcript turn by turn; there is nothing to audit")
    raise InputError(f"{place}: holds no records")


def _notes(data: RunData, skipped: Mapping[str, int], measured: Accuracy | None) -> list[str]:
    notes = []
    if skipped["transcript"]:
        notes.append(f"{skipped['transcript']} records have no transcript and were not audited")
    if skipped["case"]:
        notes.append(f"{skipped['case']} records are of cases the data set does not hold, and were not audited")
    if measured is None:
        notes.append("the auditor's errors were never measured: no rate is corrected")
    if not data.config:
        notes.append("no config.used.json: settings are as recorded, or as in the original")
    return notes
