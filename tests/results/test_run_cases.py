"""`RUN/cases.jsonl`: written and read back without loss, private if its folder is, and guarded against changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import EVERY, PUBLIC_FILES, bundled_cases, needs_public_data, public_cases

from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.errors import InputError
from agentclinic.results.record import Record
from agentclinic.results.run_cases import CASES, case_finder, case_lines, lines_digest, read_cases, write_cases
from agentclinic.results.run_folder import make_private, write_used


def check_round_trip(cases: Sequence[Case], folder: Path) -> None:
    make_private(folder)
    write_cases(folder, cases)
    assert (folder / CASES).stat().st_mode & 0o777 == 0o600
    back = read_cases(folder)
    assert len(back) == len(cases)
    for before, after in zip(cases, back, strict=True):
        assert after == before, f"{before.dataset} row {before.scenario_id}"


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("dataset", ["OpenOSCE", "OpenOSCE_Demo"])
def test_every_bundled_case_is_written_and_read_back_equal(dataset: str, every: int, tmp_path: Path) -> None:
    check_round_trip(bundled_cases(dataset, lockbox=True)[::every], tmp_path)


@needs_public_data
@pytest.mark.parametrize("dataset", PUBLIC_FILES)
def test_every_public_case_is_written_and_read_back_equal(dataset: str, tmp_path: Path) -> None:
    check_round_trip(public_cases(dataset), tmp_path)


def test_in_an_open_folder_the_file_is_as_open_as_other_new_files(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "other").write_text("")
    write_cases(tmp_path, load_cases("OpenOSCE_Demo"))
    assert (tmp_path / CASES).stat().st_mode == (tmp_path / "other").stat().st_mode


def changed_line(folder: Path, number: int, old: str, new: str) -> None:
    """Change one line of a run's cases."""
    write_cases(folder, load_cases("OpenOSCE_Demo"))
    lines = (folder / CASES).read_text(encoding="utf-8").splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    (folder / CASES).write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"History":["', '"History":["Changed. ', r"cases\.jsonl line 2: the case was changed since the run"),
        ('"Correct_Diagnosis":"', '"Correct_Diagnosis":"Not ', r"line 2: the case was changed"),
        ('"case_hash":"', '"case_hash":"0', r"line 2: the case was changed"),
        ('"scenario_id":', '"row":', r"line 2: not a case of a run"),
        ('"scenario_id":', '"scenario_id":Infinity,"row":', r"line 2: not a case of a run"),
        ('"case":{', '"case":[],"row":{', r"line 2: not a case of a run"),
        ('"data_class":"', '"image":3,"data_class":"', r"line 2: not a case of a run"),
        ('"data_class":"', '"data_class":"un', r"line 2: not a case of a run"),
        ('"Correct_Diagnosis"', '"Diagnosis"', r"line 2: .*Correct_Diagnosis"),
        ("{", "", r"line 2: not a case of a run; restore the file"),
    ],
)
def test_a_changed_line_is_refused_by_number(tmp_path: Path, old: str, new: str, told: str) -> None:
    changed_line(tmp_path, 2, old, new)
    with pytest.raises(InputError, match=told):
        read_cases(tmp_path)


def test_an_incomplete_last_line_is_refused_and_not_skipped(tmp_path: Path) -> None:
    write_cases(tmp_path, load_cases("OpenOSCE_Demo")[:2])
    (tmp_path / CASES).write_bytes((tmp_path / CASES).read_bytes()[:-20])
    with pytest.raises(InputError, match=r"line 2: not a case of a run; restore the file"):
        read_cases(tmp_path)


def test_a_run_of_an_older_version_has_no_cases(tmp_path: Path) -> None:
    assert read_cases(tmp_path) == []


def test_a_case_is_found_by_its_record_and_read_only_then(tmp_path: Path) -> None:
    cases = load_cases("OpenOSCE_Demo")[:3]
    write_cases(tmp_path, cases)
    (tmp_path / CASES).write_bytes((tmp_path / CASES).read_bytes()[:-20])
    find = case_finder(tmp_path)

    def record(case: Case, **changes: Any) -> Record:
        return Record(**{"scenario_id": case.scenario_id, "status": "diagnosed", "case_hash": case.id, **changes})

    assert [find(record(case)) for case in cases[1::-1]] == [cases[1], cases[0]]
    assert find(record(cases[0], case_hash=cases[1].id)) is None
    assert find(record(cases[0], case_hash=None)) is None
    with pytest.raises(InputError, match=r"line 3: not a case of a run; restore the file"):
        find(record(cases[2]))


def test_a_change_that_no_hash_of_a_case_covers_is_refused_by_the_hash_of_all(tmp_path: Path) -> None:
    cases = load_cases("OpenOSCE_Demo")
    write_cases(tmp_path, cases)
    write_used(tmp_path, {"agentclinic": {"digest": {"cases": lines_digest(case_lines(cases))}}})
    assert read_cases(tmp_path) == cases
    kept = tmp_path / CASES
    kept.write_text(kept.read_text(encoding="utf-8").replace('"easy"', '"hard"', 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"cases\.jsonl: the cases were changed since the run; restore the file"):
        read_cases(tmp_path)


def test_the_digest_is_of_the_exact_lines() -> None:
    cases = load_cases("OpenOSCE_Demo")[:2]
    lines = case_lines(cases)
    assert lines_digest(lines) == lines_digest(case_lines(cases))
    assert json.loads(lines[0])["case"] == cases[0].row
    assert len({lines_digest(lines), lines_digest(lines[::-1]), lines_digest([lines[0], lines[1] + " "])}) == 3
