"""`RUN/cases.jsonl`: the cases of a run, each once, so that nothing has to look for the data set again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import Case
from agentclinic.config import USED, read_json
from agentclinic.errors import InputError
from agentclinic.files import write_whole
from agentclinic.jsonl import loads, read_json_lines, read_lines
from agentclinic.privacy import DataClass
from agentclinic.results.record import Record

CASES = "cases.jsonl"
_NO_CASE = "a case of a run; restore the file"


def case_lines(cases: Iterable[Case]) -> list[str]:
    """Each case's row as it was written, with what is needed to read it back."""
    return [
        json.dumps(
            {
                "scenario_id": case.scenario_id,
                "case_hash": case.id,
                "dataset": case.dataset,
                "data_class": case.data_class.value,
                **({"image": case.image} if case.image else {}),
                "case": case.row,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for case in cases
    ]


def lines_digest(lines: Sequence[str]) -> str:
    """Hash of the exact lines: guards a run against changed cases, answer keys and objectives."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def write_cases(folder: Path, cases: Iterable[Case]) -> None:
    write_whole(folder / CASES, "".join(f"{line}\n" for line in case_lines(cases)))


def planned_units(folder: Path) -> Callable[[Record], bool] | None:
    """Tells whether a record belongs to a run's planned units; None if the folder does not say what was planned."""
    path, config = folder / CASES, folder / USED
    if not path.is_file() or not config.is_file():
        return None
    used = read_json(config)
    run = used.get("run") if isinstance(used, dict) else None
    repeats = run.get("repeats") if isinstance(run, dict) else None
    entries = (entry for _, entry in read_json_lines(path, _NO_CASE))
    cases = {f"{entry.get('scenario_id')}:{entry.get('case_hash')}" for entry in entries}
    most = repeats if isinstance(repeats, int) else 1
    return lambda record: f"{record.scenario_id}:{record.case_hash}" in cases and 0 <= record.repeat < most


def read_cases(folder: Path) -> list[Case]:
    """The cases of a run; empty for a run of an older version, which did not keep them."""
    path = folder / CASES
    if not path.is_file():
        return []
    # The file is written whole: an incomplete line is damage.
    return [_read(path, number, line) for number, line, _ in read_lines(path)]


def case_finder(folder: Path) -> Callable[[Record], Case | None]:
    """Finds the case of a record, and reads it only then.

    None for a record without a case's hash, and in a run of an older version, which did not keep its cases.
    """
    path = folder / CASES
    places: dict[tuple[str, str], tuple[int, int]] = {}
    if path.is_file():
        with path.open("rb") as file:
            start = 0
            for number, line in enumerate(file, 1):
                found = _BEGINNING.match(line)
                if found:
                    places[found[1].decode(), found[2].decode()] = (number, start)
                start += len(line)

    def find(record: Record) -> Case | None:
        place = places.get((str(record.scenario_id), record.case_hash or ""))
        if place is None:
            return None
        with path.open("rb") as file:
            file.seek(place[1])
            return _read(path, place[0], file.readline())

    return find


_BEGINNING = re.compile(rb'\{"scenario_id":(\d{1,12}),"case_hash":"(\w{1,64})"')
"""How the lines of `case_lines` begin."""


def _read(path: Path, number: int, line: str | bytes) -> Case:
    try:
        entry = loads(line)
        image = entry.get("image")
        if not isinstance(entry["scenario_id"], int) or not isinstance(image, str | None):
            raise ValueError("a field of another type")
        row = Row(path, number, entry["scenario_id"], {**entry["case"]})
        case = read_case(row, str(entry["dataset"]), default=DataClass(entry["data_class"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{path} line {number}: not {_NO_CASE}") from None
    if case.id != entry.get("case_hash"):
        raise InputError(
            f"{path} line {number}: the case was changed since the run (its hash is {case.id}); restore the file"
        )
    return replace(case, image=image)
