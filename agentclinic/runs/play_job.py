"""Playing the units of a run, as a job for any process that can see the run's folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentclinic import privacy
from agentclinic.config import Settings
from agentclinic.doctors.uncertainty.store import FOLDER, SessionStore
from agentclinic.errors import ConfigError
from agentclinic.models.base import FATAL
from agentclinic.models.endpoint import Share
from agentclinic.privacy import DataClass
from agentclinic.results import run_folder as folders
from agentclinic.results.record import MISSING, Record
from agentclinic.results.run_cases import read_cases
from agentclinic.runs.build import Models, current
from agentclinic.runs.job import Work
from agentclinic.runs.outage import OUTAGE
from agentclinic.runs.plan import Unit, make_plan
from agentclinic.runs.play import play


@dataclass(frozen=True)
class PlayJob:
    """Play units of the run in this folder."""

    folder: Path
    data_class: DataClass
    digest: Mapping[str, Any]
    """What decides the results; a worker that finds a difference is refused."""

    @property
    def journal(self) -> Path:
        """The run's records."""
        return self.folder / folders.RECORDS

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[str, Record]]:
        """Rebuild the run's plan from its folder, and play its units by their keys."""
        privacy.raise_data_class(self.data_class)
        plan = make_plan(with_own_files(settings, self.folder), read_cases(self.folder))
        changed = sorted(key for key in {*self.digest, *plan.digest} if self.digest.get(key) != plan.digest.get(key))
        if changed:
            raise ConfigError(
                f"what decides the results is not the same there ({', '.join(changed)}); "
                "the same files must be on all machines"
            )
        plan = replace(plan, data_class=self.data_class)
        units = {unit.key: unit for unit in plan.units}
        sessions = SessionStore(self.folder / FOLDER, of_run=True)
        async with Models(plan.settings, plan.data_class, share=share) as models:
            models.prepare()
            current.set(models)
            yield lambda key: play(plan, units[key], models, sessions)

    def key(self, item: Unit) -> str:
        """The unit's key."""
        return item.key

    def sent(self, item: Unit) -> str:
        """The unit's key: the worker has the cases."""
        return item.key

    def is_settled(self, result: Record) -> bool:
        """Not if a server may be down or a key was refused: the run decides whether to record such a failure."""
        fault = result.fault
        return fault is None or not (fault.error in FATAL or (result.status in MISSING and fault.error in OUTAGE))

    def encode(self, result: Record) -> str:
        """The record's line."""
        return result.model_dump_json()

    def decode(self, text: str) -> Record:
        """The record."""
        return Record.model_validate_json(text)


def with_own_files(settings: Settings, folder: Path) -> Settings:
    """The settings with the run's own copies of the experiences and the split, if it has them."""
    own = {key: str(folder / name) for key, name in (("memory", folders.MEMORY), ("split", folders.SPLIT))}
    used = {key: path for key, path in own.items() if getattr(settings.run, key) and Path(path).exists()}
    return settings.changed(**used)
