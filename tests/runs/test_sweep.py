"""Sweeps: a matrix of real builtin runs, resumable, ending in paired effects."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from runs_support import point_at
from scripted_server import ScriptedServer

from agentclinic.cli import main
from agentclinic.config import Settings
from agentclinic.runs.sweep import effects, read_sweep


def write_sweep(folder: Path, **changes: Any) -> Path:
    content = {
        "name": "limits",
        "run": {"output_dir": str(folder / "out"), "num_scenarios": 4},
        "matrix": {"total_inferences": [12, 2], "missing_test": ["unavailable", "normal"]},
        **changes,
    }
    path = folder / "sweep.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.slow
def test_every_combination_is_played_and_each_factor_compared_with_all_else_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["sweep", str(write_sweep(tmp_path)), "--quiet"])
    table = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert [line[3:].split("  ")[0] for line in table[1:]] == [
        "12 turns, missing tests unavailable",
        "12 turns, missing tests normal",
        "2 turns, missing tests unavailable",
        "2 turns, missing tests normal",
    ]
    assert ["baseline" in line for line in table] == [False, True, False, False, False]
    main(["report", "out/limits", "-o", "out/report.json"])
    told = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [run["label"] for run in told["runs"]] == [line[3:].split("  ")[0] for line in table[1:]]
    arms = sorted(p.name for p in (tmp_path / "out" / "limits" / "arms").iterdir())
    assert len(arms) == 4
    report = json.loads((tmp_path / "out" / "limits" / "comparison.json").read_text())
    assert len(report["accuracies"]) == 8, "four arms under two rules"
    pairs = {(c["baseline"], c["arm"]) for c in report["comparisons"]}
    assert pairs == {
        ("total_inferences 12, missing_test unavailable", "total_inferences 2, missing_test unavailable"),
        ("total_inferences 12, missing_test normal", "total_inferences 2, missing_test normal"),
        ("total_inferences 12, missing_test unavailable", "total_inferences 12, missing_test normal"),
        ("total_inferences 2, missing_test unavailable", "total_inferences 2, missing_test normal"),
    }
    warnings = [w for c in report["comparisons"] for w in c["warnings"]]
    assert warnings == [], "what is varied on purpose is no reason for a warning"


def test_the_baseline_is_the_arm_that_the_config_names(tmp_path: Path) -> None:
    matrix = {"total_inferences": [12, 2, 7], "missing_test": ["unavailable", "normal"]}

    def baseline(named: dict[str, Any], **changes: Any) -> dict[str, Any]:
        sweep, arms = read_sweep(
            write_sweep(tmp_path, matrix=matrix, **changes), Settings.model_validate({"run": named})
        )
        assert {
            reference.values["total_inferences"]
            for factor, reference, _ in effects(sweep, arms)
            if factor != "missing_test"
        } == {arms[0].values["total_inferences"]}
        return dict(arms[0].values)

    assert baseline({}) == {"total_inferences": 12, "missing_test": "unavailable"}, "the first values"
    assert baseline({"total_inferences": 2})["total_inferences"] == 2, "the config file"
    assert baseline({"total_inferences": 2}, run={"total_inferences": 7})["total_inferences"] == 7
    assert baseline({}, baseline={"missing_test": "normal"})["missing_test"] == "normal"


@pytest.mark.slow
def test_the_same_command_again_plays_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_sweep(tmp_path)
    main(["sweep", str(path), "--quiet"])
    files = sorted((tmp_path / "out" / "limits" / "arms").glob("*/scenarios.jsonl"))
    before = [file.read_bytes() for file in files]
    torn = files[0].read_bytes().splitlines(keepends=True)
    files[0].write_bytes(b"".join(torn[:-1]) + torn[-1][:20])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        main(["sweep", str(path), "--quiet"])
    assert "line 4: skipped, because it is incomplete" in capsys.readouterr().err
    after = [file.read_bytes() for file in files]
    assert after[1:] == before[1:]
    assert len(after[0].splitlines()) == len(before[0].splitlines())


def test_changed_settings_of_a_begun_arm_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["sweep", str(write_sweep(tmp_path, matrix={"missing_test": ["unavailable"]})), "--quiet"])
    changed = write_sweep(
        tmp_path,
        matrix={"missing_test": ["unavailable"]},
        run={"output_dir": str(tmp_path / "out"), "num_scenarios": 4, "total_inferences": 7},
    )
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(changed), "--quiet"])
    assert stopped.value.code == 2
    assert "run.total_inferences" in capsys.readouterr().err
    (config,) = tmp_path.rglob("config.used.json")
    config.write_text("{}")
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(changed), "--quiet"])
    assert stopped.value.code == 2
    assert "was not written by this program" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"matrix": {"totl_inferences": [1]}}, "did you mean 'total_inferences'"),
        ({"matrix": {"total_inferences": []}}, "empty list"),
        ({"matrix": {"total_inferences": [1, 1]}}, "names a value twice"),
        ({"matrix": {"seed": [*range(40)], "total_inferences": [*range(1, 41)]}}, "1,600 combinations"),
        ({"matrix": {"total_inferences": [0]}}, "greater than or equal to 1"),
        ({"matrix": {}}, "matrix"),
        ({"nme": "x"}, "unknown key 'nme'"),
        ({"baseline": {"total_inferences": 3}}, "baseline.total_inferences: 3 is not among the values in matrix"),
    ],
)
def test_a_sweep_that_cannot_work_is_refused_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(write_sweep(tmp_path, **changes))])
    assert stopped.value.code == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_dry_run_lists_the_arms_and_plays_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["sweep", str(write_sweep(tmp_path)), "--dry-run"])
    assert "arm 4 of 4: total_inferences 2, missing_test normal" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_check_asks_a_model_once_for_each_of_its_generation_settings(
    server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    point_at(tmp_path, server)
    shared = {"num_scenarios": 1, "doctor_llm": "scripted", "output_dir": "out"}
    main(["sweep", str(write_sweep(tmp_path, run=shared, matrix={"temperature": [0, 1], "seed": [0, 1]})), "--quiet"])
    assert [check["body"]["temperature"] for check in server.checks()] == [0, 1]
    assert {body["temperature"] for body in server.bodies()} == {0, 1}
