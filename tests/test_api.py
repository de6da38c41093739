"""The Python interface: the same runs as the command line, from a script, a loop and a notebook."""

from __future__ import annotations

import asyncio
import json
import pydoc
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
from browser_support import needs_browser, running_browser, serious, visiting
from helpers import osce, write_rows
from playwright.sync_api import expect
from runs_support import lines, point_at
from scripted_server import ScriptedServer

import agentclinic
from agentclinic import Action, Case, Record, Run, compare, evaluate, load_cases, load_run
from agentclinic.cli import main
from agentclinic.config import RunSettings
from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.runs.options import RunOptions


def test_the_public_names_are_these() -> None:
    assert sorted(agentclinic.__all__) == [
        "Action",
        "Case",
        "Comparison",
        "Doctor",
        "Record",
        "Reliability",
        "Run",
        "Utterance",
        "__version__",
        "compare",
        "evaluate",
        "load_cases",
        "load_run",
        "reliability",
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


class OneTest:
    """A doctor that reads the menu of a world."""

    def __init__(self, scenario: Any) -> None:
        assert "- Troponin: raised or normal" in scenario.examiner_information()
        self.asked = False

    def inference_doctor(self, question: str) -> str:
        if self.asked:
            return f"DIAGNOSIS READY: {'heart attack' if 'raised' in question else 'DEFER'}"
        self.asked = True
        return "REQUEST TEST: Troponin"


def test_a_world_is_played_from_python(tmp_path: Path) -> None:
    cases = load_cases("Solvable:chest-pain", num_scenarios=4, seed=1)
    assert [case.name for case in cases] == [f"chest-pain-1-{number}" for number in range(4)]
    same = evaluate("optimal", "Solvable:chest-pain", num_scenarios=4, seed=1, output_dir=str(tmp_path), progress=False)
    assert [case.id for case in same.cases] == [case.id for case in cases]
    assert all(record.regret and abs(record.regret.regret) < 1e-9 for record in same.records)

    mine = evaluate(OneTest, cases, output_dir=str(tmp_path), progress=False)

    for record in mine.records:
        found = record.regret
        assert found is not None
        assert found.turns[0].action == "Troponin"
        assert found.ending in ("Acute myocardial infarction", "DEFER")
        assert found.best_value - found.utility == pytest.approx(found.regret + found.luck, abs=1e-9)
    encounters, turns = mine.to_pandas(), mine.to_pandas(per="turn")
    regrets = [record.regret.regret for record in mine.records if record.regret]
    assert list(encounters["regret"]) == pytest.approx(regrets)
    said = turns[turns["role"] == "doctor"]
    assert said.groupby("scenario_id")["regret"].sum().tolist() == pytest.approx(regrets)
    assert set(said["regret_kind"]) <= {"best", "wrong_question", "stopped_early", "wrong_commitment", "too_long"}
    assert turns[turns["role"] == "measurement"]["regret"].isna().all()


def test_only_the_cases_of_worlds_are_drawn() -> None:
    assert len(load_cases("Solvable:headache")) == 100
    with pytest.raises(InputError, match="num_scenarios: 0 is less than 1"):
        load_cases("Solvable:headache", num_scenarios=0)
    with pytest.raises(InputError, match="are for solvable worlds"):
        load_cases("OpenOSCE_Demo", num_scenarios=3)
    with pytest.raises(InputError, match="are for solvable worlds"):
        load_cases("OpenOSCE_Demo", seed=0)


def test_cases_can_be_chosen_in_python(tmp_path: Path) -> None:
    cases = load_cases("OpenOSCE_Demo")
    assert all(isinstance(case, Case) for case in cases)
    chosen = [cases[7], cases[2]]
    run = evaluate("door_only", chosen, output_dir=str(tmp_path), progress=False)
    assert [record.scenario_id for record in run.records] == [7, 2]
    assert evaluate("door_only", cases[3], output_dir=str(tmp_path), progress=False).records[0].scenario_id == 3
    unfit: tuple[Any, ...] = ([], [{"OSCE_Examination": {}}])
    for wrong in unfit:
        with pytest.raises(InputError, match="cases from load_cases"):
            evaluate("door_only", wrong, output_dir=str(tmp_path))


def test_the_lockbox_is_loaded_and_played_only_if_it_is_asked_for(tmp_path: Path) -> None:
    rows = (osce(truth="Gout"), osce(truth="Croup", lockbox=True), osce(truth="Measles"))
    path = write_rows(tmp_path / "mine.jsonl", *rows)
    assert [case.scenario_id for case in load_cases(path)] == [0, 2]
    every = load_cases(path, lockbox=True)
    assert [case.scenario_id for case in every] == [0, 1, 2]
    with pytest.raises(InputError, match="lockbox has no meaning in a solvable world"):
        load_cases("Solvable:headache", lockbox=True)
    played = [
        evaluate("door_only", cases, output_dir=str(tmp_path / "runs"), progress=False)
        for cases in (path, load_cases(path), every)
    ]
    assert [[record.scenario_id for record in run.records] for run in played] == [[0, 2], [0, 2], [0, 1, 2]]
    settings = [json.loads((run.folder / "config.used.json").read_text())["run"] for run in played]
    assert [each.get("lockbox", False) for each in settings] == [False, False, True]


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


def test_runs_and_comparisons_print_as_short_tables(run: Run, tmp_path: Path) -> None:
    title, accuracy, *_, judge = repr(run).splitlines()
    right = run.summary.correct
    assert title == f"Run {run.folder}"
    assert accuracy.split()[0] == "accuracy"
    assert accuracy.endswith(f"; {right} of 3)")
    assert judge.startswith("  Judged by builtin, which says when")

    other = evaluate("door_only", num_scenarios=3, output_dir=str(tmp_path), progress=False)
    report = compare(run, other)
    head, first, second, *_ = str(report).splitlines()
    assert repr(report) == str(report)
    assert head.split()[0] == "run"
    assert (first[:8], second[:12]) == ("A  plain", "B  door_only")

    kept = (other.folder / "scenarios.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (other.folder / "scenarios.jsonl").write_text(kept[0], encoding="utf-8")
    assert "Not finished: 1 of 3 encounters were played." in str(other)
    shutil.rmtree(other.folder)
    assert str(other).startswith(f"Run {other.folder}: "), "a repr does not fail"
    assert "<table>" in other._repr_html_()


def test_lists_of_records_and_cases_stay_readable(run: Run) -> None:
    first = run.records[0]
    assert repr(first).startswith("Record(scenario_id=0, repeat=0, status='diagnosed', correct=")
    assert len(repr(first)) < 300
    assert len(repr(run.cases[0])) < 500


@needs_browser
def test_in_a_notebook_they_are_tables_in_any_theme_and_nothing_in_them_acts(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    runs = [
        evaluate(doctor, num_scenarios=3, output_dir=str(tmp_path / "<b>"), progress=False)
        for doctor in ("plain", "door_only")
    ]
    journal = runs[1].folder / "scenarios.jsonl"
    changed = [{k: v for k, v in one.items() if k != "checksum"} | {"moderator_llm": evil} for one in lines(journal)]
    write_rows(journal, *changed)
    shown = [runs[1]._repr_html_(), compare(*runs)._repr_html_()]
    page = tmp_path / "notebook.html"
    page.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Notebook</title>"
        "<style>:root { color-scheme: light dark }</style><main><h1>Notebook</h1>" + "".join(shown) + "</main>",
        encoding="utf-8",
    )
    with running_browser() as browser:
        for theme in ("light", "dark"):
            with visiting(browser, page.as_uri(), color_scheme=theme) as watch:
                assert watch.page.locator("table").count() == 2
                expect(watch.page.locator("caption").first).to_be_visible()
                expect(watch.page.get_by_text(evil[:30]).first).to_be_visible()
                assert watch.page.locator("script, img").count() == 0
                assert (watch.problems, watch.requests, serious(watch.page)) == ([], [], [])


def test_help_fits_a_screen_and_names_options_that_exist() -> None:
    shown = pydoc.plain(pydoc.render_doc(evaluate)).splitlines()
    assert sum(len(textwrap.wrap(line, 80)) or 1 for line in shown) <= 40
    assert max(len(line) for line in shown[3:]) <= 80
    named = "\n".join(shown).split("docs/settings.md has all):")[1].split("If the run")[0]
    options = [one for start in re.findall(r"^    (\w+(?:, \w+)*)", named, re.MULTILINE) for one in start.split(", ")]
    assert len(options) >= 12
    assert set(options) <= set(RunOptions.__annotations__)


def test_a_run_is_loaded_with_the_verdicts_of_a_judge(run: Run) -> None:
    folder = run.folder / "judgements"
    folder.mkdir(exist_ok=True)
    entries = [
        {"scenario_id": r.scenario_id, "case_hash": r.case_hash, "repeat": 0, "correct": False} for r in run.records
    ]
    (folder / "strict.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    strict = load_run(run.folder, judge="strict")
    assert strict.summary.correct == 0
    assert "Judged by strict" in str(strict)
    both = compare(run, strict)
    assert [one.accuracy.value for one in both.accuracies if one.rule == "strict"] == [run.summary.correct / 3, 0]
    assert [line[0] for line in str(both).splitlines()[1:3]] == ["A", "B"]
    with pytest.raises(InputError, match="is given twice"):
        compare(run, run)
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
