"""Showing progress: a bar on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from agentclinic.cases.model import Case
from agentclinic.results.record import Record
from agentclinic.scoring.format import plural_title
from agentclinic.scoring.outcome import RunningSummary


class Progress:
    """Shows nothing but messages; the base of the others."""

    def start(self, total: int, done: int, what: str = "scenarios") -> None:
        """Start: `total` items in all, `done` of them finished by an earlier process."""

    def advance(self, line: str) -> None:
        """Count one more item; `line` describes the progress so far."""

    def played(self, record: Record, case: Case) -> None:
        """An encounter is over; only people at the terminal are told how it ended."""

    def say(self, message: str) -> None:
        """Show a message that the user needs now, even when quiet."""
        sys.stderr.write(message + "\n")

    def stop(self) -> None:
        """Finish."""


class _Counting(Progress):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._total = self._done = self._before = 0
        self._began = 0.0

    def start(self, total: int, done: int, what: str = "scenarios") -> None:
        del what
        self._total, self._done, self._before, self._began = total, done, done, self._now()

    def _status(self, line: str) -> str:
        """done/total, the line, rate and time left; the rate counts only what this process did."""
        parts = [f"{self._done}/{self._total}", *([line] if line else [])]
        elapsed, done = self._now() - self._began, self._done - self._before
        if elapsed > 0 and done:
            rate = done / elapsed
            parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
            if self._done < self._total:
                parts.append(f"{_duration((self._total - self._done) / rate)} left")
        return "  ".join(parts)


class Lines(_Counting):
    """Prints a line now and then: for logs and pipes."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(now)
        self._stream = stream
        self._last = 0.0

    def start(self, total: int, done: int, what: str = "scenarios") -> None:
        super().start(total, done, what)
        self._last = self._began
        self.say(plural_title(total, what) + (f", {done} already done" if done else ""))

    def advance(self, line: str) -> None:
        """A line for each twentieth of the work, or after ten seconds of silence."""
        self._done += 1
        twentieth = max(1, self._total // 20)
        if self._done % twentieth == 0 or self._done == self._total or self._now() - self._last >= 10:
            self._last = self._now()
            self.say(self._status(line))

    def say(self, message: str) -> None:
        """Write to the same stream as the other lines."""
        self._stream.write(message + "\n")
        self._stream.flush()


class Bar(_Counting):
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        super().__init__(now)
        columns = (BarColumn(), TextColumn("{task.description}"))
        self._bar = RichProgress(
            *columns, console=Console(file=getattr(sys.stderr, "styled", sys.stderr), emoji=False), transient=True
        )

    def start(self, total: int, done: int, what: str = "scenarios") -> None:
        super().start(total, done, what)
        for task in self._bar.task_ids:  # of work that is over
            self._bar.remove_task(task)
        self._task = self._bar.add_task(self._status(""), total=total, completed=done)
        self._bar.start()

    def advance(self, line: str) -> None:
        self._done += 1
        self._bar.update(self._task, completed=self._done, description=self._status(line))

    def say(self, message: str) -> None:
        self._bar.console.print(message, highlight=False, markup=False)

    def stop(self) -> None:
        self._bar.stop()


def run_line(running: RunningSummary) -> str:
    """A run's progress in a line: accuracy so far, failures, tokens and cost."""
    parts = []
    if running.accuracy is not None:
        parts.append(f"accuracy {running.accuracy:.0%}")
    if running.outcomes["not_readable"]:
        parts.append(f"{running.outcomes['not_readable']} not readable")
    if running.missing:
        parts.append(f"{running.missing} failed")
    if running.tokens:
        parts.append(f"{running.tokens:,} tokens")
        parts.append("cost unknown" if running.spent is None else f"${running.spent:.2f}")
    return "  ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def progress_for(*, quiet: bool, stream: TextIO) -> Progress:
    """The display that suits where the output goes."""
    if quiet:
        return Progress()
    return Bar() if stream.isatty() else Lines(stream)
