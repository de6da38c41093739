"""`agentclinic regrade --resynthesize`: another prompt or model on recorded facts, nothing simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import osce, write_rows
from runs_support import asked, clinic, lines, point_at, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.errors import InputError
from agentclinic.results.run_data import load_run
from agentclinic.runs.execute import Finished
from agentclinic.runs.regrade import regrade
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.sessions import load_sessions

pytestmark = pytest.mark.anyio

TWO = [{"diagnosis": "Gout", "probability": 0.7}, {"diagnosis": "Flu", "probability": 0.2}]
STEPS = [
    {"new_information": "toe of {mark}", "current_uncertainties": TWO, "next_step_action": "ASK PATIENT: Hot?"},
    {"new_information": "hot toe", "current_uncertainties": TWO, "next_step_action": "DIAGNOSIS READY"},
]


@pytest.fixture
async def finished(server: ScriptedServer, tmp_path: Path) -> Finished:
    """A run of three, judged right; the server has forgotten it."""
    server.control(steps=STEPS, synthesis="Gout")
    path = write_rows(tmp_path / "c.jsonl", *(osce(objective=f"See mark-{n}z.", truth=f"Gout {n}") for n in range(3)))
    done, _ = await run_here(settings_for(server, tmp_path / "out", dataset=str(path), doctor="uncertainty"))
    server.reset()
    return done


def own_prompt(folder: Path) -> Path:
    (folder / "tuned").mkdir(exist_ok=True)
    prompt = {"system_base": "Be exact.", "user_prompt_template": "FACTS {facts}"}
    (folder / "tuned" / "synthesis.json").write_text(json.dumps(prompt))
    return folder / "tuned"


async def test_another_prompt_and_model_make_new_diagnoses_of_the_recorded_facts(
    finished: Finished, server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in finished.folder.rglob("*") if path.is_file()}
    server.control(synthesis="Pseudogout", rules=[{"match": {"purpose": "moderator", "nth": 1}, "reply": "No"}])
    settings = settings_for(server, tmp_path, synthesis_llm="other/model", prompts_dir=str(own_prompt(tmp_path)))
    done = await regrade(finished.folder, settings, resynthesize=True)
    assert (done.judged, done.failed, done.new_diagnoses) == (3, 0, 3)
    assert [(r.scenario_id, r.correct, now) for r, now in done.changed] == [(0, True, False)]
    assert done.path.name.startswith("resynthesized_other_model_")
    entries = lines(done.path)
    assert [entry["diagnosis"] for entry in entries] == ["Pseudogout"] * 3
    assert {entry["synthesis"]["model"] for entry in entries} == {"other/model"}
    assert {path: path.read_bytes() for path in before} == before, "the run itself is not touched"
    log = server.log()
    assert [entry["purpose"] for entry in log].count("synthesis") == 3
    assert {entry["purpose"] for entry in log} == {"synthesis", "moderator"}, "nothing is simulated"
    text = json.dumps(log[0]["body"])
    assert "Be exact." in text
    assert "FACTS - toe of mark-0z\\n- hot toe" in text
    scored = load_run(finished.folder, done.path.stem)
    assert [record.correct for record in scored.records()] == [False, True, True]
    assert {record.diagnosis_text for record in scored.records()} == {"Pseudogout"}, "what was judged"
    assert [confidence(record)[0] for record in scored.records()] == [None] * 3, "no probability was stated for that"
    listed = load_sessions(finished.folder, done.path.stem)
    assert [kept.final for kept in listed.kept] == ["Pseudogout"] * 3
    capsys.readouterr()
    main(["sessions", str(finished.folder), "0", "--judge", done.path.stem])
    assert "final diagnosis: Gout; synthesized again: Pseudogout (wrong)" in capsys.readouterr().out


async def test_the_runs_own_synthesis_model_is_used_if_none_is_named(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(synthesis="Gout")
    done = await regrade(finished.folder, settings_for(server, tmp_path), resynthesize=True)
    assert done.new_diagnoses == 0
    assert {e["body"]["model"] for e in server.log() if e["purpose"] == "synthesis"} == {"scripted"}


async def test_it_resumes_where_it_stopped_and_retries_failures(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    settings = settings_for(server, tmp_path, synthesis_llm="other")
    server.control(rules=[{"match": {"purpose": "synthesis", "nth": [2]}, "fault": "auth"}])
    first = await regrade(finished.folder, settings, "mine", resynthesize=True)
    assert (first.judged, first.failed, first.not_tried) == (1, 1, 1)
    server.reset()
    again = await regrade(finished.folder, settings, "mine", resynthesize=True)
    assert (again.judged, again.failed) == (3, 0)
    assert asked(server, "synthesis") == 2
    assert [entry["scenario_id"] for entry in lines(again.path)] == [0, 1, 2]
    with pytest.raises(InputError, match="choose another file with --name"):
        await regrade(finished.folder, settings_for(server, tmp_path, synthesis_llm="third"), "mine", resynthesize=True)


async def test_a_synthesis_that_fails_again_is_marked(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "synthesis"}, "fault": "refusal"}])
    done = await regrade(finished.folder, settings_for(server, tmp_path), resynthesize=True)
    entries = lines(done.path)
    assert [entry["diagnosis"] for entry in entries] == ["Gout"] * 3
    assert all(entry["synthesis_failed"].startswith("refused") for entry in entries)


def _lost(folder: Path) -> None:
    next((folder / "diagnosis_sessions").glob("*.json")).unlink()


def _damaged(folder: Path) -> None:
    next((folder / "diagnosis_sessions").glob("*.json")).write_text("{")


@pytest.mark.parametrize(("harm", "told"), [(_lost, "missing; c/0 cannot be synthesized"), (_damaged, "not a session")])
async def test_a_session_that_is_lost_is_told_before_anything_is_asked(
    finished: Finished, server: ScriptedServer, tmp_path: Path, harm: Any, told: str
) -> None:
    harm(finished.folder)
    point_at(tmp_path, server)
    done = clinic("regrade", finished.folder, "--resynthesize", "--moderator_llm", "scripted", cwd=tmp_path, expect=2)
    assert told in done.stderr
    assert asked(server) == 0


@pytest.mark.slow
def test_the_command_tells_what_changed_and_refuses_other_runs(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "2", "--output_dir", "plain", cwd=tmp_path)
    (plain,) = (tmp_path / "plain").iterdir()
    done = clinic("regrade", plain, "--resynthesize", cwd=tmp_path, expect=2)
    assert "has no sessions to make diagnoses from; they are kept by --doctor uncertainty" in done.stderr
    clinic("run", "--num_scenarios", "2", "--output_dir", "ours", "--doctor", "uncertainty", cwd=tmp_path)
    (ours,) = (tmp_path / "ours").iterdir()
    said = clinic("regrade", ours, "--resynthesize", cwd=tmp_path).stdout
    assert "0 new diagnoses, unlike the recorded ones" in said
    data = json.loads(clinic("regrade", ours, "--resynthesize", "--json", cwd=tmp_path).stdout)
    assert (data["judged"], data["new_diagnoses"]) == (2, 0)
    assert clinic("regrade", tmp_path, "--resynthesize", cwd=tmp_path, expect=2).stderr.startswith("Error: ")
