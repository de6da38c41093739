"""Judging a run again from its records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import osce
from runs_support import asked, clinic, lines, only_run, point_at, records, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.config import Given
from agentclinic.errors import ConfigError, InputError
from agentclinic.runs.execute import Finished
from agentclinic.runs.regrade import regrade

pytestmark = pytest.mark.anyio


@pytest.fixture
async def finished(server: ScriptedServer, tmp_path: Path) -> Finished:
    """A run of four, all judged right by the scripted judge; the server has forgotten it."""
    done, _ = await run_here(settings_for(server, tmp_path / "out", num_scenarios=4))
    server.reset()
    return done


async def test_verdicts_go_to_a_file_of_their_own_and_the_records_stay_as_they_are(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    before = (finished.folder / "scenarios.jsonl").read_bytes()
    server.control(rules=[{"match": {"purpose": "moderator", "nth": 2}, "reply": "No"}])

    regraded = await regrade(finished.folder, settings_for(server, tmp_path, moderator_llm="other/judge"))

    assert regraded.path == finished.folder / "judgements" / "other_judge_model.jsonl"
    entries = lines(regraded.path)
    assert [(entry["scenario_id"], entry["correct"]) for entry in entries] == [
        (0, True),
        (1, False),
        (2, True),
        (3, True),
    ]
    assert all(entry["moderator_llm"] == "other/judge" for entry in entries)
    assert {"relation", "reason", "case_hash", "repeat"} <= set(entries[0])
    assert (regraded.judged, regraded.failed) == (4, 0)
    assert [(r.unit_name, r.correct, now) for r, now in regraded.changed] == [("demo-002", True, False)]
    assert (finished.folder / "scenarios.jsonl").read_bytes() == before
    assert {entry["purpose"] for entry in server.log()} == {"moderator"}, "nothing is simulated"


async def test_it_resumes_where_it_stopped_and_retries_failures(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    settings = settings_for(server, tmp_path)
    server.control(rules=[{"match": {"purpose": "moderator", "nth": [2, 3]}, "fault": "500"}])
    first = await regrade(finished.folder, settings)
    assert (first.judged, first.failed) == (3, 1)
    server.reset()

    second = await regrade(finished.folder, settings)

    assert (second.judged, second.failed) == (4, 0)
    assert asked(server, "moderator") == 1
    entries = lines(second.path)
    assert sorted((entry["scenario_id"], entry["correct"]) for entry in entries) == [(row, True) for row in range(4)]


async def test_an_incomplete_judgement_is_judged_again(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    settings = settings_for(server, tmp_path)
    path = (await regrade(finished.folder, settings)).path
    path.write_bytes(path.read_bytes()[:-30])
    server.reset()

    with pytest.warns(UserWarning, match="line 4: skipped, because it is incomplete"):
        await regrade(finished.folder, settings)

    assert asked(server, "moderator") == 1
    assert len(lines(path)) == 4


async def test_a_refused_key_stops_at_once(finished: Finished, server: ScriptedServer, tmp_path: Path) -> None:
    server.fault("auth")

    regraded = await regrade(finished.folder, settings_for(server, tmp_path))

    assert (regraded.failed, regraded.not_tried) == (1, 3)
    assert "key" in (regraded.reason or "")
    assert asked(server) == 1


def test_a_run_in_the_originals_format_is_judged_by_the_command(tmp_path: Path) -> None:
    """Only the original's fields, no digest, no hashes; the truth in one field, the whole utterance in another."""
    seeds = [
        {
            "scenario_id": 0,
            "dataset": "MedQA",
            "status": "diagnosed",
            "correct": False,
            "ground_truth": "Gout",
            "diagnosis_text": "I am sure now. DIAGNOSIS READY: Gout",
        },
        {
            "scenario_id": 1,
            "status": "diagnosed",
            "correct": True,
            "ground_truth": "Migraine",
            "final_doctor_dialogue": "DIAGNOSIS READY: Scurvy",
        },
        {
            "scenario_id": 2,
            "status": "max_infs_reached",
            "correct": False,
            "ground_truth": "Gout",
            "final_doctor_dialogue": "And how is your sleep?",
        },
    ]
    folder = tmp_path / "MedQA_20240101_000000"
    folder.mkdir()
    journal = folder / "scenarios.jsonl"
    journal.write_text("\n".join(map(json.dumps, seeds)) + "\n")
    before = journal.read_bytes()

    done = clinic("regrade", folder, "--json", cwd=tmp_path)

    result = json.loads(done.stdout)
    assert result["judged"] == 2
    assert result["changed"] == [
        {"scenario_id": 0, "name": "MedQA/0", "was": False, "is": True},
        {"scenario_id": 1, "name": "row 1", "was": True, "is": False},
    ]
    assert [e["scenario_id"] for e in lines(folder / "judgements" / "builtin.jsonl")] == [0, 1]
    assert journal.read_bytes() == before


def test_the_command_says_what_changed_and_why_something_failed(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server, tries=1)
    clinic("run", "--num_scenarios", "2", "--output_dir", "out", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    assert records(folder)[0]["correct"] is True
    server.control(moderator="No", rules=[{"match": {"purpose": "moderator", "nth": 2}, "fault": "500"}])

    done = clinic(
        "regrade", folder, "--moderator_llm", "scripted", "--judge", "model", "--full", cwd=tmp_path, expect=3
    )

    assert "demo-001: was right, is now wrong" in done.stdout
    assert "1 failed" in done.stderr
    assert "answered 500" in done.stderr
    assert "Run the same command again" in done.stderr


_GUESSES = """
class Guesses:
    def __init__(self, scenario):
        pass

    def inference_doctor(self, question):
        return "DIAGNOSIS READY: Legionella pneumonia"
"""


@pytest.mark.slow
def test_judging_again_looks_into_the_charts_of_the_run_and_nowhere_else(tmp_path: Path) -> None:
    """A run on a file used to be judged by names alone once the file was gone, and what was open came out right."""
    chart = osce(patient={"History": "Fever and cough for three days."}, truth="Pneumonia")
    data = tmp_path / "cases.jsonl"
    data.write_text(json.dumps(chart) + "\n")
    (tmp_path / "guess.py").write_text(_GUESSES)
    clinic("run", "--dataset", data, "--doctor", "guess.py:Guesses", "--output_dir", "out", cwd=tmp_path)
    folder = only_run(tmp_path / "out")
    (record,) = records(folder)
    why = "the chart does not show legionella"  # by the names alone, it would be a kind of pneumonia, and right
    assert (record["correct"], record["judgement"]["reason"]) == (None, why)
    data.unlink()

    done = clinic("regrade", folder, "--moderator_llm", "builtin", "--json", cwd=tmp_path)

    assert json.loads(done.stdout)["changed"] == []
    (entry,) = lines(folder / "judgements" / "builtin.jsonl")
    assert (entry["correct"], entry["reason"]) == (None, why)


async def test_a_judge_with_other_generation_settings_is_another_judge(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    writing: dict[str, Any] = {"temperature": 0.3, "moderator_top_p": 0.5}
    cold = await regrade(finished.folder, settings_for(server, tmp_path, **writing))

    assert {(entry["body"]["temperature"], entry["body"]["top_p"]) for entry in server.log()} == {(0.3, 0.5)}
    assert lines(cold.path)[0]["generation"] == {"moderator": {"temperature": 0.3, "top_p": 0.5}}
    with pytest.raises(InputError, match=r"holds verdicts with generation .*, not none; choose another file"):
        await regrade(finished.folder, settings_for(server, tmp_path))
    builtin = settings_for(server, tmp_path, **writing).changed(moderator_llm="builtin", judge=None)
    with pytest.raises(ConfigError, match=r"temperature has no effect: every role .* with --moderator-llm"):
        await regrade(finished.folder, builtin)
    in_file = builtin.model_copy(update={"given": Given()})
    assert "generation" not in lines((await regrade(finished.folder, in_file)).path)[0], "those of runs, in a file"
