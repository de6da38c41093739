"""Flips: cases on which runs, or repeats of a run, differ."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.report.comparison import budget_cells
from agentclinic.report.encounters import Encounter
from agentclinic.report.numbers import repeats_section
from agentclinic.report.parts import MOST_LISTED, View, details, note, open_button, outcome_name, section
from agentclinic.report.tables import DASH, Html, line, plural, tag
from agentclinic.report.tables import html_table as table
from agentclinic.scoring.compare import Comparison, sentence, telling
from agentclinic.scoring.format import as_points, percent
from agentclinic.scoring.labels import shortened

Played = tuple[int, Encounter]
"""The place of an encounter in its run, and the encounter."""
SHOWN_REPEATS = 4
"""Repeats of a case shown in a list; the list of encounters has them all."""


def flips(view: View) -> Html | None:
    """What flipped between runs, and between repeats of the same case."""
    parts = [*_comparisons(view), *filter(None, (_repeats(view, index) for index in range(len(view.runs))))]
    title = "Flips between runs" if view.several else "Flips between repeats"
    return section("flips", title, None, *parts) if parts else None


def _comparisons(view: View) -> list[Html]:
    if not view.several:
        return []
    if view.report.comparison is None:
        return [note(f"Not compared: {line(view.report.not_compared, 300)}.")]
    return [_comparison(view, index, one) for index, one in enumerate(view.report.comparison.comparisons, start=1)]


def _comparison(view: View, index: int, comparison: Comparison) -> Html:
    first, second = view.letters[0], view.letters[index]
    told = telling(comparison.verdicts)
    head = ["rule", first, second, "difference", "p", "p, Holm", "gained", "lost"]
    rows = [
        [
            verdict.rule,
            percent(verdict.before),
            percent(verdict.after),
            as_points(verdict.difference),
            f"{verdict.p:.3g}",
            DASH if verdict.p_holm is None else f"{verdict.p_holm:.3g}",
            len(verdict.gained),
            len(verdict.lost),
        ]
        for verdict in told
    ]
    rows += [
        [*budget_cells(at), f"{at.p:.3g}", DASH if at.p_holm is None else f"{at.p_holm:.3g}", "", ""]
        for at in comparison.at_budgets
    ]
    conclusions = [f"{sentence(one, second, first)}{'' if one.rule == 'strict' else ' (lenient rule)'}" for one in told]
    names = {comparison.baseline: first, comparison.arm: second}
    return tag(
        "div",
        tag("h3", view.chip(index), " against ", view.chip(0)),
        [tag("p", f"{text}.", class_="conclusion") for text in conclusions],
        [
            tag("p", f"Another difference between the runs: {line(text, 300)}.", class_="warn")
            for text in comparison.warnings
        ],
        table("Difference", head, rows, stacked=True),
        _flipped(view, index),
        [note(f"{line(shortened(text, names), 300)}.") for text in comparison.notes],
        class_="comparison",
    )


def _flipped(view: View, index: int) -> Html:
    before, after = _by_case(view.collected.encounters[0]), _by_case(view.collected.encounters[index])
    rows: list[tuple[bool, int, list[object]]] = []
    for case, ours in before.items():
        left, right = _mean(ours), _mean(after.get(case, []))
        if left is None or right is None or left == right:
            continue
        one, better = ours[0][1], right > left
        kind = tag("span", "gained" if better else "lost", class_=f"tag t-{'good' if better else 'bad'}")
        said = [_openers(0, ours), _openers(index, after[case])]
        rows.append((better, one.scenario_id, [kind, one.case_name, line(one.truth, 80), *said]))
    if not rows:
        return note("No case flipped.")
    rows.sort(key=lambda row: row[:2])
    head = ["", "case", "truth", f"diagnosis in {view.letters[0]}", f"diagnosis in {view.letters[index]}"]
    shown = table("Flips", head, [row for *_, row in rows[:MOST_LISTED]], range(len(head)), stacked=True)
    more = len(rows) - MOST_LISTED
    rest = note(f"The CSV format has {more} more.") if more > 0 else None
    return details(f"{plural(len(rows), 'case')} flipped", shown, rest)


def _by_case(encounters: Sequence[Encounter]) -> dict[str, list[Played]]:
    found: dict[str, list[Played]] = {}
    for place, one in enumerate(encounters):
        found.setdefault(one.case, []).append((place, one))
    return found


def _mean(repeats: Sequence[Played]) -> float | None:
    known = [one.right for _, one in repeats if one.right is not None]
    return sum(known) / len(known) if known else None


def _openers(run: int, repeats: Sequence[Played]) -> list[object]:
    shown: list[object] = []
    for place, one in repeats[:SHOWN_REPEATS]:
        mark = "?" if one.outcome == "not_readable" else {True: "✓", False: "✗", None: "?"}[one.right]
        text = f"{mark} {line(one.diagnosis, 60) or outcome_name(one.outcome)}"
        shown += [open_button(run, place, text, f"Transcript: {text}"), " "]
    return shown


def _repeats(view: View, index: int) -> Html | None:
    if not view.runs[index].score.repeats.repeated:
        return None
    cases = _by_case(view.collected.encounters[index]).values()
    differing = [several for several in cases if 0 < (_mean(several) or 0) < 1]
    rows = [
        [
            several[0][1].case_name,
            line(several[0][1].truth, 80),
            f"{sum(one.right is True for _, one in several)} of {len(several)}",
            _openers(index, several),
        ]
        for several in differing[:MOST_LISTED]
    ]
    listed = details(
        f"{plural(len(differing), 'case')} right in some repeats and not in others",
        table("Repeats that differ", ["case", "truth", "right", "diagnosis"], rows, (0, 1, 3), stacked=True),
    )
    return tag(
        "div",
        tag("h3", view.chip(index), ": repeats") if view.several else None,
        repeats_section(view.runs[index].score).html(),
        listed if rows else None,
    )
