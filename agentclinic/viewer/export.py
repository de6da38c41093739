"""The viewer as a folder of files that opens without a server.

A page opened from a file may not fetch data, but it may load scripts. So the data is in scripts, each small enough to
be loaded when it is needed.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from agentclinic.errors import InputError
from agentclinic.files import make_folder, write_whole
from agentclinic.report.collect import Packer, packed
from agentclinic.runs.progress import Progress
from agentclinic.viewer.data import Data, Library, RunIndex, said_in

MARK = "agentclinic-viewer"
"""In every exported page: a folder with this mark is an export and may be replaced, others may not."""
ROWS = 1000
"""Rows in a file: the first view needs one file, and a run of thousands a handful."""
MOST_PAIRED = 6
"""With more runs than this, only the comparison of all runs is written: the number of pairs grows quadratically, and
each takes seconds."""
_HERE = Path(__file__).parent
_SCRIPTS = (_HERE.parent / "report", _HERE / "static")


def export(folder: Path, target: Path, progress: Progress | None = None) -> Path:
    """Write the viewer of the runs in a folder as files; returns the page to open."""
    progress = progress or Progress()
    library = Library(folder)
    if not library.places():
        raise InputError(f"{folder}: there is no run in this folder; runs are written to run.output_dir")
    _check(target)
    while library.runs()["more"]:  # this also shows whether any data is credentialed, before anything is written
        pass
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    progress.start(sum(run["encounters"] for run in library.runs()["runs"]), 0, "encounters")
    try:
        make_folder(new)
        make_folder(new / "data")
        shown = {}
        for number, name in enumerate(library.places()):
            shown[name] = {**_export_run(library, name, new / "data", number, progress), "place": number}
        _write(new / "data", "runs", {**library.runs(), "runs": list(shown.values()), "part": ROWS})
        _write(new / "data", "compared", dict(_comparisons(library, list(shown))))
        _write_page(new)
        if target.exists():
            shutil.rmtree(target)
        new.rename(target)
    finally:
        progress.stop()
        shutil.rmtree(new, ignore_errors=True)
    return target / "index.html"


def _check(target: Path) -> None:
    """Refuse a place that cannot be written to, and a folder with other content."""
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}; create it first")
    if not target.exists():
        return
    page = target / "index.html"
    ours = page.is_file() and f'content="{MARK}"' in page.read_text(encoding="utf-8", errors="replace")[:2000]
    if not ours and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target}: exists and is not an exported viewer; name another folder with --export")


def _export_run(library: Library, name: str, folder: Path, number: int, progress: Progress) -> Data:
    """Write a run's rows, encounters and what was said; returns what is shown about it in the list."""
    index = RunIndex(library.places()[name])
    shown, said = _Blocks(folder, f"{number}-shown"), _Blocks(folder, f"{number}-said")
    for at, record in enumerate(index.new()):
        index.rows[at].append(shown.add(index.shown(record)))
        said.add([index.rows[at][0], said_in(record)])
        progress.advance("")
    shown.close()
    said.close()
    for part, first in enumerate(range(0, len(index.rows), ROWS)):
        _write(folder, f"{number}-rows-{part}", index.rows[first : first + ROWS])
    run = next(run for run in library.runs()["runs"] if run["name"] == name)
    parts = {"rows": -(-len(index.rows) // ROWS), "said": said.count}
    return {**run, **parts, "problem": index.problem or run["problem"]}


class _Blocks:
    """Values packed into numbered files."""

    def __init__(self, folder: Path, name: str) -> None:
        self.count = 0
        self._folder, self._name, self._packer = folder, name, Packer()

    def add(self, value: Any) -> tuple[int, int]:
        """Pack a value; returns the number of its file and its place in it."""
        place = self._packer.add(value)
        self._flush()
        return place

    def _flush(self) -> None:
        while self.count < len(self._packer.blocks):
            _write(self._folder, f"{self._name}-{self.count}", self._packer.blocks[self.count])
            self._packer.blocks[self.count] = ""
            self.count += 1

    def close(self) -> None:
        self._packer.close()
        self._flush()


def _comparisons(library: Library, names: list[str]) -> Iterator[tuple[str, Data]]:
    """The comparison of all runs and of each pair, by the names of the runs; if one is impossible, the reason."""
    chosen: Iterable[tuple[str, ...]] = [tuple(names)] if len(names) > 1 else []
    if 2 < len(names) <= MOST_PAIRED:
        chosen = [*chosen, *combinations(names, 2)]
    for several in chosen:
        try:
            found = library.compare(several)
        except InputError as error:
            found = {"error": str(error)}
        yield "\n".join(several), found


def _write(folder: Path, name: str, data: Any) -> None:
    """Write data as a script that hands it to the page."""
    text = data if isinstance(data, str) else packed(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    write_whole(folder / f"{name}.js", f'exported("{name}", "{text}");\n', durable=False)


def _write_page(folder: Path) -> None:
    """Write the page with its scripts and styles; it may run no other scripts."""
    page = (_HERE / "static" / "index.html").read_text(encoding="utf-8").replace("served.js", "exported.js")
    policy = (
        "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types exported"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n  <meta name="generator" content="{MARK}">\n'
    )
    write_whole(folder / "index.html", page.replace("<title>", f"{head}  <title>", 1), durable=False)
    for place in _SCRIPTS:
        for path in sorted(place.iterdir()):
            if f'"{path.name}"' in page:
                write_whole(folder / path.name, path.read_bytes(), durable=False)
