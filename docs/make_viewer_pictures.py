"""The pictures of the viewer in README and docs/viewer.md: `python docs/make_viewer_pictures.py` makes them again.

Plays OpenOSCE with builtin roles, serves the runs, and photographs the pages in Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from agentclinic.viewer.connections import Server
from agentclinic.viewer.server import address_of, listen, viewer_app

DOCS = Path(__file__).parent
RUNS = {"plain": (), "history-only": ("--doctor", "history_only"), "door-only": ("--doctor", "door_only")}
PICTURES = {
    "viewer.png": ("run={}&case=osce-a13&turn=3", "#turn-3", 1280, 800),
    "images/viewer-runs.png": ("", "tbody tr", 1200, 560),
    "images/viewer-run.png": ("run={}", "tbody tr", 1200, 800),
    "images/viewer-encounter.png": ("run={}&case=osce-a02", "#turn-2", 1200, 1000),
}
"""The place in the viewer, what is there when it is drawn, and the size."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, listen() as listener:
        for name, options in RUNS.items():
            command = ["run", "--dataset", "OpenOSCE", "--output-dir", folder, "--name", name, *options]
            subprocess.run([sys.executable, "-m", "agentclinic", *command], check=True)
        plain = next(Path(folder).glob("*_plain")).name
        server = Server(viewer_app(Path(folder)), None)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                for file, (place, ready, width, height) in PICTURES.items():
                    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
                    page.goto(f"{address_of(listener)}#{place.format(plain)}")
                    page.locator(ready).first.wait_for()
                    page.wait_for_timeout(500)  # until it has scrolled
                    page.screenshot(path=DOCS / file)
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    main()
