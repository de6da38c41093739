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
from helpers import ORIGINAL, needs_original, nejm, osce, write_rows
from judges_support import original_run
from mimic_rows import ward
from original_prompts import write_files
from runs_support import clinic, environment, lines
from scripted_server import LONG, ScriptedServer

from agentclinic.compat.init import original_files, write_folder
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


SCRIPT = """from agentclinic import DoctorAgent, ScenarioLoaderMedQAExtended
scenario = ScenarioLoaderMedQAExtended().get_scenario(id=0)
print(DoctorAgent(scenario=scenario, backend_str="scripted").inference_doctor("Hello"))
"""
DOCTOR = """class Mine:
    def __init__(self, scenario, **options): ...
    def inference_doctor(self, question):
        return "DIAGNOSIS READY: Frobisher fever"
"""


def add_other_files(folder: Path) -> None:
    """What else such a folder has: files that some command uses, files of other programs, and broken ones."""
    texts = {
        "README.md": "About", "requirements.txt": "openai", "explore.ipynb": '{"cells": []}', "notes.json": "{}",
        "prompts/unused.json": '{"anything": "x"}', ".git/config": "x", "docs/logo.png": "x", "nejm/scan.png": "x",
        "my_script.py": SCRIPT, "old_script.py": "from agentclinic import Nothing", "my_doctor.py": DOCTOR,
        "utils.py": "import os", "sweep.json": '{"matrix": {"seed": [1, 2]}}', ".env": "OPENAI_API_KEY=not-a-key",
        "broken.config.json": '{"run": {"wokers": 1}}', "prompts/patient2.json": "{}", "broken.jsonl": "{",
        "agent/diagnosis_sessions/broken.json": "{}",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    write_rows(folder / "nejm" / "mine.jsonl", nejm(image_url="scan.png"))
    write_rows(folder / "no_cases.jsonl", {"OSCE_Examination": {}})
    write_questions(folder / "questions.jsonl", [question()])
    write_rows(
        folder / "results.jsonl",
        {"scenario_id": 0, "model_diagnosis": "Gout", "correct_diagnosis": "Gout", "correct": True},
    )
    ward().write(folder / "datasets" / "mimic-iv-3.1")


Used = tuple[str, ...] | None
"""A command that uses a file; None if none does."""


def use_of(path: str) -> Used:
    """The command with which a person would use a file of this folder."""
    name, parent = Path(path).name, Path(path).parent
    if path.endswith(".config.json") and name not in ("gen.config.json", "llm.config.json"):
        return ("run", "--config", path, "--dry-run")
    match (parent.as_posix(), name):
        case (".", "llm.config.json") | (".", ".env"):
            return ("run", "--dry-run")
        case ("prompts", "test_policy.json"):
            return ("run", "--dry-run", "--doctor_test_policy", "test_policy")
        case ("prompts", "no_discriminators.json"):
            return ("run", "--dry-run", "--doctor_test_policy", "no_discriminators")
        case ("agent", "agent_config.yaml"):
            return ("run", "--use_uncertainty_aware", "--doctor_test_policy_enabled", "False", "--dry-run")
        case (_, "scenarios.jsonl") | (".", "results.jsonl"):
            return ("score", path)
        case (_, "config.used.json"):
            return ("run", "--config", path, "--dry-run")
        case ("generate_cases", "gen.config.json"):
            return ("generate", "mimic", "--dry-run")
        case (".", "questions.jsonl"):
            return ("generate", "medqa", "--base-dir", path, "--model", "builtin", "--dry-run")
        case ("nejm", _):
            return ("run", "--dataset", "nejm/mine.jsonl", "--doctor_image_request", "--dry-run")
        case (".", "sweep.json"):
            return ("sweep", path, "--dry-run")
        case (".", "my_doctor.py"):
            return ("run", "--doctor", "my_doctor.py:Mine", "--doctor_test_policy_enabled", "False", "--dry-run")
        case ("agent/diagnosis_sessions", _) if name.endswith(".json"):
            return ("sessions", f"../one/{name}")  # a folder with this file alone
        case (_, "no_cases.jsonl") | ("processed_data", _) if name.endswith(".jsonl"):
            return ("data", "check", path)
    if path.startswith("datasets/") and name.endswith(".csv.gz"):
        return ("generate", "mimic", "--dry-run")
    roles = ("doctor", "patient", "measurement", "moderator", "measurement_cost")
    return ("run", "--dry-run") if parent.name == "prompts" and Path(path).stem in roles else None


@pytest.mark.slow
def test_what_the_check_says_of_every_file_is_what_happens_if_it_is_used(folder: Path, server: ScriptedServer) -> None:
    add_other_files(folder)
    listed = json.loads(clinic("check-folder", ".", "--json", cwd=folder, expect=2).stdout)
    verdicts = {line["path"]: line["verdict"] for line in listed}
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    closed = {path for path in verdicts if (folder / path).is_dir()}
    assert closed == {".git"}
    assert set(verdicts) - closed == {path for path in files if not path.startswith(".git/")}
    ours = original_files()
    written = {path for path in files if path in ours and (folder / path).read_text() == ours[path]}
    commands: dict[Used, tuple[int | None, str]] = {}
    wrong = []
    for path, verdict in sorted(verdicts.items()):
        command = use_of(path)
        if command and command[0] == "sessions":
            alone = folder.parent / "one" / Path(path).name
            alone.mkdir(parents=True)
            shutil.copyfile(folder / path, alone / alone.name)
        if command and command not in commands:
            done = clinic(*command, cwd=folder, expect=None)
            commands[command] = (done.returncode, done.stdout + done.stderr)
        code, said = commands.get(command, (0, ""))
        if path.endswith(".py") or path in written or verdict == "no counterpart":
            continue  # below
        works = code == 0 and "damaged: " not in said  # `sessions` goes on without a damaged file
        if command is None or works != (verdict in ("works as it is", "translated")):
            wrong.append((path, verdict, command, said[-300:]))
    assert not wrong
    assert verdicts["broken.config.json"] == verdicts["no_cases.jsonl"] == "cannot be used"
    assert verdicts["agent/diagnosis_sessions/broken.json"] == verdicts["old_script.py"] == "cannot be used"
    assert verdicts["nejm/scan.png"] == verdicts["my_doctor.py"] == verdicts["my_script.py"] == "works as it is"
    assert python("my_script.py", cwd=folder).strip()
    failed = subprocess.run([sys.executable, "old_script.py"], cwd=folder, env=environment(), capture_output=True)
    assert b"ImportError" in failed.stderr
    # What has no counterpart changes nothing: a run sends the same requests without it.
    flags = ("run", "--num_scenarios", "1", "--name")
    server.reset()
    clinic(*flags, "with", cwd=folder)
    before = [entry["body"] for entry in server.log()]
    assert before
    for path, verdict in verdicts.items():
        if verdict == "no counterpart" and path not in closed:
            (folder / path).unlink()
    server.reset()
    clinic(*flags, "without", cwd=folder)
    assert [entry["body"] for entry in server.log()] == before


def test_the_check_says_what_becomes_of_the_files_that_people_bring(folder: Path) -> None:
    found = {
        line["path"]: line["verdict"] for line in json.loads(clinic("check-folder", ".", "--json", cwd=folder).stdout)
    }
    assert found["prompts/doctor.json"] == found["prompts/test_policy.json"] == "translated"
    assert found["runs/MedQA_20250912_100713/scenarios.jsonl"] == "works as it is"
    assert all(verdict == "works as it is" for path, verdict in found.items() if "diagnosis_sessions" in path)
    assert found["agentclinic.config.json"] == "translated", "a note on the model that no longer makes up prices"
    assert "cannot be used" not in found.values()
