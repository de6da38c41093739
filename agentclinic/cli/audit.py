"""`agentclinic audit`: how far patient and laboratory kept to the chart, as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentclinic.audit.model import ROLES, Kind
from agentclinic.audit.run import AuditReport, Listed, Rate, audit_run
from agentclinic.cli.format import clipped, deliver
from agentclinic.config import suggestion
from agentclinic.errors import ConfigError
from agentclinic.report.spreadsheet import safe
from agentclinic.report.text import markdown_cell, markdown_table
from agentclinic.scoring.format import as_percent

_FORMATS = ("text", "md", "csv", "json")


def audit_command(
    place: Path,
    cases: Path | None,
    role: str | None,
    kind: str | None,
    format_: str,
    output: Path | None,
    seed: int,
    *,
    list_findings: bool,
) -> None:
    """Audit a run and print the result, or write it to a file; `role` and `kind` select what is shown."""
    if role is not None and role not in ROLES:
        raise ConfigError(f"role: {role!r} is not audited; choose {' or '.join(ROLES)}")
    if kind is not None and kind not in list(Kind):
        raise ConfigError(f"kind: unknown kind {kind!r}{suggestion(kind, Kind)}; choose one of {', '.join(Kind)}")
    if format_ not in _FORMATS:
        raise ConfigError(f"format: {format_!r} is not one of {', '.join(_FORMATS)}")
    report = audit_run(place, cases, seed)
    rates = [rate for rate in report.rates if role in (None, rate.role) and kind in (None, rate.kind)]
    findings = [f for f in report.findings if role in (None, f.role) and kind in (None, f.kind)]
    if format_ == "json":
        text = report.model_copy(update={"rates": rates, "findings": findings}).model_dump_json(indent=2) + "\n"
    elif format_ == "csv":
        text = _findings_csv(findings) if list_findings else _rates_csv(rates)
    else:
        show = _as_markdown if format_ == "md" else _as_text
        text = show(report, rates, findings if list_findings else [])
    deliver(text, output)


# --- for people -----------------------------------------------------------------------------------------------------


def _as_text(report: AuditReport, rates: list[Rate], findings: list[Listed]) -> str:
    lines = [_headline(report)]
    for role in dict.fromkeys(rate.role for rate in rates):
        lines += ["", f"{role} ({', '.join(report.models[role]) or 'no replies'}): {report.replies[role]} replies"]
        for rate in rates:
            if rate.role == role:
                found = f"{rate.found} of {rate.per_reply.n}"
                lines += [
                    f"  {rate.kind.value:20} {as_percent(rate.per_reply)} of replies, {found}",
                    f"  {'':20}   corrected {_corrected(rate)}",
                    f"  {'':20}   {as_percent(rate.per_encounter)} of encounters",
                ]
    for finding in findings:
        repeat = f", repeat {finding.repeat}" if finding.repeat else ""
        source = _source(finding)
        lines += [
            "",
            f"scenario {finding.scenario_id}{repeat}, turn {finding.turn}, {finding.role}: {finding.kind.value}",
            f"  asked  {clipped(finding.asked)}",
            f"  said   {clipped(finding.words)}",
            f"  {finding.why}" + (f" [{source}]" if source else ""),
        ]
    lines += ["", *[f"note: {note}" for note in report.notes], *_closing(report, findings)]
    return "\n".join(lines) + "\n"


def _as_markdown(report: AuditReport, rates: list[Rate], findings: list[Listed]) -> str:
    lines = [f"# Simulator audit: {markdown_cell(_headline(report))}", ""]
    lines += markdown_table(
        ("role", "kind", "replies with a finding", "corrected for the auditor's errors", "encounters"),
        [
            (
                r.role,
                r.kind.value,
                f"{r.found} of {r.per_reply.n}: {as_percent(r.per_reply)}",
                _corrected(r),
                as_percent(r.per_encounter),
            )
            for r in rates
        ],
    )
    if findings:
        rows = [(f.scenario_id, f.turn, f.role, f.kind.value, clipped(f.words), _source(f), f.why) for f in findings]
        lines += ["", *markdown_table(("scenario", "turn", "role", "kind", "words", "based on", "why"), rows)]
    lines += ["", *[f"- {note}" for note in [*report.notes, *_closing(report, findings)]]]
    return "\n".join(lines) + "\n"


def _headline(report: AuditReport) -> str:
    data = f" on {report.dataset}" if report.dataset else ""
    return f"{report.run}: {report.encounters} encounters{data}"


def _corrected(rate: Rate) -> str:
    if rate.corrected.value is None:
        return f"not given: {rate.corrected.note}"
    errors = f"sensitivity {rate.sensitivity:.2f}, specificity {rate.specificity:.2f} on {rate.reference} replies"
    note = f"; {rate.corrected.note}" if rate.corrected.note else ""
    bare = rate.corrected.model_copy(update={"note": None})
    return f"{as_percent(bare)} ({errors}{note})"


def _source(finding: Listed) -> str:
    """What the finding is based on: a place in the chart, a term, or both."""
    return " / ".join(part for part in (finding.path, finding.term) if part)


def _closing(report: AuditReport, findings: list[Listed]) -> list[str]:
    lines = ["Intervals are 95%, resampling cases. Rules made these findings, not a person; their errors are above."]
    if report.findings and not findings:
        lines.append(f"{len(report.findings)} findings; --list shows each with its words and what it is based on.")
    return lines


# --- for programs ---------------------------------------------------------------------------------------------------


def _rates_csv(rates: list[Rate]) -> str:
    columns = ["role", "kind", "replies", "found"]
    columns += [
        f"{name}_{end}" for name in ("per_reply", "corrected", "per_encounter") for end in ("value", "low", "high")
    ]
    columns += ["reference", "sensitivity", "specificity", "note"]
    rows = []
    for rate in rates:
        row: list[object] = [rate.role, rate.kind.value, rate.per_reply.n, rate.found]
        for estimate in (rate.per_reply, rate.corrected, rate.per_encounter):
            row += [estimate.value, estimate.low, estimate.high]
        rows.append([*row, rate.reference, rate.sensitivity, rate.specificity, rate.corrected.note])
    return _csv(columns, rows)


def _findings_csv(findings: list[Listed]) -> str:
    columns = ["scenario_id", "repeat", "case_hash", "turn", "role", "kind", "asked", "words", "path", "term", "why"]
    dumped = [finding.model_dump(mode="json") for finding in findings]
    return _csv(columns, [[safe(entry[column]) for column in columns] for entry in dumped])


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
