"""The journal of a run: one record per line of `scenarios.jsonl`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from agentclinic import privacy
from agentclinic.cases.registry import default_class
from agentclinic.errors import InputError
from agentclinic.jsonl import drop_lines, read_lines
from agentclinic.privacy import DataClass
from agentclinic.results.original import is_result_line, record_of_result, turns_in_histories
from agentclinic.results.record import Record


def read_records(path: Path) -> Iterator[Record]:
    """The records of a journal, or of a file of the original's results.

    An incomplete last line is skipped; any other bad line is an error.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; is {path.parent} the folder of a run?")
    results: Counter[int] = Counter()
    for number, line, complete in read_lines(path):
        try:
            record = _record(line, path, number)
        except InputError:
            if not complete:
                return
            raise
        if is_result_line(record.model_extra or {}):
            # The script appends to its file: if a scenario occurs twice, it was played twice.
            record.repeat = results[record.scenario_id]
            results[record.scenario_id] += 1
        privacy.meet(class_of(record))
        yield record


def class_of(record: Record) -> DataClass:
    """The class of a record's data; if it does not say, its data set's default."""
    name = record.dataset or ""
    if (record.annotations or {}).get("data_class") == DataClass.CREDENTIALED:
        return DataClass.CREDENTIALED
    return record.data_class or default_class(name, Path(f"{name}.jsonl"))


def _record(line: bytes, path: Path, number: int) -> Record:
    try:
        if b'"model_diagnosis"' in line and isinstance(entry := json.loads(line), dict) and is_result_line(entry):
            return Record.model_validate(record_of_result(entry, path))
        record = Record.model_validate_json(line)
    except ValidationError as error:
        # Without the value, which may be a patient's whole dialogue.
        first = error.errors(include_input=False, include_url=False)[0]
        problem = " ".join(filter(None, [".".join(str(part) for part in first["loc"]), first["msg"]]))
        raise InputError(f"{path} line {number}: not a scenario record ({problem[:160]})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} line {number}: not a result of agentclinic_api_only.py ({error})") from None
    if record.transcript is None and record.patient_hist:
        turns, whole = turns_in_histories(record)
        record.transcript = turns if whole and turns else None
    return record


def drop_records(path: Path, unwanted: Callable[[Record], bool]) -> int:
    """Remove records from a journal, atomically; return how many were removed."""
    return drop_lines(path, lambda number, line: unwanted(_record(line, path, number)))
