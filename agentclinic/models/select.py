"""Names select models: builtin, human, replay:FILE; anything else is a model at an endpoint."""

from __future__ import annotations

from contextlib import AsyncExitStack
from contextvars import ContextVar
from types import TracebackType
from typing import Self

from agentclinic.config import Settings
from agentclinic.errors import ConfigError
from agentclinic.models.base import Model
from agentclinic.models.builtin import Builtin

current: ContextVar[Models | None] = ContextVar("agentclinic_models", default=None)
"""The models of the run this code works in; `query_model` goes through them when there is one."""


class Models:
    """The models of one run, opened when first asked for and closed together."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._models: dict[tuple[str, str | None], Model] = {}

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def get(self, name: str, endpoint: str | None = None) -> Model:
        """The model of that name at that endpoint; the same object for the same question."""
        key = (name, endpoint)
        if key not in self._models:
            self._models[key] = await self._open(name, endpoint)
        return self._models[key]

    async def for_role(self, role: str) -> Model:
        """The model that plays a role in this run."""
        run = self._settings.run
        return await self.get(getattr(run, f"{role}_llm"), getattr(run, f"{role}_endpoint"))

    async def _open(self, name: str, endpoint: str | None) -> Model:
        if name == "builtin":
            if endpoint:
                raise ConfigError(f"the builtin model needs no endpoint; leave out {endpoint!r} or name a model")
            return Builtin()
        raise ConfigError(f"unknown model {name!r}")
