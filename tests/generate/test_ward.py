"""From invented tables to cases on the command line: every history source, each labeled as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mimic_rows import ward
from runs_support import clinic, lines


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ward")
    ward().write(folder / "mimic-iv")
    clinic("generate", "mimic", "--base-dir", "mimic-iv", "--output", "made.jsonl", "--workers", "3", cwd=folder)
    return folder / "made.jsonl"


def case(made: Path, source: str) -> dict[str, Any]:
    return next(row for row in lines(made) if row["history_source"] == source)


@pytest.mark.slow
def test_every_history_source_occurs_and_is_counted(made: Path) -> None:
    manifest = json.loads(made.with_name("made.manifest.json").read_text())
    assert set(manifest["by_history_source"]) == {"note", "triage", "codes", "none"}
    assert manifest["counts"]["made"] == manifest["counts"]["chosen"] == 6
    assert {row["data_class"] for row in lines(made)} == {manifest["data_class"]}


def test_a_note_becomes_a_history(made: Path) -> None:
    patient = case(made, "note")["OSCE_Examination"]["Patient_Actor"]
    assert patient["History"]
    assert "not on record" not in patient["History"]
    assert "___" not in json.dumps(patient)


def test_triage_words_are_symptoms_and_earlier_codes_are_past_history(made: Path) -> None:
    triage = case(made, "triage")["OSCE_Examination"]
    assert triage["Patient_Actor"]["Symptoms"] == {
        "Primary_Symptom": "Chest pain",
        "Secondary_Symptoms": ["Dyspnea"],
    }
    assert triage["Patient_Actor"]["Medications"] == "Takes aspirin."
    assert triage["Physical_Examination_Findings"]["Vital_Signs"]["Blood_Pressure"].startswith("150/88 mmHg")
    codes = case(made, "codes")["OSCE_Examination"]["Patient_Actor"]
    assert "Diabetes mellitus" in codes["Past_Medical_History"]
    assert "Symptoms" not in codes


def test_a_case_with_nothing_on_record_is_labs_only(made: Path) -> None:
    bare = case(made, "none")
    assert bare["labs_only"]
    assert set(bare["OSCE_Examination"]["Patient_Actor"]) == {"Demographics", "History"}
    assert "not on record" in bare["OSCE_Examination"]["Objective_for_Doctor"]


@pytest.mark.slow
def test_the_file_is_clean_and_can_be_enlarged(made: Path, tmp_path: Path) -> None:
    checked = json.loads(clinic("data", "check", str(made), "--json", cwd=tmp_path).stdout)["files"][0]
    assert (checked["rows"], checked["errors"], checked["leaks"]) == (6, [], [])
    output = tmp_path / "grown.jsonl"
    base = ["generate", "mimic", "--base-dir", str(made.parent / "mimic-iv"), "--output", str(output), "--quiet"]
    clinic(*base, "--limit", "2", cwd=tmp_path)
    first = output.read_bytes()
    clinic(*base, "--limit", "6", cwd=tmp_path)
    assert output.read_bytes().startswith(first)
    assert len(lines(output)) == 6


def test_cases_with_other_hours_are_not_mixed(made: Path, tmp_path: Path) -> None:
    base = ["generate", "mimic", "--base-dir", str(made.parent / "mimic-iv"), "--output", str(made), "--quiet"]
    before = made.read_bytes()
    done = clinic(*base, "--hours", "6", cwd=tmp_path, expect=2)
    assert "its cases were made with other settings (changed: hours)" in done.stderr
    assert made.read_bytes() == before
