"""Work for other processes, and shards: what each worker has finished, until it is in the journal.

A `Job` says what to do with an item. A worker appends every result to its own shard, in `shards/<journal>/` beside the
journal, and tells the main process only where in the shard it is. The main process reads it from there and writes the
journal. If the main process is killed, the next command takes over the results in the shards.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from agentclinic.config import Settings
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import Lock, is_private, make_folder
from agentclinic.jsonl import CHANGED, JsonLines, loads, problem_in, read_lines, take_checksums
from agentclinic.models.base import FATAL
from agentclinic.models.endpoint import Share
from agentclinic.results.record import Fault

Item = TypeVar("Item")
Given = TypeVar("Given", contravariant=True)
Result = TypeVar("Result")
Work = Callable[[Item], Awaitable[Result]]


OUTAGE = frozenset({"connection", "timeout", "server"})
"""Errors that a server causes that has died, hangs, or is down behind its proxy."""


class EngineError(AgentClinicError):
    """The cluster can do no more work; what was finished is safe."""


class Job(Protocol[Given, Result]):
    """What to do with an item; it can be sent to another machine, and holds neither secrets nor data."""

    @property
    def journal(self) -> Path:
        """The file that the results go to; shards are kept beside it."""

    @property
    def final(self) -> bool:
        """Whether a recorded failure counts as done: then one is recorded only if no server is to blame for it."""

    def opened(self, settings: Settings, share: Share) -> AbstractAsyncContextManager[Work[Any, Result]]:
        """Start in a worker; yields the function that does an item as `sent` gives it. `share` limits its requests."""

    def key(self, item: Given) -> str:
        """What identifies the item."""

    def sent(self, item: Given) -> Any:
        """What a worker must know about the item: as little as possible."""

    def fault(self, result: Result) -> Fault | None:
        """The failure of a model, if there is no other result."""

    def encode(self, result: Result) -> str:
        """The result as JSON."""

    def decode(self, text: str) -> Result:
        """The result from its JSON."""


def is_settled(job: Job[Any, Result], result: Result) -> bool:
    """Whether a result counts whatever happens; a failure that may be the server's fault does not."""
    fault = job.fault(result)
    return fault is None or (job.final and fault.error not in FATAL | OUTAGE)


FOLDER = "shards"


class Place(NamedTuple):
    """Where in a shard a result is."""

    start: int
    length: int


class Shard:
    """The shard that a worker appends to. Results are JSON text, as encoded by the job."""

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path, private=is_private(path.parent), journal=True)

    def append(self, key: str, result: str, *, settled: bool) -> Place:
        """Write a result; one that is not `settled` counts only if the main process accepts it."""
        start = self._lines.size
        self._lines.append({"key": key, "settled": settled, "result": result})
        return Place(start, self._lines.size - start)

    def close(self) -> None:
        self._lines.close()


def folder_for(journal: Path) -> Path:
    """The folder of a journal's shards, created if there is none."""
    folder = journal.parent / FOLDER / journal.stem
    make_folder(folder.parent)
    make_folder(folder)
    return folder


def read_place(path: Path, place: Place) -> str:
    """The result at a place.

    The file is opened again each time: network storage may show what another machine wrote only when a file is opened.
    """
    try:
        with path.open("rb") as file:
            file.seek(place.start)
            line = file.read(place.length).rstrip(b"\n")
        return _entry(line).result
    except OSError as error:
        problem = error.strerror or "it cannot be opened"
    except ValueError:
        problem = "it is not there yet, or was changed"
    raise AgentClinicError(f"{path}: a result that a worker has written cannot be read ({problem})")


def find(path: Path, keys: Collection[str]) -> dict[str, str]:
    """The results in a shard for these keys, settled or not."""
    return {entry.key: entry.result for _, entry in _entries(path) if entry.key in keys}


def left_over(job: Job[Any, Result], wanted: Collection[str]) -> Iterator[tuple[str, Result]]:
    """The settled results in the shards of a job for these keys: what a killed command had finished.

    An item can be in several shards, if its first worker could not be reached and it was given to another. The first
    one read counts.
    """
    seen = set()
    for path in sorted((job.journal.parent / FOLDER / job.journal.stem).glob("*.jsonl")):
        for number, entry in _entries(path):
            if not entry.settled or entry.key not in wanted or entry.key in seen:
                continue
            seen.add(entry.key)
            try:
                result = job.decode(entry.result)
            except (ValueError, TypeError, LookupError):
                raise InputError(
                    f"{path} line {number}: not a result that this version of the program can read; continue with the "
                    "version that wrote it, or delete the file to do again what is in it"
                ) from None
            yield entry.key, result


def locked(journal: Path) -> Lock:
    """Keeps other commands away from the shards of a journal that several commands may append to."""
    return Lock(journal.parent, f".{journal.name}.lock", what="file")


def remove(journal: Path) -> None:
    """Remove the shards of a journal that holds all of their results."""
    outer = journal.parent / FOLDER
    shutil.rmtree(outer / journal.stem, ignore_errors=True)
    if outer.is_dir() and not any(outer.iterdir()):
        outer.rmdir()


class _Entry(NamedTuple):
    key: str
    result: str
    settled: bool


def _entry(line: bytes) -> _Entry:
    """A line of a shard; raises `ValueError` unless it is exactly what was written."""
    entry = loads(line)
    if not isinstance(entry, dict) or not take_checksums(line, entry, None)[1]:
        raise ValueError(CHANGED)
    return _Entry(str(entry.get("key")), str(entry.get("result")), entry.get("settled") is True)


def _entries(path: Path) -> Iterator[tuple[int, _Entry]]:
    """The entries with their line numbers, without an incomplete last line, which a crash can leave behind."""
    if not path.exists():
        return
    for number, line, complete in read_lines(path):
        try:
            entry = _entry(line)
        except ValueError as error:
            if not complete:
                return
            raise InputError(
                f"{path} line {number}: not a worker's result ({problem_in(error)}); restore the file, or delete it to "
                "do again what is in it"
            ) from None
        yield number, entry
