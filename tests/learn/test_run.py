"""`agentclinic learn`: what is learned from, in parallel, once each, within limits; and how it ends."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from helpers import write_rows
from memory_support import Json, experience, failed_run, stories, story, written
from runs_support import asked, clinic, lines, point_at, run_here, settings_for, start, until, without
from scripted_server import ScriptedServer

from agentclinic.cases.registry import load_cases
from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.learn.run import estimate_learning, learn, with_learner
from agentclinic.memory.split import Split, make_split, write_split
from agentclinic.memory.store import read_lessons
from agentclinic.privacy import DataClass

LEARNER = ("--learner_llm", "scripted", "--moderator_llm", "scripted", "--quiet")


def learner(server: ScriptedServer, tmp_path: Path, *, runtime: Json | None = None, **run: Any) -> Settings:
    """Settings of a learner at the server; the judge has nothing against what it writes."""
    server.control(moderator="No")
    return with_learner(settings_for(server, tmp_path, runtime=runtime, **run), "scripted", None)


def split_of(tmp_path: Path) -> Split:
    return make_split(load_cases(str(stories(tmp_path / "stories.jsonl")), {}), 1)


def renamed(folder: Path, to: Path) -> Path:
    to.parent.mkdir()
    return folder.rename(to)


@pytest.fixture
def run(server: ScriptedServer, tmp_path: Path) -> Path:
    """Six failed encounters."""
    return anyio.run(failed_run, server, tmp_path)


@pytest.mark.anyio
async def test_failed_encounters_alone_are_learned_from_unless_all_are_wanted(
    server: ScriptedServer, tmp_path: Path
) -> None:
    gout = {"match": {"purpose": "moderator", "text_contains": "Gout"}, "reply": "Yes"}
    server.control(moderator="No", rules=[gout])
    run: Json = {"dataset": str(stories(tmp_path / "stories.jsonl")), "total_inferences": 4, "scenarios": "0-2"}
    finished, _ = await run_here(settings_for(server, tmp_path / "runs", **run))
    server.reset()
    settings, store = learner(server, tmp_path), tmp_path / "experiences.jsonl"

    learned = await learn([finished.folder], store, settings)
    assert (learned.encounters, learned.right, learned.in_test_part) == (2, 1, 0)
    assert asked(server, "learner") == 2
    assert story("Gout").id not in {lesson.source.case for lesson in read_lessons(store)}

    learned = await learn([finished.folder], store, settings, every=True)
    assert (learned.encounters, learned.right) == (3, 0)
    assert asked(server, "learner") == 3, "the others were in the store"
    assert {lesson.source.case: lesson.right for lesson in read_lessons(store)}[story("Gout").id] is True


@pytest.mark.anyio
async def test_nothing_is_learned_from_an_answer_that_could_not_be_read(server: ScriptedServer, tmp_path: Path) -> None:
    run = await failed_run(server, tmp_path, scenarios="0-1")
    first, second = (without(one, ["checksum"]) for one in lines(run / "scenarios.jsonl"))
    write_rows(run / "scenarios.jsonl", {**first, "status": "not_readable", "correct": None}, second)
    learned = await learn([run], tmp_path / "experiences.jsonl", learner(server, tmp_path), every=True)
    assert (learned.encounters, asked(server, "learner")) == (1, 1)


@pytest.mark.anyio
async def test_nothing_is_learned_from_the_test_part(server: ScriptedServer, tmp_path: Path) -> None:
    run, split = await failed_run(server, tmp_path), split_of(tmp_path)
    settings, store = learner(server, tmp_path), tmp_path / "experiences.jsonl"
    learned = await learn([run], store, settings, split=split, every=True)
    assert (learned.encounters, learned.in_test_part) == (len(split.train), len(split.test))
    assert {lesson.source.case for lesson in read_lessons(store)} == split.train
    assert {lesson.source.split for lesson in read_lessons(store)} == {split.checksum}

    write_split(tmp_path / "split.json", split)
    tested = await failed_run(server, tmp_path, split=str(tmp_path / "split.json"), part="test")
    with pytest.raises(InputError, match=f"nothing to learn from: {len(split.test)} encounters in the test part"):
        await learn([tested], tmp_path / "none.jsonl", settings, split=split)
    narrow = Split(split.train, frozenset(), 1, split.checksum)
    with pytest.raises(InputError, match="is in neither part of the split"):
        await learn([run], tmp_path / "none.jsonl", settings, split=narrow)
    assert not (tmp_path / "none.jsonl").exists()


@pytest.mark.anyio
async def test_two_runs_of_the_same_name_are_both_learned_from_and_one_given_twice_is_not(
    server: ScriptedServer, tmp_path: Path
) -> None:
    first = await failed_run(server, tmp_path, scenarios="0-1")
    server.control(doctor=["How are you?", "DIAGNOSIS READY: Flu"])
    second = await failed_run(server, tmp_path, scenarios="0-1")
    there = renamed(second, tmp_path / "other" / first.name)
    settings, store = learner(server, tmp_path), tmp_path / "experiences.jsonl"

    learned = await learn([first, first], store, settings)
    assert (learned.encounters, learned.not_tried, asked(server, "learner")) == (2, 0, 2)
    assert (await learn([there], store, settings)).encounters == 2
    assert asked(server, "learner") == 4
    assert len(lines(store)) == 4


@pytest.mark.anyio
async def test_limits_stop_it_between_two_encounters_and_what_was_spent_counts(
    server: ScriptedServer, tmp_path: Path
) -> None:
    run, store = await failed_run(server, tmp_path), tmp_path / "experiences.jsonl"
    learned = await learn([run], store, learner(server, tmp_path, runtime={"token_limit": 1}))
    assert (learned.encounters, learned.not_tried, learned.failed) == (1, 5, 0)
    assert "token limit of 1 is reached" in (learned.reason or "")
    assert asked(server, "learner") == 1
    stopped = await learn([run], store, learner(server, tmp_path, runtime={"token_limit": 1}))
    assert (stopped.not_tried, asked(server, "learner")) == (5, 1), "used up already"

    priced = learner(server, tmp_path, runtime={"max_cost": 0.000001})
    prices = priced.openai.model_copy(update={"prices": Settings.model_validate(PRICES).openai.prices})
    learned = await learn([run], tmp_path / "priced.jsonl", priced.model_copy(update={"openai": prices}))
    assert (learned.encounters, learned.not_tried) == (1, 5)
    assert "budget of $" in (learned.reason or "")

    learned = await learn([run], store, learner(server, tmp_path))
    assert (learned.encounters, learned.not_tried, asked(server, "learner")) == (6, 0, 7)


PRICES = {"openai": {"prices": {"*": {"input": 10.0, "output": 20.0}}}}


@pytest.mark.anyio
async def test_a_dry_run_sends_and_writes_nothing(server: ScriptedServer, tmp_path: Path) -> None:
    run, store = await failed_run(server, tmp_path), tmp_path / "experiences.jsonl"
    estimate = estimate_learning([run], store, learner(server, tmp_path))
    assert estimate.count == 6
    assert asked(server) == len(server.checks()) == 0
    assert not store.exists()
    await learn([run], store, learner(server, tmp_path, runtime={"token_limit": 1}))
    assert estimate_learning([run], store, learner(server, tmp_path)).count == 5


@pytest.mark.anyio
async def test_a_run_without_its_cases_is_refused(server: ScriptedServer, tmp_path: Path) -> None:
    run = await failed_run(server, tmp_path, scenarios="0")
    (run / "cases.jsonl").unlink()
    with pytest.raises(InputError, match=r"does not contain its cases \(there is no cases\.jsonl\)"):
        await learn([run], tmp_path / "experiences.jsonl", learner(server, tmp_path))
    assert asked(server) == 0


@pytest.mark.anyio
async def test_what_is_learned_from_credentialed_data_is_credentialed_and_may_not_go_anywhere(
    server: ScriptedServer, tmp_path: Path
) -> None:
    run = await failed_run(server, tmp_path, scenarios="0")
    config = run / "config.used.json"
    used = without(json.loads(config.read_text()), ["_checksum"])
    used["agentclinic"]["data_class"] = "credentialed"
    config.write_text(json.dumps(used))
    far = learner(server, tmp_path)
    far = far.model_copy(update={"openai": far.openai.model_copy(update={"base_url": "http://10.0.0.7:8000/v1"})})
    with pytest.raises(InputError, match=r"credentialed data may not go to 10\.0\.0\.7:8000"):
        await learn([run], tmp_path / "experiences.jsonl", far)

    learned = await learn([run], tmp_path / "experiences.jsonl", learner(server, tmp_path))
    assert learned.path.stat().st_mode & 0o777 == 0o600
    assert [lesson.data_class for lesson in read_lessons(learned.path)] == [DataClass.CREDENTIALED]


@pytest.mark.slow
def test_ctrl_c_stops_it_with_several_at_work_and_the_same_command_asks_only_for_the_rest(
    run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    rules = [
        {"match": {"purpose": "learner", "nth": [2, 3, 4]}, "fault": "hang"},
        written(experience("A pattern", "Ask about it.")),
    ]
    server.control(moderator="No", rules=rules)
    command = ("learn", run, "-o", "experiences.jsonl", "--workers", "3", *LEARNER)
    process = start(*command, cwd=tmp_path)
    try:
        until(lambda: asked(server, "learner") >= 4, "one lesson, and three at work", process)
        process.signal(signal.SIGINT)
        until(lambda: "press Ctrl-C again" in process.stderr, "the first Ctrl-C", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)
    assert "Traceback" not in process.stderr
    assert "5 not tried: interrupted\nRun the same command again for the rest." in process.stderr
    assert len(lines(tmp_path / "experiences.jsonl")) == 1

    done = clinic(*command, "--json", cwd=tmp_path)
    assert asked(server, "learner") == 4 + 5
    result = json.loads(done.stdout)
    assert (result["encounters"], result["experiences"], result["not_tried"]) == (6, 1, 0)
    assert result["removed"] == {"said the same as another": 5}
    assert len({line["source"]["unit"] for line in lines(tmp_path / "experiences.jsonl")}) == 6


@pytest.mark.slow
def test_a_server_that_is_gone_ends_it_with_exit_code_3_and_the_reason(
    run: Path, server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server, tries=1)
    gone = [{"match": {"purpose": "learner", "nth": [2, 3, 4, 5, 6]}, "fault": "reset"}]
    server.control(moderator="No", rules=[*gone, {"match": {"purpose": "check", "nth": [3, 4, 5]}, "fault": "reset"}])
    done = clinic("learn", run, "-o", "experiences.jsonl", *LEARNER, cwd=tmp_path, expect=3)
    assert "Run the same command again for the rest." in done.stderr
    assert "connection" in done.stderr.lower() or "reach" in done.stderr.lower()
    assert len(lines(tmp_path / "experiences.jsonl")) == 1
