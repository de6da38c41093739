"""The journal of a run: one record per line of `scenarios.jsonl`."""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from agentclinic import privacy
from agentclinic.cases.registry import class_by_name
from agentclinic.errors import InputError
from agentclinic.jsonl import CHANGED, drop_lines, loads, read_lines, unchanged
from agentclinic.privacy import DataClass
from agentclinic.results.original import is_result_line, record_of_result, turns_in_histories
from agentclinic.results.record import Record
from agentclinic.results.run_cases import CASES, planned_units
from agentclinic.results.run_folder import RECORDS


def read_records(path: Path) -> Iterator[Record]:
    """The records of a journal, or of a file of the original's results; each unit of a run is counted once.

    An incomplete last line is skipped with a warning.
    """
    reading = Reading(path)
    for number, line, complete in read_lines(path):
        try:
            record = reading.record(number, line)
        except InputError:
            if not complete:
                warnings.warn(f"{path} line {number}: skipped, because it is incomplete", stacklevel=2)
                return
            raise
        if record is not None:
            yield record


class Reading:
    """Reads the lines of a journal in order and checks each against those before it."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise InputError(f"{path}: no such file; is {path.parent} the folder of a run?")
        self._path = path
        self._planned = planned_units(path.parent) if path.name == RECORDS else None
        self._results: Counter[int] = Counter()
        self._seen: dict[str, tuple[int, str]] = {}

    def record(self, number: int, line: bytes) -> Record | None:
        """The record in a line; None, with a warning, if the same line was there before.

        Any other line that is bad, that contradicts an earlier one or that does not belong to the run is an error.
        """
        path = self._path
        record, content = parse_record(line, path, number)
        if is_result_line(record.model_extra or {}):
            # The script appends to its file: if a scenario occurs twice, it was played twice.
            record.repeat = self._results[record.scenario_id]
            self._results[record.scenario_id] += 1
        else:
            before, same = self._seen.setdefault(record.unit, (number, content))
            what = f"scenario {record.scenario_id}, repeat {record.repeat}"
            if self._planned is not None and not self._planned(record):
                raise InputError(f"{path} line {number}: {what} is not in this run's {CASES}; remove the line")
            if same != content:
                raise InputError(
                    f"{path} line {number}: contradicts line {before}, which is also {what}; remove one of them, or "
                    "both and resume the run to play it again"
                )
            if before != number:
                warnings.warn(f"{path} line {number}: counted once, because it repeats line {before}", stacklevel=2)
                return None
        privacy.raise_data_class(class_of(record))
        return record


def class_of(record: Record) -> DataClass:
    """The class of a record's data; if it does not say, its data set's default."""
    if (record.annotations or {}).get("data_class") == DataClass.CREDENTIALED:
        return DataClass.CREDENTIALED
    return record.data_class or class_by_name(record.dataset or "")


def parse_record(line: bytes, path: Path, number: int) -> tuple[Record, str]:
    """A record, and what identifies its content: the checksum, or a hash of a line without one."""
    try:
        if b'"model_diagnosis"' in line and is_result_line(entry := loads(line)):
            return Record.model_validate(record_of_result(entry, path)), ""
        record = Record.model_validate_json(line)
    except ValidationError as error:
        # Without the value, which may be a patient's whole dialogue.
        first = error.errors(include_input=False, include_url=False)[0]
        problem = " ".join(filter(None, [".".join(str(part) for part in first["loc"]), first["msg"]]))
        raise InputError(f"{path} line {number}: not a scenario record ({problem[:160]})") from None
    except ValueError as error:
        raise InputError(f"{path} line {number}: not a result of agentclinic_api_only.py ({error})") from None
    checksum = (record.model_extra or {}).pop("checksum", None)
    if checksum is not None and not unchanged(line, checksum):
        raise InputError(
            f"{path} line {number}: {CHANGED}. Restore the line, or remove it and resume the run to play its scenario "
            "again"
        )
    if record.transcript is None and record.patient_hist:
        turns, whole = turns_in_histories(record)
        record.transcript = turns if whole and turns else None
    return record, checksum or hashlib.sha256(line).hexdigest()


def drop_records(path: Path, unwanted: Callable[[Record], bool]) -> int:
    """Remove records from a journal, atomically; return how many were removed."""
    return drop_lines(path, lambda number, line: unwanted(parse_record(line.rstrip(b"\n"), path, number)[0]))
