"""A run's folder: its name, its lock, the settings it was made with."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from agentclinic.errors import InputError
from agentclinic.files import write_whole

CONFIG = "config.used.json"
RECORDS = "scenarios.jsonl"
SUMMARY = "summary.json"


def create(output_dir: Path, dataset: str, now: datetime, *, private: bool = False) -> Path:
    """Make `<DATASET>_<YYYYMMDD_HHMMSS>`, with `_2`, `_3`, ... where that is taken; `private`: for the owner only."""
    stem = re.sub(r"[/\\:]+", "_", dataset) + f"_{now:%Y%m%d_%H%M%S}"
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
            raise InputError(f"output_dir: {folder} cannot be made ({error.strerror})") from None
        else:
            return folder


def make_private(folder: Path) -> None:
    """Close a folder, and everything that is in it already, to all but its owner."""
    try:
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be closed to others ({error.strerror}); it holds credentialed data"
        ) from None


def write_json(path: Path, data: Any, *, private: bool = False) -> None:
    """Write data as a file, whole or not at all."""
    write_whole(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n", private=private)
