"""The model to try things with: it plays every role and every kind of doctor, without a key."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from runs_support import ROOT, Process, clinic, only_run, records, start, summary, until
from scripted_server import LONG

from agentclinic.vocabulary.base import knowledge

EVERY_ROLE = ["--doctor-llm", "demo", "--patient-llm", "demo", "--measurement-llm", "demo", "--moderator-llm", "demo"]


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[Process, dict[str, str]]]:
    """The server, and the variable that its own output tells the user to set."""
    process = start("demo-server", "--port", "0", cwd=Path.cwd())
    until(lambda: "agentclinic run" in process.stdout, "the address", process)
    found = re.search(r"export (OPENAI_BASE_URL)=(\S+)", process.stdout)
    assert found
    yield process, {found[1]: found[2]}
    process.signal(signal.SIGKILL)


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--simulator", "grounded", "--judge", "model", "--elicit-confidence"],
        ["--simulator", "free", "--dialogue", "transcript"],
        ["--doctor", "uncertainty"],
        ["--doctor-test-policy-enabled"],
    ],
    ids=" ".join,
)
def test_it_plays_every_role_and_doctor_without_a_slip(
    flags: list[str], demo: tuple[Process, dict[str, str]], tmp_path: Path
) -> None:
    clinic("run", *EVERY_ROLE, "--limit", "3", "--workers", "3", *flags, cwd=tmp_path, env=demo[1])
    played = summary(only_run(tmp_path / "runs"))
    assert played["outcomes"].keys() <= {"diagnosed_right", "diagnosed_wrong"}
    assert not played.get("slips", {}).get("doctor")


def test_the_hasty_one_asks_once_and_is_right_less_often(demo: tuple[Process, dict[str, str]], tmp_path: Path) -> None:
    right = {}
    for model, turns in (("demo", 9), ("demo-hasty", 2)):
        flags = ("--doctor-llm", model, "--workers", "4", "--output-dir", model, "-q")
        clinic("run", *flags, cwd=tmp_path, env=demo[1])
        played = records(only_run(tmp_path / model))
        right[model] = sum(bool(record["correct"]) for record in played)
        assert {record["num_turns"] for record in played} == {turns}
    assert right["demo"] > right["demo-hasty"] > 0


def test_an_unknown_model_is_refused_with_the_names_of_the_others(
    demo: tuple[Process, dict[str, str]], tmp_path: Path
) -> None:
    done = clinic("run", "--doctor-llm", "gpt-5-mini", cwd=tmp_path, env=demo[1], expect=None)
    assert done.returncode == 2
    assert "choose one of: demo, demo-hasty" in done.stderr


def test_a_taken_port_is_an_error_and_ctrl_c_stops_it(tmp_path: Path) -> None:
    first = start("demo-server", "--port", "0", cwd=tmp_path)
    until(lambda: "agentclinic run" in first.stdout, "the address", first)
    port = re.search(r":(\d+)/v1", first.stdout)
    assert port
    assert "choose another --port" in clinic("demo-server", "--port", port[1], cwd=tmp_path, expect=2).stderr
    first.signal(signal.SIGINT)
    assert first.wait() == 0, first.stderr
    assert first.stdout.endswith("stopped\n")


def test_it_answers_a_custom_doctors_own_questions(demo: tuple[Process, dict[str, str]], tmp_path: Path) -> None:
    doctor = f"{ROOT / 'examples' / 'my_doctor.py'}:MyDoctor"
    clinic("run", "--doctor", doctor, "--doctor-llm", "demo", "--limit", "3", cwd=tmp_path, env=demo[1])
    named = [record["diagnosis_text"] for record in records(only_run(tmp_path / "runs"))]
    assert len(named) == 3
    assert all(knowledge().disease_named(name) for name in named), named


def test_texts_with_the_same_words_have_the_same_embedding(demo: tuple[Process, dict[str, str]]) -> None:
    asked = json.dumps({"model": "demo", "input": ["fever and cough", "cough and fever", "a sore toe"]}).encode()
    address = f"{demo[1]['OPENAI_BASE_URL']}/embeddings"
    with urlopen(Request(address, asked, {"Content-Type": "application/json"}), timeout=LONG) as answer:
        one, same, other = (row["embedding"] for row in json.load(answer)["data"])
    assert one == same != other
