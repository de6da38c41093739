"""What the tests of served pages share: a server in this process, and the accessibility check."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from starlette.types import ASGIApp

from agentclinic.viewer.server import address_of, listen, web_server


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Serve an application at a free port of this machine; gives its address."""
    with listen() as listener:
        server = web_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join()


def serious(page: Page) -> list[str]:
    """Serious findings of the accessibility check; the page must have been opened with `bypass_csp=True`."""
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]} {one['nodes'][0]['failureSummary'][:200]}"
        for one in Axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
