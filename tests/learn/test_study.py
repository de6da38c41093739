"""The study of learning: from the split to the table, resumed and repeated, with nothing of a test case leaked."""

from __future__ import annotations

import inspect
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from helpers import write_rows
from memory_support import Json, experience, stories, story_rows, written
from runs_support import lines, own_cases, settings_for
from scripted_server import ScriptedServer

from agentclinic.cli.study import learn_command
from agentclinic.config import Settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.study import ARMS, SHUFFLED, TRAIN, WITH, WITHOUT, Stopped, plan_study, play_study, study_report
from agentclinic.memory.split import read_split
from agentclinic.runs.progress import Progress

SMALL: Json = {"total_inferences": 4, "seed": 3}


def builtin(tmp_path: Path, **run: Any) -> Settings:
    """Six of our own cases in the builtin clinic, a few turns each."""
    data = tmp_path / "own_cases.jsonl"
    given = {"dataset": str(data if data.exists() else own_cases(tmp_path, 6)), **SMALL, **run}
    return settings_for(None, tmp_path / "unused", **given)


def play(folder: Path, settings: Settings, learner: str, *, every: bool = False) -> None:
    command = inspect.unwrap(learn_command)  # without the flags: the settings are given here
    command(read=lambda: settings, output=folder, learner_llm=learner, all_=every, quiet=True)


def studied(folder: Path, settings: Settings, learner: str = "builtin") -> Json:
    """Play a study to its end; what it wrote."""
    play(folder, settings, learner)
    report: Json = json.loads((folder / "study.json").read_text())
    return report


def records(folder: Path, settings: Settings) -> dict[str, list[Json]]:
    """The records of each arm."""
    study = plan_study(folder, settings, ("builtin", None), every=False)
    return {name: lines(study.arm(name).folder / "scenarios.jsonl") for name in ARMS}


@pytest.mark.slow
def test_a_study_end_to_end_again_with_the_same_seed_and_not_with_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, folder = builtin(tmp_path), tmp_path / "one"
    report = studied(folder, settings)
    printed = capsys.readouterr().out
    assert printed == (folder / "study.md").read_text()
    assert (folder / "report.html").is_file()
    split = read_split(folder / "split.json")
    played = records(folder, settings)
    assert {record["case_hash"] for record in played[TRAIN]} == split.train
    for arm in (WITHOUT, WITH, SHUFFLED):
        assert {record["case_hash"] for record in played[arm]} == split.test
    assert {record["memory"] for record in (*played[TRAIN], *played[WITHOUT])} == {None}
    assert {record["memory"].split()[0] for record in played[WITH]} == {"bm25"}
    assert {record["memory"].split()[0] for record in played[SHUFFLED]} == {"shuffled"}

    assert (report["train"], report["test"], report["split"]) == (len(split.train), len(split.test), split.checksum)
    assert [(each["baseline"], each["arm"]) for each in report["comparisons"]] == [
        (WITHOUT, WITH),
        (WITHOUT, SHUFFLED),
        (SHUFFLED, WITH),
    ]
    assert report["experiences"] == sum(len(line["experiences"]) for line in lines(folder / "experiences.jsonl")) > 0
    assert report["use"][WITH]["followed"] > 0, "the builtin doctor follows steps"
    assert sum(group["cases"] for group in report["by_similarity"]) == len(split.test)
    for part in ("accuracy (strict)", "turns", "key findings found", "Fixed by memory", "Broken by memory"):
        assert part in printed
    assert "says nothing about language models" in printed

    again = studied(tmp_path / "two", settings)
    assert again == report
    assert (tmp_path / "two" / "experiences.jsonl").read_text() == (folder / "experiences.jsonl").read_text()

    with pytest.raises(InputError, match="is the split of other cases or another seed"):
        studied(folder, builtin(tmp_path, seed=4))
    journal = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    studied(folder, settings)
    for learner, every in (("replay:other.jsonl", False), ("builtin", True)):
        with pytest.raises(InputError, match="made with another learner or prompt, or without --all"):
            play(folder, settings, learner, every=every)
    assert {path: path.read_bytes() for path in folder.rglob("*.jsonl")} == journal, "nothing is played again"


@pytest.mark.anyio
@pytest.mark.slow
async def test_a_limit_on_tokens_is_for_the_whole_study_and_the_same_command_continues(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(moderator="No", rules=[written(experience("Headache for two days", "Ask about light."))])
    data, folder = str(stories(tmp_path / "stories.jsonl")), tmp_path / "study"

    async def play(limit: int | None) -> str | None:
        """Why it stopped; None at its end."""
        settings = settings_for(server, tmp_path, runtime={"token_limit": limit}, dataset=data, **SMALL)
        study = plan_study(folder, settings, ("scripted", None), every=False)
        try:
            await play_study(study, Progress, lambda _: None)
        except Stopped as stopped:
            return str(stopped)
        return None

    def used() -> list[int]:
        """Tokens of each encounter, and of each lesson."""
        files = [*folder.rglob("scenarios.jsonl"), *folder.glob("experiences.jsonl")]
        return [_tokens(entry) for path in files for entry in lines(path)]

    assert "encounters of the arm 'train' not played" in (await play(1) or "")
    (one,) = used()
    stopped = []
    for more in (4 * one, 1, 1, 1, 1, 3 * one, 1):  # one more encounter or lesson, where it is 1
        before, limit = len(used()), sum(used()) + more
        stopped.append(await play(limit) or "")
        assert f"the token limit of {limit:,} is reached" in stopped[-1]
        assert more > 1 or len(used()) == before + 1
    assert any("not learned from" in reason for reason in stopped)
    assert any("memory'" in reason for reason in stopped[-2:])
    assert await play(None) is None

    split = read_split(folder / "split.json")
    assert len(used()) == 2 * len(split.train) + 3 * len(split.test)
    assert len([entry for entry in server.log() if entry["purpose"] == "learner"]) == len(split.train)
    settings = settings_for(server, tmp_path, dataset=data, **SMALL)
    study = plan_study(folder, settings, ("scripted", None), every=False)
    report = study_report(study, await play_study(study, Progress, lambda _: None))
    assert {"turns", "tokens"} <= {measure.measure for measure in report.comparisons[0].beside}


def _tokens(entry: Json) -> int:
    return sum((used["input_tokens"] or 0) + (used["output_tokens"] or 0) for used in entry["usage"].values())


def test_what_a_study_cannot_do_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    for run, problem in [
        ({"doctor": "full_information"}, "false null"),
        ({"doctor_llm": "human"}, "name models"),
        ({"memory": "x.jsonl"}, "are decided by the study"),
    ]:
        with pytest.raises(ConfigError, match=problem):
            plan_study(tmp_path / "study", builtin(tmp_path, **run), ("builtin", None), every=False)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "mine.txt").touch()
    with pytest.raises(InputError, match="is not empty and not a study"):
        plan_study(tmp_path / "study", builtin(tmp_path), ("builtin", None), every=False)


# Nothing of a test case reaches a model that should not know it.


def planted(path: Path) -> Path:
    """The six stories; each has a word of its own in its diagnosis and one in what no one asks for."""
    rows = story_rows()
    for number, row in enumerate(rows):
        chart = row["OSCE_Examination"]
        chart["Correct_Diagnosis"] = f"Frobisher disease TRUTH{number}x"
        chart["Patient_Actor"]["Social_History"] = f"Collects stamps of series CHART{number}x."
        chart["Test_Results"]["Frobisher_Scan"] = f"Shows the sign of CHART{number}x."
    return write_rows(path, *rows)


def words(text: str, kind: str) -> set[int]:
    """Which cases' words are in a text."""
    return {int(found) for found in re.findall(rf"{kind}(\d)x", text)}


@pytest.mark.parametrize("doctor", ["plain", "uncertainty"])
def test_what_is_planted_in_a_test_case_is_in_no_request_but_the_judges(
    doctor: str, server: ScriptedServer, tmp_path: Path
) -> None:
    """The learner repeats what it is told: what it should not keep must be filtered, not only unlikely."""
    numbers = range(6)
    rules = [
        written(
            experience(f"Headache of kind {number}", f"Ask about light, step {number}.", f"Does light {number} hurt?"),
            experience(f"Headache TRUTH{number}x", f"It is Frobisher disease TRUTH{number}x."),
            text_contains=f"TRUTH{number}x",
        )
        for number in numbers
    ]
    picks = {"match": {"purpose": "memory"}, "reply": '{"numbers": [1]}'}
    server.control(moderator="No", rules=[*rules, picks])
    settings = settings_for(
        server,
        tmp_path / "unused",
        dataset=str(planted(tmp_path / "planted.jsonl")),
        doctor=doctor,
        memory_llm="scripted",
        **{**SMALL, "patient_llm": "builtin", "measurement_llm": "builtin", "simulator": None},
    )
    folder = tmp_path / "study"
    study = plan_study(folder, settings, ("scripted", None), every=False)
    learned = anyio.run(partial(play_study, study, Progress, lambda _: None))
    assert learned.experiences == len(study.split.train)
    assert learned.removed == {"named the diagnosis": len(study.split.train)}

    test = {case.scenario_id for case in study.cases if case.id in study.split.test}
    train = set(numbers) - test
    seen: dict[str, str] = {}
    for entry in server.log():
        seen[entry["purpose"]] = seen.get(entry["purpose"], "") + json.dumps(entry["body"])
    assert words(seen["moderator"], "TRUTH") == set(numbers), "the words are really there"
    assert words(seen["learner"], "TRUTH") == train
    assert words(seen["learner"], "CHART") == train
    assert "<experience>" in seen["doctor"]
    assert set(seen) >= {"doctor", "memory", "learner", "moderator"}
    for purpose, text in seen.items():
        if purpose != "moderator":
            assert words(text, "TRUTH") | words(text, "CHART") <= (train if purpose == "learner" else set()), purpose
    assert words((folder / "experiences.jsonl").read_text(), "TRUTH") == set()
