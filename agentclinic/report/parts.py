"""The building blocks of the page's sections: runs with their labels and colours, figures, notes.

Markup escapes text unless it was made here, so that nothing in a record can become an element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from agentclinic.jsonl import inert
from agentclinic.report.text import line
from agentclinic.scoring.labels import letters

if TYPE_CHECKING:  # slow to import, and tables, which commands print, need markup only
    from agentclinic.report.collect import Collected, Report, RunReport


class Html(str):
    """Text that already is markup."""

    __slots__ = ()


_VOID = frozenset({"meta", "br", "hr", "input", "col"})
_EMPTY = frozenset({"line", "rect", "circle", "path", "polygon"})
"""Elements of drawings, closed in place when they have no children."""


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` becomes `class`, `data_run` becomes `data-run`.

    An attribute that is None or False is left out; True stands alone. Children are `Html`, text (escaped), None
    (nothing) or lists of those.
    """
    opened = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if not children and name in _VOID:
        return Html(f"<{name}{opened}>")
    if not children and name in _EMPTY:
        return Html(f"<{name}{opened}/>")
    return Html(f"<{name}{opened}>{join(children)}</{name}>")


def join(children: object) -> Html:
    """Children one after another."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, Iterable) and not isinstance(children, str):
        return Html("".join(join(child) for child in children))
    return Html(escape(inert(str(children)), quote=False))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(inert(str(value)), quote=True)}"'


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
        self.labels = [line(run.label, 60) for run in self.runs]
        self.letters = letters(len(self.runs))
        """Short names of the runs in charts."""

    def colour(self, run: int) -> str:
        """The class that gives a run its colour."""
        return f"c{run % COLOURS}"

    def chip(self, run: int) -> Html:
        """The run's letter in its colour, with its label."""
        return tag("span", self.badge(run), tag("span", self.labels[run]), class_="chip")

    def badge(self, run: int) -> Html:
        return tag("b", self.letters[run], class_=f"letter {self.colour(run)}")

    def section(
        self, name: str, title: str, lede: str, drawn: Sequence[Drawn], *before: object, fold: bool = False
    ) -> Html | None:
        """A section with a part for each run: labeled and side by side if there are several; None without parts.

        With `fold`, the parts of several runs are folded below what comes before them.
        """
        if not drawn:
            return None
        if self.several:
            labelled = [
                tag("div", tag("p", self.chip(one.run), class_="whose"), one.part, class_="panel") for one in drawn
            ]
            panels = tag("div", labelled, class_="panels")
            return section(name, title, lede, *before, details("Each run on its own", panels) if fold else panels)
        return section(name, title, lede, *before, tag("div", [one.part for one in drawn], class_="wide"))


def section(name: str, title: str, lede: object, *parts: object) -> Html:
    """A part of the page with its heading."""
    head = [tag("h2", title, id=f"{name}-h"), tag("p", lede, class_="lede") if lede else None]
    return tag("section", head, *parts, id=name, aria_labelledby=f"{name}-h")


def figure(caption: str, note: str, *parts: object) -> Html:
    return tag("figure", tag("figcaption", tag("strong", caption), tag("span", note)), *parts)


def details(summary: str, *parts: object) -> Html:
    return tag("details", tag("summary", summary), *parts)


def note(text: object) -> Html:
    return tag("p", text, class_="note")


def open_button(run: int, place: int, text: str, label: str | None = None) -> Html:
    says = label or f"Transcript of scenario {text}"
    return tag("button", text, type="button", class_="open", data_run=run, data_place=place, aria_label=says)


def outcome_name(outcome: str) -> str:
    return OUTCOMES.get(outcome) or line(outcome.replace("_", " "), 40)


def outcome_class(outcome: str) -> str:
    """The class that gives an outcome its colour."""
    return f"o-{outcome}" if outcome in OUTCOMES else "o-other"
