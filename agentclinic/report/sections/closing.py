"""What the runs can and cannot show, and under which settings they were played."""

from __future__ import annotations

from agentclinic.report.markup import Html, tag
from agentclinic.report.parts import Drawn, View, section, table
from agentclinic.report.statements import Statement, statements
from agentclinic.report.text import line

_TITLES = {"shows": "It can show", "cannot": "It cannot show", "left_out": "Left out of this report"}


def limits(view: View) -> Html:
    """The statement, run by run."""
    title = f"What {'these runs' if view.several else 'this run'} can and cannot show"
    drawn = [Drawn(index, _statement(said)) for index, said in enumerate(statements(view.report))]
    return section("limits", title, None, view.each(drawn))


def _statement(said: list[Statement]) -> Html:
    parts = []
    for kind, title in _TITLES.items():
        texts = [tag("li", one.text) for one in said if one.kind == kind]
        if texts:
            parts.append(tag("div", tag("h3", title), tag("ul", texts), class_=f"say {kind}"))
    return tag("div", parts, class_="says")


def settings(view: View) -> Html:
    """The conditions as recorded."""
    keys = list(dict.fromkeys(key for run in view.runs for key in run.settings))
    rows: list[list[object]] = [[key, *(line(run.settings.get(key), 120) or "–" for run in view.runs)] for key in keys]
    rows += [
        ["encounters", *(f"{run.known.records:,}" for run in view.runs)],
        ["verdicts", *(f"of {line(run.score.judge, 60)}" if run.score.judge else "as recorded" for run in view.runs)],
        ["agentclinic of the run", *(line(run.version, 40) or "not recorded" for run in view.runs)],
        ["run", *(line(run.name, 120) for run in view.runs)],
    ]
    names = [view.letter(index) for index in range(len(view.runs))] if view.several else ["this run"]
    lede = (
        "Intervals are 95 %: Wilson's for shares; for means, and wherever cases repeat, whole cases are resampled "
        f"(seed {view.report.seed}). agentclinic score and agentclinic compare print the same numbers."
    )
    shown = tag("div", table("Settings", ["", *names], rows, range(len(names) + 1)), class_="narrow")
    return section("settings", "Settings and method", lede, shown)
