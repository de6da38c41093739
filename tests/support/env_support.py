"""What the tests of environments share: an encounter as a run plays it, and comparing its record with another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runs_support import Json
from scripted_server import ScriptedServer

from agentclinic import evaluate
from agentclinic.results.record import Record

OTHERWISE = frozenset({"timing", "usage", "cost_usd", "doctor_llm", "doctor"})
"""Fields, at any depth, in which an encounter may differ whose doctor is not a model of ours."""


def played(
    server: ScriptedServer, folder: Path, utterances: Sequence[str], dataset: str, case: str | int, **options: Any
) -> Record:
    """The record of a run on one case in which the plain doctor's model, at the server, says these words in turn.

    The diagnosis among them must be readable: a model of ours would be asked for the name once more.
    """
    llm_config = folder / "llm.config.json"
    llm_config.write_text(json.dumps({"openai": {"base_url": server.base_url}}))
    server.control(rules=[{"match": {"purpose": "doctor"}, "times": 1, "reply": words} for words in utterances])
    run = evaluate(
        "plain",
        dataset,
        llm_config=llm_config,
        progress=False,
        doctor_llm="scripted",
        scenarios=str(case),
        output_dir=str(folder / "runs"),
        **options,
    )
    (record,) = run.records
    return record


def same_record(one: Record | Json, other: Record | Json) -> bool:
    """Whether two records are the same in every field but `OTHERWISE`; fails with the first field that is not."""
    first, second = (_compared(record) for record in (one, other))
    for name in sorted(first.keys() | second.keys()):
        assert first.get(name) == second.get(name), f"{name} differs"
    return True


def _compared(record: Record | Json) -> Json:
    whole = record.model_dump(mode="json") if isinstance(record, Record) else Record(**record).model_dump(mode="json")
    kept: Json = _without(whole)
    return kept


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in OTHERWISE}
    return [_without(item) for item in value] if isinstance(value, list) else value
