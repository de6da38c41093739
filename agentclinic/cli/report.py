"""`agentclinic report`: a report on runs, as a page, a text, numbers or a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agentclinic.cli.compare import run_names
from agentclinic.errors import InputError
from agentclinic.files import write_whole
from agentclinic.report.collect import Collected, collect
from agentclinic.report.files import FORMATS, Format, render, written_by_us
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import RECORDS


def report_and_show(
    places: Sequence[Path], output: Path | None, wanted: str | None, judge: str | None, seed: int
) -> None:
    """Write the report and say where; `-` as output prints it."""
    format_ = chosen_format(wanted, output)
    target = output or default_output(places, format_)
    if str(target) != "-":
        check_target(target, places)  # before the work, not after
    text = render(gather(places, judge, seed), format_)
    if str(target) == "-":
        sys.stdout.write(text)
        return
    write_whole(target, text)
    print(f"Report written to {target}")


def write_report(folder: Path) -> Path:
    """The report of a run that has just ended, in its folder."""
    target = default_output([folder], "html")
    check_target(target, [folder])
    write_whole(target, render(gather([folder], None, 0), "html"))
    return target


def gather(places: Sequence[Path], judge: str | None, seed: int) -> Collected:
    """Everything a report shows of these runs."""
    return collect([load_run(place, judge) for place in places], run_names(places), seed=seed)


def chosen_format(wanted: str | None, output: Path | None) -> Format:
    """The format asked for, or the one the output's name ends with, or a page."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise InputError(f"--format {wanted}: unknown; one of {', '.join(FORMATS)}")
        return FORMATS[wanted]
    ending = output.suffix.lower().lstrip(".") if output is not None else ""
    return FORMATS.get(ending, "html")


def default_output(places: Sequence[Path], format_: Format) -> Path:
    """`report.html` in the folder of a single run, in the current folder for several."""
    if len(places) > 1:
        return Path(f"report.{format_}")
    place = places[0]
    return (place if place.is_dir() else place.parent) / f"report.{format_}"


def check_target(target: Path, places: Sequence[Path]) -> None:
    """Refuse to write where it cannot be written, and over anything that is not a report."""
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name a file, e.g. -o {target / 'report.html'}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}; make it first")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{target.parent}: cannot be written to; name another place with -o FILE")
    sources = {(place / RECORDS if place.is_dir() else place).resolve() for place in places}
    if target.resolve() in sources:
        raise InputError(f"{target}: holds the records themselves; name another file with -o")
    if target.exists() and not written_by_us(target):
        raise InputError(f"{target}: exists and is not a report; name another file with -o")
