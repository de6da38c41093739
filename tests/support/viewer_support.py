"""What the tests of served pages share: a server in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp

from agentclinic.viewer.connections import Limits, Server
from agentclinic.viewer.server import address_of, listen


@contextmanager
def serving(app: ASGIApp, limits: Limits | None = None, *, websockets: bool = False) -> Iterator[str]:
    """Serve an application at a free port of this machine; gives its address."""
    with listen() as listener:
        server = Server(app, limits, websockets=websockets)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join()
