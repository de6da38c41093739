"""A run's folder: its name, its lock, the settings it was made with."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentclinic.errors import InputError
from agentclinic.files import opener, write_whole

CONFIG = "config.used.json"
RECORDS = "scenarios.jsonl"
SUMMARY = "summary.json"


def create(output_dir: Path, dataset: str, now: datetime, *, private: bool = False) -> Path:
    """Make `<DATASET>_<YYYYMMDD_HHMMSS>`, with `_2`, `_3`, ... where that is taken; `private`: for the owner only."""
    stem = re.sub(r"[/\\:]+", "_", dataset) + f"_{now:%Y%m%d_%H%M%S}"
    number = 1
    while True:
        folder = output_dir / (stem if number == 1 else f"{stem}_{number}")
        try:
            folder.mkdir(mode=0o700 if private else 0o777, parents=True)
        except FileExistsError:
            if not output_dir.is_dir():
                raise InputError(f"output_dir: {output_dir} is not a folder") from None
            number += 1
        except OSError as error:
            raise InputError(f"output_dir: {folder} cannot be made ({error.strerror})") from None
        else:
            return folder


def make_private(folder: Path) -> None:
    """Close a folder, and everything that is in it already, to all but its owner."""
    try:
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be closed to others ({error.strerror}); it holds credentialed data"
        ) from None


def write_json(path: Path, data: Any, *, private: bool = False) -> None:
    """Write data as a file, whole or not at all."""
    write_whole(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n", private=private)


class Lock:
    """Keeps a second process off a run's folder, or off one file of it; freed when the process ends."""

    def __init__(self, folder: Path, name: str = ".lock", what: str = "run") -> None:
        self._path = folder / name
        self._what = what

    def __enter__(self) -> Self:
        try:
            self._file = open(self._path, "a+b", opener=opener)
        except OSError as error:
            raise InputError(f"{self._path.parent}: cannot be written to ({error.strerror})") from None
        try:
            _lock(self._file.fileno())
        except OSError:
            self._file.close()
            raise InputError(
                f"{self._path.parent}: another process is working on this {self._what}; wait for it or stop it"
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
