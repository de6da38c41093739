"""The picture of the study of stress, and its page: what they say, and that they can be read by everyone."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from browser_support import needs_browser, running_browser, serious, visiting
from playwright.sync_api import Browser
from runs_support import own_cases, settings_for

from agentclinic.cli.stress import stress_command
from agentclinic.config import TRAITS
from agentclinic.learn.stress import MEASURES


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small study with every trait."""
    tmp_path = tmp_path_factory.mktemp("stress")
    given = settings_for(None, tmp_path / "unused", dataset=str(own_cases(tmp_path, 6)), total_inferences=6)
    command = inspect.unwrap(stress_command)  # without the flags: the settings are given here
    command(read=lambda: given, levels="0,2", together=True, output=tmp_path / "study", quiet=True)
    return tmp_path / "study"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as opened:
        yield opened


def test_the_picture_has_a_title_a_description_and_a_label_for_every_line(played: Path) -> None:
    report = json.loads((played / "study.json").read_text())
    drawn = ET.fromstring((played / "stress.svg").read_text())
    name = "{http://www.w3.org/2000/svg}"
    assert drawn.tag == f"{name}svg"
    assert "difficult patients" in (drawn.findtext(f"{name}title") or "")
    described = drawn.findtext(f"{name}desc") or ""
    panels = {each["measure"] for each in report["responses"]}
    assert panels <= set(MEASURES)
    texts = [each.text for each in drawn.iter(f"{name}text")]
    for dose in (*TRAITS, "all together"):
        assert texts.count(dose) == len(panels)
        assert f"{dose}: level 2 " in described
    assert texts.count("level") == len(panels), "the dose is on the x-axis"
    assert "NaN" not in (played / "stress.svg").read_text()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_requests_nothing(played: Path, browser: Browser, scheme: str) -> None:
    with visiting(browser, (played / "stress.html").as_uri(), color_scheme=scheme, bypass_csp=True) as seen:
        assert seen.page.locator("figure svg").count() == len(MEASURES)
        assert seen.problems == []
        assert seen.requests == []
        assert serious(seen.page) == []


@needs_browser
def test_the_page_fits_a_phone(played: Path, browser: Browser) -> None:
    with visiting(browser, (played / "stress.html").as_uri(), viewport={"width": 400, "height": 800}) as seen:
        wide = seen.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 400
