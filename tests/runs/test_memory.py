"""Runs with memory: what is refused because it could leak or could have no effect, and resuming."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import case_of, write_rows
from memory_support import COUNT, DURATION, ELSEWHERE, Json, experience, lesson, store_of, stories, story_rows
from runs_support import records, run_here, settings_for, units
from scripted_server import ScriptedServer

from agentclinic.config import Settings, load_settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.memory.experience import Lesson
from agentclinic.memory.split import make_split, read_split, write_split
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume

pytestmark = pytest.mark.anyio

CASES = [case_of(row, "stories", number) for number, row in enumerate(story_rows())]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return stories(tmp_path / "stories.jsonl")


def plan_with(data: Path, store: Path, **run: Any) -> Any:
    return make_plan(Settings.model_validate({"run": {"dataset": str(data), "memory": str(store), **run}}))


def longer(store: Path, name: str, more: Lesson) -> Path:
    """A copy of a store with one lesson more."""
    copied = store.with_name(name)
    shutil.copy(store, copied)
    return store_of(copied, more)


def test_a_store_made_with_a_split_is_used_with_this_split_and_no_other(data: Path, tmp_path: Path) -> None:
    made, other = make_split(CASES, 1), make_split(CASES, 2)
    (learned, *_), (tested, *_) = made.choose(CASES, "train"), made.choose(CASES, "test")
    path, others = tmp_path / "split.json", tmp_path / "other.json"
    write_split(path, made)
    write_split(others, other)
    store = store_of(tmp_path / "good.jsonl", lesson(learned, COUNT, split=made.checksum))
    used = {"split": str(path), "part": "test"}
    assert {case.id for case in plan_with(data, store, **used).cases} == made.test

    with pytest.raises(ConfigError, match=r"were made with a split.*name it with --split FILE"):
        plan_with(data, store)
    with pytest.raises(ConfigError, match="split has no effect without part; set both"):
        plan_with(data, store, split=str(path))
    with pytest.raises(ConfigError, match="was not made with the split"):
        plan_with(data, store, split=str(others), part="test")
    mixed = longer(store, "mixed.jsonl", lesson(ELSEWHERE, DURATION))
    with pytest.raises(ConfigError, match="was not made with the split"):
        plan_with(data, mixed, **used)
    leaking = longer(store, "leak.jsonl", lesson(tested, DURATION, split=made.checksum))
    with pytest.raises(ConfigError, match="an experience from a case that is not in the train part"):
        plan_with(data, leaking, **used)
    again = longer(store, "same.jsonl", lesson(tested, COUNT, split=made.checksum))
    with pytest.raises(ConfigError, match="an experience from a case that is not in the train part"):
        plan_with(data, again, **used)


def test_a_changed_or_missing_split_is_refused(data: Path, tmp_path: Path) -> None:
    made, path = make_split(CASES, 1), tmp_path / "split.json"
    store = store_of(tmp_path / "good.jsonl", lesson(made.choose(CASES, "train")[0], COUNT, split=made.checksum))
    used = {"split": str(path), "part": "test"}
    write_split(path, made)
    whole = json.loads(path.read_text())
    moved = {"train": [*whole["train"], *whole["test"][:1]], "test": whole["test"][1:]}
    for changed in ({**whole, **moved}, {"seed": 1, **moved}):
        path.write_text(json.dumps(changed))
        with pytest.raises(ConfigError, match="has been changed since it was made"):
            plan_with(data, store, **used)
    path.unlink()
    with pytest.raises(ConfigError, match="does not exist; `agentclinic study learn` writes one"):
        plan_with(data, store, **used)
    write_split(path, made)
    row = story_rows()[0]
    row["OSCE_Examination"]["Patient_Actor"]["History"] += " He also limps."
    with pytest.raises(ConfigError, match="is in neither part"):
        plan_with(write_rows(tmp_path / "changed.jsonl", row), store, **used)


async def test_a_store_that_breaks_the_limits_is_refused_and_an_incomplete_last_line_is_not(
    server: ScriptedServer, data: Path, tmp_path: Path
) -> None:
    store = store_of(tmp_path / "long.jsonl")
    store.write_text(store.read_text().replace("a sudden onset", "a sudden onset" * 50))
    with pytest.raises(InputError, match=r"long\.jsonl line 1: experiences\.0\.suggestion: .*at most 600"):
        plan_with(data, store)
    store = store_of(tmp_path / "killed.jsonl")
    store.write_bytes(store.read_bytes().replace(b"\n", b"\r\n") + b'{"source": {"case": "\xc3')
    run: Json = {"dataset": str(data), "memory": str(store), "scenarios": "0", "total_inferences": 2}
    finished, _ = await run_here(settings_for(server, tmp_path / "out", **run))
    assert (finished.folder / "memory.jsonl").read_bytes() == store.read_bytes()
    assert plan_again(finished.folder).memory


async def test_a_doctor_that_cannot_use_memory_refuses_it(data: Path, tmp_path: Path) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    for doctor in ("full_information", "door_only"):
        with pytest.raises(ConfigError, match=f"the doctor {doctor} makes no use of it.*false null"):
            plan_with(data, store, doctor=doctor)
    for human in ({"doctor_llm": "human"}, {"inf_type": "human_doctor"}):
        with pytest.raises(ConfigError, match=r"not to a person.*false null"):
            plan_with(data, store, **human)
    prose = store_of(
        tmp_path / "prose.jsonl", lesson(ELSEWHERE, experience("Sore toe", "Ask about boats.", "Do you own a boat?"))
    )
    with pytest.raises(ConfigError, match=r"none of the 1 experiences has a step.*false null"):
        plan_with(data, prose)
    assert plan_with(data, prose, doctor_llm="scripted").memory
    assert plan_with(data, store, doctor="history_only").memory


def test_settings_of_memory_that_have_no_effect_are_refused(data: Path, tmp_path: Path) -> None:
    store = store_of(tmp_path / "experiences.jsonl")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"memory": None, "memory_llm": "x"}, "memory_llm has no effect without memory"),
        ({"memory": None, "memory_retrieval": "shuffled"}, "memory_retrieval has no effect without memory"),
        ({"memory_retrieval": "embeddings"}, "memory_retrieval embeddings has no effect without embedding_llm"),
        ({"embedding_llm": "x"}, "embedding_llm has no effect without memory_retrieval embeddings"),
        ({"memory_llm": "builtin"}, "memory_llm: builtin cannot do this"),
        ({"memory_llm": "x", "memory_retrieval": "shuffled"}, "memory_llm has no effect with"),
    ]
    for run, problem in refused:
        with pytest.raises(ConfigError, match=problem):
            make_plan(Settings.model_validate({"run": {"dataset": str(data), "memory": str(store), **run}}))


async def test_memory_made_of_credentialed_data_makes_the_run_credentialed(data: Path, tmp_path: Path) -> None:
    store = store_of(tmp_path / "private.jsonl", lesson(ELSEWHERE, COUNT, data_class=DataClass.CREDENTIALED))
    settings = {
        "run": {"dataset": str(data), "memory": str(store), "doctor_llm": "some"},
        "openai": {"base_url": "http://10.0.0.7:8000/v1"},
    }
    plan = make_plan(Settings.model_validate(settings))
    assert {case.data_class for case in plan.cases} != {DataClass.CREDENTIALED}
    assert plan.data_class is DataClass.CREDENTIALED
    async with Models(plan.settings, plan.data_class) as models:
        with pytest.raises(ConfigError, match=r"credentialed data may not go to 10\.0\.0\.7:8000"):
            models.admit()

    run: Json = {"dataset": str(data), "memory": str(store), "scenarios": "0", "total_inferences": 2}
    finished, (record,) = await run_here(settings_for(None, tmp_path / "out", **run))
    assert record["data_class"] == "credentialed"
    assert {path.stat().st_mode & 0o077 for path in (finished.folder, *finished.folder.iterdir())} == {0}
    assert plan_again(finished.folder).data_class is DataClass.CREDENTIALED


async def test_a_run_is_resumed_with_its_own_copies_of_memory_and_split(
    server: ScriptedServer, data: Path, tmp_path: Path
) -> None:
    made, path = make_split(CASES, 1), tmp_path / "split.json"
    write_split(path, made)
    store = store_of(tmp_path / "good.jsonl", lesson(made.choose(CASES, "train")[0], COUNT, split=made.checksum))
    run: Json = {"dataset": str(data), "memory": str(store), "split": str(path), "part": "test", "total_inferences": 2}
    finished, entries = await run_here(settings_for(server, tmp_path / "out", **run))
    assert (finished.folder / "memory.jsonl").read_bytes() == store.read_bytes()
    assert read_split(finished.folder / "split.json") == made
    journal = finished.folder / "scenarios.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    for gone in (store, path):
        gone.unlink()

    await resume(plan_again(finished.folder), finished.folder, Progress())

    assert units(records(finished.folder)) == units(entries)
    assert {record["memory"] for record in records(finished.folder)} == {entries[0]["memory"]}
    used = load_settings(finished.folder / "config.used.json")
    with pytest.raises(ConfigError, match=r"split\.json does not exist"):
        make_plan(used)
    write_split(path, made)
    with pytest.raises(ConfigError, match=r"good\.jsonl cannot be read .*`memory import` makes one"):
        make_plan(used)

    store_of(finished.folder / "memory.jsonl", lesson(ELSEWHERE, DURATION, split=made.checksum))
    with pytest.raises((InputError, ConfigError)):
        plan_again(finished.folder)
