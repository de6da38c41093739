"""What the sections of the page are made of: runs with their labels and colours, tables, figures, numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agentclinic.report.collect import Collected, Report, RunReport
from agentclinic.report.markup import Html, tag
from agentclinic.report.text import line, percent
from agentclinic.scoring.estimates import Estimate, Proportion

OUTCOMES = {
    "diagnosed_right": "right",
    "diagnosed_wrong": "wrong",
    "max_infs_reached": "no diagnosis",
    "doctor_failed": "doctor failed",
    "model_failed": "model failed (missing)",
    "judge_failed": "judge failed (missing)",
}
"""How encounters end, and what the page calls it."""
COLOURS = 6
"""Runs beyond the sixth share colours with the first ones; their letters still tell them apart."""
MOST_LISTED = 100
"""Rows of a list inside a section: more than a reader looks through, few enough to open fast."""
_TELLING = (
    "data set", "doctor", "doctor's model", "patient's model", "laboratory's model", "doctor's bias", "patient's bias",
    "turn limit", "judge's model",
)  # fmt: skip
"""Settings by which runs are called, where they differ."""


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
        self.labels = labels(self.runs)

    def colour(self, run: int) -> str:
        """The class that gives a run its colour."""
        return f"c{run % COLOURS}"

    def letter(self, run: int) -> str:
        """A run's short name in charts."""
        return chr(ord("A") + run) if run < 26 else str(run + 1)

    def chip(self, run: int) -> Html:
        """The run's letter in its colour, with its label."""
        return tag("span", self.badge(run), tag("span", self.labels[run]), class_="chip")

    def badge(self, run: int) -> Html:
        """The run's letter in its colour."""
        return tag("b", self.letter(run), class_=f"letter {self.colour(run)}")

    def each(self, drawn: Iterable[Drawn]) -> Html:
        """Parts of runs: named and side by side where there are several, else over the whole width."""
        if not self.several:
            return tag("div", [one.part for one in drawn], class_="wide")
        named = [tag("div", tag("p", self.chip(one.run), class_="whose"), one.part, class_="panel") for one in drawn]
        return tag("div", named, class_="panels")


def labels(runs: Sequence[RunReport]) -> list[str]:
    """What tells the runs apart: the settings in which they differ, else their names."""
    differing = [key for key in _TELLING if len({run.settings.get(key) for run in runs}) > 1]
    short = [line(", ".join(run.settings.get(key, "–") for key in differing), 60) for run in runs]
    told_apart = bool(differing) and len(set(short)) == len(runs)
    return short if told_apart else [line(run.name, 60) for run in runs]


def section(name: str, title: str, lede: object, *parts: object) -> Html:
    """A part of the page with its heading."""
    head = [tag("h2", title, id=f"{name}-h"), tag("p", lede, class_="lede") if lede else None]
    return tag("section", head, *parts, id=name, aria_labelledby=f"{name}-h")


def figure(caption: str, note: str, *parts: object) -> Html:
    """A chart with its caption."""
    return tag("figure", tag("figcaption", tag("strong", caption), tag("span", note)), *parts)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], words: Iterable[int] = (0,)) -> Html:
    """A table; columns other than `words` hold numbers. The first cell heads its row; the caption is for the ear."""
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
    """A region that scrolls sideways on a narrow screen, with the keyboard, too."""
    return tag("div", *parts, class_="scroll", tabindex=0, role="region", aria_label=label)


def details(summary: str, *parts: object) -> Html:
    """Something to unfold."""
    return tag("details", tag("summary", summary), *parts)


def note(text: object) -> Html:
    """A remark."""
    return tag("p", text, class_="note")


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """An interval of shares in words."""
    return "" if low is None or high is None else f"{100 * low:.{digits}f} to {100 * high:.{digits}f} %"


def number(estimate: Estimate | None, digits: int = 2) -> str:
    """A number with its interval, or why it is not known."""
    if estimate is None or estimate.value is None:
        return f"not known: {estimate.note}" if estimate is not None and estimate.note else "not known"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:,.{digits}f}"
    return f"{estimate.value:,.{digits}f} ({estimate.low:,.{digits}f} to {estimate.high:,.{digits}f})"


def points(difference: Estimate) -> str:
    """A difference of shares in percentage points."""
    shown = "–" if difference.value is None else f"{100 * difference.value:+.1f}"
    if difference.low is None or difference.high is None:
        return shown
    return f"{shown} ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"


def share(one: Proportion | None) -> str:
    """A share with its interval and counts."""
    if one is None or one.value is None:
        return "not known"
    return f"{percent(one.value)} ({interval(one.low, one.high)}; {one.count:,} of {one.of:,})"


def open_button(run: int, place: int, text: str, label: str | None = None) -> Html:
    """What opens a transcript."""
    says = label or f"Transcript of scenario {text}"
    return tag("button", text, type="button", class_="open", data_run=run, data_place=place, aria_label=says)


def outcome_name(outcome: str) -> str:
    """What the page calls an outcome."""
    return OUTCOMES.get(outcome) or line(outcome.replace("_", " "), 40)


def outcome_class(outcome: str) -> str:
    """The class that gives an outcome its colour; one nobody knows gets none of its own."""
    return f"o-{outcome}" if outcome in OUTCOMES else "o-other"
