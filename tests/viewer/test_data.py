"""What the viewer reads of runs: a little at a time, and only what is new."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest
from report_support import record, unread, write_run, wrong
from scripted_server import LONG

from agentclinic.errors import InputError
from agentclinic.viewer.data import COLUMNS, Library, RunIndex


def test_a_run_is_read_part_by_part(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record(number) for number in range(3)])
    (run / "scenarios.jsonl").write_bytes(codecs.BOM_UTF8 + (run / "scenarios.jsonl").read_bytes())
    index = RunIndex(run)
    assert index.read(seconds=0), "there is more"
    assert len(index.rows) == 1
    assert index.encounter("Made/2")["truth"] == "Gout", "it reads as far as it must"
    assert not index.read(LONG)
    assert index.summary.presented == 3
    row = dict(zip(COLUMNS, index.rows[0], strict=True))
    assert row | {"key": ""} == {
        "name": "Made/0", "outcome": "diagnosed_right", "why": "", "truth": "Gout", "answer": "Gout", "sure": 0.7,
        "turns": 3, "tests": 1, "price": row["price"], "cost": 0.01, "regret": None, "specialty": "Rheumatology",
        "key": "",
    }  # fmt: skip
    assert "second" not in json.dumps(index.encounter("Made/0"))
    (run / "judgements").mkdir()
    again = {"scenario_id": 0, "case_hash": f"{0:016x}", "repeat": 0, "correct": False, "relation": "different"}
    (run / "judgements" / "second.jsonl").write_text(json.dumps(again) + "\n")
    assert "second" in json.dumps(index.encounter("Made/0")), "judged again while the viewer is open"
    with pytest.raises(InputError, match="no encounter 7"):
        index.encounter("7")


def test_a_bad_line_is_named_and_the_rows_before_it_stay(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [record(0), record(1, repeat=1)])
    with (run / "scenarios.jsonl").open("a") as journal:
        journal.write("no record\n")
    library = Library(tmp_path)
    library.index("run").read(LONG)
    rows = library.rows("run", 0, None)
    assert [row[0] for row in rows["rows"]] == ["Made/0", "Made/1.2"]
    assert "scenarios.jsonl line 3: not a scenario record" in rows["run"]["problem"]
    assert rows["run"]["state"] == "unreadable"
    write_run(run, [record(0), record(2)])
    library.index("run").read(LONG)
    again = library.rows("run", 2, rows["version"])
    assert (again["first"], [row[0] for row in again["rows"]]) == (0, ["Made/0", "Made/2"]), "it was repaired"
    assert again["run"]["problem"] is None


def test_a_search_goes_on_where_it_stopped_and_ignores_what_was_not_said(tmp_path: Path) -> None:
    said = [record(0), record(1), record(2)]
    said[0]["transcript"][1]["text"] = 'Ça a\nCommencé "hier"'
    said[2]["transcript"][3]["text"] = 'RESULTS: ça a commencé "hier"'
    said[1]["transcript"].insert(0, {"turn": 1, "role": "planner", "text": "Cholera is unlikely."})
    index = RunIndex(write_run(tmp_path / "run", said))
    assert not index.read(LONG)
    found, rest = index.search('ÇA A  commencé "HIER"', 0, seconds=0)
    assert (found, rest) == ([("Made/0", 1, 'Ça a Commencé "hier"')], 1)
    found, rest = index.search('ça a commencé "hier"', rest or 0, LONG)
    assert ([(name, turn) for name, turn, _ in found], rest) == ([("Made/2", 2)], None)
    for text in ("Rheumatology", "Cholera"):
        assert index.search(text, 0, LONG) == ([], None), "an annotation, a plan: not said by anyone"


def test_only_runs_in_the_folder_can_be_asked_for(tmp_path: Path) -> None:
    write_run(tmp_path / "outside", [record(0)])
    write_run(tmp_path / "runs" / "inside", [record(0)])
    library = Library(tmp_path / "runs")
    for name in ("../outside", "", ".", "inside/..", str(tmp_path / "outside")):
        with pytest.raises(InputError, match="there is no run"):
            library.index(name)
    with pytest.raises(InputError, match="two runs or more"):
        library.compare(["inside"])


def test_a_run_without_a_summary_is_summed_up_while_the_list_is_shown(tmp_path: Path) -> None:
    for name in ("before", "run"):
        write_run(tmp_path / name, [record(0), wrong(1)])
    library = Library(tmp_path)
    first = library.runs(seconds=0)
    assert first["more"]
    assert [run["reading"] for run in first["runs"]] == [False, True], "at least one is read"
    second = library.runs(LONG)
    assert (second["more"], second["runs"][1]["right_text"]) == (False, "50% (9% to 91%)")
    (tmp_path / "run" / "summary.json").write_text(json.dumps({"presented": 9}))
    _, run = library.runs(LONG)["runs"]
    assert (run["encounters"], run["state"]) == (2, "complete"), "the records count"
    assert run["problem"] == "summary.json says otherwise (presented); these numbers are from scenarios.jsonl"


def test_a_large_run_is_counted_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentclinic.viewer.data.LARGE", 1)
    write_run(tmp_path / "run", [record(0), wrong(1)])
    library = Library(tmp_path)
    first = library.runs(seconds=0)
    assert (first["more"], first["runs"][0]["reading"], first["runs"][0]["encounters"]) == (True, True, 1)
    second = library.runs(LONG)
    assert (second["more"], second["runs"][0]["right_text"]) == (False, "50% (9% to 91%)")


def test_unread_answers_have_their_reason_and_the_run_says_what_to_do(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [record(0), wrong(1), unread(2)])
    library = Library(tmp_path)
    library.index("run").read(LONG)
    listed = library.rows("run", 0, None)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in listed["rows"]]
    assert [row["why"] for row in rows] == ["", "another disease", "cannot read 'zzyzx'"]
    assert rows[2]["outcome"] == "not_readable"
    assert listed["run"]["right_text"] == "33% (6% to 79%), at most 67%: 1 of 3 not readable"
    assert "agentclinic judge label run --unread" in listed["run"]["advice"]
    (run,) = library.runs()["runs"]
    assert run["right_text"] == listed["run"]["right_text"]
    assert library.runs()["outcomes"]["not_readable"] == "not readable"
