"""`agentclinic data`: list, fetch, new and check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from json import dumps, loads
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import counted, deliver, print_json, print_lines
from agentclinic.config import suggestion
from agentclinic.errors import InputError
from agentclinic.report.tables import plural, text_table

if TYPE_CHECKING:
    from agentclinic.lint.check import FileReport, Overlap
    from agentclinic.lint.quality import Located


class DatasetRow(NamedTuple):
    name: str
    path: str
    rows: int | None
    """None if the file does not exist, and for worlds, whose cases are drawn."""
    images: bool
    about: str


@opt.with_output
def list_command(config: opt.Config = None, json: opt.Json = False) -> None:
    """List the known data sets and whether their files exist."""
    from agentclinic.cases.fetch import PUBLIC
    from agentclinic.cases.solvable import is_world

    rows = list_datasets(opt.dataset_paths(config))
    if json:
        print_json([row._asdict() for row in rows])
        return
    table = [("data set", "rows", "images", "file", "about")]
    for row in rows:
        count = "any" if is_world(row.name) else "no file" if row.rows is None else str(row.rows)
        table.append((row.name, count, "yes" if row.images else "", row.path, row.about))
    print_lines(*text_table(table[0], table[1:], numbers=(1,)))
    if any(row.rows is None and not is_world(row.name) for row in rows):
        print_lines(
            f"\n`agentclinic data fetch NAME` gets {', '.join(PUBLIC)}. Put any other missing file at its path, or set "
            "its path under `datasets` in agentclinic.config.json."
        )


def list_datasets(paths: Mapping[str, str]) -> list[DatasetRow]:
    """The data sets and worlds that come with the program or are named in the config, with the rows in their files."""
    from agentclinic.cases.registry import DATASETS, resolve
    from agentclinic.cases.solvable import PREFIX
    from agentclinic.worlds.model import BUNDLED, bundled, read_world

    rows = []
    for name in [*DATASETS, *(name for name in paths if name not in DATASETS)]:
        known = DATASETS.get(name)
        _, path, _ = resolve(name, paths)
        shown = "(in the package)" if known and known.bundled and name not in paths else str(path)
        about = known.about if known else "named in the config"
        rows.append(DatasetRow(name, shown, _count(path), known.images if known else False, about))
    for name in bundled():
        about = f"{read_world(BUNDLED / f'{name}.json').title}: drawn by seed; not validated by clinicians"
        rows.append(DatasetRow(f"{PREFIX}{name}", "(in the package)", None, False, about))
    return rows


def _count(path: Path) -> int | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


def fetch_command(
    names: Annotated[list[str], typer.Argument(help="MedQA, MedQA_Ext, NEJM or NEJM_Ext.", metavar="NAME...")],
    config: opt.Config = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            help="Address of a folder with copies of the files, to use instead of their repository.",
            envvar="AGENTCLINIC_MIRROR",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        opt.output("--output", "-o", help="Folder to write to. [default: where --dataset NAME looks for the file]"),
    ] = None,
    force: Annotated[bool, opt.output("--force", help="Replace a file that differs from the published one.")] = False,
    json: opt.Json = False,
) -> None:
    """Download public data sets.

    Size and checksum are checked before anything is written; source, checksum and license are shown.
    """
    from agentclinic.cases.fetch import fetch, public_file

    paths = opt.dataset_paths(config)
    for name in names:  # a wrong name is found before anything is fetched
        public_file(name)
    rows: list[dict[str, object]] = []
    for name in names:
        file = public_file(name)
        path, new = fetch(name, paths, folder=output, mirror=mirror, force=force)
        facts = {"source": file.address, "bytes": file.size, "sha256": file.sha256, "license": file.license}
        rows.append({"name": name, "path": str(path), "fetched": new, **facts})
        if json:
            continue
        print(f"{name}: {'written to' if new else 'already at'} {path}")
        print(f"  source   {file.address}\n  size     {file.size:,} bytes\n  SHA-256  {file.sha256} (checked)")
        print(f"  license  {file.license}")
        print(f"Play it with: agentclinic run --dataset {quote(str(path)) if output else name}")
    if json:
        print_json(rows)


def new_command(
    format_: Annotated[str, typer.Argument(help="OSCE or NEJM (docs/datasets.md).", metavar="FORMAT")],
    output: Annotated[
        Path | None, opt.output("--output", "-o", help="File to write; must not exist. [default: print]")
    ] = None,
) -> None:
    """Write an example row to start your own data set from.

    The row is complete and has annotations.
    """
    from agentclinic.cases.formats import FORMATS

    names = [known.name for known in FORMATS]
    if format_.upper() not in names:
        raise InputError(f"unknown format {format_!r}{suggestion(format_.upper(), names)}")
    if output and output.exists():
        raise InputError(f"{output} exists and is kept; name another file")
    template = files("agentclinic") / "cases" / "templates" / f"{format_.lower()}.json"
    deliver(dumps(loads(template.read_text("utf-8")), ensure_ascii=False) + "\n", output)
    if output:
        print(f"Change it, add rows, and check the file with: agentclinic data check {quote(str(output))}")


@opt.with_output
def check_command(
    files: Annotated[list[str], typer.Argument(help="Case files, or names of data sets.")],
    config: opt.Config = None,
    leaks: Annotated[bool, typer.Option("--leaks", help="List every leak, not only how many there are.")] = False,
    quality: Annotated[
        bool,
        typer.Option("--quality", help="Also check units, physiology, the person, annotations and twins."),
    ] = False,
    json: opt.Json = False,
) -> None:
    """Check case files for errors, duplicates and leaks.

    Checks the schema, and looks for duplicates within and between files and for cases that name their own diagnosis.
    The exit code is 2 if a row cannot be read as a case, and 1 if --quality finds an error.
    """
    from agentclinic.cases.registry import resolve
    from agentclinic.lint.chart import Severity
    from agentclinic.lint.check import check_file, overlaps
    from agentclinic.lint.quality import check_file_quality

    paths = opt.dataset_paths(config)
    reports = []
    for name in files:
        dataset, path, expected = resolve(name, paths)
        reports.append(check_file(path, dataset, expected))
    shared = list(overlaps(reports))
    problems = [check_file_quality(report.cases) for report in reports] if quality else []
    if json:
        print_json(_as_json(reports, shared, problems))
    else:
        _show(reports, shared, show_leaks=leaks)
        for report, found in zip(reports, problems, strict=False):
            _show_quality(report, found)
    if any(report.errors for report in reports):
        raise SystemExit(2)
    if any(located.problem.severity is Severity.ERROR for found in problems for located in found):
        raise SystemExit(1)


def _show_quality(report: FileReport, found: Sequence[Located]) -> None:
    from agentclinic.lint.chart import Severity

    severities = Counter(located.problem.severity for located in found)
    print(f"{report.path}: quality: {counted({kind: severities[kind] for kind in Severity})}")
    for at in found:
        row = f"row {at.scenario_id}" + (f" ({at.case_id})" if at.case_id else "")
        print(f"  {row}: {at.problem.severity} {at.problem.code} at {at.problem.path}: {at.problem.message}")


def _show(reports: Sequence[FileReport], shared: Sequence[Overlap], *, show_leaks: bool) -> None:
    from agentclinic.cases.leaks import Leak

    for report in reports:
        kinds = Counter(kind for kind, _ in {(leak.kind, leak.scenario_id) for leak in report.leaks})
        print(
            f"{report.path}: {plural(report.rows, 'row')}, {len(report.errors)} unreadable, "
            f"{plural(len(report.duplicates), 'duplicate')}"
        )
        print(f"  cases that name their own diagnosis: {counted({kind: kinds[kind] for kind in Leak})}")
        for error in report.errors:
            print(f"  {error}")
        for first, copy in report.duplicates:
            print(f"  row {copy} is a copy of row {first}")
        for leak in report.leaks if show_leaks else ():
            print(f"  row {leak.scenario_id}: {leak.kind} at {leak.path}: {leak.phrase!r}")
    sizes = {report.path: len(report.cases) for report in reports}
    for overlap in shared:
        print(
            f"in both files: {plural(len(overlap.pairs), 'case')}, {overlap.first} (of {sizes[overlap.first]}) "
            f"and {overlap.second} (of {sizes[overlap.second]})"
        )
    if not show_leaks and any(report.leaks for report in reports):
        print("--leaks lists every place.")


def _as_json(
    reports: Sequence[FileReport], shared: Sequence[Overlap], problems: Sequence[Sequence[Located]]
) -> dict[str, object]:
    files: list[dict[str, object]] = []
    for place, report in enumerate(reports):
        entry = {
            "path": report.path,
            "rows": report.rows,
            "errors": [str(error) for error in report.errors],
            "duplicates": report.duplicates,
            "leaks": [asdict(leak) for leak in report.leaks],
        }
        if problems:
            entry["problems"] = [
                {"scenario_id": located.scenario_id, "case_id": located.case_id, **asdict(located.problem)}
                for located in problems[place]
            ]
        files.append(entry)
    return {
        "files": files,
        "overlaps": [asdict(overlap) for overlap in shared],
    }
