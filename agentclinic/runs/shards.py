"""Shards: what each worker process of a cluster has finished, until it is in the journal.

A worker appends every result to its own shard, in `shards/<journal>/` beside the journal, and tells the main process
only where in the shard it is. The main process reads it from there and writes the journal. If the main process is
killed, the next command takes over the results in the shards.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from agentclinic.errors import AgentClinicError
from agentclinic.files import Lock, is_private, make_folder
from agentclinic.jsonl import JsonLines, loads, read_json_lines, unchanged

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
        """Close the file."""
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
        entry = loads(line)
        if unchanged(line, entry["checksum"]):
            return str(entry["result"])
        problem = "it reads differently from here"
    except OSError as error:
        problem = error.strerror or "it cannot be opened"
    except (ValueError, KeyError, TypeError):
        problem = "it is not there yet, or was changed"
    raise AgentClinicError(f"{path}: a result that a worker has written cannot be read ({problem})")


def find(path: Path, keys: Collection[str]) -> dict[str, str]:
    """The results in a shard for these keys, settled or not."""
    return {key: result for key, result, _ in _entries(path) if key in keys}


def left_over(journal: Path) -> Iterator[tuple[str, str]]:
    """The settled results in a journal's shards, with their keys: what a killed command had finished.

    An item can be in several shards, if its first worker could not be reached and it was given to another. The first
    one read counts.
    """
    seen = set()
    for path in sorted((journal.parent / FOLDER / journal.stem).glob("*.jsonl")):
        for key, result, settled in _entries(path):
            if settled and key not in seen:
                seen.add(key)
                yield key, result


def locked(journal: Path) -> Lock:
    """Keeps other commands away from the shards of a journal that several commands may append to."""
    return Lock(journal.parent, f".{journal.name}.lock", what="file")


def remove(journal: Path) -> None:
    """Remove the shards of a journal that holds all of their results."""
    outer = journal.parent / FOLDER
    shutil.rmtree(outer / journal.stem, ignore_errors=True)
    if outer.is_dir() and not any(outer.iterdir()):
        outer.rmdir()


def _entries(path: Path) -> Iterator[tuple[str, str, bool]]:
    if not path.exists():
        return
    for _, entry in read_json_lines(path, "a worker's result", journal=True):
        yield str(entry.get("key")), str(entry.get("result")), entry.get("settled") is True
