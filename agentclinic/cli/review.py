"""`agentclinic data review`: sheets and a form for people who review cases, and what their verdicts say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import counted, print_json, print_lines
from agentclinic.config import RunSettings
from agentclinic.errors import InputError
from agentclinic.report.tables import line, plural, text_table
from agentclinic.scoring.format import as_number, as_percent

if TYPE_CHECKING:
    from agentclinic.cases.model import Case
    from agentclinic.lint.review import Merged, Summary

_CHOICE = ("scenarios", "sample", "seed", "lockbox")
_USUAL = "OpenOSCE"
_LOCKBOX = "The lockbox is scored once per release: show its cases to no one who will play or train on them."


@opt.with_fields({name: RunSettings.model_fields[name] for name in _CHOICE})
def export_command(
    dataset: Annotated[str, typer.Argument(help="A data set, or a case file.")],
    *,
    overrides: Mapping[str, Any],
    output: Annotated[Path, opt.output("--output", "-o", help="Folder to write to; must be new or empty.")],
    reviewer: Annotated[str, typer.Option(help="Name of the reviewer, for the form. [default: filled in later]")] = "",
    config: opt.Config = None,
) -> None:
    """Write sheets and a form for clinicians who review cases.

    Each case becomes a page that can be printed, with the answer behind a fold, so that reviewers can solve it first.
    The form is a CSV file with a row for each case and item of the checklist.
    """
    from agentclinic.cases.registry import load_cases, select
    from agentclinic.files import make_folder, write_whole
    from agentclinic.lint.review import COLUMNS, form_rows
    from agentclinic.report.review_sheet import case_page, index_page, status_of
    from agentclinic.report.tables import csv_table

    every = load_cases(dataset, opt.dataset_paths(config), lockbox=True)
    cases = sorted(select(every, **overrides), key=lambda case: case.scenario_id)
    _by_name(cases)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} exists and is kept; name a new folder")
    make_folder(output)
    pages = [f"{re.sub(r'[^A-Za-z0-9_.-]', '-', case.name)}.html" for case in cases]
    for case, page in zip(cases, pages, strict=True):
        write_whole(output / page, case_page(case), durable=False)
    form = f"verdicts-{re.sub(r'[^A-Za-z0-9_-]+', '-', reviewer)}.csv" if reviewer else "verdicts.csv"
    # Spreadsheets take a file without this mark for one in the code page of the country.
    write_whole(output / form, "\ufeff" + csv_table(COLUMNS, form_rows(cases, reviewer)))
    write_whole(output / "index.html", index_page(cases, pages, form))
    left_out = len(every) - len(cases)
    print_lines(
        f"{plural(len(cases), 'case')} written to {output}{f'; {left_out} left out' if left_out else ''}",
        f"Reviewers begin with {output / 'index.html'} and fill in {form}.",
        status_of(cases[0].dataset),
        *([_LOCKBOX] if overrides.get("lockbox") else []),
        f"Then: agentclinic data review import {quote(str(output))}"
        + (f" --dataset {quote(dataset)}" if dataset != _USUAL else ""),
    )


@opt.with_fields({"lockbox": RunSettings.model_fields["lockbox"]})
def import_command(
    files: Annotated[
        list[Path], typer.Argument(help="Filled-in forms, files of reviews, or folders with them.", metavar="FILE...")
    ],
    *,
    overrides: Mapping[str, Any],
    dataset: Annotated[str, typer.Option(help="The data set or case file that was reviewed.")] = _USUAL,
    reviewer: Annotated[
        str | None, typer.Option(help="Name of the reviewer, for forms in which that column is empty.")
    ] = None,
    outdated: Annotated[
        bool, typer.Option("--outdated", help="Also keep verdicts on cases that have changed since the export.")
    ] = False,
    output: Annotated[
        Path | None,
        opt.output("--output", "-o", help="File of reviews (JSON lines) to write; if it exists, they are added to it."),
    ] = None,
    config: opt.Config = None,
    json: opt.Json = False,
) -> None:
    """Check and merge reviewers' verdicts, and say what they found.

    Nothing is written if a line cannot be used; the error lists every such line. Prints the problems by kind, how far
    reviewers agree, and which of their blind answers the key accepts.
    """
    from agentclinic.cases.registry import load_cases
    from agentclinic.files import write_whole
    from agentclinic.lint.review import merge, read_reviews, review_files, summarize

    found_files = review_files(files)
    every = _by_name(load_cases(dataset, opt.dataset_paths(config), lockbox=True))
    opened = overrides.get("lockbox") is True
    cases = {name: case for name, case in every.items() if opened or not case.in_lockbox}
    kept = read_reviews([output], every) if output and output.is_file() else []
    given = [file for file in found_files if not (kept and output and file.samefile(output))]
    read = read_reviews(given, cases, reviewer, outdated=outdated)
    if not read:
        raise InputError(f"{', '.join(map(str, files))}: nothing is filled in")
    merged = merge(kept, read)
    if output:
        lines = (review.model_dump_json(exclude_none=True) for review in merged.reviews)
        write_whole(output, "".join(f"{one}\n" for one in lines))
    found = summarize([review for review in merged.reviews if review.case_id in cases], cases)
    if json:
        print_json(found)
    else:
        _show(found, merged, output)


def _by_name(cases: list[Case]) -> dict[str, Case]:
    """The cases by name; reviews could not tell two of the same name apart."""
    names: dict[str, Case] = {}
    for case in cases:
        if case.name in names:
            rows = f"rows {names[case.name].scenario_id} and {case.scenario_id}"
            raise InputError(f"{case.dataset}: {rows} are both called {case.name}; give each its own case_id")
        names[case.name] = case
    return names


def _show(found: Summary, merged: Merged, output: Path | None) -> None:
    reviewers = plural(len(found.reviewers), "reviewer")
    print_lines(
        f"{found.cases} of {plural(found.of_cases, 'case')} reviewed by {reviewers} ({', '.join(found.reviewers)}): "
        f"{plural(found.verdicts, 'verdict')}"
    )
    if found.outdated_cases:
        print_lines(f"{plural(found.outdated_cases, 'case')} reviewed only in an earlier version")
    head = ("", "ok", "problem", "unsure", "minor", "major", "critical", "changed since", "settled", "open")
    rows = [
        (
            one.item.value,
            *map(str, (one.ok, one.problem, one.unsure, *one.by_severity.values())),
            *map(str, (one.changed_since, one.settled, one.open)),
        )
        for one in found.items
    ]
    print_lines("", *text_table(head, rows, numbers=range(1, len(head))), "")
    if found.agreement.of:
        print_lines(
            f"Two reviewers agree: {as_percent(found.agreement)} of pairs of verdicts",
            f"Fleiss' kappa: {as_number(found.kappa)}",
        )
    if found.blind:
        unread = sum(one.accepted is None for one in found.blind)
        print_lines(
            f"Blind answers that the key accepts: {as_percent(found.blind_accepted)}"
            + (f"; {unread} more that the rules cannot read" if unread else "")
        )
        for one in found.blind:
            if not one.accepted:
                sure = f", {one.sure:g}% sure" if one.sure is not None else ""
                state = "cannot be read" if one.accepted is None else "not accepted"
                print_lines(f"  {one.case_id}: {line(one.answer)} ({one.reviewer}{sure}): {state}; {line(one.why)}")
    for title, listed in (("Open problems", found.open_problems), ("Remarks", found.remarks)):
        if listed:
            print_lines(f"{title}:")
        for review in listed:
            what = f"{review.item} ({review.severity}), " if review.severity else ""
            print_lines(f"  {review.case_id}: {what}{review.reviewer}: {line(review.remark)}")
    if output:
        counts = counted({"new": merged.new, "replaced": merged.replaced})
        print_lines(f"{plural(len(merged.reviews), 'review')} in {output} ({counts})")
