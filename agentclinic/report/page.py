"""The report as one HTML file that requests nothing from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from agentclinic.clinic.desk import EXACT
from agentclinic.config import is_builtin_or_person
from agentclinic.report.collect import Collected, packed
from agentclinic.report.numbers import sections
from agentclinic.report.parts import View, details, section
from agentclinic.report.sections import confidence, differences, first_screen, information, listing, outcome, regret
from agentclinic.report.statements import TITLES, statements
from agentclinic.report.tables import DASH, Html, line, plural, tag
from agentclinic.report.tables import html_table as table
from agentclinic.scoring.labels import is_program, played_by

_HERE = Path(__file__).parent
MARK = "agentclinic-report"
"""Written into every report, so that it can be recognized and overwritten; other files are not."""


def page(collected: Collected) -> str:
    """The whole file. The packed transcripts come last, so that a browser shows the page before it has read them."""
    view = View(collected)
    style = styles()
    script = _files("dom.js", "encounter.js", "page.js")
    shown = {name: part for name, (_, draw) in _SECTIONS.items() if (part := draw(view))}
    title = _title(view)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
        tag("meta", name="generator", content=MARK),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} – AgentClinic report"),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the results", href="#results", class_="skip"),
        _header(view, title),
        tag("nav", [tag("a", _SECTIONS[name][0], href=f"#{name}") for name in shown], aria_label="Parts"),
        tag("main", first_screen.notices(view), first_screen.answers(view), list(shown.values()), id="results"),
        tag("footer", tag("p", "Made by agentclinic report. A research benchmark, not medical advice.")),
        _dialog(),
        tag("script", Html(script)),
        *_packs(view),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def styles() -> str:
    """The style sheet of a report."""
    return _files("base.css", "encounter.css", "page.css")


def _files(*names: str) -> str:
    return "".join((_HERE / name).read_text(encoding="utf-8") for name in names)


def standalone(title: str, style: str, body: Html) -> str:
    """A whole file without scripts that requests nothing from anywhere."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(style, "")),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Html(style)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def policy(style: str, script: str) -> str:
    """A content security policy that allows only this script and this style: no requests, frames or forms."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def _title(view: View) -> str:
    if view.several:
        names = list(dict.fromkeys(run.settings.get("data set", "") for run in view.runs))
        on = f" on {names[0]}" if len(names) == 1 and names[0] else ""
        return line(f"{len(view.runs)} runs side by side{on}", 120)
    settings = view.runs[0].settings
    return line(f"{_who(settings)} on {settings.get('data set', 'an unnamed data set')}", 120)


def _who(settings: Mapping[str, str]) -> str:
    """The doctor in a few words: who played it, and whether it follows a test policy."""
    doctor, model = settings.get("doctor", "plain"), settings.get("doctor's model", "An unrecorded doctor")
    who = "The builtin doctor" if (model, doctor) == ("builtin", "plain") else played_by(doctor, model)
    return f"{who} with a test policy" if settings.get("test policy") else who


def _header(view: View, title: str) -> Html:
    if view.several:
        about: object = [tag("span", view.chip(i)) for i in range(len(view.runs))]
    else:
        run = view.runs[0]
        cases = len({one.case for one in view.collected.encounters[0]})
        judge = run.score.judge or run.settings.get("judge's model", "not recorded")
        about = [
            tag("span", f"{plural(run.known.records, 'encounter')}, {plural(cases, 'case')}"),
            tag("span", f"judged by {'name' if judge == EXACT else line(judge, 60)}"),
            tag("span", line(run.name, 80)),
        ]
    toggle = tag("button", "Dark", type="button", id="theme", hidden=True)
    return tag(
        "header",
        tag("p", tag("b", "AgentClinic"), " report", class_="eyebrow"),
        tag("h1", title),
        tag("p", about, class_="about"),
        toggle,
    )


def _limits(view: View) -> Html | None:
    title = f"What {'these runs' if view.several else 'this run'} can and cannot show"
    drawn = []
    for index, run in enumerate(view.runs):
        parts = [
            tag("div", tag("h3", TITLES[kind]), tag("ul", [tag("li", text) for text in texts]), class_=f"say {kind}")
            for kind, texts in statements(run).items()
        ]
        drawn.append((index, tag("div", parts, class_="says")))
    return view.section("limits", title, "", drawn)


def _numbers(view: View) -> Html | None:
    """Every number of every run, as `agentclinic score --full` prints them."""
    drawn = [
        (index, details(f"{len(made)} tables", [tag("div", tag("h3", one.title), one.html()) for one in made]))
        for index, run in enumerate(view.runs)
        if (made := sections(run.score))
    ]
    lede = "The same rows as in agentclinic score --full, the Markdown report and the card."
    return view.section("numbers", "All numbers", lede, drawn)


def _settings(view: View) -> Html:
    used = [_used(run.settings) for run in view.runs]
    keys = list(dict.fromkeys(key for settings in used for key in settings))
    rows: list[list[object]] = [[key, *(line(settings.get(key), 120) or DASH for settings in used)] for key in keys]
    rows += [
        ["encounters", *(f"{run.known.records:,}" for run in view.runs)],
        ["verdicts", *(f"by {line(run.score.judge, 60)}" if run.score.judge else "as recorded" for run in view.runs)],
        ["AgentClinic version", *(line(run.version, 40) or "not recorded" for run in view.runs)],
        ["run", *(line(run.name, 120) for run in view.runs)],
    ]
    names = view.letters if view.several else ["this run"]
    lede = (
        "Intervals are 95%. Those of shares are Wilson's; those of means, and of any number with repeated cases, "
        f"resample whole cases (seed {view.report.seed}). agentclinic score and agentclinic compare print the same "
        "numbers."
    )
    listed = table("Settings", ["", *names], rows, range(len(names) + 1), stacked=view.several)
    shown = tag("div", listed, class_="narrow")
    return section("settings", "Settings and methods", lede, shown)


def _used(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings that had an effect: some concern only a role that a language model plays."""
    doctor, patient, laboratory = (
        is_builtin_or_person(settings.get(f"{role}'s model")) for role in ("doctor", "patient", "laboratory")
    )
    idle = {"simulator": patient and laboratory, "dialogue": doctor, "images": settings.get("images") == "off"}
    idle["doctor's model"] = doctor and is_program(settings.get("doctor"))
    return {key: value for key, value in settings.items() if not idle.get(key)}


_SECTIONS: dict[str, tuple[str, Callable[[View], Html | None]]] = {
    "outcomes": ("Outcomes", outcome.outcomes),
    "regret": ("Best play", regret.regret),
    "confidence": ("Confidence", confidence.confidence),
    "turns": ("Turns", confidence.turn_by_turn),
    "facts": ("Key findings", information.facts),
    "groups": ("Types of case", outcome.groups),
    "twins": ("Twins", outcome.twins),
    "tests": ("Tests", information.tests),
    "flips": ("Flips", differences.flips),
    "encounters": ("Encounters", listing.encounters),
    "numbers": ("Numbers", _numbers),
    "limits": ("Limits", _limits),
    "settings": ("Settings", _settings),
}
"""The sections of the page, each with its name in the list of links."""


def _dialog() -> Html:
    bar = tag(
        "div",
        tag("h2", "Transcript", id="t-title"),
        tag(
            "div",
            tag("button", "Previous", type="button", id="t-back"),
            tag("button", "Next", type="button", id="t-next"),
            tag("button", "Close", type="button", id="t-close"),
        ),
        class_="bar-top",
    )
    body = tag("div", tag("div", id="t-encounter"), id="t-body", tabindex=0, role="region", aria_labelledby="t-title")
    return tag("dialog", bar, body, id="transcript", aria_labelledby="t-title")


def _packs(view: View) -> list[Html]:
    packs = [_pack(f"chart-{number}", block) for number, block in enumerate(view.collected.charts)]
    for run, blocks in enumerate(view.collected.blocks):
        index = {"several": view.several, "letter": view.letters[run], "rows": listing.index_rows(view, run)}
        packs.append(_pack(f"index-{run}", packed(json.dumps(index, ensure_ascii=False, separators=(",", ":")))))
        packs += [_pack(f"pack-{run}-{number}", block) for number, block in enumerate(blocks)]
    return packs


def _pack(name: str, data: str) -> Html:
    # Browsers do not run this type, and base64 has no `<`.
    return tag("script", Html(data), type="text/plain", id=name)
