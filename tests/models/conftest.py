from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from endpoint_support import KEY, Connect, Naps
from pydantic import SecretStr
from scripted_server import ScriptedServer

from agentclinic.config import LLMSettings, RuntimeSettings
from agentclinic.models.endpoint import Clients, Endpoint


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
async def connect(server: ScriptedServer, naps: Naps) -> AsyncIterator[Connect]:
    opened: list[Clients] = []

    def make(
        name: str = "scripted",
        *,
        responses: dict[str, Any] | None = None,
        workers: int = 4,
        base_url: str | None = None,
        key: str | None = KEY,
        **runtime: Any,
    ) -> Endpoint:
        llm = LLMSettings(responses=responses or {}, runtime=RuntimeSettings(**runtime))
        clients = Clients(llm, workers=workers, clock=naps.clock)
        opened.append(clients)
        api_key = SecretStr(key) if key else None
        return clients.endpoint(name, base_url=base_url or server.base_url, api_key=api_key)

    yield make
    for clients in opened:
        await clients.__aexit__(None, None, None)
