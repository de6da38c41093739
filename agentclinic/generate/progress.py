"""Showing how making cases goes: a bar on a terminal, lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Shows nothing but what matters."""

    def start(self, total: int, done: int) -> None:
        """There is this much to do, and this much is done already."""

    def advance(self, line: str) -> None:
        """One more is done."""

    def say(self, message: str) -> None:
        """Something the user should know now, also when quiet."""
        sys.stderr.write(message + "\n")

    def stop(self) -> None:
        """Nothing more will come."""


class Lines(Progress):
    """A line now and then: for logs and pipes."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now

    def start(self, total: int, done: int) -> None:
        """Say how much there is."""
        self._total, self._done, self._last = total, done, self._now()
        self.say(f"{total} cases to make" + (f", {done} already done" if done else ""))

    def advance(self, line: str) -> None:
        """A line for each twentieth of the work, or after ten seconds of silence."""
        self._done += 1
        twentieth = max(1, self._total // 20)
        if self._done % twentieth == 0 or self._done == self._total or self._now() - self._last >= 10:
            self._last = self._now()
            self.say(f"{self._done}/{self._total}  {line}")

    def say(self, message: str) -> None:
        """Where the other lines go."""
        self._stream.write(message + "\n")
        self._stream.flush()


class Bar(Progress):
    """A progress bar for a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)

    def start(self, total: int, done: int) -> None:
        """Draw the bar."""
        self._task = self._bar.add_task("", total=total, completed=done)
        self._bar.start()

    def advance(self, line: str) -> None:
        """Move the bar."""
        self._bar.update(self._task, advance=1, description=line)

    def say(self, message: str) -> None:
        """Above the bar."""
        self._bar.console.print(message, highlight=False, markup=False)

    def stop(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def progress_for(*, quiet: bool, stream: TextIO) -> Progress:
    """The one that suits where the output goes."""
    if quiet:
        return Progress()
    return Bar() if stream.isatty() else Lines(stream)
