"""A run's folder: its name, its files and their permissions."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agentclinic import privacy
from agentclinic.config import USED, load_settings, read_json
from agentclinic.errors import InputError
from agentclinic.files import exists, read_limited, write_whole
from agentclinic.jsonl import checksum_of, loads
from agentclinic.privacy import DataClass

CONFIG = USED
RECORDS = "scenarios.jsonl"
SUMMARY = "summary.json"
MEMORY = "memory.jsonl"
"""The experiences that were offered to the doctor: a copy, because the file they came from may grow."""
SPLIT = "split.json"
ARMS = "arms"
"""The folder in a sweep that holds its runs."""
SWEEP = "sweep.json"
"""What a sweep says about its arms: the first is the baseline."""
LATEST = "latest"
"""Stands for the run that was begun last."""
_CHECKSUM = "_checksum"
"""A key of `config.used.json`: a comment, so that the file can be given to `--config`."""


def create(output_dir: Path, dataset: str, now: datetime, *, name: str | None = None, private: bool = False) -> Path:
    """Create `<DATASET>_<YYYYMMDD_HHMMSS>`, then `_<name>` if given, and `_2`, `_3`, ... if that is taken.

    `private`: readable by the owner only.
    """
    stem = re.sub(r"[/\\:]+", "_", dataset) + f"_{now:%Y%m%d_%H%M%S}" + (f"_{name}" if name else "")
    encoding = sys.getfilesystemencoding()
    if stem.encode(encoding, "replace").decode(encoding) != stem:  # the system's encoding has no such letters
        stem = re.sub(r"[^\x20-\x7e]", "_", stem)
    number = 1
    while True:
        folder = output_dir / (stem if number == 1 else f"{stem}_{number}")
        try:
            folder.mkdir(mode=0o700 if private else 0o777, parents=True)
        except FileExistsError:
            if not output_dir.is_dir():
                raise InputError(f"output_dir: {output_dir} is not a folder") from None
            number += 1
        except OSError as error:
            raise InputError(f"output_dir: {folder} cannot be created ({error.strerror})") from None
        else:
            return folder


def find_run(named: str | Path) -> Path:
    """The run meant by a path or, if there is none, by `latest` or by a name in the folder that runs are written to.

    A name is that of the run's folder, or what `--name` said; of several with the same one, the latest is meant.
    """
    place, usual = Path(named), Path("agentclinic.config.json")
    if exists(place):
        inside = [] if exists(place / RECORDS) or exists(place / CONFIG) else _runs_in(place)
        if inside:
            raise InputError(f"{place} is a folder of runs; name one of them, e.g. {inside[-1]}, or {LATEST}")
        return place
    output = Path(load_settings(usual if usual.is_file() else None).run.output_dir)
    runs = _runs_in(output)
    if exists(output / place):
        return output / place
    for run in reversed(runs):
        if str(named) in (LATEST, _given_name(run)):
            return run
    names = [*(run.name for run in runs), *filter(None, map(_given_name, runs)), LATEST] if runs else []
    near = ", ".join(dict.fromkeys(get_close_matches(str(named), names, 3, 0.4) or names[-3:]))
    there = f"the closest names there are {near}" if near else "there are no runs there"
    raise InputError(f"{named}: no such file or folder, and no such run in {output}; {there}")


def _given_name(run: Path) -> str:
    """What `--name` said, which stands after the time; empty if it was not given."""
    return "".join(re.split(r"_\d{8}_\d{6}_", run.name, maxsplit=1)[1:])


def _runs_in(folder: Path) -> list[Path]:
    """The runs in a folder, in the order in which they were begun: the settings are written first."""
    begun = {path.parent: path.stat().st_mtime_ns for name in (RECORDS, CONFIG) for path in folder.glob(f"*/{name}")}
    return sorted(begun, key=begun.__getitem__)


def make_private(folder: Path) -> None:
    """Make a folder, and everything already in it, readable by the owner only."""
    try:
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)
    except OSError as error:
        raise InputError(
            f"{folder}: holds credentialed data, and its permissions cannot be restricted ({error.strerror})"
        ) from None


def write_json(path: Path, data: Any, *, private: bool = False) -> None:
    write_whole(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n", private=private)


def write_used(folder: Path, used: dict[str, Any]) -> None:
    """Write the settings a run is played with."""
    write_json(folder / CONFIG, {**used, _CHECKSUM: checksum_of(used)})


def read_used(folder: Path) -> dict[str, Any]:
    """The settings a run was played with; empty if there are none.

    Damaged settings cannot say what class the data has, so everything written from then on is private.
    """
    path = folder / CONFIG
    if not path.is_file():
        return {}
    try:
        used = read_json(path)
        if not isinstance(used, dict):
            raise InputError(f"{path}: not the settings of a run (not a JSON object)")
        checksum = loads(read_limited(path)).get(_CHECKSUM)
        if checksum is not None and checksum != checksum_of(used):
            raise InputError(
                f"{path}: it was changed since it was written: its checksum does not match. Restore it, or delete its "
                f"{_CHECKSUM} to accept it as it is"
            )
    except InputError:
        privacy.raise_data_class(DataClass.CREDENTIALED)
        raise
    return used


def stated_class(used: Mapping[str, Any]) -> DataClass | None:
    """The class of a run's data by its settings; None if they do not say, credentialed if they name no known class."""
    ours = used.get("agentclinic")
    said = ours.get("data_class") if isinstance(ours, dict) else ours
    return None if said is None else DataClass(said) if said in tuple(DataClass) else DataClass.CREDENTIALED
