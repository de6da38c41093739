"""Models by name for code outside runs: a notebook, the synchronous interface, a tool called directly."""

from __future__ import annotations

import atexit

import anyio

from agentclinic import privacy, sync_bridge
from agentclinic.config import Settings
from agentclinic.models.base import Reply, Request
from agentclinic.runs.build import Models, current

_settings = Settings()
_open: dict[str, Models] = {}
_opening = anyio.Lock()


def ambient_settings() -> Settings:
    """The settings used outside runs."""
    return _settings


def set_ambient_settings(settings: Settings) -> None:
    """Use these settings outside runs from now on."""
    global _settings
    _settings = settings


class LazyModel:
    """A model found by name when it is first asked: one of the run's models, or its own outside runs."""

    def __init__(self, name: str, settings: Settings | None = None) -> None:
        self.name = name
        self._settings = settings

    async def reply(self, request: Request) -> Reply:
        """Answer one request or raise a `ModelError`."""
        models = current.get() or await _models(self._settings or _settings)
        return await models.get(self.name).reply(request)


async def _models(settings: Settings) -> Models:
    # Outside runs, the class of the data is not known: the strictest class seen in this process applies.
    data_class = privacy.met()
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
