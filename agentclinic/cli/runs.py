"""`agentclinic runs`, `view`, `report` and `card`: runs as a list, in the browser, and on paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import deliver, print_json, print_lines, progress
from agentclinic.config import suggestion
from agentclinic.errors import InputError
from agentclinic.report.tables import text_table
from agentclinic.results.run_folder import find_run

if TYPE_CHECKING:
    from agentclinic.report.runs import ListedRun

STATES = ("complete", "incomplete", "running", "unreadable")


@opt.with_output
def runs_command(
    folder: Annotated[Path, typer.Argument(help="Folder with runs; folders below it are searched, too.")] = Path(
        "runs"
    ),
    dataset: Annotated[str | None, typer.Option(help="Only runs whose data set contains this.")] = None,
    doctor: Annotated[str | None, typer.Option(help="Only runs whose doctor contains this, e.g. memory.")] = None,
    model: Annotated[str | None, typer.Option(help="Only runs whose doctor's model contains this.")] = None,
    state: Annotated[str | None, typer.Option(help="Only complete, incomplete, running or unreadable ones.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="List at most this many runs, those written to last.")
    ] = None,
    json: opt.Json = False,
) -> None:
    """List runs with their results, cost and state.

    Shows what was played, how often the doctor was right, what it cost, and whether the run is complete. Upper and
    lower case are the same in the filters.
    """
    from agentclinic.report.runs import list_runs

    if state is not None and state.lower() not in STATES:
        raise InputError(f"--state: {state!r} is not a state{suggestion(state, STATES)}")
    wanted = {"dataset": dataset, "doctor": doctor, "model": model, "state": state}
    found = [run for run in list_runs(folder) if all(_fits(getattr(run, key), part) for key, part in wanted.items())]
    if limit is not None:
        last = {run.path for run in sorted(found, key=lambda run: Path(run.path).stat().st_mtime_ns)[-limit:]}
        found = [run for run in found if run.path in last]
    if json:
        print_json(found)
        return
    if not found:
        print(f"no run in {folder}{' matches' if any(wanted.values()) else ''}")
        return
    head = ("run", "cases", "right (95%)", "cost", "state", "doctor")
    print_lines(*text_table(head, map(_row, found)))
    for run in found:
        if run.problem or run.note:
            print(f"{run.name}: {run.problem or run.note}")


def _fits(value: str | None, part: str | None) -> bool:
    return part is None or part.lower() in (value or "").lower()


def _row(run: ListedRun) -> tuple[str, ...]:
    from agentclinic.runs.budget import money
    from agentclinic.scoring.labels import played_by

    cases = str(run.encounters) if run.planned in (None, run.encounters) else f"{run.encounters} of {run.planned}"
    # Builtin roles are free and use no tokens; a cost that is not known is not 0.
    cost = "unknown" if run.cost_usd is None else money(run.cost_usd)
    played = played_by(run.doctor, run.model)
    if run.dataset and run.dataset not in run.name:  # most folders begin with their data set
        played += f" on {run.dataset}"
    if run.state == "unreadable":
        return run.name, "-", "-", "-", run.state, "-"
    return run.name, cases, run.right_text("-"), cost, run.state, played


def view_command(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder of runs, searched with its subfolders, or a run's folder or name, or latest."),
    ] = Path("runs"),
    export: Annotated[
        Path | None,
        typer.Option(
            help="Write the viewer to this folder instead, as files that open without a server.", metavar="DIR"
        ),
    ] = None,
    host: opt.Host = "127.0.0.1",
    port: opt.Port = 0,
    browser: opt.Browser = True,
) -> None:
    """Look at runs and their encounters in the browser.

    Lists, compares, filters and searches runs. Serves this machine only, until Ctrl-C, and follows runs in progress.
    """
    folder = folder if folder.is_dir() else find_run(folder)
    if export is not None:
        from agentclinic.viewer.export import export as write

        print(f"Viewer written to {write(folder, export, progress(quiet=False))}")
        return
    from agentclinic.viewer.server import password_for, serve, viewer_app

    app = viewer_app(folder, host=host, password=password_for(host))
    serve(app, host=host, port=port, browser=browser, say=lambda text: print(text, flush=True))


def report_command(
    runs: opt.ComparedArgument,
    format: Annotated[  # noqa: A002 - the name of the flag
        str | None,
        opt.output(help="html, md, json or csv. [default: by the output's extension, else html]"),
    ] = None,
    output: Annotated[
        Path | None,
        opt.output(
            "--output",
            "-o",
            help="File to write, or - to print. [default: report.html in the run's folder, or in the current folder "
            "for several runs]",
        ),
    ] = None,
    json: opt.Json = False,
    judge: opt.Judge = None,
    seed: opt.Seed = 0,
) -> None:
    """Write a report on one run, or on several side by side.

    html: a self-contained page with charts and every transcript. md: a summary. json: all numbers. csv: one line per
    encounter.
    """
    from agentclinic.report.files import chosen_format, gather, render, write_report

    if sys.stderr.isatty():
        sys.stderr.write("Reading the records and writing the report\n")
    if json:
        output, format = output or Path("-"), "json"  # noqa: A001 - the name of the flag
    if output is not None and str(output) == "-":
        sys.stdout.write(render(gather(runs, judge, seed), chosen_format(format, None)))
        return
    print(f"Report written to {write_report(runs, output, format, judge, seed)}")


def card_command(run: opt.RunArgument, *, judge: opt.Judge = None, output: opt.Output = None) -> None:
    """Write a model and settings card for a paper's appendix.

    Holds, in Markdown, what is needed to repeat the run, its results with intervals, its limits, and the items of
    reporting checklists that the run can answer; the other items are listed for the authors.
    """
    from agentclinic.report.card import card

    deliver(card(run, judge), output)
