"""`agentclinic report` and `agentclinic card`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentclinic.cli.format import deliver
from agentclinic.cli.options import ComparedArgument, JsonOption, JudgeOption, OutputOption, RunArgument, SeedOption


def report_command(
    runs: ComparedArgument,
    format: Annotated[  # noqa: A002 - the name of the flag
        str | None,
        typer.Option(
            help="html, md, json or csv. [default: by the output's extension, else html]", rich_help_panel="Output"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write, or - to print. [default: report.html in the run's folder, or in the current folder "
            "for several runs]",
            rich_help_panel="Output",
        ),
    ] = None,
    json: JsonOption = False,
    judge: JudgeOption = None,
    seed: SeedOption = 0,
) -> None:
    """Write a report on one run, or on several side by side.

    html: a self-contained page with charts and every transcript. md: a summary. json: all numbers. csv: one line per
    encounter.
    """
    from agentclinic.report.files import chosen_format, gather, render, write_report

    if json:
        output, format = output or Path("-"), "json"  # noqa: A001 - the name of the flag
    if output is not None and str(output) == "-":
        sys.stdout.write(render(gather(runs, judge, seed), chosen_format(format, None)))
        return
    print(f"Report written to {write_report(runs, output, format, judge, seed)}")


def card_command(run: RunArgument, *, judge: JudgeOption = None, output: OutputOption = None) -> None:
    """Write a model and settings card for a paper's appendix.

    Holds, in Markdown, what is needed to repeat the run, its results with intervals, its limits, and the items of
    reporting checklists that the run can answer; the other items are listed for the authors.
    """
    from agentclinic.report.card import card

    deliver(card(run, judge), output)
