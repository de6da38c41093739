"""What a question is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agentclinic.cases.model import Fact


class Asked(StrEnum):
    """What kind of thing a question is about; it decides what silence in the chart means."""

    OPENING = "opening"
    SYMPTOM = "symptom"
    BACKGROUND = "background"
    FAMILY = "family"
    RESULT = "result"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Topic:
    """One thing a question or an order is about, and the facts that answer it."""

    name: str
    kind: Asked
    facts: tuple[Fact, ...]
