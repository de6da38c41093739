"""What the tests of memory share: experiences in short notation, stores, and a small data set of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from helpers import case_of, osce, write_rows
from runs_support import run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.cases.model import Case
from agentclinic.memory.experience import Experience, Lesson, source_of, step_of
from agentclinic.memory.store import append

Json = dict[str, Any]


def experience(
    observation: str, suggestion: str, what: str = "", kind: Literal["question", "test"] = "question"
) -> Experience:
    """An experience, with the step in a model's words."""
    return Experience(observation=observation, suggestion=suggestion, step=step_of(kind, what))


DURATION = experience(
    "Throbbing headache", "Ask since when: a sudden onset is dangerous.", "Since when have you had this complaint?"
)
COUNT = experience(
    "Headache for two days", "Order a complete blood count, because of anemia.", "Complete blood count", "test"
)
TOE = experience("Swollen toe with urate crystals", "Ask about beer, which precedes attacks.", "Do you drink beer?")


def lesson(case: Case, *experiences: Experience, split: str | None = None, **more: Any) -> Lesson:
    """What was learned from an encounter with a case."""
    source = source_of(case, "earlier", f"{case.scenario_id}:{case.id}:0", split)
    return Lesson(source=source, model="scripted", prompt="0123", experiences=experiences, **more)


def store_of(path: Path, *lessons: Lesson) -> Path:
    """A store with these lessons; by default one, with the three experiences above, from a case of its own."""
    for each in lessons or (lesson(ELSEWHERE, DURATION, COUNT, TOE),):
        append(path, each)
    return path


ELSEWHERE = case_of(
    osce(
        patient={
            "Demographics": "61-year-old man",
            "History": "No other case of these tests tells what this man has lived through.",
        },
        truth="Frobisher fever",
    ),
    "Elsewhere",
)

_STORIES: Mapping[str, tuple[str, str, str, str]] = {
    "Gout": (
        "55-year-old man",
        "His left big toe became red, hot and very painful last night after a long dinner with beer.",
        "Severe toe pain",
        "Uric acid 9.2 mg/dL",
    ),
    "Acute appendicitis": (
        "19-year-old woman",
        "Pain began around the navel and moved to the right lower abdomen within twelve hours. She vomited twice.",
        "Abdominal pain",
        "White cells 15,200 per microliter",
    ),
    "Asthma": (
        "9-year-old boy",
        "He coughs at night and wheezes when he runs in cold air. His mother has hay fever.",
        "Wheezing",
        "Peak flow 60 percent of predicted",
    ),
    "Hypothyroidism": (
        "47-year-old woman",
        "Over a year she has gained weight, feels cold all the time and is constipated.",
        "Fatigue",
        "Thyrotropin 38 mIU/L",
    ),
    "Pulmonary embolism": (
        "33-year-old woman",
        "Since a long flight she has been short of breath, with sharp chest pain when breathing in.",
        "Shortness of breath",
        "D-dimer 2,400 ng/mL",
    ),
    "Migraine": (
        "26-year-old woman",
        "Half of her head throbs for a day each month, and light hurts her eyes.",
        "Headache",
        "Computed tomography of the head unremarkable",
    ),
}


def story_rows() -> list[Json]:
    """Six cases that have neither a diagnosis nor a story in common."""
    return [
        osce(
            patient={"Demographics": person, "History": told, "Symptoms": {"Primary_Symptom": symptom}},
            tests={"Blood_Tests": result},
            truth=truth,
            objective=f"Assess a patient with {symptom.lower()}.",
        )
        for truth, (person, told, symptom, result) in _STORIES.items()
    ]


def stories(path: Path) -> Path:
    """The same as a data set."""
    return write_rows(path, *story_rows())


def story(truth: str) -> Case:
    """One of them."""
    place = list(_STORIES).index(truth)
    return case_of(story_rows()[place], "stories", place)


async def failed_run(server: ScriptedServer, folder: Path, **settings: Any) -> Path:
    """The folder of a run on the six stories in which every diagnosis is wrong; the server then forgets it."""
    server.control(moderator="No")
    data = folder / "stories.jsonl"
    given = {"dataset": str(data if data.exists() else stories(data)), "total_inferences": 4, **settings}
    finished, _ = await run_here(settings_for(server, folder / "runs", **given))
    server.reset()
    return finished.folder


def written(*experiences: Experience, **match: Any) -> Json:
    """A rule: what the learner writes."""
    told = [
        {
            "observation": each.observation,
            "suggestion": each.suggestion,
            "kind": each.step.kind if each.step else "question",
            "what": each.step.what if each.step else "",
        }
        for each in experiences
    ]
    return {"match": {"purpose": "learner", **match}, "reply": json.dumps({"experiences": told})}
