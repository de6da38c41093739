"""`agentclinic probe`: what an endpoint can do, in plain words."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from runs_support import clinic, point_at
from scripted_server import ScriptedServer

SEES = {"match": {"text_contains": "Which colour fills"}, "reply": "Red."}


@pytest.mark.parametrize(("api", "shown"), [("responses", "the Responses API"), ("chat", "chat completions")])
def test_a_capable_endpoint_passes_all_checks(api: str, shown: str, server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=[SEES], responses=api == "responses")

    done = clinic("probe", "scripted", cwd=tmp_path)

    answers, tools, structured, images = done.stdout.splitlines()[:4]
    assert answers.startswith(f"yes  answers: by {shown}, with ")
    assert "tokens in" in answers
    assert tools.startswith("yes  tool calls: called note_colour(")
    assert structured.startswith('yes  structured output: {"colour"')
    assert images == "yes  images: recognized the red test picture"
    assert "agentclinic run --doctor_llm scripted" in done.stdout
    assert {request["purpose"] for request in server.log()} == {"probe"}


def test_each_failing_check_has_its_own_message(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(
        rules=[
            {"match": {"text_contains": "with the tool"}, "reply": "The sky is blue."},
            {"match": {"text_contains": "Name the colour"}, "reply": "Certainly: blue."},
        ]
    )

    done = clinic("probe", "scripted", "--json", cwd=tmp_path)

    answers, tools, structured, images = json.loads(done.stdout)
    assert answers["works"] is True
    assert (tools["works"], tools["detail"]) == (False, "wrote text instead: 'The sky is blue.'")
    assert structured["works"] is False
    assert "gave no usable" in structured["detail"]
    assert images["works"] is False
    assert "did not recognize that it is red" in images["detail"]


def test_an_endpoint_without_output_formats_is_asked_in_the_prompt(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(
        rules=[
            {"match": {"text_contains": "Name the colour"}, "fault": "reject_format", "times": 1},
            {"match": {"text_contains": "Name the colour"}, "reply": '{"colour": "blue"}'},
        ]
    )

    structured = json.loads(clinic("probe", "scripted", "--json", cwd=tmp_path).stdout)[2]

    assert structured["works"] is True
    assert "in the prompt only" in structured["detail"]


def test_a_rejected_key_is_reported_with_the_fix(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.fault("auth")

    done = clinic("probe", "scripted", cwd=tmp_path, expect=1)

    assert done.stdout.startswith("no   answers: ")
    assert "the key was rejected: check OPENAI_API_KEY, .env or llm.config.json" in done.stdout
    assert len(done.stdout.splitlines()) == 1, "the other checks are skipped"


def test_a_server_that_does_not_answer_is_reported_with_the_fix(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound but not listening: no one else can take the port, and nothing answers
        port = free.getsockname()[1]
        settings = {
            "openai": {"base_url": f"http://127.0.0.1:{port}/v1"},
            "llm": {"runtime": {"tries": 1}},
        }
        (tmp_path / "llm.config.json").write_text(json.dumps(settings))

        done = clinic("probe", "scripted", cwd=tmp_path, expect=1)

    assert "no server answers: check base_url and whether the server is running" in done.stdout


def test_a_named_endpoint_is_probed_and_an_unknown_one_is_refused(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "agentclinic.config.json").write_text(
        # The recording named in the settings is for runs; a probe must not write it.
        json.dumps({"run": {"record": "kept.jsonl"}, "endpoints": {"ward": {"base_url": server.base_url}}})
    )

    clinic("probe", "scripted", "--endpoint", "ward", cwd=tmp_path)
    done = clinic("probe", "scripted", "--endpoint", "word", cwd=tmp_path, expect=2)

    assert "did you mean 'ward'?" in done.stderr
    assert not (tmp_path / "kept.jsonl").exists()
