"""The building blocks of the page's sections: runs with their labels and colours, figures, notes."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.report.collect import Collected, Report, RunReport
from agentclinic.report.tables import Html, line, tag
from agentclinic.scoring.labels import letters
from agentclinic.scoring.metrics import Budget

OUTCOMES = {
    "diagnosed_right": "right",
    "diagnosed_wrong": "wrong",
    "not_readable": "not readable",
    "max_infs_reached": "no diagnosis",
    "doctor_failed": "doctor failed",
    "model_failed": "model failed (missing)",
    "judge_failed": "judge failed (missing)",
}
"""How encounters end, and the page's labels."""
COLOURS = 6
"""Runs beyond the sixth reuse the colours; their letters still differ."""
_UNFOLDED = frozenset({"outcomes", "regret", "confidence", "flips", "encounters"})
MOST_LISTED = 100
"""Rows of a list inside a section: more than anyone reads, few enough to open fast."""


class View:
    """A report with what several sections need: labels and colours of its runs."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected
        self.report: Report = collected.report
        self.runs: list[RunReport] = collected.report.runs
        self.several = len(self.runs) > 1
        self.labels = [line(run.label, 60) for run in self.runs]
        self.letters = letters(len(self.runs))
        """Short names of the runs in charts."""

    @property
    def budgets(self) -> dict[str, Budget]:
        """Accuracy by budget by the letters of the runs; by nothing if there is only one."""
        return {self.letters[i] if self.several else "": run.score.budget for i, run in enumerate(self.runs)}

    def colour(self, run: int) -> str:
        """The class that gives a run its colour."""
        return f"c{run % COLOURS}"

    def chip(self, run: int) -> Html:
        """The run's letter in its colour, with its label."""
        return tag("span", self.badge(run), tag("span", self.labels[run]), class_="chip")

    def badge(self, run: int) -> Html:
        return tag("b", self.letters[run], class_=f"letter {self.colour(run)}")

    def section(
        self, name: str, title: str, lede: str, drawn: Sequence[tuple[int, object]], *before: object, fold: bool = False
    ) -> Html | None:
        """A section of parts, each with the number of its run; None without parts.

        The parts of several runs are labeled and side by side; with `fold`, they are folded below what comes before.
        """
        if not drawn:
            return None
        if self.several:
            labelled = [
                tag("div", tag("p", self.chip(run), class_="whose"), part, class_="panel") for run, part in drawn
            ]
            panels = tag("div", labelled, class_="panels")
            return section(name, title, lede, *before, details("Each run on its own", panels) if fold else panels)
        return section(name, title, lede, *before, tag("div", [part for _, part in drawn], class_="wide"))


def section(name: str, title: str, lede: object, *parts: object) -> Html:
    """A part of the page with its heading; folded, unless most readers want it."""
    head, rest = tag("h2", title, id=f"{name}-h"), [tag("p", lede, class_="lede") if lede else None, *parts]
    inside = [head, rest] if name in _UNFOLDED else tag("details", tag("summary", head), rest, class_="fold")
    return tag("section", inside, id=name, aria_labelledby=f"{name}-h")


def figure(caption: str, note: str, *parts: object) -> Html:
    return tag("figure", tag("figcaption", tag("strong", caption), tag("span", note)), *parts)


def details(summary: str, *parts: object) -> Html:
    return tag("details", tag("summary", summary), *parts)


def note(text: object) -> Html:
    return tag("p", text, class_="note")


def open_button(run: int, place: int, text: str, label: str | None = None) -> Html:
    says = label or f"Transcript of case {text}"
    return tag("button", text, type="button", class_="open", data_run=run, data_place=place, aria_label=says)


def outcome_name(outcome: str) -> str:
    return OUTCOMES.get(outcome) or line(outcome.replace("_", " "), 40)


def outcome_class(outcome: str) -> str:
    """The class that gives an outcome its colour."""
    return f"o-{outcome}" if outcome in OUTCOMES else "o-other"
