"""The data class of a case: stated in the row, implied by the data set, and the strictest one if in doubt."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers import osce

from agentclinic import privacy
from agentclinic.cases.registry import DATASETS, load_cases
from agentclinic.compat.scenarios import ScenarioLoaderMIMICIV, ScenarioMedQA, ScenarioMIMICIV
from agentclinic.config import Settings
from agentclinic.errors import CaseError
from agentclinic.privacy import DataClass
from agentclinic.runs.plan import make_plan

NEJM = {"patient_info": "A 50-year-old man coughs.", "answers": [{"text": "Croup", "correct": True}]}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def plan_class(dataset: str, **paths: str) -> DataClass:
    settings = Settings.model_validate({"run": {"dataset": dataset}, "datasets": paths})
    return make_plan(settings).data_class


@pytest.mark.parametrize("name", DATASETS)
def test_only_mimic_is_credentialed_if_rows_do_not_state_a_class(name: str, tmp_path: Path) -> None:
    row = NEJM if name.startswith("NEJM") else osce()
    path = write(tmp_path / "cases.jsonl", row)
    expected = DataClass.CREDENTIALED if name == "MIMICIV" else DataClass.PUBLIC
    assert [case.data_class for case in load_cases(name, {name: str(path)})] == [expected]
    assert privacy.strictest_seen() is expected


@pytest.mark.parametrize("said", [DataClass.SYNTHETIC, DataClass.OPEN_DEMO, DataClass.CREDENTIALED])
@pytest.mark.parametrize("place", ["row", "chart"])
@pytest.mark.parametrize("name", ["MIMICIV", "MedQA"])
def test_a_row_can_state_its_class(name: str, place: str, said: DataClass, tmp_path: Path) -> None:
    row = osce()
    (row if place == "row" else row["OSCE_Examination"])["data_class"] = said.value
    (case,) = load_cases(name, {name: str(write(tmp_path / "cases.jsonl", row))})
    assert case.data_class is said
    assert privacy.silent() == (said is DataClass.CREDENTIALED)


def test_the_stricter_of_two_classes_counts(tmp_path: Path) -> None:
    row = osce()
    row["data_class"] = "synthetic"
    row["OSCE_Examination"]["data_class"] = "credentialed"
    assert plan_class(str(write(tmp_path / "cases.jsonl", row))) is DataClass.CREDENTIALED


@pytest.mark.parametrize("value", ["Credentialed", "secret", "", None, 3, True, ["public"], {"a": 1}])
def test_an_unknown_class_is_refused_with_file_and_line(value: object, tmp_path: Path) -> None:
    path = write(tmp_path / "cases.jsonl", osce(), {**osce(), "data_class": value})
    with pytest.raises(CaseError, match=r"cases\.jsonl line 2: data_class: .* is not a data class"):
        load_cases(str(path))


def test_the_nearest_class_is_suggested(tmp_path: Path) -> None:
    path = write(tmp_path / "cases.jsonl", {**osce(), "data_class": "opendemo"})
    with pytest.raises(CaseError, match="did you mean 'open-demo'"):
        load_cases(str(path))


def test_data_from_patients_cannot_be_public(tmp_path: Path) -> None:
    path = write(tmp_path / "cases.jsonl", {**osce(), "data_class": "public"})
    with pytest.raises(CaseError, match="line 1: data_class: cases made from patients are not public"):
        load_cases("MIMICIV", {"MIMICIV": str(path)})
    assert load_cases(str(path))[0].data_class is DataClass.PUBLIC


def test_the_strictest_row_counts_for_the_whole_file_even_if_it_is_not_selected(tmp_path: Path) -> None:
    rows = [{**osce(truth=f"Fever {n}"), "data_class": "synthetic"} for n in range(3)]
    rows[2]["data_class"] = "credentialed"
    path = write(tmp_path / "cases.jsonl", *rows)
    settings = Settings.model_validate({"run": {"dataset": str(path), "scenarios": "0"}})
    assert make_plan(settings).data_class is DataClass.CREDENTIALED


@pytest.mark.parametrize(
    "name", ["agentclinic_mimiciv.jsonl", "my-MIMIC-cases.jsonl", "agentclinic_mimiciv_extended.json"]
)
def test_a_file_called_mimic_is_credentialed_by_path(name: str, tmp_path: Path) -> None:
    assert plan_class(str(write(tmp_path / name, osce()))) is DataClass.CREDENTIALED


def test_a_name_for_mimic_in_the_config_is_credentialed(tmp_path: Path) -> None:
    path = write(tmp_path / "cases.jsonl", osce())
    assert plan_class("mimic_small", mimic_small=str(path)) is DataClass.CREDENTIALED
    assert plan_class("small", small=str(path)) is DataClass.PUBLIC


@pytest.mark.parametrize("way", ["same", "path", "link", "hard link", "public name"])
def test_the_mimic_file_is_credentialed_under_any_name(way: str, tmp_path: Path) -> None:
    path = write(tmp_path / "cases.jsonl", osce())
    other = tmp_path / "other.jsonl"
    if way == "link":
        other.symlink_to(path)
    elif way == "hard link":
        os.link(path, other)
    else:
        other = path
    name = {"path": str(path), "public name": "MedQA"}.get(way, "mine")
    named = {} if way == "path" else {name: str(other)}
    assert plan_class(name, MIMICIV=str(path), **named) is DataClass.CREDENTIALED


@pytest.mark.parametrize("key", ["subject_id", "hadm_id", "stay_id", "HADM_ID"])
def test_a_row_with_a_mimic_identifier_is_credentialed(key: str, tmp_path: Path) -> None:
    assert plan_class(str(write(tmp_path / "a.jsonl", {**osce(), key: 1}))) is DataClass.CREDENTIALED
    row = {**osce(), key: 1, "data_class": "open-demo"}
    assert plan_class(str(write(tmp_path / "b.jsonl", row))) is DataClass.OPEN_DEMO


@pytest.mark.parametrize("key", ["subjectId", "Subject ID", "mimic.hadm-id", "ｓubject_id"])
def test_an_identifier_is_found_in_any_spelling_and_at_any_depth(key: str, tmp_path: Path) -> None:
    row = osce()
    row["OSCE_Examination"]["Provenance"] = {"rows": [{key: 1}]}
    assert plan_class(str(write(tmp_path / "a.jsonl", row))) is DataClass.CREDENTIALED
    assert plan_class(str(write(tmp_path / "b.jsonl", {**osce(), "Subject_Idea": 1}))) is DataClass.PUBLIC


def test_a_class_stated_deep_in_a_row_counts_if_it_is_the_strictest(tmp_path: Path) -> None:
    row = {**osce(), "data_class": "synthetic", "Source": {"dataClass": "credentialed"}}
    assert plan_class(str(write(tmp_path / "cases.jsonl", row))) is DataClass.CREDENTIALED


def test_a_row_that_states_two_classes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    for first in ("data_class", "data\\u005fclass"):
        path.write_text(json.dumps(osce())[:-1] + f', "{first}": "credentialed", "data_class": "public"}}\n')
        with pytest.raises(CaseError, match=r"cases\.jsonl line 1: data_class occurs twice"):
            load_cases(str(path))


@pytest.mark.parametrize("folder", ["mimic-iv", "MIMICIV/3.1/hosp"])
def test_a_file_in_a_folder_called_mimic_is_credentialed_under_any_name(folder: str, tmp_path: Path) -> None:
    path = write(tmp_path / folder / "cases.jsonl", osce())
    assert plan_class(str(path)) is DataClass.CREDENTIALED


def test_a_hard_link_to_a_file_called_mimic_is_credentialed(tmp_path: Path) -> None:
    for name, path in {"one": "mimic.jsonl", "two": "mimic-iv/cases.jsonl"}.items():
        os.link(write(tmp_path / path, osce(truth=name)), tmp_path / f"{name}.jsonl")
        assert plan_class(str(tmp_path / f"{name}.jsonl")) is DataClass.CREDENTIALED


def test_a_link_to_a_file_called_mimic_is_credentialed(tmp_path: Path) -> None:
    write(tmp_path / "mimic.jsonl", osce())
    (tmp_path / "mine.jsonl").symlink_to("mimic.jsonl")
    assert plan_class(str(tmp_path / "mine.jsonl")) is DataClass.CREDENTIALED


def test_the_original_scenario_classes_have_a_data_class(tmp_path: Path) -> None:
    path = write(tmp_path / "cases.jsonl", osce())
    assert ScenarioLoaderMIMICIV(path).get_scenario(0).case.data_class is DataClass.CREDENTIALED
    assert ScenarioMIMICIV(osce()).case.data_class is DataClass.CREDENTIALED
    assert ScenarioMedQA(osce()).case.data_class is DataClass.PUBLIC


def test_the_class_does_not_change_the_id_of_a_case(tmp_path: Path) -> None:
    rows = [osce(), {**osce(), "data_class": "synthetic"}]
    first, second = load_cases(str(write(tmp_path / "cases.jsonl", *rows)))
    assert first.id == second.id
