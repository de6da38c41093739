"""Runs with prompt files and a policy in the original's dialect: small ones of ours, and the original's own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import ORIGINAL, needs_original, nejm, write_rows
from original_prompts import DIALECT, write_files
from runs_support import AT_ENDPOINT, clinic, only_run, own_cases, point_at, records, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.cases.model import as_text
from agentclinic.clinic.prompts import SHIPPED
from agentclinic.config import ROLES, Settings, load_settings
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.errors import ConfigError
from agentclinic.runs.plan import Plan, make_plan

Json = dict[str, Any]


@pytest.fixture(params=["written here", pytest.param("the original's", marks=needs_original)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder named `prompts` with the four roles' files and a policy."""
    prompts = tmp_path / "prompts"
    if request.param == "written here":
        return write_files(prompts)
    return Path(shutil.copytree(ORIGINAL / "prompts", prompts, copy_function=shutil.copyfile))


def raw(folder: Path, name: str) -> Json:
    content: Json = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return content


def sent(server: ScriptedServer, purpose: str) -> list[list[str]]:
    """The texts of each request of a purpose, message by message."""
    bodies = [entry["body"] for entry in server.log() if entry["purpose"] == purpose]
    return [[message["content"] for message in body["messages"]] for body in bodies]


def test_the_files_run_unedited_and_are_filled_as_in_the_original(
    server: ScriptedServer, tmp_path: Path, folder: Path
) -> None:
    """From the command line, in the folder of the files; what is expected is made with `str.format`."""
    cases = own_cases(tmp_path, 1)
    roles = AT_ENDPOINT[: AT_ENDPOINT.index("--simulator")]
    flags = [
        "--dataset",
        str(cases),
        "--doctor_bias",
        "recency",
        "--patient_bias",
        "recency",
        "--total_inferences",
        "9",
    ]
    llm = point_at(tmp_path, server, llm_api="chat")
    clinic("run", *roles, *flags, "--doctor_test_policy_enabled", "--llm_config", llm, cwd=tmp_path)
    (record,) = records(only_run(tmp_path / "runs"))
    assert (record["status"], record["correct"], record["dialogue"]) == ("diagnosed", True, "transcript")
    assert record["simulator"] == {"patient": "free", "measurement": "free"}
    (case,) = make_plan(Settings.model_validate({"run": {"dataset": str(cases)}})).cases
    file = {role: raw(folder, role) for role in ROLES}

    doctor = file["doctor"]
    told = doctor["biases"]["recency"] + doctor["system_presentation_suffix"].format(case.door.objective)
    base = [doctor["system_base"].format(9, asked) for asked in range(4)]
    assert [system for system, _ in sent(server, "doctor")] == [text + told for text in base]
    assert all("[Planning Notes]" in user for _, user in sent(server, "doctor"))

    patient = file["patient"]
    script = patient["system_symptoms_suffix"].format(as_text(case.patient))
    expected = patient["system_base"] + patient["biases"]["recency"] + script
    assert {system for system, _ in sent(server, "patient")} == {expected}
    newest = patient["user_prompt_template"].format(agent_hist="(nothing yet)", question=record_says(record, "doctor"))
    assert sent(server, "patient")[0][1] == newest.rstrip()

    chart = file["measurement"]["system_presentation_suffix"].format(as_text(case.exam))
    assert [system for system, _ in sent(server, "measurement")] == [file["measurement"]["system_base"] + chart]

    judged = file["moderator"]["user_prompt_template"].format(
        correct=case.diagnosis, diag=record["final_doctor_dialogue"]
    )
    assert sent(server, "moderator") == [[file["moderator"]["system_prompt"], judged.rstrip()]]
    assert len(sent(server, "planner")[0]) == 2, "a transcript, not a chat"
    assert all(raw(folder, "test_policy")["instructions"] in texts[0] for texts in sent(server, "planner"))


def record_says(record: Json, role: str) -> str:
    return str(next(turn["text"] for turn in record["transcript"] if turn["role"] == role))


@pytest.mark.anyio
async def test_every_text_that_is_edited_is_sent(server: ScriptedServer, tmp_path: Path, folder: Path) -> None:
    for name in (*ROLES, "test_policy"):
        marked = {
            key: f"{text} <{name} {key}>" if isinstance(text, str) else text for key, text in raw(folder, name).items()
        }
        write_files(folder, **{name: marked})
    cases = write_rows(tmp_path / "cases.jsonl", nejm(image_url="data:image/png;base64,AAAA"))
    settings = settings_for(
        server,
        tmp_path / "runs",
        runtime={"llm_api": "chat"},
        prompts_dir=str(folder),
        dataset=str(cases),
        doctor_image_request=True,
        doctor_test_policy_enabled=True,
        judge=None,
    )
    await run_here(settings)
    for role, purpose in {**{role: role for role in ROLES}, "test_policy": "planner"}.items():
        marks = [f"<{role} {key}>" for key, text in raw(folder, role).items() if isinstance(text, str)]
        assert marks
        for texts in sent(server, purpose):
            assert [mark for mark in marks if mark not in "\n".join(texts)] == []


def planned(folder: Path, **run: Any) -> Plan:
    run = {"prompts_dir": str(folder), "num_scenarios": 1, "doctor_test_policy_enabled": True, **run}
    return make_plan(Settings.model_validate({"run": run}))


def ways(plan: Plan) -> tuple[str, str, str, bool]:
    assert plan.policy
    return plan.roles.patient, plan.roles.laboratory, plan.roles.dialogue["doctor"], plan.policy.file.chat


@needs_original
def test_the_record_says_what_the_originals_files_do(server: ScriptedServer, tmp_path: Path) -> None:
    """Their laboratory reports normal readings, and their patient is told nothing about symptoms not in the chart."""
    shutil.copytree(ORIGINAL / "prompts", tmp_path / "prompts", copy_function=shutil.copyfile)
    point_at(tmp_path, server)
    flags = [*AT_ENDPOINT[: AT_ENDPOINT.index("--simulator")], "--dataset", str(own_cases(tmp_path, 1))]
    clinic("run", *flags, cwd=tmp_path)
    folder = only_run(tmp_path / "runs")
    (record,) = records(folder)
    assert (record["missing_test"], record["silent_symptom"]) == ("normal", None)
    assert json.loads((folder / "config.used.json").read_text())["run"]["missing_test"] == "normal"
    refused = clinic("run", *flags, "--missing_test", "unavailable", cwd=tmp_path, expect=2).stderr
    assert "--missing-test unavailable has no effect: " in refused
    assert "measurement.json decides, and has no text missing_unavailable; add that text" in refused
    refused = clinic("run", *flags, "--silent_symptom", "unknown", cwd=tmp_path, expect=2).stderr
    assert "--silent-symptom unknown has no effect: " in refused


def test_settings_that_a_file_overrides_are_named(tmp_path: Path) -> None:
    text = "Never make up a normal value. Say NORMAL if it is not there."
    files = {"measurement": DIALECT["measurement"] | {"system_base": text}}
    write_files(tmp_path, **files, patient=DIALECT["patient"])
    models = {"measurement_llm": "m", "patient_llm": "m"}
    with pytest.warns(UserWarning, match=r"missing_test unavailable has no effect: .*measurement.json decides"):
        plan = planned(tmp_path, missing_test="unavailable", **models)
    assert (plan.roles.missing_test, plan.settings.run.missing_test) == ("normal", "normal")
    with pytest.warns(UserWarning, match=r"silent_symptom unknown has no effect: .*patient.json decides"):
        planned(tmp_path, silent_symptom="unknown", **models)
    write_files(tmp_path, measurement=DIALECT["measurement"])
    assert planned(tmp_path, **models).roles.missing_test is None, "it says neither"
    with pytest.warns(UserWarning, match="so the shipped ones are used"):
        voiced = planned(tmp_path, simulator="voiced", **models)
    assert voiced.roles.missing_test == "completed", "code decides"
    assert planned(tmp_path).roles.missing_test == "completed", "so does the builtin laboratory"


def test_settings_override_what_the_files_imply(folder: Path) -> None:
    assert ways(planned(folder)) == ("free", "free", "transcript", False)
    assert ways(planned(folder, simulator="grounded")) == ("grounded", "grounded", "transcript", False)
    models = {f"{role}_llm": "m" for role in ROLES}
    with pytest.warns(UserWarning, match=r"doctor.json has no texts for dialogue chat, so the shipped ones are used"):
        planned(folder, dialogue="chat", **models)
    with pytest.warns(UserWarning, match="so the shipped ones are used") as told:
        planned(folder, simulator="voiced", **models)
    assert {re.sub(r".*/", "", str(each.message)).partition(",")[0] for each in told} == {
        "patient.json has no texts for simulator voiced",
        "measurement.json has no texts for simulator voiced",
    }
    assert ways(planned(folder, dialogue="chat")) == ("free", "free", "chat", True)


def test_each_file_implies_it_for_its_own_role_only(tmp_path: Path) -> None:
    write_files(tmp_path, doctor=DIALECT["doctor"])
    assert ways(planned(tmp_path)) == ("voiced", "voiced", "transcript", True)
    write_files(tmp_path, doctor=raw(SHIPPED, "doctor"), patient=DIALECT["patient"])
    assert ways(planned(tmp_path)) == ("free", "voiced", "chat", True)


def test_a_file_that_cannot_be_used_ends_the_command_with_a_plain_error(tmp_path: Path) -> None:
    write_files(tmp_path / "prompts", patient={**DIALECT["patient"], "system_symptoms_suffix": "None."})
    said = clinic("run", cwd=tmp_path, expect=2).stderr
    assert "patient.json: system_base lacks {patient} ({} of system_symptoms_suffix in the original's dialect)" in said
    assert not (tmp_path / "runs").exists()


def test_a_judges_file_of_the_originals_kind_decides_how_is_judged_and_the_settings_say_so(folder: Path) -> None:
    assert planned(folder, moderator_llm="gpt").settings.run.judge == "original"
    assert planned(folder, moderator_llm="gpt", judge="cascade").settings.run.judge == "cascade"
    (folder / "moderator.json").unlink()
    assert planned(folder, moderator_llm="gpt").settings.run.judge == "cascade"
    assert planned(folder).settings.run.judge is None, "so that another judge's model can be named later"


def policy_parts(file: Json) -> list[str]:
    """What the original puts into the doctor's prompt: instructions, kinds of tests, transitions and constraints."""
    parts = [file["instructions"], *file["categories"]]
    for kind in file["categories"].values():
        parts += [kind["cost_level"].replace("_", " "), *kind["typical_tests"]]
    for step in file["transitions"]:
        parts += [f"After {step['from']}: {', '.join(step['to'])}. {step['conditions']}"]
    return [*parts, f"confidence of {file['constraints']['finish_early_if_confident']:.0%}", "one test per turn"]


@pytest.mark.anyio
async def test_the_policy_is_in_the_doctors_prompt_under_the_preset_only(
    server: ScriptedServer, tmp_path: Path, folder: Path
) -> None:
    async def doctor_is_sent(**run: Any) -> list[list[str]]:
        server.reset()
        folders = {"prompts_dir": str(folder), "dataset": str(own_cases(tmp_path, 1))}
        given = {"doctor_test_policy_enabled": True, "simulator": "free", "judge": None, **folders, **run}
        await run_here(settings_for(server, tmp_path / "runs", runtime={"llm_api": "chat"}, **given))
        return sent(server, "doctor")

    ours = await doctor_is_sent()
    alone = await doctor_is_sent(doctor_test_policy_enabled=False)
    in_prompt = await doctor_is_sent(policy_in_prompt=True)
    preset = await doctor_is_sent(preset="original")
    policy = load_policy("test_policy", folder).file.for_doctor
    assert [system for system, _ in ours] == [system for system, _ in alone][: len(ours)]
    assert [[f"{system}\n\n{policy}", user] for system, user in ours] == in_prompt, "nothing else changes"
    assert {system.endswith(f"\n\n{policy}") for system, _ in preset} == {True}
    assert [part for part in policy_parts(raw(folder, "test_policy")) if part not in policy] == []
    assert [part for part in policy_parts(raw(folder, "test_policy"))[:1] if part in "".join(map("".join, ours))] == []


@pytest.mark.anyio
async def test_a_record_does_not_claim_a_prompt_that_a_builtin_doctor_never_reads(tmp_path: Path) -> None:
    settings = load_settings(None, None, {
        "dataset": str(own_cases(tmp_path, 1)), "output_dir": str(tmp_path / "runs"),
        "preset": "original", "doctor_test_policy_enabled": True,
    })  # fmt: skip
    _, (record,) = await run_here(settings)
    assert record["policy_in_prompt"] is False


def test_the_shipped_policy_can_be_told_to_the_doctor_as_well() -> None:
    file, policy = raw(SHIPPED, "test_policy"), load_policy().file
    kinds = [
        f"- {name} (cost: {kind['cost_level']}): {', '.join(kind['words'])}"
        for name, kind in file["categories"].items()
    ]
    steps = [f"- After {name}: {', '.join(after)}." for name, after in file["transitions"].items()]
    rules = [f"- {rule}" for rule in file["planning_rules"].values()]
    assert [
        part for part in (file["doctor_instructions"], *kinds, *steps, *rules) if part not in policy.for_doctor
    ] == []
    assert "confidence of 70%" in policy.for_doctor


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        ({"doctor_test_policy_enabled": False}, "policy_in_prompt has no effect without doctor_test_policy_enabled"),
        ({"doctor_test_policy_mode": "inline"}, "would tell the doctor its policy twice"),
        ({"doctor": "uncertainty"}, "the uncertainty doctor does not read the plain doctor's prompt"),
        ({"doctor_llm": "builtin"}, "the builtin doctor does not read"),
    ],
)
def test_a_policy_that_would_not_be_read_is_refused(tmp_path: Path, run: Json, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        planned(tmp_path, **{"doctor_llm": "gpt", "policy_in_prompt": True, **run})
