"""`agentclinic check-folder`: how each of the original's files is used here, one line for each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from agentclinic.cli.format import clipped, counted, print_json
from agentclinic.compat.folder import Verdict, check_folder

_MOST = 300
"""Most characters of a note in the table: enough for the first thing to do. --json prints whole notes."""


def check_folder_command(folder: Path, *, as_json: bool) -> None:
    """Print what each file is and how it is used; the exit code is 2 if one cannot be used."""
    found = check_folder(folder)
    if as_json:
        print_json([{**one._asdict(), "path": str(one.path)} for one in found])
    else:
        wide = max(len(str(one.path)) for one in found)
        for one in found:
            note = f": {clipped(one.note, _MOST)}" if one.note else ""
            print(f"{one.path!s:{wide}}  {one.what:11}  {one.verdict}{note}")
        counts = Counter(one.verdict for one in found)
        print(f"\n{counted({verdict: counts[verdict] for verdict in Verdict if counts[verdict]})}")
    if any(one.verdict is Verdict.BROKEN for one in found):
        raise SystemExit(2)
