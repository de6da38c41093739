"""Showing how a run goes: a bar on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from agentclinic.runs.pool import Observer
from agentclinic.scoring.outcome import Tally


class Quiet:
    """Shows nothing."""

    def start(self, total: int, done: Tally) -> None:
        """Nothing to show."""

    def finished(self, tally: Tally) -> None:
        """Nothing to show."""

    def say(self, message: str) -> None:
        """Even when quiet: it is said only when it matters."""
        sys.stderr.write(message + "\n")

    def stop(self) -> None:
        """Nothing to show."""


class Lines(Quiet):
    """Prints a line now and then: for logs and pipes."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._total = 0
        self._last = 0.0
        self._before = 0

    def start(self, total: int, done: Tally) -> None:
        """Say how much there is to do."""
        self._total, self._before, self._begin = total, done.presented, self._now()
        self._last = self._begin
        already = f", {done.presented} already done" if done.presented else ""
        self.say(f"{total} scenarios{already}")

    def finished(self, tally: Tally) -> None:
        """A line for each twentieth of the run, or after ten seconds of silence."""
        twentieth = max(1, self._total // 20)
        if tally.presented % twentieth and self._now() - self._last < 10 and tally.presented != self._total:
            return
        self._last = self._now()
        self.say(status_line(tally, self._total, self._now() - self._begin, self._before))

    def say(self, message: str) -> None:
        """Where the other lines go."""
        self._stream.write(message + "\n")
        self._stream.flush()


class Bar(Quiet):
    """A progress bar for a terminal."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._now = now
        self._progress = Progress(
            BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True), transient=True
        )

    def start(self, total: int, done: Tally) -> None:
        """Draw the bar."""
        self._total, self._before, self._begin = total, done.presented, self._now()
        self._task = self._progress.add_task(f"{done.presented}/{total}", total=total, completed=done.presented)
        self._progress.start()

    def finished(self, tally: Tally) -> None:
        """Move the bar."""
        line = status_line(tally, self._total, self._now() - self._begin, self._before)
        self._progress.update(self._task, completed=tally.presented, description=line)

    def say(self, message: str) -> None:
        """Above the bar."""
        self._progress.console.print(message, highlight=False, markup=False)

    def stop(self) -> None:
        """Take the bar away."""
        self._progress.stop()


def status_line(tally: Tally, total: int, elapsed: float, before: int = 0) -> str:
    """done/total, running accuracy, failures, tokens, money, rate, time left."""
    done = tally.presented - before
    share = tally.running
    parts = [f"{tally.presented}/{total}"]
    if share.value is not None:
        parts.append(f"accuracy {share.value:.0%}")
    if tally.missing:
        parts.append(f"{tally.missing} failed")
    if tally.tokens:
        parts.append(f"{tally.tokens:,} tokens")
        parts.append("cost unknown" if tally.spent is None else f"${tally.spent:.2f}")
    if elapsed > 0 and done:
        rate = done / elapsed
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
        if tally.presented < total:
            parts.append(f"{_duration((total - tally.presented) / rate)} left")
    return "  ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def observer_for(*, quiet: bool, stream: TextIO) -> Observer:
    """The observer that suits where the output goes."""
    if quiet:
        return Quiet()
    return Bar() if stream.isatty() else Lines(stream)
