"""The building blocks of the page's sections: runs with their labels and colours, tables, figures, notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agentclinic.report.collect import Collected, Report, RunReport
from agentclinic.report.markup import Html, tag
from agentclinic.report.text import DASH, line

OUTCOMES = {
    "diagnosed_right": "right",
    "diagnosed_wrong": "wrong",
    "max_infs_reached": "no diagnosis",
    "doctor_failed": "doctor failed",
    "model_failed": "model failed (missing)",
    "judge_failed": "judge failed (missing)",
}
"""How encounters end, and the page's labels."""
COLOURS = 6
"""Runs beyond the sixth reuse the colours; their letters still differ."""
MOST_LISTED = 100
"""Rows of a list inside a section: more than anyone reads, few enough to open fast."""
_DISTINCTIVE = (
    "data set", "doctor", "doctor's model", "patient's model", "laboratory's model", "doctor's bias", "patient's bias",
    "turn limit", "judge's model",
)  # fmt: skip
"""Settings that label the runs if they differ."""


class Drawn(NamedTuple):
    """A part of the page about one run."""

    run: int
    part: object


class View:
    """A report with what several sections need: labels and colours of its runs."""

    def __init__(self, collected: Collected) -> None:
        self.collected = collected
        self.report: Report = collected.report
        self.runs: list[RunReport] = collected.report.runs
        self.several = len(self.runs) > 1
        self.labels = _labels(self.runs)
        self.letters = [chr(ord("A") + run) if run < 26 else str(run + 1) for run in range(len(self.runs))]
        """Short names of the runs in charts."""

    def colour(self, run: int) -> str:
        """The class that gives a run its colour."""
        return f"c{run % COLOURS}"

    def chip(self, run: int) -> Html:
        """The run's letter in its colour, with its label."""
        return tag("span", self.badge(run), tag("span", self.labels[run]), class_="chip")

    def badge(self, run: int) -> Html:
        """The run's letter in its colour."""
        return tag("b", self.letters[run], class_=f"letter {self.colour(run)}")

    def section(self, name: str, title: str, lede: str, drawn: Sequence[Drawn], *before: object) -> Html | None:
        """A section with a part for each run: labelled and side by side if there are several; None without parts."""
        if not drawn:
            return None
        if self.several:
            labelled = [
                tag("div", tag("p", self.chip(one.run), class_="whose"), one.part, class_="panel") for one in drawn
            ]
            return section(name, title, lede, *before, tag("div", labelled, class_="panels"))
        return section(name, title, lede, *before, tag("div", [one.part for one in drawn], class_="wide"))


def _labels(runs: Sequence[RunReport]) -> list[str]:
    """The settings in which the runs differ; their names if that does not distinguish them."""
    differing = [key for key in _DISTINCTIVE if len({run.settings.get(key) for run in runs}) > 1]
    short = [line(", ".join(run.settings.get(key, DASH) for key in differing), 60) for run in runs]
    return short if differing and len(set(short)) == len(runs) else [line(run.name, 60) for run in runs]


def section(name: str, title: str, lede: object, *parts: object) -> Html:
    """A part of the page with its heading."""
    head = [tag("h2", title, id=f"{name}-h"), tag("p", lede, class_="lede") if lede else None]
    return tag("section", head, *parts, id=name, aria_labelledby=f"{name}-h")


def figure(caption: str, note: str, *parts: object) -> Html:
    """A chart with its caption."""
    return tag("figure", tag("figcaption", tag("strong", caption), tag("span", note)), *parts)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], words: Iterable[int] = (0,)) -> Html:
    """A table whose first cells head the rows; `words` are the columns of text. The caption is for screen readers."""
    text = frozenset(words)

    def cell(place: int, content: object) -> Html:
        kind = None if place in text else "num"
        return tag("th", content, scope="row", class_=kind) if place == 0 else tag("td", content, class_=kind)

    heads = [tag("th", name, scope="col", class_=None if i in text else "num") for i, name in enumerate(head)]
    body = [tag("tr", [cell(place, content) for place, content in enumerate(row)]) for row in rows]
    return scrolling(
        caption,
        tag("table", tag("caption", caption, class_="hidden"), tag("thead", tag("tr", heads)), tag("tbody", body)),
    )


def scrolling(label: str, *parts: object) -> Html:
    """A region that scrolls sideways on a narrow screen, also with the keyboard."""
    return tag("div", *parts, class_="scroll", tabindex=0, role="region", aria_label=label)


def details(summary: str, *parts: object) -> Html:
    """A part that can be unfolded."""
    return tag("details", tag("summary", summary), *parts)


def note(text: object) -> Html:
    """A remark."""
    return tag("p", text, class_="note")


def open_button(run: int, place: int, text: str, label: str | None = None) -> Html:
    """The button that opens a transcript."""
    says = label or f"Transcript of scenario {text}"
    return tag("button", text, type="button", class_="open", data_run=run, data_place=place, aria_label=says)


def outcome_name(outcome: str) -> str:
    """The page's label of an outcome."""
    return OUTCOMES.get(outcome) or line(outcome.replace("_", " "), 40)


def outcome_class(outcome: str) -> str:
    """The class that gives an outcome its colour."""
    return f"o-{outcome}" if outcome in OUTCOMES else "o-other"
