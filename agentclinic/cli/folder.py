"""`agentclinic init` and `check-folder`: a new folder to work in, and how the original's files in one are used."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import clipped, counted, print_json

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
    """Show how each of the original's files in a folder is used.

    Reads configs, prompts, agents, sessions, runs and cases as a run would, and says of each whether it works as it is,
    is translated, needs something from you (to do), has no counterpart, or cannot be used. Writes nothing. The exit
    code is 2 if a file cannot be used.
    """
    from agentclinic.compat.folder import Verdict, check_folder

    found = check_folder(folder)
    if json:
        print_json([one._asdict() for one in found])
    else:
        wide = max(len(str(one.path)) for one in found)
        for one in found:
            note = f": {clipped(one.note, _MOST)}" if one.note else ""
            print(f"{one.path!s:{wide}}  {one.what:11}  {one.verdict}{note}")
        counts = Counter(one.verdict for one in found)
        print(f"\n{counted({verdict: counts[verdict] for verdict in Verdict if counts[verdict]})}")
    if any(one.verdict is Verdict.BROKEN for one in found):
        raise SystemExit(2)
