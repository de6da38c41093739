"""What `agentclinic check-folder` says about the original's files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import ORIGINAL, needs_original, osce, write_rows
from judges_support import original_run
from runs_support import ROOT, clinic
from scripted_server import ScriptedServer

from agentclinic.clinic.prompts import load_prompt
from agentclinic.compat.folder import FileUse, Verdict, check_folder
from agentclinic.compat.init import write_folder
from agentclinic.config import ROLES
from agentclinic.errors import AgentClinicError


def write(path: Path, data: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def told(folder: Path) -> dict[str, FileUse]:
    return {finding.path.as_posix(): finding for finding in check_folder(folder)}


def test_every_case_of_a_file_is_read_the_lockbox_too(tmp_path: Path) -> None:
    write_rows(tmp_path / "agentclinic_medqa.jsonl", osce(), osce(truth="Gout", lockbox=True))
    assert told(tmp_path)["agentclinic_medqa.jsonl"].note.startswith("2 cases")


def test_a_folder_made_by_init_runs_as_it_is_but_for_data_it_cannot_have(tmp_path: Path) -> None:
    write_folder(tmp_path, original=True)

    others = {path: finding for path, finding in told(tmp_path).items() if finding.verdict is not Verdict.WORKS}
    assert list(others) == ["generate_cases/gen.config.json"]
    assert "mimic.base_dataset_dir" in others["generate_cases/gen.config.json"].note, "MIMIC-IV has to be put there"


def test_each_file_is_read_as_a_run_would_read_it(tmp_path: Path) -> None:
    write_rows(tmp_path / "cases.jsonl", osce(), osce())
    run = {"dataset": "Mine", "measurement_cost_llm": "gpt-4o"}
    write(tmp_path / "agentclinic.config.json", {"run": run, "datasets": {"Mine": "cases.jsonl"}})
    write(tmp_path / "other.config.json", {"run": {"dataset": "MedQA", "simulator": "free"}})
    write(tmp_path / "llm.config.json", {"openai": {"api_key": "sk-secret-123456", "base_url": "http://u:pw@host/v1"}})
    write(tmp_path / "generate_cases" / "gen.config.json", {"common": {"llm_config": "gone.json"}})
    write(tmp_path / "prompts" / "test_policy.json", {"constraints": {"finish_early_if_confident": 0.8}})
    write(tmp_path / "prompts" / "measurement_cost.json", {"system_base": "x"})
    step = {"step_number": 1, "new_information": "x", "current_uncertainties": ["y"], "next_step_action": "z"}
    write(tmp_path / "agent" / "diagnosis_sessions" / "s.json", {"session_id": "s", "steps": [step]})
    original_run(tmp_path / "runs" / "MedQA_20250912_100713")
    write(tmp_path / "notes.json", {"anything": 1})
    write(tmp_path / ".git" / "agentclinic.config.json", "{")

    found = told(tmp_path)

    assert {path: (one.what, one.verdict) for path, one in found.items()} == {
        "agentclinic.config.json": ("settings", Verdict.TRANSLATED),
        "other.config.json": ("settings", Verdict.TO_DO),
        "llm.config.json": ("endpoint", Verdict.WORKS),
        "generate_cases/gen.config.json": ("generation", Verdict.TO_DO),
        "prompts/test_policy.json": ("test policy", Verdict.WORKS),
        "prompts/measurement_cost.json": ("prompt", Verdict.NONE),
        "agent/diagnosis_sessions/s.json": ("session", Verdict.WORKS),
        "runs/MedQA_20250912_100713/scenarios.jsonl": ("run", Verdict.WORKS),
        "cases.jsonl": ("cases", Verdict.WORKS),
        "notes.json": ("other", Verdict.NONE),
        ".git": ("folder", Verdict.NONE),
    }
    notes = {path: one.note for path, one in found.items()}
    assert "run.measurement_cost_llm" in notes["agentclinic.config.json"]
    assert "--preset original" in notes["agentclinic.config.json"]
    assert str(tmp_path / "processed_data" / "agentclinic_medqa.jsonl") in notes["other.config.json"]
    assert notes["llm.config.json"] == "models at http://host/v1"
    assert notes["cases.jsonl"].startswith("2 cases")
    assert notes["runs/MedQA_20250912_100713/scenarios.jsonl"].startswith("10 scenarios")


def test_a_generation_config_works_once_its_tables_are_there_and_names_the_source_that_is_not_set(
    tmp_path: Path,
) -> None:
    write(tmp_path / "generate_cases" / "gen.config.json", {"mimic": {"base_dataset_dir": "tables"}, "medqa": {}})
    assert told(tmp_path)["generate_cases/gen.config.json"].verdict is Verdict.TO_DO
    (tmp_path / "tables").mkdir()
    found = told(tmp_path)["generate_cases/gen.config.json"]
    assert (found.verdict, found.note) == (Verdict.WORKS, "`agentclinic generate medqa` needs --base-dir")
    assert "--base-dir" in clinic("generate", "medqa", cwd=tmp_path, expect=2).stderr


def test_a_file_of_agents_can_be_used_if_one_of_them_can_be_the_doctor(tmp_path: Path) -> None:
    agents = yaml.safe_load((ROOT / "agentclinic/doctors/uncertainty/agent_config.yaml").read_text())["agents"]
    path = write(tmp_path / "agent" / "agent_config.yaml", yaml.safe_dump({"agents": agents}))
    assert told(tmp_path)["agent/agent_config.yaml"].verdict is Verdict.WORKS

    write(path, yaml.safe_dump({"agents": {"searcher": {"model": "m", "system_prompt": "x", "tools": ["search"]}}}))
    assert told(tmp_path)["agent/agent_config.yaml"].verdict is Verdict.BROKEN


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("agentclinic.config.json", '{"run": {"wokers": 3}}', "did you mean 'workers'"),
        ("agentclinic.config.json", '{"run": ', "line 1: not valid JSON"),
        ("prompts/doctor.json", "[]", "expected a JSON object"),
        ("cases.jsonl", '{"OSCE_Examination": {}}\n', "line 1"),
        ("runs/old/scenarios.jsonl", '{"scenario_id": "x"}\n', "line 1: not a scenario record"),
        ("agent/diagnosis_sessions/s.json", "{}", "s.json"),
        ("script.py", "from agentclinic import DoctorAgent, Nothing", "imports agentclinic.Nothing"),
    ],
)
def test_a_broken_file_is_named_and_the_exit_code_is_2(tmp_path: Path, name: str, content: str, said: str) -> None:
    write(tmp_path / name, content)

    done = clinic("check-folder", ".", cwd=tmp_path, expect=2)
    as_json = json.loads(clinic("check-folder", ".", "--json", cwd=tmp_path, expect=2).stdout)

    assert "cannot be used" in done.stdout
    assert said in done.stdout
    assert [one["verdict"] for one in as_json] == ["cannot be used"]


def test_files_of_other_programs_and_what_cannot_be_opened_are_named(tmp_path: Path) -> None:
    write(tmp_path / "model" / "tokenizer_config.json", '{"model_type": "llama"}')
    os.mkfifo(tmp_path / "prompts.json")  # opening it would wait for a writer
    (tmp_path / "cases.jsonl").symlink_to(tmp_path / "gone.jsonl")
    (tmp_path / "data").symlink_to(tmp_path / "model")

    assert {path: one.verdict for path, one in told(tmp_path).items()} == {
        "model/tokenizer_config.json": Verdict.NONE,
        "prompts.json": Verdict.NONE,
        "cases.jsonl": Verdict.BROKEN,
        "data": Verdict.NONE,
    }


def test_an_empty_folder_and_none_are_refused(tmp_path: Path) -> None:
    assert "has no files" in clinic("check-folder", ".", cwd=tmp_path, expect=2).stderr
    assert "no such folder" in clinic("check-folder", "nowhere", cwd=tmp_path, expect=2).stderr


def test_files_of_which_the_same_is_said_share_a_line_that_counts_them(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / "docs" / f"{name}.md", name)
        write(tmp_path / "runs" / name / "summary.json", {})
    shown = clinic("check-folder", ".", cwd=tmp_path).stdout
    assert "docs/*.md (3 files)  " in shown
    assert "runs/*/summary.json (3 files)  " in shown
    assert shown.endswith("\nno counterpart 6\n")


def test_keys_in_an_env_file_are_used_and_never_shown(tmp_path: Path, server: ScriptedServer) -> None:
    secret = "sk-secret-9f8e7d6c5b4a"
    write(tmp_path / ".env", f"OPENAI_API_KEY={secret}\nOPENAI_BASE_URL={server.base_url}\nsk-nameless-0123456789\n")
    write(tmp_path / "sub" / ".env", "OTHER=sk-other-0123456789\n")
    for flags in ((), ("--json",)):
        shown = clinic("check-folder", ".", *flags, cwd=tmp_path)
        assert "OPENAI_API_KEY" in shown.stdout
        assert "sk-" not in shown.stdout + shown.stderr
    found = told(tmp_path)
    assert (found[".env"].verdict, found["sub/.env"].verdict) == (Verdict.WORKS, Verdict.NONE)
    clinic("run", "--doctor_llm", "m", "--num_scenarios", "1", cwd=tmp_path)
    assert {entry["headers"]["authorization"] for entry in server.log()} == {f"Bearer {secret}"}


@needs_original
def test_the_originals_own_folder_is_described_file_by_file() -> None:
    found = told(ORIGINAL)

    assert set(found) == {path.relative_to(ORIGINAL).as_posix() for path in ORIGINAL.rglob("*") if path.is_file()}
    kinds = {path: one.what for path, one in found.items() if "diagnosis_sessions" not in path}
    assert kinds == {
        "agentclinic.config.json": "settings",
        "llm.config.json": "endpoint",
        "agent/agent_config.yaml": "agents",
        "generate_cases/gen.config.json": "generation",
        **{f"prompts/{role}.json": "prompt" for role in ROLES},
        "prompts/measurement_cost.json": kinds["prompts/measurement_cost.json"],
        "prompts/test_policy.json": "test policy",
        "runs/MedQA_20250912_100713/scenarios.jsonl": "run",
        "runs/MedQA_20250912_100713/config.used.json": "settings",
        "runs/MedQA_20250912_100713/summary.json": "summary",
    }
    assert found["agentclinic.config.json"].verdict is Verdict.TO_DO, "the cases are not in the folder"
    assert found["llm.config.json"].verdict is Verdict.WORKS
    assert found["runs/MedQA_20250912_100713/scenarios.jsonl"].note.startswith("3 scenarios")
    for role in ROLES:
        assert (found[f"prompts/{role}.json"].verdict is Verdict.BROKEN) is not loads(role)


def loads(role: str) -> bool:
    try:
        load_prompt(role, ORIGINAL / "prompts")
    except AgentClinicError:
        return False
    return True


def test_experiences_of_the_original_can_be_imported_and_other_json_cannot(tmp_path: Path) -> None:
    write(tmp_path / "experiences.json", [{"observation": "chest pain on effort", "suggestion": "order troponin"}])
    write(tmp_path / "other.json", {"anything": 1})

    found = told(tmp_path)

    assert found["experiences.json"].verdict is Verdict.TRANSLATED
    assert "memory import" in found["experiences.json"].note
    assert found["other.json"].verdict is Verdict.NONE
