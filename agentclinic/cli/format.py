"""How commands work and print: progress, JSON, counts, clipped text, and how they end when work is left."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

from pydantic import BaseModel

from agentclinic.errors import InputError
from agentclinic.files import write_whole
from agentclinic.jsonl import ACTIVE

if TYPE_CHECKING:  # slow to import, and `--help` does not need it
    from agentclinic.runs.progress import Progress

P = ParamSpec("P")
T = TypeVar("T")


def finish(work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run an async function to its end."""
    import anyio

    return anyio.run(partial(work, *args, **kwargs))


def progress(*, quiet: bool) -> Progress:
    """Progress on standard error."""
    from agentclinic.runs.progress import progress_for

    return progress_for(quiet=quiet, stream=sys.stderr)


def print_json(data: object) -> None:
    """Print a result for programs."""
    if isinstance(data, BaseModel):
        data = data.model_dump(mode="json")
    escaped = "utf" not in (sys.stdout.encoding or "utf").lower()
    text = json.dumps(data, indent=2, ensure_ascii=escaped)
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
