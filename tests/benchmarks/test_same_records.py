"""benchmarks/same_records.py finds what differs between two runs, and only that."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from benchmark_support import load_benchmark

S = load_benchmark("same_records")
RECORD: dict[str, Any] = {
    "scenario_id": 0,
    "repeat": 0,
    "correct": True,
    "judgement": {"relation": "same"},
    "transcript": [
        {"turn": 1, "role": "doctor", "text": "REQUEST TEST: ECG", "action": "test"},
        {"turn": 1, "role": "measurement", "text": "RESULTS: normal", "action": None},
    ],
    "timing": {"seconds": 1.5},
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**deepcopy(RECORD), **fields}


def write(folder: Path, *records: dict[str, Any]) -> Path:
    folder.mkdir(parents=True)
    (folder / "scenarios.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in records), encoding="utf-8")
    return folder


def test_a_run_of_the_next_version_has_the_same_records(tmp_path: Path) -> None:
    """Timing varies, a verdict has gained `correct`, and an action has gained its content."""
    new = changed(timing={"seconds": 9.0}, judgement={"relation": "same", "correct": True})
    new["transcript"][0]["action"] = {"kind": "test", "content": "ECG"}
    before, after = write(tmp_path / "a", RECORD), write(tmp_path / "b", new)
    assert S.main([str(before), str(after)]) == 0


@pytest.mark.parametrize(
    ("after", "field", "values"),
    [
        (changed(correct=False), "correct", (True, False)),
        (changed(correct=1), "correct", (True, 1)),
        (changed(judgement={"relation": "broader"}), "judgement.relation", ("same", "broader")),
        (changed(fault=None), "fault", (S.ABSENT, None)),
        (
            changed(transcript=[*RECORD["transcript"][:1], {**RECORD["transcript"][1], "text": "x"}]),
            "transcript[1].text",
            ("RESULTS: normal", "x"),
        ),
        (
            changed(transcript=[{**RECORD["transcript"][0], "action": {"kind": "question"}}, RECORD["transcript"][1]]),
            "transcript[0].action",
            ("test", "question"),
        ),
        (changed(transcript=RECORD["transcript"][:1]), "transcript[1]", (RECORD["transcript"][1], S.ABSENT)),
    ],
)
def test_a_difference_is_named_with_its_path_and_both_values(
    after: dict[str, Any], field: str, values: tuple[Any, Any]
) -> None:
    assert list(S.differences(RECORD, after)) == [(field, *values)]


def test_every_difference_is_printed_with_its_unit_and_counted_in_the_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs are matched below two folders, whenever they were played; a missing unit and a missing run are named."""
    write(tmp_path / "a/plain/OpenOSCE_20260101_120000", RECORD, changed(repeat=1), changed(scenario_id=1))
    write(tmp_path / "b/plain/OpenOSCE_20260202_130000", RECORD, changed(repeat=1, correct=False))
    write(tmp_path / "a/policy/OpenOSCE_20260101_130000", RECORD)
    assert S.main([str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"policy/OpenOSCE: only in {tmp_path / 'a'}",
        "plain/OpenOSCE, scenario 0, repeat 1: correct: true -> false",
        'plain/OpenOSCE, scenario 1, repeat 0: record: "present" -> (absent)',
        "1 runs compared, 1 without a counterpart; 3 units, 2 differ in 2 fields",
    ]


def test_a_long_value_is_shown_where_it_differs() -> None:
    (difference,) = S.differences({"text": "a" * 500 + "x"}, {"text": "a" * 500 + "y"})
    assert str(difference) == f'text: …{"a" * 20}x" -> …{"a" * 20}y"'


def test_two_runs_of_one_name_cannot_be_matched(tmp_path: Path) -> None:
    write(tmp_path / "OpenOSCE_20260101_120000", RECORD)
    write(tmp_path / "OpenOSCE_20260101_120001", RECORD)
    with pytest.raises(S.InputError, match="differ only in their time stamp"):
        S.runs_in(tmp_path)


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(S.InputError, match="there is no run in this folder"):
        S.main([str(tmp_path), str(tmp_path)])
