"""What a model is told of the form of its answer."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel

from agentclinic.models.structured import outline


class Part(BaseModel):
    name: str
    state: Literal["on", "off"]
    share: float | None = None


class Whole(BaseModel):
    parts: list[Part]
    count: int = 0


def test_the_outline_of_a_form_is_its_fields_and_words_without_the_schema() -> None:
    assert outline(Whole) == '{"parts": [{"name": "...", "state": "on | off", "share": 0.1}, ...], "count": 1}'
    assert json.loads(outline(Whole).replace(", ...]", "]"))["parts"][0]["state"] == "on | off"
