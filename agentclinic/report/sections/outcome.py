"""Outcomes and faults; accuracy by kind of case; twins."""

from __future__ import annotations

from agentclinic.report import charts
from agentclinic.report.collect import RunReport
from agentclinic.report.encounters import HARM, where_wrong
from agentclinic.report.numbers import failure_sections
from agentclinic.report.parts import (
    MOST_LISTED,
    OUTCOMES,
    View,
    details,
    note,
    open_button,
    outcome_class,
    outcome_name,
    section,
)
from agentclinic.report.tables import DASH, Html, line, plural, tag
from agentclinic.report.tables import html_table as table
from agentclinic.scoring.breakdown import Group
from agentclinic.scoring.format import as_percent, as_points, percent
from agentclinic.scoring.outcome import slip_lines
from agentclinic.scoring.twins import Twin, TwinPair

MOST_GROUPS = 30
FEWEST_SHOWN = 5
"""Specialties with fewer cases are folded: one case more or less changes their accuracy by over 20 points."""


def outcomes(view: View) -> Html | None:
    """How encounters ended, and what failed."""
    lede = (
        "An encounter without a diagnosis, or in which the doctor failed, counts as wrong. If the endpoint, the "
        "patient, the laboratory or the judge failed, it is missing, not wrong. An answer that the judge could not "
        "read is neither right nor wrong; accuracy counts it as not right."
    )
    wrong = [where_wrong(encounters) for encounters in view.collected.encounters]
    where = [tag("div", tag("h3", one.title), one.html(), class_="where") if one.rows else None for one in wrong]
    drawn = [(index, [*_ended(run), where[index], *_failed(run)]) for index, run in enumerate(view.runs)]
    return view.section("outcomes", "How the encounters ended", lede, drawn)


def _ended(run: RunReport) -> list[Html]:
    counts, total = run.score.outcome.outcomes, run.score.outcome.presented or 1
    names = [*(name for name in OUTCOMES if name in counts), *(name for name in counts if name not in OUTCOMES)]
    shares = [(counts[n] / total, outcome_class(n), f"{outcome_name(n)}: {counts[n]}") for n in names]
    keys = [
        tag(
            "li",
            tag("i", class_=f"key {outcome_class(n)}"),
            f"{outcome_name(n)} ",
            tag("b", f"{counts[n]:,}"),
            f" {percent(counts[n] / total)}",
        )
        for n in names
    ]
    return [charts.stacked(shares), tag("ul", keys, class_="legend")]


def _failed(run: RunReport) -> list[Html]:
    """Faults and slips, and how often code had to answer for a model."""
    outcome = run.score.outcome
    given = [note(f"{said}.") for said in slip_lines(outcome) if "given by code" in said]
    return [*(section.html() for section in failure_sections(outcome)), *given]


# --- by kind of case ------------------------------------------------------------------------------------------------

_KINDS = {
    "specialty": "By specialty",
    "difficulty": "By difficulty, as rated by the case's author",
    "harm": "By harm if missed, as rated by the case's author",
}


def groups(view: View) -> Html | None:
    stated = [kind for kind in _KINDS if any(run.breakdown.groups.get(kind) for run in view.runs)]
    if not stated:
        return None
    lede = (
        "Strict accuracy with 95% intervals; missing encounters are left out, and answers that could not be read count "
        "as not right. Small groups have wide intervals, and "
        "among many groups some stand out by chance."
    )
    left = [_kind(view, kind) for kind in stated if kind == "specialty"]
    right = [_kind(view, kind) for kind in stated if kind != "specialty"]
    columns = [tag("div", part) for part in (left, right) if part]
    return section("groups", "Accuracy by type of case", lede, tag("div", columns, class_="figures"))


def _kind(view: View, kind: str) -> Html:
    by_name = [{group.name: group for group in run.breakdown.groups.get(kind, [])} for run in view.runs]
    names = list(dict.fromkeys(name for named in by_name for name in named))
    cases = {name: max(named[name].cases for named in by_name if name in named) for name in names}
    large = [name for name in names if kind != "specialty" or cases[name] >= FEWEST_SHOWN]
    small = [name for name in names if name not in large]
    letters = view.letters if view.several else ["right"]
    steps = kind == "harm" and all(name.isdigit() and int(name) < len(HARM) for name in names)

    def draw(chosen: list[str]) -> Html:
        rows = [
            [
                f"{name}: {HARM[int(name)]}" if steps else line(name, 60),
                *_group(view, [named.get(name) for named in by_name]),
            ]
            for name in chosen[:MOST_GROUPS]
        ]
        more = len(chosen) - MOST_GROUPS
        shown = table(_KINDS[kind], [kind, "n", "0 to 100%", *letters], rows, (0, 2))
        return tag("div", shown, note(f"The JSON format has {plural(more, 'smaller one')}.") if more > 0 else None)

    folded = f"{plural(len(small), kind, 'specialties')} with fewer than {FEWEST_SHOWN} cases"
    return tag(
        "div",
        tag("h3", _KINDS[kind]),
        draw(large) if large else None,
        details(folded, draw(small)) if small else None,
    )


def _group(view: View, found: list[Group | None]) -> list[object]:
    shares = [group.accuracy if group else None for group in found]
    marks = [
        charts.Mark(one.value, one.low, one.high, view.colour(index))
        for index, one in enumerate(shares)
        if one is not None and one.value is not None
    ]
    sizes = list(dict.fromkeys(str(one.of) if one else DASH for one in shares))
    values = [percent(one.value if one else None, 0, DASH) for one in shares]
    drawn = charts.strip(marks, width=220, row=12 if view.several else 16) if marks else ""
    return [" / ".join(sizes), drawn, *values]


# --- twins ----------------------------------------------------------------------------------------------------------


def twins(view: View) -> Html | None:
    """Pairs of cases that look the same at the door."""
    drawn = [(index, _pairs(view, index)) for index, run in enumerate(view.runs) if run.breakdown.twins]
    lede = (
        "Twins are two cases that look the same at the door and have different diagnoses. A doctor who decides at the "
        "door gets at most one of them right."
    )
    return view.section("twins", "Twins", lede, drawn)


def _pairs(view: View, index: int) -> list[Html]:
    run, twins = view.runs[index], view.runs[index].score.twins
    places = {(one.scenario_id, one.repeat): place for place, one in enumerate(view.collected.encounters[index])}
    rows = [
        [_both(pair), _side(pair.first, index, places), _side(pair.second, index, places)]
        for pair in run.breakdown.twins[:MOST_LISTED]
    ]
    said = f"Both right: {as_percent(twins.both_right)}. Same answer to both: {as_percent(twins.same_answer)}."
    if twins.without_partner:
        said += f" {plural(twins.without_partner, 'encounter')} left out: the twin was not played or not judged."
    return [
        tag("p", said),
        *_against_first(view, index),
        table("Twins", ["", "first", "second"], rows, (0, 1, 2), stacked=True),
    ]


def _against_first(view: View, index: int) -> list[Html]:
    """How a run differs from the first on the pairs that both have."""
    compared = view.report.comparison.comparisons[index - 1].beside if view.report.comparison and index else ()
    said = [f"{m.measure} {as_points(m.difference)}, {plural(m.cases, m.unit)}" for m in compared if m.unit == "pair"]
    return [tag("p", f"Against {view.letters[0]}: {'; '.join(said)}.")] if said else []


def _both(pair: TwinPair) -> Html:
    right = pair.right or 0
    name = ("neither right", "one right", "both right")[right]
    same = ", same answer" if pair.same_answer else ""
    return tag("span", name, same, class_=f"tag t-{('bad', 'mixed', 'good')[right]}")


def _side(side: Twin, run: int, places: dict[tuple[int, int], int]) -> Html:
    place = places.get((side.scenario_id, side.repeat))
    name = f"{side.case_id} · {side.repeat + 1}" if side.repeat else side.case_id
    mark = tag("span", "✓", class_="ok", role="img", aria_label="right")
    said = None
    if not side.right:
        bad, name_of_mark = ("?", "not readable") if side.unread else ("✗", "wrong")
        mark = tag("span", bad, class_="bad", role="img", aria_label=name_of_mark)
        said = tag("small", f" said {line(side.diagnosis, 80) or 'nothing'}")
    opener = open_button(run, place, name) if place is not None else name
    return tag("span", mark, " ", line(side.truth, 80), said, " ", opener, class_="side")
