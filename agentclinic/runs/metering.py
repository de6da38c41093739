"""A run's models as one unit uses them: what each role spends, which models answer, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentclinic.clinic.patient import Simulator
from agentclinic.config import ROLES
from agentclinic.models.base import Model, ModelError, Reply, Request
from agentclinic.models.recording import enter_unit
from agentclinic.results.turn import Usage
from agentclinic.runs.build import Models, current
from agentclinic.runs.plan import Unit
from agentclinic.runs.undo import Tape

METERED = (*ROLES, "planner", "synthesis", "memory", "embedding")
"""Parts whose use is counted, each separately."""


class UnitModels:
    """A run's models as one unit uses them: usage is counted by role, failed requests included.

    With a `tape`, replies are kept so that a person can go back.
    """

    def __init__(self, run: Models, tape: Tape | None = None) -> None:
        self.usage: dict[str, Usage] = {}
        self.served: dict[str, set[str]] = {}
        """The models that answered for each role, by the names that their endpoints gave."""
        self._run = run
        self._tape = tape
        self._others: set[str] = set()
        self._started, self._clock = datetime.now(UTC), time.perf_counter()

    def get(self, name: str, endpoint: str | None = None) -> Model:
        """A model asked for by name: only a custom doctor does that, through `query_model`."""
        if endpoint is None and self._run.plays("doctor", name):
            return self.for_role("doctor")
        self._others.add("doctor")
        return Metered(self._run.get(name, endpoint), "doctor", self.usage, self.served)

    def for_role(self, role: str) -> Model:
        model = Metered(self._run.for_role(role), role, self.usage, self.served)
        return self._tape.wrap(model, role) if self._tape else model

    def simulator(self, role: str, chosen: Simulator) -> Simulator:
        """How a role is played: the choice is for language models only, and builtin and people answer freely."""
        return chosen if self._run.simulates(role) else "free"

    def cost_usd(self, role: str, usage: Mapping[str, int | None]) -> float | None:
        """What a role's tokens cost; None if the role also used models of its own choice."""
        return None if role in self._others else self._run.cost_usd(role, usage)

    def timing(self, turns: Sequence[float | None]) -> dict[str, Any]:
        """When the unit began, how long it and its turns took, and which models answered."""
        timing: dict[str, Any] = {
            "started_at": self._started.isoformat(),
            "seconds": round(time.perf_counter() - self._clock, 3),
            "turns": turns,
        }
        if self.served:  # what is behind a name may change from one run to the next
            timing["models"] = {role: sorted(names) for role, names in self.served.items()}
        return timing


class Metered:
    """A model whose usage is counted for a role, and whose name is noted as its endpoint gives it."""

    def __init__(
        self, model: Model, role: str, usage: dict[str, Usage], served: dict[str, set[str]] | None = None
    ) -> None:
        self.name = model.name
        self._model = model
        self._role = role
        self._usage = usage
        self._served = served

    async def reply(self, request: Request) -> Reply:
        """Ask the model and count what the reply, or the failure, cost."""
        try:
            reply = await self._model.reply(request)
        except ModelError as error:
            if error.usage is not None:
                self._count(error.usage)
            raise
        self._count(reply.usage)
        if reply.model and self._served is not None:
            self._served.setdefault(self._role, set()).add(reply.model)
        return reply

    def _count(self, usage: Usage) -> None:
        self._usage[self._role] = self._usage[self._role] + usage if self._role in self._usage else usage


def open_unit(unit: Unit, run_models: Models, tape: Tape | None = None) -> UnitModels:
    """The models for one unit, which code called in this task also uses from now on."""
    enter_unit(unit.recording)
    models = UnitModels(run_models, tape)
    current.set(models)
    return models
