"""Files of JSON lines: one reader, and an appending writer that survives a crash."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentclinic.errors import AgentClinicError, InputError


class JsonLines:
    """Appends objects to a file, each as one line in one write; a torn last line is repaired on opening."""

    def __init__(self, path: Path, *, durable: bool = True, private: bool = False) -> None:
        self.path = path
        self.repaired = repair(path)
        """Bytes of a torn last line that were cut off, 0 when the file was whole."""
        self._durable = durable
        self._file = self._open(private)

    def _open(self, private: bool) -> int:
        """Open for appending; `private`: for nobody but the owner, also when it was there with wider rights."""
        try:
            if private and self.path.exists():
                self.path.chmod(0o600)
            return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600 if private else 0o644)
        except OSError as error:
            raise AgentClinicError(f"{self.path}: cannot be opened for writing ({error.strerror})") from None

    def append(self, entry: Any) -> None:
        """Write one line; with `durable` it is on the disk, not only in the system's memory, on return."""
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
                f"{self.path}: cannot be written ({error.strerror}); what was written before is safe"
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
    """Make the file end with a whole line: complete one that only lacks its newline, cut off a torn one."""
    if not path.exists() or path.stat().st_size == 0:
        return 0
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        tail = b""
        start = size
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
        except ValueError:
            file.truncate(size - len(last))
            return len(last)
        file.seek(size)
        file.write(b"\n")
        return 0


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


def read_json_lines(path: Path, what: str = "") -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with their line numbers; blank lines are skipped.

    An incomplete last line, which a crash can leave behind, is passed over; any other bad line is an error that names
    the file and the line. `what` says in that error what the line should have been.
    """
    for number, line, whole in read_lines(path):
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError(f"a JSON object, found {type(entry).__name__}")
        except (ValueError, RecursionError) as error:
            if not whole:
                return
            raise InputError(f"{path} line {number}: not {what or 'valid JSON'} ({_problem(error)})") from None
        yield number, entry


def read_lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of a file that are not blank: number, content, and whether the line is complete."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    with file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield number, line, line.endswith(b"\n")


def _problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8 text"
    return "nested too deeply" if isinstance(error, RecursionError) else f"expected {error}"
