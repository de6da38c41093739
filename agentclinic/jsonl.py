"""Append-only files of JSON lines that survive a crash."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentclinic.errors import AgentClinicError


class JsonLines:
    """Appends objects to a file, each as one line in one write; a torn last line is repaired on opening."""

    def __init__(self, path: Path, *, durable: bool = True, private: bool = False) -> None:
        self.path = path
        self.repaired = repair(path)
        """Bytes of a torn last line that were cut off, 0 when the file was whole."""
        self._durable = durable
        self._private = private
        """Only the user may read it, also where it was there before."""
        self._file = self._open()

    def _open(self) -> int:
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600 if self._private else 0o644)
            if self._private:
                self.path.chmod(0o600)
            return file
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
