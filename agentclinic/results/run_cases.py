"""`RUN/cases.jsonl`: the cases of a run, each once, so that nothing has to look for the data set again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import Case
from agentclinic.errors import InputError
from agentclinic.files import read_limited, write_whole
from agentclinic.jsonl import loads, read_lines
from agentclinic.privacy import DataClass
from agentclinic.results.record import Record
from agentclinic.results.run_folder import read_used

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
    return _digest("\n".join(lines).encode("utf-8", "backslashreplace"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def write_cases(folder: Path, cases: Iterable[Case]) -> None:
    write_whole(folder / CASES, "".join(f"{line}\n" for line in case_lines(cases)))


def planned_units(folder: Path, used: Mapping[str, Any]) -> Callable[[Record], bool] | None:
    """Tells whether a record belongs to a run's planned units; None if the folder does not say what was planned."""
    if not used or not (folder / CASES).is_file():
        return None
    run = used.get("run")
    repeats = run.get("repeats") if isinstance(run, dict) else None
    cases = _places(folder / CASES)
    most = repeats if isinstance(repeats, int) else 1
    return lambda record: (str(record.scenario_id), record.case_hash) in cases and 0 <= record.repeat < most


def read_cases(folder: Path) -> list[Case]:
    """The cases of a run; empty for a run of an older version, which did not keep them."""
    path = folder / CASES
    if not path.is_file():
        return []
    # The file is written whole: an incomplete line is damage.
    cases = [_read(path, number, line) for number, line, _ in read_lines(path)]
    refuse_changes(folder, read_used(folder))
    return cases


def refuse_changes(folder: Path, used: Mapping[str, Any]) -> None:
    """Refuse cases that do not match their hash in the run's settings; a case's own hash covers only its chart."""
    path, ours = folder / CASES, used.get("agentclinic")
    digest = ours.get("digest") if isinstance(ours, dict) else None
    expected = digest.get("cases") if isinstance(digest, dict) else None
    if expected is not None and path.is_file() and expected != _digest(read_limited(path).removesuffix(b"\n")):
        raise InputError(f"{path}: the cases were changed since the run; restore the file")


def case_finder(folder: Path) -> Callable[[Record], Case | None]:
    """Finds the case of a record, and reads it only then.

    None for a record without a case's hash, and in a run of an older version, which did not keep its cases.
    """
    path = folder / CASES
    places = _places(path) if path.is_file() else {}

    def find(record: Record) -> Case | None:
        place = places.get((str(record.scenario_id), record.case_hash or ""))
        if place is None:
            return None
        with path.open("rb") as file:
            file.seek(place[1])
            return _read(path, place[0], file.readline())

    return find


def _places(path: Path) -> dict[tuple[str, str | None], tuple[int, int]]:
    """Where each case is, by row and hash: its line's number and start."""
    places: dict[tuple[str, str | None], tuple[int, int]] = {}
    with path.open("rb") as file:
        start = 0
        for number, line in enumerate(file, 1):
            found = _BEGINNING.match(line)
            if found:
                places[found[1].decode(), found[2].decode()] = (number, start)
            start += len(line)
    return places


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
