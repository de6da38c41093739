"""A large report compared with a small one: size, time to build, time to open, time from a click to the transcript.

python benchmarks/report.py                       50 and 5,000 encounters
python benchmarks/report.py --encounters 50 500

The encounters are those of the builtin clinic on OpenOSCE's development cases, repeated. A third page holds the large
run with every transcript as plain text instead of packed, to show what packing saves. Needs chromium.
"""

from __future__ import annotations

import argparse
import html
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
from playwright.sync_api import Browser, sync_playwright

from agentclinic.config import RunSettings, Settings
from agentclinic.jsonl import read_json_lines
from agentclinic.report.collect import Collected, collect
from agentclinic.report.page import page
from agentclinic.results.run_data import load_run
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress

OPENED = 3
"""How often each page is opened; medians are printed."""


def play(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """One builtin run, and its records."""
    settings = Settings(run=RunSettings(dataset="OpenOSCE", output_dir=str(folder)))
    done = anyio.run(execute, make_plan(settings), Progress())
    return done.folder, [entry for _, entry in read_json_lines(done.folder / "scenarios.jsonl", journal=True)]


def write_run(folder: Path, played: Path, records: list[dict[str, Any]], encounters: int) -> Path:
    """A run with this many encounters, made by repeating the records: the builtin clinic never varies.

    It holds the cases of the run that was played, so that the pages hold their charts.
    Neighbours in the file are different cases, so that packing gains nothing from the repeats.
    """
    folder.mkdir()
    shutil.copy(played / "cases.jsonl", folder)
    with (folder / "scenarios.jsonl").open("w", encoding="utf-8") as file:
        for number in range(encounters):
            repeat, place = divmod(number, len(records))
            file.write(json.dumps({**records[place], "repeat": repeat}, ensure_ascii=False) + "\n")
    return folder


def unpacked(collected: Collected, journal: Path) -> str:
    """The same page with every transcript as plain text."""
    transcripts = []
    for line in journal.open(encoding="utf-8"):
        turns = json.loads(line)["transcript"]
        transcripts.append("".join(f"<p><b>{html.escape(t['role'])}</b> {html.escape(t['text'])}</p>" for t in turns))
    return page(collected).replace("</main>", f"<section>{'<hr>'.join(transcripts)}</section></main>")


def opened(browser: Browser, file: Path) -> tuple[float, float, float]:
    """Milliseconds to the first paint, to the list of encounters, and from a click to the transcript."""
    paint, ready, click = [], [], []
    for _ in range(OPENED):
        tab = browser.new_page()
        tab.set_default_timeout(600_000)
        began = time.perf_counter()
        tab.goto(file.as_uri(), wait_until="commit")
        tab.wait_for_selector("#filters:not([hidden])")
        ready.append(1000 * (time.perf_counter() - began))
        paint.append(tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"))
        click.append(
            tab.evaluate(
                """() => new Promise(done => {
                  const dialog = document.getElementById('transcript'), began = performance.now();
                  new MutationObserver(() => requestAnimationFrame(() => done(performance.now() - began)))
                    .observe(dialog, { attributes: true, attributeFilter: ['open'] });
                  [...document.querySelectorAll('#rows .open')].at(-1).click();
                })"""
            )
        )
        tab.close()
    return statistics.median(paint), statistics.median(ready), statistics.median(click)


def find_chromium() -> str:
    """The browser's path; without one, the program ends."""
    found = shutil.which("chromium")
    if found is None:
        sys.exit("chromium is not installed; install it with: apt-get install --no-install-recommends chromium")
    return found


def main() -> None:
    """Build the pages, open them, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encounters", type=int, nargs=2, default=[50, 5_000])
    sizes = parser.parse_args().encounters
    chromium = find_chromium()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pages: dict[str, Path] = {}
        build: dict[str, float] = {}
        played, records = play(place / "played")
        for size in sizes:
            folder = write_run(place / f"run{size}", played, records, size)
            began = time.process_time()
            collected = collect([load_run(folder)], [folder.name])
            text = page(collected)
            build[f"{size:,}"] = time.process_time() - began
            pages[f"{size:,}"] = place / f"{size}.html"
            pages[f"{size:,}"].write_text(text, encoding="utf-8")
        plain = f"{sizes[1]:,} unpacked"
        pages[plain] = place / "plain.html"
        pages[plain].write_text(unpacked(collected, folder / "scenarios.jsonl"), encoding="utf-8")
        print(f"journal of {sizes[1]:,}: {(folder / 'scenarios.jsonl').stat().st_size / 1e6:.1f} MB")
        print(f"{'encounters':16} {'size':>9} {'CPU/record':>11} {'first paint':>16} {'list ready':>16} {'click':>14}")
        base: tuple[float, float, float] | None = None
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for label, file in pages.items():
                figures = opened(browser, file)
                base = base or figures
                cpu = f"{1000 * build[label] / int(label.replace(',', '')):.2f} ms" if label in build else "-"
                times = [f"{value:6.0f} ms x {value / first:.1f}" for value, first in zip(figures, base, strict=True)]
                megabytes = f"{file.stat().st_size / 1e6:.2f} MB"
                print(f"{label:16} {megabytes:>9} {cpu:>11} {times[0]:>16} {times[1]:>16} {times[2]:>14}", flush=True)
            browser.close()


if __name__ == "__main__":
    main()
