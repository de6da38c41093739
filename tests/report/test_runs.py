"""The list of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs_support import Json, clinic, own_cases, run_here, settings_for

from agentclinic.cli import main
from agentclinic.files import Lock
from agentclinic.report.runs import list_runs

pytestmark = pytest.mark.anyio


async def test_runs_are_listed_with_what_was_played_how_it_went_and_whether_it_is_complete(tmp_path: Path) -> None:
    cases, runs = own_cases(tmp_path, 2), tmp_path / "runs"
    named: Json = {"dataset": str(cases), "name": "first-try", "doctor_test_policy_enabled": True}
    done, _ = await run_here(settings_for(None, runs, **named))
    assert done.folder.name.endswith("_first-try")
    half, _ = await run_here(settings_for(None, runs / "older", dataset=str(cases)))
    journal = half.folder / "scenarios.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    broken = runs / "broken"
    broken.mkdir()
    (broken / "scenarios.jsonl").write_text("no record\n")

    listed = {run.state: run for run in list_runs(runs)}

    assert len(listed) == 3
    assert listed["unreadable"].problem is not None
    assert "scenarios.jsonl line 1" in listed["unreadable"].problem
    complete, incomplete = listed["complete"], listed["incomplete"]
    assert (complete.name, complete.dataset, complete.model) == (done.folder.name, "own_cases", "builtin")
    assert complete.doctor == "plain + policy"
    assert complete.accuracy == done.summary.accuracy_strict
    assert (complete.encounters, complete.planned, complete.cost_usd) == (2, 2, 0.0)
    assert (incomplete.encounters, incomplete.planned) == (1, 2), "the old summary counts for nothing"
    with Lock(half.folder):
        assert {run.state for run in list_runs(half.folder)} == {"running"}


async def test_the_records_count_and_not_the_summary_whatever_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done, _ = await run_here(settings_for(None, tmp_path / "runs", dataset=str(own_cases(tmp_path, 2))))
    summary = done.folder / "summary.json"
    (true,) = list_runs(done.folder)
    assert (true.accuracy, true.note) == (done.summary.accuracy_strict, None)
    written = json.loads(summary.read_text())
    right = {"value": 1.0, "count": 2, "of": 2, "low": 0.9, "high": 1.0}
    spent = {"cost_usd": {**written["cost_usd"], "doctor": 7.5}}
    for forged, named in (
        ({"accuracy_strict": right}, "accuracy_strict"),
        (spent, "cost_usd"),
        ({"presented": 3}, "presented"),
    ):
        summary.write_text(json.dumps({**written, **forged}))
        (listed,) = list_runs(done.folder)
        assert listed.model_copy(update={"note": None}) == true
        assert listed.note == f"summary.json says otherwise ({named}); these numbers are from scenarios.jsonl"
    main(["runs", str(done.folder)])
    assert "summary.json says otherwise (presented)" in capsys.readouterr().out
    for odd in ("{", "[]"):
        summary.write_text(odd)
        assert "summary.json cannot be read" in (list_runs(done.folder)[0].note or "")
    summary.unlink()
    assert list_runs(done.folder) == [true], "as after a kill"


async def test_a_damaged_line_anywhere_makes_a_run_unreadable(tmp_path: Path) -> None:
    done, _ = await run_here(settings_for(None, tmp_path / "runs", dataset=str(own_cases(tmp_path, 2))))
    journal = done.folder / "scenarios.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"What brings', b'"what brings'))
    (listed,) = list_runs(done.folder)
    assert listed.state == "unreadable"
    assert "line 1: it was changed since it was written" in (listed.problem or "")


@pytest.mark.slow
async def test_the_command_filters_and_refuses_what_is_no_folder(tmp_path: Path) -> None:
    cases, runs = own_cases(tmp_path, 1), tmp_path / "runs"
    for doctor in ("plain", "door_only"):
        await run_here(settings_for(None, runs, dataset=str(cases), doctor=doctor))

    found = json.loads(clinic("runs", "--doctor", "DOOR", "--json", cwd=tmp_path).stdout)
    assert [run["doctor"] for run in found] == ["door_only"]
    text = clinic("runs", cwd=tmp_path).stdout
    assert text.startswith("run ")
    assert "  builtin" in text
    assert "door_only (builtin)" in text
    assert "no run in runs matches" in clinic("runs", "--state", "running", cwd=tmp_path).stdout
    assert "nowhere: there is no such folder" in clinic("runs", "nowhere", cwd=tmp_path, expect=2).stderr
    assert "name" in clinic("run", "--name", "a/b", cwd=tmp_path, expect=2).stderr


def test_a_run_with_odd_settings_is_listed_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    ours = '{"agentclinic": {"units": "many", "unsupported_bias": 3}, "run": {"dataset": 3, "doctor_llm": {}}}'
    for number, odd in enumerate(("{", '{"run": "x", "agentclinic": [1]}', ours)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "config.used.json").write_text(odd)
        (folder / "scenarios.jsonl").write_text('{"scenario_id": 0, "status": "diagnosed", "correct": true}\n')
    listed = list_runs(tmp_path)
    assert [run.state for run in listed] == ["unreadable", "complete", "complete"]
    assert [(run.dataset, run.model, run.doctor) for run in listed[1:]] == [(None, None, "plain")] * 2
