"""Runs judged by several judges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ORIGINAL_FIELDS = {"dataset": "MedQA", "num_turns": 3, "doctor_llm": "d", "moderator_llm": "gpt-4", "max_infs": 20}
DISEASES = ["Acute appendicitis", "Migraine", "Asthma", "Gout", "Psoriasis", "Measles", "Scurvy", "Rabies"]


def write_lines(path: Path, entries: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def original_run(folder: Path, verdicts: Sequence[bool] = (True, True, True, False, False, False, True, False)) -> Path:
    """A run as the original wrote it, with its fields only; the last but one ran out of turns."""
    records: list[dict[str, Any]] = [
        {
            **ORIGINAL_FIELDS,
            "scenario_id": number,
            "status": "diagnosed",
            "correct": verdict,
            "ground_truth": DISEASES[number],
            "diagnosis_text": f"DIAGNOSIS READY: {DISEASES[number] if verdict else 'Glaucoma'}",
        }
        for number, verdict in enumerate(verdicts)
    ]
    records.append({**ORIGINAL_FIELDS, "scenario_id": 8, "status": "max_infs_reached", "correct": False})
    records.append({**ORIGINAL_FIELDS, "scenario_id": 9, "status": "model_failed", "correct": None})
    write_lines(folder / "scenarios.jsonl", records)
    return folder


def judge(folder: Path, name: str, verdicts: Sequence[bool | str | None], **more: Any) -> None:
    """Another judge's verdicts: None if it failed, "unread" if it could not read the diagnosis."""
    entries: list[dict[str, Any]] = [
        {"scenario_id": n, "case_hash": None, "repeat": 0, "moderator_llm": name, "correct": verdict, **more}
        for n, verdict in enumerate(verdicts)
    ]
    for entry in entries:
        if entry["correct"] is None:
            entry["fault"] = {"error": "timeout", "message": "no answer"}
        elif entry["correct"] == "unread":
            entry |= {"correct": None, "reason": "cannot read 'zzyzx'"}
    write_lines(folder / "judgements" / f"{name}.jsonl", entries)


UNREAD = "Broken wing zzyzx of gout"
"""An answer that code cannot read: no vocabulary has the word."""
