"""`agentclinic init` and `check-folder`: a new folder to work in, and how the original's files in one are used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import clipped, counted, print_json

if TYPE_CHECKING:
    from agentclinic.compat.folder import FileUse

_MOST = 300
"""Most characters of a note in the table: enough for the first thing to do. --json prints whole notes."""


def init_command(
    folder: Annotated[Path, typer.Argument(help="Folder to create; existing files in it are kept.")],
    original: Annotated[
        bool, typer.Option("--original", help="Write the original's full set: also prompts, agents, tools and scripts.")
    ] = False,
) -> None:
    """Create a folder with settings, a doctor and cases to edit."""
    from agentclinic.compat.init import write_folder

    write_folder(folder, original=original)


@opt.with_output
def check_folder_command(
    folder: Annotated[Path, typer.Argument(help="Folder with files of the original, e.g. a clone of its repository.")],
    json: opt.Json = False,
) -> None:
    """Show how each file in a folder is used.

    Reads configs, prompts, agents, sessions, runs and cases as a run or command would, and says of every file whether
    it works as it is, is translated, needs something from you (to do), has no counterpart, or cannot be used. Files
    with the same answer share a line. Writes nothing, runs no program and shows no key. The exit code is 2 if a file
    cannot be used.
    """
    from agentclinic.compat.folder import Verdict, check_folder

    found = check_folder(folder)
    if json:
        print_json([one._asdict() for one in found])
    else:
        shown = _together(found)
        wide = max(len(name) for name, _ in shown)
        for name, one in shown:
            note = f": {clipped(one.note, _MOST)}" if one.note else ""
            print(f"{name:{wide}}  {one.what:11}  {one.verdict}{note}")
        counts = Counter(one.verdict for one in found)
        print(f"\n{counted({verdict: counts[verdict] for verdict in Verdict if counts[verdict]})}")
    if any(one.verdict is Verdict.BROKEN for one in found):
        raise SystemExit(2)


def _together(found: list[FileUse]) -> list[tuple[str, FileUse]]:
    """Each thing that is said, with the file or the files of one kind and folder that it is said of."""
    alike: dict[tuple[object, ...], list[FileUse]] = {}
    for one in found:
        near = (one.path.parent, one.path.suffix) if one.what != "summary" else (one.path.parent.parent, one.path.name)
        alike.setdefault((*near, one.what, one.verdict, one.note), []).append(one)
    return [(_name(files), files[0]) for files in alike.values()]


def _name(files: list[FileUse]) -> str:
    first = files[0].path
    if len(files) == 1:
        return str(first)
    across = len({one.path.parent for one in files}) > 1
    pattern = first.parent.parent / "*" / first.name if across else first.with_name(f"*{first.suffix}")
    return f"{pattern} ({len(files)} files)"
