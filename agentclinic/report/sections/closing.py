"""What the runs can and cannot show, and how they were played."""

from __future__ import annotations

from agentclinic.report.numbers import sections
from agentclinic.report.parts import Drawn, Html, View, details, section, tag
from agentclinic.report.statements import TITLES, Statement, statements
from agentclinic.report.tables import html_table as table
from agentclinic.report.text import DASH, line


def limits(view: View) -> Html | None:
    title = f"What {'these runs' if view.several else 'this run'} can and cannot show"
    drawn = [Drawn(index, _statement(said)) for index, said in enumerate(statements(view.report))]
    return view.section("limits", title, "", drawn)


def _statement(said: list[Statement]) -> Html:
    parts = []
    for kind, title in TITLES.items():
        texts = [tag("li", one.text) for one in said if one.kind == kind]
        if texts:
            parts.append(tag("div", tag("h3", title), tag("ul", texts), class_=f"say {kind}"))
    return tag("div", parts, class_="says")


def numbers(view: View) -> Html | None:
    """Every number of every run, as `agentclinic score --full` prints them."""
    drawn = [
        Drawn(index, details(f"{len(made)} tables", [tag("div", tag("h3", one.title), one.html()) for one in made]))
        for index, run in enumerate(view.runs)
        if (made := sections(run.score))
    ]
    lede = "The same rows as in agentclinic score --full, the Markdown report and the card."
    return view.section("numbers", "Every number", lede, drawn)


def settings(view: View) -> Html:
    keys = list(dict.fromkeys(key for run in view.runs for key in run.settings))
    rows: list[list[object]] = [[key, *(line(run.settings.get(key), 120) or DASH for run in view.runs)] for key in keys]
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
