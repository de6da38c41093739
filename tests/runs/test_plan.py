"""What a plan leaves out with a warning, how the run is labelled, and how language models play the roles."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from fakes import plan_of
from runs_support import records, run_here, settings_for, summary
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.results.run_data import load_run
from agentclinic.runs.build import models_in_use
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume
from agentclinic.scoring.compare import compare_two, labels_of, load_arm

pytestmark = pytest.mark.anyio
LABEL = "none (asked for: recencyy, not supported)"
IGNORED: dict[str, Any] = {"preset": "original", "doctor_bias": "recencyy"}


async def test_a_run_that_ignored_a_bias_is_labelled_everywhere(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(UserWarning, match="recencyy"):
        biased, _ = await run_here(settings_for(server, tmp_path, num_scenarios=2, **IGNORED))
    plain, _ = await run_here(settings_for(server, tmp_path, num_scenarios=2, preset="original"))

    for record in records(biased.folder):
        assert (record["doctor_bias"], record["unsupported_bias"]) == (None, {"doctor_bias": "recencyy"})
    used = json.loads((biased.folder / "config.used.json").read_text())
    assert used["run"]["doctor_bias"] is None
    assert used["agentclinic"]["unsupported_bias"] == {"doctor_bias": "recencyy"}
    assert summary(biased.folder)["unsupported_bias"] == {"doctor_bias": "recencyy"}
    report = ["report", "--output", "-", "--format"]
    not_shown = "The one that was asked for is not supported"
    for command, said in (
        (["score"], LABEL),
        (["card"], LABEL),
        ([*report, "html"], LABEL),
        ([*report, "md"], not_shown),
    ):
        main([*command, str(biased.folder)])
        assert said in capsys.readouterr().out, command
    compared = compare_two(*(load_arm(load_run(run.folder)) for run in (plain, biased)))
    assert compared.warnings == ["biases that were ignored: None against doctor_bias recencyy"]


async def test_a_resumed_run_keeps_the_label(server: ScriptedServer, tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(server, tmp_path, num_scenarios=2))
    journal = finished.folder / "scenarios.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    config = finished.folder / "config.used.json"
    used = json.loads(config.read_text())
    del used["_checksum"]
    used["agentclinic"]["unsupported_bias"] = {"doctor_bias": "recencyy"}  # earlier versions ignored it in every run
    config.write_text(json.dumps(used))

    await resume(plan_again(finished.folder), finished.folder, Progress())

    assert records(finished.folder)[1]["unsupported_bias"] == {"doctor_bias": "recencyy"}


def test_images_are_left_off_with_a_warning_where_no_case_has_any() -> None:
    with pytest.warns(UserWarning, match="doctor_image_request is ignored: no case .* has an image"):
        plan = plan_of(doctor_image_request=True)
    assert plan.settings.run.doctor_image_request is False


def test_a_preset_does_not_need_a_test_policy_to_start_its_planner_from() -> None:
    assert plan_of(preset="original").policy is None
    policy = plan_of(preset="original", doctor_test_policy_enabled=True)
    assert policy.settings.run.planner_baseline == "full"


def test_another_address_of_a_named_endpoint_is_another_run() -> None:
    def plan_at(address: str) -> Plan:
        return make_plan(Settings.model_validate({"endpoints": {"lab": {"base_url": address}}}))

    one, other = plan_at("http://127.0.0.1:1/v1").digest, plan_at("http://127.0.0.1:2/v1").digest
    assert [key for key in one if one[key] != other[key]] == ["endpoints"]
    assert plan_at("http://me:planted@127.0.0.1:1/v1").digest == one, "a password is not part of it"


# How the roles are played: the settings, or what a user's own prompt files imply

ORIGINAL = {
    "doctor": {"system_base": "You are a doctor.", "user_prompt_template": "{history} {reply}"},
    "patient": {"system_base": "You are a patient. {patient}", "user_prompt_template": "{history} {reply}"},
    "measurement": {"system_base": "You read charts. {exam}", "user_prompt_template": "{history} {request}"},
}
"""Prompt files in our dialect with the original's texts only."""


def planned(folder: Path, *roles: str, **run: Any) -> Plan:
    for role in roles:
        (folder / f"{role}.json").write_text(json.dumps(ORIGINAL[role]), encoding="utf-8")
    run = {"prompts_dir": str(folder), "num_scenarios": 1, **run}
    return make_plan(Settings.model_validate({"run": run}))


def ways(plan: Plan) -> tuple[str, str, str, str]:
    roles = plan.roles
    return roles.patient, roles.laboratory, roles.dialogue["doctor"], roles.dialogue["patient"]


def test_the_default_is_voiced_and_a_chat(tmp_path: Path) -> None:
    assert ways(planned(tmp_path)) == ("voiced", "voiced", "chat", "chat")


def test_an_original_prompt_file_implies_free_text_and_the_transcript_for_its_role(tmp_path: Path) -> None:
    assert ways(planned(tmp_path, "patient")) == ("free", "voiced", "chat", "transcript")
    assert ways(planned(tmp_path, "doctor", "measurement")) == ("free", "free", "transcript", "transcript")


def test_settings_win_and_the_shipped_texts_fill_the_gaps(tmp_path: Path) -> None:
    plan = planned(tmp_path, "doctor", "patient", "measurement", simulator="grounded", dialogue="chat")
    assert ways(plan) == ("grounded", "grounded", "chat", "chat")
    assert plan.prompts["patient"].text("grounded_system") == load_prompt("patient").text("grounded_system")
    assert plan.prompts["patient"].text("system_base") == ORIGINAL["patient"]["system_base"], "the user's own stays"
    free = planned(tmp_path, simulator="free", dialogue="transcript")
    assert ways(free) == ("free", "free", "transcript", "transcript")


def test_with_an_original_prompt_file_the_laboratory_asks_its_model(tmp_path: Path) -> None:
    plan = planned(tmp_path, "measurement", dialogue="chat")
    assert plan.roles.laboratory == "free"
    assert "measurement" in models_in_use(plan.settings)


# Generation settings

WRITING: dict[str, Any] = {
    "temperature": 0.2,
    "doctor_temperature": 0.7,
    "measurement_top_p": 0.5,
    "patient_max_output_tokens": 99,
}


async def test_generation_settings_reach_each_role_and_the_check_and_are_recorded(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1, **WRITING))

    sent = {entry["purpose"]: entry["body"] for entry in server.log()}
    assert {role: body["temperature"] for role, body in sent.items()} == {
        "doctor": 0.7,
        "patient": 0.2,
        "measurement": 0.2,
        "moderator": 0.2,
    }
    assert {role: body.get("top_p") for role, body in sent.items() if "top_p" in body} == {"measurement": 0.5}
    assert sent["patient"]["max_output_tokens"] == 99
    (check,) = server.checks()
    assert "temperature" in check["body"], "a server that refuses it is found before the run"
    assert check["body"]["max_output_tokens"] == 16
    assert record["generation"] == WRITING
    used = json.loads((finished.folder / "config.used.json").read_text())
    assert used["run"].items() >= WRITING.items()
    assert used["agentclinic"]["digest"]["run.doctor_temperature"] == 0.7
    main(["card", str(finished.folder)])
    assert "Generation settings: temperature 0.2, doctor_temperature 0.7, patient_max" in capsys.readouterr().out


async def test_a_run_with_another_temperature_is_not_resumed_and_is_labelled(
    server: ScriptedServer, tmp_path: Path
) -> None:
    warm, _ = await run_here(settings_for(server, tmp_path, num_scenarios=1, temperature=0.2))
    plain, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1))
    with pytest.raises(InputError, match=r"\(run\.temperature was 0\.2, is 0\.3\)"):
        plan_again(warm.folder, {"temperature": 0.3})
    with pytest.raises(InputError, match=r"\(run\.temperature was None, is 0\.3\)"):
        plan_again(plain.folder, {"temperature": 0.3})
    assert not any("temperature" in key for key in plan_again(plain.folder).digest), "as before there were such flags"
    assert record["generation"] is None
    assert labels_of([load_arm(load_run(run.folder)) for run in (plain, warm)]) == [
        "default generation",
        "temperature 0.2",
    ]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"doctor_temperature": 0.1, "patient_llm": "m"}, "doctor_temperature has no effect: the doctor (builtin)"),
        ({"patient_top_p": 0.1, "patient_llm": "human"}, "patient_top_p has no effect: the patient (human)"),
        ({"top_p": 0.1, "doctor_llm": "replay:x"}, "top_p has no effect: every role"),
        (
            {"measurement_top_p": 0.1, "measurement_llm": "m", "simulator": "voiced"},
            "with --measurement-llm and --simulator grounded, or",
        ),
    ],
)
def test_a_generation_setting_that_no_request_would_have_is_refused(run: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        plan_of(**run)


def test_a_generation_setting_that_may_be_sent_is_accepted(tmp_path: Path) -> None:
    doctor = tmp_path / "mine.py"
    doctor.write_text("class Doctor:\n    def act(self, heard):\n        return 'DIAGNOSIS READY: Gout'\n")
    accepted: list[dict[str, Any]] = [
        {"doctor_temperature": 0.1, "doctor": f"{doctor}:Doctor"},
        {"temperature": 0.1, "moderator_llm": "m"},
        {"measurement_top_p": 0.1, "measurement_llm": "m", "simulator": "grounded"},
    ]
    for run in accepted:
        assert plan_of(**run).settings.run.generation


def test_a_person_judges_one_encounter_at_a_time_and_here() -> None:
    with pytest.warns(UserWarning, match="one scenario at a time; workers 3 is ignored"):
        assert (
            make_plan(Settings.model_validate({"run": {"moderator_llm": "human", "workers": 3}})).settings.run.workers
            == 1
        )
    with pytest.raises(ConfigError, match="a person can take part only on this machine"):
        make_plan(Settings.model_validate({"run": {"moderator_llm": "human", "engine": "ray"}}))


def resolved(dataset: str, **run: Any) -> tuple[str | None, bool | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = make_plan(Settings.model_validate({"run": {"dataset": dataset, "num_scenarios": 1, **run}}))
    assert plan.roles.missing_test == plan.settings.run.missing_test, "the settings of the run say so"
    return plan.settings.run.missing_test, plan.settings.run.pending_results


def test_charts_that_are_written_for_it_are_completed_and_have_late_results() -> None:
    assert resolved("OpenOSCE") == resolved("OpenOSCE_Demo") == ("completed", True)
    assert resolved("OpenOSCE_1") == ("unavailable", False)
    assert resolved("OpenOSCE", missing_test="unavailable", pending_results=False) == ("unavailable", False)
    assert resolved("OpenOSCE", preset="original") == ("normal", False)


def test_a_laboratory_that_writes_what_it_likes_completes_nothing() -> None:
    assert resolved("OpenOSCE", simulator="free", measurement_llm="m") == ("unavailable", False)
    assert resolved("OpenOSCE", simulator="voiced", measurement_llm="m") == ("completed", True)


def test_completing_other_charts_is_possible_with_a_warning() -> None:
    run = {"dataset": "OpenOSCE_1", "num_scenarios": 1, "missing_test": "completed"}
    with pytest.warns(UserWarning, match="OpenOSCE_1 were not written to be completed"):
        plan = make_plan(Settings.model_validate({"run": run}))
    assert plan.roles.missing_test == "completed"
