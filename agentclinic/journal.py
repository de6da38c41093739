"""The journal of a run: one record per line of `scenarios.jsonl`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from agentclinic.errors import InputError
from agentclinic.record import Record


def read_records(path: Path) -> Iterator[Record]:
    """The records of a journal; a torn last line is passed over, any other bad line is an error."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; is {path.parent} the folder of a run?") from None
    with file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = _record(line, path, number)
            except InputError:
                if not line.endswith(b"\n"):
                    return
                raise
            yield record


def _record(line: bytes, path: Path, number: int) -> Record:
    try:
        return Record.model_validate_json(line)
    except ValueError as error:
        problem = str(error).splitlines()[1:3] or ["not JSON"]
        raise InputError(f"{path} line {number}: not a scenario record ({' '.join(problem)[:160]})") from None


def drop_records(path: Path, unwanted: Callable[[Record], bool]) -> int:
    """Remove records, atomically: the old file stays until the new one is complete. Returns how many went."""
    if not path.exists():
        return 0
    new = path.with_name(path.name + ".new")
    dropped = 0
    with path.open("rb") as source, new.open("wb") as target:
        for number, line in enumerate(source, start=1):
            if line.strip() and unwanted(_record(line, path, number)):
                dropped += 1
            else:
                target.write(line)
        target.flush()
        os.fsync(target.fileno())
    new.replace(path)
    return dropped
