"""The known data sets, and how one is found."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from helpers import osce, write_rows

from agentclinic.cases import formats
from agentclinic.cases.formats import NEJM, OSCE
from agentclinic.cases.model import Fact, Section
from agentclinic.cases.registry import DATASETS, Dataset, load_cases, resolve
from agentclinic.cli.data import list_datasets
from agentclinic.config import Settings
from agentclinic.errors import CaseError
from agentclinic.results.run_cases import read_cases
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress


def test_the_facts_of_a_case_are_made_when_they_are_first_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_rows(tmp_path / "own.jsonl", osce())
    (case,), (other,), (sent,) = (load_cases(str(path)) for _ in range(3))
    assert case.facts is case.facts
    assert pickle.loads(pickle.dumps(other)) == case == other
    assert replace(case, facts=()).facts == ()
    assert replace(sent, image="x.png").facts == case.facts
    monkeypatch.setattr(formats, "chart_facts", lambda *_: iter([Fact("p", Section.HISTORY, (), "One")]))
    monkeypatch.setattr(formats, "_canonical", pytest.fail)
    (unread,) = load_cases(str(path))
    assert unread.name == case.name
    assert [fact.text for fact in unread.facts] == ["One"] * 3


def test_a_new_data_set_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rows(tmp_path / "own.jsonl", osce())
    monkeypatch.setitem(DATASETS, "Own", Dataset("Own", OSCE, path, "ours"))
    (case,) = load_cases("Own")
    assert case.dataset == "Own"
    assert [(row.path, row.rows, row.about) for row in list_datasets({}) if row.name == "Own"] == [
        (str(path), 1, "ours")
    ]
    settings = Settings.model_validate({"run": {"dataset": "Own", "output_dir": str(tmp_path)}})
    done = anyio.run(execute, make_plan(settings), Progress())
    assert [kept.id for kept in read_cases(done.folder)] == [case.id]


@pytest.mark.parametrize(("typed", "meant"), [("medqa", "MedQA"), ("MedQAExt", "MedQA_Ext"), ("NEMJ", "NEJM")])
def test_the_nearest_data_set_is_suggested_for_an_unknown_one(typed: str, meant: str) -> None:
    with pytest.raises(CaseError, match=f"unknown data set '{typed}'; did you mean '{meant}'"):
        load_cases(typed)


@pytest.mark.parametrize(("name", "open_cases", "every"), [("OpenOSCE", 112, 160), ("OpenOSCE_1", 64, 96)])
def test_the_lockbox_is_loaded_only_if_it_is_asked_for_and_numbers_stay(name: str, open_cases: int, every: int) -> None:
    cases, opened = load_cases(name, lockbox=True), load_cases(name)
    assert [case.scenario_id for case in cases] == list(range(every))
    assert [case.scenario_id for case in opened] == [case.scenario_id for case in cases if not case.in_lockbox]
    assert len(opened) == open_cases
    assert not any(case.annotations["lockbox"] for case in opened)


def test_a_file_that_is_all_lockbox_says_so(tmp_path: Path) -> None:
    path = str(write_rows(tmp_path / "sealed.jsonl", osce(lockbox=True), osce(truth="Gout", lockbox=True)))
    with pytest.raises(CaseError, match="all cases are in the lockbox; lockbox=True loads them"):
        load_cases(path)
    assert len(load_cases(path, lockbox=True)) == 2


def test_a_data_set_is_found_by_config_by_name_and_by_path(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", osce())
    assert resolve("MedQA", {"MedQA": str(path)}) == ("MedQA", path, OSCE)
    assert resolve("NEJM", {})[2] is NEJM
    assert resolve("Mine", {"Mine": str(path)}) == ("Mine", path, None)
    assert resolve(str(path), {}) == ("mine", path, None)
    with pytest.raises(CaseError, match="unknown data set"):
        resolve("a" * 3000, {})


def test_a_name_without_its_ending_is_answered_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_cases.jsonl").touch()
    with pytest.raises(CaseError, match=r"unknown data set 'my_cases'; did you mean the file my_cases\.jsonl\?"):
        resolve("my_cases", {})
