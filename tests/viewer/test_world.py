"""People in a solvable world and their runs in the viewer: menu, deferring, regret, and no word about the truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_support import needs_browser, running_browser, serious, visiting
from play_support import move, turn_of
from playwright.sync_api import expect
from runs_support import settings_for
from viewer_support import serving

from agentclinic.errors import InputError
from agentclinic.viewer.data import Library
from agentclinic.viewer.ending import ending
from agentclinic.viewer.export import export
from agentclinic.viewer.game import Room, seat_plans
from agentclinic.viewer.players import Player
from agentclinic.viewer.room import room_app

WORLD = "Solvable:chest-pain"


@pytest.mark.anyio
async def test_before_the_end_a_person_sees_the_same_whatever_the_truth_is(tmp_path: Path) -> None:
    plans = seat_plans(settings_for(None, tmp_path, dataset=WORLD, num_scenarios=6))
    assert list(plans) == ["doctor"], "the patient is exact"
    room = Room(plans, False, lambda: 1_000_000.0, lambda _: None)
    games = [room.run_of(Player("anna", "Anna", None), "doctor").begin(number) for number in range(1, 7)]
    for game in games:
        await turn_of(game)
    assert len({game.unit.case.diagnosis for game in games}) > 1
    assert all(game.view == games[0].view for game in games)
    assert len({repr({**door, "id": ""}) for door in room.doors.values()}) == 1

    game = games[0]
    assert game.view is not None
    assert "\n- Sweating (1 min)\n" in game.view["menu"]
    await game.submit(move(game, "question", "Sweating"))
    await turn_of(game)
    assert game.view["dialogue"][-1]["reply"] in ("Sweating: yes.", "Sweating: no.")
    with pytest.raises(InputError, match="how likely"):
        await game.submit(move(game, "diagnosis", "Panic disorder"))
    await game.submit(move(game, "diagnosis", "defer"))
    while game.phase != "over":
        await game.changed(game.version, 30)
    told = ending(game)
    assert told["verdict"] == "deferred"
    assert told["points"][1].endswith("stopped early " + told["points"][1].split()[1] + ".")
    assert told["encounter"]["turns"][0]["best"] == "Best action."
    assert len(told["best"]) == 2
    await room.close()


@needs_browser
@pytest.mark.slow
def test_a_person_plays_in_a_browser_and_the_run_is_listed_with_its_regret(tmp_path: Path) -> None:
    runs, size = tmp_path / "runs", {"width": 400, "height": 850}
    plans = seat_plans(settings_for(None, runs, dataset=WORLD, num_scenarios=2))
    with running_browser() as browser:
        with (
            serving(room_app(plans, say=lambda _: None)) as address,
            visiting(browser, address, viewport=size, color_scheme="dark", bypass_csp=True) as seen,
        ):
            page = seen.page
            page.get_by_label("Your name").fill("Anna")
            page.get_by_role("button", name="Enter").click()
            page.get_by_role("button", name="Continue").click()
            page.locator(".tile").first.click()
            expect(page.locator(".menu li").first).to_have_text("Chest pressure (1 min)")
            assert page.locator(".menu ul").count() == 4
            page.locator("#test").fill("trop")
            expect(page.locator("#tests li")).to_have_text(["Troponin$13"])
            page.locator("#test").fill("Troponin")
            page.keyboard.press("Enter")
            expect(page.get_by_role("log")).to_contain_text("Troponin: ")
            assert serious(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
            expect(page.locator("#diagnosis")).to_be_enabled()
            page.locator("#diagnosis").fill("DEFER")
            page.keyboard.press("Enter")
            expect(page.locator("#ending .verdict")).to_have_text("Deferred")
            expect(page.locator("#ending")).to_contain_text("the best play is worth 72.34 on average")
            expect(page.locator(".enc-best")).to_have_count(2)
            assert serious(page) == []
            assert seen.problems == []
        exported = export(runs, tmp_path / "exported")
        with visiting(browser, exported.as_uri(), viewport=size) as seen:
            expect(seen.page.locator('td[data-column="regret"]')).to_have_text(r := _regret(runs))
            assert float(r) > 0
            seen.page.locator("a[data-row]").first.click()
            expect(seen.page.locator(".enc-summary")).to_contain_text("Best play")
            expect(seen.page.locator(".enc-best")).to_have_count(2)
            assert seen.problems == []


def _regret(runs: Path) -> str:
    library = Library(runs)
    (name,) = library.places()
    (row,) = library.rows(name, 0, None)["rows"]
    return f"{dict(zip(library.runs()['columns'], row, strict=True))['regret']:.1f}"
