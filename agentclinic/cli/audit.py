"""`agentclinic audit`: how far patient and laboratory kept to the chart, as text, Markdown, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import clipped, counted, deliver, end_incomplete, finish, progress, tokens_used
from agentclinic.config import ROLE_NAMES, suggestion
from agentclinic.errors import ConfigError
from agentclinic.report.tables import csv_table, markdown_cell, markdown_table, plural, text_table
from agentclinic.scoring.format import as_percent, percent

if TYPE_CHECKING:
    from agentclinic.audit.model import Role
    from agentclinic.audit.run import AuditReport, Listed, Rate
    from agentclinic.scoring.stats import Proportion

_FORMATS = ("text", "md", "csv", "json")
_NOT_AUDITED = "not audited"
_BOUND = "Each count is of the replies that could be audited for it; what code finds is a lower bound."


@opt.with_settings("workers", "prompts_dir", limits=False)
def audit_command(
    run: opt.RunArgument,
    *,
    read: opt.Read,
    reviewer: Annotated[
        str | None,
        typer.Option(help="Language model that also judges free-text replies. Its reviews are kept in RUN/reviews/."),
    ] = None,
    reviewer_endpoint: Annotated[
        str | None, typer.Option(help="Endpoint of the reviewer, by its name in `endpoints`.")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Measure the reviewer's errors on 330 planted replies and correct its rates."),
    ] = False,
    all_replies: Annotated[
        bool, typer.Option("--all-replies", help="Have the reviewer also judge replies whose facts are recorded.")
    ] = False,
    cases: Annotated[
        Path | None, typer.Option(help="Case file to use instead of the run's own cases; matched by content.")
    ] = None,
    seed: opt.Seed = 0,
    role: Annotated[str | None, opt.output(help="Only this role: patient or measurement.")] = None,
    kind: Annotated[str | None, opt.output(help="Only this kind, e.g. invented_number.")] = None,
    list_findings: Annotated[
        bool, opt.output("--list", help="Also list each finding with the reply and the chart's words.")
    ] = False,
    full: opt.Full = False,
    format: Annotated[  # noqa: A002 - the name of the flag
        str, opt.output(help="text, md, csv or json.")
    ] = "text",
    json: opt.Json = False,
    output: opt.Output = None,
    quiet: opt.Quiet = False,
) -> None:
    """Check the replies of patient and laboratory.

    Code compares them with the chart and finds invented numbers, diseases named without reason, the diagnosis, parts
    of the chart that were not asked for, and plain cases of a false denial or a withheld result; without --reviewer no
    model is called. A reviewer also finds what is invented, contradicted or left out in free text, and contradictions
    between replies. What neither can judge is "not audited". Nothing is played again.
    """
    from agentclinic.audit.model import ROLES, Kind
    from agentclinic.audit.run import audit_run, review_run

    if role is not None and role not in ROLES:  # before anything is paid for
        raise ConfigError(f"role: {role!r} is not audited; choose {' or '.join(ROLES)}")
    if kind is not None and kind not in list(Kind):
        raise ConfigError(f"kind: unknown kind {kind!r}{suggestion(kind, Kind)}")
    written_as = "json" if json else format
    if written_as not in _FORMATS:
        raise ConfigError(f"format: {format!r} is not one of {', '.join(_FORMATS)}")

    def show(report: AuditReport) -> None:
        report = _only(report, role, kind)
        deliver(_written(report, written_as, list_findings=list_findings, full=full), output)

    if reviewer is None:
        if calibrate or all_replies or reviewer_endpoint:
            raise ConfigError("--calibrate, --all-replies and --reviewer-endpoint need a --reviewer MODEL")
        show(audit_run(run, cases, seed))
        return
    report = finish(
        review_run,
        run,
        read(),
        (reviewer, reviewer_endpoint),
        cases=cases,
        seed=seed,
        every_reply=all_replies,
        calibrate=calibrate,
        progress=progress(quiet=quiet),
    )
    show(report)
    both = [reviews for reviews in (report.reviewer, report.calibration) if reviews]
    left = {"failed": sum(r.failed for r in both), "not tried": sum(r.not_tried for r in both)}
    if any(left.values()):
        why = next((f": {r.reason}" for r in both if r.reason), "")
        message = f"reviews: {counted(left)}{why}\nRun the same command again to review the rest."
        end_incomplete(message, interrupted=any(r.interrupted for r in both))


def _only(report: AuditReport, role: str | None, kind: str | None) -> AuditReport:
    """What the report says of a role and of a kind."""

    def wanted(entry: Rate | Listed) -> bool:
        return role in (None, entry.role) and kind in (None, entry.kind)

    return report.model_copy(
        update={
            "rates": [rate for rate in report.rates if wanted(rate)],
            "findings": [finding for finding in report.findings if wanted(finding)],
        }
    )


def _written(report: AuditReport, format: str, *, list_findings: bool, full: bool) -> str:  # noqa: A002 - the flag
    if format == "json":
        return report.model_dump_json(indent=2) + "\n"
    if format == "csv":
        return _findings_csv(report.findings) if list_findings else _rates_csv(report.rates)
    as_written = _as_markdown if format == "md" else _as_text if full else _short_text
    return as_written(report, list_findings=list_findings)


# --- for people -----------------------------------------------------------------------------------------------------


def _short_text(report: AuditReport, *, list_findings: bool) -> str:
    """One table and one sentence."""
    roles = list(dict.fromkeys(rate.role for rate in report.rates))
    found = {(rate.role, rate.by, rate.kind): rate for rate in report.rates}
    rows = []
    for by, kind in dict.fromkeys((rate.by, rate.kind) for rate in report.rates):
        name = f"{kind.value}{'' if by == 'code' else ' (reviewer)'}"
        cells = [found.get((role, by, kind)) for role in roles]
        rows.append([name, *(_cell(rate) if rate else _NOT_AUDITED for rate in cells)])
    head = [
        "replies with",
        *(f"{ROLE_NAMES[role]} ({', '.join(report.models[role]) or 'no replies'})" for role in roles),
    ]
    lines = [_headline(report), *text_table(head, rows), "", _sentence(report, roles)]
    if list_findings:
        lines += _list_findings(report)
    lines += _remarks(report)
    more = " --list shows each finding;" if report.findings and not list_findings else ""
    lines.append(f"{_BOUND}{more} --full adds how far each figure can be trusted.")
    return "\n".join(lines) + "\n"


def _cell(rate: Rate) -> str:
    if rate.found is None:
        return _NOT_AUDITED
    right = rate.corrected
    corrected = f", corrected {percent(right.value)}" if right is not None and right.value is not None else ""
    share = f" ({percent(rate.per_reply.value)})" if rate.found else ""
    return f"{rate.found} of {rate.per_reply.n}{share}{corrected}"


def _sentence(report: AuditReport, roles: Sequence[Role]) -> str:
    """How many replies have any finding."""
    if all(rate.found is None for rate in report.rates):
        return "Nothing could be audited."
    bad = {role: {(f.scenario_id, f.repeat, f.turn) for f in report.findings if f.role == role} for role in roles}
    if not any(bad.values()):
        replies = " and ".join(f"{report.replies[role]} of the {ROLE_NAMES[role]}" for role in roles)
        total = plural(sum(report.replies[role] for role in roles), "reply", "replies")
        return f"Nothing found in what could be audited of {total} ({replies})."
    parts = [f"{len(bad[role])} of {report.replies[role]} replies of the {ROLE_NAMES[role]}" for role in roles]
    return f"Something was found in {' and '.join(parts)}."


def _as_text(report: AuditReport, *, list_findings: bool) -> str:
    lines = [_headline(report)]
    for role in dict.fromkeys(rate.role for rate in report.rates):
        models = ", ".join(report.models[role]) or "no replies"
        lines += ["", f"{ROLE_NAMES[role]} ({models}): {plural(report.replies[role], 'reply', 'replies')}"]
        for by in dict.fromkeys(rate.by for rate in report.rates):
            lines.append(f"  found by {'code' if by == 'code' else 'the reviewer'}")
            for rate in report.rates:
                if (rate.role, rate.by) == (role, by):
                    lines.append(f"    {rate.kind.value:19}{_found(rate)}")
                    lines += [f"    {'':19}  {detail}" for detail in _details(rate)]
    if list_findings:
        lines += _list_findings(report)
    return "\n".join([*lines, "", *_closing(report, list_findings=list_findings)]) + "\n"


def _list_findings(report: AuditReport) -> list[str]:
    lines = []
    for finding in report.findings:
        lines += [
            "",
            f"{finding.name}, turn {finding.turn}, {finding.role}: {finding.kind.value}",
            f"  asked  {clipped(finding.asked)}",
            f"  {'chart' if finding.path else 'said '}  {clipped(finding.words)}",
            f"  {finding.why}" + (f" [{finding.path}]" if finding.path else ""),
        ]
    return lines


def _as_markdown(report: AuditReport, *, list_findings: bool) -> str:
    lines = [f"# Simulator audit: {markdown_cell(_headline(report))}", ""]
    rows = [(r.role, r.by, r.kind.value, _found(r), "; ".join(_details(r))) for r in report.rates]
    lines += markdown_table(("role", "found by", "kind", "replies with a finding", "how far to trust it"), rows)
    if report.findings and list_findings:
        columns = ("case", "turn", "role", "kind", "by", "words", "path", "why")
        found = [
            (f.name, f.turn, f.role, f.kind.value, f.by, clipped(f.words), f.path or "", f.why) for f in report.findings
        ]
        lines += ["", *markdown_table(columns, found)]
    closing = _closing(report, list_findings=list_findings)
    return "\n".join([*lines, "", *(f"- {line}" for line in closing)]) + "\n"


def _headline(report: AuditReport) -> str:
    data = f" on {report.dataset}" if report.dataset else ""
    return f"{report.run}: {plural(report.encounters, 'encounter')}{data}"


def _found(rate: Rate) -> str:
    if rate.found is None:
        return _NOT_AUDITED
    return f"{rate.found} of {rate.per_reply.n}: {as_percent(rate.per_reply)}"


def _details(rate: Rate) -> Iterator[str]:
    errors = [
        f"on {name} replies {_of(sensitivity)} and {_of(rate.specificity[name])}"
        for name, sensitivity in rate.sensitivity.items()
    ]
    if errors and rate.found is not None:
        yield f"sensitivity and specificity {'; '.join(errors)}"
    if rate.corrected is not None:
        yield f"corrected {as_percent(rate.corrected)}"


def _of(share: Proportion) -> str:
    return f"{percent(share.value, 0)} (of {share.of})"


def _closing(report: AuditReport, *, list_findings: bool) -> list[str]:
    lines = [*_remarks(report), f"Intervals are 95%, resampling cases. {_BOUND}"]
    if report.findings and not list_findings:
        lines.append(
            f"{plural(len(report.findings), 'finding')}; --list shows each with its words and what it is based on."
        )
    return lines


def _remarks(report: AuditReport) -> list[str]:
    """The notes, what the reviewer did, and what it used."""
    lines = [f"note: {note}" for note in report.notes]
    for name, reviews in (("reviewer", report.reviewer), ("reviewer on planted replies", report.calibration)):
        if reviews:
            tokens = tokens_used(reviews.usage.input_tokens, reviews.usage.output_tokens, "tokens unknown")
            lines.append(
                f"{name} {reviews.model}: {plural(reviews.reviewed, 'reply', 'replies')} reviewed, "
                f"{plural(reviews.failed, 'review')} failed, "
                f"{reviews.not_tried} not tried; {tokens}; {reviews.path}"
            )
    return lines


# --- for programs ---------------------------------------------------------------------------------------------------


def _rates_csv(rates: list[Rate]) -> str:
    columns = ["role", "by", "kind", "replies", "found"]
    columns += [f"{name}_{end}" for name in ("per_reply", "corrected") for end in ("value", "low", "high")]
    columns += [f"{name}_{on}" for on in ("planted", "labelled") for name in ("sensitivity", "specificity")]
    rows = []
    for rate in rates:
        found = _NOT_AUDITED if rate.found is None else rate.found
        row: list[object] = [rate.role, rate.by, rate.kind.value, rate.per_reply.n, found]
        for estimate in (rate.per_reply, rate.corrected):
            row += [estimate.value, estimate.low, estimate.high] if estimate else [None] * 3
        for on in ("planted", "labelled"):
            row += [share[on].value if on in share else None for share in (rate.sensitivity, rate.specificity)]
        rows.append(row)
    return csv_table(columns, rows)


def _findings_csv(findings: list[Listed]) -> str:
    columns = ["scenario_id", "repeat", "case_hash", "turn", "role", "by", "kind", "asked", "words", "path", "why"]
    dumped = [finding.model_dump(mode="json") for finding in findings]
    return csv_table(columns, [[entry[column] for column in columns] for entry in dumped])
