"""What a run writes: its folder, settings, records and summary, and that equal runs write the same."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path

import pytest
from runs_support import (
    ROLES,
    asked,
    clinic,
    lines,
    only_run,
    own_rows,
    records,
    run_here,
    settings_for,
    summary,
    untimed,
    without,
)
from scripted_server import ScriptedServer

from agentclinic.config import EndpointSettings, load_settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.jsonl import JsonLines
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import create, find_run, read_used
from agentclinic.runs.plan import make_plan

pytestmark = pytest.mark.anyio

ORIGINAL_FIELDS = """scenario_id dataset status num_turns correct ground_truth diagnosis_text doctor_llm patient_llm
measurement_llm moderator_llm max_infs image_request_enabled doctor_hist patient_hist measurement_hist
llm_responses_config llm_runtime_config resource_level test_economics_log test_economics_totals""".split()
NOON = datetime(2026, 1, 2, 12, 0, 5)


async def test_settings_that_were_changed_since_the_run_are_refused_until_they_are_accepted(tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(None, tmp_path, num_scenarios=1))
    path = finished.folder / "config.used.json"
    used = read_used(finished.folder)
    assert load_settings(path).run.total_inferences == 20, "still a config"
    path.write_text(path.read_text().replace('"units": 1', '"units": 3'))
    for read in (read_used, load_run):
        with pytest.raises(InputError, match=r"config\.used\.json: it was changed .* delete its _checksum to accept"):
            read(finished.folder)
    path.write_text(path.read_text().replace("_checksum", "_accepted"))
    assert read_used(finished.folder)["agentclinic"] == {**used["agentclinic"], "units": 3}


@pytest.mark.slow
def test_two_runs_with_the_same_seed_differ_in_timing_only(tmp_path: Path) -> None:
    folders = []
    for name in ("first", "second"):
        clinic("run", "--seed", "1", "--output_dir", tmp_path / name, cwd=tmp_path)
        folders.append(only_run(tmp_path / name))
    first, second = folders

    assert untimed(records(first)) == untimed(records(second))
    assert untimed(summary(first)) == untimed(summary(second))
    used = [json.loads((folder / "config.used.json").read_text()) for folder in folders]
    for config in used:
        del config["run"]["output_dir"], config["_checksum"]
    assert used[0] == used[1]
    assert {path.name for path in first.iterdir()} == {path.name for path in second.iterdir()}


@pytest.mark.slow
async def test_the_number_of_workers_changes_nothing_but_the_order(tmp_path: Path) -> None:
    sets = []
    for workers in (1, 4):
        finished, entries = await run_here(settings_for(None, tmp_path / str(workers), seed=1, workers=workers))
        sets.append((sorted(map(json.dumps, untimed(entries))), untimed(summary(finished.folder))))

    assert sets[0] == sets[1]


def test_the_folder_is_named_by_data_set_and_time_and_never_reused(tmp_path: Path) -> None:
    names = [create(tmp_path, "MedQA", NOON).name for _ in range(3)]

    assert names == ["MedQA_20260102_120005", "MedQA_20260102_120005_2", "MedQA_20260102_120005_3"]


def test_a_data_sets_name_cannot_lead_out_of_the_output_folder(tmp_path: Path) -> None:
    assert create(tmp_path, "../my/set", NOON).parent == tmp_path


def test_an_output_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")

    with pytest.raises(InputError, match="output_dir"):
        create(tmp_path / "runs", "MedQA", NOON)


async def test_the_settings_are_written_in_the_originals_shape(server: ScriptedServer, tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(server, tmp_path, num_scenarios=1, resource_level="busy"))

    assert re.fullmatch(r"OpenOSCE_Demo_\d{8}_\d{6}(_\d+)?", finished.folder.name)
    used = json.loads((finished.folder / "config.used.json").read_text())
    assert {"openai", "run", "llm", "datasets"} <= set(used)
    assert set(used["llm"]) == {"responses", "runtime"}
    assert used["openai"] == {"base_url": server.base_url}, "and no key, not even an empty one"
    assert (used["run"]["doctor_llm"], used["run"]["total_inferences"]) == ("scripted", 20)
    assert used["llm"]["runtime"]["tries"] == 2
    assert used["agentclinic"]["digest"]["run.resource_level"] == "busy"


async def test_the_summary_has_the_originals_keys(server: ScriptedServer, tmp_path: Path) -> None:
    settings = settings_for(server, tmp_path, num_scenarios=2, repeats=2, resource_level="busy", total_inferences=9)

    finished, entries = await run_here(settings)

    found = summary(finished.folder)
    assert {key: found[key] for key in ("dataset", "num_scenarios", "total_presented", "total_inferences")} == {
        "dataset": "OpenOSCE_Demo",
        "num_scenarios": 4,
        "total_presented": 4,
        "total_inferences": 9,
    }
    assert found["total_correct"] == found["correct"] == sum(entry["correct"] for entry in entries)
    assert {found[f"{role}_llm"] for role in ROLES} == {"scripted"}
    assert found["duration_seconds"] == found["timing"]["seconds"]
    assert finished.folder.name == f"OpenOSCE_Demo_{found['timestamp']}"
    assert (found["output_dir"], found["scenario_file"]) == (str(finished.folder), "scenarios.jsonl")
    assert (found["llm_responses_config"], found["llm_runtime_config"]["tries"]) == ({}, 2)
    costs = [entry["test_economics_totals"]["total_estimated_cost_usd"] for entry in entries]
    assert (found["resource_level"], found["total_tests"], found["tests_without_price"]) == ("busy", 4, 0)
    assert found["total_estimated_cost_usd"] == sum(costs) > 0


async def test_a_record_has_the_originals_fields_and_ours(server: ScriptedServer, tmp_path: Path) -> None:
    settings = settings_for(server, tmp_path, num_scenarios=1, resource_level="busy", total_inferences=9)

    _, (record,) = await run_here(settings)

    assert list(record)[: len(ORIGINAL_FIELDS) + 1] == [
        *ORIGINAL_FIELDS[:7],
        "final_doctor_dialogue",
        *ORIGINAL_FIELDS[7:],
    ]
    assert (record["scenario_id"], record["dataset"], record["status"]) == (0, "OpenOSCE_Demo", "diagnosed")
    assert (record["num_turns"], record["max_infs"], record["correct"]) == (4, 9, True)
    assert (record["diagnosis_text"], record["final_doctor_dialogue"]) == ("Migraine", "DIAGNOSIS READY: Migraine")
    (ordered,) = record["test_economics_log"]
    assert list(ordered) == [
        "test_name", "estimate_currency", "estimate_cost", "expected_wait_time_minutes", "expected_duration_minutes",
        "assumptions", "resource_level",
    ]  # fmt: skip
    assert (ordered["estimate_currency"], ordered["resource_level"]) == ("USD", "busy")
    assert list(record["test_economics_totals"]) == [
        "total_estimated_cost_usd", "total_expected_wait_time_minutes", "total_expected_duration_minutes",
        "tests_without_price",
    ]  # fmt: skip
    assert (record["resource_level"], record["image_request_enabled"]) == ("busy", False)
    assert record["llm_runtime_config"]["tries"] == 2
    assert record["doctor_hist"].endswith("Doctor: DIAGNOSIS READY: Migraine\n\n")
    assert "Patient: I have had a throbbing headache for two days.\n\n" in record["patient_hist"]
    assert "Measurement: RESULTS: within normal limits.\n\n" in record["measurement_hist"]
    said = [(turn["turn"], turn["role"], (turn["action"] or {}).get("kind")) for turn in record["transcript"]]
    assert said == [
        (1, "doctor", "question"),
        (1, "patient", None),
        (2, "doctor", "question"),
        (2, "patient", None),
        (3, "doctor", "test"),
        (3, "measurement", None),
        (4, "doctor", "diagnosis"),
    ]
    assert set(record["usage"]) == set(record["cost_usd"]) == set(ROLES)
    assert {role: used["requests"] for role, used in record["usage"].items()} == {
        "doctor": 4,
        "patient": 2,
        "measurement": 1,
        "moderator": 1,
    }
    assert set(record["cost_usd"].values()) == {None}, "a self-hosted server has no list price"
    assert {"case_hash", "repeat", "seed", "fault", "judgement", "timing"} <= set(record)


async def test_the_tokens_of_the_turns_add_up_to_the_records(server: ScriptedServer, tmp_path: Path) -> None:
    _, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1))

    for role in ("doctor", "patient", "measurement"):
        turns = [turn["usage"] for turn in record["transcript"] if turn["role"] == role]
        for kind in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "requests"):
            assert sum(used[kind] for used in turns) == record["usage"][role][kind]


async def test_requests_of_a_custom_doctor_are_counted_for_the_doctor(server: ScriptedServer, tmp_path: Path) -> None:
    program = tmp_path / "doctor.py"
    program.write_text(
        "import agentclinic\n"
        "class Mine:\n"
        "    def __init__(self, scenario): pass\n"
        "    def inference_doctor(self, question):\n"
        "        agentclinic.query_model('scripted', 'What could it be?', 'You are a colleague.')\n"
        "        return 'DIAGNOSIS READY: Gout'\n"
    )

    _, (record,) = await run_here(settings_for(server, tmp_path / "out", num_scenarios=1, doctor=f"{program}:Mine"))

    assert record["status"] == "diagnosed"
    assert record["usage"]["doctor"]["requests"] == asked(server, "query") == 1
    assert record["usage"]["doctor"]["input_tokens"] > 0
    assert record["cost_usd"]["doctor"] is None


async def test_a_builtin_run_is_known_to_cost_nothing(tmp_path: Path) -> None:
    finished, (record,) = await run_here(settings_for(None, tmp_path, num_scenarios=1))

    assert set(record["cost_usd"].values()) == {0.0}
    assert summary(finished.folder)["usage"]["doctor"]["input_tokens"] == 0


async def test_the_summary_has_the_originals_accuracy_and_ours(server: ScriptedServer, tmp_path: Path) -> None:
    # The second encounter is judged wrong, the third loses its patient: 2 of 4 presented, 2 of 3 judged.
    server.control(
        rules=[
            {"match": {"purpose": "moderator", "nth": 2}, "reply": "No"},
            {"match": {"purpose": "patient", "nth": [5, 6]}, "fault": "500"},
        ]
    )
    finished, _ = await run_here(settings_for(server, tmp_path, num_scenarios=4))

    result = summary(finished.folder)

    assert result["accuracy"] == 2 / 4
    assert (result["accuracy_strict"]["count"], result["accuracy_strict"]["of"]) == (2, 3)
    assert result["outcomes"] == {"diagnosed_right": 2, "diagnosed_wrong": 1, "model_failed": 1}
    assert (result["if_missing_wrong"], result["if_missing_right"]) == (0.5, 0.75)
    assert result["faults"] == {"patient.server": 1}
    assert "500" in result["fault_examples"]["patient.server"]
    assert result["timing"]["seconds"] > 0


async def test_the_summary_says_if_the_doctors_own_model_judged(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(doctor=["DIAGNOSIS READY: Gout"], moderator="Yes")
    same = settings_for(server, tmp_path, num_scenarios=1)
    run = same.run.model_copy(update={"moderator_endpoint": "other"})
    there = {"other": EndpointSettings(base_url=server.base_url)}
    for settings, own in ((same, 1), (same.model_copy(update={"run": run, "endpoints": there}), 0)):
        finished, _ = await run_here(settings)
        assert summary(finished.folder)["own_judge"] == own


async def test_copies_of_a_case_in_one_data_set_are_separate_units(tmp_path: Path) -> None:
    (row,) = own_rows(1)
    cases = tmp_path / "cases.jsonl"
    cases.write_text(f"{row}\n{row}\n")

    _, entries = await run_here(settings_for(None, tmp_path / "out", dataset=str(cases)))

    own = ["scenario_id", "checksum"]
    assert [entry["scenario_id"] for entry in entries] == [0, 1]
    assert without(untimed(entries[0]), own) == without(untimed(entries[1]), own)
    names = [unit.recording for unit in make_plan(settings_for(None, tmp_path, dataset=str(cases))).units]
    assert len(set(names)) == 2


def test_nothing_is_written_if_the_key_is_missing(tmp_path: Path) -> None:
    done = clinic("run", "--doctor_llm", "gpt-4o", "--output_dir", "out", cwd=tmp_path, expect=2)

    assert "OPENAI_API_KEY" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_bias_on_a_builtin_role_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="false null"):
        make_plan(settings_for(None, tmp_path, doctor_bias="recency"))


def test_every_line_is_appended_completely(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with JsonLines(path, journal=True) as sink:
        sink.append({"text": "two\nlines and an é"})
        sink.append({"n": 2})

    assert [without(line, ["checksum"]) for line in lines(path)] == [{"text": "two\nlines and an é"}, {"n": 2}]


def test_a_run_is_found_by_its_path_its_name_or_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^latest: no such file or folder, and no such run in runs; there are no"):
        find_run("latest")
    (tmp_path / "agentclinic.config.json").write_text('{"run": {"output_dir": "mine"}}')
    for place, name in enumerate(
        ("second", "first", "original", "My_Set_20260102_120000_so_careful", "X_20260101_120000_so_careful")
    ):
        (tmp_path / "mine" / name).mkdir(parents=True)
        file = tmp_path / "mine" / name / ("scenarios.jsonl" if name == "original" else "config.used.json")
        file.write_text("")
        os.utime(file, (2_000_000_000 - place,) * 2)
    (tmp_path / "mine" / "first" / "scenarios.jsonl").write_text("")  # resumed since: it was still begun earlier

    assert find_run("latest") == Path("mine/second")
    assert find_run("first") == Path("mine/first")
    later = Path("mine/My_Set_20260102_120000_so_careful")
    assert find_run("so_careful") == later, "what --name said, and the later of two"
    with pytest.raises(InputError, match=r"the closest names there are .*so_careful"):
        find_run("so_carefull")
    assert find_run(Path("mine/first/scenarios.jsonl")) == Path("mine/first/scenarios.jsonl")
    with pytest.raises(InputError, match=r"^frist: .* no such run in mine; the closest names there are first$"):
        find_run("frist")
    with pytest.raises(InputError, match=r"the closest names there are latest$"):
        find_run("lates")
    with pytest.raises(InputError, match=r"^mine is a folder of runs; name one of them, e\.g\. mine/second, or l"):
        find_run("mine")

    (tmp_path / "latest").mkdir()
    assert find_run("latest") == Path("latest"), "a path that exists wins"
