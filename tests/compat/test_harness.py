"""Scripts in the style of the original's, one for each of its repositories, from start to end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import osce, write_rows
from judges_support import original_run
from original_prompts import DIALECT, write_files
from policy_support import plan
from runs_support import environment, lines
from scripted_server import LONG, ScriptedServer

from agentclinic.compat.init import write_folder
from agentclinic.doctors.uncertainty.store import read_session

HARNESS = """
import argparse
import importlib.util
import json
import sys
from pathlib import Path

from agentclinic_api_only import (
    DoctorAgent, MeasurementAgent, PatientAgent, ScenarioLoaderMedQA, compare_results, query_model,
)
from uncertainty_aware_doctor import UncertaintyAwareDoctorAgent

sys.path.insert(0, str(Path(__file__).parents[2] / "agent"))
import tools
from tools import *

parser = argparse.ArgumentParser()
for flag in (
    "openai_api_key", "doctor_llm", "patient_llm", "measurement_llm", "moderator_llm", "agent_dataset", "output_file",
    "uncertainty_agent_type", "custom_doctor_agent_path",
):
    parser.add_argument("--" + flag)
for flag in ("inf_type", "doctor_bias", "patient_bias"):
    parser.add_argument("--" + flag, default="None")
for flag in ("num_scenarios", "total_inferences"):
    parser.add_argument("--" + flag, type=int)
parser.add_argument("--scenario_offset", type=int, default=0)
for flag in ("doctor_image_request", "use_memory", "use_uncertainty_aware"):
    parser.add_argument("--" + flag, action="store_true")
args = parser.parse_args()
loader = ScenarioLoaderMedQA()


def doctor_class():
    if args.custom_doctor_agent_path is None:
        return UncertaintyAwareDoctorAgent if args.use_uncertainty_aware else DoctorAgent
    spec = importlib.util.spec_from_file_location("custom_doctor", args.custom_doctor_agent_path)
    module = importlib.util.module_from_spec(spec)
    module.query_model, module.DoctorAgentBase = query_model, DoctorAgent
    spec.loader.exec_module(module)
    return module.CustomDoctorAgent


def tokens(agent):
    return {name: getattr(agent, name, 0) for name in ("total_tokens", "prompt_tokens", "completion_tokens")}


def play(scenario_id):
    scenario = loader.get_scenario(id=scenario_id)
    chart = scenario.scenario_dict["OSCE_Examination"]
    assert scenario.exam_information()["tests"] == scenario.tests == chart["Test_Results"]
    measurement = MeasurementAgent(scenario=scenario, backend_str=args.measurement_llm)
    patient = PatientAgent(scenario=scenario, bias_present=args.patient_bias, backend_str=args.patient_llm)
    kind = doctor_class()
    more = {"agent_type": args.uncertainty_agent_type} if kind is UncertaintyAwareDoctorAgent else {}
    doctor = kind(
        scenario=scenario, bias_present=args.doctor_bias, backend_str=args.doctor_llm, max_infs=args.total_inferences,
        img_request=args.doctor_image_request, **more,
    )
    assert doctor.presentation == scenario.examiner_information() == chart["Objective_for_Doctor"]
    reply, dialogue, said = "", [], ""
    for turn in range(args.total_inferences):
        assert doctor.infs == turn
        if turn == args.total_inferences - 1:
            reply += "This is the final question. Please provide a diagnosis."
        memory = "In case %d, rest helped." % turn if args.use_memory else ""
        said = doctor.inference_doctor(reply, image_requested=False, memory_context=memory)
        dialogue.append("Doctor: " + said)
        if "DIAGNOSIS READY" in said:
            break
        if "REQUEST TEST" in said:
            reply = measurement.inference_measurement(said)
            dialogue.append("Measurement: " + reply)
            patient.add_hist(reply)
        else:
            reply = patient.inference_patient(said)
            dialogue.append("Patient: " + reply)
            measurement.add_hist(reply)
    agents = {"doctor": doctor, "patient": patient, "measurement": measurement}
    used = {name: tokens(agent) for name, agent in agents.items()}
    used["total"] = {key: sum(entry[key] for entry in used.values()) for key in used["doctor"]}
    return {
        "dataset": args.agent_dataset,
        "scenario_id": scenario_id,
        "problem_info": scenario.scenario_dict,
        "correct_diagnosis": scenario.diagnosis_information(),
        "model_diagnosis": said,
        "correct": compare_results(said, scenario.diagnosis_information(), args.moderator_llm, None) == "yes",
        "dialogue_history": dialogue,
        "token_usage": used,
        "session_id": getattr(doctor, "session_id", None),
    }


with open(args.output_file, "a") as file:
    for scenario_id in range(args.scenario_offset, min(args.num_scenarios, loader.num_scenarios)):
        result = play(scenario_id)
        file.write(json.dumps(result) + "\\n")
        if result["session_id"]:
            assert get_current_session() == result["session_id"]
            notes, facts = get_accumulated_notes(result["session_id"]), get_all_new_information(result["session_id"])
            assert all(fact in notes for fact in facts)

# By hand, as in the original's own checks.
assert tools.__name__ == "tools", "a module, also after the import of everything in it"
clear_session("by_hand")
assert clear_session("by_hand") is False
session = append_step(
    session_id="by_hand", new_information="Fever", uncertainties=["flu", "cold"], next_step_action="ASK PATIENT: Cough?"
)
assert (session["session_id"], len(session["steps"])) == ("by_hand", 1)
set_current_session("by_hand")
assert execute_tool("no_such_tool", {}).startswith("Error: ")
step = {"new_information": "No cough", "current_uncertainties": "flu, cold", "next_step_action": "REQUEST TEST: CBC"}
assert execute_tool("diagnosis_step", step) == "REQUEST TEST: CBC"
assert [step["step_number"] for step in load_session("by_hand")["steps"]] == [1, 2]
assert clear_session("by_hand") is True
"""
CUSTOM = """
class CustomDoctorAgent(DoctorAgentBase):
    def __init__(self, scenario, backend_str="x", max_infs=20, bias_present=None, img_request=False):
        self.scenario, self.backend, self.MAX_INFS, self.img_request = scenario, backend_str, max_infs, img_request
        self.bias_present = None if bias_present == "None" else bias_present
        self.total_tokens = self.prompt_tokens = self.completion_tokens = 0
        self.reset()

    def reset(self):
        self.infs, self.agent_hist = 0, ""
        self.presentation = self.scenario.examiner_information()

    def inference_doctor(self, question, image_requested=False, memory_context=""):
        answer, usage = query_model(self.backend, self.agent_hist + question, self.presentation, return_usage=True)
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.total_tokens += usage.total_tokens
        self.agent_hist += question + "\\n\\n" + answer + "\\n\\n"
        self.infs += 1
        return answer
"""
DOUBTS = "Disease of {mark}: fits; Flu: less so"
STEPS = [
    {
        "new_information": "Door of {mark}",
        "current_uncertainties": DOUBTS,
        "next_step_action": "ASK PATIENT: Since when, {mark}?",
    },
    {
        "new_information": "Two days, says {mark}",
        "current_uncertainties": DOUBTS,
        "next_step_action": "REQUEST TEST: CBC",
    },
    {
        "new_information": "Normal count of {mark}",
        "current_uncertainties": DOUBTS,
        "next_step_action": "ASK PATIENT: And how is {mark} now?",
    },
]
"""The scripted doctor never concludes on its own."""
COUNT = 20
WRONG = (3, 11)


FLAGS = (
    *("--agent_dataset=MedQA", "--inf_type=llm", "--doctor_bias=None", "--patient_bias=None", "--total_inferences=3"),
    *(f"--{role}_llm={role}" for role in ("doctor", "patient", "measurement", "moderator")),
)


@pytest.fixture
def checkout(server: ScriptedServer, tmp_path: Path) -> Path:
    """A copy of the repository without its history: settings in its root, scripts and cases two folders below."""
    write_folder(tmp_path, original=True)
    place = tmp_path / "benchmarks" / "AgentClinic"
    rows = [
        osce(objective=f"Assess mark-{n}z.", truth="Frobisher fever" if n in WRONG else f"Disease of mark-{n}z")
        for n in range(COUNT)
    ]
    write_rows(place / "agentclinic_medqa.jsonl", *rows)
    (place / "harness.py").write_text(HARNESS)
    (place / "custom.py").write_text(CUSTOM)
    config = {"openai": {"base_url": server.base_url}, "llm": {"runtime": {"tries": 1}}}
    (tmp_path / "llm.config.json").write_text(json.dumps(config))
    agents = tmp_path / "agent" / "agent_config.yaml"
    agents.write_text(agents.read_text().replace("model: builtin", "model: doctor"))
    refuted = {"match": {"purpose": "moderator", "text_contains": "Frobisher"}, "reply": "No"}
    server.control(steps=STEPS, synthesis="Disease of {mark}", rules=[refuted])
    return place


def run(server: ScriptedServer, cwd: Path, *arguments: str) -> str:
    """Run Python there; it must succeed and say nothing on stderr."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd,
        env=environment(OPENAI_API_KEY="sk-planted", OPENAI_BASE_URL=server.base_url),
        capture_output=True, text=True, timeout=LONG,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_the_originals_harness_drives_the_drop_in_doctor_over_20_scenarios(
    server: ScriptedServer, checkout: Path
) -> None:
    more = ("--use_uncertainty_aware", "--uncertainty_agent_type=uncertainty_aware_doctor", "--use_memory")
    script = ("harness.py", *FLAGS, *more, f"--num_scenarios={COUNT}", "--output_file=out.jsonl")
    assert run(server, checkout, *script) == ""

    results = list(map(json.loads, (checkout / "out.jsonl").read_text().splitlines()))
    assert [result["scenario_id"] for result in results] == list(range(COUNT))
    assert [n for n, result in enumerate(results) if result["correct"] is not True] == list(WRONG)
    sessions = checkout.parents[1] / "agent" / "diagnosis_sessions"
    for n, result in enumerate(results):
        assert result["model_diagnosis"] == f"DIAGNOSIS READY: Disease of mark-{n}z"
        assert [line.partition(":")[0] for line in result["dialogue_history"]] == [
            "Doctor", "Patient", "Doctor", "Measurement", "Doctor",
        ]  # fmt: skip
        for used in result["token_usage"].values():
            assert used["total_tokens"] == used["prompt_tokens"] + used["completion_tokens"] > 0
        session = read_session(sessions / f"{result['session_id']}.json")
        assert session.facts == [step["new_information"].replace("{mark}", f"mark-{n}z") for step in STEPS]
    asked = server.log()
    assert len(asked) == COUNT * len(("doctor", "patient", "doctor", "lab", "doctor", "synthesis", "moderator"))
    for entry in asked:
        text = json.dumps(entry["body"])
        assert ("rest helped" in text) == (entry["purpose"] == "doctor")
        assert "This is the final question" not in text, "it is no part of the patient's reply"
    assert len(list(sessions.glob("*.json"))) == COUNT, "the session by hand was removed"
    scored = run(server, checkout, "-m", "agentclinic", "score", "out.jsonl")
    assert f"{COUNT - len(WRONG)} of {COUNT}" in scored
    listed = run(server, checkout, "-m", "agentclinic", "sessions", "../../agent/diagnosis_sessions")
    assert listed.count("scenario_") == COUNT


@pytest.mark.slow
def test_the_same_harness_drives_a_custom_doctor(server: ScriptedServer, checkout: Path) -> None:
    ask, end = "Since when, mark-{n}z?", "DIAGNOSIS READY: Disease of mark-{n}z"
    ruled = [
        {"match": {"purpose": "query", "text_contains": told}, "reply": reply.format(n=n)}
        for n in range(2)
        for told, reply in ((ask.format(n=n), end), (f"Assess mark-{n}z.", ask))
    ]
    server.control(rules=ruled)
    script = ("harness.py", *FLAGS, "--custom_doctor_agent_path=custom.py", "--num_scenarios=2")
    run(server, checkout, *script, "--output_file=custom.jsonl")
    results = list(map(json.loads, (checkout / "custom.jsonl").read_text().splitlines()))
    assert [(result["model_diagnosis"], result["correct"]) for result in results] == [
        (end.format(n=n), True) for n in range(2)
    ]
    assert all(result["token_usage"]["doctor"]["total_tokens"] > 0 for result in results)
    assert {entry["body"]["model"] for entry in server.log() if entry["purpose"] == "query"} == {"doctor"}


@pytest.mark.slow
def test_a_run_started_below_the_root_uses_the_settings_and_agents_there(
    server: ScriptedServer, checkout: Path
) -> None:
    root = checkout.parents[1]
    agents = root / "agent" / "agent_config.yaml"
    agents.write_text(agents.read_text().replace("system_prompt: |", "system_prompt: |\n      Our own agent.", 1))
    config = json.loads((root / "agentclinic.config.json").read_text())
    del config["run"]["doctor_llm"]  # as docs/uncertainty.md says, to let the agent's file choose
    (root / "agentclinic.config.json").write_text(json.dumps(config))
    flags = ("--agent_dataset", "agentclinic_medqa.jsonl", "--num_scenarios", "1", "--use_uncertainty_aware", "-q")
    run(server, checkout, "agentclinic_api_only.py", *flags)
    doctors = [entry["body"] for entry in server.log() if entry["purpose"] == "doctor"]
    assert doctors
    assert {body["model"] for body in doctors} == {"doctor"}
    assert "Our own agent." in json.dumps(doctors[0])
    (used,) = checkout.glob("runs/*/config.used.json")
    assert json.loads(used.read_text())["run"]["agent_config"] == str(agents)


FORK = """
import argparse
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from agentclinic import (
    CostEstimatorAgent, DoctorAgent, MeasurementAgent, PatientAgent, ScenarioLoaderMedQAExtended, compare_results,
    load_prompts_json,
)
from llm import load_llm_config
from policy_engine import DifferentialDiagnosisEngine

parser = argparse.ArgumentParser()
parser.add_argument("--config", default="agentclinic.config.json")
parser.add_argument("--llm_config", default="llm.config.json")
parser.add_argument("--workers", type=int)
args = parser.parse_args()
with open(args.config) as file:
    config = json.load(file)
llm = load_llm_config(args.llm_config)["llm"]
run = config["run"]
enabled = run["doctor_test_policy_enabled"]
policy = load_prompts_json(run["doctor_test_policy"]) if enabled else None
loader = ScenarioLoaderMedQAExtended(file_path=config["datasets"][run["dataset"]])
folder = os.path.join(run["output_dir"], run["dataset"] + "_20260101_120000")
os.makedirs(folder)
with open(os.path.join(folder, "config.used.json"), "w") as file:
    json.dump({**config, "llm": llm}, file)
lock = threading.Lock()


def play(scenario_id):
    scenario = loader.get_scenario(id=scenario_id)
    measurement = MeasurementAgent(scenario=scenario, backend_str=run["measurement_llm"])
    patient = PatientAgent(scenario=scenario, bias_present=run["patient_bias"], backend_str=run["patient_llm"])
    doctor = DoctorAgent(
        scenario=scenario, bias_present=run["doctor_bias"], backend_str=run["doctor_llm"],
        max_infs=run["total_inferences"], img_request=run["doctor_image_request"], test_policy=policy,
        use_test_policy=enabled,
    )
    assert isinstance(doctor.policy_engine, DifferentialDiagnosisEngine)
    assert patient.symptoms == scenario.patient_info and doctor.bias_present in doctor.biases
    cost = CostEstimatorAgent(scenario=scenario, backend_str=run["measurement_cost_llm"])
    reply, said, economics, status = "", "", [], "max_infs_reached"
    for turn in range(run["total_inferences"]):
        if turn == run["total_inferences"] - 1:
            reply += "This is the final question. Please provide a diagnosis.\\n"
        said = doctor.inference_doctor(reply, image_requested=False)
        if "DIAGNOSIS READY" in said:
            status = "diagnosed"
            break
        if "REQUEST TEST" in said:
            reply = measurement.inference_measurement(said)
            patient.add_hist(reply)
            estimate = cost.inference_cost(said, resource_level=run["resource_level"])
            economics += json.loads(estimate)["tests"]
        else:
            reply = patient.inference_patient(said)
            measurement.add_hist(reply)
    truth = scenario.diagnosis_information()
    right = status == "diagnosed" and compare_results(said, truth, run["moderator_llm"]) == "yes"
    record = {
        "scenario_id": scenario_id, "dataset": run["dataset"], "status": status, "num_turns": turn + 1,
        "correct": right, "ground_truth": truth, "diagnosis_text": said,
        **{role + "_llm": run[role + "_llm"] for role in ("doctor", "patient", "measurement", "moderator")},
        "max_infs": run["total_inferences"], "image_request_enabled": run["doctor_image_request"],
        "doctor_hist": doctor.agent_hist, "patient_hist": patient.agent_hist,
        "measurement_hist": measurement.agent_hist,
        "llm_responses_config": llm["responses"], "llm_runtime_config": llm["runtime"],
        "resource_level": run["resource_level"], "test_economics_log": economics,
        "test_economics_totals": {"total_estimated_cost_usd": sum(test["estimate_cost"] for test in economics)},
    }
    with lock, open(os.path.join(folder, "scenarios.jsonl"), "a") as file:
        file.write(json.dumps(record) + "\\n")
    return right


with ThreadPoolExecutor(args.workers or run["workers"]) as pool:
    right = list(pool.map(play, range(run["num_scenarios"])))
with open(os.path.join(folder, "summary.json"), "w") as file:
    json.dump({"dataset": run["dataset"], "total_presented": len(right), "total_correct": sum(right)}, file)
"""
COSTS = {
    "instructions": "Answer with JSON.",
    "known_costs": [{"name": "CBC", "cost_min": 11, "cost_max": 13, "duration_min": 7, "wait_min": 9}],
    "scaling_rules": {"busy": 1.5},
    "user_prompt_template": "{agent_hist}|{question}|{resource_level}|{scenario_info}",
}


@pytest.mark.slow
def test_a_script_of_the_forks_plays_with_policy_prompts_and_costs_and_its_run_can_be_used(
    server: ScriptedServer, tmp_path: Path
) -> None:
    write_files(tmp_path / "prompts", **DIALECT, measurement_cost=COSTS)
    old = original_run(tmp_path / "runs" / "MedQA_20250912_100713")
    write_folder(tmp_path, original=True)
    (tmp_path / "script.py").write_text(FORK)
    rows = [osce(objective=f"Assess mark-{n}z.", truth="Migraine") for n in range(4)]
    write_rows(tmp_path / "processed_data" / "agentclinic_medqa_extended.jsonl", *rows)
    config = json.loads((tmp_path / "agentclinic.config.json").read_text())
    roles = ("doctor", "patient", "measurement", "measurement_cost", "moderator")
    config["run"] |= {"dataset": "MedQA_Ext", "num_scenarios": 4, "total_inferences": 6, "doctor_bias": "recency"}
    config["run"] |= {f"{role}_llm": role for role in roles} | {"resource_level": "busy"}
    config["run"] |= {"doctor_test_policy_enabled": True, "doctor_test_policy": "test_policy"}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps(config))
    llm = {"openai": {"base_url": server.base_url}, "llm": {"responses": {}, "runtime": {"tries": 2}}}
    (tmp_path / "llm.config.json").write_text(json.dumps(llm))
    estimate = json.dumps({"tests": [{"test_name": "CBC", "estimate_cost": 12}]})
    sure = plan(Migraine="+5 +5 +5 +5", Stroke="-5 -5 ?1 ?1", Flu="-5 -5 ?1 ?1")
    open_ = plan(Migraine="+2 ?2 ?2 ?2", Stroke="+2 ?2 ?2 ?2", Flu="?2 ?2 ?2 ?2")
    server.control(
        rules=[
            {"match": {"purpose": "planner", "text_contains": "mark-3z"}, "reply": sure},
            {"match": {"purpose": "planner"}, "reply": open_},
            {"match": {"purpose": "query"}, "reply": estimate},
        ]
    )
    run(server, tmp_path, "-W", "ignore", "script.py", "--config", "agentclinic.config.json", "--workers", "2")

    folder = tmp_path / "runs" / "MedQA_Ext_20260101_120000"
    records = sorted(lines(folder / "scenarios.jsonl"), key=lambda record: int(record["scenario_id"]))
    assert [(record["status"], record["correct"]) for record in records] == [("diagnosed", True)] * 4
    assert [record["num_turns"] for record in records] == [4, 4, 4, 2], "the planner is sure of the last one"
    assert [len(record["test_economics_log"]) for record in records] == [1, 1, 1, 0]
    assert records[0]["test_economics_totals"] == {"total_estimated_cost_usd": 12}
    sent = {purpose: json.dumps([e["body"] for e in server.log() if e["purpose"] == purpose]) for purpose in PURPOSES}
    for purpose, told in PURPOSES.items():
        assert told in sent[purpose], purpose
    command = ("-m", "agentclinic")
    assert "4 of 4" in run(server, tmp_path, *command, "score", str(folder))
    run(server, tmp_path, *command, "report", str(folder))
    assert (folder / "report.html").is_file()
    assert run(server, tmp_path, *command, "score", str(old))
    checked = run(server, tmp_path, *command, "check-folder", ".")
    assert "cannot be used" not in checked


PURPOSES = {
    "planner": "Think before you order.",
    "doctor": "You keep thinking of last week.",
    "patient": "You are ill.",
    "measurement": "You report results.",
    "query": "|busy|",
    "moderator": "Same disease? Yes or No.",
}
"""A text of the folder's own files for each kind of request."""


def test_the_launcher_loads_both_configs_and_every_key_of_run_has_its_effect(
    server: ScriptedServer, tmp_path: Path
) -> None:
    write_files(tmp_path / "prompts", **DIALECT, measurement_cost=COSTS)
    write_folder(tmp_path, original=True)
    rows = [osce(objective=f"Assess mark-{n}z.", truth="Migraine") for n in range(5)]
    write_rows(tmp_path / "mine.jsonl", *rows)
    run_keys = {
        "inf_type": "llm",
        "dataset": "MedQA_Ext",
        "doctor_bias": "recency",
        "patient_bias": "recency",
        "resource_level": "busy",
        "doctor_image_request": False,
        "num_scenarios": 3,
        "total_inferences": 3,
        "workers": 2,
        "doctor_test_policy_enabled": True,
        "doctor_test_policy": "test_policy",
        **{f"{role}_llm": f"{role}-model" for role in ("doctor", "patient", "measurement", "moderator")},
    }
    (tmp_path / "agentclinic.config.json").write_text(
        json.dumps({"run": run_keys, "datasets": {"MedQA_Ext": "mine.jsonl"}})
    )
    llm = {
        "openai": {"api_key": "sk-planted", "base_url": server.base_url},
        "llm": {"responses": {"temperature": 0.25}},
    }
    (tmp_path / "llm.config.json").write_text(json.dumps(llm))
    open_ = plan(Migraine="+2 ?2 ?2 ?2", Stroke="+2 ?2 ?2 ?2", Flu="?2 ?2 ?2 ?2")
    server.control(
        latency=0.02,
        doctor_turns=2,
        rules=[
            {"match": {"purpose": "planner"}, "reply": open_},
            {"match": {"purpose": "doctor", "text_contains": "mark-1z"}, "reply": "REQUEST TEST: CBC"},
        ],
    )
    done = subprocess.run(
        [sys.executable, "agentclinic.py", "--config", "agentclinic.config.json", "--output_file", "results.jsonl"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LONG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("MedQA_Ext_")
    records = {record["scenario_id"]: record for record in lines(folder / "scenarios.jsonl")}
    assert sorted(records) == [0, 1, 2], "num_scenarios of the file's five"
    assert records[1]["num_turns"] == 3, "total_inferences"
    assert records[1]["status"] == "max_infs_reached"
    assert records[1]["test_economics_log"][0]["expected_wait_time_minutes"] == 1.5 * 9, "resource_level"
    used = json.loads((folder / "config.used.json").read_text())
    assert {key: used["run"][key] for key in run_keys} == run_keys
    assert used["openai"]["base_url"] == server.base_url
    assert all("sk-planted" not in path.read_text() for path in folder.iterdir() if path.is_file())
    assert server.counts()["peak"] <= 2, "workers"
    for role in ("doctor", "patient", "measurement", "moderator"):
        asked = [entry["body"] for entry in server.log() if entry["purpose"] == role]
        assert {body["model"] for body in asked} == {f"{role}-model"}
        assert {body["temperature"] for body in asked} == {0.25}
    sent = {role: json.dumps([e["body"] for e in server.log() if e["purpose"] == role]) for role in PURPOSES}
    assert "You keep thinking of last week." in sent["doctor"]
    assert "REQUEST IMAGES works" not in sent["doctor"]
    assert "A friend had this." in sent["patient"]
    assert "Think before you order." in sent["planner"]
