"""Runs in solvable worlds: the regret in reports, lists and encounters, and what such a run can show."""

from __future__ import annotations

import json
import re
from pathlib import Path

import anyio
import pytest
from browser_support import needs_browser, running_browser, serious, watched
from hostile_support import ATTACKS
from playwright.sync_api import expect
from report_support import Json, gathered, page_of, record, write_run
from runs_support import records, run_here, settings_for

from agentclinic.clinic.desk import EXACT
from agentclinic.report.card import card
from agentclinic.report.comparison import compared
from agentclinic.report.debriefing import debriefing
from agentclinic.report.encounter_data import RunContext, RunFolder, encounter_data
from agentclinic.report.files import spreadsheet
from agentclinic.report.markdown import markdown
from agentclinic.report.page import page
from agentclinic.report.statements import statements
from agentclinic.results.record import Record
from agentclinic.results.regret import KINDS
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import load_run


def played(place: Path, dataset: str = "Solvable:chest-pain", doctor: str = "plain", number: int = 8) -> Path:
    settings = settings_for(None, place, dataset=dataset, doctor=doctor, num_scenarios=number)
    return anyio.run(run_here, settings)[0].folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("runs")
    return {doctor: played(place / doctor, doctor=doctor) for doctor in ("plain", "random_actions")}


def test_the_bars_add_up_to_the_regret_per_encounter_kind_by_kind(runs: dict[str, Path]) -> None:
    found = [entry["regret"] for entry in records(runs["random_actions"])]
    shown = page(gathered(runs["random_actions"]))
    assert shown.count("Against the best play</h2>") == 1
    bars = re.findall(r"<title>turn \d+, ([^:]+): ([\d.]+)</title>", shown)
    for kind, name in KINDS.items():
        lost = sum(turn["regret"] for one in found for turn in one["turns"] if turn["kind"] == kind) / len(found)
        drawn = [float(value) for called, value in bars if called == name]
        assert sum(drawn) == pytest.approx(lost, abs=0.005 * max(1, len(drawn)))
        assert (f"</i>{name}</li>" in shown) == bool(lost)
    assert "Against the best play (8 encounters" in markdown(gathered(runs["random_actions"]), "mark")


def test_a_run_elsewhere_says_nothing_of_regret(tmp_path: Path) -> None:
    collected = gathered(write_run(tmp_path / "run", [record(0)]))
    assert "regret" not in page(collected).split("<main")[1].split("<script")[0].lower()
    shown = encounter_data(*_first(tmp_path / "run"))
    assert not {"points", "best", "belief"} & {key for part in (shown, *shown["turns"]) for key in part}


def _first(folder: Path) -> tuple[Record, RunContext]:
    run = load_run(folder)
    one = next(iter(run.records()))
    return one, RunFolder(run).context(one)


def test_each_turn_of_the_doctor_has_the_best_action_and_both_beliefs(runs: dict[str, Path]) -> None:
    found, context = _first(runs["plain"])
    assert found.regret is not None
    shown = json.loads(json.dumps(encounter_data(found, context)))
    said = [turn for turn in shown["turns"] if turn["role"] == "doctor"]
    assert [turn["best"] == "Best action." for turn in said] == [turn.kind == "best" for turn in found.regret.turns]
    wrong = next(turn for turn in found.regret.turns if turn.kind == "wrong_question")
    assert said[wrong.turn - 1]["best"] == (
        f"Best: {wrong.best}. Regret {wrong.regret:.2f} points: asked the wrong thing."
    )
    too_long = next((turn for turn in found.regret.turns if turn.kind == "too_long"), None)
    assert too_long is None or said[too_long.turn - 1]["best"].startswith(f"Best: the diagnosis {too_long.best}. ")
    for turn, against in zip(said, found.regret.turns, strict=True):
        assert [row[1] for row in turn["belief"]] == sorted(
            (round(p, 3) for p in against.posterior.values()), reverse=True
        )
        assert against.stated is not None
        assert {row[0]: row[2] for row in turn["belief"]} == {n: round(p, 3) for n, p in against.stated.items()}
    world = read_cases(runs["plain"])[0].door.menu
    assert world is not None
    prices = {name: price for turn in said for name, price in turn.get("tests", ())}
    assert prices == {name: world.findings[name].price for name in prices}
    assert prices["CT angiography of the aorta"] == 290
    value, utility, regret, luck = (
        float(re.search(pattern, " ".join(shown["points"])).group(1))  # type: ignore[union-attr]
        for pattern in (r"worth ([-\d.]+)", r"Utility ([-\d.]+)", r"Regret ([\d.]+)", r"chance \w+ ([\d.]+)")
    )
    took = -luck if "chance gave" in shown["points"][2] else luck
    assert value - utility == pytest.approx(regret + took, abs=0.03)
    named = [fact["text"] for fact in shown["chart"] if fact["section"] == "symptoms"]
    assert all(re.fullmatch(r"[A-Z].+: (yes|no)", text) for text in named), "an answer alone would not say to what"


def test_what_a_run_in_a_world_can_show_depends_on_what_the_doctor_was_told(tmp_path: Path) -> None:
    knowledge = {
        "": "Medical knowledge: the doctor was told",
        ",hidden": "only how far it agrees with the world's table",
        ",invented": "every disease, finding and test has an invented name",
        ",invented,hidden": "every disease, finding and test has an invented name",
    }
    for place, (marks, says) in enumerate(knowledge.items()):
        folder = played(tmp_path / str(place), f"Solvable:headache{marks}", number=1)
        text = " ".join(statements(gathered(folder).report.runs[0])["cannot"])
        assert says in text
        assert "have not been validated" in text
        for untrue in ("judge is a model", "builtin judge", "kept to the chart", "one country", "anyone's practice"):
            assert untrue not in text
        assert (marks == "") == ("was told" in text)
    about = card(folder)
    assert "Judged by name" in about
    assert "builtin judge" not in about
    assert about.count(f"| {EXACT} | - | none |") == 3


def test_two_runs_are_compared_by_their_regret(runs: dict[str, Path]) -> None:
    collected = gathered(runs["plain"], runs["random_actions"])
    report = collected.report.comparison
    assert report is not None
    (plain, random) = compared(report, report.comparisons).columns["regret (95% of the difference)"]
    means = [run.score.regret.regret.value for run in collected.report.runs]
    assert plain == f"{means[0]:.1f}"
    assert random.startswith(f"{means[1]:.1f}, +")
    assert f"on the cases of both: {random}." in page(collected).replace("\u00a0", " ")
    row, *_ = spreadsheet(collected).splitlines()
    assert row.split(",").count("regret") == 1


def test_a_debriefing_says_what_was_best_turn_by_turn_and_that_a_patient_was_handed_on(runs: dict[str, Path]) -> None:
    run = load_run(runs["random_actions"])
    cases = {case.id: case for case in read_cases(runs["random_actions"])}
    told = [(one, debriefing(one, cases[one.case_hash or ""])) for one in run.records()]
    for one, end in told:
        assert one.regret is not None
        assert len(end.best) == one.num_turns
        assert end.best[-1].startswith(f"Turn {one.num_turns}: ")
        assert (end.verdict == "deferred") == (one.regret.ending == "DEFER")
        assert end.against is None
    assert {end.verdict for _, end in told} >= {"deferred", "wrong"}


@needs_browser
@pytest.mark.slow
def test_the_list_and_an_encounter_in_a_browser(runs: dict[str, Path], tmp_path: Path) -> None:
    attack = ATTACKS["image"]
    belief = {attack: 0.9, "Gout": 0.1}
    turn: Json = {"action": attack, "kind": "too_long", "regret": 1.5, "luck": 0, "best": attack, "value": 1}
    against = {"world": "w", "best_value": 9, "utility": 1, "regret": 3, "luck": 5, "ending": None, "price": 0,
               "minutes": 0, "turns": [{"turn": n, **turn, "posterior": belief} for n in (1, 2, 3)]}  # fmt: skip
    hostile = write_run(tmp_path / "hostile", [record(0, regret=against)])
    file = page_of(tmp_path / "report.html", runs["random_actions"], hostile)
    with running_browser() as browser:
        for width, scheme in ((1280, "light"), (400, "dark")):
            size = {"width": width, "height": 900}
            with watched(browser, file, viewport=size, color_scheme=scheme, bypass_csp=True) as seen:
                seen.page.locator("#f-outcome").select_option("all")
                for down in (False, True):
                    seen.page.locator("#encounters").get_by_role("button", name="regret").click()
                    cells = [float(text) for text in seen.page.locator("td[data-head=regret]").all_inner_texts()]
                    assert cells == sorted(cells, reverse=down)
                    assert len(cells) == 9
                seen.page.get_by_role("button", name="Transcript of case Made/0").click()
                shown = seen.page.locator("#t-encounter")
                expect(shown.locator(".enc-best").first).to_have_text(
                    f"Best: the diagnosis {attack}. Regret 1.50 points: went on too long."
                )
                shown.get_by_text("Belief, exact: ").first.click()
                expect(shown.locator(".enc-belief").first).to_have_text(f"diseaseexact{attack}90%Gout10%")
                expect(shown.locator(".enc-summary")).to_contain_text("Luck: chance took 5.00 points.")
                assert serious(seen.page) == []
                assert seen.page.evaluate("document.documentElement.scrollWidth") == width
                assert (seen.problems, seen.requests) == ([], [])
