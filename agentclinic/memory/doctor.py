"""A doctor with a memory: before each turn it is offered the experiences that fit what is known so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agentclinic.clinic.doctor import Doctor, Observation
from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.memory.experience import is_followed
from agentclinic.memory.retrieval import CaseMemory, Found
from agentclinic.models.base import FATAL, ModelError
from agentclinic.results.turn import Exchange, Turn

DETAILS = "memory"
"""Where a turn of the doctor records what memory offered."""


@dataclass(frozen=True)
class Recalled:
    """An experience as a doctor is offered it; it does not say which case it comes from."""

    id: str
    observation: str
    """The clinical pattern that it is about."""
    suggestion: str
    """What to ask, examine or order, and why."""
    step: str | None = None
    """The same as an id of the knowledge base, `finding:NAME` or `test:NAME`."""


class RememberingDoctor:
    """Offers experiences to any doctor, and records which ones and whether it followed them."""

    def __init__(self, doctor: Doctor, memory: CaseMemory, prompt: Prompt) -> None:
        self.doctor = doctor
        self._memory = memory
        self._prompt = prompt

    async def act(self, seen: Observation) -> tuple[Turn, ...]:
        """Recall, then let the doctor speak. On the last turn there is nothing left to do, and nothing is offered."""
        if seen.last:
            return await self.doctor.act(seen)
        found, problem = await self._recall(seen.exchanges, seen.turn)
        *aside, said = await self.doctor.act(self._advised(seen, found))
        used: dict[str, Any] = {"offered": [_offered(each, said) for each in found]}
        if problem:
            used["failed"] = problem
        return *aside, said.model_copy(update={"details": {**(said.details or {}), DETAILS: used}})

    async def _recall(self, exchanges: tuple[Exchange, ...], turn: int) -> tuple[list[Found], str | None]:
        """What memory finds; if one of its models fails, that is recorded and does not end the encounter."""
        try:
            return await self._memory.recall(exchanges, turn), None
        except ModelError as error:
            if error.kind in FATAL:
                raise
            return [], error.kind

    def _advised(self, seen: Observation, found: list[Found]) -> Observation:
        if not found:
            return seen
        recalled = tuple(
            Recalled(e.id, e.observation, e.suggestion, e.step.id if e.step else None)
            for e in (each.experience for each in found)
        )
        lines = "\n".join(f"- {each.observation} -> {each.suggestion}" for each in recalled)
        return replace(
            seen,
            advice=fill(self._prompt.text("block"), experiences=lines),
            suggested=tuple(each.step for each in recalled if each.step),
            recalled=recalled,
        )


def _offered(found: Found, said: Turn) -> dict[str, Any]:
    """What the record says about one experience; `followed` is null if it suggests no step that can be recognized."""
    step = found.experience.step
    followed = is_followed(step, said.action.kind, said.action.content) if step and said.action else None
    return {"id": found.experience.id, "score": round(found.score, 4), "followed": followed}
