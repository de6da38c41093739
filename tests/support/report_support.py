"""What the tests of reports share: made-up runs on disk, and a browser to open pages in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from agentclinic.report.collect import Collected, collect
from agentclinic.report.page import page
from agentclinic.results.run_data import load_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page, Route

Json = dict[str, Any]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here; install it with: apt-get install --no-install-recommends chromium"
)
PATIENCE = 120_000
"""Milliseconds no healthy step takes, however busy the machine."""
ORIGINALS_FIELDS = """scenario_id dataset status num_turns correct ground_truth diagnosis_text doctor_llm patient_llm
measurement_llm moderator_llm max_infs image_request_enabled doctor_hist patient_hist measurement_hist
llm_responses_config llm_runtime_config resource_level test_economics_log test_economics_totals""".split()


def write_run(folder: Path, records: Iterable[Json], config: Json | None = None) -> Path:
    """A run's folder with these records."""
    folder.mkdir(parents=True, exist_ok=True)
    written = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "scenarios.jsonl").write_text(written, encoding="utf-8")
    if config is not None:
        (folder / "config.used.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def differential(source: str = "posterior", other: float | None = 0.1, **odds: float) -> Json:
    hypotheses = [{"diagnosis": name.replace("_", " "), "probability": p} for name, p in odds.items()]
    return {"source": source, "hypotheses": hypotheses, "other": other}


def record(number: int = 0, **changes: Any) -> Json:
    """A record in our format: the doctor asks, orders a test, and rightly says Gout, 70% sure."""
    asked = differential(Gout=0.4, Septic_arthritis=0.5)
    sure = differential(Gout=0.7, Septic_arthritis=0.2)
    told = {"topic": "opening", "provenance": "chart", "paths": ["Patient_Actor/History#0"]}
    reported = {"topic": "Uric acid", "provenance": "chart", "paths": ["Test_Results/Uric_Acid"]}
    made = {
        "scenario_id": number, "dataset": "Made", "status": "diagnosed", "num_turns": 3, "correct": True,
        "ground_truth": "Gout", "diagnosis_text": "Gout", "doctor_llm": "d", "patient_llm": "p",
        "measurement_llm": "m", "moderator_llm": "j", "max_infs": 20, "case_hash": f"{number:016x}",
        "door": {"objective": "Find out.", "demographics": f"{40 + number}-year-old man"}, "doctor": "plain",
        "doctor_hist": f"dialogue {number}",
        "judgement": {"relation": "same", "reason": "equal", "correct_lenient": True},
        "differential": sure,
        "transcript": [
            {"turn": 1, "role": "doctor", "text": "What brings you in?", "action": "question", "differential": asked},
            {"turn": 1, "role": "patient", "text": "My toe hurts.", "disclosures": [told]},
            {"turn": 2, "role": "doctor", "text": "REQUEST TEST: Uric acid", "action": "test", "differential": asked},
            {"turn": 2, "role": "measurement", "text": "RESULTS: Uric acid: 9.1", "disclosures": [reported]},
            {"turn": 3, "role": "doctor", "text": "DIAGNOSIS READY: Gout", "action": "diagnosis", "differential": sure},
        ],
        "annotations": {"Specialty": "Rheumatology", "Difficulty": "easy", "Harm_If_Missed": 2},
        "usage": {"doctor": {"input_tokens": 10, "output_tokens": 5}}, "cost_usd": {"doctor": 0.01},
    }  # fmt: skip
    return {**made, **changes}


def wrong(number: int, said: str = "Septic arthritis", **changes: Any) -> Json:
    """A record in our format with a wrong diagnosis."""
    judged = {"relation": "different", "reason": "names another disease", "correct_lenient": False}
    return record(number, **{"diagnosis_text": said, "correct": False, "judgement": judged, **changes})


def in_the_originals_format(entry: Json) -> Json:
    """The record with only the original's fields."""
    return {key: entry.get(key) for key in ORIGINALS_FIELDS if key in entry}


def gathered(*folders: Path) -> Collected:
    return collect([load_run(folder) for folder in folders], [folder.name for folder in folders])


def page_of(target: Path, *folders: Path) -> Path:
    """Write the page about these runs."""
    target.write_text(page(gathered(*folders)), encoding="utf-8")
    return target


@contextmanager
def running_browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright  # not at the top: most tests need only made-up runs

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
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
