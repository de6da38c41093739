"""The viewer in a real browser, served and exported: every view, filters, keys, addresses, and runs that grow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser_support import Watched, needs_browser, running_browser, serious, visiting
from hostile_support import ATTACKS, hostile
from playwright.sync_api import Browser, Page, Route, expect
from report_support import Json, record, write_run, wrong
from viewer_support import serving

from agentclinic.files import Lock
from agentclinic.viewer.export import export
from agentclinic.viewer.server import viewer_app

pytestmark = needs_browser
SPECIALTIES = ("Cardiology", "Rheumatology", "Neurology")
CASES = 60


def entry(number: int, *, right: bool) -> Json:
    """A record of which a few say more than the others."""
    kind: Json = {"annotations": {"Specialty": SPECIALTIES[number % 3]}, "num_turns": 3 + number % 7}
    made = record(number, **kind) if right else wrong(number, **kind)
    if number == 41:
        made["transcript"][1]["text"] = "It began after a  Marathon\nin the rain."
    return made


def settings(units: int) -> Json:
    return {"agentclinic": {"units": units}, "run": {"repeats": 1}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs; in one, every text is an attack."""
    place = tmp_path_factory.mktemp("viewer") / "runs"
    write_run(place / "alpha", [entry(number, right=number % 4 > 0) for number in range(CASES)], settings(CASES))
    beta = [entry(number, right=number % 3 > 0) | {"doctor_llm": "e"} for number in range(CASES)]
    write_run(place / "beta", beta, settings(CASES + 5))
    attacks = [hostile(number, attack) for number, attack in enumerate(ATTACKS.values())]
    write_run(place / "'\"><img src=x onerror=window.__ran=1> & co", attacks)
    return place


@pytest.fixture(scope="module")
def forms(folder: Path) -> Iterator[dict[str, str]]:
    """The addresses of the served and of the exported viewer."""
    page = export(folder, folder.parent / "exported")
    with serving(viewer_app(folder)) as address:
        yield {"served": address, "exported": page.as_uri()}


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    del folder
    with running_browser() as browser:
        yield browser


@pytest.fixture(params=["served", "exported"])
def watch(request: pytest.FixtureRequest, browser: Browser, forms: dict[str, str]) -> Iterator[Watched]:
    """A page of one of the forms; nothing may be logged, and nothing requested from elsewhere."""
    with visiting(browser, forms[request.param]) as watch:
        yield watch
        assert watch.problems == []
        assert watch.requests == []


def at(page: Page, fragment: str) -> None:
    """Go to a place in the viewer, as someone does who was sent the address."""
    page.goto(page.url.partition("#")[0] + "#" + fragment)


def rows(page: Page) -> Any:
    return page.locator("tbody tr")


def names(page: Page) -> list[str]:
    found: list[str] = page.locator("tbody a[data-row]").all_inner_texts()
    return found


def test_runs_are_searched_sorted_and_compared(watch: Watched) -> None:
    page = watch.page
    expect(rows(page)).to_have_count(3)
    expect(rows(page).filter(has_text="alpha")).to_contain_text("75% (63% to 84%)")
    expect(rows(page).filter(has_text="beta")).to_contain_text("60 of 65")
    page.get_by_role("button", name="right (95%)").click()
    page.get_by_role("button", name="right (95%)").click()
    assert names(page)[:2] == ["alpha", "beta"]
    page.locator("#search").fill("ALPH")
    expect(rows(page)).to_have_count(1)
    assert page.url.endswith("sort=-right&q=ALPH")
    page.locator("#search").fill("")
    page.get_by_label("Select alpha to compare").check()
    page.get_by_label("Select beta to compare").check()
    page.get_by_role("button", name="Compare 2 runs").click()
    expect(page.locator(".conclusion")).to_contain_text("No clear difference: B -8.3 points")
    expect(rows(page)).to_have_count(2)
    page.get_by_role("link", name="Case Made/3 side by side").click()
    expect(page.get_by_role("heading", name="beta", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="alpha", exact=True)).to_be_visible()
    expect(page.locator(".enc-turn")).to_have_count(3)


@pytest.mark.slow
def test_filters_and_order_are_in_the_address(watch: Watched) -> None:
    page = watch.page
    page.get_by_role("link", name="alpha").click()
    expect(rows(page)).to_have_count(50)
    expect(page.locator(".facts")).to_contain_text("75%")
    assert names(page)[:3] == ["Made/0", "Made/1", "Made/2"]
    page.get_by_role("button", name="Next page").click()
    expect(rows(page)).to_have_count(10)
    page.get_by_label("Outcome").select_option("failed")
    expect(page.locator(".tally")).to_have_text("15 of 60 encounters")
    page.get_by_label("Specialty").select_option("Cardiology")
    expect(rows(page)).to_have_count(5)
    page.get_by_label("Search", exact=True).fill("septic")
    page.get_by_role("button", name="turns").click()
    page.get_by_role("button", name="turns").click()
    there = names(page)
    assert there == ["Made/48", "Made/12", "Made/24", "Made/36", "Made/0"], "the most turns first"
    expect(page.locator("thead th", has_text="turns")).to_have_attribute("aria-sort", "descending")
    address = page.url
    at(page, "")
    expect(rows(page)).to_have_count(3)
    page.goto(address)
    expect(rows(page)).to_have_count(5)
    assert names(page) == there
    expect(page.get_by_label("Search", exact=True)).to_have_value("septic")
    page.reload()
    expect(rows(page)).to_have_count(5)


def test_everything_that_was_said_is_searched(watch: Watched) -> None:
    page = watch.page
    at(page, "run=alpha&said=marathon in")
    expect(rows(page)).to_have_count(1)
    expect(page.locator("mark")).to_have_text("Marathon in")
    page.get_by_role("link", name="turn 1").click()
    expect(page.locator("#turn-1")).to_contain_text("Marathon")
    expect(page.locator(".actions")).to_contain_text("1 of 1 chosen")
    page.keyboard.press("u")
    page.get_by_label("Search the dialogue").fill("never said by anyone")
    page.keyboard.press("Enter")
    expect(page.locator(".tally")).to_have_text("0 of 60 encounters")


@pytest.mark.slow
def test_keys_move_through_rows_failures_and_encounters(watch: Watched) -> None:
    page = watch.page
    at(page, "run=alpha")
    expect(rows(page)).to_have_count(50)

    def focused() -> Any:
        return page.evaluate("() => document.activeElement.dataset.row").removeprefix("Made/")

    for key, row in (("j", "0"), ("j", "1"), ("ArrowDown", "2"), ("k", "1"), ("n", "4"), ("n", "8"), ("p", "4")):
        page.keyboard.press(key)
        assert focused() == row, key
    for _ in range(12):
        page.keyboard.press("n")
    assert focused() == "52", "on the second page"
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Case Made/52: wrong")
    page.keyboard.press("p")
    expect(page.locator("#title")).to_have_text("Case Made/48: wrong")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#title")).to_have_text("Case Made/49: right")
    page.keyboard.press("n")
    expect(page.locator("#title")).to_have_text("Case Made/52: wrong")
    page.keyboard.press("u")
    expect(page.get_by_role("link", name="Case Made/52", exact=True)).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("n?j")  # typed, not obeyed
    expect(page.get_by_label("Search", exact=True)).to_have_value("n?j")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page.locator("#title")).to_have_text("Runs")


def test_an_address_leads_to_a_turn_and_to_two_encounters_side_by_side(watch: Watched) -> None:
    page = watch.page
    at(page, "run=alpha&case=Made/41&turn=2")
    expect(page.locator("#turn-2")).to_have_class("enc-turn current")
    page.keyboard.press("j")
    expect(page.locator("#turn-3")).to_be_focused()
    assert page.url.endswith("run=alpha&case=Made%2F41&turn=3")
    page.get_by_label("Side by side with").select_option("beta")
    expect(page.locator(".enc-pair")).to_contain_text("beta")
    assert page.url.endswith("case=Made%2F41&with=beta")
    at(page, "run=alpha&case=999")
    expect(page.get_by_role("alert")).to_have_text("There is no case 999 in alpha.")
    at(page, "run=nowhere")
    expect(page.get_by_role("alert")).to_contain_text("there is no run nowhere", ignore_case=True)
    watch.problems[:] = [problem for problem in watch.problems if "400 (Bad Request)" not in problem]


@pytest.mark.parametrize(
    ("watch", "step"),
    [
        ("served", 6),
        pytest.param("served", 1, marks=pytest.mark.slow),
        pytest.param("exported", 1, marks=pytest.mark.slow),
    ],
    indirect=["watch"],
)
def test_hostile_text_is_shown_and_does_nothing(watch: Watched, step: int, folder: Path) -> None:
    page = watch.page
    expect(rows(page)).to_have_count(3)
    name = next(path.name for path in folder.iterdir() if "onerror" in path.name)
    at(page, f"run={quote(name)}")
    expect(rows(page)).to_have_count(len(ATTACKS))
    cases = names(page)
    page.get_by_label("Specialty").select_option(index=1)
    for number in range(0, len(ATTACKS), step):
        at(page, f"run={quote(name)}&case={quote(cases[number])}")
        expect(page.locator("#turn-3")).to_be_attached()
        page.evaluate("() => document.querySelectorAll('summary').forEach(one => one.click())")
    at(page, f"compare={quote(name)}&compare={quote(name)}")
    assert page.evaluate("() => window.__ran === undefined")
    foreign = "img, iframe, object, embed, base, math, style, a[href^=javascript], [onerror], [onload], main script"
    expect(page.locator(foreign)).to_have_count(0)
    watch.problems[:] = [problem for problem in watch.problems if "400 (Bad Request)" not in problem]


VIEWS = {
    "run=alpha&said=toe": "mark",
    "compare=alpha&compare=beta": ".conclusion",
    "": "tbody tr",
    "run=alpha&case=Made/4": ".enc-turn",
    "run=alpha&case=Made/4&with=beta": ".enc-pair",
}
"""Places in the viewer, and what is there when they are drawn."""


@pytest.mark.parametrize(
    ("scheme", "views"),
    [
        ("light", 2),
        pytest.param("light", 5, marks=pytest.mark.slow),
        pytest.param("dark", 5, marks=pytest.mark.slow),
    ],
)
def test_every_view_is_accessible(scheme: str, views: int, browser: Browser, forms: dict[str, str]) -> None:
    with visiting(browser, forms["served"], color_scheme=scheme, bypass_csp=True) as watch:
        for fragment, ready in list(VIEWS.items())[:views]:
            at(watch.page, fragment)
            expect(watch.page.locator(ready).first).to_be_visible()
            assert serious(watch.page) == [], fragment


@pytest.mark.slow
def test_every_view_fits_a_small_screen(browser: Browser, forms: dict[str, str]) -> None:
    with visiting(browser, forms["served"], viewport={"width": 400, "height": 800}) as watch:
        for fragment, ready in VIEWS.items():
            at(watch.page, fragment)
            expect(watch.page.locator(ready).first).to_be_visible()
            assert watch.page.evaluate("() => document.documentElement.scrollWidth") <= 400, fragment
        assert watch.problems == []


def test_a_run_is_followed_while_it_goes_on(browser: Browser, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    going = write_run(runs / "going", [record(0)], settings(3))
    write_run(runs / "other", [record(0)], settings(1))
    with serving(viewer_app(runs)) as address, visiting(browser, address) as watch:
        page = watch.page
        with Lock(going):
            expect(rows(page).filter(has_text="going")).to_contain_text("running")
            write_run(runs / "third", [record(0)], settings(1))
            expect(rows(page)).to_have_count(3)
            page.get_by_role("link", name="going").click()
            expect(page.locator(".facts")).to_contain_text("1 of 3")
            page.keyboard.press("j")
            with (going / "scenarios.jsonl").open("a") as journal:
                journal.write(json.dumps(wrong(1)) + "\n" + json.dumps(record(2))[:40])
            expect(rows(page)).to_have_count(2)
            expect(page.locator("#status")).to_have_text("1 new encounter, 2 of 3 in all")
            expect(page.locator(".facts")).to_contain_text("50%")
            assert page.evaluate("() => document.activeElement.dataset.row") == "Made/0", "the reader's place is kept"
            with (going / "scenarios.jsonl").open("a") as journal:
                journal.write(json.dumps(record(2))[40:] + "\n")
            expect(rows(page)).to_have_count(3)
        expect(page.locator(".facts")).to_contain_text("complete")
        # Failed encounters are played again: the file is replaced.
        replaced = write_run(tmp_path / "replaced", [record(0), record(1), record(2)]) / "scenarios.jsonl"
        replaced.replace(going / "scenarios.jsonl")
        expect(rows(page).filter(has_text="wrong")).to_have_count(0)
        expect(rows(page)).to_have_count(3)
        assert watch.problems == []


@pytest.mark.slow
def test_a_folder_of_one_run_opens_that_run_and_a_lost_server_is_said(browser: Browser, tmp_path: Path) -> None:
    write_run(tmp_path / "alone", [record(0)])
    with serving(viewer_app(tmp_path / "alone")) as address:
        opened = visiting(browser, address)
        watch = opened.__enter__()
        expect(watch.page.locator("#title")).to_have_text("alone")
        assert "run=alone" in watch.page.url
    expect(watch.page.get_by_role("alert")).to_contain_text("The server does not answer.")
    opened.__exit__(None, None, None)


def test_every_view_says_that_it_is_loading_and_that_the_server_is_gone(browser: Browser, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name, [record(0)])
    with serving(viewer_app(tmp_path)) as address:
        opened = visiting(browser, address)
        page = opened.__enter__().page
        expect(rows(page)).to_have_count(2)
        held: list[Route] = []
        released: list[bool] = []

        def hold(route: Route) -> None:
            if released:
                route.fallback()
            else:
                held.append(route)

        page.route("**/data/*", hold)
        for fragment, said in {
            "run=one": "Loading one…",
            "run=two&case=Made/0": "Loading case Made/0…",
            "compare=one&compare=two": "Loading the comparison…",
        }.items():
            at(page, fragment)
            expect(page.locator("main [role=status]", has_text=said)).to_be_visible()
        released.append(True)
        for route in held:
            route.fallback()
        at(page, "run=one&case=Made/0")
        expect(page.locator("#turn-3")).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    expect(page.locator("#turn-3")).to_be_visible()
    opened.__exit__(None, None, None)
