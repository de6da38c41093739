"""JSON Lines files: one reader, and a writer that appends and survives a crash."""

from __future__ import annotations

import codecs
import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentclinic import privacy
from agentclinic.errors import AgentClinicError, InputError


class JsonLines:
    """Appends objects to a file, each in a single write; opening it repairs an incomplete last line."""

    def __init__(self, path: Path, *, durable: bool = True, private: bool = False) -> None:
        """Open for appending; `private`: readable only by the owner, even if the file exists and others can read it."""
        self.path = path
        self._durable = durable
        private = private or privacy.silent()
        repair(path)
        try:
            if private and path.exists():
                path.chmod(0o600)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600 if private else 0o644)
        except OSError as error:
            raise AgentClinicError(f"{path}: cannot be opened for writing ({error.strerror})") from None

    def append(self, entry: Any) -> None:
        """Write one line; if `durable`, it is on the disk, not only in the system's memory, when this returns."""
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
        try:
            written = os.write(self._file, line)
            if written != len(line):  # a full disk can take part of a line
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if self._durable:
                os.fsync(self._file)
        except OSError as error:
            raise AgentClinicError(
                f"{self.path}: cannot be written ({error.strerror}); the lines already in it are safe"
            ) from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def repair(path: Path) -> int:
    """Add the newline that the last line lacks, or remove the line if it is incomplete; returns the bytes removed."""
    if not path.exists() or path.stat().st_size == 0:
        return 0
    with path.open("r+b") as file:
        start = size = file.seek(0, os.SEEK_END)
        tail = b""
        while start > 0 and b"\n" not in tail:
            step = min(65536, start)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        last = tail[tail.rfind(b"\n") + 1 :]
        if not last:
            return 0
        try:
            json.loads(last)
        except (ValueError, RecursionError):
            file.truncate(size - len(last))
            return len(last)
        file.seek(size)
        file.write(b"\n")
        return 0


def refuse_other(path: Path, what: str) -> None:
    """Refuse to append to a file that is not `what`: opening it for that would remove an incomplete last line."""
    if sum(1 for _ in read_json_lines(path, what)) == 0 and path.stat().st_size:
        raise InputError(f"{path}: not {what}; name another file")


def drop_lines(path: Path, unwanted: Callable[[int, bytes], bool]) -> int:
    """Rewrite a file without the lines that `unwanted(number, line)` names; return how many were removed.

    The old file stays until the new one is complete and on the disk; the new one keeps its permissions.
    """
    if not path.exists():
        return 0
    new = path.with_name(path.name + ".new")
    dropped = 0
    with path.open("rb") as source, open(new, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as target:
        for number, line in enumerate(source, start=1):
            if line.strip() and unwanted(number, line):
                dropped += 1
            else:
                target.write(line)
        target.flush()
        os.fsync(target.fileno())
    new.chmod(path.stat().st_mode & 0o777)
    new.replace(path)
    return dropped


def read_json_lines(path: Path, what: str = "valid JSON") -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects in a file with their line numbers.

    An incomplete last line, which a crash can leave behind, is skipped. Any other line that is not a JSON object is an
    error, which calls the line "not `what`".
    """
    for number, line, complete in read_lines(path):
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError(f"a JSON object, found {type(entry).__name__}")
        except (ValueError, RecursionError) as error:
            if not complete:
                return
            raise InputError(f"{path} line {number}: not {what} ({_problem(error)})") from None
        yield number, entry


def read_lines(path: Path, error: type[InputError] = InputError) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of a file that are not blank: number, content, and whether the line is complete.

    Skips a byte order mark. Raises `error` if the file cannot be read.
    """
    try:
        file = path.open("rb")
    except OSError as problem:
        raise error(f"{path}: cannot be read ({problem.strerror})") from None
    with file:
        for number, raw in enumerate(file, start=1):
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if line.strip():
                yield number, line.rstrip(b"\n"), line.endswith(b"\n")


def _problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    return "nested too deeply" if isinstance(error, RecursionError) else f"expected {error}"
