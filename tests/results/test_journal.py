"""The journal of a run: each unit counts once, and no line is counted that was not written like that."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentclinic.cases.registry import load_cases
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.jsonl import JsonLines, sealed
from agentclinic.results.journal import read_records
from agentclinic.results.run_cases import write_cases

CASES = load_cases("OpenOSCE_Demo")[:3]


def entry(row: int, **changes: Any) -> dict[str, Any]:
    """The record of a case, as a run writes it."""
    record = {"scenario_id": row, "status": "diagnosed", "correct": True, "case_hash": CASES[row].id, "repeat": 0}
    return {**record, "timing": {"seconds": 1}, **changes}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """The journal of a run that was to play three cases twice; it is empty."""
    write_cases(tmp_path, CASES)
    (tmp_path / "config.used.json").write_text('{"run": {"repeats": 2}}')
    return tmp_path / "scenarios.jsonl"


def write(path: Path, *entries: dict[str, Any]) -> None:
    path.write_bytes(b"".join(sealed(each) + b"\n" for each in entries))


def test_a_line_that_was_written_twice_counts_once_with_a_warning(journal: Path) -> None:
    write(journal, entry(0), entry(1), entry(0, timing={"seconds": 2}), entry(0, repeat=1))
    with pytest.warns(UserWarning, match="line 3: counted once, because it repeats line 1"):
        found = list(read_records(journal))
    assert [(record.scenario_id, record.repeat) for record in found] == [(0, 0), (1, 0), (0, 1)]
    assert all(record.model_extra == {} for record in found), "the checksum is not part of a record"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([entry(0), entry(0, correct=False)], "line 2: contradicts line 1, which is also scenario 0, repeat 0"),
        ([entry(0), entry(0, scenario_id=7)], r"line 2: scenario 7, repeat 0 is not in this run's cases\.jsonl"),
        ([entry(0, case_hash="0" * 16)], "line 1: scenario 0, repeat 0 is not in this run's"),
        ([entry(0, repeat=2)], "line 1: scenario 0, repeat 2 is not in this run's"),
        ([entry(0, status="finished")], "line 1: not a scenario record .status .*must be one of diagnosed, max_infs"),
        ([entry(0, correct="false")], "line 1: not a scenario record .correct"),
        ([entry(0, num_turns=10**300)], "line 1: not a scenario record .num_turns"),
        ([entry(0, transcript=[{"turn": 10**20, "role": "doctor", "text": "x"}])], "line 1: not .*transcript.0.turn"),
    ],
)
def test_a_line_that_cannot_be_counted_is_named(lines: list[dict[str, Any]], told: str, journal: Path) -> None:
    write(journal, *lines)
    with pytest.raises(InputError, match=told):
        list(read_records(journal))


def test_a_changed_line_is_named_with_what_to_do(journal: Path) -> None:
    write(journal, entry(0), entry(1))
    changes = (
        *((b"true", b"false"), (b'"scenario_id":1', b'"scenario_id":2'), (b'":', b'": ')),
        *((b'"seconds":1', b'"seconds":9'), (b'"timing"', b'"timinf"'), (b'"checksum"', b'"checksun"')),
    )
    for old, new in changes:
        first, second = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(first + second.replace(old, new, 1))
        with pytest.raises(InputError, match=r"line 2: it was changed .* remove it and resume the run to play"):
            list(read_records(journal))
        journal.write_bytes(first + second)


def test_an_incomplete_last_line_is_skipped_with_a_warning(journal: Path) -> None:
    write(journal, entry(0), entry(1))
    journal.write_bytes(journal.read_bytes()[:-9])
    with pytest.warns(UserWarning, match="line 2: skipped, because it is incomplete"):
        assert len(list(read_records(journal))) == 1


def test_a_line_without_a_checksum_is_refused_after_one_that_has_it(journal: Path) -> None:
    journal.write_bytes(sealed(entry(0)) + b"\n" + json.dumps(entry(1)).encode() + b"\n")
    with pytest.raises(InputError, match=r"line 2: .* it lacks the checksum that the lines before it have\. Restore"):
        list(read_records(journal))


def test_lines_without_a_checksum_are_read_as_before(journal: Path) -> None:
    journal.write_text("".join(json.dumps(entry(row)) + "\n" for row in (0, 1, 2)))
    assert [record.scenario_id for record in read_records(journal)] == [0, 1, 2]


@pytest.mark.parametrize("key", ["Gout", {"accept": "Gout"}, {"reject": ["Gout"]}, {"reject": [{"text": "Gout"}]}])
def test_an_answer_key_that_scoring_could_not_read_is_refused(key: Any, journal: Path) -> None:
    write(journal, entry(0, annotations={"Answer_Key": key}))
    with pytest.raises(InputError, match=r"line 1: not a scenario record .*Answer_Key must be an object"):
        list(read_records(journal))


def test_odd_identities_in_the_runs_cases_belong_to_no_record(journal: Path) -> None:
    (journal.parent / "cases.jsonl").write_text('{"scenario_id": [0], "case_hash": {}}\n')
    write(journal, entry(0))
    with pytest.raises(InputError, match=r"line 1: scenario 0, repeat 0 is not in this run's cases\.jsonl"):
        list(read_records(journal))


def test_a_line_that_reads_differently_from_what_was_written_stops_the_run(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with JsonLines(journal, journal=True) as lines:
        lines.append(entry(0))
        monkeypatch.setattr(os, "write", lambda file, data: write(file, data.replace(b"true", b"tru3")))  # a bad disk
        with pytest.raises(AgentClinicError, match=r"cannot be written \(the last line reads differently"):
            lines.append(entry(1))
