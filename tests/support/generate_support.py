"""Shared by the tests of case generation: invented sources and questions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runs_support import ROOT, lines

from agentclinic.builtin import Builtin
from agentclinic.cases.model import WrittenStory
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings
from agentclinic.generate.case import Prepared, case_row, prepare
from agentclinic.generate.make import Made, Work, make
from agentclinic.generate.source import Culture, Measured, Selection, SourceCase, Truth
from agentclinic.models.base import Model
from agentclinic.models.retry import Clock
from agentclinic.privacy import DataClass
from agentclinic.runs.progress import Progress

DEMO = ROOT.parent / "shared" / "data" / "mimic-iv-demo"

STORY = WrittenStory(
    objective="Assess and diagnose the patient presenting with belly cramps.",
    history="The patient has had belly cramps for 3 days and slept badly.",
    primary_symptom="Belly cramps",
    secondary_symptoms=["Slept badly"],
    past_medical_history="Gallstones removed 7 years ago.",
    medications="Takes cetirizine.",
    social_history="Works as a baker.",
    family_history="A sister has hay fever.",
    review_of_systems="No change of weight.",
)


def source(truth: Truth | None = None, **changes: Any) -> SourceCase:
    """An invented stay that `STORY` can be told from."""
    plain = SourceCase(
        key="k1",
        source="mimic",
        data_class=DataClass.OPEN_DEMO,
        truth=truth or Truth("Frobisher fever", "Q998", 10, "Invented diseases"),
        age=54,
        sex="Female",
        arrival="came through the emergency department",
        history_source="note",
        story=(
            "History of present illness: belly cramps for 3 days, slept badly, no change of weight.",
            "Social history: works as a baker.",
            "Family history: a sister has hay fever.",
        ),
        past=("Gallstones removed 7 years ago",),
        drugs=("cetirizine",),
        vitals=(
            Measured("Temperature", "38.4", "°C", group="Vital_Signs", hours=0.5, rows=("triage:0.5",)),
            Measured("Heart Rate", "96", "bpm", group="Vital_Signs", hours=0.5, rows=("triage:0.5",)),
        ),
        labs=(
            Measured("Sodium", "131", "mEq/L", "135", "147", "abnormal", "Blood Chemistry", 1.25, ("labevents:11",)),
            Measured("Platelet Count", "1,210", "K/uL", "150", "440", "", "Blood Hematology", 1.25, ("labevents:12",)),
        ),
        cultures=(
            Culture(
                "URINE",
                "URINE CULTURE",
                "FICTIVIBACTER MODELLII",
                (("GENTAMICIN", "S"), ("AMPICILLIN", "R")),
                hours=2.0,
                rows=("microbiologyevents:21", "microbiologyevents:22"),
            ),
        ),
        identifiers=("90000001", "80000002", "2187-03-05"),
    )
    return replace(plain, **changes)


def good(of: SourceCase | None = None, story: WrittenStory | None = STORY) -> tuple[dict[str, Any], Prepared]:
    """A case that passes every check, and what it was prepared from."""
    prepared = prepare(of or source())
    return case_row(prepared, story, {"digest": "d"}), prepared


def work(
    output: Path,
    sources: list[SourceCase],
    *,
    selection: Mapping[str, Any] | None = None,
    workers: int = 2,
    engine: str = "local",
    **changes: Any,
) -> Work:
    """The work of making cases from these sources."""

    def read(done: Collection[str]) -> Iterator[SourceCase]:
        return (one for one in sources if one.key not in done)

    keys = tuple(dict.fromkeys(one.key for one in sources))
    chosen = Selection(DataClass.OPEN_DEMO, keys, read, settings={"hours": 24.0})
    settings = Settings.model_validate({"run": {"workers": workers, "engine": engine, "check": False}})
    plain = Work("mimic", output, replace(chosen, **selection or {}), "builtin", load_prompt("writer"))
    return replace(plain, **{"settings": settings, **changes})


def sources(count: int, **changes: Any) -> list[SourceCase]:
    """Invented stays, each with its own key and age."""
    return [source(key=f"k{number:03}", age=20 + number % 60, **changes) for number in range(count)]


async def made(job: Work, model: Model | None = None, clock: Clock | None = None, **options: Any) -> Made:
    """Make them in this process, without output."""
    return await make(job, Progress(), model=model or Builtin(), clock=clock, **options)


def keys(path: Path) -> list[str]:
    """The keys in a file of cases, in order; every line must be complete."""
    return [row["generation"]["key"] for row in lines(path)]


def question(number: int = 0, **changes: Any) -> dict[str, Any]:
    """An invented question in MedQA's format."""
    row = {
        "question": (
            f"A {20 + number % 60}-year-old woman comes to the physician because of itching of both elbows for "
            f"{2 + number} weeks. She works as a gardener. Her temperature is 36.{number % 9}°C (97.9°F) and blood "
            "pressure is 118/76 mm Hg. Physical examination shows silvery plaques over both elbows. Serum uric acid "
            "is 4.1 mg/dL. Which of the following is the most likely diagnosis?"
        ),
        "answer": "Psoriasis",
        "options": {"A": "Scabies", "B": "Psoriasis", "C": "Lichen planus", "D": "Atopic dermatitis"},
        "answer_idx": "B",
        "meta_info": "step2&3",
    }
    return {**row, **changes}


def write_questions(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
