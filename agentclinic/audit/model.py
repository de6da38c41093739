"""What the audit reads and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel

Role = Literal["patient", "measurement"]
ROLES: tuple[Role, ...] = ("patient", "measurement")


class Kind(StrEnum):
    """A way in which a reply departs from the chart or from the question."""

    CONTRADICTED = "contradicted"
    """The chart says otherwise: a value, a side, a duration, or whether something is present."""
    INVENTED_MATERIAL = "invented_material"
    """A clinical fact that is not in the chart and could change the differential."""
    INVENTED_BENIGN = "invented_benign"
    """Something that is not in the chart but has no bearing on the diagnosis."""
    OMITTED = "omitted_when_asked"
    """The chart has what was asked for, and the reply leaves it out."""
    OVERSHARED = "overshared"
    """Facts of the chart that were not asked for."""
    REVEALED = "diagnosis_revealed"
    """Names the true diagnosis, other than as past history."""


class Finding(BaseModel):
    """One departure, with everything a person needs to check it."""

    kind: Kind
    words: str
    """The words concerned; for an omission, the beginning of the reply."""
    path: str | None = None
    """The place in the chart that shows it."""
    term: str | None = None
    """The symptom, amount or words that show it."""
    why: str


def finding(kind: Kind, words: str, why: str, path: str | None = None, term: str | None = None) -> Finding:
    """A finding, without the names of its fields."""
    return Finding(kind=kind, words=words, path=path, term=term, why=why)


@dataclass(frozen=True)
class AuditedReply:
    """A reply of the patient or the laboratory, with what it answers and the settings it was given under."""

    role: Role
    asked: str
    """The doctor's question or order."""
    text: str
    told_before: tuple[str, ...] = ()
    """Earlier replies in the encounter: what they told is neither omitted nor overshared now."""
    silent_symptom: str = "deny"
    missing_test: str = "unavailable"
