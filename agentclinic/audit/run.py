"""The audit of a run: every reply in its transcripts against the chart of its case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from agentclinic.audit.accuracy import Measured, apparent_rate, corrected_rate, exact_accuracy, measure
from agentclinic.audit.exact import exact_audit
from agentclinic.audit.model import (
    BY_CODE,
    BY_REVIEWER,
    ROLES,
    Audited,
    AuditedReply,
    Auditor,
    Departure,
    Kind,
    Role,
)
from agentclinic.audit.planted import Planted, planted
from agentclinic.audit.reviewer import Reviewer, Reviews, review_path
from agentclinic.cases.leaks import names_of
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.prompts import load_prompt, user_prompts
from agentclinic.config import ROLE_NAMES, Settings, is_builtin_or_person, is_person
from agentclinic.errors import ConfigError, InputError
from agentclinic.results.original import case_of_result, turns_in_histories
from agentclinic.results.record import Record
from agentclinic.results.run_cases import CASES, read_cases
from agentclinic.results.run_data import load_run
from agentclinic.results.turn import Turn, asked_and_answered
from agentclinic.runs.build import Models
from agentclinic.runs.execute import note_attestations
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import class_of_run
from agentclinic.scoring.clusters import case_key
from agentclinic.scoring.format import plural
from agentclinic.scoring.stats import Estimate, Proportion


class Listed(Departure):
    """A finding with its place in the run."""

    scenario_id: int
    name: str
    repeat: int
    case_hash: str | None
    turn: int
    role: Role
    asked: str


class Rate(BaseModel):
    """How often a kind was found in the replies of a role that could be audited for it."""

    role: Role
    by: Auditor
    kind: Kind
    found: int | None
    """Replies with at least one finding of this kind; null if none could be audited for it."""
    per_reply: Estimate
    """Of `n` replies: those that code can judge, or those with a readable review."""
    sensitivity: dict[str, Proportion]
    """On `planted` replies and, for code, on `labelled` ones."""
    specificity: dict[str, Proportion]
    corrected: Estimate | None = None
    """For a reviewer: corrected for its errors on planted replies; null if these are unknown or too large."""


class AuditReport(BaseModel):
    """The result of `agentclinic audit`."""

    run: str
    dataset: str | None
    models: dict[Role, list[str]]
    encounters: int
    """Encounters that were audited."""
    replies: dict[Role, int]
    rates: list[Rate] = []
    reviewer: Reviews | None = None
    calibration: Reviews | None = None
    """The reviewer on planted replies."""
    findings: list[Listed] = []
    notes: list[str]


@dataclass(frozen=True)
class Item:
    """A reply in a run."""

    record: Record
    case: Case
    turn: Turn
    reply: AuditedReply


def audit_run(place: Path, cases: Path | None = None, seed: int = 0) -> AuditReport:
    """Audit a run, given by its folder or its file of records, with the exact checks."""
    return _report(*read_replies(place, cases), seed)


async def review_run(
    place: Path,
    settings: Settings,
    reviewer: tuple[str, str | None],
    *,
    cases: Path | None = None,
    seed: int = 0,
    every_reply: bool = False,
    calibrate: bool = False,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a run with code and with a reviewer, given as model and endpoint.

    The reviewer reads free text, or with `every_reply` also replies with provenance. With `calibrate` it also reads
    planted replies, which show its errors; they are kept with the run and used by later audits of it.
    """
    if is_builtin_or_person(reviewer[0]):
        raise ConfigError(f"reviewer: {reviewer[0]} cannot review; name a language model")
    progress = progress or Progress()
    report, items = read_replies(place, cases)
    folder = load_run(place).path.parent
    settings = settings.changed(record=None)
    async with Models(settings, class_of_run(folder, (item.record for item in items))) as models:
        judge = Reviewer(models.get(*reviewer), load_prompt("reviewer", user_prompts(settings.run.prompts_dir)))
        note_attestations(folder, models.gate)

        async def review(replies: Sequence[Audited], path: Path, *, ask: bool = True) -> Reviews:
            workers = settings.run.workers
            return await judge.review_all(replies, path, workers, progress, ask=ask, private=models.gate.closed)

        path = review_path(folder, reviewer[0], ".planted")
        made_up = await planted(models.get("builtin")) if calibrate or path.exists() else []
        known = await review(made_up, path, ask=calibrate) if made_up else None
        wanted = [item for item in items if every_reply or not item.reply.disclosures]
        stopped = known is not None and known.interrupted
        reviews = await review(wanted, review_path(folder, reviewer[0]), ask=not stopped)
    return _report(report, items, seed, judge, reviews, known, made_up)


_RESULT = {"scenario_id", "dataset", "problem_info"}
"""What `agentclinic_api_only.py` writes about the case."""


def read_replies(place: Path, cases: Path | None = None) -> tuple[AuditReport, list[Item]]:
    """The replies of a run with the cases in its folder or in another file, and a report without findings."""
    data = load_run(place)
    played = load_cases(str(cases), lockbox=True) if cases else read_cases(data.path.parent)
    by_hash = {case.id: case for case in played}
    # Records of the original have no hash: both row and diagnosis must agree.
    by_row = {(case.scenario_id, case.diagnosis): case for case in played}
    items: list[Item] = []
    dataset: str | None = None
    audited = without_transcript = without_case = in_part = 0
    for record in data.records():
        row = (record.scenario_id, record.ground_truth or "")
        case = by_hash.get(record.case_hash) if record.case_hash else by_row.get(row)
        if case is None and not cases:
            case = case_of_result(record.model_dump(include=_RESULT), data.path)
        if not record.transcript:
            record.transcript = turns_in_histories(record)[0] or None
            in_part += record.transcript is not None
        if not record.transcript:
            without_transcript += 1
        elif case is None:
            without_case += 1
        else:
            audited += 1
            dataset = case.dataset
            items += [Item(record, case, turn, reply) for turn, reply in audited_replies(record)]
    source = str(cases or data.path.parent / CASES)
    if not audited and without_case and not played:
        raise InputError(
            f"{place}: this run does not contain its cases (there is no {CASES}), and without charts there is nothing "
            "to audit; name the file they were played from with --cases FILE"
        )
    if not audited and without_case:
        raise InputError(
            f"{place}: none of its cases is in {source} (they are matched by content); "
            "name the file they were played from with --cases FILE"
        )
    if not audited and without_transcript:
        raise InputError(
            f"{place}: its records have no turn-by-turn transcript, and none can be read from the histories, so there "
            "is nothing to audit"
        )
    if not audited:
        raise InputError(f"{place}: there are no records to audit")
    notes = {
        f"no transcript, not audited: {plural(without_transcript, 'record')}": without_transcript,
        f"no transcript, only the first turns read from the histories: {plural(in_part, 'record')}": in_part,
        f"case not in {source}, not audited: {plural(without_case, 'record')}": without_case,
    }
    played_by = {(i.reply.role, getattr(i.record, f"{i.reply.role}_llm") or "not recorded") for i in items}
    report = AuditReport(
        run=data.name,
        dataset=str(cases) if cases else dataset,
        models={role: sorted(name for played, name in played_by if played == role) for role in ROLES},
        encounters=audited,
        replies={role: sum(item.reply.role == role for item in items) for role in ROLES},
        notes=[note for note, applies in notes.items() if applies],
    )
    return report, items


def audited_replies(record: Record) -> Iterator[tuple[Turn, AuditedReply]]:
    """Each reply of the patient and the laboratory with the question or order before it."""
    earlier: tuple[AuditedReply, ...] = ()
    for _, action, turn in asked_and_answered(record.transcript or ()):
        if turn and turn.role in ROLES:
            role: Role = "patient" if turn.role == "patient" else "measurement"
            suggested = (turn.details or {}).get("suggested")
            player = getattr(record, f"{role}_llm")
            if suggested is None and is_builtin_or_person(player) and not is_person(player):  # the matcher itself
                suggested = [path for disclosure in turn.disclosures for path in disclosure.paths]
            reply = AuditedReply(
                role,
                action.content,
                turn.text,
                earlier,
                turn.disclosures,
                None if suggested is None else tuple(map(str, suggested)),
                record.silent_symptom or "deny",
                # The original's laboratory was told to report tests that are not in the chart as normal.
                record.missing_test or "normal",
                f"{record.unit} turn {turn.turn}",
            )
            yield turn, reply
            earlier += (reply,)


_Read = list[tuple[Item, Mapping[Kind, list[Departure]]]]
"""The replies that an auditor has read, with what it found for each kind that it could judge."""
_OUR_CHOICE = (
    "unasked: our matcher chose the facts of {}, so code cannot judge whether they were asked for; "
    "use --reviewer MODEL --all-replies"
)
_NOT_BY_CODE = "code could judge no reply for {}; use --reviewer MODEL"


def _report(
    report: AuditReport,
    items: Sequence[Item],
    seed: int,
    reviewer: Reviewer | None = None,
    reviews: Reviews | None = None,
    calibration: Reviews | None = None,
    made_up: Sequence[Planted] = (),
) -> AuditReport:
    cases = {item.case.id: item.case for item in items}
    names = {id_: names_of(case) for id_, case in cases.items()}
    read: _Read = [(item, exact_audit(item.reply, item.case, names[item.case.id])) for item in items]
    rates = [_rate("code", role, kind, read, seed, exact_accuracy()) for role in ROLES for kind in BY_CODE]
    notes = [*report.notes, *_why_not(rates, report)]
    if reviewer and reviews:
        judged = [(row, found) for row in made_up if (found := reviewer.findings(row, calibration)) is not None]
        errors = measure(((row.reply.role, row.kinds, {f.kind for f in found}) for row, found in judged), BY_REVIEWER)
        known = {"planted": errors} if judged else {}
        reviewed = ((item, reviewer.findings(item, reviews)) for item in items)
        own: _Read = [
            (item, {kind: [f for f in found if f.kind is kind] for kind in (*(f.kind for f in found), *BY_REVIEWER)})
            for item, found in reviewed
            if found is not None
        ]
        rates += [_rate("reviewer", role, kind, own, seed, known) for role in ROLES for kind in BY_REVIEWER]
        read += own
        notes += [] if judged else ["the reviewer's errors are not known; --calibrate measures them"]
    changes = {
        "rates": rates,
        "reviewer": reviews,
        "calibration": calibration,
        "findings": [_locate(f, item) for item, judged in read for found in judged.values() for f in found],
        "notes": notes,
    }
    return report.model_copy(update=changes)


def _why_not(rates: Sequence[Rate], report: AuditReport) -> list[str]:
    """Why code could not audit a role's replies for a kind: any of them for `unasked`, all of them for others."""
    ours, never = [], []
    for rate in rates:
        name, left = ROLE_NAMES[rate.role], report.replies[rate.role] - rate.per_reply.n
        if rate.kind is Kind.UNASKED and left:
            ours.append(f"{plural(left, 'reply', 'replies')} of the {name}")
        elif rate.found is None and left:
            never.append(f"{rate.kind.value} ({name})")
    told = ((_OUR_CHOICE, " and ".join(ours)), (_NOT_BY_CODE, ", ".join(never)))
    return [note.format(which) for note, which in told if which]


def _locate(finding: Departure, item: Item) -> Listed:
    record = item.record
    place = {name: getattr(record, name) for name in ("scenario_id", "repeat", "case_hash")} | {
        "name": record.unit_name
    }
    return Listed(**finding.model_dump(), **place, turn=item.turn.turn, role=item.reply.role, asked=item.reply.asked)


def _rate(by: Auditor, role: Role, kind: Kind, read: _Read, seed: int, known: Mapping[str, Measured]) -> Rate:
    own = [(item, judged[kind]) for item, judged in read if item.reply.role == role and kind in judged]
    found = [bool(listed) for _, listed in own]
    cases = [case_key(item.record) for item, _ in own]
    errors = {name: measured[role][kind] for name, measured in known.items() if kind in measured.get(role, {})}
    return Rate(
        role=role,
        by=by,
        kind=kind,
        found=sum(found) if own else None,
        per_reply=apparent_rate(found, cases, seed),
        sensitivity={name: counts.sensitivity for name, counts in errors.items()},
        specificity={name: counts.specificity for name, counts in errors.items()},
        corrected=corrected_rate(found, cases, errors["planted"], seed) if by == "reviewer" and errors else None,
    )
