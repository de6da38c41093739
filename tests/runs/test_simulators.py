"""Grounded and voiced roles at a real server: both APIs, and a server that takes no schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs_support import run_here, settings_for
from scripted_server import ScriptedServer

pytestmark = pytest.mark.anyio


async def play(
    server: ScriptedServer, folder: Path, simulator: str, api: str, *rules: dict[str, Any]
) -> dict[str, Any]:
    server.control(rules=list(rules))
    settings = settings_for(server, folder, num_scenarios=1, simulator=simulator, runtime={"llm_api": api})
    _, (record,) = await run_here(settings)
    return record


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("simulator", ["grounded", "voiced"])
@pytest.mark.parametrize("schemas", [True, False])
async def test_every_reply_has_provenance_whatever_the_server_can_do(
    server: ScriptedServer, tmp_path: Path, simulator: str, api: str, schemas: bool
) -> None:
    rules = [] if schemas else [{"match": {}, "fault": "reject_format"}]
    record = await play(server, tmp_path, simulator, api, *rules)
    assert (record["status"], record["simulator"]) == (
        "diagnosed",
        {"patient": simulator, "measurement": simulator},
    )
    replies = [turn for turn in record["transcript"] if turn["role"] in ("patient", "measurement")]
    assert {turn["role"] for turn in replies} == {"patient", "measurement"}
    for turn in replies:
        assert turn["disclosures"], turn
        assert turn["details"]["simulator"] == simulator
    asked = {entry["purpose"] for entry in server.log()}
    assert ("measurement" in asked) is (simulator == "grounded"), "a voiced laboratory asks no model"


async def test_what_the_script_says_for_the_patient_is_checked(server: ScriptedServer, tmp_path: Path) -> None:
    """The scripted patient claims two days and a headache whatever the case: code words the facts instead."""
    record = await play(server, tmp_path, "voiced", "chat")
    patient = [turn for turn in record["transcript"] if turn["role"] == "patient"]
    assert all(turn["text"] != "I have had a throbbing headache for two days." for turn in patient if turn["slips"])
    assert any(turn["details"]["worded_by"] == "code" for turn in patient)
    assert record["usage"]["patient"]["requests"] > len(patient), "each was sent back once"
