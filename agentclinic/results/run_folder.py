"""A run's folder: its name, its files and their permissions."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from agentclinic.config import USED
from agentclinic.errors import InputError
from agentclinic.files import write_whole

CONFIG = USED
RECORDS = "scenarios.jsonl"
SUMMARY = "summary.json"
MEMORY = "memory.jsonl"
"""The experiences that were offered to the doctor: a copy, because the file they came from may grow."""
SPLIT = "split.json"
ARMS = "arms"
"""Folder of a sweep in which its runs are."""
SWEEP = "sweep.json"
"""What a sweep says about its arms: the first is the baseline."""


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
