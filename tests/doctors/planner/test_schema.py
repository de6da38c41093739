"""What the planner is asked for: bounded everywhere, and read with patience."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from policy_support import Json, plan
from pydantic import BaseModel

from agentclinic.doctors.planner.schema import (
    Discriminators,
    PlannerReply,
    PlanThenSpeak,
    TableThenSpeak,
    WeighThenSpeak,
)
from agentclinic.models.structured import parse


def unbounded(node: Any, path: str = "") -> Iterator[str]:
    """Strings and lists in a JSON schema that may be as long as a model likes."""
    if isinstance(node, list):
        for item in node:
            yield from unbounded(item, path)
    elif isinstance(node, dict):
        if node.get("type") == "string" and not {"maxLength", "enum", "const"} & node.keys():
            yield path
        if node.get("type") == "array" and "maxItems" not in node:
            yield path
        for key, value in node.items():
            yield from unbounded(value, f"{path}/{key}")


@pytest.mark.parametrize("shape", [PlannerReply, Discriminators, PlanThenSpeak, WeighThenSpeak, TableThenSpeak])
def test_every_string_and_list_has_a_bound(shape: type[BaseModel]) -> None:
    assert list(unbounded(shape.model_json_schema())) == []


def read(reply: Json) -> PlanThenSpeak:
    parsed = parse(json.dumps(reply), PlanThenSpeak)
    assert isinstance(parsed, PlanThenSpeak)
    return parsed


def test_what_is_too_long_is_cut_or_taken_as_it_is() -> None:
    given = json.loads(plan([{"request": "r" * 999, "tells_apart": ["t" * 999]}], A=" ".join(["+1"] * 15)))
    given["hypotheses"][0]["diagnosis"] = "d" * 999
    given["hypotheses"][0]["findings"][0]["finding"] = "f" * 999
    given["utterance"] = "u" * 999
    reply = read(given)
    (hypothesis,) = reply.hypotheses
    assert hypothesis.diagnosis == "d" * 80
    assert hypothesis.findings[0].finding == "f" * 80
    assert len(hypothesis.findings) == 15, "every finding that came counts"
    assert reply.discriminators[0].request == "r" * 160
    assert reply.discriminators[0].tells_apart == ["t" * 80]
    assert reply.utterance == "u" * 999, "a token may stand at the end"
