"""Dry runs: an estimate by role that sends nothing and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from generate_support import question, write_questions
from runs_support import AT_ENDPOINT, ROLES, asked, clinic, only_run, point_at, records
from scripted_server import ScriptedServer

RUN = ("run", "--output_dir", "out")
PRICES = {"scripted": {"input": 1.0, "output": 2.0}}


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def estimate(folder: Path, *arguments: str | Path) -> dict[str, Any]:
    """The estimate as JSON, after which nothing may have been written."""
    before = files(folder)
    found: dict[str, Any] = json.loads(clinic(*arguments, "--dry-run", "--json", cwd=folder).stdout)
    assert files(folder) == before
    return found


def by_role(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["role"]: row for row in table["roles"]}


def silent(server: ScriptedServer) -> bool:
    return asked(server) == 0 and server.checks() == []


def test_a_dry_run_says_what_each_role_would_use_and_on_what_that_is_based(
    server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    done = clinic(*RUN, *AT_ENDPOINT, "--num_scenarios", "5", "--dry-run", cwd=tmp_path)
    assert done.stdout.startswith("5 encounters; nothing was sent or written\n")
    for role in ROLES:
        assert f"\n{role} " in done.stdout
    assert "unknown" in done.stdout
    assert "$0" not in done.stdout, "an unknown price is not 0"
    assert "turns: 15 of 20 in a typical encounter, all 20 at most" in done.stdout
    assert "judge: an upper limit" not in done.stdout, "the model judges every diagnosis"
    cascade = clinic(*RUN, *AT_ENDPOINT, "--judge", "cascade", "--dry-run", cwd=tmp_path)
    assert "judge: an upper limit; diagnoses that code can read need no request" in " ".join(cascade.stdout.split())
    assert silent(server)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_numbers_are_those_of_the_run_within_a_factor_of_two(server: ScriptedServer, tmp_path: Path) -> None:
    """The scripted doctor uses all of six turns and orders one test; to the server, four characters are a token."""
    point_at(tmp_path, server)
    content = json.loads((tmp_path / "llm.config.json").read_text())
    content["openai"]["prices"] = PRICES
    (tmp_path / "llm.config.json").write_text(json.dumps(content))
    flags = (*RUN, *AT_ENDPOINT, "--num_scenarios", "6", "--total_inferences", "6")
    found = estimate(tmp_path, *flags)
    server.control(doctor_turns=6)

    clinic(*flags, "--quiet", cwd=tmp_path)

    used = json.loads((only_run(tmp_path / "out") / "summary.json").read_text())["usage"]
    most = by_role(found["most"])
    for role in ROLES:
        assert 0.5 < most[role]["requests"] / used[role]["requests"] < 2.0, role
        guessed, real = (table[role]["input_tokens"] / table[role]["requests"] for table in (most, used))
        assert 0.6 < guessed / real < 1.6, role
    total = found["most"]["total"]
    assert total["cost_usd"] == pytest.approx((total["input_tokens"] + 2 * total["output_tokens"]) / 1e6, rel=0.01)
    assert found["typical"]["total"]["input_tokens"] < total["input_tokens"]


def test_only_roles_at_an_endpoint_cost_something(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    done = clinic(*RUN, "--dry-run", cwd=tmp_path)
    assert "No model at an endpoint would be asked: it costs nothing." in done.stdout
    found = estimate(tmp_path, *RUN, "--moderator_llm", "scripted", "--num_scenarios", "3")
    assert [(row["role"], row["requests"]) for row in found["most"]["roles"]] == [("moderator", 3)]


@pytest.mark.parametrize(
    ("flags", "requests"),
    [
        (("--doctor", "door_only"), {"doctor": 2, "moderator": 2}),
        (("--doctor", "random_questions"), {"doctor": 2, "patient": 5, "measurement": 3, "moderator": 2}),
        (("--doctor", "history_only"), {"doctor": 10, "patient": 8, "moderator": 2}),
        (("--elicit_confidence",), {"doctor": 12, "patient": 5, "measurement": 3, "moderator": 2}),
        (
            ("--doctor_test_policy_enabled",),
            {"doctor": 10, "patient": 5, "measurement": 3, "moderator": 2, "planner": 10},
        ),
        (
            ("--doctor", "uncertainty"),
            {"doctor": 10, "patient": 5, "measurement": 3, "moderator": 2, "synthesis": 2},
        ),
    ],
)
def test_each_kind_of_doctor_is_counted_as_it_works(
    flags: tuple[str, ...], requests: dict[str, int], server: ScriptedServer, tmp_path: Path
) -> None:
    point_at(tmp_path, server)
    found = estimate(tmp_path, *RUN, *AT_ENDPOINT, "--num_scenarios", "2", "--total_inferences", "5", *flags)
    assert {role: row["requests"] for role, row in by_role(found["most"]).items()} == requests
    assert silent(server)


@pytest.mark.slow
def test_a_sweep_is_estimated_arm_by_arm_without_what_is_done(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    run = {"num_scenarios": 2, "output_dir": "out"}
    sweep = {"name": "s", "run": run, "matrix": {"doctor_llm": ["scripted", "builtin"], "total_inferences": [4, 2]}}
    (tmp_path / "s.json").write_text(json.dumps(sweep))
    found = estimate(tmp_path, "sweep", "s.json")
    assert [arm["count"] for arm in found["arms"].values()] == [2, 2, 2, 2]
    assert by_role(found["most"])["doctor"]["requests"] == 2 * 4 + 2 * 2
    assert silent(server)
    assert "doctor_llm builtin, total_inferences 2" in clinic("sweep", "s.json", "--dry-run", cwd=tmp_path).stdout

    server.fault("auth", match={"purpose": "doctor", "nth": 10})
    clinic("sweep", "s.json", "--quiet", cwd=tmp_path, expect=3)
    left = estimate(tmp_path, "sweep", "s.json")
    assert sum(arm["count"] for arm in left["arms"].values()) < 8


@pytest.mark.slow
def test_regrade_counts_the_diagnoses_that_are_left(server: ScriptedServer, tmp_path: Path) -> None:
    clinic(*RUN, "--num_scenarios", "3", "--quiet", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    diagnoses = sum(entry["status"] == "diagnosed" for entry in records(folder))
    point_at(tmp_path, server)
    cascade = estimate(tmp_path, "regrade", folder, "--moderator_llm", "scripted")
    assert (cascade["count"], cascade["most"]["total"]["requests"]) == (diagnoses, 0)
    assert f"judge: code decides {diagnoses} of {diagnoses}, without a request" in cascade["based_on"]
    judge = ("regrade", folder, "--moderator_llm", "scripted", "--judge", "model")
    found = estimate(tmp_path, *judge)
    assert (found["count"], by_role(found["most"])["moderator"]["requests"]) == (diagnoses, diagnoses)
    assert silent(server)

    clinic(*judge, "--quiet", cwd=tmp_path)
    used = sum(json.loads(line)["usage"]["moderator"]["input_tokens"] for line in _lines(folder))
    assert found["most"]["total"]["input_tokens"] == pytest.approx(used, rel=0.1)
    assert estimate(tmp_path, *judge)["count"] == 0


def _lines(folder: Path) -> list[str]:
    return (folder / "judgements" / "scripted_model.jsonl").read_text().splitlines()


def test_generate_counts_the_cases_that_are_left(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    questions = write_questions(tmp_path / "q.jsonl", [question()])
    make = ("generate", "medqa", "--base-dir", questions, "--output", "made/cases.jsonl")
    found = estimate(tmp_path, *make, "--model", "scripted")
    assert found["what"] == "cases to make"
    assert by_role(found["typical"])["writer"]["requests"] == found["count"]
    assert by_role(found["most"])["writer"]["requests"] == 3 * found["count"]
    assert silent(server)
    assert not (tmp_path / "made").exists()
