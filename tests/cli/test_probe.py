"""`agentclinic probe`: what an endpoint can do, in plain words, and how its model does on the sample."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest
from runs_support import asked, clinic, point_at, start, until
from scripted_server import ScriptedServer

SEES = {"match": {"text_contains": "Which colour fills"}, "reply": "Red."}


@pytest.mark.parametrize(("api", "shown"), [("responses", "the Responses API"), ("chat", "chat completions")])
def test_a_capable_endpoint_passes_all_checks(api: str, shown: str, server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=[SEES], responses=api == "responses")

    done = clinic("probe", "scripted", "--quick", cwd=tmp_path)

    answers, tools, structured, images = done.stdout.splitlines()[:4]
    assert answers.startswith(f"yes  answers: by {shown}, with ")
    assert "tokens in" in answers
    assert tools.startswith("yes  tool calls: called note_colour(")
    assert structured.startswith('yes  structured output: {"colour"')
    assert images == "yes  images: recognized the red test picture"
    assert "agentclinic run --doctor-llm scripted" in done.stdout
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

    result = json.loads(done.stdout)
    answers, tools, structured, images = result["checks"]
    assert result["sample"] is None, "grounded needs structured output"
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

    structured = json.loads(clinic("probe", "scripted", "--quick", "--json", cwd=tmp_path).stdout)["checks"][2]

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

    clinic("probe", "scripted", "--quick", "--endpoint", "ward", cwd=tmp_path)
    done = clinic("probe", "scripted", "--endpoint", "word", cwd=tmp_path, expect=2)

    assert "did you mean 'ward'?" in done.stderr
    assert not (tmp_path / "kept.jsonl").exists()


@pytest.mark.slow
def test_the_sample_is_tried_and_the_model_is_shown_beside_the_matcher(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=[SEES])  # chooses nothing and says nothing

    done = clinic("probe", "scripted", "--workers", "2", cwd=tmp_path)

    table = [line.split() for line in done.stdout.splitlines()]
    assert ["questions", "model", "unknown", "0.00", "0.00", "46", "0"] in table
    assert ["orders", "model", "unknown", "0.00", "0.00", "0", "0"] in table
    assert len([line for line in table if line[:1] == ["matcher"]]) == 3
    patient, laboratory = (line for line in done.stdout.splitlines() if line.startswith("Recommended"))
    assert patient.startswith(
        "Recommended for the patient: voiced; the matcher chooses facts better than the model (F1 "
    )
    assert laboratory.startswith("Recommended for the laboratory: voiced; the matcher chooses facts better than the m")
    assert "cost unknown" in done.stdout
    assert "83 questions and orders" in done.stderr
    assert asked(server, "patient") == 2 * 46, "the empty words were sent back once"
    assert asked(server, "measurement") == 37


@pytest.mark.slow
def test_malformed_choices_are_counted_and_change_nothing(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    purposes = ("patient", "measurement")
    server.control(rules=[{"match": {"purpose": purpose}, "fault": "invalid_schema_json"} for purpose in purposes])

    sample = json.loads(clinic("probe", "scripted", "--json", "--quiet", cwd=tmp_path).stdout)["sample"]

    assert sample["together"]["by_code"] == sample["together"]["rows"] == 83
    assert sample["together"]["model"] == sample["together"]["matcher"]
    assert sample["together"]["f1_difference"]["value"] == 0
    assert sample["recommended"] == {"patient": "voiced", "measurement": "voiced"}
    assert sample["requests"] == asked(server, "patient") + asked(server, "measurement")
    assert sample["cost_usd"] is None


@pytest.mark.slow
def test_single_failures_do_not_end_the_sample(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(rules=[{"match": {"purpose": "measurement", "nth": [3, 20]}, "fault": "500"}])

    sample = json.loads(clinic("probe", "scripted", "--json", "--quiet", cwd=tmp_path).stdout)["sample"]

    assert sample["orders"]["failed"] == {"server": 2}
    assert (sample["orders"]["rows"], sample["not_tried"]) == (37, 0)


@pytest.mark.slow
def test_a_server_that_dies_during_the_sample_ends_it(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    server.control(rules=[{"match": {"purpose": "patient", "nth": list(range(9, 200))}, "fault": "reset"}])

    done = clinic("probe", "scripted", "--json", "--quiet", cwd=tmp_path, expect=3)

    sample = json.loads(done.stdout)["sample"]
    assert sample["recommended"] == {"patient": "voiced", "measurement": "voiced"}
    assert f"{sample['not_tried']} of 83 questions and orders were not tried" in done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_the_sample_and_shows_what_is_known(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(latency=0.2)
    process = start("probe", "scripted", "--workers", "2", cwd=tmp_path)
    try:
        until(lambda: asked(server, "patient") >= 4, "the sample to be under way", process)
        process.signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.signal(signal.SIGKILL)

    assert "Recommended for the patient: voiced; " in process.stdout
    assert "too many to judge by" in process.stdout
    assert "questions and orders were not tried (interrupted)" in process.stderr
    assert "Traceback" not in process.stderr
