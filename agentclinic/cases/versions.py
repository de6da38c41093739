"""Versions of a case: the patient is introduced differently, and everything clinical is that of the original.

A version says under `swapped_from` which case it was made from and how that one is introduced. What is drawn for a case
by its id, age and sex (completed results, the seed of an encounter) is drawn for the original, and scoring pairs a
version with its original and its other versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agentclinic.cases.model import JSON, Case

SWAPPED_FROM = "swapped_from"


class Original(NamedTuple):
    """The case that a version was made from: its id, and how it introduces the patient."""

    id: str
    demographics: str
    objective: str


def original_in(annotations: Mapping[str, JSON] | None) -> Original | None:
    """What a version says about its original; None for a case that is no version."""
    said = (annotations or {}).get(SWAPPED_FROM)
    if not isinstance(said, dict):
        return None
    given = [one for key in ("case_hash", "demographics", "objective") if isinstance(one := said.get(key), str)]
    return Original(*given) if len(given) == len(Original._fields) else None


def original_of(case: Case) -> Original:
    """The case that a version was made from; another case is its own original."""
    return original_in(case.annotations) or Original(case.id, case.door.demographics, case.door.objective)
