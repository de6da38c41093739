"""What the audit finds: a kind, the words concerned, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel

Role = Literal["patient", "measurement"]
ROLES: tuple[Role, ...] = ("patient", "measurement")


class Kind(StrEnum):
    """A way in which a reply departs from the chart or from the question."""

    CONTRADICTED = "contradicted"
    """Says something the chart says otherwise: a value, presence, side, duration."""
    INVENTED_MATERIAL = "invented_material"
    """A clinical fact that is not in the chart and could change the differential."""
    INVENTED_BENIGN = "invented_benign"
    """Something that is not in the chart and has no bearing."""
    OMITTED = "omitted_when_asked"
    """The chart holds what was asked, and the reply leaves it out."""
    OVERSHARED = "overshared"
    """Tells facts of the chart that nobody asked for."""
    REVEALED = "diagnosis_revealed"
    """Names the true diagnosis, other than as past history."""


class Finding(BaseModel):
    """One departure, with all a person needs to check it."""

    kind: Kind
    words: str
    """The words of the reply concerned; for an omission, the reply."""
    path: str | None = None
    """The place in the chart it rests on."""
    term: str | None = None
    """The term of the knowledge base, or the amount or word, it rests on."""
    why: str


@dataclass(frozen=True)
class Exchange:
    """A question or an order, and the reply to it."""

    role: Role
    asked: str
    reply: str
    told_before: tuple[str, ...] = field(default=())
    """Earlier replies of the encounter: what they told is neither left out nor given away now."""
    silent_symptom: str = "deny"
    missing_test: str = "unavailable"
