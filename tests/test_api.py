"""The Python interface: the same runs as the command line, from a script, a loop and a notebook."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from runs_support import lines, point_at
from scripted_server import ScriptedServer

import agentclinic
from agentclinic import Action, Case, Record, Run, compare, evaluate, load_cases, load_run
from agentclinic.api import RunOptions
from agentclinic.cli import main
from agentclinic.config import RunSettings
from agentclinic.errors import AgentClinicError, ConfigError, InputError


def test_the_public_names_are_these() -> None:
    assert sorted(agentclinic.__all__) == [
        "Action",
        "Case",
        "Doctor",
        "Record",
        "Run",
        "Utterance",
        "__version__",
        "compare",
        "evaluate",
        "load_cases",
        "load_run",
    ]
    for name in agentclinic.__all__:
        assert getattr(agentclinic, name) is not None


def test_the_names_of_the_original_are_there_too() -> None:
    for name in ("DoctorAgent", "PatientAgent", "MeasurementAgent", "query_model", "compare_results", "main"):
        assert name in dir(agentclinic)
        assert callable(getattr(agentclinic, name))
    with pytest.raises(AttributeError, match="no attribute 'Nurse'"):
        _ = agentclinic.Nurse


def test_every_setting_of_a_run_is_an_option() -> None:
    assert set(RunOptions.__annotations__) == set(RunSettings.model_fields) - {"dataset", "doctor"}


def without_timing(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key != "timing"} for entry in entries]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return evaluate(num_scenarios=3, output_dir=str(tmp_path_factory.mktemp("runs")), progress=False)


def test_evaluate_writes_the_same_records_as_the_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["run", "--num_scenarios", "3", "--quiet"])
    (folder,) = (tmp_path / "runs").iterdir()
    assert without_timing(lines(folder / "scenarios.jsonl")) == without_timing(lines(run.folder / "scenarios.jsonl"))
    assert (folder / "cases.jsonl").read_bytes() == (run.folder / "cases.jsonl").read_bytes()


def test_a_run_gives_records_cases_summary_score_and_report(run: Run) -> None:
    assert [record.scenario_id for record in run.records] == [0, 1, 2]
    assert all(isinstance(record, Record) for record in run.records)
    assert [case.id for case in run.cases] == [record.case_hash for record in run.records]
    assert run.summary.presented == 3
    assert run.score().outcome == run.summary
    page = run.report()
    assert page == run.folder / "report.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(run.report(run.folder / "report.json").read_text(encoding="utf-8"))["runs"]
    assert repr(run) == f"Run({str(run.folder)!r})"


def test_a_table_has_one_row_for_each_encounter_or_for_each_turn(run: Run) -> None:
    encounters = run.to_pandas()
    assert list(encounters["scenario_id"]) == [0, 1, 2]
    assert list(encounters["correct"]) == [record.correct for record in run.records]
    assert list(encounters["tests"] + encounters["questions"] + 1) == list(encounters["num_turns"])
    turns = run.to_pandas(per="turn")
    said = [turn for record in run.records for turn in record.transcript or ()]
    assert list(turns["text"]) == [turn.text for turn in said]
    ordered = turns[turns["action"] == "test"]
    assert all(
        f"REQUEST TEST: {content}" == text for content, text in zip(ordered["content"], ordered["text"], strict=True)
    )
    with pytest.raises(InputError, match="neither"):
        run.to_pandas(per="patient")  # type: ignore[arg-type]


class Guesses:
    """A doctor of a few lines."""

    def __init__(self, scenario: Any) -> None:
        self.door = scenario.examiner_information()

    def inference_doctor(self, question: str) -> str:
        return "DIAGNOSIS READY: Gout" if question else "What brings you here?"


def test_a_doctor_may_be_a_class_which_can_be_resumed_by_its_file(tmp_path: Path) -> None:
    run = evaluate(Guesses, num_scenarios=2, output_dir=str(tmp_path), progress=False)
    assert [record.diagnosis_text for record in run.records] == ["Gout", "Gout"]
    assert {record.doctor for record in run.records} == {f"{Path(__file__).absolute()}:Guesses"}


class Remembers:
    """An instance with something in it; each encounter has its own copy."""

    def __init__(self, diagnosis: str) -> None:
        self.diagnosis = diagnosis
        self.asked: list[str] = []
        self.objective = ""

    def start(self, scenario: Any) -> None:
        self.objective = scenario.examiner_information()

    def inference_doctor(self, question: str) -> str:
        self.asked.append(question)
        assert self.objective
        return f"DIAGNOSIS READY: {self.diagnosis} {len(self.asked)}"


def test_a_doctor_may_be_an_instance(tmp_path: Path) -> None:
    mine = Remembers("Flu")
    run = evaluate(mine, num_scenarios=3, workers=3, output_dir=str(tmp_path), progress=False)
    assert [record.diagnosis_text for record in run.records] == ["Flu 1"] * 3
    assert mine.asked == []


def test_cases_can_be_chosen_in_python(tmp_path: Path) -> None:
    cases = load_cases("OpenOSCE_Demo")
    assert all(isinstance(case, Case) for case in cases)
    chosen = [cases[7], cases[2]]
    run = evaluate("door_only", chosen, output_dir=str(tmp_path), progress=False)
    assert [record.scenario_id for record in run.records] == [7, 2]
    with pytest.raises(InputError, match="no cases"):
        evaluate("door_only", [], output_dir=str(tmp_path))


@pytest.mark.anyio
async def test_it_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    asyncio.get_running_loop()
    run = evaluate(num_scenarios=1, output_dir=str(tmp_path), progress=False)
    assert len(run.records) == 1


def test_runs_are_compared_by_object_or_by_path(run: Run, tmp_path: Path) -> None:
    other = evaluate("door_only", num_scenarios=3, output_dir=str(tmp_path), progress=False)
    by_object, by_path = compare(run, other), compare(run.folder, str(other.folder))
    assert by_object == by_path
    assert by_object.comparisons[0].verdicts[0].cases == 3
    with pytest.raises(InputError, match="at least two runs"):
        compare(run)


def test_a_run_is_loaded_with_the_verdicts_of_a_judge(run: Run) -> None:
    folder = run.folder / "judgements"
    folder.mkdir(exist_ok=True)
    entries = [
        {"scenario_id": r.scenario_id, "case_hash": r.case_hash, "repeat": 0, "correct": False} for r in run.records
    ]
    (folder / "strict.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert load_run(run.folder, judge="strict").summary.correct == 0
    with pytest.raises(InputError, match="no such judgements"):
        load_run(run.folder, judge="kind")


def test_mistakes_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="doctor_lllm"):
        evaluate(doctor_lllm="builtin")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="has no method inference_doctor"):
        evaluate(object())
    with pytest.raises(InputError, match="not a run"):
        load_run(tmp_path)


def test_a_run_that_stops_early_says_how_to_resume(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, token_limit=1)
    with pytest.raises(AgentClinicError, match=r"2 of 3 scenarios were not played .*token limit.* agentclinic resume"):
        evaluate(
            doctor_llm="scripted",
            num_scenarios=3,
            llm_config=tmp_path / "llm.config.json",
            output_dir=str(tmp_path / "runs"),
            progress=False,
        )
    (folder,) = (tmp_path / "runs").iterdir()
    assert len(load_run(folder).records) == 1


def test_an_action_says_what_was_asked_for(run: Run) -> None:
    actions = [turn.action for turn in run.records[0].transcript or () if turn.action]
    assert isinstance(actions[-1], Action)
    assert (actions[-1].kind, actions[-1].content) == ("diagnosis", run.records[0].diagnosis_text)


def test_a_wrong_argument_is_named_without_a_word_about_files() -> None:
    with pytest.raises(ConfigError, match=r"^unknown argument 'num_scenario'; did you mean 'num_scenarios'\?$"):
        evaluate(num_scenario=3)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match=r"^doctor_temperature: must be less than or equal to 2$"):
        evaluate(doctor_temperature=3)


def test_a_run_is_loaded_by_its_name_or_as_the_latest(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").symlink_to(run.folder.parent)
    monkeypatch.chdir(tmp_path)
    assert load_run("latest").name == load_run(run.name).name == run.name
    assert compare("latest", run).runs
