"""The data class of a MIMIC-IV folder: decided from its content, and credentialed whenever in doubt."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from agentclinic.errors import InputError
from agentclinic.generate.mimic.tables import LAB_ITEMS, NOTES, READ, TITLES, Folder, opened, run
from agentclinic.jsonl import loads
from agentclinic.privacy import DataClass

# The list of patients published with the MIMIC-IV Clinical Database Demo 2.2 (the hash is in its SHA256SUMS.txt).
DEMO_LIST = "demo_subject_id.csv"
DEMO_SHA256 = "6e9ba177eefc70617ccc1782b9af716b23fbcf36c4c5143e275149d78ee83624"

MARKER = "INVENTED.json"
"""Marks a folder of invented rows: it lists the SHA-256 of each table."""
# MIMIC's numbers have eight digits (patients 1…, admissions 2…, stays 3…). Invented patients have nine, so that a table
# of real patients cannot pass by having the marker copied next to it.
RESERVED_FROM = 900_000_000
RESERVED_TO = 999_999_999
_RESERVED = f"BETWEEN {RESERVED_FROM} AND {RESERVED_TO}"


def data_class(base_dir: Path) -> DataClass:
    """The data class of the folder; anything that cannot be shown to be open is credentialed."""
    folder = Folder(base_dir)
    if marker := _near(folder, MARKER):
        return DataClass.SYNTHETIC if _is_invented(folder, marker) else DataClass.CREDENTIALED
    listed = _near(folder, DEMO_LIST)
    return DataClass.OPEN_DEMO if listed and _is_demo(folder, listed) else DataClass.CREDENTIALED


def mark_synthetic(base_dir: Path) -> None:
    """Mark a folder of invented rows; refused if a patient has a number that MIMIC could give."""
    folder = Folder(base_dir)
    if not _subjects_within(folder, _RESERVED):
        raise InputError(f"{base_dir}: a patient number is outside {RESERVED_FROM} to {RESERVED_TO}: not invented")
    (base_dir / MARKER).write_text(json.dumps({"tables": _hashes(folder)}, indent=1) + "\n", encoding="utf-8")


def _near(folder: Folder, name: str) -> Path | None:
    """A file in the given folder, or in the release that its tables belong to."""
    hosp = folder.module("hosp")
    places = (folder.base, *([hosp.parent] if hosp else []))
    return next((place / name for place in places if (place / name).is_file()), None)


def _is_invented(folder: Folder, marker: Path) -> bool:
    """Whether every table is the one that the marker lists, and no patient has a number that MIMIC could give."""
    try:
        listed = loads(marker.read_bytes())["tables"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(listed == _hashes(folder)) and _subjects_within(folder, _RESERVED)


def _is_demo(folder: Folder, listed: Path) -> bool:
    """Whether every patient is in the published list; there must be no notes, which were never published openly."""
    content = listed.read_bytes()
    if hashlib.sha256(content).hexdigest() != DEMO_SHA256 or folder.file(NOTES):
        return False
    subjects = ", ".join(str(int(line)) for line in content.split()[1:])
    return _subjects_within(folder, f"IN ({subjects})")


def _subjects_within(folder: Folder, allowed: str) -> bool:
    """Whether every row of every table we read belongs to an allowed patient; stops at the first that does not."""
    with opened("256MB", 2) as connection:
        for table in READ:
            if table in (TITLES, LAB_ITEMS) or folder.file(table) is None:
                continue
            query = f"FROM {folder.source(table)} WHERE (subject_id {allowed}) IS NOT TRUE LIMIT 1"
            if run(connection, folder, table, f"SELECT 1 {query}").fetchone():
                return False
    return True


def _hashes(folder: Folder) -> dict[str, str]:
    found = {}
    for table in READ:
        if path := folder.file(table):
            with path.open("rb") as file:
                found[table.path] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
