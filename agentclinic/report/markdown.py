"""The report as Markdown, for a supplement or a comment on a change: tables of numbers, and what they can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentclinic.report.collect import Collected, RunReport
from agentclinic.report.comparison import budget_cells
from agentclinic.report.encounters import where_wrong
from agentclinic.report.numbers import by_budget, sections
from agentclinic.report.parts import View, outcome_name
from agentclinic.report.sections.first_screen import (
    bounds,
    main_source,
    mean_confidence,
    models_cost,
    tests_price,
    verdict,
)
from agentclinic.report.statements import statements_markdown
from agentclinic.report.tables import DASH, Quoted, markdown_cell, markdown_table, quoted
from agentclinic.scoring.compare import telling
from agentclinic.scoring.format import as_percent, as_points, interval, percent
from agentclinic.scoring.outcome import unread_advice

MOST_FAILURES = 20
"""Failures listed: no one reads a longer comment. The CSV format has them all."""
MOST_GROUPS = 12


def markdown(collected: Collected, mark: str) -> str:
    """The whole text; `mark` identifies it as a report."""
    view = View(collected)
    names = " and ".join(quoted(label) for label in view.labels)
    judges = dict.fromkeys(markdown_cell(run.score.judged_by) for run in view.runs)
    advice = unread_advice(sum(run.score.outcome.not_readable for run in view.runs))
    parts = [f"<!-- {mark} -->", f"# Report on {names}", _headline(view), *advice, *judges]
    budgets = by_budget(view.budgets)
    parts += [*_comparison(view), budgets.markdown() if budgets.rows else ""]
    for index, run in enumerate(view.runs):
        title = f"Run {view.letters[index]}: {quoted(view.labels[index])}" if view.several else "Details"
        parts += [f"## {title}", *_run(view, index, run)]
    parts.append("_Made by `agentclinic report`. A research benchmark, not medical advice._")
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n".join(markdown_table(head, rows))


def _headline(view: View) -> str:
    rows = []
    for index, run in enumerate(view.runs):
        source = main_source(run)
        sure = mean_confidence(source)
        outer = bounds(run)
        cost, tokens = models_cost(run)[0], run.score.outcome.tokens
        rows.append(
            [
                Quoted(f"{view.letters[index]} {quoted(view.labels[index])}"),
                run.headlined(f"**{percent(run.headline.value)}** ({interval(run.headline)})"),
                f"{percent(outer[0])} to {percent(outer[1])}" if outer else "nothing missing or unread",
                f"{percent(sure)}, {verdict(source)}" if source and sure is not None else "unknown",
                "unknown" if cost == DASH else cost,
                "unknown" if tokens is None else f"{tokens:,}",
                tests_price(run).replace("≥", "at least").replace(DASH, "unknown"),
                run.known.records,
            ]
        )
    head = [
        "run",
        "right (95% interval)",
        "bounds with missing or unread",
        "mean confidence",
        "models cost",
        "tokens",
        "simulated tests per encounter",
        "encounters",
    ]
    return _table(head, rows)


def _comparison(view: View) -> list[str]:
    if view.report.comparison is None:
        return [f"Not compared: {quoted(view.report.not_compared)}."] if view.report.not_compared else []
    rows, warnings = [], []
    for index, one in enumerate(view.report.comparison.comparisons, start=1):
        pair = f"{view.letters[index]} against {view.letters[0]}"
        for v in telling(one.verdicts):
            p = v.p if v.p_holm is None else v.p_holm
            rows.append([pair, v.rule, as_points(v.difference), f"{p:.3g}", len(v.gained), len(v.lost)])
        for at in one.at_budgets:
            p = at.p if at.p_holm is None else at.p_holm
            name, _, _, by = budget_cells(at)
            rows.append([pair, name, by, f"{p:.3g}", "", ""])
        warnings += [f"- {pair}: another difference between the runs: {quoted(text)}" for text in one.warnings]
    table = _table(["runs", "rule", "difference", "p (Holm if several)", "gained", "lost"], rows)
    return ["## Differences", table, "\n".join(warnings)]


def _run(view: View, index: int, run: RunReport) -> list[str]:
    made = [*sections(run.score), where_wrong(view.collected.encounters[index])]
    parts = [*(section.markdown() for section in made if section.rows), *_groups(run), *_failures(view, index)]
    return [*parts, "### What this run can and cannot show", *statements_markdown(run)]


def _groups(run: RunReport) -> list[str]:
    rows = [
        [kind, quoted(group.name), as_percent(group.accuracy)]
        for kind, groups in run.breakdown.groups.items()
        for group in groups[:MOST_GROUPS]
    ]
    return ["### By kind of case", _table(["kind", "", "strict accuracy"], rows)] if rows else []


def _failures(view: View, index: int) -> list[str]:
    bad = [one for one in view.collected.encounters[index] if one.right is not True]
    if not bad:
        return []
    rows = [
        [
            quoted(one.case_name),
            outcome_name(one.outcome),
            quoted(one.truth),
            quoted(one.diagnosis),
            percent(one.confidence, 0, DASH),
            quoted("; ".join(reason.text for reason in one.reasons)),
        ]
        for one in bad[:MOST_FAILURES]
    ]
    more = f"\n\nThe HTML and CSV formats have {len(bad) - MOST_FAILURES} more." if len(bad) > MOST_FAILURES else ""
    return ["### Not right", _table(["case", "outcome", "truth", "diagnosis", "confidence", "why"], rows) + more]
