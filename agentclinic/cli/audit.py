"""`agentclinic audit`: what patient and laboratory made of the chart, as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path

from agentclinic.audit.model import ROLES, Kind, Role
from agentclinic.audit.run import AuditReport, Listed, Rate, audit_run
from agentclinic.config import suggestion
from agentclinic.errors import ConfigError, InputError
from agentclinic.files import write_whole
from agentclinic.scoring.estimates import Estimate

_FORMATS = ("text", "md", "csv", "json")
_WORDS_SHOWN = 160
"""Enough to find the place in a transcript; --format json has all."""


@dataclass(frozen=True)
class Chosen:
    """What is to be shown of an audit, and how."""

    role: Role | None
    kind: Kind | None
    format: str
    list_findings: bool


def chosen(role: str | None, kind: str | None, format_: str, *, list_findings: bool) -> Chosen:
    """Check what the command line names."""
    known = {each.value: each for each in Kind}
    if role is not None and role not in ROLES:
        raise ConfigError(f"role: {role!r} is not audited; choose {' or '.join(ROLES)}")
    if kind is not None and kind not in known:
        raise ConfigError(f"kind: unknown kind {kind!r}{suggestion(kind, known)}; there are {', '.join(known)}")
    if format_ not in _FORMATS:
        raise ConfigError(f"format: {format_!r} is not one of {', '.join(_FORMATS)}")
    of = next((each for each in ROLES if each == role), None)
    return Chosen(of, known[kind] if kind else None, format_, list_findings)


def audit_command(place: Path, cases: Path | None, show: Chosen, output: Path | None, seed: int) -> None:
    """Audit a run and print the result, or write it to a file."""
    deliver(shown(audit_run(place, cases, seed), show), output)


def deliver(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file and say so."""
    if output is None:
        sys.stdout.write(text)
        return
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}; make it, or name another file")
    write_whole(output, text)
    print(f"written to {output}")


def shown(report: AuditReport, show: Chosen) -> str:
    """An audit, or what is wanted of it, in the wanted format."""
    rates = [rate for rate in report.rates if show.role in (None, rate.role) and show.kind in (None, rate.kind)]
    findings = [f for f in report.findings if show.role in (None, f.role) and show.kind in (None, f.kind)]
    if show.format == "json":
        return report.model_copy(update={"rates": rates, "findings": findings}).model_dump_json(indent=2) + "\n"
    if show.format == "csv":
        return _findings_csv(findings) if show.list_findings else _rates_csv(rates)
    listed = findings if show.list_findings else []
    return as_markdown(report, rates, listed) if show.format == "md" else as_text(report, rates, listed)


# --- for people ------------------------------------------------------------------------------------------------------


def as_text(report: AuditReport, rates: list[Rate], findings: list[Listed]) -> str:
    """The audit for a terminal."""
    lines = [_headline(report)]
    for role in dict.fromkeys(rate.role for rate in rates):
        lines += ["", f"{role} ({', '.join(report.models[role]) or 'no replies'}): {report.replies[role]} replies"]
        for rate in rates:
            if rate.role == role:
                lines += [
                    f"  {rate.kind.value:20} {percent(rate.per_reply)} of replies, {rate.found} of {rate.per_reply.n}"
                ]
                lines += [f"  {'':20}   corrected {_corrected(rate)}"]
                lines += [f"  {'':20}   {percent(rate.per_encounter)} of encounters"]
    for finding in findings:
        lines += ["", *_finding_lines(finding)]
    lines += ["", *[f"note: {note}" for note in report.notes], *_closing(report, findings)]
    return "\n".join(lines) + "\n"


def _headline(report: AuditReport) -> str:
    data = f" on {report.dataset}" if report.dataset else ""
    return f"{report.run}: {report.encounters} encounters{data}"


def _corrected(rate: Rate) -> str:
    if rate.corrected.value is None:
        return f"not given: {rate.corrected.note}"
    errors = f"sensitivity {rate.sensitivity:.2f}, specificity {rate.specificity:.2f} on {rate.reference} replies"
    note = f"; {rate.corrected.note}" if rate.corrected.note else ""
    return f"{percent(rate.corrected)} ({errors}{note})"


def _finding_lines(finding: Listed) -> list[str]:
    repeat = f", repeat {finding.repeat}" if finding.repeat else ""
    rests = " / ".join(part for part in (finding.path, finding.term) if part)
    return [
        f"scenario {finding.scenario_id}{repeat}, turn {finding.turn}, {finding.role}: {finding.kind.value}",
        f"  asked  {_short(finding.asked)}",
        f"  said   {_short(finding.words)}",
        f"  {finding.why}" + (f" [{rests}]" if rests else ""),
    ]


def _closing(report: AuditReport, findings: list[Listed]) -> list[str]:
    lines = ["Intervals are 95 %, cases redrawn. Found by rules, not by a person: the auditor errs as stated above."]
    if report.findings and not findings:
        lines.append(f"{len(report.findings)} findings; --list shows each with its words and the place it rests on.")
    return lines


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _WORDS_SHOWN else flat[: _WORDS_SHOWN - 3] + "..."


def percent(estimate: Estimate) -> str:
    """A share in per cent with its interval, where there is one."""
    if estimate.value is None:
        return "unknown"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.1%}"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"


def as_markdown(report: AuditReport, rates: list[Rate], findings: list[Listed]) -> str:
    """The audit as tables for a paper's appendix."""
    lines = [f"# Simulator audit: {_cell(_headline(report))}", ""]
    lines += [
        "| role | kind | replies with a finding | corrected for the auditor's errors | encounters |",
        "|---|---|---|---|---|",
    ]
    for rate in rates:
        found = f"{rate.found} of {rate.per_reply.n}: {percent(rate.per_reply)}"
        lines.append(
            f"| {rate.role} | {rate.kind.value} | {found} | {_cell(_corrected(rate))} | {percent(rate.per_encounter)} |"
        )
    if findings:
        lines += ["", "| scenario | turn | role | kind | words | rests on | why |", "|---|---|---|---|---|---|---|"]
        for f in findings:
            rests = " / ".join(part for part in (f.path, f.term) if part)
            cells = (str(f.scenario_id), str(f.turn), f.role, f.kind.value, _short(f.words), rests, f.why)
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    lines += ["", *[f"- {note}" for note in report.notes], *[f"- {line}" for line in _closing(report, findings)]]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


# --- for programs ----------------------------------------------------------------------------------------------------


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
    return _csv(columns, [[_plain(getattr(finding, column)) for column in columns] for finding in findings])


def _plain(value: object) -> object:
    """A cell no spreadsheet takes for a formula: transcripts are other people's text."""
    if isinstance(value, Kind):
        return value.value
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _csv(columns: list[str], rows: list[list[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
