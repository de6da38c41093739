"""Builders shared by several test files: synthetic cases, the public data, and short ways to ask."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from agentclinic.builtin.roles import answer, report
from agentclinic.cases.formats import Row, read_case
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.answers import payload_of
from agentclinic.clinic.payloads import LaboratoryPayload, MissingTest, SilentSymptom
from agentclinic.models.base import Reply

PUBLIC = Path(__file__).parents[3] / "shared" / "data"
PUBLIC_FILES = {
    "MedQA": ("agentclinic_medqa.jsonl", 107),
    "MedQA_Ext": ("agentclinic_medqa_extended.jsonl", 214),
    "NEJM": ("agentclinic_nejm.jsonl", 15),
    "NEJM_Ext": ("agentclinic_nejm_extended.jsonl", 120),
}
needs_public_data = pytest.mark.skipif(
    not (PUBLIC / "agentclinic").is_dir(), reason="the public data sets are not at ../shared/data/agentclinic"
)


ORIGINAL = PUBLIC.parent / "original" / "files"
needs_original = pytest.mark.skipif(
    not ORIGINAL.is_dir(), reason="the original's files are not at ../shared/original/files"
)


def public_path(name: str) -> Path:
    return PUBLIC / "agentclinic" / PUBLIC_FILES[name][0]


@lru_cache(maxsize=8)
def public_cases(name: str) -> tuple[Case, ...]:
    return tuple(load_cases(name, {name: str(public_path(name))}))


@lru_cache(maxsize=8)
def bundled_cases(name: str = "OpenOSCE", *, lockbox: bool = False) -> tuple[Case, ...]:
    """The cases of a bundled data set, read once; no test may change them."""
    return tuple(load_cases(name, {}, lockbox=lockbox))


_ALL = pytest.param(1, id="all", marks=pytest.mark.slow)
EVERY = [pytest.param(3, id="a third"), _ALL]
"""For `parametrize("every", ...)`, in tests that go over the bundled cases: every third case, or under `slow` all."""
FEW = [pytest.param(15, id="a few"), _ALL]
"""The same, if a case takes long: every fifteenth."""


def osce(
    *,
    patient: Any = None,
    exam: Any = None,
    tests: Any = None,
    truth: str = "Frobisher fever",
    objective: str = "Find out what is wrong.",
    **annotations: Any,
) -> dict[str, Any]:
    """A row in the OSCE format; what is not given is unremarkable."""
    if patient is None:
        patient = {"Demographics": "40-year-old woman", "History": "The patient has a sore toe."}
    chart = {
        "Objective_for_Doctor": objective,
        "Patient_Actor": patient,
        "Physical_Examination_Findings": exam if exam is not None else {"General": "Alert."},
        "Test_Results": tests if tests is not None else {},
        "Correct_Diagnosis": truth,
    }
    return {"OSCE_Examination": chart, **annotations}


def nejm(**changes: Any) -> dict[str, Any]:
    """A row in the NEJM format."""
    row = {
        "question": "A 40-year-old man with zyxwort on biopsy. What is the diagnosis?",
        "image_url": "https://example.org/view?id=7&width=300",
        "type": "Text",
        "answers": [{"text": "Frobisher fever", "correct": True}, {"text": "Marsh fever", "correct": False}],
        "patient_info": "You are a 40-year-old man. You have had a sore toe for 3 days.",
        "physical_exams": "Temperature: 38.5 C. Toe: red.",
    }
    return {**row, **changes}


def case_of(row: dict[str, Any], dataset: str = "Test", number: int = 0) -> Case:
    return read_case(Row(Path("cases.jsonl"), number + 1, number, row), dataset)


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def ask(case: Case, question: str, silent: SilentSymptom = "deny") -> Reply:
    return answer(payload_of(case, question, silent=silent))


def order(case: Case, request: str, missing: MissingTest = "unavailable") -> Reply:
    return report(LaboratoryPayload(case.exam_facts, request, missing))
