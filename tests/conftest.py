from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from scripted_server import ScriptedServer

from agentclinic import privacy, trust
from agentclinic.runs import auto
from agentclinic.runs.build import set_ambient_settings

# A busy machine is no failure: no example has a deadline, and making examples may take long.
hypothesis.settings.register_profile(
    "any_speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any_speed")

SETTINGS = tempfile.TemporaryDirectory(prefix="agentclinic-test-")
"""In place of the user's own settings folder, also for the processes that tests start."""
os.environ["XDG_CONFIG_HOME"] = SETTINGS.name
os.environ["XDG_CACHE_HOME"] = SETTINGS.name

LONGEST_FIRST = (
    "test_ray.py",
    "test_trust.py",
    "test_page.py",
    "test_view.py",
    "test_docs_run.py",
    "test_encounter.py",
    "test_play.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no worker has one of them left when the other is done."""
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def pytest_collection_finish() -> None:
    """Leave what was imported out of later garbage collections."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure() -> None:
    """Let what was left out be collected at the end: DuckDB would report it as leaked."""
    gc.unfreeze()


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, like everything that talks to an endpoint."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _a_process_of_its_own() -> None:
    """No test works under the class of data that an earlier one met, with its settings, or with what it confirmed."""
    privacy.reset()
    trust._allowed.clear()
    auto._made.clear()
    shutil.rmtree(Path(SETTINGS.name) / "agentclinic", ignore_errors=True)
    set_ambient_settings(None)


@pytest.fixture(scope="session")
def server_process() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def server(server_process: ScriptedServer) -> ScriptedServer:
    """A scripted OpenAI-compatible server that has forgotten everything."""
    server_process.reset()
    return server_process
