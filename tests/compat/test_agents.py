"""The original's synchronous interface, used as the original's script uses it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fakes import NEJM, OSCE, Scripted, case_of
from policy_support import plan, replied
from scripted_server import LONG, ScriptedServer

import agentclinic
from agentclinic import privacy, sync_bridge
from agentclinic.clinic.prompts import load_prompt
from agentclinic.compat import agents, tools
from agentclinic.compat.agents import DoctorAgent, MeasurementAgent, PatientAgent
from agentclinic.compat.scenarios import Scenario, ScenarioLoader
from agentclinic.config import LLMFile
from agentclinic.doctors.uncertainty.agent_config import SHIPPED
from agentclinic.doctors.uncertainty.store import get_current_session, read_session, set_current_session
from agentclinic.errors import AgentClinicError, CaseError, ConfigError, InputError
from agentclinic.models.base import ConnectError, MalformedError, Model, ServerError
from agentclinic.models.gate import GateClosedError
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models, set_ambient_settings
from agentclinic.trust import UntrustedError


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test starts in an empty folder, with the settings of a new process."""
    monkeypatch.chdir(tmp_path)
    set_ambient_settings(None)
    yield
    set_ambient_settings(None)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Scripted]:
    """Models by name, answering from lists."""
    models: dict[str, Scripted] = {}
    real = Models.get

    def get(self: Models, name: str, endpoint: str | None = None) -> Model:
        return models[name] if name in models else real(self, name, endpoint)

    monkeypatch.setattr(Models, "get", get)
    return models


def play_as_the_original_does(scenario: Scenario) -> tuple[str, bool, str]:
    """The loop of the original's script, with its names."""
    doctor = agentclinic.DoctorAgent(scenario=scenario, backend_str="builtin", max_infs=20, bias_present=None)
    patient = agentclinic.PatientAgent(scenario=scenario, backend_str="builtin", bias_present="None")
    measurement = agentclinic.MeasurementAgent(scenario=scenario, backend_str="builtin")
    pi_dialogue = ""
    for _ in range(20):
        doctor_dialogue = doctor.inference_doctor(pi_dialogue, image_requested=False)
        if "DIAGNOSIS READY" in doctor_dialogue:
            verdict = agentclinic.compare_results(doctor_dialogue, scenario.diagnosis_information(), "builtin", None)
            return doctor_dialogue, verdict == "yes", doctor.agent_hist
        if "REQUEST TEST" in doctor_dialogue:
            pi_dialogue = measurement.inference_measurement(doctor_dialogue)
            assert pi_dialogue.startswith("RESULTS:")
            patient.add_hist(pi_dialogue)
        else:
            pi_dialogue = patient.inference_patient(doctor_dialogue)
            measurement.add_hist(pi_dialogue)
    raise AssertionError("no diagnosis in 20 turns")


@pytest.fixture(scope="module")
def loader() -> ScenarioLoader:
    return ScenarioLoader()


def test_the_originals_loop_reaches_a_diagnosis(loader: ScenarioLoader) -> None:
    said, right, history = play_as_the_original_does(loader.get_scenario(id=0))
    assert said == "DIAGNOSIS READY: Acute appendicitis"
    assert right
    assert history.startswith("Doctor: ")
    assert history.endswith("Doctor: DIAGNOSIS READY: Acute appendicitis\n\n")
    assert "Patient: " in history


def test_several_threads_play_concurrently(loader: ScenarioLoader) -> None:
    alone = [play_as_the_original_does(loader.get_scenario(id=n)) for n in range(4)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda n: play_as_the_original_does(loader.get_scenario(id=n % 4)), range(8)))
    assert together == alone + alone


def test_the_loaders_read_the_originals_files(tmp_path: Path) -> None:
    (tmp_path / "osce.jsonl").write_text(json.dumps({"OSCE_Examination": OSCE}) + "\n")
    (tmp_path / "nejm.jsonl").write_text(json.dumps(NEJM) + "\n")
    for name in ("MedQA", "MedQAExtended", "MIMICIV"):
        opened = getattr(agentclinic, f"ScenarioLoader{name}")(file_path=tmp_path / "osce.jsonl")
        scenario = opened.get_scenario(id=0)
        assert type(scenario) is getattr(agentclinic, f"Scenario{name}")
        assert (opened.num_scenarios, scenario.diagnosis_information()) == (1, "Migraine")
        assert scenario.examiner_information() == OSCE["Objective_for_Doctor"]
        assert scenario.patient_information() == OSCE["Patient_Actor"]
        assert scenario.exam_information() == {**OSCE["Physical_Examination_Findings"], "tests": OSCE["Test_Results"]}
        assert (scenario.tests, scenario.diagnosis) == (OSCE["Test_Results"], "Migraine")
        assert scenario.physical_exams == OSCE["Physical_Examination_Findings"]
        assert (scenario.patient_info, scenario.examiner_info) == (OSCE["Patient_Actor"], OSCE["Objective_for_Doctor"])
        assert (scenario.scenario_dict, scenario.question) == ({"OSCE_Examination": OSCE}, "")
    for name in ("NEJM", "NEJMExtended"):
        scenario = getattr(agentclinic, f"ScenarioLoader{name}")(tmp_path / "nejm.jsonl").sample_scenario()
        assert (scenario.image_url, scenario.question) == (NEJM["image_url"], NEJM["question"])
        assert (scenario.scenario_dict, scenario.tests) == (NEJM, {})
        assert scenario.exam_information() == scenario.physical_exams == NEJM["physical_exams"]
    assert agentclinic.ScenarioMedQA({"OSCE_Examination": OSCE}).diagnosis_information() == "Migraine"


def test_agents_keep_a_history_with_blank_lines(scripted: dict[str, Scripted]) -> None:
    scripted.update(d=Scripted("Hello?", "REQUEST TEST: CBC"), p=Scripted("Hi."), m=Scripted("13"))
    scenario = Scenario(case_of(OSCE))
    doctor = agentclinic.DoctorAgent(scenario, "d", max_infs=2)
    patient = agentclinic.PatientAgent(scenario, "p")
    measurement = agentclinic.MeasurementAgent(scenario, "m")
    assert doctor.inference_doctor("") == "Hello?"
    assert patient.inference_patient("Hello?") == "Hi."
    assert doctor.inference_doctor("Hi.") == "REQUEST TEST: CBC"
    assert measurement.inference_measurement("REQUEST TEST: CBC") == "RESULTS: 13"
    assert doctor.inference_doctor("RESULTS: 13") == "Maximum inferences reached"
    assert doctor.agent_hist == "Doctor: Hello?\n\nPatient: Hi.\n\nDoctor: REQUEST TEST: CBC\n\n"
    assert patient.agent_hist == "Doctor: Hello?\n\nPatient: Hi.\n\n"
    assert measurement.agent_hist == "Doctor: REQUEST TEST: CBC\n\nMeasurement: RESULTS: 13\n\n"
    patient.add_hist("RESULTS: 13")
    assert patient.agent_hist.endswith("RESULTS: 13\n\n")
    last_turn = load_prompt("doctor").text("last_turn")
    assert [last_turn in prompt for prompt in scripted["d"].prompts] == [False, True]
    for agent in (doctor, patient, measurement):
        assert agent.system_prompt()
        agent.reset()
        assert agent.agent_hist == ""
    assert doctor.infs == 0


def test_a_failed_call_can_be_repeated(scripted: dict[str, Scripted]) -> None:
    scripted["d"] = Scripted("Hello?", ServerError("down"), "And now?")
    doctor = agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "d", max_infs=3)
    doctor.inference_doctor("")
    with pytest.raises(ServerError):
        doctor.inference_doctor("Hi.")
    assert doctor.inference_doctor("Hi.") == "And now?"
    assert doctor.infs == 2
    assert scripted["d"].requests[1] == scripted["d"].requests[2]


def test_agents_count_tokens_as_integers(server: ScriptedServer) -> None:
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}})
    scenario = Scenario(case_of(OSCE))
    doctor = agentclinic.DoctorAgent(scenario, "d")
    patient = agentclinic.PatientAgent(scenario, "p")
    measurement = agentclinic.MeasurementAgent(scenario, "m")
    steps: dict[DoctorAgent | PatientAgent | MeasurementAgent, Callable[[], str]] = {
        doctor: lambda: doctor.inference_doctor(""),
        patient: lambda: patient.inference_patient("Hello?"),
        measurement: lambda: measurement.inference_measurement("REQUEST TEST: CBC"),
    }
    for agent, step in steps.items():
        assert (agent.total_tokens, agent.prompt_tokens, agent.completion_tokens) == (0, 0, 0)
        step()
        once = agent.total_tokens
        assert once == agent.prompt_tokens + agent.completion_tokens > agent.prompt_tokens > 0
        step()
        assert agent.total_tokens > once
        agent.reset()
        server.fault("no_usage", times=1)
        step()
        assert (agent.total_tokens, agent.prompt_tokens, agent.completion_tokens) == (0, 0, 0), "not reported"


def test_memory_context_is_shown_marked_and_for_one_turn(scripted: dict[str, Scripted]) -> None:
    scripted["d"] = Scripted("Hello?", "And now?")
    doctor = agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "d")
    doctor.inference_doctor("", memory_context="Ask about travel first.\n")
    doctor.inference_doctor("Hi.", memory_context="")
    first, second = scripted["d"].prompts
    assert f"{agents.MEMORY}\nAsk about travel first." in first
    assert "travel" not in second
    assert agents.MEMORY not in second


def test_the_originals_last_words_make_it_the_last_turn(scripted: dict[str, Scripted]) -> None:
    scripted["d"] = Scripted("Hello?", "DIAGNOSIS READY: Flu")
    doctor = agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "d", max_infs=20)
    doctor.inference_doctor("")
    doctor.inference_doctor("A cough. This is the final question. Please provide a diagnosis.\n")
    assert load_prompt("doctor").text("last_turn") in scripted["d"].prompts[1]
    assert "Patient: A cough.\n" in doctor.agent_hist
    drop_in = agentclinic.UncertaintyAwareDoctorAgent(Scenario(case_of(OSCE)), max_infs=20)
    drop_in.inference_doctor("")
    said = drop_in.inference_doctor("A cough. This is the final question. Please provide a diagnosis.")
    assert said.startswith("DIAGNOSIS READY: ")


def test_a_doctor_with_a_test_policy_plans_before_it_speaks(scripted: dict[str, Scripted]) -> None:
    sure = plan(Migraine="+5 +5 +5 +5", Stroke="-5 -5 ?1 ?1", Flu="-5 -5 ?1 ?1")
    scripted["d"] = Scripted(replied(plan(Migraine="+2 ?2 ?2 ?2", Stroke="+1 ?2 ?2 ?2")), "Hello?", replied(sure))
    scenario = Scenario(case_of(OSCE))
    doctor = agentclinic.DoctorAgent(scenario, "d", test_policy="test_policy", use_test_policy=True)
    assert doctor.inference_doctor("") == "Hello?"
    assert "Stroke" in scripted["d"].prompts[1], "the plan's notes"
    assert doctor.inference_doctor("It throbs.") == "DIAGNOSIS READY: Migraine", "said by the planner, which is sure"
    assert doctor.prompt_tokens == 20, "the planner's tokens count"
    assert doctor.agent_hist.endswith("Patient: It throbs.\n\nDoctor: DIAGNOSIS READY: Migraine\n\n")
    with pytest.raises(ConfigError, match=r"there is no mine\.json"):
        agentclinic.DoctorAgent(scenario, test_policy="mine", use_test_policy=True)
    agentclinic.DoctorAgent(scenario, test_policy="mine", use_test_policy=False)


def test_requested_images_are_sent_and_stay_in_view(scripted: dict[str, Scripted]) -> None:
    scripted["d"] = Scripted("REQUEST IMAGES", "Itchy?", "DIAGNOSIS READY: Psoriasis")
    doctor = agentclinic.DoctorAgent(Scenario(case_of(NEJM)), "d", img_request=True)
    doctor.inference_doctor("")
    doctor.inference_doctor("", image_requested=True)
    doctor.inference_doctor("Yes", image_requested=True)
    sent = [[image.url for image in request.messages[-1].images] for request in scripted["d"].requests]
    assert sent == [[], [NEJM["image_url"]], [NEJM["image_url"]]]


@pytest.mark.parametrize("nothing", [None, "None", "none", ""])
def test_none_null_and_empty_mean_no_bias(nothing: str | None) -> None:
    scenario = Scenario(case_of(OSCE))
    plain = agentclinic.PatientAgent(scenario, "builtin").system_prompt()
    assert agentclinic.PatientAgent(scenario, "builtin", nothing).system_prompt() == plain


def test_an_unknown_bias_is_ignored_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"doctor\.json has no bias 'astrology'.*recency.* the bias is ignored"):
        doctor = agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "builtin", bias_present="astrology")
    assert doctor.system_prompt() == agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "builtin").system_prompt()


@pytest.mark.parametrize(
    ("said", "verdict"),
    [("DIAGNOSIS READY: Migraine", "yes"), ("Migraine", "yes"), ("DIAGNOSIS READY: Cluster headache", "no")],
)
def test_compare_results_says_yes_or_no(said: str, verdict: str) -> None:
    assert agentclinic.compare_results(said, "Migraine", "builtin") == verdict


def test_compare_results_shows_a_model_the_whole_text_and_takes_its_word(scripted: dict[str, Scripted]) -> None:
    scripted["judge"] = Scripted("Yes", "No")
    said = "It throbs.\nDIAGNOSIS READY: Migraine or gout"
    assert agentclinic.compare_results(said, "Migraine", "judge") == "yes"
    assert agentclinic.compare_results("Migraine", "Migraine", "judge") == "no"
    assert said in scripted["judge"].prompts[0]


def test_compare_results_never_reads_nonsense_as_no(scripted: dict[str, Scripted]) -> None:
    scripted["judge"] = Scripted("Hard to say")
    with pytest.raises(MalformedError):
        agentclinic.compare_results("Migraine", "Migraine", "judge")


def final_diagnosis_by_hand() -> str:
    set_current_session("scenario_1_mine")
    tools.diagnosis_step("fever", "flu, cold", "ASK PATIENT: Since when?")
    return tools.final_diagnosis("sure")


@pytest.mark.parametrize(
    "call",
    [
        lambda: agentclinic.query_model("some", "p", "s"),
        lambda: agentclinic.compare_results("flu", "grippe", "some"),
        lambda: agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "some").inference_doctor(""),
        lambda: agentclinic.PatientAgent(Scenario(case_of(OSCE)), "some").inference_patient("Hello?"),
        lambda: agentclinic.MeasurementAgent(Scenario(case_of(OSCE)), "some").inference_measurement("CBC"),
        lambda: agentclinic.UncertaintyAwareDoctorAgent(Scenario(case_of(OSCE)), "some").inference_doctor(""),
        final_diagnosis_by_hand,
    ],
    ids=["query", "judge", "doctor", "patient", "laboratory", "drop-in doctor", "final_diagnosis"],
)
def test_the_functions_use_the_working_folders_llm_config(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[], str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/nowhere")
    (tmp_path / "agent").mkdir()
    agent = SHIPPED.read_text(encoding="utf-8").replace("synthesis_model: null", "synthesis_model: some")
    (tmp_path / "agent" / "agent_config.yaml").write_text(agent)
    write_config(tmp_path, server)
    server.control(
        steps=[{"new_information": "x", "current_uncertainties": "a, b", "next_step_action": "ASK PATIENT: y"}]
    )
    assert call()
    assert [entry["body"]["model"] for entry in server.log()] == ["some"]


def test_a_tool_whose_model_fails_returns_an_error_text(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    agent = SHIPPED.read_text(encoding="utf-8").replace("synthesis_model: null", "synthesis_model: some")
    (tmp_path / "agent" / "agent_config.yaml").write_text(agent)
    write_config(tmp_path, server, runtime={"tries": 1})
    server.control(rules=[{"match": {"purpose": "synthesis"}, "fault": "auth"}])
    failed = final_diagnosis_by_hand()
    assert failed.startswith("Error: ")
    assert "key" in failed
    assert "sk-planted" not in failed


def test_attributes_have_the_originals_names(scripted: dict[str, Scripted]) -> None:
    scenario = Scenario(case_of(OSCE))
    doctor = agentclinic.DoctorAgent(scenario, "d", max_infs=7, bias_present="recency", img_request=True)
    patient = agentclinic.PatientAgent(scenario, "p", bias_present="self_diagnosis")
    measurement = agentclinic.MeasurementAgent(scenario, "m")
    for agent, backend in ((doctor, "d"), (patient, "p"), (measurement, "m")):
        assert (agent.scenario, agent.backend, agent.pipe) == (scenario, backend, None)
    assert (doctor.presentation, measurement.presentation) == (OSCE["Objective_for_Doctor"], "")
    assert (doctor.MAX_INFS, doctor.infs, doctor.img_request, doctor.policy_engine) == (7, 0, True, None)
    assert (doctor.use_test_policy, doctor.test_policy) == (False, None)
    assert (patient.symptoms, patient.disease) == (OSCE["Patient_Actor"], "")
    assert measurement.information == scenario.exam_information()
    assert (doctor.bias_present, patient.bias_present) == ("recency", "self_diagnosis")
    for biased in (doctor, patient):
        assert biased.bias_present in biased.biases
        assert biased.generate_bias()
        assert biased.generate_bias() in biased.system_prompt()
    assert (len(doctor.biases), len(patient.biases)) == (12, 11)
    assert agentclinic.DoctorAgent(scenario, "d", bias_present="None").generate_bias() == ""


def test_the_history_and_the_count_can_be_assigned(scripted: dict[str, Scripted]) -> None:
    scripted.update(d=Scripted("Since when?", "And now?"), p=Scripted("Two days."), m=Scripted("13"))
    scenario = Scenario(case_of(OSCE))
    doctor = agentclinic.DoctorAgent(scenario, "d", max_infs=20)
    doctor.agent_hist = "Hello, doctor.\n\nHello, what is wrong?\n\n"
    doctor.infs = 18
    assert doctor.inference_doctor("My toe.") == "Since when?"
    prompt = scripted["d"].prompts[0]
    assert "Hello, doctor.\n\nHello, what is wrong?" in prompt
    assert "My toe." in prompt
    assert doctor.infs == 19
    assert doctor.agent_hist == (
        "Hello, doctor.\n\nHello, what is wrong?\n\nPatient: My toe.\n\nDoctor: Since when?\n\n"
    )
    doctor.inference_doctor("Two days.")
    assert load_prompt("doctor").text("last_turn") in scripted["d"].prompts[1], "the twentieth of twenty"
    assert doctor.inference_doctor("Yes.") == "Maximum inferences reached"
    doctor.agent_hist = ""
    assert doctor.agent_hist == ""
    patient, measurement = agentclinic.PatientAgent(scenario, "p"), agentclinic.MeasurementAgent(scenario, "m")
    patient.agent_hist = measurement.agent_hist = "Earlier words\n\n"
    patient.inference_patient("Since when?")
    measurement.inference_measurement("REQUEST TEST: CBC")
    for name, agent in (("p", patient), ("m", measurement)):
        assert "Earlier words" in scripted[name].prompts[0]
        assert agent.agent_hist.startswith("Earlier words\n\nDoctor: ")


def test_the_drop_in_goes_on_from_an_assigned_history_and_count(server: ScriptedServer, tmp_path: Path) -> None:
    write_config(tmp_path, server)
    step = {"new_information": "x", "current_uncertainties": "a, b", "next_step_action": "ASK PATIENT: y"}
    server.control(steps=[step], synthesis="Gout")
    doctor = agentclinic.UncertaintyAwareDoctorAgent(Scenario(case_of(OSCE)), "some", max_infs=9)
    doctor.inference_doctor("")
    doctor.agent_hist, doctor.infs = "We spoke of a swollen toe.", 9
    assert doctor.inference_doctor("It hurts.") == "DIAGNOSIS READY: Gout", "no turn is left"
    assert "We spoke of a swollen toe." in json.dumps(server.log()[1]["body"])
    session = read_session(tmp_path / "agent" / "diagnosis_sessions" / f"{doctor.session_id}.json")
    assert len(session.steps) == 2, "the session goes on"
    assert get_current_session() == doctor.session_id


def test_an_attribute_that_is_assigned_counts_from_the_next_turn_on(scripted: dict[str, Scripted]) -> None:
    scripted.update(d=Scripted("Hello?"), other=Scripted("And now?"))
    doctor = agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "d")
    doctor.inference_doctor("")
    doctor.backend, doctor.presentation, doctor.MAX_INFS = "other", "Assess a sore toe.", 2
    assert doctor.inference_doctor("Hi.") == "And now?"
    (request,) = scripted["other"].requests
    assert "Assess a sore toe." in request.messages[0].content
    assert "Doctor: Hello?" in request.messages[1].content
    assert doctor.inference_doctor("Yes.") == "Maximum inferences reached"
    scripted.update(p=Scripted("Hi."), second=Scripted("Since Monday."))
    patient = agentclinic.PatientAgent(Scenario(case_of(OSCE)), "p")
    patient.inference_patient("Hello?")
    patient.backend, patient.bias_present = "second", "recency"
    assert patient.inference_patient("Since when?") == "Since Monday."
    assert patient.generate_bias() in scripted["second"].requests[0].messages[0].content
    assert "Patient: Hi." in scripted["second"].prompts[0]


def test_a_policy_can_be_given_as_the_content_of_its_file(scripted: dict[str, Scripted]) -> None:
    sure = plan(Migraine="+5 +5 +5 +5", Stroke="-5 -5 ?1 ?1", Flu="-5 -5 ?1 ?1")
    close = plan(Migraine="+2 ?2 ?2 ?2", Stroke="+2 ?2 ?2 ?2", Flu="-2 ?2 ?2 ?2")
    scripted["d"] = Scripted(replied(close), "Hello?", replied(sure), replied(sure))
    policy = {
        "instructions": "Think of the heart first.",
        "constraints": {"one_test_per_turn": True, "finish_early_if_confident": 0.9},
        "differential_settings": {"min_symptoms_per_disease": 4},
    }
    doctor = agentclinic.DoctorAgent(Scenario(case_of(OSCE)), "d", test_policy=policy, use_test_policy=True)
    engine = doctor.policy_engine
    assert isinstance(engine, agentclinic.DifferentialDiagnosisEngine)
    assert (engine.finish_threshold, engine.last_decision) == (0.9, None)
    assert doctor.inference_doctor("") == "Hello?"
    assert "Think of the heart first." in str(scripted["d"].requests[0].messages)
    assert "Think of the heart first." in doctor.system_prompt()
    assert engine.last_decision is not None
    assert engine.render_guidance() in scripted["d"].prompts[1]
    assert [each.name for each in engine.last_decision.close_competitors] == ["Stroke"]
    assert doctor.inference_doctor("It throbs.") == "DIAGNOSIS READY: Migraine"
    with pytest.raises(ConfigError, match=r"policy: .*finish_early_if_confident"):
        agentclinic.DoctorAgent(
            Scenario(case_of(OSCE)), test_policy={"constraints": {"finish_early_if_confident": 7}}, use_test_policy=True
        )


def test_the_engine_plans_from_text_as_in_the_original(scripted: dict[str, Scripted]) -> None:
    sure = plan(Migraine="+5 +5 +5 +5", Stroke="-5 -5 ?1 ?1", Flu="-5 -5 ?1 ?1")
    scripted["planner"] = Scripted(replied(sure), replied(sure))
    engine = agentclinic.DifferentialDiagnosisEngine(
        llm_model="planner", policy={}, finish_threshold=0.8, case_overview="Assess a woman.", patient_overview="Aura."
    )
    assert engine.render_guidance() == ""
    decision = engine.analyze("Doctor: Hello?\n\n", "It throbs.")
    assert (decision.should_finish, decision.chosen_diagnosis) == (True, "Migraine")
    assert (decision.finish_threshold, decision.close_gap) == (0.8, 0.12)
    top = decision.top_hypothesis()
    assert top is not None
    assert (top.name, top.confidence, top.coverage, top.support_weight) == ("Migraine", 1.0, 1.0, 20)
    for told in ("Assess a woman.", "Aura.", "Doctor: Hello?", "It throbs."):
        assert told in scripted["planner"].prompts[0]
    assert not engine.analyze("", "").should_finish, "not before anything was said"


def test_query_model_returns_its_tokens_on_request(server: ScriptedServer) -> None:
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}})
    text, usage = agentclinic.query_model("m", "p", "s", return_usage=True)
    assert text == agentclinic.query_model("m", "p", "s")
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > usage.prompt_tokens > 0
    server.fault("no_usage")
    assert agentclinic.query_model("m", "p", "s", return_usage=True)[1].total_tokens == 0


def test_the_client_is_of_the_configured_endpoint_and_obeys_the_rule_for_keys(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(tmp_path, server, runtime={"llm_api": "chat", "tries": 1})
    monkeypatch.setenv("OPENAI_ORG_ID", "org-planted")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-planted")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-mine: header-planted")
    client = agentclinic.get_openai_client()
    assert str(client.base_url).rstrip("/") == server.base_url
    said = client.chat.completions.create(model="some", messages=[{"role": "user", "content": "Hello"}])
    assert said.choices[0].message.content
    headers = json.dumps(server.log()[-1]["headers"])
    assert "sk-planted" in headers
    assert not {"org-planted", "project-planted", "header-planted"} & set(re.findall(r"[\w-]+", headers))
    agentclinic.init_openai_client("sk-mine", server.base_url)
    assert agentclinic.get_openai_client().api_key == "sk-mine"
    agentclinic.query_model("other", "p", "s")
    assert server.log()[-1]["path"] == "/v1/chat/completions", "the other settings are kept"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    agentclinic.init_openai_client(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(UntrustedError, match="your key OPENAI_API_KEY would go to"):
        agentclinic.get_openai_client()
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    agentclinic.init_openai_client()
    with pytest.raises(ConfigError, match="set OPENAI_API_KEY"):
        agentclinic.get_openai_client()


def test_credentialed_cases_do_not_go_through_a_client_that_is_not_checked() -> None:
    privacy.raise_data_class(DataClass.CREDENTIALED)
    with pytest.raises(GateClosedError, match="use query_model"):
        agentclinic.get_openai_client()


def test_prompts_are_read_as_they_are_in_the_file(tmp_path: Path) -> None:
    assert agentclinic.load_prompts_json("doctor")["system_base"]
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "doctor.json").write_text('{"system_base": "Mine."}')
    assert agentclinic.load_prompts_json("doctor") == {"system_base": "Mine."}
    with pytest.raises(ConfigError, match=r"prompts/measurement_cost\.json: no such file"):
        agentclinic.load_prompts_json("measurement_cost")


def test_the_cost_estimator_asks_with_the_users_table_and_counts(server: ScriptedServer, tmp_path: Path) -> None:
    write_config(tmp_path, server)
    scenario = Scenario(case_of(OSCE))
    estimator = agentclinic.CostEstimatorAgent(scenario=scenario, backend_str="some")
    with pytest.raises(ConfigError, match=r"measurement_cost\.json: no such file"):
        estimator.inference_cost("REQUEST TEST: CBC")
    (tmp_path / "prompts").mkdir()
    table = {
        "instructions": "Answer with JSON.",
        "known_costs": [{"name": "Blood count", "cost_min": 11, "cost_max": 13}],
        "scaling_rules": {"scarce": 2.5},
        "user_prompt_template": "{agent_hist}|{question}|{resource_level}|{scenario_info}",
    }
    (tmp_path / "prompts" / "measurement_cost.json").write_text(json.dumps(table))
    server.control(rules=[{"match": {"purpose": "query"}, "reply": '{"tests": []}'}])
    assert estimator.inference_cost("REQUEST TEST: CBC", resource_level="scarce") == '{"tests": []}'
    sent = json.dumps(server.bodies())
    for told in ("Answer with JSON.", "Blood count", "2.5", "|REQUEST TEST: CBC|scarce|"):
        assert told in sent
    assert estimator.agent_hist == 'REQUEST TEST: CBC\n\n{"tests": []}\n\n'
    assert estimator.total_tokens == estimator.prompt_tokens + estimator.completion_tokens > 0
    estimator.reset()
    assert (estimator.agent_hist, estimator.total_tokens) == ("", 0)


def test_the_builtin_cost_estimator_uses_our_own_table() -> None:
    estimator = agentclinic.CostEstimatorAgent(Scenario(case_of(OSCE)))
    (test,) = json.loads(estimator.inference_cost("REQUEST TEST: Complete blood count", "scarce"))["tests"]
    (usual,) = json.loads(estimator.inference_cost("REQUEST TEST: Complete blood count"))["tests"]
    assert test["estimate_cost"] == usual["estimate_cost"] > 0
    assert test["expected_wait_time_minutes"] > usual["expected_wait_time_minutes"] > 0
    assert json.loads(estimator.inference_cost("REQUEST TEST: Frobisher test")) == {"tests": []}


def test_the_builtin_cost_estimator_uses_the_users_table_where_it_has_the_test(tmp_path: Path) -> None:
    known = {"name": "Frobisher test", "cost_min": 10, "cost_max": 30, "duration_min": 5, "wait_min": 7}
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "measurement_cost.json").write_text(
        json.dumps({"known_costs": [known], "scaling_rules": {"scarce": 3}})
    )
    estimator = agentclinic.CostEstimatorAgent(Scenario(case_of(OSCE)))
    (test,) = json.loads(estimator.inference_cost("REQUEST TEST: Frobisher test", "scarce"))["tests"]
    assert (test["estimate_cost"], test["expected_wait_time_minutes"]) == (20, 21)


def test_any_case_file_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps({"OSCE_Examination": OSCE}) + "\n")
    opened = agentclinic.ScenarioLoaderOSCE("mine.jsonl")
    assert (opened.num_scenarios, opened.path) == (1, tmp_path / "mine.jsonl")
    assert opened.get_scenario(id=0).diagnosis == "Migraine"
    with pytest.raises(CaseError, match=r"scenario 1 does not exist; mine has rows 0-0"):
        opened.get_scenario(id=1)
    assert agentclinic.ScenarioMIMICIVQA is agentclinic.ScenarioMIMICIV


def test_a_loader_without_arguments_opens_the_file_where_the_original_has_it(tmp_path: Path) -> None:
    (tmp_path / "agentclinic_medqa.jsonl").write_text(json.dumps({"OSCE_Examination": OSCE}) + "\n")
    assert agentclinic.ScenarioLoaderMedQA().get_scenario(id=0).diagnosis_information() == "Migraine"


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the original's script is started, two below the root of the repository."""
    (tmp_path / ".git").mkdir()
    place = tmp_path / "benchmarks" / "AgentClinic"
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    return place


def test_the_drop_in_uses_the_files_in_the_root_of_the_repository(
    server: ScriptedServer, tmp_path: Path, below: Path
) -> None:
    write_config(tmp_path, server)
    (tmp_path / "agent").mkdir()
    agent = SHIPPED.read_text(encoding="utf-8").replace("model: builtin", "model: theirs")
    (tmp_path / "agent" / "agent_config.yaml").write_text(agent)
    step = {"new_information": "x", "current_uncertainties": "a, b", "next_step_action": "ASK PATIENT: y"}
    server.control(steps=[step])
    doctor = agentclinic.UncertaintyAwareDoctorAgent(Scenario(case_of(OSCE)))
    assert doctor.inference_doctor("") == "y"
    assert [entry["body"]["model"] for entry in server.log()] == ["theirs"]
    assert (tmp_path / "agent" / "diagnosis_sessions" / f"{doctor.session_id}.json").is_file()
    assert list(below.iterdir()) == []
    with pytest.warns(UserWarning, match=r"backend_str 'mine' overrides the model 'theirs' in .*agent_config\.yaml"):
        agentclinic.UncertaintyAwareDoctorAgent(Scenario(case_of(OSCE)), backend_str="mine")


def test_a_file_that_is_found_but_not_used_is_named(server: ScriptedServer, tmp_path: Path, below: Path) -> None:
    write_config(tmp_path, server)
    write_config(below, server, runtime={"llm_api": "chat"})
    with pytest.warns(
        UserWarning, match=rf"{tmp_path}/llm\.config\.json: not used, because llm\.config\.json is nearer"
    ):
        agentclinic.query_model("m", "p", "s")
    assert [entry["path"] for entry in server.log()] == ["/v1/chat/completions"]


def test_a_key_does_not_go_where_only_a_file_above_says(
    server: ScriptedServer, tmp_path: Path, below: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llm.config.json").write_text(json.dumps({"openai": {"base_url": server.base_url}}))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    with pytest.raises(UntrustedError, match="your key OPENAI_API_KEY would go to"):
        agentclinic.query_model("not-asked-before", "p", "s")
    assert server.log() == []
    monkeypatch.delenv("OPENAI_API_KEY")
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY=sk-beside\nOPENAI_BASE_URL={server.base_url}\n")
    (tmp_path / "llm.config.json").unlink()
    assert agentclinic.query_model("not-asked-before", "p", "s")


def write_config(folder: Path, server: ScriptedServer, **llm: Any) -> None:
    """An `llm.config.json` that points at the server."""
    config = {"openai": {"api_key": "sk-planted", "base_url": server.base_url}, "llm": llm}
    (folder / "llm.config.json").write_text(json.dumps(config))


def test_set_llm_config_wins_over_the_file_and_may_change_one_section(server: ScriptedServer, tmp_path: Path) -> None:
    write_config(tmp_path, server, runtime={"llm_api": "chat", "tries": 1})
    agentclinic.query_model("m", "p", "s")  # as the file says
    agentclinic.set_llm_config(responses={"max_output_tokens": 77, "model": "evil"})
    agentclinic.query_model("m", "p", "s")
    agentclinic.set_llm_config(runtime={"llm_api": "responses"})
    agentclinic.query_model("m", "p", "s")
    first, second, third = server.log()
    assert [entry["path"] for entry in (first, second, third)] == [*["/v1/chat/completions"] * 2, "/v1/responses"]
    assert "max_tokens" not in first["body"]
    assert second["body"]["max_tokens"] == third["body"]["max_output_tokens"] == 77
    assert "evil" not in json.dumps(server.bodies())
    with pytest.raises(ConfigError, match=r"set_llm_config: unknown key 'llm\.runtime\.trys'; did you mean 'tries'"):
        agentclinic.set_llm_config(runtime={"trys": 2})


def test_a_broken_llm_config_is_named_without_its_key(tmp_path: Path) -> None:
    (tmp_path / "llm.config.json").write_text('{"openai": {"api_key": "sk-planted", "base_ulr": "x"}}')
    with pytest.raises(ConfigError, match=r"llm\.config\.json: unknown key 'openai\.base_ulr'") as failure:
        agentclinic.query_model("m", "p", "s")
    assert "sk-planted" not in str(failure.value)
    agentclinic.set_llm_config({"openai": {"base_url": "http://127.0.0.1:9"}}, runtime={"tries": 1, "timeout": 0})
    with pytest.raises(ConnectError):
        agentclinic.query_model("m", "p", "s")


def test_inside_a_run_the_folders_llm_config_is_not_read(server: ScriptedServer, tmp_path: Path) -> None:
    write_config(tmp_path, server)
    (tmp_path / "llm.config.json").rename(tmp_path / "other.json")
    (tmp_path / "llm.config.json").write_text("{")

    class Asking:
        def __init__(self, scenario: object) -> None:
            pass

        def inference_doctor(self, question: str) -> str:
            return f"DIAGNOSIS READY: {agentclinic.query_model('some', 'p', 's', tries=1)}"

    server.control(rules=[{"match": {"purpose": "query"}, "reply": "Gout"}])
    run = agentclinic.evaluate(Asking, [case_of(OSCE)], llm_config="other.json", progress=False, check=False)
    assert run.records[0].diagnosis_text == "Gout"


def test_query_model_asks_the_configured_endpoint(server: ScriptedServer, tmp_path: Path) -> None:
    path = tmp_path / "llm.config.json"
    path.write_text(
        json.dumps(
            {
                "openai": {"api_key": "sk-planted", "base_url": server.base_url},
                "llm": {"responses": {"max_output_tokens": 77, "model": "evil", "input": "evil"}},
            }
        )
    )
    assert agentclinic.load_llm_config(path)["llm"]["responses"]["max_output_tokens"] == 77
    server.control(rules=[{"match": {"purpose": "query"}, "reply": "I am well."}])
    assert agentclinic.query_model("some-model", "How are you?", "Be brief.") == "I am well."
    (body,) = server.bodies()
    assert body["model"] == "some-model"
    assert body["max_output_tokens"] == 77
    assert "How are you?" in json.dumps(body["input"])
    assert "Be brief." in json.dumps(body)
    assert "evil" not in json.dumps(body)


def test_query_model_obeys_its_own_limits(server: ScriptedServer) -> None:
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}})
    server.fault("500")
    with pytest.raises(ServerError):
        agentclinic.query_model("some-model", "p", "s", tries=2, timeout=0)
    assert len(server.log()) == 2
    server.reset()
    agentclinic.query_model("some-model", "x" * 5000, "s", clip_prompt=True, max_prompt_len=300)
    assert "x" * 301 not in json.dumps(server.bodies())


def test_query_model_sends_the_scenarios_image_on_request(server: ScriptedServer) -> None:
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}})
    scenario = Scenario(case_of(NEJM))
    agentclinic.query_model("m", "p", "s", image_requested=False, scene=scenario)
    agentclinic.query_model("m", "p", "s", image_requested=True, scene=scenario)
    first, second = (json.dumps(body) for body in server.bodies())
    assert str(NEJM["image_url"]) not in first
    assert str(NEJM["image_url"]) in second


def test_a_whole_encounter_with_a_model_at_an_endpoint(server: ScriptedServer) -> None:
    agentclinic.set_llm_config({"openai": {"base_url": server.base_url}})
    scenario = Scenario(case_of(OSCE))
    doctor = agentclinic.DoctorAgent(scenario, "doc")
    patient = agentclinic.PatientAgent(scenario, "pat")
    said = doctor.inference_doctor("")
    for _ in range(3):
        answer = (
            agentclinic.MeasurementAgent(scenario, "lab").inference_measurement(said)
            if "REQUEST TEST" in said
            else patient.inference_patient(said)
        )
        said = doctor.inference_doctor(answer)
    assert said == "DIAGNOSIS READY: Migraine"
    assert agentclinic.compare_results(said, "Migraine", "judge") == "yes"
    purposes = [entry["purpose"] for entry in server.log()]
    assert purposes == ["doctor", "patient"] * 2 + ["doctor", "measurement", "doctor", "moderator"]


def test_set_llm_config_refuses_unknown_keys() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'openai\.base_ulr'; did you mean 'base_url'"):
        agentclinic.set_llm_config({"openai": {"base_ulr": "x"}})
    agentclinic.set_llm_config(LLMFile().model_dump())


def test_a_model_without_a_key_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="set OPENAI_API_KEY"):
        agentclinic.query_model("gpt-5", "p", "s")


def test_main_takes_the_two_config_files_and_the_number_of_workers(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps({"run": {"num_scenarios": 1, "output_dir": "out"}}))
    (tmp_path / "llm.json").write_text(json.dumps({"llm": {"runtime": {"tries": 3}}}))
    agentclinic.main("mine.json", "llm.json", 2)
    (used,) = (json.loads(path.read_text()) for path in (tmp_path / "out").glob("*/config.used.json"))
    assert (used["run"]["workers"], used["llm"]["runtime"]["tries"]) == (2, 3)
    with pytest.raises(InputError, match="main takes the paths") as failure:
        agentclinic.main({}, {"openai": {"api_key": "sk-planted"}}, 2)
    assert "sk-planted" not in str(failure.value)


def test_the_agents_use_a_users_prompts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    own = {"system_base": "Mine. {patient}", "user_prompt_template": "{reply}"}
    (tmp_path / "prompts" / "patient.json").write_text(json.dumps(own))
    assert agentclinic.PatientAgent(Scenario(case_of(OSCE))).system_prompt().startswith("Mine. ")


def test_a_call_on_its_own_loop_explains_itself_instead_of_hanging() -> None:
    async def inner() -> int:
        return 1

    async def outer() -> int:
        return sync_bridge.call(inner)

    with pytest.raises(AgentClinicError, match="inner was called from inside a coroutine"):
        sync_bridge.call(outer)


def test_a_call_works_in_a_notebook_where_a_loop_is_always_running() -> None:
    async def cell() -> str:
        return agents.compare_results("Migraine", "Migraine", "builtin")

    assert asyncio.run(cell()) == "yes"


@pytest.mark.slow
def test_a_script_that_called_a_model_ends_quietly(server: ScriptedServer) -> None:
    script = f"""
        import agentclinic
        agentclinic.set_llm_config({{"openai": {{"base_url": "{server.base_url}"}}}})
        print(agentclinic.query_model("m", "p", "s"))
    """
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=True,
    )
    assert done.stdout.strip()
    assert "agentclinic" not in done.stderr
    assert "Unclosed" not in done.stderr
    assert "never" not in done.stderr
