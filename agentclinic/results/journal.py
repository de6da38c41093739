"""The journal of a run: one record per line of `scenarios.jsonl`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from agentclinic.errors import InputError
from agentclinic.jsonl import drop_lines, read_lines
from agentclinic.results.record import Record


def read_records(path: Path) -> Iterator[Record]:
    """The records of a journal. An incomplete last line is skipped; any other bad line is an error."""
    if not path.exists():
        raise InputError(f"{path}: no such file; is {path.parent} the folder of a run?")
    for number, line, complete in read_lines(path):
        try:
            record = _record(line, path, number)
        except InputError:
            if not complete:
                return
            raise
        yield record


def _record(line: bytes, path: Path, number: int) -> Record:
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        # Without the value, which may be a patient's whole dialogue.
        first = error.errors(include_input=False, include_url=False)[0]
        problem = " ".join(filter(None, [".".join(str(part) for part in first["loc"]), first["msg"]]))
        raise InputError(f"{path} line {number}: not a scenario record ({problem[:160]})") from None


def drop_records(path: Path, unwanted: Callable[[Record], bool]) -> int:
    """Remove records from a journal, atomically; return how many were removed."""
    return drop_lines(path, lambda number, line: unwanted(_record(line, path, number)))
