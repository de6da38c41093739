"""Every encounter that is not right, with its reasons; a click opens the transcript."""

from __future__ import annotations

from urllib.parse import quote

from agentclinic.report.encounters import Encounter
from agentclinic.report.parts import OUTCOMES, View, note, open_button, outcome_class, outcome_name, section
from agentclinic.report.tables import DASH, Html, line, plural, scrolling, tag
from agentclinic.scoring.format import number, percent

FIRST_PAGE = 10
"""Rows written as plain HTML, for print and for browsers without scripts; the script shows as many at a time."""
_HEAD = ("case", "outcome", "truth", "diagnosis", "confidence", "turns", "why")
_NUMBERS = frozenset({"confidence", "turns", "regret"})


def encounters(view: View) -> Html:
    """The list, its filters, and the first rows."""
    bad = [
        (run, place, one)
        for run, listed in enumerate(view.collected.encounters)
        for place, one in enumerate(listed)
        if one.right is not True
    ]
    head = ["run", *_head(view)] if view.several else _head(view)
    rows = [_row(view, run, place, one) for run, place, one in bad[:FIRST_PAGE]]
    listed = tag(
        "table",
        tag("caption", "Encounters", class_="hidden"),
        tag("thead", tag("tr", [tag("th", n, scope="col", class_="num" if n in _NUMBERS else None) for n in head])),
        tag("tbody", rows, id="rows"),
        class_="stacked",
    )
    pager = [
        tag("button", "Previous", type="button", id="p-back"),
        tag("span", id="p-where"),
        tag("button", "Next", type="button", id="p-next"),
    ]
    first = f"; the first {FIRST_PAGE} are listed" if len(bad) > FIRST_PAGE else ""
    return section(
        "encounters",
        "Encounters",
        "Choose a case to read its transcript: every turn, where each answer came from, and the differential at that "
        "point.",
        tag("noscript", note("The transcripts in this file are compressed and need scripts to open.")),
        _filters(view),
        tag("p", f"{plural(len(bad), 'encounter')} not right{first}.", id="count", role="status"),
        scrolling("Encounters", listed),
        tag("div", pager, class_="pager", id="pager", hidden=True),
    )


def _head(view: View) -> list[str]:
    """The columns; that of the regret only if a run was played in a solvable world."""
    solvable = any(run.score.regret.encounters for run in view.runs)
    return [*_HEAD[:-1], "regret", _HEAD[-1]] if solvable else list(_HEAD)


def _filters(view: View) -> Html:
    outcomes = [tag("option", OUTCOMES.get(kind, kind), value=kind) for kind in ("not right", "all", *OUTCOMES)]
    runs = [tag("option", f"{view.letters[i]} {label}", value=i) for i, label in enumerate(view.labels)]
    which = tag("label", "Run", tag("select", tag("option", "all runs", value=""), runs, id="f-run"))
    search = tag("input", type="search", id="f-text", placeholder="diagnosis, specialty, reason")
    return tag(
        "form",
        which if view.several else None,
        tag("label", "Outcome", tag("select", outcomes, id="f-outcome")),
        tag("label", "Search", search),
        class_="filters",
        id="filters",
        hidden=True,
    )


def _name(view: View, run: int, one: Encounter) -> str:
    return f"{_case(one)} · {one.repeat + 1}" if view.runs[run].score.repeats.repeated else _case(one)


def _case(one: Encounter) -> str:
    return line(one.case_name[-80:], 80)  # a long name ends in the row, without which it would not be the only one


def _why(one: Encounter) -> str:
    return line("; ".join(reason.text for reason in one.reasons))


def _row(view: View, run: int, place: int, one: Encounter) -> Html:
    cells = {
        "outcome": tag("span", outcome_name(one.outcome), class_=f"tag {outcome_class(one.outcome)}"),
        "truth": line(one.truth, 120),
        "diagnosis": line(one.diagnosis, 120) or DASH,
        "confidence": percent(one.confidence, 0, DASH),
        "turns": one.turns if one.turns is not None else DASH,
        "regret": number(one.regret, 1, DASH),
        "why": _why(one),
    }
    classes = dict.fromkeys(_NUMBERS, "num") | {"why": "why"}
    return tag(
        "tr",
        tag("td", view.letters[run], data_head="run") if view.several else None,
        tag("th", open_button(run, place, _name(view, run, one)), scope="row", data_head=_HEAD[0]),
        [tag("td", cells[name], class_=classes.get(name), data_head=name) for name in _head(view)[1:]],
    )


def _address(one: Encounter) -> str:
    """Where its transcript is, in the page's address: the name of the case and, after a dot, the repeat."""
    repeat = f".{one.repeat + 1}" if one.repeat else ""
    return f"{quote(_case(one))}{repeat}"


def index_rows(view: View, run: int) -> list[list[object]]:
    """What the page's script needs to list and search a run's encounters, in the order the script expects."""
    return [
        [
            _name(view, run, one),
            one.outcome if one.outcome in OUTCOMES else "other",
            outcome_name(one.outcome),
            line(one.truth, 120),
            line(one.diagnosis, 120),
            None if one.confidence is None else round(one.confidence, 4),
            one.turns,
            _why(one),
            line(" ".join(part for part in (one.specialty, one.difficulty) if part), 120),
            one.block,
            one.position,
            _address(one),
            one.chart,
            None if one.regret is None else round(one.regret, 4),
        ]
        for one in view.collected.encounters[run]
    ]
