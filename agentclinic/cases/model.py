"""What a case is, whatever file it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from agentclinic.privacy import DataClass

JSON = Any
"""A value as `json.loads` gives it; charts are irregular by nature."""


class Section(StrEnum):
    """The part of the chart a fact stands in."""

    DEMOGRAPHICS = "demographics"
    HISTORY = "history"
    SYMPTOMS = "symptoms"
    PAST = "past_history"
    DRUGS = "drugs"
    ALLERGIES = "allergies"
    FAMILY = "family_history"
    SOCIAL = "social_history"
    REVIEW = "review_of_systems"
    VITALS = "vital_signs"
    EXAMINATION = "examination"
    TESTS = "tests"


PATIENT_SECTIONS = frozenset(
    {
        Section.DEMOGRAPHICS,
        Section.HISTORY,
        Section.SYMPTOMS,
        Section.PAST,
        Section.DRUGS,
        Section.ALLERGIES,
        Section.FAMILY,
        Section.SOCIAL,
        Section.REVIEW,
    }
)
"""What the patient can tell; the rest is the laboratory's."""


@dataclass(frozen=True)
class Fact:
    """One statement of the chart, with its place."""

    path: str
    """Keys from the chart's root joined by `/`, list places as `[0]`, sentences as `#0`."""
    section: Section
    heads: tuple[str, ...]
    """The readable names on the way to the value, outermost first: ("Blood Tests", "Hemoglobin")."""
    text: str
    denied: bool = False
    """The statement says that something is not there ("Denies fever")."""


@dataclass(frozen=True)
class Door:
    """What any doctor knows when the patient comes in."""

    objective: str
    demographics: str


@dataclass(frozen=True)
class AnswerKey:
    """Names a case's author accepts, accepts in part, or rejects with a reason."""

    accept: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    reject: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Case:
    """One patient with everything that is known, including what only the judge may see."""

    id: str
    """Hash of the normalised clinical content (chart and truth): equal for copies in other files."""
    dataset: str
    scenario_id: int
    """0-based row in its file."""
    door: Door
    patient: JSON
    """The patient's script as charted."""
    exam: JSON
    """Examination findings and test results as charted."""
    diagnosis: str
    """The truth. Only the judge sees it."""
    facts: tuple[Fact, ...]
    image: str | None = None
    answer_key: AnswerKey = AnswerKey()
    annotations: Mapping[str, JSON] = field(default_factory=dict)
    """Everything else in the row: for scoring and reports, never for an agent."""
    data_class: DataClass = DataClass.PUBLIC
    """Whose data this is: decides where it may be sent (`agentclinic.models.gate`)."""
    row: Mapping[str, JSON] = field(default_factory=dict, repr=False)
    """The row of the case file as it was written."""

    @property
    def symptoms_on_record(self) -> bool:
        """Whether anybody wrote down what the patient noticed; a made case says so under `history_source`."""
        return self.annotations.get("history_source") not in ("codes", "none")

    @property
    def patient_facts(self) -> tuple[Fact, ...]:
        """What the patient can tell."""
        return tuple(fact for fact in self.facts if fact.section in PATIENT_SECTIONS)

    @property
    def exam_facts(self) -> tuple[Fact, ...]:
        """What examination and laboratory can tell."""
        return tuple(fact for fact in self.facts if fact.section not in PATIENT_SECTIONS)


def as_text(chart: JSON) -> str:
    """A chart as it appears in a prompt."""
    return chart.strip() if isinstance(chart, str) else json.dumps(chart, ensure_ascii=False, indent=1)
