"""A folder in the original's layout, with its own files or files of ours in its formats, used as its users would."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from generate_support import question, write_questions
from helpers import ORIGINAL, needs_original, osce, write_rows
from judges_support import original_run
from mimic_rows import ward
from original_prompts import write_files
from runs_support import clinic, environment, lines
from scripted_server import LONG, ScriptedServer

from agentclinic.compat.init import write_folder
from agentclinic.doctors.uncertainty.agent_config import SHIPPED as AGENTS

Json = dict[str, Any]
QUICK_START = ("agentclinic.py", "--config", "agentclinic.config.json", "--workers", "4")


@pytest.fixture(params=["written here", pytest.param("the original's", marks=[needs_original, pytest.mark.slow])])
def folder(request: pytest.FixtureRequest, tmp_path: Path, server: ScriptedServer) -> Path:
    """The files that people bring; `agentclinic init` adds the scripts and changes none of them."""
    place = tmp_path / "checkout"
    if request.param == "written here":
        _write_own(place)
    else:
        shutil.copytree(ORIGINAL, place, copy_function=shutil.copyfile)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    write_folder(place, original=True)
    assert {path: path.read_bytes() for path in before} == before
    # What every user sets: where the models and the cases are, and how many to play.
    edit(place / "llm.config.json", openai={"api_key": "not-a-key", "base_url": server.base_url})
    edit(place / "llm.config.json", "llm", "runtime", timeout=0.0)
    run = json.loads((place / "agentclinic.config.json").read_text())["run"]
    models = {name: "scripted" for name in run if name.endswith("_llm")}
    edit(place / "agentclinic.config.json", "run", **models, num_scenarios=2, total_inferences=6)
    write_rows(place / "processed_data" / "agentclinic_medqa_extended.jsonl", osce(), osce(truth="Zygomycosis"))
    return place


def _write_own(place: Path) -> None:
    """Small files of ours in the original's formats."""
    roles = {f"{role}_llm": "m" for role in ("doctor", "patient", "measurement", "measurement_cost", "moderator")}
    run = {"inf_type": "llm", **roles, "dataset": "MedQA_Ext", "doctor_test_policy_enabled": True}
    data = {"MedQA_Ext": "processed_data/agentclinic_medqa_extended.jsonl"}
    place.mkdir()
    put(place / "agentclinic.config.json", {"run": {**run, "resource_level": "normal"}, "datasets": data})
    put(place / "llm.config.json", {"openai": {}, "llm": {"responses": {}, "runtime": {"tries": 2, "llm_api": "chat"}}})
    write_files(place / "prompts")
    agents = yaml.safe_load(AGENTS.read_text())["agents"]
    agents["searcher"] = {"model": "m", "system_prompt": "Search.", "tools": ["search"], "terminal_tools": []}
    put(place / "agent" / "agent_config.yaml", {"agents": agents})
    step = {"step_number": 1, "new_information": "a sore toe", "uncertainties": {"Gout": "it is the toe"}}
    step |= {"action": "REQUEST TEST: Uric acid", "action_reason": "it decides", "reference_relevance": "none"}
    put(place / "agent" / "diagnosis_sessions" / "scenario_1.json", {"session_id": "scenario_1", "steps": [step]})
    old = original_run(place / "runs" / "MedQA_20250912_100713")
    put(old / "config.used.json", {"run": run, "llm": {"responses": {}}, "datasets": data})
    sections: Json = {"common": {"llm_config": "../llm.config.json", "model": "gpt-5", "sleep_seconds": 0.0}}
    sections["mimic"] = {
        "limit": 30,
        "output": "processed_data/agentclinic_mimiciv.jsonl",
        "base_dataset_dir": "datasets/mimic-iv-3.1/",
    }
    sections["medqa"] = {"limit": 30, "output": "processed_data/medqa_grounded.jsonl"}
    put(place / "generate_cases" / "gen.config.json", sections)


def put(path: Path, data: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")


def edit(path: Path, *sections: str, **changes: Any) -> None:
    """Change keys in a JSON file."""
    data: Json = json.loads(path.read_text(encoding="utf-8"))
    part = data
    for section in sections:
        part = part[section]
    part.update(changes)
    path.write_text(json.dumps(data), encoding="utf-8")


def python(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment(), capture_output=True, text=True, timeout=LONG
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def sent(server: ScriptedServer, purpose: str) -> str:
    bodies = [entry["body"] for entry in server.log() if entry["purpose"] == purpose]
    assert bodies
    return json.dumps(bodies, ensure_ascii=False)


def new_run(folder: Path) -> Path:
    (found,) = (run for run in (folder / "runs").glob("MedQA_Ext_*") if (run / "summary.json").exists())
    return found


@pytest.mark.slow
def test_the_quick_start_plays_with_its_prompts_and_policy_and_an_edit_is_sent(
    folder: Path, server: ScriptedServer
) -> None:
    python(*QUICK_START, cwd=folder)
    played = new_run(folder)
    assert {record["dialogue"] for record in lines(played / "scenarios.jsonl")} == {"transcript"}
    assert json.loads((played / "summary.json").read_text())["total_presented"] == 2
    places = {
        "doctor": ("doctor", "system_base"),
        "patient": ("patient", "system_base"),
        "measurement": ("measurement", "system_base"),
        "moderator": ("moderator", "system_prompt"),
        "test_policy": ("planner", "instructions"),
    }
    for file, (purpose, key) in places.items():
        text = json.loads((folder / "prompts" / f"{file}.json").read_text())[key]
        # The doctor's text has places to fill: the words before the first are enough.
        assert json.dumps(text.partition("{}")[0], ensure_ascii=False)[1:-1] in sent(server, purpose)
        edit(folder / "prompts" / f"{file}.json", **{key: f"<edited {file}> {text}"})
        assert f"<edited {file}>" not in sent(server, purpose)
    shutil.rmtree(played)
    server.reset()
    python(*QUICK_START, cwd=folder)
    assert all(f"<edited {file}>" in sent(server, purpose) for file, (purpose, _) in places.items())


def test_its_agent_config_and_its_sessions_are_used(folder: Path, server: ScriptedServer) -> None:
    path = folder / "agent" / "agent_config.yaml"
    agents = yaml.safe_load(path.read_text())
    agents["agents"]["uncertainty_aware_doctor"]["system_prompt"] += "\n<edited agent>"
    path.write_text(yaml.safe_dump(agents))
    said = clinic("run", "--use_uncertainty_aware", "--doctor_test_policy_enabled", "False", cwd=folder)
    assert "<edited agent>" in sent(server, "doctor")
    assert "uncertainty_aware_doctor" in said.stderr, "which entry is used, and which are not"
    sessions = folder / "agent" / "diagnosis_sessions"
    before = {path: path.read_bytes() for path in sessions.glob("*.json")}
    listed = clinic("sessions", sessions, cwd=folder).stdout
    assert before
    assert all(path.stem in listed for path in before)
    assert {path: path.read_bytes() for path in sessions.glob("*.json")} == before


def test_its_old_run_can_be_used_except_for_resuming(folder: Path) -> None:
    old = "runs/MedQA_20250912_100713"
    assert json.loads(clinic("score", old, "--json", cwd=folder).stdout)
    clinic("report", old, cwd=folder)
    said = clinic("resume", old, cwd=folder, expect=2).stderr
    assert "was not written by this program" in said


@pytest.mark.slow
def test_its_second_quick_start_makes_cases_from_mimic_with_its_generation_config(
    folder: Path, server: ScriptedServer
) -> None:
    ward().write(folder / "datasets" / "mimic-iv-3.1")
    config = folder / "generate_cases" / "gen.config.json"
    asked_for = json.loads(config.read_text())["mimic"]["output"]
    edit(config, "common", sleep_seconds=0.0)
    python("generate_cases/gen_mimic_tutorial.py", "--workers", "30", "--limit", "15", cwd=folder)
    assert lines(folder / asked_for)
    assert "gpt-5" in sent(server, "writer"), "the model that the config names, at the endpoint that it names"


@pytest.mark.slow
def test_its_generation_config_makes_cases_from_questions(folder: Path) -> None:
    write_questions(folder / "questions.jsonl", [question(number) for number in range(2)])
    python(
        "generate_cases/gen_medqa_tutorial.py", "--base-dir", "questions.jsonl", "--model", "builtin",
        "--sleep_seconds", "0", cwd=folder,
    )  # fmt: skip
    assert len(lines(folder / "processed_data" / "medqa_grounded.jsonl")) == 2


def test_the_check_says_what_becomes_of_every_file(folder: Path) -> None:
    found = {
        line["path"]: line["verdict"] for line in json.loads(clinic("check-folder", ".", "--json", cwd=folder).stdout)
    }
    assert found["prompts/doctor.json"] == found["prompts/test_policy.json"] == "translated"
    assert found["agent/diagnosis_sessions"] == found["runs/MedQA_20250912_100713"] == "works as it is"
    assert "cannot be used" not in found.values()
