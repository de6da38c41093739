"""Undo: a person at the keyboard takes back a reply, and the encounter continues from there.

The encounter itself knows nothing of this. Every reply of an encounter is kept in order; to go back, the person's last
reply and everything after it are dropped, and the encounter is played again from the start with the replies that are
left. Roles and doctors are deterministic given the replies, so it arrives at the same point.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from agentclinic.config import is_person
from agentclinic.models import recording
from agentclinic.models.base import Model, ModelError, Reply, Request
from agentclinic.runs.human import Rewind

Played = TypeVar("Played")


@dataclass(frozen=True)
class _Kept:
    """One reply, or the failure in its place."""

    role: str
    by_person: bool
    outcome: Reply | ModelError
    requests_before: recording.Asked


class Tape:
    """The replies of one encounter so far."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []
        self._next = 0

    def wrap(self, model: Model, role: str) -> Model:
        """A model whose replies are kept, and repeated when the encounter is played again."""
        return _Taped(model, role, self)

    async def play(self, encounter: Callable[[], Awaitable[Played]]) -> Played:
        """Play an encounter, again from the start each time a person goes back."""
        while True:
            self._next = 0
            try:
                return await encounter()
            except Rewind:
                continue

    async def reply(self, model: Model, role: str, request: Request) -> Reply:
        """The kept reply, if there is one for this point, else a new one."""
        if self._next == len(self._kept):
            self._kept.append(await self._ask(model, role, request))
        outcome = self._kept[self._next].outcome
        self._next += 1
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    async def _ask(self, model: Model, role: str, request: Request) -> _Kept:
        before = recording.requests_made()
        try:
            outcome: Reply | ModelError = await model.reply(request)
        except ModelError as error:
            outcome = error
        except Rewind:
            self._forget_last(role, before)
            raise
        return _Kept(role, is_person(model.name), outcome, before)

    def _forget_last(self, role: str, before: recording.Asked) -> None:
        """Drop the person's last reply in this role and everything after it; without one, ask again."""
        spoken = [place for place, kept in enumerate(self._kept) if kept.role == role and kept.by_person]
        if spoken:
            before = self._kept[spoken[-1]].requests_before
            del self._kept[spoken[-1] :]
        recording.forget_requests_since(before)


class _Taped:
    """A model that answers through the tape."""

    def __init__(self, model: Model, role: str, tape: Tape) -> None:
        self.name = model.name
        self._model = model
        self._role = role
        self._tape = tape

    async def reply(self, request: Request) -> Reply:
        return await self._tape.reply(self._model, self._role, request)
