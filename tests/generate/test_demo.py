"""The MIMIC-IV demo, offline, from tables to cases: counted, traced to its rows, playable."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from generate_support import DEMO, keys
from runs_support import clinic, lines

from agentclinic.cases.registry import load_cases
from agentclinic.generate.checks import numbers
from agentclinic.generate.files import Files
from agentclinic.lint.check import check_file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DEMO.is_dir(), reason="the MIMIC-IV demo is not at ../shared/data/mimic-iv-demo"),
]

COMMAND = ["generate", "mimic", "--base-dir", str(DEMO), "--limit", "100", "--workers", "8", "--quiet"]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cases of the demo, made by the command line."""
    folder = tmp_path_factory.mktemp("demo")
    clinic(*COMMAND, "--output", "demo.jsonl", cwd=folder)
    return folder / "demo.jsonl"


def manifest(output: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Files(output).manifest.read_text())
    return content


def test_at_least_fifty_valid_cases_are_made_offline_and_counted(output: Path) -> None:
    counts = manifest(output)
    assert counts["counts"]["made"] >= 50
    assert counts["counts"]["made"] + counts["counts"]["quarantined"] == counts["counts"]["chosen"]
    assert sum(counts["by_history_source"].values()) == counts["counts"]["made"] == len(set(keys(output)))
    assert set(counts["by_history_source"]) <= {"codes", "none"}, "the demo has neither notes nor triage"
    assert len(counts["by_chapter"]) >= 10
    assert counts["data_class"] == "open-demo"


def test_no_case_names_its_diagnosis_and_every_case_can_be_read(output: Path) -> None:
    report = check_file(output, "MIMICIV")
    assert (report.errors, report.leaks, report.duplicates) == ([], [], [])
    assert all(case.annotations["data_class"] == "open-demo" for case in report.cases)


def test_no_case_has_symptoms_because_none_are_on_record(output: Path) -> None:
    for row in lines(output):
        patient = row["OSCE_Examination"]["Patient_Actor"]
        assert "not on record" in patient["History"]
        assert not {"Symptoms", "Review_of_Systems", "Social_History", "Family_History"} & set(patient)
        assert row["labs_only"] == (row["history_source"] == "none") == ("Past_Medical_History" not in patient)


@cache
def rows_of(table: str, identity: str) -> dict[str, dict[str, str]]:
    with gzip.open(DEMO / "hosp" / f"{table}.csv.gz", "rt", newline="") as file:
        return {row[identity]: row for row in csv.DictReader(file)}


def test_every_number_in_every_lab_result_is_in_the_row_it_is_traced_to(output: Path) -> None:
    """Read again with the csv module: value, range and patient are those of one row of labevents."""
    events, items = rows_of("labevents", "labevent_id"), rows_of("d_labitems", "itemid")
    traces = {entry["key"]: entry["rows"] for entry in lines(Files(output).trace)}
    seen: Counter[str] = Counter()
    for case in load_cases("MIMICIV", {"MIMICIV": str(output)}):
        subjects = set()
        for fact in case.exam_facts:
            rows = traces[case.annotations["generation"]["key"]][fact.path]
            assert rows, fact.path
            if not rows[0].startswith("labevents:"):
                continue
            row = events[rows[0].partition(":")[2]]
            subjects.add(row["subject_id"])
            result, _, time = fact.text.rpartition(", ")
            told = " ".join((row["value"], row["valuenum"], row["comments"], row["valueuom"]))
            told += f" {row['ref_range_lower']} {row['ref_range_upper']}"
            assert numbers(result) <= numbers(told), (fact.path, fact.text)
            assert fact.heads[-1] == items[row["itemid"]]["label"].replace("_", " ").replace("/", " ").strip()
            seen["labs"] += 1
            seen["timed"] += bool(time.endswith("admission"))
        assert len(subjects) <= 1, "a case mixes patients"
    assert seen["labs"] == seen["timed"] > 1000


def test_no_identifier_or_date_of_the_demo_is_in_a_case(output: Path) -> None:
    text = output.read_text()
    for table, identity in (("patients", "subject_id"), ("admissions", "hadm_id")):
        for identifier in rows_of(table, identity):
            assert identifier not in text
    for admission in rows_of("admissions", "hadm_id").values():
        assert admission["admittime"][:10] not in text
    assert "___" not in text


def test_the_label_is_the_title_of_the_principal_code_by_code_and_version(output: Path) -> None:
    with gzip.open(DEMO / "hosp" / "d_icd_diagnoses.csv.gz", "rt", newline="") as file:
        titles = {(row["icd_code"], int(row["icd_version"])): row["long_title"] for row in csv.DictReader(file)}
    for row in lines(output):
        truth = row["truth"]
        assert row["OSCE_Examination"]["Correct_Diagnosis"] == titles[truth["code"], truth["icd_version"]]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_cases_and_a_second_call_changes_nothing(output: Path, tmp_path: Path) -> None:
    before = output.read_bytes()
    clinic(*COMMAND, "--output", str(output), cwd=tmp_path)
    assert output.read_bytes() == before
    again = tmp_path / "again.jsonl"
    clinic(*COMMAND[:-1], "--quiet", "--output", str(again), cwd=tmp_path)
    ours = sorted(json.dumps(row["OSCE_Examination"], sort_keys=True) for row in lines(output))
    theirs = sorted(json.dumps(row["OSCE_Examination"], sort_keys=True) for row in lines(again))
    assert ours == theirs
    assert not set(keys(output)) & set(keys(again)), "another file, another salt, other keys"


def test_the_cases_can_be_played_and_no_symptom_is_denied(output: Path, tmp_path: Path) -> None:
    flags = ["--dataset", str(output), "--num_scenarios", "5", "--workers", "2", "--output_dir", "runs", "--json"]
    played = json.loads(clinic("run", *flags, "--quiet", cwd=tmp_path).stdout)
    assert (played["presented"], played["missing"]) == (5, 0)
    for record in lines(Path(tmp_path / played["run"]) / "scenarios.jsonl"):
        assert record["silent_symptom"] == "unknown"
        said = [turn["text"] for turn in record["transcript"] if turn["role"] == "patient"]
        assert not any("have not noticed" in text for text in said)
