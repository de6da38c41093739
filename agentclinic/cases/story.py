"""A patient's story as a writer gets it and gives it, before it is part of a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel


@dataclass(frozen=True)
class WriterPayload:
    """What the writer of a patient's story knows: the record before the diagnosis, never the diagnosis itself."""

    history_source: Literal["note", "triage", "codes", "none"]
    age: int | None
    sex: str
    arrival: str
    story: tuple[str, ...]
    past: tuple[str, ...]
    drugs: tuple[str, ...]


class WrittenStory(BaseModel):
    """A patient's story as a writer gives it; a part of which the record says nothing is empty."""

    objective: str
    """One sentence that asks the doctor to assess the patient, naming the complaint and nothing else."""
    history: str
    """What the patient noticed, when and how, in the third person."""
    primary_symptom: str
    secondary_symptoms: list[str]
    past_medical_history: str
    medications: str
    social_history: str
    family_history: str
    review_of_systems: str
