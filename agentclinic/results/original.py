"""Reading what the original wrote: dialogues in histories, and results of `agentclinic_api_only.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import Case
from agentclinic.cases.registry import default_class
from agentclinic.errors import CaseError
from agentclinic.results.record import Record
from agentclinic.results.turn import Turn
from agentclinic.results.utterance import DIAGNOSIS_READY, REQUEST_TEST

SPEAKERS = {"Doctor": "doctor", "Patient": "patient", "Measurement": "measurement"}
"""Who speaks in a `dialogue_history`, and the role."""


def turns_in_histories(record: Record) -> tuple[list[Turn], bool]:
    """The turns of a record without a transcript that can be told apart, and whether these are all of them.

    Entries are separated by blank lines. A reply is in the histories of both patient and laboratory, a question only in
    the patient's, and an order only in the laboratory's; this tells them apart even if an entry itself has blank lines.
    """
    told, measured = _blocks(record.patient_hist), _blocks(record.measurement_hist)
    turns: list[Turn] = []
    number = at = of = 0
    while at < len(told) and of < len(measured):
        ordered = _find(told[at], measured, of + 1)
        asked = _find(measured[of], told, at + 1)
        if ordered is not None and any(REQUEST_TEST in block for block in measured[of:ordered]):
            role, said, of = "measurement", measured[of:ordered], ordered
        elif asked is not None:
            role, said, at = "patient", told[at:asked], asked
        else:
            break
        same = _shared(told, at, measured, of)
        number += 1
        turns += [_turn(number, "doctor", said), _turn(number, role, told[at : at + same])]
        at, of = at + same, of + same
    whole = at == len(told) and of == len(measured)
    last = record.diagnosis_text or ""
    if whole and DIAGNOSIS_READY in last:
        number += 1
        turns.append(_turn(number, "doctor", [last]))
    if whole and record.num_turns not in (None, number):
        return [], False  # an empty entry leaves no trace, so turns may have been joined
    return turns, whole


def _blocks(history: str) -> list[str]:
    return [block.strip() for block in re.split(r"\n\s*\n", history) if block.strip()]


def _find(block: str, blocks: Sequence[str], start: int) -> int | None:
    return next((place for place in range(start, len(blocks)) if blocks[place] == block), None)


def _shared(left: Sequence[str], at: int, right: Sequence[str], of: int) -> int:
    """How many blocks in a row are the same from these places on."""
    count = 0
    while at + count < len(left) and of + count < len(right) and left[at + count] == right[of + count]:
        count += 1
    return count


def _turn(number: int, role: str, blocks: Sequence[str]) -> Turn:
    text = "\n\n".join(blocks).removeprefix(f"{role.capitalize()}: ")
    return Turn.model_validate({"turn": number, "role": role, "text": text})


def is_result_line(entry: Mapping[str, Any]) -> bool:
    """Whether a line was written by `agentclinic_api_only.py`."""
    return "model_diagnosis" in entry and "correct_diagnosis" in entry and "status" not in entry


class _Result(BaseModel):
    """The fields of a result line that a record does not have."""

    model_config = ConfigDict(strict=True)

    model_diagnosis: str | None
    dialogue_history: list[str] | None = None
    token_usage: dict[str, Any] | None = None


def record_of_result(entry: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A result line as the data of a record; `ValueError` if it cannot be read."""
    result = _Result.model_validate(entry)
    said = result.model_diagnosis or ""
    turns = _dialogue(result.dialogue_history or [])
    concluded = DIAGNOSIS_READY in said
    found = {
        **entry,
        "status": "diagnosed" if concluded else "max_infs_reached",
        "num_turns": sum(turn.role == "doctor" for turn in turns),
        "ground_truth": entry["correct_diagnosis"],
        "diagnosis_text": said if concluded else None,
        "transcript": turns,
        "usage": _usage(result.token_usage or {}),
    }
    case = case_of_result(entry, path)
    return {**found, "case_hash": case.id, "data_class": case.data_class, "door": case.door} if case else found


def case_of_result(entry: Mapping[str, Any], path: Path) -> Case | None:
    """The case that a result line was played on; None if the line has no case that we can read."""
    row, number = entry.get("problem_info"), str(entry.get("scenario_id"))
    if not isinstance(row, dict) or not number.isdecimal():
        return None
    dataset = str(entry.get("dataset") or path.stem)
    place = Row(path, 0, int(number), _as_published(row))
    try:
        return read_case(place, dataset, default=default_class(dataset, path))
    except CaseError:
        return None


def _as_published(row: dict[str, Any]) -> dict[str, Any]:
    """The row without the copy of the test results that the script adds to the examination before it writes."""
    chart = row.get("OSCE_Examination")
    if not isinstance(chart, dict) or not isinstance(found := chart.get("Physical_Examination_Findings"), dict):
        return row
    examined = {k: v for k, v in found.items() if k != "tests" or v != chart.get("Test_Results")}
    return {**row, "OSCE_Examination": {**chart, "Physical_Examination_Findings": examined}}


def _dialogue(lines: Sequence[str]) -> list[Turn]:
    turns: list[Turn] = []
    number = 0
    for line in lines:
        speaker, _, text = line.partition(":")
        if speaker not in SPEAKERS:
            raise ValueError(f"dialogue_history: entry {len(turns)} does not begin with {', '.join(SPEAKERS)}")
        number += speaker == "Doctor"
        turns.append(_turn(number, SPEAKERS[speaker], [text.strip()]))
    return turns


def _usage(used: Mapping[str, Any]) -> dict[str, dict[str, int | None]] | None:
    counted = {
        role: {"input_tokens": tokens.get("prompt_tokens"), "output_tokens": tokens.get("completion_tokens")}
        for role, tokens in used.items()
        if role in SPEAKERS.values() and isinstance(tokens, dict)
    }
    return counted or None
