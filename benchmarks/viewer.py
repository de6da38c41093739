"""The viewer on a large run compared with a small one: first view, filter, opening an encounter, in the browser.

python benchmarks/viewer.py                       50 and 5,000 encounters
python benchmarks/viewer.py --encounters 50 500

The encounters are those of the builtin clinic on OpenOSCE's development cases, repeated. Each run is opened with a
server that has just started and has read nothing. `first view` is the time until the first rows of the table are there,
`all rows` until the whole run has been read behind them; the others are measured after that. Needs chromium.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright
from report import find_chromium, play, write_run

from agentclinic.viewer.connections import Server
from agentclinic.viewer.server import address_of, listen, viewer_app

OPENED = 3
"""How often each run is opened; medians are printed."""
LONG = 900_000
"""Milliseconds to wait: a busy machine needs minutes to read thousands of encounters."""
STEPS = ("first view", "filter", "sort", "open an encounter", "all rows")
FILTER = """() => new Promise(done => {
  const select = document.querySelector('select'), began = performance.now();
  select.value = 'failed';
  select.dispatchEvent(new Event('change'));
  requestAnimationFrame(() => done(performance.now() - began));
})"""
SORT = """() => new Promise(done => {
  const began = performance.now();
  document.querySelector('th[data-column=truth] button').click();
  requestAnimationFrame(() => done(performance.now() - began));
})"""
OPEN = """() => new Promise(done => {
  const began = performance.now();
  new MutationObserver((_, watcher) => {
    if (!document.querySelector('.enc-turn')) return;
    watcher.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  }).observe(document.getElementById('main'), { childList: true, subtree: true });
  [...document.querySelectorAll('tbody a[data-row]')].at(-1).click();
})"""


def measured(browser: Browser, run: Path, encounters: int) -> dict[str, float]:
    """Milliseconds of each step, with a server of its own."""
    taken = {}
    with listen() as listener:
        server = Server(viewer_app(run))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        tab = browser.new_page()
        tab.set_default_timeout(LONG)
        began = time.perf_counter()
        tab.goto(address_of(listener), wait_until="commit")
        tab.wait_for_selector("tbody tr")
        taken["first view"] = 1000 * (time.perf_counter() - began)
        expect(tab.locator(".tally")).to_have_text(f"{encounters:,} encounters", timeout=LONG)
        expect(tab.locator(".facts")).not_to_contain_text("reading", timeout=LONG)
        taken["all rows"] = 1000 * (time.perf_counter() - began)
        taken["filter"] = tab.evaluate(FILTER)
        taken["sort"] = tab.evaluate(SORT)
        taken["open an encounter"] = tab.evaluate(OPEN)
        tab.close()
        server.should_exit = True
        thread.join()
    return taken


def main() -> None:
    """Open the runs and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encounters", type=int, nargs=2, default=[50, 5_000])
    sizes = parser.parse_args().encounters
    chromium = find_chromium()
    with tempfile.TemporaryDirectory() as name:
        played, records = play(Path(name) / "played")
        runs = {size: write_run(Path(name) / f"run{size}", played, records, size) for size in sizes}
        medians = {}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            measured(browser, runs[sizes[0]], sizes[0])  # the first one loads the vocabulary
            for size, run in runs.items():
                times = [measured(browser, run, size) for _ in range(OPENED)]
                medians[size] = {step: statistics.median(one[step] for one in times) for step in STEPS}
            browser.close()
        small, large = (medians[size] for size in sizes)
        print(f"{'':18} {sizes[0]:>9,} {sizes[1]:>12,}  ratio")
        for step in STEPS:
            print(f"{step:18} {small[step]:6.0f} ms {large[step]:9.0f} ms  x {large[step] / small[step]:.1f}")


if __name__ == "__main__":
    main()
