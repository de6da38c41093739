"""What the planner knows, for models that read no prompts."""

from __future__ import annotations

from dataclasses import dataclass

from agentclinic.cases.model import Door
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.doctors.planner.table import Table
from agentclinic.results.turn import Exchange


@dataclass(frozen=True)
class PlannerPayload:
    """What the planner knows, and how much it should return."""

    door: Door
    exchanges: tuple[Exchange, ...]
    min_findings: int
    """Findings each hypothesis must list."""
    max_hypotheses: int
    baseline: tuple[Exchange, ...] = ()
    """What it knows about the patient beyond what is known at the door, as if it had asked."""
    table: Table | None = None
    """The table so far; None if findings are weighed."""


@dataclass(frozen=True)
class InlinePayload:
    """What the doctor knows when it plans and speaks in one reply."""

    doctor: DoctorPayload
    planner: PlannerPayload


@dataclass(frozen=True)
class DiscriminatorPayload:
    """What the planner knows when asked how to distinguish close hypotheses."""

    door: Door
    exchanges: tuple[Exchange, ...]
    hypotheses: tuple[str, ...]
