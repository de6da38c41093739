"""Verdicts on a finished run: which diagnoses are judged, which verdicts still hold, and what they cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs_support import asked, lines, run_here, settings_for, without
from scripted_server import ScriptedServer

from agentclinic.errors import InputError
from agentclinic.results.run_data import read_judgements
from agentclinic.runs.execute import Finished
from agentclinic.runs.regrade import regrade

pytestmark = pytest.mark.anyio


@pytest.fixture
async def finished(server: ScriptedServer, tmp_path: Path) -> Finished:
    """A run of four, all judged right by the scripted judge; the server has forgotten it."""
    done, _ = await run_here(settings_for(server, tmp_path / "out", num_scenarios=4))
    server.reset()
    return done


async def test_what_failed_tries_cost_is_never_forgotten(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    settings = settings_for(server, tmp_path, judge_relation=True)
    server.control(rules=[{"match": {"purpose": "moderator"}, "fault": "invalid_schema_json", "times": 12}])
    spent, failed = 0, -1
    for _ in range(4):
        done = await regrade(finished.folder, settings)
        assert done.spent.tokens > spent or not failed
        spent, failed = done.spent.tokens, done.failed
    assert (done.judged, done.failed) == (4, 0)
    requests = sum(used["requests"] for entry in lines(done.path) for used in entry["usage"].values())
    assert requests == asked(server, "moderator"), "every request that was answered is in the file"
    assert [entry["correct"] for entry in read_judgements(done.path)] == [True] * 4, "only verdicts count"


@pytest.mark.slow
async def test_a_judgement_on_another_diagnosis_does_not_count(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    """As after `resume --retry-failed`, which plays a unit again."""
    settings = settings_for(server, tmp_path)
    path = (await regrade(finished.folder, settings)).path
    journal = finished.folder / "scenarios.jsonl"
    first, *rest = journal.read_text().splitlines()
    changed = json.dumps({**without(json.loads(first), ["checksum"]), "diagnosis_text": "Scurvy"})
    journal.write_text("\n".join([changed, *rest]) + "\n")
    server.reset()

    await regrade(finished.folder, settings)

    assert asked(server, "moderator") == 1
    assert "Scurvy" in json.dumps(server.bodies())
    assert len(lines(path)) == 4


async def test_two_judges_are_never_mixed_in_one_file(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    await regrade(finished.folder, settings_for(server, tmp_path, moderator_llm="strict"), "mine")

    with pytest.raises(InputError, match=r"moderator_llm strict, not kind.*--name"):
        await regrade(finished.folder, settings_for(server, tmp_path, moderator_llm="kind"), "mine")


@pytest.mark.parametrize("name", ["../escape", "a/b", ".hidden"])
async def test_a_name_that_leads_elsewhere_is_refused(
    name: str, finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="name"):
        await regrade(finished.folder, settings_for(server, tmp_path), name)


async def test_only_diagnoses_are_judged_also_those_whose_judge_failed(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(
        rules=[
            {"match": {"purpose": "moderator"}, "fault": "500"},
            {"match": {"purpose": "patient", "nth": [1, 2]}, "fault": "500"},
        ]
    )
    finished, entries = await run_here(settings_for(server, tmp_path, num_scenarios=2))
    assert [entry["status"] for entry in entries] == ["model_failed", "judge_failed"]
    server.reset()

    regraded = await regrade(finished.folder, settings_for(server, tmp_path))

    assert [(e["scenario_id"], e["correct"]) for e in lines(regraded.path)] == [(1, True)]
    assert [(r.scenario_id, r.correct, now) for r, now in regraded.changed] == [(1, None, True)]


async def test_what_cannot_be_known_without_the_cases_is_counted(
    finished: Finished, server: ScriptedServer, tmp_path: Path
) -> None:
    whole = await regrade(finished.folder, settings_for(server, tmp_path), "whole")
    (finished.folder / "cases.jsonl").unlink()
    older = await regrade(finished.folder, settings_for(server, tmp_path), "older")
    assert (whole.without_chart, older.without_chart) == (0, 4)
