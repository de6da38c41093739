"""The command line as users see it: the original's calls, flags, mistakes, output."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from runs_support import (
    AT_ENDPOINT,
    CLINIC,
    ROOT,
    clinic,
    environment,
    lines,
    only_run,
    own_cases,
    point_at,
    records,
    summary,
    untimed,
)
from scripted_server import LONG, ScriptedServer

import agentclinic.cli
from agentclinic.api import load_run
from agentclinic.cli import main, normalized
from agentclinic.cli.app import Clinic, app
from agentclinic.cli.group import SECTIONS, Entry
from agentclinic.cli.options import SECTION_OF
from agentclinic.config import RunSettings
from agentclinic.results.run_data import diagnosis_of


def python(*arguments: str | Path, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python itself, including everything it does at start-up."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=LONG,
        stdin=subprocess.DEVNULL,
    )


# Calling it


@pytest.mark.slow
def test_the_originals_command_line_runs_from_the_root(tmp_path: Path) -> None:
    done = python(
        "agentclinic.py", "--config", "agentclinic.config.json", "--workers", "4", "--output_dir", tmp_path / "out"
    )

    assert done.returncode == 0, done.stderr
    folder = only_run(tmp_path / "out")
    used = json.loads((folder / "config.used.json").read_text())
    assert (used["run"]["workers"], used["run"]["dataset"]) == (4, "OpenOSCE")
    assert len(records(folder)) == summary(folder)["presented"] == used["agentclinic"]["units"]
    assert "accuracy (strict)" in done.stdout
    assert "95% interval" in done.stdout
    assert f"Written to {folder}" in done.stdout
    assert "--model MODEL --moderator-llm MODEL" in done.stdout, "how to test your own model"
    assert len(done.stdout.splitlines()) <= 24, "fits on one screen"


def test_the_package_runs_as_a_module_and_as_the_installed_command() -> None:
    module = python("-m", "agentclinic", "--version")
    installed = subprocess.run(
        [str(Path(sys.executable).parent / "agentclinic"), "--version"], capture_output=True, text=True, timeout=LONG
    )

    assert module.returncode == installed.returncode == 0
    assert module.stdout == installed.stdout
    assert module.stdout.startswith("agentclinic ")


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        (["--workers", "4"], ["run", "--workers", "4"]),
        (["run", "--output_dir", "a_b"], ["run", "--output-dir", "a_b"]),
        (["--doctor_llm=my_model"], ["run", "--doctor-llm=my_model"]),
        (["-q"], ["run", "-q"]),
        (["resume", "a_b", "--retry_failed"], ["resume", "a_b", "--retry-failed"]),
        (["--agent_dataset", "MedQA"], ["run", "--dataset", "MedQA"]),
        (["--scenario_offset=3"], ["run", "--offset=3"]),
        (["run", "--doctor_image_request", "True", "--seed", "1"], ["run", "--doctor-image-request", "--seed", "1"]),
        (["run", "--doctor_image_request=False"], ["run", "--no-doctor-image-request"]),
        (["run", "--use_uncertainty_aware", "false"], ["run", "--no-use-uncertainty-aware"]),
        (["run", "--doctor_image_request", "--seed", "1"], ["run", "--doctor-image-request", "--seed", "1"]),
        (["--help"], ["--help"]),
        (["-h"], ["-h"]),
        (["--version"], ["--version"]),
        (["data", "check", "--", "--my_file"], ["data", "check", "--", "--my_file"]),
        ([], []),
    ],
)
def test_flags_may_have_underscores_and_bare_flags_mean_run(given: list[str], understood: list[str]) -> None:
    assert normalized(given) == understood


def commands(group: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its name, such as `data check`."""
    root: Any = group or typer.main.get_command(app)
    root.load()
    for word in root.list_commands(None):
        each = root.commands[word]
        if getattr(each, "commands", None):
            yield from commands(each, f"{name}{word} ")
        else:
            yield f"{name}{word}", each


MEANS_SOMETHING_ELSE = {
    "--base-dir": "a folder of tables, or a file of questions",
    "--cases": "a file of them, or how many there are",
    "--config": "the settings of a run, or of generating cases",
    "--dataset": "what to play, what to test on, or which runs to list",
    "--doctor": "who plays, or which runs to list",
    "--format": "the formats that the command has",
    "--judge": "who decides, or whose verdicts to use",
    "--judges": "any number of them, or two or more",
    "--limit": "scenarios, cases or runs",
    "--model": "who writes, or which runs to list",
    "--name": "of a run, or of a file of verdicts",
    "--output": "what the command writes",
    "--reviewer": "a person, or the model that audits",
    "--seed": "of encounters, intervals or a choice of admissions",
    "--split": "what the command does with it",
}
"""Flags whose help depends on the command, and why; they are still written and named the same everywhere."""


def test_a_flag_is_written_and_described_the_same_way_in_every_command() -> None:
    uses: dict[str, list[tuple[str, Any]]] = {}
    for name, command in commands():
        for option in command.params:
            flags = [flag for flag in (*option.opts, *option.secondary_opts) if flag.startswith("--")]
            assert not any("_" in flag for flag in flags), "no one could write it: underscores become dashes"
            if flags:
                uses.setdefault(flags[0], []).append((name, option))
    assert len(uses) > 100
    for flag, users in uses.items():
        spellings = {tuple(sorted(option.opts + option.secondary_opts)) for _, option in users}
        # A setting's own name, and the name that other commands have for the same thing.
        assert len(spellings) == 1 or flag in ("--limit", "--config"), f"{flag} is spelled {spellings}"
        kinds = {_kind(option) for _, option in users}
        assert len(kinds) == 1 or flag == "--cases", f"{flag} is of several kinds: {kinds}"
        texts = {(option.help or "").partition(" [default")[0] for _, option in users}
        assert len(texts) == 1 or flag in MEANS_SOMETHING_ELSE, f"{flag} is described in several ways: {texts}"
        assert len(texts) > 1 or flag not in MEANS_SOMETHING_ELSE, f"{flag} no longer needs an exception"


def _kind(option: Any) -> str:
    kind = option.type_descriptor.annotation
    return "path" if kind is Path or option.metavar == "<path>" else getattr(kind, "__name__", str(kind))


def test_commands_of_one_sort_have_the_same_flags() -> None:
    flags = {name: {flag for option in command.params for flag in option.opts} for name, command in commands()}
    show = {"score", "compare", "plan", "audit", "sessions", "runs", "check-folder", "judge compare", "report"}
    show |= {"study reliability"}
    show |= {"data list", "data check", "memory list", "memory show", "memory check", "world check", "world solve"}
    ask_models = {"run", "resume", "regrade", "sweep", "probe", "audit", "learn", "study learn", "study contamination"}
    ask_models |= {"study stress", "study swap"}
    ask_models |= {"generate mimic", "generate medqa", "generate solvability"}
    assert [name for name in show if not {"--json", "--output", "-o"} <= flags[name]] == []
    assert [name for name in ask_models if not {"--json", "--quiet", "-q", "--llm-config"} <= flags[name]] == []
    assert [name for name in ask_models - {"sweep"} if "--workers" not in flags[name]] == [], "a sweep's file has them"
    assert [name for name in flags if "--output" in flags[name] and "-o" not in flags[name]] == []
    assert [name for name in flags if "--num-scenarios" in flags[name] and "--limit" not in flags[name]] == []
    assert flags.keys() - show - ask_models == {
        "init",
        "card",
        "demo-server",
        "data fetch",
        "data new",
        "data review export",
        "data review import",
        "export",
        "judge label",
        "judge majority",
        "memory import",
        "memory merge",
        "play",
        "serve-env",
        "view",
        "world new",
    }


def test_help_names_the_doctors_and_the_biases_that_are_there() -> None:
    from agentclinic.clinic.prompts import load_prompt
    from agentclinic.doctors.custom import doctor_names

    flags = {flag: option for _, command in commands() for option in command.params for flag in option.opts}
    assert [name for name in doctor_names() if name not in flags["--doctor"].help] == []
    for role in ("doctor", "patient"):
        assert f": {', '.join(load_prompt(role).biases)}, or another" in flags[f"--{role}-bias"].help


@pytest.mark.slow
def test_what_a_command_prints_can_go_to_a_file(tmp_path: Path) -> None:
    printed = clinic("data", "list", cwd=tmp_path).stdout
    told = clinic("data", "list", "-o", "list.txt", cwd=tmp_path).stdout

    assert (tmp_path / "list.txt").read_text(encoding="utf-8") == printed
    assert told == "Written to list.txt\n"
    clinic("check_folder", "nowhere", "--json", "-o", "never.json", cwd=tmp_path, expect=2)
    assert not (tmp_path / "never.json").exists(), "an error is no result"
    assert "no folder" in clinic("data", "list", "-o", "a/b.txt", cwd=tmp_path, expect=2).stderr


@pytest.mark.slow
def test_flags_override_the_file_and_both_spellings_work(tmp_path: Path) -> None:
    (tmp_path / "agentclinic.config.json").write_text(
        json.dumps({"run": {"num_scenarios": 5, "total_inferences": 7, "output_dir": "out"}})
    )

    clinic("--num_scenarios", "1", "--silent-symptom", "unknown", cwd=tmp_path)

    (record,) = records(only_run(tmp_path / "out"))
    assert (record["max_infs"], record["silent_symptom"]) == (7, "unknown")


@pytest.mark.slow
def test_a_deprecated_key_is_accepted_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "agentclinic.config.json").write_text(
        json.dumps({"run": {"measurement_cost_llm": "gpt-4o", "num_scenarios": 1}})
    )

    done = clinic("run", cwd=tmp_path)

    assert "Warning: run.measurement_cost_llm is ignored" in done.stderr


@pytest.mark.slow
def test_a_runs_config_used_json_repeats_the_run(server: ScriptedServer, tmp_path: Path) -> None:
    """Its `openai` and `llm` sections apply, even next to an llm.config.json, unless --llm-config is given."""
    given = point_at(tmp_path, server, tries=2)
    flags = ("--num_scenarios", "2", "--seed", "5", "--total_inferences", "6", "--output_dir", "first")
    clinic("run", *flags, *AT_ENDPOINT, cwd=tmp_path)
    first = only_run(tmp_path / "first")
    given.rename(tmp_path / "kept.json")
    (tmp_path / "llm.config.json").write_text('{"openai": {"base_url": "http://127.0.0.1:9/v1"}}')
    server.reset()

    clinic("run", "--config", first / "config.used.json", "--output_dir", "second", cwd=tmp_path)
    second = only_run(tmp_path / "second")

    assert untimed(records(second)) == untimed(records(first))
    used = json.loads((second / "config.used.json").read_text())
    assert used["llm"]["runtime"]["tries"] == 2
    other = ("--llm-config", "llm.config.json", "--output_dir", "third")
    refused = clinic("run", "--config", first / "config.used.json", *other, cwd=tmp_path, expect=2)
    assert "127.0.0.1:9 could not be reached" in refused.stderr


@pytest.mark.slow
def test_a_command_of_the_originals_script_runs_unchanged(server: ScriptedServer, tmp_path: Path) -> None:
    key = "sk-given-on-the-command-line"
    point_at(tmp_path, server)
    (tmp_path / "results.jsonl").write_text('{"scenario_id": 0}\n')
    flags = ["--agent_dataset", str(own_cases(tmp_path, 4)), "--scenario_offset", "1", "--num_scenarios", "2"]
    flags += ["--doctor_image_request", "False", "--use_memory", "False", "--doctor_bias", "None"]

    done = clinic(
        *flags, *AT_ENDPOINT, "--openai_api_key", key, "--output_file", "results.jsonl", cwd=tmp_path,
        env=environment(OPENAI_API_KEY="another", OPENAI_BASE_URL=server.base_url),
    )  # fmt: skip

    assert "the shell's history" in done.stderr
    assert {entry["headers"]["authorization"] for entry in server.log()} == {f"Bearer {key}"}
    written = [path for path in tmp_path.rglob("*") if path.is_file() and key in path.read_text()]
    assert written == []
    assert key not in done.stdout + done.stderr
    cases = lines(tmp_path / "own_cases.jsonl")
    before, *results = lines(tmp_path / "results.jsonl")
    assert before == {"scenario_id": 0}, "the original appends"
    assert [result["scenario_id"] for result in results] == [1, 2]
    for result, record in zip(results, records(only_run(tmp_path / "runs")), strict=True):
        del record["checksum"], record["timing"]["checksum"]
        assert record.items() <= result.items(), "a record, with the keys of the original's script"
        assert result["problem_info"] == cases[record["scenario_id"]]
        assert result["correct_diagnosis"] == record["ground_truth"]
        assert result["model_diagnosis"] == f"DIAGNOSIS READY: {record['diagnosis_text']}"
        assert [text.partition(": ")[0] for text in result["dialogue_history"]][:2] == ["Doctor", "Patient"]
        used = result["token_usage"]
        assert used["doctor"]["total_tokens"] == used["doctor"]["prompt_tokens"] + used["doctor"]["completion_tokens"]
        assert used["total"]["total_tokens"] == sum(
            used[role]["total_tokens"] for role in ("doctor", "patient", "measurement")
        )
    clinic("score", "results.jsonl", cwd=tmp_path, expect=2)  # the line that was there is no record


def test_the_flags_of_the_originals_later_scripts_are_accepted(tmp_path: Path) -> None:
    own_cases(tmp_path, 3).rename(tmp_path / "rows.jsonl")
    (tmp_path / "mine.py").write_text(
        "class Helper:\n    pass\n\n\nclass CustomDoctorAgent:\n"
        "    def __init__(self, scenario, backend_str='m', max_infs=20, bias_present=None, img_request=False):\n"
        "        self.seen = scenario.examiner_information()\n\n"
        "    def inference_doctor(self, question, image_requested=False, memory_context=''):\n"
        "        return 'DIAGNOSIS READY: Migraine'\n"
    )
    flags = ["--patient_csv", "rows.jsonl", "--dataset_name", "ward", "--num_scenarios", "1", "--scenario_offset", "1"]
    flags += ["--custom_doctor_agent_path", "mine.py", "--run_log_path", "log.json", "--experiment_id", "trial 1"]

    done = clinic(*flags, "--knowledge", "--output_file", "results.jsonl", cwd=tmp_path)

    assert "--run-log-path is ignored: the run's folder holds the transcript of every scenario" in done.stderr
    assert "--knowledge is ignored: doctors get no reference text" in done.stderr
    folder = only_run(tmp_path / "runs")
    assert re.fullmatch(r"ward_\d{8}_\d{6}_trial_1", folder.name)
    (record,) = records(folder)
    assert (record["dataset"], record["scenario_id"], record["doctor"]) == ("ward", 1, "mine.py:CustomDoctorAgent")
    (result,) = lines(tmp_path / "results.jsonl")
    assert record["usage"]["doctor"]["input_tokens"] is None
    assert result["token_usage"]["total"] == dict.fromkeys(("total_tokens", "prompt_tokens", "completion_tokens"), 0)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["doctor_test_policy_enabled"], summary["doctor_test_policy"]) == (False, "test_policy")
    (tmp_path / "mine.py").write_text("class Other:\n    def (\n")
    refused = clinic("--custom_doctor_agent_path", "mine.py", cwd=tmp_path, expect=2)
    assert "mine.py, line 2: not valid Python" in refused.stderr
    (tmp_path / "mine.py").write_text("from agentclinic import DoctorAgent\n\n\nclass Other(DoctorAgent):\n    pass\n")
    refused = clinic("--custom_doctor_agent_path", "mine.py", cwd=tmp_path, expect=2)
    assert (
        "mine.py: has no class CustomDoctorAgent or DoctorAgent; name yours with --doctor mine.py:Class"
        in refused.stderr
    )


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--patient_csv", "rows.csv"), "rows.csv: tables are not read as cases; `agentclinic generate mimic` makes"),
        (("--data_file", "nowhere.jsonl"), "--data-file nowhere.jsonl: no such file"),
        (("--doctor_image_request", "maybe"), "--doctor-image-request maybe: write true or false, or nothing for true"),
        (("--use_memory=perhaps",), "--use-memory perhaps: write true or false"),
        (("--agent_dataset", "Foo"), "unknown data set 'Foo'; choose from MIMICIV, MedQA, MedQA_Ext, NEJM, NEJM_Ext"),
    ],
)
def test_mistakes_with_the_originals_flags_are_explained(tmp_path: Path, flags: tuple[str, ...], told: str) -> None:
    assert told in clinic(*flags, cwd=tmp_path, expect=2).stderr


def test_a_file_of_mimic_cases_stays_credentialed_whatever_its_label(tmp_path: Path) -> None:
    own_cases(tmp_path, 1).rename(tmp_path / "rows.jsonl")
    flags = ["--agent_dataset", "MIMICIV", "--data_file", "rows.jsonl", "--dataset_name", "ward"]
    clinic(*flags, cwd=tmp_path)
    (record,) = records(only_run(tmp_path / "runs"))
    assert (record["dataset"], record["data_class"]) == ("ward", "credentialed")
    clinic(*flags[:4], "--output_dir", "other", cwd=tmp_path)
    (record,) = records(only_run(tmp_path / "other"))
    assert (record["dataset"], record["data_class"]) == ("MIMICIV", "credentialed")


def test_the_folder_of_another_program_in_a_config_is_ignored_with_a_note(tmp_path: Path) -> None:
    used = {"run": {"dylan_repo_dir": "../DyLAN", "num_scenarios": 1}, "datasets": {}}
    (tmp_path / "config.used.json").write_text(json.dumps(used))
    done = clinic("run", "--config", "config.used.json", "--dry-run", cwd=tmp_path)
    assert done.stderr.count("run.dylan_repo_dir is ignored: it is the folder of another program (DyLAN)") == 1
    assert "1 encounter" in done.stdout


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            ["--doctor_endpoint", "lab"],
            "--doctor-endpoint has no effect: the doctor is builtin, which asks no endpoint",
        ),
        (["--moderator-endpoint", "lab"], "--moderator-endpoint has no effect: the judge is builtin"),
        (["--simulator", "grounded"], "--simulator grounded has no effect: it is how language models play patient and"),
        (["--judge", "model"], "--judge model asks a model, but moderator_llm is builtin; name a model with --moder"),
        (["--judge_relation"], "--judge-relation is now --judge: cascade, model or original"),
    ],
)
def test_flags_that_have_no_effect_on_a_builtin_role_are_refused(tmp_path: Path, flags: list[str], told: str) -> None:
    config: dict[str, Any] = {"endpoints": {"lab": {"base_url": "http://127.0.0.1:9/v1"}}}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps(config))
    assert told in clinic("run", *flags, cwd=tmp_path, expect=2).stderr
    key = flags[0].removeprefix("--").replace("-", "_")
    if key.endswith(("endpoint", "simulator")):  # in a file it may be for other models than those of this command
        (tmp_path / "agentclinic.config.json").write_text(json.dumps(config | {"run": {key: flags[1]}}))
        clinic("run", "--num_scenarios", "1", "--dry-run", cwd=tmp_path)


def test_an_empty_key_is_no_key(tmp_path: Path) -> None:
    """What `--openai_api_key "$KEY"` becomes if KEY is not set: the key in the environment still counts."""
    done = clinic("run", "--openai_api_key", "", "--dry-run", cwd=tmp_path)
    assert "the shell's history" not in done.stderr


def test_the_originals_flags_choose_the_uncertainty_doctor_and_its_agent(tmp_path: Path) -> None:
    agents = yaml.safe_load((ROOT / "agentclinic/doctors/uncertainty/agent_config.yaml").read_text())["agents"]
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "agent_config.yaml").write_text(
        yaml.safe_dump({"agents": {"careful": agents["uncertainty_aware_doctor"]}})
    )
    flags = ["--use_uncertainty_aware", "--num_scenarios", "1", "--total_inferences", "3"]

    clinic(*flags, "--uncertainty_agent_type", "careful", cwd=tmp_path)
    refused = clinic(*flags, cwd=tmp_path, expect=2)

    (record,) = records(only_run(tmp_path / "runs"))
    assert record["doctor"] == "uncertainty"
    assert record["session_id"]
    assert "agents has no 'uncertainty_aware_doctor'" in refused.stderr


def test_under_the_originals_preset_a_diagnosis_has_its_token_and_everything_reads_it(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Two runs that say the same: every command finds the same diagnoses in both."""
    point_at(tmp_path, server)
    for name, flags in {"theirs": ["--preset", "original"], "ours": ["--dialogue", "transcript"]}.items():
        roles = [word for role in ("doctor", "patient", "measurement") for word in (f"--{role}_llm", "scripted")]
        given = [*roles, *flags, "--simulator", "free", "--dataset", str(own_cases(tmp_path, 2))]
        clinic("run", *given, "--output_dir", name, "--name", name, cwd=tmp_path)
    theirs, ours = only_run(tmp_path / "theirs"), only_run(tmp_path / "ours")
    written = [record["diagnosis_text"] for record in records(theirs)]
    assert written == [record["final_doctor_dialogue"] for record in records(ours)]
    assert written[0] == f"DIAGNOSIS READY: {records(ours)[0]['diagnosis_text']}"
    for run in (theirs, ours):
        clinic("regrade", run, "--moderator_llm", "builtin", "--name", "again", cwd=tmp_path)
    judged = [lines(run / "judgements" / "again.jsonl") for run in (theirs, ours)]
    assert [entry["diagnosis"] for entry in judged[0]] == [entry["diagnosis"] for entry in judged[1]]
    assert [r.diagnosis_text for r in load_run(theirs).records] == written
    assert list(map(diagnosis_of, load_run(theirs).records)) == [r.diagnosis_text for r in load_run(ours).records]
    scored = [clinic("score", run, "--full", cwd=tmp_path).stdout for run in (theirs, ours)]
    assert re.findall("accuracy.*", scored[0]) == re.findall("accuracy.*", scored[1])
    for command, *more in (["report"], ["compare", str(ours)], ["card"], ["learn", "-o", "e.jsonl", "--all"]):
        clinic(command, theirs, *more, cwd=tmp_path)


def test_a_preset_is_one_flag_and_its_effect_is_recorded(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    roles = [word for role in ("doctor", "patient", "measurement") for word in (f"--{role}_llm", "scripted")]

    clinic("run", "--preset", "original", "--num_scenarios", "1", *roles, cwd=tmp_path)

    folder = only_run(tmp_path / "runs")
    (record,) = records(folder)
    assert (record["simulator"], record["dialogue"]) == ({"patient": "free", "measurement": "free"}, "transcript")
    assert record["missing_test"] == "normal"
    run = json.loads((folder / "config.used.json").read_text())["run"]
    effect = {"simulator": "free", "dialogue": "transcript", "missing_test": "normal", "planner_baseline": "full"}
    assert {"preset": "original", **effect}.items() <= run.items()


# Help


HEAVY = {"openai", "numpy", "rich", "aiohttp", "httpx2", "genai_prices", "anyio", "asyncio", "dotenv", "rapidfuzz"}


@pytest.mark.parametrize(
    ("arguments", "light"),
    [
        (["--help"], {"pydantic", "agentclinic.config", "agentclinic.cli.options"}),
        (["--version"], {"pydantic", "agentclinic.config", "agentclinic.cli.options"}),
        (["run", "--help"], {"agentclinic.runs.plan", "agentclinic.cli.score", "agentclinic.generate"}),
        (["score", "--help"], {"agentclinic.scoring.score", "agentclinic.cli.run", "agentclinic.generate"}),
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str], light: set[str]) -> None:
    done = python("-X", "importtime", "-m", "agentclinic", *arguments)

    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "typer" in loaded
    assert loaded & (HEAVY | light) == set()


def test_no_commands_module_loads_anything_heavy() -> None:
    """So the help of every command is as fast as that of `run`."""
    program = "import sys, typer; from agentclinic.cli.app import app; typer.main.get_command(app).load(); "
    done = python("-c", f"{program}print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert {f"agentclinic.cli.{entry.module}" for entry in Clinic.table if entry.module} <= loaded, done.stderr
    assert loaded & HEAVY == set()


def test_the_table_has_every_command_and_the_first_line_of_its_help() -> None:
    found = dict(commands())
    for entry in Clinic.table:
        assert len(entry.help) <= 64, "a line of `agentclinic --help` in 80 columns"
        if entry.module:
            command = found[f"{entry.group} {entry.name}".strip()]
            assert command.help.splitlines()[0] == entry.help
            assert f"{entry.name.replace('-', '_')}_command" in vars(sys.modules[f"agentclinic.cli.{entry.module}"])
    modules = {entry.module for entry in Clinic.table if entry.module}
    written = [
        name
        for module in (ROOT / "agentclinic" / "cli").glob("*.py")
        for name in re.findall(r"^(?:def )?(\w+)_command\b", module.read_text(encoding="utf-8"), re.M)
        if module.stem in modules
    ]
    assert len(written) == len(found), "no command is written and not in the table"


def test_a_command_is_added_with_its_function_and_a_line_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "greeting.py").write_text(
        "from agentclinic.cli.options import Json\n"
        "def say_hello_command(name: str, json: Json = False) -> None:\n"
        '    """Greet someone.\n\n    Politely.\n    """\n'
        "    print(f'Hello {name}')\n"
    )
    monkeypatch.setattr(agentclinic.cli, "__path__", [*agentclinic.cli.__path__, str(tmp_path)])
    monkeypatch.setattr(Clinic, "table", (*Clinic.table, Entry("", "say-hello", "greeting", "Greet someone.")))

    main(["say-hello", "Ada"])
    assert capsys.readouterr().out == "Hello Ada\n"
    main(["--help"])
    assert re.search(r"say-hello +Greet someone\.", capsys.readouterr().out)
    main(["say-hello", "--help"])
    shown = capsys.readouterr().out
    assert "Politely." in shown
    assert "Output:\n  --json  " in shown
    monkeypatch.delitem(sys.modules, "agentclinic.cli.greeting")


def test_the_options_of_a_run_are_in_sections_in_the_order_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--help"])
    shown = capsys.readouterr().out

    titles = re.findall(r"^(\w.*):$", shown, re.M)
    assert titles == list(SECTIONS)
    section = dict(zip(titles, re.split(r"^\w.*:$", shown, flags=re.M)[1:], strict=True))
    flags = {title: re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.M) for title, text in section.items()}
    assert flags["Options"] == ["--preset", "--config", "--llm-config", "--help"]
    assert flags["Roles"][0] == "--model"
    assert flags["Generation"] == ["--temperature", "--top-p", "--max-output-tokens", "--reasoning-effort"]
    assert "For one role, put its name first, here and below: doctor_temperature, ..." in " ".join(shown.split())
    assert flags["Judge"] == ["--moderator-llm", "--moderator-endpoint", "--judge"]
    assert flags["Output"] == ["--output-dir", "--name", "--record", "--report", "--json", "--quiet"]
    assert {"--use-memory", "--openai-api-key", "--inf-type"} <= set(flags["The original's names"])
    assert SECTION_OF.keys() - RunSettings.model_fields.keys() == {"output"}, "of `generate`"
    assert RunSettings.model_fields.keys() - SECTION_OF.keys() == {"preset"}
    for _, command in commands():
        assert {getattr(option, "rich_help_panel", None) or "Options" for option in command.params} <= set(SECTIONS)


def test_every_setting_is_a_flag_with_its_description() -> None:
    from agentclinic.config import ALL_GENERATION, choices, described

    helps = {flag: option.help for option in dict(commands())["run"].params for flag in option.opts}
    for name, field in RunSettings.model_fields.items():
        text = helps[f"--{name.replace('_', '-')}"]
        assert described(field) or name in ALL_GENERATION[4:], "those of one role share a line"
        assert described(field).partition(" (default")[0] in text
        assert all(choice in text for choice in choices(field))


def test_a_model_plays_all_roles_but_the_judge_unless_their_own_flags_say_otherwise(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    (tmp_path / "agentclinic.config.json").write_text('{"run": {"doctor_llm": "in-the-file"}}')

    done = clinic("run", "--limit", "1", "--model", "scripted", "--patient-llm", "builtin", cwd=tmp_path)

    (record,) = records(only_run(tmp_path / "runs"))
    roles = ("doctor", "patient", "measurement", "moderator")
    assert [record[f"{role}_llm"] for role in roles] == ["scripted", "builtin", "scripted", "builtin"]
    assert "The builtin judge says when" in done.stdout, "it is still the judge, and the run says so"


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--wrokers", "4"], "did you mean --workers?\n"),
        (["data", "chekc"], "did you mean 'check'?"),
        (["run", "--workers", "four"], "--workers"),
        (["run", "--workers", "0"], "workers"),
        (["run", "--dataset", "MedQU"], "did you mean 'MedQA'?"),
        (["run", "--dataset", "nowhere.jsonl"], "nowhere.jsonl"),
        (["run", "--config", "nowhere.json"], "nowhere.json: no such file"),
        (["run", "--use_memory"], "experiences.jsonl cannot be read"),
        (["run", "--output_file", "nowhere/results.jsonl"], "nowhere/results.jsonl"),
        (["run", "--output_file", "notes.txt"], "notes.txt line 1: not JSON Lines, so results cannot be appended"),
        (["run", "--scenarios", "7-3"], "backwards"),
        (["run", "--doctor", "nobody"], "uncertainty, prior_only"),
        (["run", "--doctor", "uncertanty"], "did you mean 'uncertainty'?"),
        (["run", "--doctor_llm", "bultin"], "did you mean 'builtin'?"),
        (["runs", ".", "--state", "finished"], "choose from complete, incomplete, running, unreadable"),
        (["scroe", "x"], "did you mean 'score'?\n"),
        (["run", "--output_dir", "afile"], "afile"),
        (["run", "--inf_type", "robot"], "Error: --inf-type: must be"),
        (["run", "--limit", "0"], "Error: --limit: must be greater"),
        (["run", "--num_scenarios=0"], "Error: --num-scenarios: must be greater"),
        (["run", "--temperature", "-1"], "Error: --temperature: must be greater"),
        (["run", "--top-p", "2"], "Error: --top-p: must be less"),
        (["run", "--doctor-reasoning-effort", "huge"], "Error: --doctor-reasoning-effort: must be 'none', 'minimal'"),
        (["run", "--temperature", "0.5"], "Error: --temperature has no effect: every role"),
        (["eval"], "No such command 'eval'; did you mean 'run'?\n"),
        (["list"], "did you mean 'runs'?\n"),
        (["memory", "lst"], "did you mean 'list'?\n"),
        (["score", "."], "is a folder of runs; name one of them, e.g. played, or latest\n"),
        (["view", "plaid"], "plaid: no such file or folder, and no such run in runs; there are no runs there\n"),
        (["resume", "nowhere"], "nowhere"),
        (["regrade", "nowhere"], "nowhere"),
        (["probe", "builtin"], "builtin"),
        (["dance"], "dance"),
    ],
)
def test_a_mistake_gives_exit_code_2_and_names_the_culprit(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("")
    (tmp_path / "notes.txt").write_text("Dear diary,\nno news today")
    (tmp_path / "played").mkdir()
    (tmp_path / "played" / "scenarios.jsonl").write_text("")

    done = clinic(*arguments, cwd=tmp_path, expect=2)

    assert said in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "notes.txt").read_text() == "Dear diary,\nno news today"


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("agentclinic.config.json", '{"run": {"total_inference": 5}}', "did you mean 'total_inferences'?"),
        ("agentclinic.config.json", '{"run": {"workers": "many"}}', "run.workers"),
        ("agentclinic.config.json", '{"run": ', "line 1"),
        ("agentclinic.config.json", "[]", "JSON object"),
        ("llm.config.json", '{"openai": {"apikey": "x"}}', "did you mean 'api_key'?"),
        ("llm.config.json", '{"llm": {"runtime": {"tries": 0}}}', "llm.runtime.tries"),
    ],
)
def test_a_bad_config_gives_exit_code_2_and_names_file_and_key(
    file: str, content: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(content)

    done = clinic("run", cwd=tmp_path, expect=2)

    assert file in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "runs").exists()


# What is shown


def test_with_json_nothing_else_is_on_standard_output(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(rules=[{"match": {"purpose": "patient", "nth": 1}, "fault": "500"}])

    done = clinic("run", "--num_scenarios", "2", "--output_dir", "out", "--json", *AT_ENDPOINT, cwd=tmp_path)

    result = json.loads(done.stdout)
    folder = only_run(tmp_path / "out")
    assert result["run"] == str(folder.relative_to(tmp_path))
    written = summary(folder)
    shown = {key: value for key, value in result.items() if key not in ("run", "missing", "stopped")}
    assert shown == {key: written[key] for key in shown}
    assert shown["presented"] == 2
    assert "--retry-failed" in done.stderr


@pytest.mark.slow
def test_without_a_terminal_progress_is_plain_lines_and_quiet_has_none(tmp_path: Path) -> None:
    told = clinic("run", "--num_scenarios", "3", cwd=tmp_path)
    quiet = clinic("run", "--num_scenarios", "3", "--quiet", cwd=tmp_path)

    lines = told.stderr.splitlines()
    assert lines[0] == "3 scenarios"
    assert [line.split()[0] for line in lines[1:]] == ["1/3", "2/3", "3/3"]
    assert "\x1b" not in told.stderr + told.stdout
    assert quiet.stderr == ""
    assert "accuracy (strict)" in quiet.stdout


def test_the_table_shows_failures_and_the_bounds_they_leave(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(rules=[{"match": {"purpose": "patient", "nth": 1}, "fault": "500"}])

    done = clinic("run", "--num_scenarios", "4", "--output_dir", "[/out]", *AT_ENDPOINT, cwd=tmp_path)

    shown = " ".join(done.stdout.split())
    assert "model failed (missing, not wrong) 1" in shown
    assert "patient.server 1, e.g. 127.0.0.1" in shown
    assert "bounds with missing 75.0% (all wrong) to 100.0% (all right)" in shown
    assert "100.0% (95% interval 43.9% to 100.0%; 3 of 3)" in shown
    assert "cost doctor unknown" in shown
    assert f"Written to {only_run(tmp_path / '[/out]').relative_to(tmp_path)}" in done.stdout


def on_terminal(arguments: list[str], cwd: Path) -> str:
    """Run a command on a pseudo-terminal and return what it showed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*CLINIC, *arguments],
        cwd=cwd,
        env=environment(TERM="xterm", COLUMNS="120"),
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + LONG
    try:
        while time.monotonic() < deadline:
            if select.select([leader], [], [], 1.0)[0]:
                try:
                    piece = os.read(leader, 65536)
                except OSError:  # Linux: the other end is closed
                    break
                if not piece:
                    break
                shown += piece
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    return shown.decode()


@pytest.mark.slow
def test_on_a_terminal_a_bar_shows_the_progress(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(latency=0.03)  # slow enough that the bar, drawn ten times a second, is seen half way

    shown = on_terminal(["run", "--num_scenarios", "6", *AT_ENDPOINT], tmp_path)

    assert "0/6" in shown
    assert any(f"{done}/6" in shown for done in range(1, 6))
    assert "accuracy 100%" in shown
    assert "━" in shown
    assert "accuracy (strict)" in shown


def test_resuming_a_finished_run_says_that_it_is_complete(tmp_path: Path) -> None:
    clinic("run", "--num_scenarios", "1", "--output_dir", "out", cwd=tmp_path)
    folder = only_run(tmp_path / "out")

    assert "already complete" in clinic("resume", folder, cwd=tmp_path).stderr
    assert "already complete" not in clinic("resume", folder, "-q", cwd=tmp_path).stderr
    (folder / "scenarios.jsonl").write_text("")
    assert "already complete" not in clinic("resume", folder, cwd=tmp_path).stderr


def test_a_name_between_colons_is_no_emoji(tmp_path: Path) -> None:
    program = "class Mine:\n    def inference_doctor(self, question): raise ValueError('found a :bug: here')\n"
    (tmp_path / "mine.py").write_text(program + "    def __init__(self, scenario): pass\n")

    done = clinic("run", "--doctor", "mine.py:Mine", "--num_scenarios", "1", cwd=tmp_path, expect=None)

    assert "found a :bug: here" in done.stdout
