"""Resuming: only what is missing is played, and only where nothing that decides results has changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from runs_support import (
    AT_ENDPOINT,
    asked,
    clinic,
    only_run,
    own_rows,
    point_at,
    records,
    run_here,
    settings_for,
    summary,
    units,
)
from scripted_server import ScriptedServer

from agentclinic.errors import InputError
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume, settings_of

pytestmark = pytest.mark.anyio
PATIENT_PROMPT = '{"system_base": "You are ill. {patient}", "user_prompt_template": "{history} {reply}"}'


def cut_to(folder: Path, count: int) -> None:
    """Make the journal end after so many records, as if the run had been stopped there."""
    journal = folder / "scenarios.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:count]))


async def test_only_what_is_missing_is_played_and_what_was_written_stays(
    server: ScriptedServer, tmp_path: Path
) -> None:
    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=5))
    cut_to(finished.folder, 3)
    server.reset()

    again = await resume(plan_again(finished.folder), finished.folder, Progress())

    written = records(finished.folder)
    assert written[:3] == entries[:3]
    assert units(written) == [(row, 0) for row in range(5)]
    assert asked(server, "moderator") == 2
    assert (again.missing, again.summary.presented) == (0, 5)
    assert summary(finished.folder)["presented"] == 5


async def test_resuming_a_complete_run_asks_nothing_and_keeps_its_time(server: ScriptedServer, tmp_path: Path) -> None:
    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=2))
    before = summary(finished.folder)
    server.reset()

    again = await resume(plan_again(finished.folder), finished.folder, Progress())

    assert asked(server) == 0
    assert records(finished.folder) == entries
    assert summary(finished.folder) == before
    assert again.seconds == before["timing"]["seconds"] == before["duration_seconds"]

    journal = finished.folder / "scenarios.jsonl"
    journal.write_text(journal.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    resumed = await resume(plan_again(finished.folder), finished.folder, Progress())
    assert resumed.seconds > again.seconds, "what was played again took time as well"


async def test_a_run_that_was_stopped_before_its_first_record_can_be_resumed(tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(None, tmp_path, num_scenarios=1))
    (finished.folder / "scenarios.jsonl").unlink()

    await resume(plan_again(finished.folder), finished.folder, Progress(), retry_failed=True)

    assert units(records(finished.folder)) == [(0, 0)]


@pytest.mark.slow
async def test_repeats_are_separate_units_and_stay_separate_on_resuming(server: ScriptedServer, tmp_path: Path) -> None:
    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=3, repeats=4))
    assert units(entries) == [(row, repeat) for row in range(3) for repeat in range(4)]
    assert len({entry["seed"] for entry in entries}) == 12
    cut_to(finished.folder, 7)
    server.reset()

    await resume(plan_again(finished.folder), finished.folder, Progress())

    assert asked(server, "moderator") == 5
    assert units(records(finished.folder)) == units(entries)


async def test_the_number_of_workers_may_change(tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(None, tmp_path, num_scenarios=3))
    cut_to(finished.folder, 1)

    await resume(plan_again(finished.folder, {"workers": 3}), finished.folder, Progress())

    assert units(records(finished.folder)) == [(0, 0), (1, 0), (2, 0)]


async def test_the_cases_are_those_in_the_run_folder_whatever_became_of_the_data_set(
    server: ScriptedServer, tmp_path: Path
) -> None:
    data = tmp_path / "mine.jsonl"
    data.write_text("\n".join(own_rows(3)))
    finished, entries = await run_here(settings_for(None, tmp_path / "out", dataset=str(data)))
    cut_to(finished.folder, 1)
    data.unlink()

    await resume(plan_again(finished.folder), finished.folder, Progress())

    written = records(finished.folder)
    assert [entry["case_hash"] for entry in written] == [entry["case_hash"] for entry in entries]


async def test_a_changed_case_is_refused_even_if_its_hash_is_the_same(tmp_path: Path) -> None:
    data = tmp_path / "mine.jsonl"
    data.write_text("\n".join(own_rows(2)))
    finished, (first, _) = await run_here(settings_for(None, tmp_path / "out", dataset=str(data)))
    cut_to(finished.folder, 0)
    kept = finished.folder / "cases.jsonl"
    before = kept.read_text()
    truth = f'"Correct_Diagnosis":"{first["ground_truth"]}"'
    answers = json.dumps({"accept": [first["diagnosis_text"]]})
    for old, new in (
        ('"Objective_for_Doctor":"', '"Objective_for_Doctor":"Quickly: '),
        ('"case":{', f'"case":{{"Answer_Key":{answers},'),
        ('"OSCE_Examination":{', f'"OSCE_Examination":{{"Answer_Key":{answers},'),
        ('"accept":[', f'"accept":["{first["diagnosis_text"]}",'),
        (truth, truth.upper().replace("CORRECT_DIAGNOSIS", "Correct_Diagnosis")),
    ):
        assert old in before
        kept.write_text(before.replace(old, new, 1))
        with pytest.raises(InputError, match=r"cases\.jsonl: the cases were changed since the run; restore the file"):
            plan_again(finished.folder)
    kept.write_text(before)
    plan_again(finished.folder)


async def test_a_run_without_its_cases_cannot_be_resumed(tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(None, tmp_path / "out", num_scenarios=1))
    (finished.folder / "cases.jsonl").unlink()
    with pytest.raises(InputError, match=r"cases\.jsonl, which holds the cases it was played on, is missing"):
        plan_again(finished.folder)


async def test_a_changed_prompt_is_refused_by_name(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "patient.json").write_text(PATIENT_PROMPT)
    finished, _ = await run_here(settings_for(None, tmp_path / "out", num_scenarios=1, prompts_dir=str(prompts)))
    plan_again(finished.folder)
    (prompts / "patient.json").write_text(PATIENT_PROMPT.replace("ill", "very ill"))

    with pytest.raises(InputError, match=r"\(prompts.patient was"):
        plan_again(finished.folder)


async def test_a_changed_doctor_file_is_refused_by_name(tmp_path: Path) -> None:
    program = tmp_path / "doctor.py"
    source = (
        "class Mine:\n    def __init__(self, scenario): pass\n"
        "    def inference_doctor(self, question): return 'DIAGNOSIS READY: Gout'\n"
    )
    program.write_text(source)
    finished, _ = await run_here(settings_for(None, tmp_path / "out", num_scenarios=1, doctor=f"{program}:Mine"))
    plan_again(finished.folder)
    program.write_text(source.replace("Gout", "Scurvy"))

    with pytest.raises(InputError, match=r"\(doctor_file was"):
        plan_again(finished.folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [("total_inferences", 5), ("doctor_llm", "other"), ("missing_test", "normal"), ("seed", 2), ("repeats", 2)],
)
async def test_a_changed_setting_that_decides_results_is_refused_by_name(
    key: str, value: object, server: ScriptedServer, tmp_path: Path
) -> None:
    finished, _ = await run_here(settings_for(server, tmp_path, num_scenarios=1))

    with pytest.raises(InputError, match=rf"\(run\.{key} was .*, is {value}\)"):
        plan_again(finished.folder, {key: value})


def test_the_command_refuses_a_changed_run_and_leaves_it_as_it_is(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "1", "--output_dir", "out", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    config = folder / "config.used.json"
    config.write_text(config.read_text().replace('"total_inferences": 20', '"total_inferences": 4'))
    assert "delete its _checksum to accept it" in clinic("resume", folder, cwd=tmp_path, expect=2).stderr
    config.write_text(config.read_text().replace('"_checksum"', '"_accepted"'))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    done = clinic("resume", folder, cwd=tmp_path, expect=2)

    assert "run.total_inferences was 20, is 4" in done.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_that_is_not_a_run_or_is_the_originals_is_refused(tmp_path: Path) -> None:
    assert "not the folder of a run" in clinic("resume", tmp_path, cwd=tmp_path, expect=2).stderr
    (tmp_path / "config.used.json").write_text('{"run": {}, "openai": {}}')
    assert "cannot be resumed. It can be scored" in clinic("resume", tmp_path, cwd=tmp_path, expect=2).stderr
    for run, ignored in ((3, {}), ({}, [1])):
        ours: dict[str, Any] = {"digest": {}, "unsupported_bias": ignored}
        (tmp_path / "config.used.json").write_text(json.dumps({"run": run, "agentclinic": ours}))
        with pytest.raises(InputError, match=r"config\.used\.json: not as it was written"):
            settings_of(tmp_path)


async def test_failed_units_are_played_again_only_when_asked(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "patient", "nth": [1, 2, 3, 4]}, "fault": "500"}])
    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=5))
    assert [entry["status"] for entry in entries] == ["model_failed", "model_failed", *["diagnosed"] * 3]
    server.reset()

    await resume(plan_again(finished.folder), finished.folder, Progress())
    assert asked(server) == 0, "failures are final unless a retry is requested"
    await resume(plan_again(finished.folder), finished.folder, Progress(), retry_failed=True)

    assert asked(server, "moderator") == 2
    written = records(finished.folder)
    assert written[:3] == entries[2:], "the others stand as they were"
    assert units(written) == [(row, 0) for row in range(5)]
    assert summary(finished.folder)["faults"] == {}


async def test_a_doctors_own_failure_is_a_result_and_not_played_again(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "doctor"}, "fault": "refusal"}])
    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=1))
    server.reset()

    await resume(plan_again(finished.folder), finished.folder, Progress(), retry_failed=True)

    assert asked(server) == 0
    assert records(finished.folder) == entries


@pytest.mark.slow
def test_a_password_in_the_address_is_taken_from_the_config_again(server: ScriptedServer, tmp_path: Path) -> None:
    config = point_at(tmp_path, server)
    config.write_text(config.read_text().replace("http://", "http://nurse:open-sesame@"))
    clinic("run", "--num_scenarios", "2", "--output_dir", "out", *AT_ENDPOINT, cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    cut_to(folder, 1)
    server.reset()

    clinic("resume", folder, cwd=tmp_path)

    assert {entry["headers"].get("authorization", "")[:6] for entry in server.log()} == {"Basic "}


@pytest.mark.slow
def test_an_address_from_the_environment_is_part_of_the_run(server: ScriptedServer, tmp_path: Path) -> None:
    clinic(
        "run",
        "--num_scenarios",
        "1",
        "--output_dir",
        "out",
        *AT_ENDPOINT,
        cwd=tmp_path,
        env={"OPENAI_BASE_URL": server.base_url},
    )
    folder = only_run(tmp_path / "out")
    used = json.loads((folder / "config.used.json").read_text())
    assert used["openai"]["base_url"] == server.base_url
    (folder / "scenarios.jsonl").write_text("")
    server.reset()

    clinic("resume", folder, cwd=tmp_path, env={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})

    assert asked(server) > 0


@pytest.mark.slow
def test_a_run_can_be_resumed_from_another_folder(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "cases.jsonl").write_text("\n".join(own_rows(2)))
    clinic("run", "--dataset", "cases.jsonl", "--output_dir", "out", "--record", "kept.jsonl", cwd=here)
    folder = only_run(here / "out")
    cut_to(folder, 1)

    done = clinic("resume", folder, cwd=there)

    assert "cases" in done.stdout
    assert units(records(folder)) == [(0, 0), (1, 0)]
    assert list(there.iterdir()) == []


async def test_settings_of_an_older_run_are_read_without_the_one_that_is_gone(tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(None, tmp_path, num_scenarios=1))
    path = finished.folder / "config.used.json"
    used = json.loads(path.read_text())
    used["run"]["judge_relation"] = used["agentclinic"]["digest"]["run.judge_relation"] = True
    path.write_text(json.dumps({key: value for key, value in used.items() if key != "_checksum"}))
    assert settings_of(finished.folder)[0].run.judge is None
    with pytest.raises(InputError, match=r"run\.judge_relation was True"):
        plan_again(finished.folder)
