"""The consulting room in a browser: whole games, several people, reloads, a killed server, and what never leaks."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from browser_support import needs_browser, running_browser, serious, visiting
from play_support import CHART, SECRETS, TRUTH, traced_cases
from playwright.sync_api import Browser, Page, expect
from runs_support import records, settings_for, start, until
from scripted_server import ScriptedServer
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from viewer_support import serving

from agentclinic.config import Settings
from agentclinic.viewer.game import seat_plans
from agentclinic.viewer.moves import Seat
from agentclinic.viewer.room import room_app
from agentclinic.viewer.server import listen

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


class Traffic:
    """The application, and everything it answers; scripts, styles and the list of tests are the same for every case."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.address = ""
        self._answers: list[tuple[str, bytes]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            self._answers.append((scope["path"], repr(message).encode() + message.get("body", b"")))
            await send(message)

        await self._app(scope, receive, noted if scope["type"] == "http" else send)

    def found(self, *words: str) -> set[str]:
        """Those of the words that were in an answer so far, headers included."""
        own = [said for path, said in self._answers if not re.search(r"\.(js|css|svg)$|^/api/tests$", path)]
        assert own
        return {word for word in words if any(word.lower().encode() in said.lower() for said in own)}

    def forget(self) -> None:
        """Forget what was answered until now."""
        self._answers.clear()


@contextmanager
def room(
    folder: Path, *, panel: bool = False, cases: int = 3, more: dict[str, Any] | None = None, **run: Any
) -> Iterator[Traffic]:
    """A consulting room on traced cases, served."""
    file = traced_cases(folder / "cases.jsonl", cases)
    seats: tuple[Seat, ...] = ("doctor",) if panel else ("doctor", "patient")
    settings = settings_for(None, folder / "runs", dataset=str(file), **run)
    settings = Settings.model_validate({**settings.model_dump(), **(more or {})})
    traffic = Traffic(room_app(seat_plans(settings, seats), panel=panel, say=lambda _: None))
    with serving(traffic) as traffic.address:
        yield traffic


def player_run(folder: Path) -> Path:
    """The one run of a player."""
    (run,) = (folder / "runs").glob("*_player-*")
    return run


def answers(port: int) -> bool:
    """Whether a server listens at this port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def join(page: Page, name: str) -> None:
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Be the doctor")).to_be_visible()


def begin(page: Page, number: int, seat: str = "doctor") -> None:
    page.get_by_role("radio", name=f"the {seat}").check()
    page.get_by_label("Find a case").fill(f"traced-{number:02}")
    page.keyboard.press("Enter")
    expect(page.locator(".tile")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_focused()


def ask(page: Page, text: str) -> None:
    page.get_by_label("Ask the patient").fill(text)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Ask the patient")).to_be_empty()
    expect(page.get_by_label("Ask the patient")).to_be_enabled()


def commit(page: Page, diagnosis: str, sure: int) -> None:
    page.get_by_label("Commit to a diagnosis").fill(diagnosis)
    page.get_by_label("How sure (%)").fill(str(sure))
    page.keyboard.press("Enter")
    expect(page.locator("#ending")).to_be_visible()


def test_a_whole_game_by_keyboard_in_which_nothing_leaks(browser: Browser, tmp_path: Path) -> None:
    with room(tmp_path) as traffic, visiting(browser, traffic.address, viewport={"width": 400, "height": 800}) as seen:
        page = seen.page
        join(page, "Anna <b>K.</b>")
        begin(page, 2)
        ask(page, "Do you smoke?")
        expect(page.get_by_role("log")).to_contain_text("smokeword")
        page.locator("h1").click()  # out of the fields, keys lead to them
        page.keyboard.press("p")
        page.keyboard.type("Gout")
        page.keyboard.press("Tab")
        page.keyboard.type("35")
        page.locator("h1").click()
        page.keyboard.press("t")
        order = page.get_by_role("combobox", name="Order an examination or test")
        page.keyboard.type("hemoglobin of Mars, ct abdo")
        option = page.get_by_role("option", name=re.compile(r"^CT abdomen and pelvis \$\d"))
        expect(order).to_have_attribute("aria-expanded", "true")
        page.keyboard.press("ArrowDown")
        expect(option).to_have_attribute("aria-selected", "true")
        expect(order).to_have_attribute("aria-activedescendant", str(option.get_attribute("id")))
        page.keyboard.press("Enter")  # takes the test and sends nothing
        expect(order).to_have_value("hemoglobin of Mars, CT abdomen and pelvis")
        expect(page.get_by_text("and 1 test without a price")).to_be_visible()
        order.fill("ear, nose")
        page.get_by_role("option", name="Ear, nose and throat").click()
        expect(order).to_have_value("Ear, nose and throat examination")
        order.fill("hemoglobin")
        page.keyboard.press("Escape")
        expect(page.get_by_role("listbox")).to_be_hidden()
        page.keyboard.press("Enter")
        expect(page.get_by_role("log")).to_contain_text("bloodword")
        assert page.get_by_text("Something else: 65%").is_visible()
        page.reload()
        expect(page.get_by_role("log")).to_contain_text("bloodword")
        expect(page.get_by_label("Possible diagnosis").first).to_have_value("Gout")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert traffic.found(*CHART) == {"smokeword", "bloodword"}
        page.get_by_label("Possible diagnosis").first.fill("gout")
        commit(page, TRUTH, 70)
        expect(page.locator(".verdict")).to_have_text("Right")
        for told in ("70% sure", "Asthma since asthmaword", "Abdominal Examination", "Over 1 game, you were 70% sure"):
            expect(page.locator("#ending")).to_contain_text(told)
        assert traffic.found(TRUTH, "asthmaword") == {TRUTH, "asthmaword"}, "the check above can fail"
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.reload()
        expect(page.locator(".verdict")).to_have_text("Right")
        assert page.evaluate("localStorage.length") == 0
        assert page.locator(".course path.line").count() == 2, "one for each disease"
        page.get_by_role("link", name="Back to the cases").first.click()
        expect(page.get_by_role("button", name="traced-02 right 41-year-old woman with a sore toe")).to_be_visible()
        assert (seen.problems, seen.requests) == ([], [])
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], len(cookie["value"])) == (True, "Strict", 43)
    (record,) = records(player_run(tmp_path))
    assert record["doctor_llm"] == "human:anna-b-k-b"
    assert [turn["differential"] is not None for turn in record["transcript"]] == [False, False, True, False, True]


@pytest.mark.slow
def test_two_people_at_once_see_only_their_own(browser: Browser, tmp_path: Path) -> None:
    with (
        room(tmp_path) as traffic,
        visiting(browser, traffic.address) as one,
        visiting(browser, traffic.address) as two,
    ):
        anna, ben = one.page, two.page
        join(anna, "Anna")
        join(ben, "Ben")
        begin(anna, 1)
        begin(ben, 1)
        ask(anna, "Do you smoke? annaword")
        ask(ben, "Do you have asthma?")
        expect(ben.get_by_role("log")).to_contain_text("asthmaword")
        expect(ben.get_by_role("log")).not_to_contain_text("smokeword")
        commit(anna, "Gout", 90)
        expect(anna.locator(".verdict")).to_have_text("Wrong")
        traffic.forget()
        ben.goto(f"{traffic.address}game?seat=doctor&case=2")  # nothing is begun by an address alone
        expect(ben.get_by_role("button", name="traced-01 unfinished").first).to_be_visible()
        begin(ben, 1)
        expect(ben.get_by_role("log")).to_contain_text("asthmaword")
        assert traffic.found("anna", "smokeword", TRUTH, "asthmaword") == {"asthmaword"}
        ben.get_by_role("button", name="Save and leave").click()
        ben.get_by_role("button", name="Sign out").click()
        expect(ben.get_by_text("To come back as Ben, you need the code")).to_be_visible()
        ben.get_by_role("button", name="Sign out").click()
        ben.get_by_label("Your name").fill("anna")
        ben.get_by_role("button", name="Enter").click()
        expect(ben.get_by_role("alert")).to_contain_text("The name Anna is taken")
        assert one.problems == []
        assert two.problems == [problem for problem in two.problems if "400" in problem], "refusals, and nothing else"
    played = sorted((tmp_path / "runs").glob("*_player-*"))
    assert len(played) == 2
    assert [record["doctor_llm"] for folder in played for record in records(folder)] == ["human:anna"]


@pytest.mark.slow
def test_tiles_say_who_comes_and_where_and_many_can_be_searched(browser: Browser, tmp_path: Path) -> None:
    with room(tmp_path, cases=60) as traffic, visiting(browser, traffic.address, bypass_csp=True) as seen:
        page = seen.page
        join(page, "Anna")
        tiles = page.locator(".tile")
        expect(tiles).to_have_count(24)
        expect(tiles.nth(0)).to_have_text("traced-0140-year-old woman with a sore toe")
        expect(tiles.nth(1)).to_have_text("traced-0241-year-old woman with a sore toeprimary care")
        assert serious(page) == []
        assert traffic.found(*CHART) == set(), "a setting that names the truth is not shown"
        page.get_by_role("button", name="Show more (36 left)").click()
        expect(tiles).to_have_count(60)
        expect(tiles.nth(24)).to_be_focused()
        page.get_by_label("Find a case").fill("care 99-year")
        expect(page.get_by_text("1 of 60 cases")).to_be_visible()
        expect(tiles).to_have_count(1)
        page.get_by_role("radio", name="the patient").check()
        page.reload()
        expect(page.get_by_role("heading", name="Be the patient")).to_be_visible()
        assert seen.problems == []


@pytest.mark.slow
def test_the_patients_seat_shows_the_patients_facts_only(browser: Browser, tmp_path: Path) -> None:
    with room(tmp_path) as traffic, visiting(browser, traffic.address, bypass_csp=True) as seen:
        page = seen.page
        join(page, "Ben")
        begin(page, 1, "patient")
        expect(page.get_by_role("complementary")).to_contain_text("feverword")
        assert serious(page) == []
        over, answers = page.locator("#ending"), page.get_by_role("log").locator(".mine")
        waiting = page.get_by_role("status").filter(has_text="The doctor is waiting")
        while waiting.is_visible():
            assert traffic.found(*SECRETS) == set()
            given = answers.count()
            page.get_by_label("Answer the doctor").fill("Yes, for some days.")
            page.keyboard.press("Enter")
            expect(over.or_(answers.nth(given))).to_be_visible()
            expect(over.or_(waiting)).to_be_visible()
        expect(page.locator("#ending")).to_contain_text(TRUTH)
        assert seen.problems == []
    (record,) = records(player_run(tmp_path))
    assert (record["doctor_llm"], record["patient_llm"]) == ("builtin", "human:ben")


@pytest.mark.slow
def test_a_model_that_is_down_is_asked_again_without_losing_a_word(
    browser: Browser, tmp_path: Path, server: ScriptedServer
) -> None:
    server.fault("400")
    at_server = {"endpoints": {"scripted": {"base_url": server.base_url}}}
    patient: dict[str, Any] = {"patient_llm": "scripted", "patient_endpoint": "scripted", "simulator": "free"}
    with room(tmp_path, more=at_server, **patient) as traffic, visiting(browser, traffic.address) as seen:
        page = seen.page
        join(page, "Anna")
        begin(page, 1)
        page.get_by_label("Ask the patient").fill("Where does it hurt?")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("The patient does not answer. The game is kept")
        page.reload()
        expect(page.get_by_role("log")).to_contain_text("Where does it hurt?")
        server.reset()
        server.control(patient="<img src=x onerror=alert(1)> It \u202ehurts.")
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("log")).to_contain_text("<img src=x onerror=alert(1)> It ⟨U+202E⟩hurts.")
        expect(page.get_by_role("alert")).to_be_hidden()
        assert seen.problems == []


@pytest.mark.slow
def test_a_panel_asks_for_experience_and_gives_the_next_case(browser: Browser, tmp_path: Path) -> None:
    with (
        room(tmp_path, panel=True) as traffic,
        visiting(browser, traffic.address, bypass_csp=True, color_scheme="dark") as seen,
    ):
        page = seen.page
        assert serious(page) == []
        page.get_by_label("Your name").fill("Dr. Cruz")
        page.get_by_label("Your training").select_option("specialist")
        page.get_by_label("Years in practice").fill("12")
        page.get_by_role("button", name="Enter").click()
        page.get_by_role("button", name="Continue").click()
        assert serious(page) == []
        page.get_by_role("button", name="Next case").click()
        ask(page, "Do you smoke?")
        assert serious(page) == []
        commit(page, "Gout", 50)
        assert serious(page) == []
        page.get_by_role("button", name="Next case").click()
        expect(page.get_by_text("Turn 1 of 20")).to_be_visible()
        assert seen.problems == []
    about = json.loads((player_run(tmp_path) / "player.json").read_text())
    assert about["experience"] == {"training": "specialist", "specialty": "", "years": 12}


@pytest.mark.slow
def test_a_server_that_is_killed_and_restarted_loses_nothing(browser: Browser, tmp_path: Path) -> None:
    file = traced_cases(tmp_path / "cases.jsonl", 3)
    with listen() as listener:
        port = listener.getsockname()[1]
    command = ["play", "--dataset", str(file), "--no-browser", "--port", str(port)]
    server = start(*command, cwd=tmp_path)
    try:
        until(lambda: answers(port), "the server", server)
        with visiting(browser, f"http://127.0.0.1:{port}/") as seen:
            page = seen.page
            join(page, "Anna")
            begin(page, 3)
            ask(page, "Do you smoke?")
            page.get_by_label("Commit to a diagnosis").fill("Gou")
            server.signal(signal.SIGKILL)
            server.wait()
            page.get_by_label("Ask the patient").fill("Any asthma?")
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("Your words are still here")
            server = start(*command, cwd=tmp_path)
            until(lambda: answers(port), "the server", server)
            page.get_by_role("button", name="Ask", exact=True).click()
            expect(page.get_by_role("log")).to_contain_text("asthmaword")
            page.get_by_role("button", name="Save and leave").click()
            page.get_by_role("button", name="traced-03 unfinished").click()
            expect(page.get_by_role("log")).to_contain_text("smokeword")
            expect(page.get_by_label("Commit to a diagnosis")).to_have_value("Gou")
            expect(page.get_by_text("Turn 3 of 20. It is your turn.")).to_be_visible()
            commit(page, TRUTH, 60)
            expect(page.locator(".verdict")).to_have_text("Right")
    finally:
        server.signal(signal.SIGKILL)
    (record,) = records(player_run(tmp_path))
    assert [turn["text"] for turn in record["transcript"] if turn["role"] == "doctor"] == [
        "Do you smoke?",
        "Any asthma?",
        f"DIAGNOSIS READY: {TRUTH}",
    ]
    assert record["timing"]["on_task"][1]["restarts"] == 1


def test_the_list_of_tests_has_the_users_own_prices(tmp_path: Path) -> None:
    known = {"name": "ECG / EKG", "cost_min": 1000, "cost_max": 2000, "duration_min": 1, "wait_min": 1}
    (tmp_path / "measurement_cost.json").write_text(json.dumps({"known_costs": [known]}), encoding="utf-8")
    with room(tmp_path, prompts_dir=str(tmp_path)) as traffic, urlopen(f"{traffic.address}api/tests") as answer:
        listed = json.load(answer)
    prices = {test["name"]: test["usd"] for test in listed["tests"]}
    assert prices["Electrocardiogram"] == 1500
    assert 0 < prices["Chest X-ray"] < 1500
    assert listed["prices"].startswith("measurement_cost.json, then ")
