"""`agentclinic sessions`: the list, one session, and the summary, as text and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import osce, write_rows
from runs_support import clinic, lines, run_here, settings_for, without
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.scoring.sessions import load_sessions, summarise_sessions

pytestmark = pytest.mark.anyio


def doubts(first: float, second: float) -> list[dict[str, Any]]:
    return [
        {"diagnosis": "Gout", "probability": first, "reason": "hot toe"},
        {"diagnosis": "Flu", "probability": second},
    ]


STEPS: list[dict[str, Any]] = [
    {"new_information": "sore toe", "current_uncertainties": doubts(0.5, 0.3), "next_step_action": "ASK PATIENT: Hot?"},
    {"new_information": "warm", "current_uncertainties": "Gout, Flu, Cold", "next_step_action": "REQUEST TEST: Urate"},
    {"new_information": "high", "current_uncertainties": doubts(0.8, 0.1), "next_step_action": "DIAGNOSIS READY"},
]


@pytest.fixture
async def run(server: ScriptedServer, tmp_path: Path) -> Path:
    """Three encounters whose synthesis is the leading diagnosis and right, another and wrong, failed and right."""
    server.control(
        steps=STEPS,
        rules=[
            {"match": {"purpose": "synthesis", "nth": [2]}, "reply": "Sepsis"},
            {"match": {"purpose": "synthesis", "nth": [3, 4]}, "fault": "500"},
            {"match": {"purpose": "moderator", "nth": [2]}, "reply": "No"},
        ],
        synthesis="Gout",
    )
    path = write_rows(tmp_path / "cases.jsonl", *(osce(truth="Gout", exam={"General": f"{n}"}) for n in range(3)))
    finished, _ = await run_here(settings_for(server, tmp_path / "out", dataset=str(path), doctor="uncertainty"))
    return finished.folder


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    capsys.readouterr()
    main(["sessions", *map(str, arguments)])
    return capsys.readouterr().out


async def test_the_list_has_a_line_per_session(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, run)
    rows = [line.split("  ") for line in text.splitlines() if line.startswith("scenario_")]
    assert [(row[0][:11], row[-2].strip(), row[-1]) for row in rows] == [
        ("scenario_0_", "Gout (0.80)", "right"),
        ("scenario_1_", "Sepsis (0.80)", "wrong: Gout"),
        ("scenario_2_", "Gout (0.80)", "right"),
    ]
    assert "3 sessions in" in text
    data = json.loads(shown(capsys, run, "--json"))
    assert [entry["steps"] for entry in data["sessions"]] == [3, 3, 3]
    assert [entry["correct"] for entry in data["sessions"]] == [True, False, True]
    assert data["damaged"] == []


async def test_one_session_is_shown_step_by_step(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, run, "1")
    for line in (
        "step 1\n  learned: sore toe\n  0.50  Gout: hot toe\n  0.30  Flu\n  action: ASK PATIENT: Hot?",
        "step 2\n  learned: warm\n     ?  Gout\n     ?  Flu\n     ?  Cold\n  action: REQUEST TEST: Urate",
        "final diagnosis: Sepsis (wrong)",
        "synthesis by scripted",
        "truth: Gout",
    ):
        assert line in text
    assert "which failed (server" in shown(capsys, run, "scenario_2_")
    data = json.loads(shown(capsys, run, "1", "--json"))
    assert data["session"]["steps"][1]["new_information"] == "warm"


async def test_a_synthesis_that_could_not_be_read_fixed_and_broke_nothing(run: Path) -> None:
    entries = [without(one, ["checksum"]) for one in lines(run / "scenarios.jsonl")]
    write_rows(run / "scenarios.jsonl", *({**one, "status": "not_readable", "correct": None} for one in entries))
    summary = summarise_sessions(load_sessions(run))
    assert (summary.synthesis_differs.count, summary.fixed, summary.broken) == (1, 0, 0)


async def test_the_summary_counts_what_the_records_lack(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = summarise_sessions(load_sessions(run))
    assert (summary.sessions, summary.steps.value, summary.facts.value) == (3, 3, 3)
    assert summary.hypotheses.value == pytest.approx(7 / 3)
    assert summary.with_probabilities.value == pytest.approx(6 / 9)
    assert summary.recorded_by_clinic.value == 0
    assert summary.concluded.value == 1
    assert summary.synthesis_failed.value == pytest.approx(1 / 3)
    assert summary.synthesis_differs.value == pytest.approx(1 / 3)
    assert (summary.fixed, summary.broken) == (0, 1)
    text = shown(capsys, run, "--summary")
    assert "synthesis fixed 0, broke 1" in text
    assert "accuracy" in text
    data = json.loads(shown(capsys, run, "--summary", "--json"))
    assert data["sessions"]["broken"] == 1
    assert data["score"] is not None


async def test_a_folder_of_sessions_needs_no_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, run / "diagnosis_sessions")
    assert "right" not in text
    assert "3 sessions in" in text
    assert "final diagnosis: Gout" in shown(capsys, run / "diagnosis_sessions", "0")
    assert "these sessions have no records" in shown(capsys, run / "diagnosis_sessions", "--summary")


async def test_damaged_files_are_named_and_left_alone(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (first, *_) = sorted((run / "diagnosis_sessions").glob("*.json"))
    first.write_text('{"session_id"')
    (run / "diagnosis_sessions" / "old.json.damaged").write_text("?")
    text = shown(capsys, run)
    assert "2 sessions in" in text
    assert f"damaged: {first} line 1: not a session" in text
    assert "old.json.damaged: set aside as damaged by an older version" in text
    assert first.read_text() == '{"session_id"', "reading does not change it"
    assert len(json.loads(shown(capsys, run, "--json"))["damaged"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such file or folder"),
        (["."], "no sessions in this folder"),
        (["RUN", "scenario_9"], "has no session 'scenario_9'"),
        (["RUN", "77"], "has no session '77'"),
        (["RUN", "scenario_"], "matches 3 sessions"),
        (["RUN/diagnosis_sessions", "--judge", "x"], "not a run folder"),
    ],
)
async def test_a_missing_session_is_named(run: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "empty").mkdir()
    given = [argument.replace("RUN", str(run)) for argument in arguments]
    done = clinic("sessions", *given, cwd=tmp_path / "empty", expect=2)
    assert message in done.stderr


def test_runs_of_other_doctors_have_no_sessions(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "1", "--output_dir", "out", cwd=tmp_path)
    (folder,) = (tmp_path / "out").iterdir()
    assert "its doctor kept no sessions" in clinic("sessions", folder, cwd=tmp_path, expect=2).stderr


async def test_a_synonym_is_not_another_disease(server: ScriptedServer, tmp_path: Path) -> None:
    steps = [{**step, "current_uncertainties": "Heart attack 70 %, Flu 10 %"} for step in STEPS]
    server.control(steps=steps, synthesis="Acute myocardial infarction")
    path = write_rows(tmp_path / "cases.jsonl", osce(truth="Acute myocardial infarction"))
    finished, _ = await run_here(settings_for(server, tmp_path / "out", dataset=str(path), doctor="uncertainty"))
    assert summarise_sessions(load_sessions(finished.folder)).synthesis_differs.value == 0


async def test_what_a_doctor_noted_cannot_act_on_the_terminal(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noted = {**STEPS[2], "new_information": "\x1b[2Jhot\x9b", "next_step_action": "DIAGNOSIS READY"}
    server.control(steps=[noted], synthesis="Gout\x1b[1A")
    path = write_rows(tmp_path / "cases.jsonl", osce(truth="Gout"))
    finished, _ = await run_here(settings_for(server, tmp_path / "out", dataset=str(path), doctor="uncertainty"))
    for which in ((), ("0",), ("0", "--json"), ("--summary",)):
        assert not set(shown(capsys, finished.folder, *which)) & {"\x1b", "\x9b"}


async def test_a_step_with_a_differential_of_another_shape_states_no_probabilities(tmp_path: Path) -> None:
    step = {"step_number": 1, "new_information": "", "current_uncertainties": ["Gout"], "next_step_action": ""}
    for number, odd in enumerate((0.5, [["Gout"]], {"Gout": 1}, [3])):
        session = {"session_id": f"s{number}", "steps": [{**step, "differential": odd}]}
        (tmp_path / f"s{number}.json").write_text(json.dumps(session))
    (tmp_path / "odd.json").write_text('{"session_id": "odd", "final_diagnosis": 0.5}')
    found = load_sessions(tmp_path)
    assert found.damaged == (f"{tmp_path}/odd.json: not a session (the file: value error, {_ODD})",)
    summary = summarise_sessions(found)
    assert (summary.sessions, summary.steps.value) == (4, 1)


_ODD = "final_diagnosis must be text or null"
