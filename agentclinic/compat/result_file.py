"""The file of results that the original's script appends to: one JSON object per scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentclinic.files import is_private
from agentclinic.jsonl import JsonLines
from agentclinic.results.journal import read_records
from agentclinic.results.original import SPEAKERS
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_folder import RECORDS

_SPEAKERS = {role: speaker for speaker, role in SPEAKERS.items()}


def append_results(folder: Path, file: Path) -> None:
    """Append a run's records to a file, in the order of their rows; the file is private if the run's folder is."""
    rows = {case.id: case.row for case in read_cases(folder)}
    with JsonLines(file, private=is_private(folder)) as lines:
        for record in sorted(read_records(folder / RECORDS), key=lambda record: (record.repeat, record.scenario_id)):
            lines.append({**record.model_dump(mode="json"), **result(record, rows[record.case_hash or ""])})


def result(record: Record, row: Mapping[str, Any]) -> dict[str, Any]:
    """A record under the keys of the original's script; unknown token counts are null.

    `row` is the case as it is in its file.
    """
    tokens = {role: _tokens((record.usage or {}).get(role) or {}) for role in _SPEAKERS}
    return {
        "problem_info": row,
        "correct_diagnosis": record.ground_truth,
        "model_diagnosis": record.final_doctor_dialogue,
        "dialogue_history": [
            f"{_SPEAKERS[turn.role]}: {turn.text}" for turn in record.transcript or () if turn.role in _SPEAKERS
        ],
        "token_usage": {**tokens, "total": {key: _sum([used[key] for used in tokens.values()]) for key in _TOKENS}},
    }


_TOKENS = ("total_tokens", "prompt_tokens", "completion_tokens")


def _tokens(used: dict[str, int | None]) -> dict[str, int | None]:
    sent, received = used.get("input_tokens"), used.get("output_tokens")
    return dict(zip(_TOKENS, (_sum([sent, received]), sent, received), strict=True))


def _sum(numbers: list[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
