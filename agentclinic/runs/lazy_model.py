"""Models by name for code outside runs: a notebook, the synchronous interface, a tool called directly."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from agentclinic import privacy, sync_bridge
from agentclinic.config import Settings, load_settings
from agentclinic.models.base import Reply, Request
from agentclinic.runs.build import Models, current

USUAL = Path("llm.config.json")
_settings: Settings | None = None
_open: dict[str, Models] = {}
_opening = anyio.Lock()


def ambient_settings() -> Settings:
    """The settings used outside runs: those set, else `llm.config.json` of the working folder, else the defaults."""
    return _settings or load_settings(llm_config=USUAL if USUAL.is_file() else None)


def set_ambient_settings(settings: Settings | None) -> None:
    """Use these settings outside runs from now on; None goes back to the file of the working folder."""
    global _settings
    _settings = settings


class LazyModel:
    """A model found by name when it is asked: one of the run's models, or its own outside runs."""

    def __init__(self, name: str, runtime: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self._runtime = dict(runtime or {})
        """Changes to `llm.runtime`, outside runs only."""

    async def reply(self, request: Request) -> Reply:
        models = current.get() or await _models(self._settings())
        return await models.get(self.name).reply(request)

    def _settings(self) -> Settings:
        return ambient_settings().with_runtime(**self._runtime)


async def _models(settings: Settings) -> Models:
    # Outside runs, the class of the data is not known: the strictest class seen in this process applies.
    data_class = privacy.strictest_seen()
    secret = settings.openai.api_key and settings.openai.api_key.get_secret_value()
    key = f"{data_class} {settings.model_dump_json()} {secret}"
    async with _opening:
        if key not in _open:
            if not _open:
                atexit.register(sync_bridge.call, _close)
            _open[key] = await Models(settings, data_class).__aenter__()
        return _open[key]


async def _close() -> None:
    for models in _open.values():
        await models.__aexit__(None, None, None)
    _open.clear()
