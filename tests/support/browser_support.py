"""What the tests in a browser share: starting it, watching a page, and the accessibility check."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Page, Route, expect, sync_playwright
from scripted_server import LONG

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here; install it with: apt-get install --no-install-recommends chromium"
)
PATIENCE = LONG * 1000
"""Milliseconds, for the browser."""
expect.set_options(timeout=PATIENCE)


@contextmanager
def running_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page under watch: what it logged and requested."""

    page: Page
    problems: list[str] = field(default_factory=list)
    """Errors and warnings on the console, exceptions, dialogs."""
    requests: list[str] = field(default_factory=list)
    """Requests for anything that is not the page's own; all are blocked."""


@contextmanager
def visiting(browser: Browser, address: str, **context: Any) -> Iterator[Watched]:
    """Open an address in a browser context of its own; requests to anywhere but its server or folder are blocked."""
    scheme, host, path, *_ = urlsplit(address)
    folder = path.rpartition("/")[0]

    def own(url: str) -> bool:
        asked = urlsplit(url)
        return asked[:2] == (scheme, host) and (scheme != "file" or asked.path.startswith(folder))

    with _watching(browser, own, context) as watch:
        watch.page.goto(address)
        yield watch


@contextmanager
def watched(browser: Browser, file: Path, address: str = "", **context: Any) -> Iterator[Watched]:
    """Open a report in a browser context of its own; it may request nothing."""
    url = file.resolve().as_uri()
    with _watching(browser, lambda asked: asked.split("#")[0] == url, context) as watch:
        watch.page.goto(url + address)
        watch.page.wait_for_selector("#filters:not([hidden])", state="attached")
        yield watch


@contextmanager
def _watching(browser: Browser, own: Callable[[str], bool], context: dict[str, Any]) -> Iterator[Watched]:
    opened = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
    opened.set_default_timeout(PATIENCE)
    watch = Watched(opened.new_page())

    def decide(route: Route) -> None:
        if own(route.request.url):
            route.continue_()
        else:
            watch.requests.append(route.request.url)
            route.abort()

    def dismiss(dialog: Dialog) -> None:
        watch.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    opened.route("**/*", decide)
    watch.page.on("console", lambda message: watch.problems.append(f"{message.type}: {message.text}"))
    watch.page.on("pageerror", lambda error: watch.problems.append(f"exception: {error}"))
    watch.page.on("dialog", dismiss)
    try:
        yield watch
    finally:
        opened.close()


def serious(page: Page) -> list[str]:
    """Serious findings of the accessibility check; the page must have been opened with `bypass_csp=True`."""
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]} {one['nodes'][0]['failureSummary'][:200]}"
        for one in Axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
