"""The clinic in Inspect, and runs as logs of Inspect: with the real library."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra inspect")

from env_support import played, same_record
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, EvalSample, EvalScore, read_eval_log
from runs_support import clinic, environment, own_cases, own_rows, point_at
from scripted_server import LONG, ScriptedServer

from agentclinic import Run, evaluate, load_run
from agentclinic.cli import main
from agentclinic.envs import inspect_task
from agentclinic.envs.episode import open_clinic
from agentclinic.envs.inspect_task import RECORD
from agentclinic.results.record import Record

pytestmark = pytest.mark.slow
WORDS = ("Where does it hurt?", "REQUEST TEST: Electrocardiogram", "DIAGNOSIS READY: Acute myocardial infarction")
AT_ENDPOINT: Any = {"patient_llm": "scripted", "moderator_llm": "scripted", "simulator": "free", "judge": "model"}


def inspect_process(
    server: ScriptedServer, folder: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`inspect eval` with a model at the server, which takes its requests for a doctor's."""
    model = ["--model", "openai-api/scripted/scripted", "--extra-headers", '{"X-AgentClinic-Purpose": "doctor"}']
    at = {"SCRIPTED_BASE_URL": server.base_url, "SCRIPTED_API_KEY": "none"}
    return subprocess.run(
        [str(Path(sys.executable).parent / "inspect"), "eval", *arguments, *model, "--display", "plain"],
        cwd=folder,
        env=environment(**at, **variables),
        capture_output=True,
        text=True,
        timeout=LONG,
    )


def logged(server: ScriptedServer, folder: Path, *arguments: str) -> EvalLog:
    ended = inspect_process(server, folder, *arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (path,) = (folder / "logs").glob("*.eval")
    return read_eval_log(str(path))


def records_in(log: EvalLog) -> list[Record]:
    return [Record.model_validate(sample.store[RECORD]) for sample in samples_in(log)]


def same(some: Sequence[Record], others: Sequence[Record]) -> bool:
    ordered = (sorted(records, key=lambda one: one.unit) for records in (some, others))
    return all(same_record(*pair) for pair in zip(*ordered, strict=True))


def sent_to(server: ScriptedServer) -> list[list[tuple[str, str]]]:
    """The messages of each request, by whichever API."""
    bodies = [request["body"] for request in server.log()]
    return [[(one["role"], one["content"]) for one in body.get("messages") or body["input"]] for body in bodies]


def samples_in(log: EvalLog) -> list[EvalSample]:
    return list(log.samples or [])


def scored(log: EvalLog) -> EvalScore:
    assert log.results is not None
    (one,) = log.results.scores
    return one


def metrics(log: EvalLog) -> dict[str, float]:
    return {name: metric.value for name, metric in scored(log).metrics.items()}


def figures(run: Run) -> dict[str, float | None]:
    score = run.score()
    found = {"accuracy": score.outcome.accuracy_strict}
    if score.regret.encounters:
        found |= {"utility": score.regret.utility, "regret": score.regret.regret}  # type: ignore[dict-item]
    ends = (("", "value"), ("_low", "low"), ("_high", "high"))
    return {f"{name}{end}": getattr(one, field) for name, one in found.items() for end, field in ends}


def a_run(server: ScriptedServer, folder: Path, words: Sequence[str], dataset: str, **options: Any) -> Run:
    server.control(doctor=list(words))
    llm_config = folder / "llm.config.json"
    llm_config.write_text(json.dumps({"openai": {"base_url": server.base_url}}))
    return evaluate(
        "plain",
        dataset,
        llm_config=llm_config,
        progress=False,
        doctor_llm="scripted",
        output_dir=str(folder / "runs"),
        **options,
    )


# The tasks


def test_inspect_eval_sends_the_model_what_a_run_sends_and_records_the_same(
    server: ScriptedServer, tmp_path: Path
) -> None:
    expected = played(server, tmp_path, WORDS, "OpenOSCE", "osce-a01")
    expected_messages = sent_to(server)
    server.reset()
    server.control(rules=[{"match": {"purpose": "doctor"}, "times": 1, "reply": words} for words in WORDS])

    log = logged(server, tmp_path, "agentclinic/openosce", "-T", "scenarios=osce-a01")

    assert log.status == "success"
    assert log.eval.task == "agentclinic/openosce"
    (sample,) = samples_in(log)
    (record,) = records_in(log)
    assert same_record(record, expected)
    assert sent_to(server) == expected_messages
    assert (sample.id, sample.target) == ("osce-a01", expected.ground_truth)
    assert sample.scores is not None
    assert sample.scores["diagnosis"].value == ("C" if expected.correct else "I")
    assert [message.text for message in sample.messages if message.role == "assistant"] == list(WORDS)


def test_the_figures_of_an_evaluation_are_those_of_a_run(server: ScriptedServer, tmp_path: Path) -> None:
    right_once = f"DIAGNOSIS READY: {open_clinic('OpenOSCE').plan.cases[0].diagnosis}"
    run = a_run(server, tmp_path, [right_once], "OpenOSCE", num_scenarios=8, repeats=2)

    log = logged(server, tmp_path, "agentclinic/openosce", "--limit", "8", "--epochs", "2")

    assert metrics(log) == figures(run)
    assert 0 < metrics(log)["accuracy"] < 1
    assert same(records_in(log), run.records)


def test_a_world_adds_utility_and_regret(server: ScriptedServer, tmp_path: Path) -> None:
    words = ("How are you?", "DIAGNOSIS READY: DEFER")
    run = a_run(server, tmp_path, words, "Solvable:chest-pain,invented", num_scenarios=6, seed=3)

    options = ("world=chest-pain,invented", "num_scenarios=6", "seed=3")
    log = logged(server, tmp_path, "agentclinic/solvable", *(word for option in options for word in ("-T", option)))

    assert metrics(log) == figures(run)
    assert same(records_in(log), run.records)


def test_a_judge_that_fails_leaves_the_sample_unscored(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(doctor=list(WORDS), rules=[{"match": {"purpose": "moderator", "nth": 1}, "fault": "bad_request"}])
    options = [f"dataset={own_cases(tmp_path, 3)}", f"llm_config={point_at(tmp_path, server)}"]
    options += [f"{name}={value}" for name, value in AT_ENDPOINT.items()]

    log = logged(server, tmp_path, "agentclinic/clinic", *(word for option in options for word in ("-T", option)))

    assert (scored(log).scored_samples, scored(log).unscored_samples) == (2, 1)
    assert metrics(log)["accuracy"] == 1, "a verdict that is missing is not a wrong answer"
    values = [sample.scores["diagnosis"] for sample in samples_in(log) if sample.scores]
    (failed,) = (one for one in values if isinstance(one.value, float) and math.isnan(one.value))
    assert failed.reason == "grader_failed"


def test_a_model_that_fails_is_an_error_of_inspects_and_no_wrong_answer(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(doctor=list(WORDS), rules=[{"match": {"nth": 2}, "fault": "bad_request"}])
    flags = ("--limit", "2", "--max-samples", "1", "--no-fail-on-error", "--score-on-error")

    log = logged(server, tmp_path, "agentclinic/openosce", *flags)

    assert (scored(log).scored_samples, scored(log).unscored_samples) == (1, 1)
    first, second = (case.name for case in open_clinic("OpenOSCE").plan.cases[:2])  # a log has samples by their ids
    assert {sample.id: bool(sample.error) for sample in samples_in(log)} == {first: True, second: False}


def test_a_limit_of_inspects_ends_the_encounter_without_a_diagnosis(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(doctor=list(WORDS))

    log = logged(server, tmp_path, "agentclinic/openosce", "--limit", "1", "--message-limit", "4")

    (sample,) = samples_in(log)
    (record,) = records_in(log)
    assert sample.limit is not None
    assert sample.scores is not None
    assert sample.scores["diagnosis"].value == "I"
    assert record.diagnosis_text is None


# What is refused


def test_the_lockbox_and_credentialed_data_are_refused_in_one_line(server: ScriptedServer, tmp_path: Path) -> None:
    rows = [{**json.loads(row), "data_class": "credentialed"} for row in own_rows(2)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    with pytest.raises(PrerequisiteError, match="credentialed data stays out of Inspect"):
        inspect_task.clinic(str(tmp_path / "cases.jsonl"))
    ended = inspect_process(server, tmp_path, "agentclinic/openosce", "-T", "lockbox=true")

    assert ended.returncode != 0
    assert "lockbox: environments never serve the lockbox" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    assert server.log() == []


def test_no_case_of_the_lockbox_is_a_sample() -> None:
    from agentclinic.cases.registry import load_cases

    locked = {case.name for case in load_cases("OpenOSCE", lockbox=True) if case.in_lockbox}
    served = {sample.id for sample in inspect_task.openosce().dataset}
    halves = [{sample.id for sample in inspect_task.openosce(part=part).dataset} for part in ("train", "test")]

    assert locked
    assert not served & locked
    with pytest.raises(PrerequisiteError, match="lockbox"):
        inspect_task.openosce(scenarios=min(locked))
    assert halves[0] | halves[1] == served
    assert not halves[0] & halves[1]


def test_a_library_that_is_too_old_is_named_in_one_line(tmp_path: Path) -> None:
    run = evaluate("plain", "OpenOSCE_Demo", progress=False, num_scenarios=1, output_dir=str(tmp_path))
    old = tmp_path / "old" / "inspect_ai-0.3.7.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text("Name: inspect_ai\nVersion: 0.3.7\n")
    path = environment().get("PYTHONPATH", "")

    ended = subprocess.run(
        [sys.executable, "-m", "agentclinic", "export", str(run.folder)],
        env=environment(PYTHONPATH=f"{old.parent}:{path}"),
        capture_output=True,
        text=True,
        timeout=LONG,
    )

    assert ended.returncode == 2
    assert re.fullmatch(r".*needs inspect_ai 0\.3\.285 or newer, and 0\.3\.7 is installed: .*\n", ended.stderr)
    assert not list(run.folder.glob("*.eval"))


# Runs as logs


def test_a_run_is_exported_with_the_samples_and_figures_that_score_counts(
    server: ScriptedServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.control(
        doctor=list(WORDS),
        rules=[
            {"match": {"purpose": "moderator", "nth": 2}, "fault": "bad_request"},
            {"match": {"purpose": "doctor", "nth": 10}, "fault": "bad_request"},
        ],
    )
    run = evaluate(
        "plain",
        "OpenOSCE",
        llm_config=point_at(tmp_path, server),
        progress=False,
        doctor_llm="scripted",
        output_dir=str(tmp_path / "runs"),
        num_scenarios=4,
        repeats=2,
        **AT_ENDPOINT,
    )

    main(["export", str(run.folder), "--format", "inspect"])

    target = run.folder / "inspect.eval"
    assert capsys.readouterr().out == f"Written to {target}\n"
    log, summary = read_eval_log(str(target)), run.summary
    assert (log.status, log.eval.model, log.eval.task) == ("success", "scripted", "agentclinic/openosce")
    assert log.eval.metadata is not None
    assert log.eval.metadata["settings"]["repeats"] == 2
    assert metrics(log) == figures(run)
    assert summary.missing == 2
    assert (scored(log).scored_samples, scored(log).unscored_samples) == (summary.presented - 2, 2)
    by_unit = {(record.case_name, record.repeat + 1): record for record in run.records}
    assert by_unit.keys() == {(sample.id, sample.epoch) for sample in samples_in(log)}
    for sample in samples_in(log):
        record = by_unit[str(sample.id), sample.epoch]
        assert sample.scores is not None
        value = sample.scores["diagnosis"].value
        assert {"C": True, "I": False}.get(str(value)) == record.correct
        assert bool(sample.error) == bool(record.fault)
        assert sample.target == record.ground_truth
        said = [turn.text for turn in record.transcript or () if turn.role == "doctor"]
        assert [message.text for message in sample.messages if message.role == "assistant"] == said
        tokens = [used["input_tokens"] for used in (record.usage or {}).values()]
        assert sum(
            used.input_tokens + (used.input_tokens_cache_read or 0) for used in sample.role_usage.values()
        ) == sum(sent or 0 for sent in tokens)
    header = read_eval_log(str(target), header_only=True)
    assert header.samples is None
    assert metrics(header) == figures(run)


def test_the_log_of_a_credentialed_run_is_the_owners(tmp_path: Path) -> None:
    rows = [{**json.loads(row), "data_class": "credentialed"} for row in own_rows(1)]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = evaluate("plain", str(tmp_path / "cases.jsonl"), progress=False, output_dir=str(tmp_path / "runs"))
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)

    clinic("export", run.folder, "-o", shared / "log.eval", cwd=tmp_path)

    assert (shared / "log.eval").stat().st_mode & 0o777 == 0o600
    assert load_run(run.folder).records
