"""`agent_config.yaml`: what is refused and with which message, and which model plays the doctor."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from fakes import plan_of
from runs_support import clinic, only_run, records

from agentclinic.doctors.uncertainty.agent_config import SHIPPED, load_agent
from agentclinic.errors import ConfigError, InputError
from agentclinic.runs.resume import plan_again

WHOLE = SHIPPED.read_text(encoding="utf-8")


def agent_file(folder: Path, old: str = "", new: str = "") -> Path:
    """The shipped file with one change, in the place where runs look for it."""
    assert old in WHOLE
    (folder / "agent").mkdir(parents=True, exist_ok=True)
    path = folder / "agent" / "agent_config.yaml"
    path.write_text(WHOLE.replace(old, new, 1) if old else WHOLE, encoding="utf-8")
    return path


def test_the_shipped_agent_matches_the_original() -> None:
    agent = load_agent(SHIPPED).settings
    assert agent.max_turns == 1
    assert agent.tools == ("diagnosis_step", "final_diagnosis")
    assert agent.terminal_tools == ("final_diagnosis",)
    assert "session" not in agent.system_prompt.lower()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("temperature:", "temprature:", r"agent_config\.yaml: .*temprature.*did you mean 'temperature'"),
        ("max_turns: 1", "max_turns: 2", r"max_turns.*must be 1: each turn of the consultation is one tool call"),
        ("temperature: null", "temperature: 7", r"temperature.*less than or equal to 2"),
        ("[diagnosis_step, final_diagnosis]", "[diagnosis_stp]", r"no tool 'diagnosis_stp'; did you mean"),
        ("[diagnosis_step, final_diagnosis]", "[final_diagnosis]", r"tools must contain diagnosis_step"),
        ("terminal_tools: [final_diagnosis]", "terminal_tools: [diagnosis_step]", r"may contain only final_diagnosis"),
        ("uncertainty_aware_doctor:", "uncertainty_aware_docter:", r"has no 'uncertainty_aware_doctor'; did you"),
        ("model: builtin", 'model: ""', r"model.*at least 1 character"),
        ("  uncertainty_aware_doctor:", "  - uncertainty:\n  x: [", r"agent_config\.yaml line \d+: not valid YAML"),
        ("agents:", "agent:", r"agent_config\.yaml.*unknown key 'agent'.*did you mean 'agents'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_the_fix(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_agent(agent_file(tmp_path, old, new))


@pytest.mark.parametrize("content", [b"", b"- 1\n", b"agents: null\n", b"\xff\xfe\x00", b"agents: {a: &a [*a]}"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "agent_config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"agent_config\.yaml"):
        load_agent(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_agent(tmp_path / "missing.yaml")


def test_a_mistake_ends_the_command_with_exit_code_2(tmp_path: Path) -> None:
    agent_file(tmp_path, "max_turns: 1", "max_turns: 2")
    done = clinic("run", "--doctor", "uncertainty", cwd=tmp_path, expect=2)
    assert "max_turns" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_doctor_llm_wins_over_the_agents_model_if_the_user_set_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent_file(tmp_path, "model: builtin", "model: other/model")
    assert plan_of(doctor="uncertainty").settings.run.doctor_llm == "other/model"
    with pytest.warns(UserWarning, match="doctor_llm 'mine' overrides the model 'other/model'"):
        assert plan_of(doctor="uncertainty", doctor_llm="mine").settings.run.doctor_llm == "mine"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plan_of(doctor_llm="mine").settings.run.doctor_llm == "mine", "other doctors read no agent"
    with (
        pytest.warns(UserWarning, match="overrides the model"),
        pytest.raises(ConfigError, match="on the builtin doctor"),
    ):
        plan_of(doctor="uncertainty", doctor_llm="builtin", doctor_bias="recency")


@pytest.mark.parametrize("changes", [{"synthesis_llm": "x"}, {"agent_config": "x.yaml"}, {"synthesis_endpoint": "x"}])
def test_settings_of_this_doctor_are_refused_for_other_doctors(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is for the uncertainty doctor"):
        plan_of(**changes)


def test_settings_without_effect_are_refused() -> None:
    with pytest.raises(ConfigError, match="name the model there with synthesis_llm"):
        plan_of(doctor="uncertainty", synthesis_endpoint="x")
    with pytest.raises(ConfigError, match="states its confidence at every step"):
        plan_of(doctor="uncertainty", elicit_confidence=True)


def test_the_digest_changes_with_the_agent_and_its_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = plan_of(doctor="uncertainty").digest
    assert {"agent", "prompts.uncertainty", "prompts.synthesis"} <= set(shipped)
    agent_file(tmp_path)
    assert plan_of(doctor="uncertainty").digest == shipped, "an unchanged copy has the same digest"
    agent_file(tmp_path, "You are a physician", "You are a good physician")
    changed = plan_of(doctor="uncertainty").digest
    assert {key for key in shipped if changed[key] != shipped[key]} == {"agent"}
    assert "agent" not in plan_of().digest


def test_a_run_is_resumed_with_its_own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent_file(tmp_path, "temperature: null", "temperature: 0")
    clinic("run", "--doctor", "uncertainty", "--num_scenarios", "2", "--output_dir", "out", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    used = json.loads((folder / "config.used.json").read_text())
    assert used["run"]["doctor_llm"] == "builtin"
    assert used["run"]["agent_config"] == str(tmp_path / "agent" / "agent_config.yaml")
    whole = (folder / "scenarios.jsonl").read_text()
    (folder / "scenarios.jsonl").write_text(whole.splitlines(keepends=True)[0])
    (tmp_path / "elsewhere").mkdir()
    clinic("resume", folder, cwd=tmp_path / "elsewhere")
    assert len(records(folder)) == 2
    agent_file(tmp_path, "model: builtin", "model: other")
    with (
        pytest.warns(UserWarning, match="overrides the model"),
        pytest.raises(InputError, match="agent was"),
    ):
        plan_again(folder)
