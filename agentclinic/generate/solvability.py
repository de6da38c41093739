"""Whether cases can be solved: the whole chart against only what is known at the door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentclinic.config import Settings
from agentclinic.results.journal import read_records
from agentclinic.results.run_folder import RECORDS
from agentclinic.runs.execute import Finished, execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.information import gap_to_full_information

DOCTORS = ("full_information", "door_only")


@dataclass(frozen=True)
class Solvability:
    """The runs by doctor, and what the chart adds to the accuracy."""

    runs: Mapping[str, Finished]
    gap: Estimate | None
    """None if a run was stopped before all cases were played; it is the last of `runs`."""


async def solvability(settings: Settings, progress: Callable[[], Progress]) -> Solvability:
    """Play every case with the whole chart, then with only what is known at the door."""
    runs: dict[str, Finished] = {}
    for doctor in DOCTORS:
        runs[doctor] = await execute(make_plan(settings.changed(doctor=doctor)), progress())
        if runs[doctor].missing:
            return Solvability(runs, None)
    full, door = (read_records(runs[doctor].folder / RECORDS) for doctor in DOCTORS)
    return Solvability(runs, gap_to_full_information(door, full))
