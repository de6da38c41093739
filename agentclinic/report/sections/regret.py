"""How far encounters in solvable worlds fall short of the best play: how much, by kind, and at which turn."""

from __future__ import annotations

from collections.abc import Mapping

from agentclinic.report import charts
from agentclinic.report.collect import RunReport
from agentclinic.report.comparison import regret_differences
from agentclinic.report.numbers import regret_section
from agentclinic.report.parts import View, figure, note
from agentclinic.report.tables import Html, tag
from agentclinic.results.regret import KINDS, Kind


def regret(view: View) -> Html | None:
    """The regret of each run in numbers, and by turn and kind."""
    drawn = [(index, _run(f"r{index}", run)) for index, run in enumerate(view.runs) if run.score.regret.encounters]
    lede = (
        "In a solvable world, the best action is known at every turn. Regret is how many points less the action taken "
        "is worth. For each encounter, best value - utility = sum of regrets + luck."
    )
    comparisons = view.report.comparison.comparisons if view.report.comparison else ()
    told = [
        note(f"Regret of {view.letters[place]} against {view.letters[0]}, on the cases of both: {text}.")
        for place, text in enumerate(regret_differences(comparisons), start=1)
        if text
    ]
    return view.section("regret", "Against the best play", lede, drawn, *told)


def _run(name: str, run: RunReport) -> Html:
    found = run.score.regret
    used = {
        kind: f"r{place}"
        for place, kind in enumerate(KINDS)
        if any(kinds.get(kind) for kinds in found.by_turn.values())
    }
    return tag(
        "div", _chart(name, found.by_turn, used) if used else None, regret_section(run.score).html(), class_="figures"
    )


def _chart(name: str, by_turn: Mapping[int, Mapping[str, float]], used: Mapping[Kind, str]) -> Html:
    title, about = "Regret by turn", "Mean over all encounters; the bars add up to the regret per encounter."
    bars = {
        turn: [(KINDS[kind], kinds.get(kind, 0.0), colour) for kind, colour in used.items()]
        for turn, kinds in by_turn.items()
    }
    legend = [tag("li", tag("i", class_=f"key {colour}"), KINDS[kind]) for kind, colour in used.items()]
    chart = charts.bars(f"regret-{name}", title, bars, y="points per encounter")
    return figure(title, about, tag("ul", legend, class_="legend"), chart)
