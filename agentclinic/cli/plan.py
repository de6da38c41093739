"""`agentclinic plan`: how many cases and repeats a comparison needs, under assumptions that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import print_json, print_lines
from agentclinic.errors import InputError
from agentclinic.report.tables import plural, text_table
from agentclinic.scoring.format import percent

REPEATS = (1, 3, 5)
BEYOND = (0, 10, 20, 30)
"""Points by which the assumed discordance exceeds the difference, if none is given."""


class Row(NamedTuple):
    """What one assumption leads to."""

    discordance: float
    repeats: int
    power: float | None
    """With the cases at hand; null if their number is not given."""
    needed: int | None
    """Cases that reach the power asked for; null if more than 100,000."""


@opt.with_output
def plan_command(
    difference: Annotated[
        float, typer.Option(help="True difference to find, in points of accuracy, e.g. 10.", metavar="POINTS")
    ],
    cases: Annotated[int | None, typer.Option(min=1, max=100_000, help="How many cases you have.")] = None,
    discordance: Annotated[
        float | None,
        typer.Option(
            help="Cases that one doctor gets right and the other wrong, as a percentage of all. [default: several]",
            metavar="PERCENT",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Run every scenario this many times.")] = 1,
    flip_rate: Annotated[
        float, typer.Option(help="Repeats of a case that differ, as `score` prints it.", metavar="PERCENT")
    ] = 0.0,
    power: Annotated[
        float,
        typer.Option(min=50, max=99, help="How often the difference should be found clear.", metavar="PERCENT"),
    ] = 80.0,
    json: opt.Json = False,
) -> None:
    """Say how many cases and repeats a comparison needs.

    The power depends on how many cases change with the other doctor, which no one knows before: it is an assumption,
    and without --discordance several are shown. Repeats help only as far as repeats of a case differ.
    """
    from agentclinic.scoring import power as planned

    if repeats > 1 and not flip_rate:
        raise InputError(
            f"--repeats {repeats}: repeats help only as far as they differ; give --flip-rate, which "
            "`agentclinic score` prints for a run with repeats"
        )
    difference = abs(difference)  # either doctor may be the better one
    gap, flips, level = difference / 100, flip_rate / 100, power / 100
    shares = [discordance / 100] if discordance is not None else [(difference + more) / 100 for more in BEYOND]
    possible = [share for share in shares if flips <= planned.most_flips(gap, share)]
    rows = []
    for share in possible or shares:  # what is not possible is refused there
        for times in sorted({*REPEATS, repeats}) if flips else REPEATS[:1]:
            found = planned.power(cases, gap, share, repeats=times, flip_rate=flips) if cases else None
            fewest = planned.needed(gap, share, repeats=times, flip_rate=flips, level=level)
            rows.append(Row(share, times, found, fewest))
    enough = None
    if cases and flips and discordance is not None:
        enough = planned.needed_repeats(cases, gap, shares[0], flips, level)
    if json:
        said = {"difference": gap, "cases": cases, "flip_rate": flips, "level": level, "repeats_needed": enough}
        print_json({**said, "rows": [row._asdict() for row in rows]})
        return
    lines = [f"Chance that `compare` finds a true difference of {difference:g} points clear, and cases for {power:g}%:"]
    lines += ["", *_table(rows, gap, cases, with_repeats=bool(flips)), ""]
    if cases and flips and discordance is not None:
        lines.append(_repeats_line(cases, enough, power))
    if discordance is None:
        lines.append(
            "How many cases change is an assumption; the fewest possible is the difference itself. Two earlier runs "
            "show it: `agentclinic compare A B --full` prints gained and lost. Then give --discordance."
        )
    if not flips:
        lines.append(
            "Repeats help only as far as repeats of a case differ. `agentclinic score` prints that share for a run "
            "with repeats. Then give --flip-rate."
        )
    print_lines(*lines)


def _table(rows: Sequence[Row], gap: float, cases: int | None, *, with_repeats: bool) -> list[str]:
    head = ["cases that change", "repeats", f"power with {plural(cases or 0, 'case')}", "cases needed"]
    body = [
        [
            f"{_short(row.discordance)} ({_short((row.discordance + gap) / 2)} gained, "
            f"{_short((row.discordance - gap) / 2)} lost)",
            str(row.repeats),
            percent(row.power, 0),
            "over 100,000" if row.needed is None else f"{row.needed:,}",
        ]
        for row in rows
    ]
    shown = [0, *([1] if with_repeats else []), *([2] if cases else []), 3]
    return text_table([head[i] for i in shown], [[row[i] for i in shown] for row in body], range(1, len(shown)))


def _short(share: float) -> str:
    return f"{round(100 * share, 2):g}%"


def _repeats_line(cases: int, enough: int | None, power: float) -> str:
    if enough is None:
        return f"Not even 100 repeats bring {plural(cases, 'case')} to {power:g}%: more cases are needed."
    return f"With {plural(cases, 'case')}, {plural(enough, 'repeat')} of each reach {power:g}%."
