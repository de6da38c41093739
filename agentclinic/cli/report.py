"""`agentclinic report` and `agentclinic card`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from agentclinic.cli.format import deliver
from agentclinic.report.card import card
from agentclinic.report.files import chosen_format, gather, render, write_report


def report_command(
    places: Sequence[Path], output: Path | None, wanted: str | None, judge: str | None, seed: int
) -> None:
    """Write the report and say where; `-` as output prints it."""
    if output is not None and str(output) == "-":
        sys.stdout.write(render(gather(places, judge, seed), chosen_format(wanted, None)))
        return
    print(f"Report written to {write_report(places, output, wanted, judge, seed)}")


def card_command(run: Path, judge: str | None, output: Path | None) -> None:
    """Print a run's card, or write it to a file."""
    deliver(card(run, judge), output)
