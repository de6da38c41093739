"""A language-model judge asked for the relation, over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs_support import run_here, settings_for
from scripted_server import ScriptedServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("relation", "right"), [("same", True), ("narrower_consistent", True), ("broader", False)])
async def test_the_relation_and_its_reason_come_from_the_model(
    relation: str, right: bool, server: ScriptedServer, tmp_path: Path
) -> None:
    verdict = json.dumps({"relation": relation, "reason": "the names agree"})
    server.control(doctor=["DIAGNOSIS READY: Gout"], rules=[{"match": {"purpose": "moderator"}, "reply": verdict}])
    settings = settings_for(server, tmp_path, num_scenarios=1, judge_relation=True)

    _, (record,) = await run_here(settings)

    assert (record["correct"], record["judgement"]["relation"]) == (right, relation)
    assert record["judgement"]["reason"] == "the names agree"


async def test_a_judge_that_gives_no_relation_has_failed_and_the_diagnosis_is_not_wrong(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(
        doctor=["DIAGNOSIS READY: Gout"], rules=[{"match": {"purpose": "moderator"}, "reply": "Hard to say."}]
    )
    settings = settings_for(server, tmp_path, num_scenarios=1, judge_relation=True)

    _, (record,) = await run_here(settings)

    assert (record["status"], record["correct"]) == ("judge_failed", None)
    assert record["fault"]["error"] == "malformed"
