"""The journal of a run: one record per line of `scenarios.jsonl`."""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentclinic import privacy
from agentclinic.cases.registry import class_by_name
from agentclinic.errors import InputError
from agentclinic.jsonl import LACKING, drop_lines, loads, read_lines, take_checksums
from agentclinic.privacy import DataClass, strictest
from agentclinic.results.original import is_result_line, record_of_result, turns_in_histories
from agentclinic.results.record import Record
from agentclinic.results.run_cases import CASES, planned_units, read_cases
from agentclinic.results.run_folder import RECORDS, read_used, stated_class


def read_records(path: Path, form: type[Record] = Record) -> Iterator[Record]:
    """The records of a journal, or of a file of the original's results; each unit of a run is counted once.

    An incomplete last line is skipped with a warning.
    """
    reading = Reading(path, form)
    for number, line, complete in read_lines(path):
        try:
            record = reading.record(number, line, complete=complete)
        except InputError:
            if not complete:
                warnings.warn(f"{path} line {number}: skipped, because it is incomplete", stacklevel=2)
                return
            raise
        if record is not None:
            yield record


class Reading:
    """Reads the lines of a journal in order and checks each against those before it.

    If a line or file that says what class the data has cannot be read, everything written from then on is private.
    """

    def __init__(self, path: Path, form: type[Record] = Record) -> None:
        if not path.exists():
            raise InputError(f"{path}: no such file; is {path.parent} the folder of a run?")
        self._path, self._form = path, form
        used = [read_used(folder) for folder in dict.fromkeys((path.parent, path.resolve().parent))]
        self._class = _stated(path.parent, used)
        self._planned = planned_units(path.parent, used[0]) if path.name == RECORDS else None
        self._results: Counter[int] = Counter()
        self._seen: dict[str, tuple[int, str]] = {}
        self._covered = 0

    def record(self, number: int, line: bytes, *, complete: bool = True) -> Record | None:
        """The record in a line; None, with a warning, if the same line was there before.

        Any other line that is bad, that contradicts an earlier one or that does not belong to the run is an error.
        """
        try:
            record = self._record(number, line)
        except InputError:
            if complete and self._class is None:
                privacy.raise_data_class(DataClass.CREDENTIALED)
            raise
        if record is not None:
            ours = self._covered or record.case_hash
            unsure = ours and record.data_class is None and self._class is None
            privacy.raise_data_class(DataClass.CREDENTIALED if unsure else class_of(record))
        return record

    def _record(self, number: int, line: bytes) -> Record | None:
        path = self._path
        record, content, covered = parse_record(line, path, number, self._form)
        if is_result_line(record.model_extra or {}):
            # The script appends to its file: if a scenario occurs twice, it was played twice.
            record.repeat = self._results[record.scenario_id]
            self._results[record.scenario_id] += 1
            return record
        if covered < self._covered:
            raise changed(path, number, LACKING)
        self._covered = covered
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
        return record


def _stated(folder: Path, used: Iterable[Mapping[str, Any]]) -> DataClass | None:
    """The class of a run's data by its settings, or else by its cases; None if they do not say."""
    classes = [found for each in used if (found := stated_class(each))]
    try:
        classes = classes or [case.data_class for case in read_cases(folder)]
    except InputError:
        classes = [DataClass.CREDENTIALED]
    privacy.raise_data_class(strictest(classes))
    return strictest(classes) if classes else None


def class_of(record: Record) -> DataClass:
    """The class of a record's data; if it does not say, its data set's default."""
    if (record.annotations or {}).get("data_class") == DataClass.CREDENTIALED:
        return DataClass.CREDENTIALED
    return record.data_class or class_by_name(record.dataset or "")


def parse_record(line: bytes, path: Path, number: int, form: type[Record] = Record) -> tuple[Record, str, int]:
    """A record, its checksum (or a hash of a line without one), and how much of the line is covered by checksums."""
    try:
        if b'"model_diagnosis"' in line and is_result_line(entry := loads(line)):
            return Record.model_validate(record_of_result(entry, path)), "", 0
        record = form.model_validate_json(line)
    except ValidationError as error:
        # Without the value, which may be a patient's whole dialogue.
        first = error.errors(include_input=False, include_url=False)[0]
        problem = " ".join(filter(None, [".".join(str(part) for part in first["loc"]), first["msg"]]))
        raise InputError(f"{path} line {number}: not a scenario record ({problem[:160]})") from None
    except ValueError as error:
        raise InputError(f"{path} line {number}: not a result of agentclinic_api_only.py ({error})") from None
    try:
        checksum, covered = take_checksums(line, record.model_extra or {}, record.timing)
    except ValueError as error:
        raise changed(path, number, str(error)) from None
    if record.transcript is None and record.patient_hist and form is Record:
        turns, whole = turns_in_histories(record)
        record.transcript = turns if whole and turns else None
    return record, checksum or hashlib.sha256(line).hexdigest(), covered


def changed(path: Path, number: int, how: str) -> InputError:
    return InputError(
        f"{path} line {number}: {how}. Restore the line, or remove it and resume the run to play its scenario again"
    )


def drop_records(path: Path, unwanted: Callable[[Record], bool]) -> int:
    """Remove records from a journal, atomically; return how many were removed."""
    return drop_lines(path, lambda number, line: unwanted(parse_record(line.rstrip(b"\n"), path, number)[0]))
