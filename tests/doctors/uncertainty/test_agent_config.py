"""`agent_config.yaml`: what is refused and with which message, and which model plays the doctor."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from fakes import OSCE, case_of, plan_of
from helpers import ORIGINAL, needs_original
from memory_support import store_of
from runs_support import clinic, only_run, own_cases, point_at, records
from scripted_server import ScriptedServer

from agentclinic.compat.agents import UncertaintyAwareDoctorAgent
from agentclinic.compat.scenarios import Scenario
from agentclinic.doctors.uncertainty.agent_config import SHIPPED, load_agent
from agentclinic.errors import ConfigError, InputError
from agentclinic.runs.estimate import estimate_run
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
        ("max_turns: 1", "max_turns: 0", r"max_turns.*greater than or equal to 1"),
        ("temperature: null", "temperature: 7", r"temperature.*less than or equal to 2"),
        ("[diagnosis_step, final_diagnosis]", "[diagnosis_stp]", r"agents\.uncertainty_aware_doctor: .*'diagnosis_stp"),
        ("[diagnosis_step, final_diagnosis]", "[final_diagnosis]", r"tools must contain diagnosis_step"),
        ("[diagnosis_step, final_diagnosis]", "[diagnosis_step]", r"terminal_tools may contain only"),
        ("uncertainty_aware_doctor:", "uncertainty_aware_docter:", r"has no 'uncertainty_aware_doctor'; did you"),
        ("terminal_tools: [final_diagnosis]", "terminal_tools: []", r"terminal_tools must contain final_diagnosis"),
        ("max_turns: 1", "max_turns: 3", r"terminal_tools must contain diagnosis_step if max_turns is more than 1"),
        ("step, final_diagnosis]", "step, final_diagnosis_documented]", r"tools mixes two sets; use only diagnosis_st"),
        ("model: builtin", 'model: ""', r"model.*at least 1 character"),
        ("  uncertainty_aware_doctor:", "  - uncertainty:\n  x: [", r"agent_config\.yaml line \d+: not valid YAML"),
        ("max_turns: 1", "max_turns: 2026-99-99", r"agent_config\.yaml: not readable YAML"),
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
    agent_file(tmp_path, "max_turns: 1", "max_turns: 0")
    done = clinic("run", "--doctor", "uncertainty", cwd=tmp_path, expect=2)
    assert "max_turns" in done.stderr
    assert not (tmp_path / "runs").exists()


OTHERS = """
  librarian:
    model: some/model
    system_prompt: Find old cases.
    max_turns: 3
    tools: [think, select_experiences]
    terminal_tools: [select_experiences]
  documenting_doctor:
    model: some/model
    system_prompt: Document each step.
    tools: [document_step, ask_a_colleague]
    terminal_tools: [document_step]
"""
"""Entries for agents with tools of their own, as the original's file has them."""


def many_agents(folder: Path) -> Path:
    """A file in the original's style: other agents, both tools terminal, more than one turn."""
    path = agent_file(folder, "terminal_tools: [final_diagnosis]", "terminal_tools: [diagnosis_step, final_diagnosis]")
    path.write_text(path.read_text().replace("max_turns: 1 ", "max_turns: 5 ").rstrip() + "\n" + OTHERS)
    return path


def test_other_agents_entries_are_ignored_with_one_line(server: ScriptedServer, tmp_path: Path) -> None:
    many_agents(tmp_path)
    point_at(tmp_path, server)
    server.control(tool="diagnosis_step")
    flags = ["--doctor", "uncertainty", "--doctor_llm", "scripted", "--num_scenarios", "1", "--total_inferences", "2"]
    done = clinic("run", *flags, cwd=tmp_path)
    (line,) = (line for line in done.stderr.splitlines() if "agent_config.yaml" in line)
    assert "the entry uncertainty_aware_doctor is used" in line
    assert "the other entries (librarian, documenting_doctor), max_turns 5 (the doctor makes one tool call" in line
    offered = [[tool["name"] for tool in body["tools"]] for body in server.bodies() if "tools" in body]
    assert offered[0] == ["diagnosis_step"], "too early to conclude, though the file calls both tools terminal"
    assert offered[-1] == ["diagnosis_step", "final_diagnosis"]


def test_an_entry_is_chosen_by_agent_type_and_refused_if_it_needs_other_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = many_agents(tmp_path)
    renamed = "  my_doctor:\n    system_prompt: Mine.\n    model: mine\n    synthesis_model: other\n"
    path.write_text(path.read_text() + renamed)
    scenario = Scenario(case_of(OSCE))
    with pytest.warns(UserWarning, match="the entry my_doctor is used"):
        doctor = UncertaintyAwareDoctorAgent(scenario, agent_type="my_doctor")
    assert doctor.system_prompt().startswith("Mine.")
    told = (
        r"agents\.documenting_doctor: tools: there is no tool 'ask_a_colleague'; correct the name, or use an entry "
        "with only diagnosis_step and final_diagnosis, or only document_step, final_diagnosis_documented, query_"
    )
    with pytest.raises(ConfigError, match=told):
        UncertaintyAwareDoctorAgent(scenario, agent_type="documenting_doctor")
    with pytest.raises(ConfigError, match=r"agents has no 'my_docter'; did you mean 'my_doctor'"):
        UncertaintyAwareDoctorAgent(scenario, agent_type="my_docter")


@needs_original
def test_the_originals_file_is_read() -> None:
    path = ORIGINAL / "agent" / "agent_config.yaml"
    with pytest.warns(UserWarning, match=r"ignored: the other entries \(simple_agent, .*experience_generation_agent\)"):
        agent = load_agent(path).settings
    assert (agent.model, agent.temperature) == ("openai/gpt-5-mini", 0.2)
    assert agent.terminal_tools == agent.tools == ("diagnosis_step", "final_diagnosis")
    with pytest.warns(UserWarning, match="the entry uncertainty_documentation_agent is used; ignored: the other"):
        other = load_agent(path, "uncertainty_documentation_agent").settings
    assert (other.documented, other.lookups) == (True, 4)
    with pytest.raises(ConfigError, match="there is no tool 'think'"):
        load_agent(path, "memory_retrieval_agent")


DOCUMENTING = """agents:
  documenting:
    model: scripted
    system_prompt: Look first, then document each step.
    temperature: 0.2
    max_turns: 3
    tools: [query_medical_guidelines, document_step, final_diagnosis_documented]
    terminal_tools: [document_step, final_diagnosis_documented]
"""
"""An agent with the tools of the original's `uncertainty_documentation_agent`."""


def documenting(folder: Path, text: str = DOCUMENTING) -> list[str]:
    """Write the file, and return the flags of a run with its agent."""
    (folder / "agent").mkdir()
    (folder / "agent" / "agent_config.yaml").write_text(text, encoding="utf-8")
    return ["--doctor", "uncertainty", "--uncertainty_agent_type", "documenting", "--num_scenarios", "1"]


@pytest.mark.parametrize("api", ["responses", "chat"])
def test_an_agent_with_the_documentation_tools_looks_first_and_then_documents_each_step(
    server: ScriptedServer, tmp_path: Path, api: str
) -> None:
    flags = documenting(tmp_path)
    point_at(tmp_path, server, llm_api=api)
    step = {
        "new_information": "A headache since yesterday",
        "uncertainties": "Migraine: throbbing; Tension headache: both sides",
        "reference_relevance": "It helps.",
        "action": "ASK PATIENT: Does light hurt?",
        "reason": "Light separates them.",
    }
    looked = {"new_information": "A headache", "uncertainties": "Migraine: throbbing"}
    said = [
        ("query_medical_guidelines", looked),
        ("document_step", step),
        ("document_step", step | {"action": "Wait and see"}),
        ("document_step", step | {"action": "REQUEST TEST: Blood pressure"}),
        ("final_diagnosis_documented", {"reason": "Nothing else fits."}),
    ]
    rules = [
        {"match": {"purpose": "doctor", "nth": place}, "tool_calls": [{"name": name, "arguments": given}]}
        for place, (name, given) in enumerate(said, start=1)
    ]
    server.control(rules=rules)
    store_of(tmp_path / "memory.jsonl")
    cases = own_cases(tmp_path, 1)
    clinic("run", *flags, "--dataset", cases, "--memory", "memory.jsonl", cwd=tmp_path)

    (record,) = records(only_run(tmp_path / "runs"))
    assert (record["status"], record["num_turns"], record["diagnosis_text"]) == ("diagnosed", 3, "Migraine")
    asked = [body for body in server.bodies() if "tools" in body]
    names = [[tool.get("function", tool)["name"] for tool in body["tools"]] for body in asked]
    assert names[:2] == [["query_medical_guidelines", "document_step"]] * 2, "too early to conclude"
    assert names[-1] == ["query_medical_guidelines", "document_step", "final_diagnosis_documented"]
    first, second, _, again, _ = map(json.dumps, asked)
    assert "document_step records three things" in first
    assert "Throbbing headache" not in first
    assert "Throbbing headache" in second, "what it looked up"
    assert "action has no known form" in again, "sent back in its own words"
    assert not any(f" {ours}" in text for text in (first, again) for ours in ("diagnosis_step", "next_step_action"))
    (session,) = only_run(tmp_path / "runs").glob("diagnosis_sessions/*.json")
    written = json.loads(session.read_text())["steps"][0]
    assert written["next_step_action"] == step["action"]
    assert written["current_uncertainties"] == ["Migraine: throbbing", "Tension headache: both sides"]
    assert (written["reference_relevance"], written["action_reason"]) == ("It helps.", "Light separates them.")


def test_the_documentation_tools_work_without_tool_calls_and_with_the_builtin_doctor(
    server: ScriptedServer, tmp_path: Path
) -> None:
    flags = documenting(tmp_path)
    form = {
        "tool": "document_step",
        "new_information": "A headache",
        "uncertainties": [{"diagnosis": "Migraine", "probability": 0.6, "reason": ""}] * 2,
        "reference_relevance": "",
        "action": "DIAGNOSIS READY",
        "reason": "Enough.",
    }
    tools = {"match": {"purpose": "doctor"}, "fault": "reject_tools"}
    asking = form | {"action": "ASK PATIENT: Since when?"}
    rules = [
        {"match": {"purpose": "doctor", "nth": 2}, "reply": json.dumps(asking)},
        {"match": {"purpose": "doctor", "nth": 3}, "reply": json.dumps(form)},
        tools,
    ]
    server.control(rules=rules)
    point_at(tmp_path, server)
    clinic("run", *flags, "--dataset", own_cases(tmp_path, 1), cwd=tmp_path)
    (record,) = records(only_run(tmp_path / "runs"))
    assert [turn["text"] for turn in record["transcript"] if turn["role"] == "doctor"] == [
        "Since when?",
        "DIAGNOSIS READY: Migraine",
    ]
    clinic("run", *flags, "--doctor_llm", "builtin", "--output_dir", "builtin", cwd=tmp_path)
    (record,) = records(only_run(tmp_path / "builtin"))
    assert record["correct"] is True


def test_an_estimate_counts_the_requests_in_which_experiences_are_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    documenting(tmp_path)
    common: dict[str, Any] = {"doctor": "uncertainty", "num_scenarios": 1, "uncertainty_agent_type": "documenting"}

    def requests() -> float:
        (doctor,) = (row for row in estimate_run(plan_of(**common)).most if row.role == "doctor")
        return doctor.amount.requests

    twice = requests()
    without = DOCUMENTING.replace("query_medical_guidelines, ", "").replace("max_turns: 3", "max_turns: 1")
    (tmp_path / "agent" / "agent_config.yaml").write_text(without)
    assert twice == 2 * requests()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("max_turns: 3", "max_turns: 1", "max_turns must be at least 2 with query_medical_guidelines"),
        ("terminal_tools: [", "terminal_tools: [query_medical_guidelines, ", "must not contain query_medical_guid"),
        ("terminal_tools: [document_step, ", "terminal_tools: [", "terminal_tools must contain document_step if"),
    ],
)
def test_a_documentation_agent_that_cannot_work_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    flags = documenting(tmp_path, DOCUMENTING.replace(old, new))
    assert told in clinic("run", *flags, cwd=tmp_path, expect=2).stderr


def test_the_synthesis_model_is_that_of_the_settings_else_of_the_agent(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent_file(tmp_path, "synthesis_model: null", "synthesis_model: other")
    assert plan_of(doctor="uncertainty").settings.run.synthesis_llm == "other"
    assert plan_of(doctor="uncertainty", synthesis_llm="mine").settings.run.synthesis_llm == "mine"
    point_at(tmp_path, server)
    said = UncertaintyAwareDoctorAgent(Scenario(case_of(OSCE)), "mine", max_infs=1).inference_doctor("")
    assert said == "DIAGNOSIS READY: Migraine"
    assert [body["model"] for body in server.bodies()] == ["mine", "other"]


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
    with pytest.raises(ConfigError, match="has no effect without doctor uncertainty"):
        plan_of(**changes)


def test_settings_without_effect_are_refused() -> None:
    with pytest.raises(ConfigError, match="synthesis_endpoint has no effect without synthesis_llm"):
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


@pytest.mark.slow
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
    with pytest.raises(InputError, match="agent was"):
        plan_again(folder)


@pytest.mark.parametrize("last", ["{nine: [*v8]}", "&loop [*loop]"])
def test_a_few_lines_that_stand_for_billions_of_values_are_refused(last: str, tmp_path: Path) -> None:
    """Aliases of aliases, or one of itself: looking for a misplaced key among the values took forever."""
    rows = ["agents:", "  other:", "    0: &v0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"    {n}: &v{n} [{', '.join([f'*v{n - 1}'] * 9)}]" for n in range(1, 9)]
    path = tmp_path / "agents.yaml"
    path.write_text("\n".join([*rows, f"    last: {last}", SHIPPED.read_text().partition("agents:\n")[2]]))
    with pytest.raises(ConfigError, match=r"agents.yaml: more than 100,000 values, because aliases \(\*\) multiply"):
        load_agent(path)
