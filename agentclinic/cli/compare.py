"""`agentclinic compare`: the comparison as text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from agentclinic.cli import options as opt
from agentclinic.cli.format import print_json, print_lines
from agentclinic.errors import InputError
from agentclinic.report.tables import plural
from agentclinic.scoring.format import as_number, as_points, number, percent

if TYPE_CHECKING:
    from agentclinic.scoring.compare import (
        AtBudget,
        Comparison,
        ComparisonReport,
        Flip,
        RuleComparison,
        SecondaryMetric,
    )


@opt.with_output
def compare_command(
    runs: opt.ComparedArgument,
    judge: opt.Judge = None,
    corrected: opt.Corrected = False,
    seed: opt.Seed = 0,
    full: opt.Full = False,
    json: opt.Json = False,
) -> None:
    """Test whether runs really differ.

    Prints one table, what it shows in one sentence, and anything else that differs between the runs; --full adds
    p-values, the cases that flipped and other measures. Cases are paired by content. Intervals and p-values are
    clustered by case and adjusted for multiple comparisons. The folder of a sweep stands for its arms.
    """
    from agentclinic.report.files import run_names, runs_in
    from agentclinic.results.run_data import load_run
    from agentclinic.scoring.compare import compare_arms, load_arm

    places = runs_in(runs)
    if len(places) < 2:
        raise InputError("compare needs two runs or more; the first is the baseline")
    names = run_names(places)
    arms = [load_arm(load_run(place, judge), name) for place, name in zip(places, names, strict=True)]
    report = compare_arms(arms, seed=seed, corrected=corrected)
    if json:
        print_json(report)
    else:
        print_lines(*comparison_lines(report, report.comparisons, full=full))


def comparison_lines(report: ComparisonReport, against_first: Sequence[Comparison], *, full: bool) -> list[str]:
    """One table and one sentence, then warnings; with `full`, every comparison in detail.

    `against_first` are the comparisons of the other runs with the first, in the order of the table.
    """
    from agentclinic.report.comparison import compared, short_names
    from agentclinic.scoring.compare import telling
    from agentclinic.scoring.labels import shortened

    told, short = compared(report, against_first), short_names(report)
    lines = told.text(get_terminal_size().columns if sys.stdout.isatty() else None)
    if not full:
        return [*lines, "--full adds p-values, the cases that flipped and other measures; --json prints everything."]
    notes: dict[str, None] = {}
    for comparison in report.comparisons:
        lines += ["", f"{short[comparison.arm]} against {short[comparison.baseline]}:"]
        for verdict in telling(comparison.verdicts):
            lines += _verdict(verdict)
        lines += [_measure(one) for one in comparison.beside]
        lines += [_at_budget(one) for one in comparison.at_budgets]
        notes |= dict.fromkeys(shortened(note, short) for note in comparison.notes)
    return [*lines, "", *(f"Note: {note}" for note in notes)] if notes else lines


def _verdict(verdict: RuleComparison) -> list[str]:
    tests = [f"score test p = {verdict.p:.3g}"]
    if verdict.p_mcnemar is not None:
        tests.append(f"exact McNemar p = {verdict.p_mcnemar:.3g}")
    if verdict.p_holm is not None:
        tests.append(f"Holm-adjusted p = {verdict.p_holm:.3g}")
    difference = as_points(verdict.difference)
    return [
        f"  {verdict.rule}: {percent(verdict.before)} -> {percent(verdict.after)}, difference {difference}",
        f"    {_clusters(verdict)}; {', '.join(tests)}",
        f"    {len(verdict.gained)} gained{_flips(verdict.gained)}, {len(verdict.lost)} lost{_flips(verdict.lost)}",
    ]


def _clusters(verdict: RuleComparison) -> str:
    together = " (twins and near copies together)" if verdict.clusters < verdict.cases else ""
    return f"{plural(verdict.cases, 'case')} in {plural(verdict.clusters, 'cluster')}{together}"


def _measure(measured: SecondaryMetric) -> str:
    digits = 3 if abs(measured.before) < 1 and abs(measured.after) < 1 else 1
    before, after, difference = measure_cells(measured, digits)
    of = plural(measured.cases, measured.unit)
    return f"  {measured.measure}: {before} -> {after}, difference {difference}, {of}"


def _at_budget(one: AtBudget) -> str:
    from agentclinic.report.comparison import budget_cells

    name, before, after, difference = budget_cells(one)
    adjusted = "" if one.p_holm is None else f", Holm-adjusted p = {one.p_holm:.3g}"
    return f"  {name}: {before} -> {after}, difference {difference}; p = {one.p:.3g}{adjusted}"


def measure_cells(measured: SecondaryMetric, digits: int = 2) -> tuple[str, str, str]:
    """A measure before and after, and the difference."""
    before, after, difference = measured.before, measured.after, measured.difference
    if measured.unit == "pair":
        return percent(before), percent(after), as_points(difference)
    return number(before, digits), number(after, digits), as_number(difference, digits, signed=True)


def _flips(flips: Sequence[Flip], most: int = 12) -> str:
    if not flips:
        return ""
    shown = ", ".join(flip.name for flip in flips[:most])
    return f" ({shown}{', ...' if len(flips) > most else ''})"
