"""How freely a MIMIC-IV folder may travel: decided from its content, and credentialed whenever in doubt."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from agentclinic.errors import InputError
from agentclinic.generate.mimic.tables import LAB_ITEMS, NOTES, READ, TITLES, Folder, opened, run
from agentclinic.privacy import DataClass

# The list of patients as the MIMIC-IV Clinical Database Demo 2.2 publishes it (its SHA256SUMS.txt says the same).
DEMO_LIST = "demo_subject_id.csv"
DEMO_SHA256 = "6e9ba177eefc70617ccc1782b9af716b23fbcf36c4c5143e275149d78ee83624"

MARKER = "INVENTED.json"
"""What a folder of invented rows carries: the SHA-256 of each of its tables."""
# MIMIC's numbers have eight digits (patients 1…, admissions 2…, stays 3…). Invented patients have nine, so that a table
# of real ones cannot pass by carrying the marker along.
RESERVED_FROM = 900_000_000
RESERVED_TO = 999_999_999


class Classified(NamedTuple):
    """A class and why."""

    data_class: DataClass
    reason: str


def data_class(base_dir: Path) -> DataClass:
    """How freely the folder may travel."""
    return classify(base_dir).data_class


def classify(base_dir: Path) -> Classified:
    """How freely the folder may travel, and the reason in words; whatever cannot be shown is credentialed."""
    folder = Folder(base_dir)
    invented = _near(folder, MARKER)
    if invented:
        return _invented(folder, invented)
    listed = _near(folder, DEMO_LIST)
    if listed:
        return _demo(folder, listed)
    return Classified(DataClass.CREDENTIALED, f"there is neither {DEMO_LIST} nor a list of invented tables")


def mark_synthetic(base_dir: Path) -> None:
    """Mark a folder of invented rows; refused where a patient has a number that MIMIC could give."""
    folder = Folder(base_dir)
    if not _subjects_within(folder, f"BETWEEN {RESERVED_FROM} AND {RESERVED_TO}"):
        raise InputError(f"{base_dir}: a patient's number is outside {RESERVED_FROM} to {RESERVED_TO}: not invented")
    (base_dir / MARKER).write_text(json.dumps({"tables": _hashes(folder)}, indent=1) + "\n", encoding="utf-8")


def _near(folder: Folder, name: str) -> Path | None:
    """A file in the folder given or in the release that its tables belong to."""
    hosp = folder.module("hosp")
    places = (folder.base, *([hosp.parent] if hosp else []))
    return next((place / name for place in places if (place / name).is_file()), None)


def _invented(folder: Folder, marker: Path) -> Classified:
    try:
        listed = json.loads(marker.read_text(encoding="utf-8"))["tables"]
    except (OSError, ValueError, KeyError, TypeError):
        return Classified(DataClass.CREDENTIALED, f"{MARKER} cannot be read")
    if listed != _hashes(folder):
        return Classified(DataClass.CREDENTIALED, f"a table is not as {MARKER} lists it")
    if not _subjects_within(folder, f"BETWEEN {RESERVED_FROM} AND {RESERVED_TO}"):
        return Classified(DataClass.CREDENTIALED, "a patient's number is one that MIMIC could give")
    return Classified(DataClass.SYNTHETIC, f"every table is as {MARKER} lists it, every patient's number invented")


def _demo(folder: Folder, listed: Path) -> Classified:
    content = listed.read_bytes()
    if hashlib.sha256(content).hexdigest() != DEMO_SHA256:
        return Classified(DataClass.CREDENTIALED, f"{DEMO_LIST} is not the published one")
    if folder.file(NOTES):
        return Classified(DataClass.CREDENTIALED, "there are notes, and no notes were ever published openly")
    subjects = ", ".join(str(int(line)) for line in content.split()[1:])
    if not _subjects_within(folder, f"IN ({subjects})"):
        return Classified(DataClass.CREDENTIALED, f"a patient is not in {DEMO_LIST}")
    return Classified(DataClass.OPEN_DEMO, f"every patient is in {DEMO_LIST}")


def _subjects_within(folder: Folder, allowed: str) -> bool:
    """Whether every row of every table we read belongs to an allowed patient; the first that does not ends it."""
    with opened("256MB", 2) as connection:
        for table in READ:
            if table in (TITLES, LAB_ITEMS) or folder.file(table) is None:
                continue
            query = f"FROM {folder.source(table)} WHERE (subject_id {allowed}) IS NOT TRUE LIMIT 1"
            if run(connection, folder, table, f"SELECT 1 {query}").fetchone():
                return False
    return True


def _hashes(folder: Folder) -> dict[str, str]:
    """The SHA-256 of each table we read."""
    found = {}
    for table in READ:
        path = folder.file(table)
        if path:
            with path.open("rb") as file:
                found[table.path] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
