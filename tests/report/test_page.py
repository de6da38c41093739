"""The page in a real browser: it runs only its own script, requests nothing, and is accessible."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser_support import Watched, needs_browser, running_browser, watched
from hostile_support import ATTACKS, RAN, hostile
from playwright.sync_api import Browser, Page, expect
from report_support import Json, in_the_originals_format, page_of, record, twin, write_run
from runs_support import clinic, only_run

from agentclinic.jsonl import inert

pytestmark = needs_browser


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports on runs: played by the builtin clinic, hostile, in the original's format, with scores."""
    place = tmp_path_factory.mktemp("report")
    played, other = _two_runs(place, 6)
    attacked = [hostile(number, attack) for number, attack in enumerate(ATTACKS.values())]
    # Some also end in other ways.
    attacked[3] |= {"status": "model_failed", "correct": None, "judgement": None}
    attacked[4] |= {"status": "doctor_failed"}
    name = "\"><img src=x onerror='window.__ran = 1'> & co"
    version = {"agentclinic": {"version": ATTACKS["script"], "units": 99}}
    made = write_run(place / "attacked" / name, attacked, version)
    originals = [json.loads(line) for line in (played / "scenarios.jsonl").read_text(encoding="utf-8").splitlines()]
    original = write_run(place / "original" / "MedQA_20240101_000000", map(in_the_originals_format, originals))
    planned = write_run(place / "scores", [_with_scores(number) for number in range(12)])
    return {
        "played": played / "report.html",
        "several": page_of(place / "several.html", played, other),
        "hostile": page_of(place / "hostile.html", made),
        "hostile_several": page_of(place / "hostile_several.html", made, made),
        "original": page_of(place / "original.html", original),
        "scores": page_of(place / "scores.html", planned),
    }


def _two_runs(place: Path, number: int) -> tuple[Path, Path]:
    """A run with its report, and one of another doctor, with two repeats."""
    run = ("run", "--scenarios", f"0-{number - 1}", "--dataset", "OpenOSCE")
    clinic(*run, "--output_dir", "played", "--report", cwd=place)
    clinic(*run, "--output_dir", "other", "--doctor", "history_only", "--repeats", "2", cwd=place)
    return only_run(place / "played"), only_run(place / "other")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 72 encounters, eight pages of them."""
    place = tmp_path_factory.mktemp("many")
    return page_of(place / "many.html", *_two_runs(place, 24))


def _with_scores(number: int) -> Json:
    ranked = {"source": "planner_score", "hypotheses": [{"diagnosis": "Gout", "score": 0.1 * number}], "other": None}
    said = {"turn": 1, "role": "doctor", "text": "DIAGNOSIS READY: Gout", "differential": ranked, "notes": ["planned"]}
    return record(number, differential=ranked, transcript=[said], correct=number % 3 > 0)


@pytest.fixture(scope="module")
def browser(folders: dict[str, Path]) -> Iterator[Browser]:
    """One browser for the module; it starts after the runs, because it would disturb their event loops."""
    del folders
    with running_browser() as browser:
        yield browser


def check_fit_and_quiet(watch: Watched) -> None:
    """The open page fits phone and desktop, and has logged and requested nothing."""
    for width in (360, 1280):
        watch.page.set_viewport_size({"width": width, "height": 800})
        assert watch.page.evaluate("document.documentElement.scrollWidth") <= width
    watch.page.locator("#theme").click()
    watch.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert watch.problems == []
    assert watch.requests == []


@pytest.mark.parametrize(
    "name",
    ["played", "several", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hostile", "hostile_several"))],
)
def test_a_page_fits_phone_and_desktop_and_opens_without_errors_and_requests(
    name: str, browser: Browser, folders: dict[str, Path]
) -> None:
    """The pages on runs of the original and on scores have this checked in their own tests below."""
    with watched(browser, folders[name]) as watch:
        watch.page.locator("#rows .open").first.click()
        watch.page.wait_for_selector("dialog[open]")
        watch.page.keyboard.press("Escape")
        check_fit_and_quiet(watch)


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["hostile"]) as watch:
        page = watch.page
        page.select_option("#f-outcome", "all")
        for number, attack in enumerate(ATTACKS.values()):
            _open(page, number)
            shown = page.locator("#t-body .enc-said > .text").all_text_contents()
            assert shown[0] == inert(attack)[:6000]
            assert len(shown) == 5
            page.evaluate("document.querySelectorAll('#t-body summary').forEach(one => one.click())")
            page.mouse.move(400, 300 + number)
        assert page.evaluate("window.__ran") is None
        assert _foreign_elements(page) == []
        assert watch.problems == []
        assert watch.requests == []


def _open(page: Page, place: int) -> None:
    """Open the first or the next transcript and wait until it is shown."""
    opener = "#t-next" if page.locator("dialog[open]").count() else "#rows .open"
    page.evaluate("opener => document.querySelector(opener).click()", opener)
    page.wait_for_function("place => location.hash.endsWith('/a' + place)", arg=place)


@pytest.mark.slow
def test_a_huge_text_is_shown_piece_by_piece(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["hostile"]) as watch:
        watch.page.select_option("#f-outcome", "all")
        for place in range(len(ATTACKS)):  # the last one is huge
            _open(watch.page, place)
        more = watch.page.locator("#t-body .enc-said > button").first
        more.click()
        more.click()
        assert len(watch.page.locator("#t-body .enc-said > .text").first.text_content() or "") == 18_000
        assert more.is_visible()


def _foreign_elements(page: Page) -> list[str]:
    """Elements and attributes that no report has by itself."""
    found: list[str] = page.evaluate(
        """() => {
          const odd = [...document.querySelectorAll(
            'img, iframe, object, embed, link, base, audio, video, math, textarea, foreignObject, animate, '
            + 'a[href]:not([href^="#"]), form[action], script[src], meta[http-equiv=refresh]')];
          const handlers = [...document.querySelectorAll('*')].filter(
            element => [...element.attributes].some(attribute => attribute.name.startsWith('on')));
          const scripts = [...document.scripts].filter(script => !['', 'text/plain'].includes(script.type));
          const styles = [...document.querySelectorAll('style')].slice(1);
          return [...odd, ...handlers, ...scripts, ...styles].map(element => element.outerHTML.slice(0, 200));
        }"""
    )
    return found


def test_the_attacks_would_work_on_a_careless_page(browser: Browser, tmp_path: Path) -> None:
    """Attacks that never work would prove nothing."""
    careless = tmp_path / "careless.html"
    parts = "".join(ATTACKS[name] for name in ("script", "image", "image_far", "svg", "mutation"))
    careless.write_text(f"<!doctype html><meta charset=utf-8><form id=filters></form>{parts}", encoding="utf-8")
    with watched(browser, careless) as watch:
        watch.page.wait_for_function("window.__ran >= 3")
        assert any("attack.example" in address for address in watch.requests)


def test_an_injected_script_or_request_is_blocked_by_the_policy(
    browser: Browser, folders: dict[str, Path], tmp_path: Path
) -> None:
    """Even if escaping failed: the markup is injected into the file, and the policy stays."""
    whole = folders["played"].read_text(encoding="utf-8")
    injected = (
        f"<script>{RAN}</script><img src=x onerror='{RAN}'><img src='https://attack.example/x.png'>"
        f"<style>body{{display:none}}</style><p id=styled style='display:none'>x</p>"
    )
    changed = tmp_path / "changed.html"
    changed.write_text(whole.replace("<main", f"{injected}<main", 1), encoding="utf-8")
    with watched(browser, changed) as watch:
        assert watch.page.evaluate("window.__ran") is None
        assert watch.page.locator("main").is_visible()
        assert watch.page.locator("#styled").is_visible()
        assert watch.requests == []
        assert len([problem for problem in watch.problems if "Content Security Policy" in problem]) >= 4
        with pytest.raises(Exception, match="TrustedHTML"):
            watch.page.evaluate("document.body.innerHTML = '<b>x</b>'")


def test_the_policy_names_only_the_pages_own_script_and_style(folders: dict[str, Path]) -> None:
    text = folders["played"].read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    rules = policy[1].replace("&#x27;", "'")
    assert rules.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in rules
    assert "http" not in rules
    assert text.index("Content-Security-Policy") < text.index("<title>"), "before anything it guards"


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        pytest.param("played", "light", marks=pytest.mark.slow),
        pytest.param("played", "dark", marks=pytest.mark.slow),
        pytest.param("several", "light", marks=pytest.mark.slow),
        pytest.param("several", "dark", marks=pytest.mark.slow),
        pytest.param("original", "light", marks=pytest.mark.slow),
        ("scores", "dark"),
    ],
)
def test_the_page_is_accessible(name: str, scheme: str, browser: Browser, folders: dict[str, Path]) -> None:
    """axe finds nothing serious in light and dark, with everything unfolded and a transcript open."""
    with watched(browser, folders[name], color_scheme=scheme, bypass_csp=True) as watch:
        watch.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert _serious(watch.page) == []
        watch.page.locator("#rows .open").first.click()
        watch.page.wait_for_selector("dialog[open]")
        watch.page.evaluate("document.querySelectorAll('dialog details').forEach(one => { one.open = true; })")
        assert _serious(watch.page) == []


def _serious(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:160]} {one['nodes'][0]['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_a_transcript_is_one_click_away_and_stays_packed_until_then(browser: Browser, folders: dict[str, Path]) -> None:
    text = folders["played"].read_text(encoding="utf-8")
    with watched(browser, folders["played"]) as watch:
        page = watch.page
        first = page.locator("#rows .open").first
        place = first.get_attribute("data-place")
        assert "What brings you in today?" not in text
        first.click()
        page.wait_for_selector("dialog[open]")
        assert "What brings you in today?" in page.locator("#t-body").inner_text()
        assert page.evaluate("location.hash") == f"#transcript/{first.inner_text()}"
        assert page.evaluate("document.activeElement.closest('dialog') !== null"), "the focus is in the dialog"
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0
        assert page.evaluate("document.activeElement.dataset.place") == place, "the focus is back where it was"


@pytest.mark.slow
def test_an_address_opens_a_transcript(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["several"], "#transcript/osce-a02.2@B") as watch:
        watch.page.wait_for_selector("dialog[open]")
        assert watch.page.locator("#t-title").inner_text().startswith("B · Case osce-a02 · 2")
        assert watch.page.evaluate("location.hash") == "#transcript/osce-a02.2@B"
        watch.page.keyboard.press("j")
        watch.page.keyboard.press("j")
        assert watch.page.evaluate("location.hash") == "#transcript/osce-a02.2@B/turn-2"
        assert watch.page.locator("#t-title").is_visible(), "only the transcript scrolls"
    with watched(browser, folders["several"], "#transcript/osce-a02@A/turn-3") as watch:
        watch.page.wait_for_selector("#turn-3.current")
        assert "by turn 3" in watch.page.locator(".enc-count").inner_text(), "the chart is in the file"
    for nowhere in ("osce-z99", "osce-a02@Z", "MedQA/1"):
        with watched(browser, folders["several"], f"#transcript/{nowhere}") as watch:
            assert watch.page.locator("dialog[open]").count() == 0
            assert watch.problems == []


@pytest.mark.slow
def test_columns_can_be_sorted_with_the_keyboard(browser: Browser, many: Path) -> None:
    with watched(browser, many) as watch:
        page = watch.page

        def shown(head: str) -> list[str]:
            return page.locator(f"#rows [data-head={head}]").all_inner_texts()

        page.locator("#encounters thead").get_by_role("button", name="turns").focus()
        page.keyboard.press("Enter")
        assert page.locator("#encounters th[aria-sort]").get_attribute("aria-sort") == "ascending"
        first = [int(turns) for turns in shown("turns")]
        assert first == sorted(first)
        page.keyboard.press("Enter")
        assert page.locator("#encounters th[aria-sort]").get_attribute("aria-sort") == "descending"
        last = [int(turns) for turns in shown("turns")]
        assert last == sorted(last, reverse=True)
        assert last[0] > first[0], "all pages are sorted, not only the one that is shown"
        page.select_option("#f-outcome", "all")
        page.locator("#encounters thead").get_by_role("button", name="truth").click()
        assert page.locator("#encounters th[aria-sort]").inner_text().startswith("truth")
        truths = shown("truth")
        assert truths == sorted(truths, key=str.lower)

        page.get_by_role("link", name="Tests").click()
        prices = page.locator("#tests table", has=page.locator("caption", has_text="Most expensive tests")).first
        prices.get_by_role("button", name="each").click()
        each = [float(cell.strip("$").replace(",", "")) for cell in prices.locator("td:nth-child(3)").all_inner_texts()]
        assert each == sorted(each)
        assert watch.problems == []


def test_several_runs_share_a_chart_and_a_phone_shows_every_column(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["several"], viewport={"width": 400, "height": 800}) as watch:
        page = watch.page
        for chart in ("#confidence .overlaid svg", "#turns svg"):
            assert page.locator(chart).first.locator("text.label").all_text_contents() == ["A", "B"]
        cut = """() => [...document.querySelectorAll('.stacked td, .stacked th')]
            .filter(cell => cell.getClientRects().length && cell.getBoundingClientRect().right > innerWidth).length"""
        assert page.evaluate(cut) == 0
        tall = "() => Math.max(...[...document.querySelectorAll('#rows tr')].map(row => row.offsetHeight))"
        assert page.evaluate(tall) < 400, "no blank rows"


def test_the_transcripts_in_the_file_are_those_of_the_records(folders: dict[str, Path]) -> None:
    text = folders["played"].read_text(encoding="utf-8")
    journal = folders["played"].parent / "scenarios.jsonl"
    blocks = re.findall(r'<script type="text/plain" id="pack-0-\d+">([^<]+)</script>', text)
    kept = [entry for block in blocks for entry in json.loads(zlib.decompress(base64.b64decode(block)))]
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert [[turn["text"] for turn in entry["turns"]] for entry in kept] == [
        [turn["text"] for turn in entry["transcript"]] for entry in records
    ]


@pytest.mark.slow
def test_encounters_can_be_searched_filtered_and_paged(browser: Browser, many: Path) -> None:
    with watched(browser, many) as watch:
        page = watch.page
        page.select_option("#f-outcome", "all")
        assert page.locator("#count").inner_text() == "72 encounters"
        assert page.locator("#rows tr").count() == 10
        assert page.locator("#p-where").inner_text() == "page 1 of 8"
        for _ in range(7):
            page.locator("#p-next").click()
        assert page.locator("#rows tr").count() == 2
        assert page.locator("#p-next").is_disabled()
        page.select_option("#f-run", "0")
        assert page.locator("#count").inner_text() == "24 encounters"
        page.fill("#f-text", "aortic DISSECTION")
        assert page.locator("#rows tr").count() >= 1
        assert "Aortic dissection" in page.locator("#rows").inner_text()
        page.fill("#f-text", "no such thing anywhere")
        assert page.locator("#count").inner_text() == "0 encounters"
        assert watch.problems == []


def test_print_shows_the_content_without_controls(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["played"], color_scheme="dark") as watch:
        watch.page.emulate_media(media="print", color_scheme="dark")
        for gone in ("nav", "#filters", "#theme"):
            assert not watch.page.locator(gone).is_visible()
        assert watch.page.locator(".answers").is_visible()
        for folded in ("#numbers table", "#settings table", "#confidence figure table"):
            assert watch.page.locator(folded).first.is_visible(), "paper cannot be unfolded"
        assert watch.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert watch.page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.slow
def test_the_button_switches_between_light_and_dark(browser: Browser, folders: dict[str, Path]) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with watched(browser, folders["original"], color_scheme="light") as watch:
        light = watch.page.evaluate(colour)
        assert watch.page.locator("#theme").inner_text() == "Dark"
        watch.page.locator("#theme").click()
        assert watch.page.evaluate(colour) != light
        watch.page.locator("#theme").click()
        assert watch.page.evaluate(colour) == light
    with watched(browser, folders["original"], color_scheme="dark") as watch:
        assert watch.page.evaluate(colour) != light


def test_every_chart_has_a_description(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["several"]) as watch:
        told = watch.page.evaluate(
            """() => [...document.querySelectorAll('svg')].map(svg => svg.getAttribute('aria-hidden') === 'true'
              ? 'decoration'
              : (svg.getAttribute('aria-labelledby') || '').split(' ')
                  .map(id => document.getElementById(id)?.textContent).join(' '))"""
        )
        assert len([text for text in told if text != "decoration"]) >= 7
        assert all(text == "decoration" or len(text) > 20 for text in told)
        names = watch.page.evaluate("() => [...document.querySelectorAll('[id]')].map(element => element.id)")
        assert len(names) == len(set(names))


def test_a_run_in_the_originals_format_leaves_out_what_it_cannot_know_and_says_so(
    browser: Browser, folders: dict[str, Path]
) -> None:
    with watched(browser, folders["original"]) as watch:
        page = watch.page
        sections = page.evaluate("() => [...document.querySelectorAll('main > section')].map(section => section.id)")
        assert sections == ["outcomes", "encounters", "numbers", "limits", "settings"]
        notice = page.locator(".notice").inner_text()
        for gone in ("confidence", "tests", "twins", "specialty"):
            assert gone in notice
        assert "contain no turn-by-turn transcript" in (page.locator("#limits").text_content() or "")
        assert "not recorded" in page.locator(".answers").inner_text()
        page.locator("#rows .open").first.click()
        page.wait_for_selector("dialog[open]")
        assert "What brings you in today?" in page.locator("#t-body").inner_text()
        assert "kept the dialogue as one text" in page.locator("#t-body").inner_text()
        page.keyboard.press("Escape")
        check_fit_and_quiet(watch)


def test_scores_are_never_drawn_as_probabilities(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["scores"]) as watch:
        said = watch.page.locator("main").text_content() or ""
        assert "Reliability" not in said
        assert "Risk against coverage" in said
        assert "scores, not probabilities" in said
        watch.page.locator("#rows .open").first.click()
        watch.page.wait_for_selector("dialog[open]")
        assert "Note: planned" in watch.page.locator("#t-body").inner_text()
        assert "%" not in watch.page.locator("#t-body summary").first.inner_text()
        watch.page.keyboard.press("Escape")
        check_fit_and_quiet(watch)


def test_links_unfold_the_sections_that_few_readers_need(browser: Browser, folders: dict[str, Path]) -> None:
    with watched(browser, folders["played"]) as watch:
        page = watch.page
        assert page.locator("#outcomes .where").is_visible()
        for name, section in {"Settings": "#settings", "Key findings": "#facts"}.items():
            expect(page.locator(f"{section} .lede")).to_be_hidden()
            page.get_by_role("navigation").get_by_role("link", name=name).click()
            expect(page.locator(f"{section} .lede")).to_be_in_viewport()
        assert watch.problems == []
    with watched(browser, folders["played"], "#twins") as watch:
        expect(watch.page.locator("#twins .lede")).to_be_in_viewport()


def test_settings_are_those_that_had_an_effect(tmp_path: Path) -> None:
    """Builtin roles need no simulator and no dialogue; a program of the user's plays, not the model it was offered."""
    usual: Json = {
        "simulator": {"patient": "free", "measurement": "free"},
        "dialogue": "chat",
        "image_request_enabled": False,
    }
    own: Json = {
        "doctor": "mine.py:Mine",
        "doctor_llm": "builtin",
        "patient_llm": "builtin",
        "measurement_llm": "builtin",
    }
    config = {"run": {"seed": 7, "sample": 1, "temperature": None}, "llm": {"responses": {"top_p": 0.5}}}
    program = page_of(tmp_path / "own.html", write_run(tmp_path / "own", [record(**usual, **own)], config)).read_text()
    model = page_of(tmp_path / "model.html", write_run(tmp_path / "model", [record(**usual)])).read_text()
    assert "<h1>mine.py:Mine on Made</h1>" in program
    assert "<h1>d on Made</h1>" in model

    def listed(text: str) -> list[str]:
        return re.findall(r'<th scope="row">([^<]+)</th>', text.split('id="settings"')[1])

    assert listed(program)[:6] == [
        "data set",
        "doctor",
        "patient's model",
        "laboratory's model",
        "judge's model",
        "turn limit",
    ]
    assert {"seed", "sample", "top p"} < set(listed(program))
    assert {"doctor's model", "simulator", "dialogue"} < set(listed(model))
    assert "images" not in listed(model)


def test_runs_are_compared_by_their_twins(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a", [twin(0), twin(1, right=False)])
    second = write_run(tmp_path / "b", [twin(0), twin(1, said="Septic arthritis")])
    text = page_of(tmp_path / "both.html", first, second).read_text(encoding="utf-8").replace("\u00a0", " ")
    (said,) = re.findall(r"<p>Against A: (both twins right [^<]+)</p>", text)
    assert said.startswith("both twins right +100.0 points")
    assert "1 pair; same answer to both twins -100.0 points" in said
