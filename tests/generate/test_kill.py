"""No case is lost or made twice, however the process ends."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest
from generate_support import keys, question, write_questions
from runs_support import asked, clinic, lines, point_at, start, until
from scripted_server import ScriptedServer

from agentclinic.cases.model import WrittenStory

QUESTIONS = 60
STORY = WrittenStory(
    objective="Assess and diagnose the patient presenting with itching.",
    history="The patient has itching of both elbows. She works as a gardener.",
    primary_symptom="Itching of both elbows",
    secondary_symptoms=[],
    past_medical_history="",
    medications="",
    social_history="Works as a gardener.",
    family_history="",
    review_of_systems="",
)


def ready(folder: Path, server: ScriptedServer, latency: float = 0.01) -> list[str | Path]:
    """Questions, a server that writes stories, and the command that makes cases."""
    rule = {"match": {"purpose": "writer"}, "reply": STORY.model_dump_json()}
    server.control(latency=latency, jitter=0.5, keep_log=False, rules=[rule])
    point_at(folder, server)
    questions = write_questions(folder / "questions.jsonl", [question(number) for number in range(QUESTIONS)])
    limits = ["--limit", str(QUESTIONS), "--workers", "4", "--output", "made/cases.jsonl"]
    return ["generate", "medqa", "--base-dir", questions, "--model", "scripted", *limits]


@pytest.mark.slow
def test_killed_ten_times_at_random_moments_each_case_is_made_exactly_once(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """Moments are counted in requests, so that they do not depend on the clock."""
    chance = random.Random(8)
    command = ready(tmp_path, server)
    output = tmp_path / "made" / "cases.jsonl"
    grown = []
    for _ in range(10):
        moment = asked(server) + chance.randint(1, 9)
        process = start(*command, "--quiet", cwd=tmp_path)
        until(lambda moment=moment: asked(server) >= moment, f"request {moment}", process)  # type: ignore[misc]
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        grown.append(len(keys_so_far(output)))

    assert grown == sorted(grown), "no case is lost"
    assert 0 < grown[-1] < QUESTIONS, "the kills fell in the middle of the work"
    result = json.loads(clinic(*command, "--json", cwd=tmp_path).stdout)

    assert len(keys(output)) == len(set(keys(output))) == QUESTIONS
    assert (result["counts"]["made"], result["counts"]["chosen"]) == (QUESTIONS, QUESTIONS)
    assert {row["OSCE_Examination"]["Correct_Diagnosis"] for row in lines(output)} == {"Psoriasis"}
    traced = {entry["key"] for entry in lines(tmp_path / "made" / "cases.trace.jsonl")}
    assert traced == set(keys(output))


def keys_so_far(path: Path) -> set[str]:
    """The keys of the complete lines of a file."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return {json.loads(line)["generation"]["key"] for line in text.split("\n")[:-1]}


@pytest.mark.slow
def test_ctrl_c_finishes_cases_in_progress_and_says_how_to_resume(server: ScriptedServer, tmp_path: Path) -> None:
    command = ready(tmp_path, server)
    process = start(*command, cwd=tmp_path)
    until(lambda: asked(server) >= 6, "request 6", process)
    process.signal(signal.SIGINT)
    assert process.wait() == 130
    done = keys(tmp_path / "made" / "cases.jsonl")
    assert 0 < len(done) < QUESTIONS
    assert f"{QUESTIONS - len(done)} cases not made (interrupted)" in process.stderr
    assert "Run the same command again to continue." in process.stderr
    assert "Traceback" not in process.stderr
    manifest = json.loads((tmp_path / "made" / "cases.manifest.json").read_text())
    assert manifest["counts"]["made"] == len(done)

    clinic(*command, "--quiet", cwd=tmp_path)
    assert len(set(keys(tmp_path / "made" / "cases.jsonl"))) == QUESTIONS
    assert keys(tmp_path / "made" / "cases.jsonl")[: len(done)] == done


@pytest.mark.slow
def test_a_second_ctrl_c_stops_at_once_and_what_is_made_is_kept(server: ScriptedServer, tmp_path: Path) -> None:
    command = ready(tmp_path, server)
    process = start(*command, cwd=tmp_path)
    until(lambda: asked(server) >= 6, "request 6", process)
    server.control(latency=60)  # requests in progress would take a minute
    before = asked(server)
    until(lambda: asked(server) >= before + 4, "four slow requests", process)
    process.signal(signal.SIGINT)
    until(lambda: "press Ctrl-C again" in process.stderr, "the first Ctrl-C", process)
    process.signal(signal.SIGINT)
    assert process.wait() == 130
    done = keys(tmp_path / "made" / "cases.jsonl")
    assert 0 < len(done) < QUESTIONS
    assert f"{QUESTIONS - len(done)} cases not made (interrupted)" in process.stderr
    assert "Traceback" not in process.stderr
    manifest = json.loads((tmp_path / "made" / "cases.manifest.json").read_text())
    assert manifest["counts"]["made"] == len(done)


def test_an_endpoint_error_that_quotes_the_prompt_is_not_shown(server: ScriptedServer, tmp_path: Path) -> None:
    command = ready(tmp_path, server)
    quote = "cannot read: itching of both elbows, Her temperature is"
    server.control(rules=[{"match": {"purpose": "writer"}, "fault": "400", "message": quote}])
    done = clinic(*command, cwd=tmp_path, expect=3)
    assert f"{QUESTIONS} cases not made (the writer failed: bad_request {QUESTIONS})" in done.stderr
    written = "".join(path.read_text() for path in (tmp_path / "made").iterdir())
    for text in (done.stdout, done.stderr, written):
        assert "itching" not in text
        assert "cannot read" not in text
