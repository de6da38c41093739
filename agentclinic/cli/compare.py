"""`agentclinic compare`: the comparison as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentclinic.cli.format import clipped, print_json, text_table
from agentclinic.errors import InputError
from agentclinic.report.files import run_names, runs_in
from agentclinic.report.text import plural
from agentclinic.results.run_data import load_run
from agentclinic.runs.budget import money
from agentclinic.scoring.compare import (
    LEVEL,
    RULES,
    Comparison,
    ComparisonReport,
    Flip,
    RuleComparison,
    SecondaryMetric,
    clear,
    compare_arms,
    load_arm,
    sentence,
    telling,
    unseen,
)
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.format import as_number, as_percent, as_points, interval, number, percent, points
from agentclinic.scoring.labels import letters, shortened

_LABEL = 48
"""Characters of a label in a table: with the other columns, a line then fits a terminal of 120."""


def compare_command(
    places: Sequence[Path], judge: str | None, seed: int, *, corrected: bool, full: bool, as_json: bool
) -> None:
    """Compare runs with the first one and print the result."""
    places = runs_in(places)
    if len(places) < 2:
        raise InputError("compare needs two runs or more; the first is the baseline")
    names = run_names(places)
    arms = [load_arm(load_run(place, judge), name) for place, name in zip(places, names, strict=True)]
    report = compare_arms(arms, seed=seed, corrected=corrected)
    if as_json:
        print_json(report)
    else:
        print("\n".join(comparison_lines(report, report.comparisons, full=full)))


def comparison_lines(report: ComparisonReport, against_first: Sequence[Comparison], *, full: bool) -> list[str]:
    """One table and one sentence, then warnings; with `full`, every comparison in detail.

    `against_first` are the comparisons of the other runs with the first, in the order of the table.
    """
    short = dict(zip([run.arm for run in report.runs], letters(len(report.runs)), strict=True))
    told = {
        rule: [(short[c.arm], v) for c in against_first for v in telling(c.verdicts) if v.rule == rule]
        for rule in RULES
    }
    rules = [rule for rule in RULES if told[rule]]
    lines = [*_table(report, against_first, rules, short), "", *(_conclusion(rule, told[rule]) for rule in rules)]
    lines += [*_judges(report, short), *_corrected(against_first, short)]
    warnings: dict[str, list[str]] = {}
    for comparison in against_first:
        for warning in comparison.warnings:
            warnings.setdefault(warning, []).append(short[comparison.arm])
    for text, arms in warnings.items():
        lines.append(f"Warning: {', '.join(arms)} also differ{'s' * (len(arms) == 1)} from A in {text}.")
    if not full:
        return [*lines, "--full adds p-values, the cases that flipped and other measures; --json prints everything."]
    for comparison in report.comparisons:
        lines += ["", f"{short[comparison.arm]} against {short[comparison.baseline]}:"]
        for verdict in telling(comparison.verdicts):
            lines += _verdict(verdict)
        lines += [_beside(beside) for beside in comparison.beside]
        lines += [f"  note: {shortened(note, short)}" for note in comparison.notes]
    return lines


def _judges(report: ComparisonReport, short: Mapping[str, str]) -> list[str]:
    """Who judged, once if it is the same for all runs."""
    said: dict[str, list[str]] = {}
    for run in report.runs:
        said.setdefault(run.judged_by, []).append(short[run.arm])
    return [text if len(said) == 1 else f"{', '.join(arms)}: {text}" for text, arms in said.items() if text]


def _corrected(against_first: Sequence[Comparison], short: Mapping[str, str]) -> list[str]:
    """What the labels make of the differences."""
    lines = []
    for comparison in against_first:
        found = comparison.corrected
        if found is None:
            continue
        letter, baseline = short[comparison.arm], short[comparison.baseline]
        if found.difference.value is None:
            lines.append(f"Corrected by labels: unknown; {found.difference.note}")
            continue
        clearly = found.p_holm is not None and found.p_holm < LEVEL
        better = "better" if found.difference.value > 0 else "worse"
        said = f"{letter} is clearly {better} than {baseline}" if clearly else f"no clear difference: {letter}"
        lines.append(
            f"Corrected by labels, {said}{': ' if clearly else ' '}{as_points(found.difference, label='95%')}; "
            f"right {baseline} {as_percent(found.before)}, {letter} {as_percent(found.after)}"
        )
        if found.difference.note:
            lines.append(f"  note: {found.difference.note}")
    return lines


def _table(
    report: ComparisonReport, against_first: Sequence[Comparison], rules: Sequence[str], short: Mapping[str, str]
) -> list[str]:
    rights = {(one.arm, one.rule): one.accuracy for one in report.accuracies}
    differences = {(c.arm, v.rule): v.difference for c in against_first for v in c.verdicts}
    columns = {"": [short[run.arm] for run in report.runs], "run": [clipped(run.label, _LABEL) for run in report.runs]}
    for rule in rules or ["strict"]:
        by = "" if len(rules) < 2 else f"{rule}: "
        columns[f"{by}right (95%)"] = [_right(rights.get((run.arm, rule))) for run in report.runs]
        shown = [as_points(differences.get((run.arm, rule))).replace(" points", "") for run in report.runs]
        columns[f"{by}difference in points (95%)"] = ["baseline", *shown[1:]]
    words = len(columns)
    columns["turns"] = [number(run.turns, 1) for run in report.runs]
    if any(run.tokens for run in report.runs):
        columns["tokens"] = [number(run.tokens, 0) for run in report.runs]
    if any(run.cost_usd for run in report.runs):
        columns["cost"] = ["unknown" if run.cost_usd is None else money(run.cost_usd) for run in report.runs]
    return text_table(list(columns), zip(*columns.values(), strict=True), numbers=range(words, len(columns)))


def _right(share: Estimate | None) -> str:
    return f"{percent(share.value, 0)} ({interval(share, 0)})" if share else "unknown"


def _conclusion(rule: str, told: Sequence[tuple[str, RuleComparison]]) -> str:
    """What the comparisons with A show under one rule, in one sentence."""
    by = "" if rule == "strict" else f"By the {rule} rule: "
    if len(told) == 1:
        letter, verdict = told[0]
        return f"{by}{sentence(verdict, letter, 'A')}."
    kinds = {True: "Clearly different from A", False: "No clear difference"}
    parts = []
    for kind, name in kinds.items():
        found = [(letter, verdict) for letter, verdict in told if clear(verdict) is kind]
        if found:
            listed = ", ".join(f"{letter} {points(verdict.difference.value)}" for letter, verdict in found)
            parts.append(f"{name}: {listed} points" + ("" if kind else f"; {unseen([v for _, v in found])}"))
    return f"{by}{'. '.join(parts)}."


def _verdict(verdict: RuleComparison) -> list[str]:
    tests = [f"bootstrap p = {verdict.p_bootstrap:.3g}", f"permutation p = {verdict.p_permutation:.3g}"]
    if verdict.p_mcnemar is not None:
        tests.append(f"exact McNemar p = {verdict.p_mcnemar:.3g}")
    if verdict.p_holm is not None:
        tests.append(f"Holm-adjusted p = {verdict.p_holm:.3g}")
    difference = as_points(verdict.difference)
    lines = [
        f"  {verdict.rule}: {percent(verdict.before)} -> {percent(verdict.after)}, difference {difference}",
        f"    {', '.join(tests)}",
        f"    {plural(verdict.cases, 'case')} in {plural(verdict.clusters, 'cluster')} by {verdict.clustered_by}",
        f"    {len(verdict.gained)} gained{_listed(verdict.gained)}, {len(verdict.lost)} lost{_listed(verdict.lost)}",
    ]
    if verdict.detectable is not None:
        smallest = f"{100 * verdict.detectable:.1f} points"
        lines.append(f"    smallest difference that these data would show with 80% power: {smallest}")
    return lines


def _beside(beside: SecondaryMetric) -> str:
    digits = 3 if abs(beside.before) < 1 and abs(beside.after) < 1 else 1
    difference = as_number(beside.difference, digits, signed=True)
    return (
        f"  {beside.measure}: {number(beside.before, digits)} -> {number(beside.after, digits)}, "
        f"difference {difference}, {plural(beside.cases, 'case')}"
    )


def _listed(flips: Sequence[Flip], most: int = 12) -> str:
    if not flips:
        return ""
    shown = ", ".join(str(flip.scenario_id) for flip in flips[:most])
    return f" (scenarios {shown}{', ...' if len(flips) > most else ''})"
