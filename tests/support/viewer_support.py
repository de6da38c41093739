"""What the tests of served and exported pages share: a server in this process, and a browser that visits pages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, expect
from report_support import Watched
from starlette.types import ASGIApp

from agentclinic.viewer.server import address_of, listen, web_server

PATIENCE = 60_000
"""Milliseconds no healthy step takes, however busy the machine."""
expect.set_options(timeout=PATIENCE)


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


@contextmanager
def visiting(browser: Browser, address: str, **context: Any) -> Iterator[Watched]:
    """Open a page in a browser context of its own; requests to anywhere but its server or folder are blocked."""
    opened = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
    opened.set_default_timeout(PATIENCE)
    try:
        yield visit(opened.new_page(), address)
    finally:
        opened.close()


def visit(page: Page, address: str) -> Watched:
    """Watch a page and go to an address."""
    watch = Watched(page)
    scheme, host, path, *_ = urlsplit(address)
    folder = path.rpartition("/")[0]

    def decide(route: Any) -> None:
        asked = urlsplit(route.request.url)
        own = asked.scheme == scheme and asked.netloc == host and (scheme != "file" or asked.path.startswith(folder))
        if own:
            route.continue_()
        else:
            watch.requests.append(route.request.url)
            route.abort()

    def dismiss(dialog: Dialog) -> None:
        watch.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.route("**/*", decide)
    page.on("console", lambda message: watch.problems.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: watch.problems.append(f"exception: {error}"))
    page.on("dialog", dismiss)
    page.goto(address)
    return watch


def serious(page: Page) -> list[str]:
    """Serious findings of the accessibility check; the page must have been opened with `bypass_csp=True`."""
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]} {one['nodes'][0]['failureSummary'][:200]}"
        for one in Axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
