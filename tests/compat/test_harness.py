"""A script in the style of the original's harness drives the drop-in doctor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import osce
from runs_support import environment
from scripted_server import LONG, ScriptedServer

from agentclinic.compat.init import write_folder
from agentclinic.doctors.uncertainty.store import read_session

HARNESS = """
import argparse
import json

from agentclinic_api_only import MeasurementAgent, PatientAgent, ScenarioLoaderMedQA, compare_results
from uncertainty_aware_doctor import UncertaintyAwareDoctorAgent

parser = argparse.ArgumentParser()
for flag in ("doctor_llm", "patient_llm", "measurement_llm", "moderator_llm", "output_file", "uncertainty_agent_type"):
    parser.add_argument("--" + flag)
parser.add_argument("--num_scenarios", type=int)
parser.add_argument("--total_inferences", type=int)
args = parser.parse_args()
loader = ScenarioLoaderMedQA()


def tokens(agent):
    return {name: getattr(agent, name) for name in ("total_tokens", "prompt_tokens", "completion_tokens")}


def play(scenario_id):
    scenario = loader.get_scenario(id=scenario_id)
    chart = scenario.scenario_dict["OSCE_Examination"]
    measurement = MeasurementAgent(scenario=scenario, backend_str=args.measurement_llm)
    patient = PatientAgent(scenario=scenario, bias_present=None, backend_str=args.patient_llm)
    doctor = UncertaintyAwareDoctorAgent(
        scenario=scenario, bias_present=None, backend_str=args.doctor_llm, max_infs=args.total_inferences,
        img_request=False, agent_type=args.uncertainty_agent_type,
    )
    reply, dialogue, said = "", [], ""
    for turn in range(args.total_inferences):
        if turn == args.total_inferences - 1:
            reply += "This is the final question. Please provide a diagnosis."
        said = doctor.inference_doctor(reply, image_requested=False, memory_context="In case %d, rest helped." % turn)
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
        "dataset": "MedQA",
        "scenario_id": scenario_id,
        "problem_info": chart["Objective_for_Doctor"],
        "correct_diagnosis": scenario.diagnosis_information(),
        "model_diagnosis": said,
        "correct": compare_results(said, scenario.diagnosis_information(), args.moderator_llm, None) == "yes",
        "dialogue_history": dialogue,
        "token_usage": used,
        "session_id": doctor.session_id,
    }


with open(args.output_file, "w") as file:
    for scenario_id in range(min(args.num_scenarios, loader.num_scenarios)):
        file.write(json.dumps(play(scenario_id)) + "\\n")
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


@pytest.mark.slow
def test_the_originals_harness_drives_the_drop_in_doctor_over_20_scenarios(
    server: ScriptedServer, tmp_path: Path
) -> None:
    write_folder(tmp_path, original=True)
    rows = [
        osce(objective=f"Assess mark-{n}z.", truth="Frobisher fever" if n in WRONG else f"Disease of mark-{n}z")
        for n in range(COUNT)
    ]
    data = tmp_path / "agentclinic_medqa.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    script = tmp_path / "benchmarks" / "AgentClinic" / "harness.py"
    script.write_text(HARNESS.replace("ScenarioLoaderMedQA()", f"ScenarioLoaderMedQA(file_path={str(data)!r})"))
    config = {"openai": {"base_url": server.base_url}, "llm": {"runtime": {"tries": 1}}}
    (tmp_path / "llm.config.json").write_text(json.dumps(config))
    refuted = {"match": {"purpose": "moderator", "text_contains": "Frobisher"}, "reply": "No"}
    server.control(steps=STEPS, synthesis="Disease of {mark}", rules=[refuted])
    flags = {"num_scenarios": COUNT, "total_inferences": 3, "output_file": "out.jsonl"}
    flags |= {f"{role}_llm": role for role in ("doctor", "patient", "measurement", "moderator")}
    flags |= {"uncertainty_agent_type": "uncertainty_aware_doctor"}
    done = subprocess.run(
        [sys.executable, str(script), *(f"--{name}={value}" for name, value in flags.items())],
        cwd=tmp_path, env=environment(OPENAI_API_KEY="sk-planted", OPENAI_BASE_URL=server.base_url),
        capture_output=True, text=True, timeout=LONG,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    results = list(map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines()))
    assert [result["scenario_id"] for result in results] == list(range(COUNT))
    assert [n for n, result in enumerate(results) if result["correct"] is not True] == list(WRONG)
    for n, result in enumerate(results):
        assert result["problem_info"] == f"Assess mark-{n}z."
        assert result["model_diagnosis"] == f"DIAGNOSIS READY: Disease of mark-{n}z"
        assert [line.partition(":")[0] for line in result["dialogue_history"]] == [
            "Doctor", "Patient", "Doctor", "Measurement", "Doctor",
        ]  # fmt: skip
        for used in result["token_usage"].values():
            assert used["total_tokens"] == used["prompt_tokens"] + used["completion_tokens"] > 0
        session = read_session(tmp_path / "agent" / "diagnosis_sessions" / f"{result['session_id']}.json")
        assert session.facts == [step["new_information"].replace("{mark}", f"mark-{n}z") for step in STEPS]
    asked = server.log()
    assert len(asked) == COUNT * len(("doctor", "patient", "doctor", "lab", "doctor", "synthesis", "moderator"))
    for entry in asked:
        text = json.dumps(entry["body"])
        assert ("rest helped" in text) == (entry["purpose"] == "doctor")
        assert "This is the final question" not in text, "it is no part of the patient's reply"
