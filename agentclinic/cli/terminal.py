"""Standard output and error: no text acts on the terminal, and a reader that goes away ends no command."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

from agentclinic.jsonl import ACTIVE, by_number

_LONE_RETURN = re.compile(r"\r(?!\n)")


class Stream:
    """Shows control characters by their number and outlives its reader; otherwise like the stream it stands for."""

    def __init__(self, stream: TextIO, *, inert: bool = True) -> None:
        self._stream = stream
        self._inert = inert
        if inert:
            self.styled = Stream(stream, inert=False)
            """The same stream for rich, which styles its text."""

    def write(self, text: str) -> int:
        """Write, as far as anyone still reads."""
        shown = _LONE_RETURN.sub(by_number, ACTIVE.sub(by_number, text)) if self._inert else text
        try:
            self._stream.write(shown)
        except BrokenPipeError:
            self._leave()
        return len(text)

    def flush(self) -> None:
        """Flush, as far as anyone still reads."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._leave()

    def _leave(self) -> None:
        # What is still in the buffer goes nowhere too, or Python would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def guarded() -> Iterator[None]:
    """Guard both streams while a command runs."""
    before = sys.stdout, sys.stderr
    # Python has None for a stream that was closed before it started.
    out, err = (stream or Path(os.devnull).open("w") for stream in before)  # noqa: SIM115 - open until the end
    for stream in (out, err):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # text that cannot be shown must not end a command
    sys.stdout, sys.stderr = cast("Any", (Stream(out), Stream(err)))
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before
