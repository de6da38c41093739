"""The journal of a run: one record per line of `scenarios.jsonl`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from agentclinic.errors import InputError
from agentclinic.jsonl import read_lines
from agentclinic.results.record import Record


def read_records(path: Path) -> Iterator[Record]:
    """The records in a journal; an incomplete last line is skipped, any other bad line is an error."""
    if not path.exists():
        raise InputError(f"{path}: no such file; is {path.parent} a run folder?")
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
        # Without the value: it may be a whole dialogue, and somebody's.
        first = error.errors(include_input=False, include_url=False)[0]
        problem = " ".join(filter(None, [".".join(str(part) for part in first["loc"]), first["msg"]]))
        raise InputError(f"{path} line {number}: not a scenario record ({problem[:160]})") from None


def drop_records(path: Path, unwanted: Callable[[Record], bool]) -> int:
    """Remove records, atomically: the old file stays until the new one is complete. Returns how many went."""
    if not path.exists():
        return 0
    new = path.with_name(path.name + ".new")
    dropped = 0
    private = path.stat().st_mode & 0o777  # who may read the old file may read the new one, and nobody else

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, private)

    with path.open("rb") as source, open(new, "wb", opener=opener) as target:
        for number, line in enumerate(source, start=1):
            if line.strip() and unwanted(_record(line, path, number)):
                dropped += 1
            else:
                target.write(line)
        target.flush()
        os.fsync(target.fileno())
    new.replace(path)
    return dropped
