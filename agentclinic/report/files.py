"""The formats of a report, where it is written, and how a file is recognized as a report."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Literal, get_args

from agentclinic.config import read_json
from agentclinic.errors import InputError
from agentclinic.files import write_whole
from agentclinic.report.collect import Collected, collect
from agentclinic.report.encounters import Encounter
from agentclinic.report.markdown import markdown
from agentclinic.report.page import MARK, page
from agentclinic.report.statements import statements
from agentclinic.report.tables import csv_table
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import ARMS, RECORDS, SWEEP
from agentclinic.scoring.metrics import columns

Format = Literal["html", "md", "json", "csv"]
_FORMATS: dict[str, Format] = {name: name for name in get_args(Format)}
"""By name, which is also the file's extension."""
_COLUMNS = [f.name for f in fields(Encounter) if f.name not in ("decided_by", "block", "position", "chart", "regret")]
HEAD = "agentclinic_run,"
"""How a CSV file begins."""
_STARTS = (f"<!-- {MARK} -->", f'{{\n  "made_by": "{MARK}"', HEAD)
"""How the formats other than html begin."""


def render(collected: Collected, format_: Format) -> str:
    if format_ == "html":
        return page(collected)
    if format_ == "md":
        return markdown(collected, MARK)
    if format_ == "csv":
        return spreadsheet(collected)
    said = [
        [{"kind": kind, "text": text} for kind, texts in statements(run).items() for text in texts]
        for run in collected.report.runs
    ]
    numbers = collected.report.model_dump(mode="json")
    return json.dumps({"made_by": MARK, **numbers, "statements": said}, ensure_ascii=False, indent=2) + "\n"


def spreadsheet(collected: Collected) -> str:
    """Every encounter of every run on one line: what is known about it, its metrics, and who decided."""
    metrics = {name: metric for name, metric in columns().items() if name not in _COLUMNS}
    lines = (
        [
            *(run.name, run.label),
            *(_value(one, column) for column in _COLUMNS),
            *(metric.of_encounter(row) for metric in metrics.values()),
            one.decided_by,
        ]
        for place, run in enumerate(collected.report.runs)
        for one, row in zip(collected.encounters[place], collected.rows[place], strict=True)
    )
    return csv_table([HEAD.rstrip(","), "label", *_COLUMNS, *metrics, "decided_by"], lines)


def _value(one: Encounter, column: str) -> object:
    value = getattr(one, column)
    if column == "reasons":
        return "; ".join(reason.text for reason in one.reasons)
    return int(value) if isinstance(value, bool) else value


def write_report(
    places: Sequence[Path],
    output: Path | None = None,
    wanted: str | None = None,
    judge: str | None = None,
    seed: int = 0,
) -> Path:
    """Write a report on these runs and return its path; `judge` names verdicts to use instead of the recorded ones."""
    format_ = chosen_format(wanted, output)
    target = output or _default_output(places, format_)
    _check_target(target, places)  # before the work, not after
    write_whole(target, render(gather(places, judge, seed), format_))
    return target


def runs_in(places: Sequence[Path]) -> list[Path]:
    """The places, with the folder of a sweep replaced by its arms: first the baseline, then the others as planned."""
    return [run for place in places for run in _arms(place) or [place]]


def _arms(place: Path) -> list[Path]:
    if (place / RECORDS).exists() or not (place / ARMS).is_dir():
        return []
    played = sorted(path.parent for path in (place / ARMS).glob(f"*/{RECORDS}"))
    if not played:
        raise InputError(f"{place}: nothing of this sweep has been played yet")
    listed = read_json(place / SWEEP) if (place / SWEEP).is_file() else {}
    order = [place / ARMS / str(name) for name in listed.get(ARMS) or ()] if isinstance(listed, dict) else []
    return sorted(played, key=lambda arm: order.index(arm) if arm in order else len(order))


def run_names(places: Sequence[Path]) -> list[str]:
    """Short names of runs; their whole paths if the names are the same."""
    folders = [place if place.is_dir() else place.parent if place.name == RECORDS else None for place in places]
    short = [(folder and folder.name) or place.stem for folder, place in zip(folders, places, strict=True)]
    return [name if short.count(name) == 1 else str(place) for name, place in zip(short, places, strict=True)]


def gather(places: Sequence[Path], judge: str | None, seed: int) -> Collected:
    places = runs_in(places)
    return collect([load_run(place, judge) for place in places], run_names(places), seed=seed)


def chosen_format(wanted: str | None, output: Path | None) -> Format:
    """The format asked for, else the one of the output's extension, else html."""
    if wanted is not None:
        if wanted not in _FORMATS:
            raise InputError(f"--format {wanted}: unknown format; choose one of {', '.join(_FORMATS)}")
        return _FORMATS[wanted]
    extension = output.suffix.lower().lstrip(".") if output is not None else ""
    return _FORMATS.get(extension, "html")


def _default_output(places: Sequence[Path], format_: Format) -> Path:
    """`report.html` in the folder of a single run, or in the current folder for several runs."""
    if len(places) > 1:
        return Path(f"report.{format_}")  # a sweep is one place: its report goes into its folder
    place = places[0]
    return (place if place.is_dir() else place.parent) / f"report.{format_}"


def _check_target(target: Path, places: Sequence[Path]) -> None:
    """Refuse a place that cannot be written to, and any existing file that is not a report."""
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name a file, e.g. -o {target / 'report.html'}")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}; create it first")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{target.parent}: cannot be written to; name another place with -o FILE")
    sources = {(place / RECORDS if place.is_dir() else place).resolve() for place in runs_in(places)}
    if target.resolve() in sources:
        raise InputError(f"{target}: contains the run's records; name another file with -o")
    if target.exists() and not _is_report(target):
        raise InputError(f"{target}: exists and is not a report; name another file with -o")


def _is_report(path: Path) -> bool:
    """Whether a file is a report in any format, or empty."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError:
        return False
    is_page = start.startswith(b"<!doctype html>") and f'content="{MARK}"'.encode() in start
    return not start or is_page or any(start.startswith(begin.encode()) for begin in _STARTS)
