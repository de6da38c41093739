"""One encounter as data and in a real browser: lanes, chart, differential, keys, addresses, two runs side by side."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from browser_support import Watched, needs_browser, running_browser, serious, visiting
from hostile_support import ATTACKS, hostile
from memory_support import DURATION, store_of
from playwright.sync_api import Browser, Page
from report_support import Json, in_the_originals_format, record, unread, write_run, wrong
from runs_support import records, run_here, settings_for
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from viewer_support import serving

from agentclinic.jsonl import inert
from agentclinic.memory.store import load_store
from agentclinic.report.encounter_data import RunFolder, encounter_data
from agentclinic.results.run_cases import CASES, read_cases
from agentclinic.results.run_data import load_run
from agentclinic.viewer.server import make_app

DOCTORS: dict[str, Json] = {
    "plain": {},
    "uncertainty": {"doctor": "uncertainty"},
    "policy": {"doctor_test_policy_enabled": True},
    "history": {"doctor": "history_only"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same case, met by each kind of doctor with builtin roles."""
    place = tmp_path_factory.mktemp("runs")
    settings: Json = {"dataset": "OpenOSCE", "num_scenarios": 1, "total_inferences": 6}
    return {
        name: anyio.run(run_here, settings_for(None, place / name, **settings, **doctor))[0].folder
        for name, doctor in DOCTORS.items()
    }


def data_of(folder: Path, place: int = 0) -> Json:
    """An encounter of a run, as it reaches a page."""
    run = load_run(folder)
    record = list(run.records())[place]
    shown: Json = json.loads(json.dumps(encounter_data(record, RunFolder(run).context(record))))
    return shown


def test_what_a_patients_traits_did_stands_under_the_reply(tmp_path: Path) -> None:
    settings: Json = {"dataset": "OpenOSCE", "num_scenarios": 1, "total_inferences": 3, "patient_traits": "difficult"}
    done, *_ = anyio.run(run_here, settings_for(None, tmp_path, **settings))
    lines = [line for turn in data_of(done.folder)["turns"] for line in turn.get("traits", ())]
    assert lines
    assert all(line.startswith(("Kept back (", "Vague (", "Added (")) for line in lines)


# --- the data -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_facts_that_replies_uncover_are_those_of_the_runs_own_chart(runs: dict[str, Path]) -> None:
    shown, (case,), (entry,) = data_of(runs["plain"]), read_cases(runs["plain"]), records(runs["plain"])
    assert [fact["id"] for fact in shown["chart"]] == [fact.path for fact in case.facts]
    paths = [{p for part in turn["disclosures"] for p in part["paths"]} for turn in entry["transcript"]]
    told = [
        {shown["chart"][place]["id"] for part in turn.get("told", ()) for place in part.get("facts", ())}
        for turn in shown["turns"]
    ]
    assert told == paths
    (door, *later) = shown["uncovered"]
    assert [door[0], [shown["chart"][place]["id"] for place in door[1]]] == [0, ["Patient_Actor/Demographics"]]
    first = [place for _, places in later for place in places]
    assert len(first) == len(set(first)), "a fact is uncovered once"
    assert {shown["chart"][place]["id"] for place in first} == set().union(*paths) - {"Patient_Actor/Demographics"}
    assert shown["verdict"]["judge"] == "builtin"
    assert "missing" not in shown


def test_each_doctors_own_notes_are_with_the_turn_they_belong_to(runs: dict[str, Path]) -> None:
    steps = [turn["step"]["number"] for turn in data_of(runs["uncertainty"])["turns"] if turn["role"] == "doctor"]
    assert steps == list(range(1, len(steps) + 1))
    assert data_of(runs["uncertainty"])["session"]["synthesis_model"] == "builtin"
    plans = [turn for turn in data_of(runs["policy"])["turns"] if turn["role"] == "planner"]
    assert plans[0]["differential"]["scores"] is True
    assert "Planning Notes" in plans[0]["text"]
    (entry,) = records(runs["policy"])
    took = [seconds is None for seconds in entry["timing"]["turns"]]
    assert took == [turn["role"] == "planner" for turn in entry["transcript"]], "its time is in that of the words"


def test_tokens_time_price_slips_and_memory_of_a_turn(tmp_path: Path) -> None:
    gone = {"id": "gone", "score": 1, "followed": None}
    offered = {"offered": [{"id": DURATION.id, "score": 1.5, "followed": True}, gone]}
    used = {"input_tokens": 1_000_000, "output_tokens": 0}
    asked = {"turn": 1, "role": "doctor", "text": "Since when?", "raw": "Doctor: Since when?", "slips": ["own_label"],
             "usage": used, "details": {"memory": offered}}  # fmt: skip
    digest = load_store(store_of(tmp_path / "memory.jsonl")).digest
    made = record(memory=f"bm25 {digest}", transcript=[asked], timing={"turns": [61.04]}, cost_usd={"doctor": 2.0})
    config: Json = {"run": {"doctor_llm": "d"}, "openai": {"prices": {"d": {"input": 2, "output": 4}}}}
    folder = write_run(tmp_path / "run", [made], config)
    shutil.copy(tmp_path / "memory.jsonl", folder)
    (turn,) = data_of(folder)["turns"]
    assert (turn["tokens"], turn["seconds"], turn["usd"]) == ([1_000_000, 0], 61.0, 2.0)
    assert (turn["raw"], turn["slips"]) == ("Doctor: Since when?", ["put a speaker's label before its own words"])
    known, unknown = turn["recalled"]["offered"]
    assert known["suggestion"] == DURATION.suggestion
    assert unknown == gone
    # Two models may have shared the tokens of a turn that ends in a synthesis.
    ended = {**asked, "details": {"synthesis": {"model": "s"}}}
    config["run"]["synthesis_llm"] = "s"
    write_run(folder, [{**made, "transcript": [ended]}], config)
    assert "usd" not in data_of(folder)["turns"][0]


def test_what_is_not_recorded_is_said(tmp_path: Path, runs: dict[str, Path]) -> None:
    (entry,) = records(runs["uncertainty"])
    old = data_of(write_run(tmp_path / "old", [in_the_originals_format(entry)]))
    assert old["missing"][0] == "The run kept the dialogue as one text."
    assert "The run does not hold this case, so the chart cannot be shown." in old["missing"]
    said = [{"turn": 1, "role": "doctor", "text": "Hello?"}, {"turn": 1, "role": "patient", "text": "Yes."}]
    free = data_of(write_run(tmp_path / "free", [record(transcript=said)]))
    assert "Which facts the patient used is not recorded for any of its replies." in free["missing"]
    assert "The doctor gave no differential." in free["missing"]

    broken = write_run(tmp_path / "broken", [{**entry, "session_id": "../../secret", "checksum": None}])
    (broken / CASES).write_bytes((runs["plain"] / CASES).read_bytes().replace(b"Denies ", b"Reports "))
    (broken / "judgements").mkdir()
    (broken / "judgements" / "other.jsonl").write_text("{}{\n")
    chart, session, verdicts = data_of(broken)["missing"][:3]
    assert chart.startswith("The chart cannot be shown: cases.jsonl line 1: the case was changed since the run")
    assert session.startswith("The doctor's session cannot be shown: ")
    assert verdicts.startswith("Other verdicts cannot be shown: judgements/other.jsonl line 1: ")
    assert all(str(tmp_path) not in said for said in data_of(broken)["missing"])


def test_the_verdicts_of_other_judges_are_listed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record(0)])
    unit = {"scenario_id": 0, "case_hash": f"{0:016x}", "repeat": 0}
    (folder / "judgements").mkdir()
    for judge, correct in (("strict", False), ("kind", True)):
        line = {**unit, "correct": correct, "relation": "broader", "reason": "so be it"}
        (folder / "judgements" / f"{judge}.jsonl").write_text(json.dumps(line) + "\n")
    shown = data_of(folder)
    said = {"relation": "the same disease", "reason": "equal", "lenient": True}
    assert shown["verdict"] == {"judge": "j", "correct": True, **said}
    assert [(one["judge"], one["correct"]) for one in shown["verdicts"]] == [("kind", True), ("strict", False)]


def test_who_decided_is_said_and_what_could_not_be_read(tmp_path: Path) -> None:
    by_code = {"correct": True, "reason": "equal", "decided_by": "code"}
    folder = write_run(tmp_path / "run", [unread(0), record(1, judgement=by_code)])
    (folder / "judgements").mkdir()
    entries: list[Json] = [
        {"scenario_id": 0, "correct": True, "decided_by": "person"},
        {"scenario_id": 1, "correct": None, "reason": "cannot read 'Gout'"},
    ]
    lines = [json.dumps({**entry, "case_hash": f"{entry['scenario_id']:016x}", "repeat": 0}) for entry in entries]
    (folder / "judgements" / "other.jsonl").write_text("\n".join(lines) + "\n")
    first, second = data_of(folder, 0), data_of(folder, 1)
    assert (first["outcome"], first["why"]) == ("not_readable", ["cannot read 'zzyzx'"])
    assert first["verdict"] == {"judge": "j", "correct": None, "reason": "cannot read 'zzyzx'", "unread": True}
    assert first["verdicts"] == [{"judge": "other", "correct": True, "lenient": True, "by": "person"}]
    assert second["verdict"] == {"judge": "j", "correct": True, "reason": "equal", "by": "code"}
    assert second["verdicts"] == [{"judge": "other", "correct": None, "reason": "cannot read 'Gout'", "unread": True}]


# --- the page -------------------------------------------------------------------------------------------------------

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Encounter</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="base.css">
<link rel="stylesheet" href="encounter.css"><script src="dom.js"></script><script src="encounter.js"></script></head>
<body><main><h1>Encounter</h1><div id="root"></div></main><script src="show.js"></script></body></html>"""


@pytest.fixture(scope="module")
def browser(runs: dict[str, Path]) -> Iterator[Browser]:
    """One browser for the module; it starts after the runs, because it would disturb their event loops."""
    del runs
    with running_browser() as browser:
        yield browser


@contextmanager
def drawn(browser: Browser, *shown: Json, address: str = "", **context: Any) -> Iterator[Watched]:
    """Open a page of the viewer's server that draws one encounter, or two side by side."""
    call = "renderEncounter" if len(shown) == 1 else "renderSideBySide"
    given = ", ".join(json.dumps(one) for one in shown)

    async def page(_: Request) -> Response:
        return HTMLResponse(PAGE)

    async def script(_: Request) -> Response:
        return Response(f'{call}(document.getElementById("root"), {given});', media_type="text/javascript")

    app = make_app([Route("/", page), Route("/show.js", script)])
    with serving(app) as server, visiting(browser, server + address, **context) as watch:
        watch.page.wait_for_selector("#root.encounter")
        yield watch
        assert watch.problems == []
        assert watch.requests == []


def current(page: Page) -> str | None:
    return page.locator(".enc-turn.current").get_attribute("id")


@needs_browser
def test_keys_walk_through_the_turns_of_each_doctor_and_the_chart_follows(
    browser: Browser, runs: dict[str, Path]
) -> None:
    folds = {"plain": "Differential (computed)", "uncertainty": "Session step 3", "policy": "Planning notes"}
    for name, fold in folds.items():
        shown = data_of(runs[name])
        with drawn(browser, shown) as watch:
            page = watch.page
            for _ in range(4):
                page.keyboard.press("j")
            page.keyboard.press("k")
            assert current(page) == "turn-3"
            assert page.evaluate("location.hash") == "#turn-3"
            assert page.evaluate("document.activeElement.id") == "turn-3"
            known = sum(len(places) for turn, places in shown["uncovered"] if turn <= 3)
            count = f"Uncovered by turn 3: {known} of {len(shown['chart'])}"
            assert page.locator(".enc-count").inner_text() == count
            assert page.locator(".enc-facts li.known").count() == known
            assert page.locator("#turn-3 summary", has_text=fold).count() >= 1
            curve = page.locator(".enc-curve svg").first
            assert len(curve.locator("desc").text_content() or "") > 40
            assert page.locator(".enc-curve h4").first.inner_text().endswith("turn 3")
            page.locator(".enc-badge[data-turn='1']").first.click()
            assert current(page) == "turn-1"


@needs_browser
def test_lanes_addresses_and_scrolling(browser: Browser, runs: dict[str, Path]) -> None:
    shown = data_of(runs["plain"])
    last = max(turn["turn"] for turn in shown["turns"])
    with drawn(browser, shown, address="#turn-3", viewport={"width": 1280, "height": 420}) as watch:
        page = watch.page
        page.wait_for_selector("#turn-3.current")
        assert abs(page.evaluate("document.getElementById('turn-3').getBoundingClientRect().top") - 34) < 3
        places = page.evaluate(
            """() => ['by-doctor', 'by-patient', 'by-measurement'].map(
                 lane => [...new Set([...document.querySelectorAll('.enc-turn > .' + lane)]
                   .map(cell => Math.round(cell.getBoundingClientRect().left)))])"""
        )
        assert [len(lane) for lane in places] == [1, 1, 1]
        assert places[0][0] < places[1][0] < places[2][0]
        page.evaluate("location.hash = '#turn-2'")
        page.wait_for_selector("#turn-2.current")
        page.mouse.move(300, 300)
        page.mouse.wheel(0, 100_000)
        page.wait_for_selector(f"#turn-{last}.current")
        assert f"by turn {last}" in page.locator(".enc-count").inner_text()


@needs_browser
def test_the_verdict_says_who_decided_or_what_was_not_read(browser: Browser, tmp_path: Path) -> None:
    by_model = {"correct": False, "relation": "different", "reason": "no", "decided_by": "model"}
    folder = write_run(tmp_path / "run", [unread(0), wrong(1, judgement=by_model), record(2)])
    said = (
        "not readable: cannot read 'zzyzx'",
        "wrong, by the model (another disease): no",
        "right (the same disease)",
    )
    for place, text in enumerate(said):
        with drawn(browser, data_of(folder, place)) as watch:
            assert text in watch.page.locator(".enc-summary").inner_text()
            assert watch.page.locator(".tag.o-not_readable", has_text="not readable").count() == (place == 0)


@needs_browser
def test_an_older_run_is_shown_with_what_it_lacks(browser: Browser, runs: dict[str, Path], tmp_path: Path) -> None:
    (entry,) = records(runs["plain"])
    with drawn(browser, data_of(write_run(tmp_path / "old", [in_the_originals_format(entry)]))) as watch:
        page = watch.page
        assert "the chart cannot be shown" in page.locator(".enc-summary").inner_text()
        assert page.locator(".enc-side, .enc-turn").count() == 0
        assert "What brings you in today?" in page.locator(".told").inner_text()
        # 0.2 kept turns, but neither the case nor, for a language model, which facts its replies used.
        told = [{**turn, "disclosures": [], "action": None} for turn in entry["transcript"]]
        told[2] |= {"text": "", "slips": ["empty"]}
        later = data_of(write_run(tmp_path / "later", [{**entry, "transcript": told, "checksum": None}]))
        page.evaluate("shown => { renderEncounter(document.getElementById('root'), shown); }", later)
        assert "the patient used is not recorded for any" in page.locator(".enc-summary").inner_text()
        assert "What brings you in today?" in page.locator("#turn-1 > .by-doctor").inner_text()
        assert "(nothing)" in page.locator("#turn-2 > .by-doctor").inner_text()
        assert page.locator(".enc-curve").count() == 1


@pytest.mark.slow
@needs_browser
def test_hostile_text_in_records_and_charts_stays_text(browser: Browser, tmp_path: Path) -> None:
    attacks = list(ATTACKS.values())
    folder = write_run(tmp_path / "hostile", [hostile(number, attack) for number, attack in enumerate(attacks)])
    run, beside = load_run(folder), RunFolder(load_run(folder))
    every = [encounter_data(one, beside.context(one), why=attacks) for one in run.records()]
    turns = [{**turn, "turn": 3 * n + turn["turn"]} for n, shown in enumerate(every) for turn in shown["turns"]]
    texts = [inert(attack)[:400] for attack in attacks]
    facts = [{"id": text, "section": text, "heads": [text, text], "text": text, "key": text} for text in texts]
    judges = [{"judge": text, "correct": False, "relation": text, "reason": text} for text in texts]
    shown = {**every[0], "turns": turns, "chart": facts, "uncovered": [[1, [0, 1, 2]]], "verdicts": judges}
    with drawn(browser, shown) as watch:
        page = watch.page
        page.evaluate("document.querySelectorAll('summary').forEach(one => one.click())")
        said = page.locator(".enc-said.by-doctor > .text").all_text_contents()
        assert set(said) >= {inert(attack)[:6000] for attack in attacks}
        told = page.locator(".enc-fact").all_text_contents()
        assert [text for text, fact in zip(texts, told, strict=True) if text not in fact] == []
        assert page.locator("#root :is(script, img, iframe, style, link, form, object, base, math)").count() == 0
        assert page.evaluate("window.__ran") is None


@pytest.mark.slow
@needs_browser
def test_two_runs_side_by_side_show_what_only_one_of_them_uncovered(browser: Browser, runs: dict[str, Path]) -> None:
    one, other = data_of(runs["plain"]), data_of(runs["history"])
    seen = [{place for turn, places in side["uncovered"] if turn <= 6 for place in places} for side in (one, other)]
    with drawn(browser, one, other) as watch:
        page = watch.page
        for _ in range(6):
            page.keyboard.press("j")
        assert page.locator("#turn-6 .enc-cell").count() == 2
        left, right = len(seen[0] - seen[1]), len(seen[1] - seen[0])
        assert left > 0
        assert f"only in A {left}, only in B {right}" in page.locator(".enc-count").inner_text()
        page.get_by_label("only where they differ").check()
        assert page.locator(".enc-facts li:visible").count() == left + right
    with drawn(browser, one, {**other, "case": "another"}) as watch:
        assert "two different cases" in watch.page.locator(".warn").inner_text()
        assert watch.page.locator(".enc-chart").count() == 0


WIDE: Json = {"bypass_csp": True}
PHONE: Json = {"bypass_csp": True, "color_scheme": "dark", "viewport": {"width": 400, "height": 800}}


@needs_browser
@pytest.mark.parametrize(
    ("names", "context"),
    [
        pytest.param(["uncertainty"], WIDE, marks=pytest.mark.slow),
        (["plain", "history"], PHONE),
        pytest.param(["policy"], PHONE, marks=pytest.mark.slow),
        pytest.param(["uncertainty", "history"], WIDE, marks=pytest.mark.slow),
    ],
)
def test_it_is_accessible_and_fits_a_phone(
    names: list[str], context: Json, browser: Browser, runs: dict[str, Path]
) -> None:
    with drawn(browser, *(data_of(runs[name]) for name in names), **context) as watch:
        page = watch.page
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.keyboard.press("j")
        assert serious(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
