"""Runs in solvable worlds: what is refused, resuming, and the numbers wherever a run is scored."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from fakes import plan_of
from runs_support import clinic, only_run, point_at, records, start, summary, units, until, untimed
from scripted_server import ScriptedServer
from solvable_support import CHEST_PAIN, plan_in

from agentclinic import load_run
from agentclinic.cases.registry import load_cases
from agentclinic.errors import ConfigError
from agentclinic.results.regret import KINDS
from agentclinic.worlds.model import BUNDLED, bundled

IN_WORLD = ("run", "--dataset", CHEST_PAIN, "--output-dir", "out", "--quiet")


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        *(
            ([flag, "x"], "in a solvable world only the doctor is a model; use --doctor-llm in place of --model or ")
            for flag in ("--patient-llm", "--measurement-llm", "--moderator-llm", "--model")
        ),
        (["--inf-type", "human_patient"], "only the doctor is a model; use --doctor-llm"),
        (["--lockbox"], "--lockbox has no meaning in a solvable world; leave it out"),
        (["--simulator", "free"], "--simulator has no meaning in a solvable world; leave it out"),
        (["--judge", "model"], "--judge"),
        (["--missing-test", "normal"], "--missing-test has no meaning in a solvable world; leave it out"),
        (["--silent-symptom", "unknown"], "--silent-symptom has no meaning in a solvable world; leave it out"),
        (["--patient-bias", "recency"], "--patient-bias"),
        (["--preset", "original"], "--preset has no meaning in a solvable world; leave it out"),
        (["--memory", "m.jsonl"], "--memory has no meaning in a solvable world; leave it out"),
        (["--resource-level", "scarce"], "--resource-level has no meaning in a solvable world; leave it out"),
        (["--total-inferences", "5"], "this world sets the turn limit, 20; leave it out"),
        *(
            (
                ["--doctor", name],
                f"--doctor {name} has no meaning in a solvable world; use optimal, ",
            )
            for name in ("prior_only", "door_only", "random_questions", "history_only", "full_information")
        ),
        (["--doctor", "optimal", "--doctor-llm", "x"], "the doctor optimal asks no model; leave it out"),
        (["--dataset", "Solvable:chest-pian"], "did you mean 'chest-pain'"),
        (["--dataset", f"{CHEST_PAIN},hiden"], "write invented, hidden or both"),
        (["--num-scenarios", "1000000"], "at most 20,000 cases of a world can be drawn"),
    ],
)
def test_what_has_no_meaning_in_a_world_is_refused(flags: list[str], told: str, tmp_path: Path) -> None:
    done = clinic(*IN_WORLD, *flags, cwd=tmp_path, expect=2)
    assert told in done.stderr
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists(), "nothing is written"


@pytest.mark.parametrize("doctor", ["optimal", "greedy", "checklist", "ask_everything", "random_actions"])
def test_reference_doctors_of_worlds_are_refused_elsewhere(doctor: str, tmp_path: Path) -> None:
    done = clinic("run", "--doctor", doctor, "--output-dir", "out", cwd=tmp_path, expect=2)
    assert f"--doctor {doctor} plays in solvable worlds only; use --dataset Solvable:chest-pain" in done.stderr


def test_the_usual_settings_and_those_that_say_the_same_are_accepted() -> None:
    given: dict[str, Any] = {"patient_llm": "builtin", "judge": "builtin", "total_inferences": 20}
    assert plan_in(num_scenarios=1, **given).settings.run.total_inferences == 20
    for name in bundled():
        plan = plan_in(f"Solvable:{name}", num_scenarios=1)
        drawn = plan.cases[0].drawn
        assert drawn is not None
        assert plan.settings.run.total_inferences == len(drawn.world.findings) + 8


def test_cases_of_several_worlds_or_of_a_world_and_others_are_refused() -> None:
    first, second = (load_cases(f"Solvable:{name}", count=1)[0] for name in ("chest-pain", "headache"))
    (other,) = plan_of(num_scenarios=1).cases
    for cases in ([first, second], [first, other], [other, first]):
        with pytest.raises(ConfigError, match="need a run each"):
            plan_in(cases=cases)


def test_a_run_in_a_world_is_not_regraded(tmp_path: Path) -> None:
    clinic(*IN_WORLD, "--num-scenarios", "1", cwd=tmp_path)
    done = clinic("regrade", only_run(tmp_path / "out"), cwd=tmp_path, expect=2)
    assert "a solvable world is judged by name; there is nothing to judge again" in done.stderr


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_a_run_in_a_world_of_ones_own_is_resumed_from_another_folder(tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    (here / "worlds").mkdir(parents=True)
    elsewhere.mkdir()
    (here / "worlds" / "mine.json").write_bytes((BUNDLED / "headache.json").read_bytes())
    given = ("run", "--dataset", "Solvable:worlds/mine.json,hidden", "--num-scenarios", "4", "--output-dir", "out")
    clinic(*given, "--doctor", "greedy", "--quiet", cwd=here)
    folder = only_run(here / "out")
    before = records(folder)
    assert {record["dataset"] for record in before} == {"Solvable:mine,hidden"}
    journal = folder / "scenarios.jsonl"
    journal.write_text("".join(line + "\n" for line in journal.read_text().splitlines()[:2]))
    (here / "worlds" / "mine.json").unlink()
    clinic("resume", folder, "--quiet", cwd=elsewhere)
    assert untimed(sorted(records(folder), key=lambda one: one["scenario_id"])) == untimed(before)


def test_a_run_that_was_killed_ends_with_the_records_of_one_that_was_not(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(doctor=["Sweating?", "REQUEST TEST: Troponin", "DIAGNOSIS READY: MI"])
    point_at(tmp_path, server)
    given = (
        "--dataset",
        f"{CHEST_PAIN},invented",
        "--num-scenarios",
        "6",
        "--doctor-llm",
        "scripted",
        "--workers",
        "1",
    )
    clinic("run", *given, "--output-dir", "whole", "--quiet", cwd=tmp_path)
    server.control(rules=[{"match": {"nth": list(range(8, 99))}, "fault": "hang"}])
    process = start("run", *given, "--output-dir", "cut", "--quiet", cwd=tmp_path)
    until(
        lambda: any((tmp_path / "cut").glob("*/scenarios.jsonl")) and bool(records(only_run(tmp_path / "cut"))),
        "a record",
        process,
    )
    process.signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    server.control(rules=[])
    assert len(records(only_run(tmp_path / "cut"))) < 6
    clinic("resume", only_run(tmp_path / "cut"), "--quiet", cwd=tmp_path)
    whole, cut = (records(only_run(tmp_path / name)) for name in ("whole", "cut"))
    assert units(cut) == [(row, 0) for row in range(6)]
    assert untimed(sorted(cut, key=lambda one: one["scenario_id"])) == untimed(whole)
    assert all(record["regret"] for record in cut)


# --- the numbers ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of one world: shown, hidden, and at random; and one outside of worlds."""
    folder = tmp_path_factory.mktemp("worlds")
    for name, dataset, doctor in (
        ("shown", CHEST_PAIN, "plain"),
        ("hidden", f"{CHEST_PAIN},hidden", "plain"),
        ("random", CHEST_PAIN, "random_actions"),
        ("ordinary", "OpenOSCE_Demo", "plain"),
    ):
        given = ("--dataset", dataset, "--doctor", doctor, "--num-scenarios", "12")
        clinic("run", *given, "--output-dir", "out", "--quiet", cwd=folder)
        only_run(folder / "out").rename(folder / name)
    return folder


COLUMNS = {"regret": "regret", "utility": "utility", "luck": "luck", "price": "world_price"}
"""The numbers of a record, by the names of their metrics."""


def mean_of(folder: Path, key: str) -> float:
    values = [record["regret"][key] for record in records(folder)]
    return float(sum(values) / len(values))


def test_summary_and_score_have_the_means_of_the_records(played: Path) -> None:
    folder = played / "random"
    means = {key: mean_of(folder, key) for key in ("regret", "utility", "luck", "best_value", "price")}
    assert summary(folder)["mean_regret"] == pytest.approx(means["regret"])
    assert summary(folder)["mean_utility"] == pytest.approx(means["utility"])
    scored = json.loads(clinic("score", folder, "--json", cwd=played).stdout)["regret"]
    assert scored["encounters"] == 12
    assert scored["best_value"] == pytest.approx(means["best_value"])
    for key, name in COLUMNS.items():
        assert scored[name]["value"] == pytest.approx(means[key])
    turns = [turn for record in records(folder) for turn in record["regret"]["turns"]]
    kinds = {kind: sum(t["regret"] for t in turns if t["kind"] == kind) / 12 for kind in {t["kind"] for t in turns}}
    for kind in set(kinds) - {"best"}:
        assert scored[f"regret_{kind}"]["value"] == pytest.approx(kinds[kind])
    by_turn = {int(turn): sum(row.values()) for turn, row in scored["by_turn"].items()}
    for turn, lost in by_turn.items():
        assert lost == pytest.approx(sum(t["regret"] for t in turns if t["turn"] == turn) / 12)
    assert sum(by_turn.values()) == pytest.approx(means["regret"])
    best = sum(turn["kind"] == "best" for turn in turns)
    assert (scored["best_actions"]["count"], scored["best_actions"]["of"]) == (best, len(turns))


def test_the_page_in_the_terminal_shows_them(played: Path) -> None:
    said = clinic("score", played / "random", "--full", cwd=played).stdout
    assert "Against the best play (12 encounters of a solvable world)" in said
    assert f"{mean_of(played / 'random', 'utility'):.2f}" in said
    assert "asked the wrong thing" in said


def test_an_ordinary_run_has_none_of_it(played: Path) -> None:
    folder = played / "ordinary"
    assert {record["regret"] for record in records(folder)} == {None}
    assert summary(folder)["mean_regret"] is None
    scored = json.loads(clinic("score", folder, "--json", cwd=played).stdout)["regret"]
    assert (scored["encounters"], scored["best_value"], scored["regret"]["value"], scored["by_turn"]) == (
        0,
        None,
        None,
        {},
    )
    said = clinic("score", folder, "--full", cwd=played).stdout
    for word in ("regret", "best play", "luck", "utility", "solvable"):
        assert word not in said.lower()


def test_csv_and_pandas_have_a_column_for_each_number(played: Path) -> None:
    clinic("report", played / "random", "--format", "csv", "--output", "random.csv", cwd=played)
    with (played / "random.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    frame = load_run(played / "random").to_pandas()
    for key, column in COLUMNS.items():
        expected = pytest.approx([record["regret"][key] for record in records(played / "random")], abs=1e-4)
        assert [float(row[column]) for row in rows] == expected
        assert frame[column].tolist() == expected
    named = {"best_actions", "belief_divergence", "belief_updating", *(f"regret_{kind}" for kind in KINDS)}
    assert named <= rows[0].keys() & set(frame.columns)
    ordinary = load_run(played / "ordinary").to_pandas()
    assert "regret" not in ordinary or ordinary["regret"].isna().all()


def test_compare_pairs_shown_with_hidden_case_by_case(played: Path) -> None:
    done = clinic("compare", played / "shown", played / "hidden", "--json", cwd=played)
    (comparison,) = json.loads(done.stdout)["comparisons"]
    assert (comparison["verdicts"][0]["cases"], comparison["verdicts"][0]["clusters"]) == (12, 12)
    (found,) = [one for one in comparison["beside"] if one["measure"] == "regret, points"]
    expected = mean_of(played / "hidden", "regret") - mean_of(played / "shown", "regret")
    assert found["difference"]["value"] == pytest.approx(expected)
    assert "regret, points" in clinic("compare", played / "shown", played / "hidden", "--full", cwd=played).stdout


def test_ordinary_runs_are_compared_without_it(played: Path) -> None:
    done = clinic("compare", played / "ordinary", played / "ordinary", "--full", cwd=played)
    assert "regret" not in done.stdout


def test_the_run_itself_says_what_was_lost_and_that_names_are_compared(tmp_path: Path) -> None:
    said = clinic(
        "run",
        "--dataset",
        CHEST_PAIN,
        "--num-scenarios",
        "3",
        "--doctor",
        "optimal",
        "--output-dir",
        "out",
        cwd=tmp_path,
    )
    assert "patient, laboratory and judge are exact" in said.stdout
    assert "0.0 points; the best play has 0" in said.stdout
    assert "-0.0" not in said.stdout
