"""The report as Markdown, for a supplement or a comment on a change: tables of numbers and the statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agentclinic.report.collect import Collected, RunReport
from agentclinic.report.parts import View, interval, number, outcome_name, points, share
from agentclinic.report.sections.first_screen import bounds, main_source, mean_confidence, model_money, verdict
from agentclinic.report.statements import statements
from agentclinic.report.text import dollars, line, percent

MOST_FAILURES = 20
"""Failures listed: a comment that is longer is not read. The CSV format has them all."""
MOST_GROUPS = 12


def markdown(collected: Collected, mark: str) -> str:
    """The whole text; `mark` says by whom it was made."""
    view = View(collected)
    names = " and ".join(quoted(run.name) for run in view.runs)
    parts = [f"<!-- {mark} -->", f"# Report on {names}", _headline(view), *_comparison(view)]
    for index, run in enumerate(view.runs):
        title = f"Run {view.letter(index)}: {quoted(view.labels[index])}" if view.several else "In detail"
        parts += [f"## {title}", *_run(view, index, run)]
    parts.append("_Made by `agentclinic report`. A research benchmark, not medical advice._")
    return "\n\n".join(part for part in parts if part) + "\n"


def quoted(text: str | None) -> str:
    """Somebody else's words as a code span: no markup, mention, link or table border in them counts."""
    flat = line(text, 160).replace("|", "\\|")
    if not flat:
        return "–"
    fence = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if "`" in flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {text} |" for text in lines)


def _headline(view: View) -> str:
    rows = []
    for index, run in enumerate(view.runs):
        source, price = main_source(run), run.breakdown.price
        sure = mean_confidence(source)
        outer = bounds(run)
        cost = "not known" if price.mean_usd is None else dollars(price.mean_usd)
        rows.append(
            [
                f"{view.letter(index)} {quoted(view.labels[index])}",
                f"**{percent(run.headline.value)}** ({interval(run.headline.low, run.headline.high)})",
                f"{percent(outer[0])} to {percent(outer[1])}" if outer else "nothing missing",
                f"{percent(sure)}, {verdict(source)}" if source and sure is not None else "not known",
                f"at least {cost}" if price.unpriced.count and price.mean_usd is not None else cost,
                run.known.records,
            ]
        )
    head = [
        "run",
        "right (95 % interval)",
        "bounds for what is missing",
        "sure on average",
        "tests per encounter",
        "encounters",
    ]
    return _table(head, rows)


def _comparison(view: View) -> list[str]:
    if view.report.comparison is None:
        return [f"Not compared: {quoted(view.report.not_compared)}."] if view.report.not_compared else []
    rows = []
    warnings = []
    for index, one in enumerate(view.report.comparison.comparisons, start=1):
        for v in one.verdicts:
            gap = points(v.difference)
            p = v.p_permutation if v.p_holm is None else v.p_holm
            rows.append(
                [f"{view.letter(index)} against {view.letter(0)}", v.rule, gap, f"{p:.3g}", len(v.gained), len(v.lost)]
            )
        warnings += [
            f"- {view.letter(index)} against {view.letter(0)}, not only the doctor differs: {quoted(text)}"
            for text in one.warnings
        ]
    table = _table(["runs", "rule", "difference, points", "p (Holm where several)", "gained", "lost"], rows)
    return ["## Differences", table, "\n".join(warnings)]


def _run(view: View, index: int, run: RunReport) -> list[str]:
    outcome, told = run.score.outcome, run.score.information
    parts = ["### Outcomes", _table(["outcome", "n"], [[outcome_name(k), v] for k, v in outcome.outcomes.items()])]
    if outcome.faults:
        rows = [[quoted(k), v, quoted(outcome.fault_examples.get(k))] for k, v in outcome.faults.items()]
        parts.append(_table(["fault", "n", "the first"], rows))
    rows = [
        ["accuracy, strict", share(outcome.accuracy_strict)],
        ["accuracy, lenient", share(outcome.accuracy_lenient)],
    ]
    rows.append(["turns per encounter", number(told.turns)])
    if run.known.transcripts:
        rows += [
            ["tests and examinations per encounter", number(run.score.orders.items)],
            ["repeated orders", share(run.score.orders.repeated)],
        ]
        rows.append(["tests done without a price", share(run.breakdown.price.unpriced)])
    if told.key_facts.encounters:
        rows += [
            ["key facts, weighted recall", number(told.key_facts.recall)],
            ["premature closure", share(told.premature_closure)],
        ]
    if run.breakdown.twins.pairs:
        rows.append(["twins told apart", share(run.breakdown.twins.told_apart)])
    if run.score.harm.stated:
        rows.append(["harm-weighted loss", number(run.score.harm.weighted_loss)])
    if run.score.repeats.repeated:
        rows.append(["flip rate between repeats", number(run.score.repeats.flip_rate)])
    rows.append(["models", model_money(run)])
    parts += [
        "### Numbers",
        _table(["", "value (95 % interval)"], rows),
        *_calibration(run),
        *_groups(run),
        *_failures(view, index),
    ]
    return [*parts, *_statement(view, index)]


def _calibration(run: RunReport) -> list[str]:
    rows = []
    for source in run.score.calibration.sources:
        if source.n:
            ece = (
                "–"
                if source.ece is None
                else f"{source.ece.value:.3f} (perfect: {source.ece.low:.3f} to {source.ece.high:.3f})"
            )
            rows.append(
                [
                    source.source.value,
                    source.n,
                    number(source.auroc),
                    number(source.brier) if source.brier else "–",
                    ece,
                ]
            )
    return ["### Calibration", _table(["source", "n", "AUROC", "Brier", "ECE"], rows)] if rows else []


def _groups(run: RunReport) -> list[str]:
    rows = [
        [kind, quoted(group.name), share(group.accuracy)]
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
            one.scenario_id,
            outcome_name(one.outcome),
            quoted(one.truth),
            quoted(one.diagnosis),
            percent(one.confidence, 0),
            quoted("; ".join(reason.text for reason in one.reasons)),
        ]
        for one in bad[:MOST_FAILURES]
    ]
    more = f"\n\n{len(bad) - MOST_FAILURES} more are in the HTML and CSV formats." if len(bad) > MOST_FAILURES else ""
    return ["### Not right", _table(["scenario", "outcome", "truth", "said", "sure", "why"], rows) + more]


def _statement(view: View, index: int) -> list[str]:
    titles = {"shows": "It can show", "cannot": "It cannot show", "left_out": "Left out"}
    said = statements(view.report)[index]
    parts = ["### What this run can and cannot show"]
    for kind, title in titles.items():
        texts = [f"- {one.text}" for one in said if one.kind == kind]
        if texts:
            parts.append(f"**{title}**\n\n" + "\n".join(texts))
    return parts
