"""`agentclinic study reliability`: how far runs can be trusted to rank doctors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import print_json, print_lines
from agentclinic.cli.judge import names_in


@opt.with_output
def reliability_command(
    runs: Annotated[
        list[Path],
        opt.run(help="Runs of different doctors: folders or files of records, names, latest.", metavar="RUN..."),
    ],
    judges: Annotated[
        str, typer.Option(help="Names in RUN/judgements/, or `recorded`, separated by commas.", show_default=True)
    ] = "recorded",
    seed: opt.Seed = 0,
    json: opt.Json = False,
) -> None:
    """Find out how many cases and repeats a ranking of doctors takes.

    Each run is one doctor; all on the same cases. Splits the variance of the verdicts into doctor, case, doctor × case,
    repeat and, with several judges, judge. Prints the G and Φ coefficients, Φ for other numbers of cases and repeats,
    which cases tell the doctors apart, and what these runs cannot show. The folder of a sweep stands for its arms.
    """
    from agentclinic.report.files import run_names, runs_in
    from agentclinic.report.reliability import text
    from agentclinic.scoring.reliability import RECORDED, load_judged, reliability_of

    places = runs_in(runs)
    judged = [load_judged(place, names_in(judges) or [RECORDED]) for place in places]
    report = reliability_of(dict(zip(run_names(places), judged, strict=True)), seed=seed)
    if json:
        print_json(report)
    else:
        print_lines(*text(report))
