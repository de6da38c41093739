from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest
from scripted_server import ScriptedServer

from agentclinic import privacy
from agentclinic.runs.lazy_model import set_ambient_settings

# A busy machine is no failure: no example has a deadline, and making examples may take long.
hypothesis.settings.register_profile(
    "any_speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any_speed")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, like everything that talks to an endpoint."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _a_process_of_its_own() -> None:
    """No test works under the class of data that an earlier one met, or with its settings."""
    privacy.reset()
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
