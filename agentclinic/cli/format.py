"""How commands work and print: progress, JSON, counts, estimates, and how they end when work is left.

No text acts on the terminal, and a reader that goes away ends no command.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TextIO, TypeVar, cast

from agentclinic.errors import InputError
from agentclinic.files import write_whole
from agentclinic.jsonl import ACTIVE, by_number
from agentclinic.scoring.format import plural_title

if TYPE_CHECKING:  # slow to import, and `--help` does not need them
    from agentclinic.runs.estimate import Estimate, Row
    from agentclinic.runs.progress import Progress

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


def print_lines(*lines: str) -> None:
    """Print lines; on a terminal, long ones are wrapped between words."""
    from agentclinic.runs.human import Screen

    Screen(widest=None).show(*lines)


def show_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print what a command would use, and what that is based on."""
    if as_json:
        print_json(estimate.as_dict())
        return
    print(f"{plural_title(estimate.count, estimate.what)}; nothing was sent or written")
    if not estimate.count or not estimate.most:
        print("No model at an endpoint would be asked: it costs nothing.")
        return
    if estimate.typical == estimate.most:
        _print("", estimate.most)
    else:
        _print("typical", estimate.typical)
        _print("at most", estimate.most)
    print("\nBased on:")
    for line in estimate.based_on:
        print(f"- {line}")


def show_arms(arms: Mapping[str, Estimate], *, as_json: bool) -> None:
    """Print what each arm of a sweep would use, and all of them together."""
    from agentclinic.runs.estimate import added, total

    whole = added(list(arms.values()))
    if as_json:
        print_json({"arms": {label: one.as_dict() for label, one in arms.items()}, **whole.as_dict()})
        return
    for label, one in arms.items():
        costs = [_cost(total(some).cost_usd) for some in (one.typical, one.most)]
        print(f"{label}: {one.count:,} {one.what}, {costs[0]}" + (f" to {costs[1]}" if costs[0] != costs[1] else ""))
    print()
    show_estimate(whole, as_json=False)


def _print(title: str, some: Sequence[Row]) -> None:
    from agentclinic.report.tables import text_table
    from agentclinic.runs.estimate import total

    head = (title, "model", "requests", "tokens in", "tokens out", "cost")
    rows = [_cells(row) for row in some]
    if len(some) > 1:
        rows.append(_cells(total(some)))
    print("\n".join(["", *text_table(head, rows, numbers=range(2, len(head)))]))


def _cells(row: Row) -> tuple[str, ...]:
    amount = row.amount
    numbers = (amount.requests, amount.input_tokens, amount.output_tokens)
    model = f"{row.model} at {row.host}" if row.model else ""
    return (row.role, model, *(f"{round(number):,}" for number in numbers), _cost(row.cost_usd))


def _cost(dollars: float | None) -> str:
    from agentclinic.runs.budget import money

    return "unknown" if dollars is None else money(dollars)


P = ParamSpec("P")
T = TypeVar("T")


def finish(work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    import anyio

    return anyio.run(partial(work, *args, **kwargs))


def progress(*, quiet: bool) -> Progress:
    from agentclinic.runs.progress import progress_for

    return progress_for(quiet=quiet, stream=sys.stderr)


def print_json(data: object) -> None:
    """Print a result for programs; it may hold models and paths."""
    from pydantic import BaseModel

    def plain(value: Any) -> Any:
        return value.model_dump(mode="json") if isinstance(value, BaseModel) else os.fspath(value)

    escaped = "utf" not in (sys.stdout.encoding or "utf").lower()
    text = json.dumps(data, indent=2, ensure_ascii=escaped, default=plain)
    print(ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # JSON's own way to write them: nothing is lost


def deliver(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file and say so."""
    if output is None:
        sys.stdout.write(text)
        return
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}; create it, or name another file")
    write_whole(output, text)
    print(f"Written to {output}")


def tokens_used(used: int | None, made: int | None, unknown: str) -> str:
    return unknown if used is None or made is None else f"{used:,} tokens in, {made:,} out"


def counted(counts: Mapping[str, int]) -> str:
    """`right 3, wrong 2`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def clipped(text: str, most: int = 160) -> str:
    """The text on one line, cut so that it still helps to find the place in a transcript."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 3] + "..."


def end_without_result(message: str) -> NoReturn:
    """End a command that did all its work and has nothing to show for it: exit code 1."""
    sys.stderr.write(f"{message}\n")
    raise SystemExit(1)


def end_if_left(failed: int, not_tried: int, reason: str | None, again: str, *, interrupted: bool) -> None:
    """End a command if some of its work failed or was not tried; `again` says how to continue."""
    left = ", ".join(f"{count} {what}" for count, what in ((failed, "failed"), (not_tried, "not tried")) if count)
    if left:
        end_incomplete(f"{left}{f': {reason}' if reason else ''}\n{again}", interrupted=interrupted)


def end_incomplete(message: str, *, interrupted: bool) -> NoReturn:
    """End a command that left work undone: exit code 130 after Ctrl-C, else 3."""
    sys.stderr.write(f"{message}\n")
    raise SystemExit(130 if interrupted else 3)
