"""One unit from start to record."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import osce, write_rows
from runs_support import run_here, settings_for
from scripted_server import ScriptedServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("source", "said"), [("note", "No"), ("codes", "not sure")])
async def test_a_patient_denies_only_if_the_chart_records_symptoms(
    source: str, said: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(doctor=["Do you have a cough?", "DIAGNOSIS READY: Gout"])
    file = write_rows(tmp_path / "cases.jsonl", osce(history_source=source))
    settings = settings_for(server, tmp_path / "out", dataset=str(file), patient_llm="builtin")

    _, (record,) = await run_here(settings)

    assert said in record["transcript"][1]["text"]
