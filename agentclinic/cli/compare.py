"""`agentclinic compare`: the comparison as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentclinic.cli.format import print_json
from agentclinic.errors import InputError
from agentclinic.report.files import run_names
from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import Beside, ComparisonReport, Flip, Verdict, compare_arms, load_arm
from agentclinic.scoring.format import as_number, as_percent, as_points, number, percent


def compare_command(places: Sequence[Path], judge: str | None, seed: int, *, as_json: bool) -> None:
    """Compare runs with the first one and print the result."""
    if len(places) < 2:
        raise InputError("compare needs two runs or more; the first is the baseline")
    names = run_names(places)
    arms = [load_arm(load_run(place, judge), name) for place, name in zip(places, names, strict=True)]
    show(compare_arms(arms, seed=seed), as_json=as_json)


def show(report: ComparisonReport, *, as_json: bool) -> None:
    """Print a comparison."""
    if as_json:
        print_json(report)
        return
    lines = ["accuracy (95% interval):"]
    for accuracy in report.accuracies:
        repeats = f", {accuracy.repeats} repeats" if accuracy.repeats > 1 else ""
        shown = as_percent(accuracy.accuracy)
        lines.append(f"  {accuracy.arm}: {accuracy.rule} {shown}, {accuracy.cases} cases{repeats}")
    for comparison in report.comparisons:
        lines += ["", f"{comparison.arm} against {comparison.baseline}:"]
        lines += [f"  warning: {warning}" for warning in comparison.warnings]
        for verdict in comparison.verdicts:
            lines += _verdict(verdict)
        lines += [_beside(beside) for beside in comparison.beside]
        lines += [f"  note: {note}" for note in comparison.notes]
    print("\n".join(lines))


def _verdict(verdict: Verdict) -> list[str]:
    tests = [f"bootstrap p = {verdict.p_bootstrap:.3g}", f"permutation p = {verdict.p_permutation:.3g}"]
    if verdict.p_mcnemar is not None:
        tests.append(f"exact McNemar p = {verdict.p_mcnemar:.3g}")
    if verdict.p_holm is not None:
        tests.append(f"Holm-adjusted p = {verdict.p_holm:.3g}")
    difference = as_points(verdict.difference)
    lines = [
        f"  {verdict.rule}: {percent(verdict.before)} -> {percent(verdict.after)}, difference {difference}",
        f"    {', '.join(tests)}",
        f"    {verdict.cases} cases in {verdict.clusters} clusters by {verdict.clustered_by}",
        f"    {len(verdict.gained)} gained{_listed(verdict.gained)}, {len(verdict.lost)} lost{_listed(verdict.lost)}",
    ]
    if verdict.detectable is not None:
        lines.append(
            f"    smallest difference these data would show (80% power): {100 * verdict.detectable:.1f} points"
        )
    return [*lines, f"    => {verdict.conclusion}"]


def _beside(beside: Beside) -> str:
    digits = 3 if abs(beside.before) < 1 and abs(beside.after) < 1 else 1
    difference = as_number(beside.difference, digits, signed=True)
    return (
        f"  {beside.measure}: {number(beside.before, digits)} -> {number(beside.after, digits)}, "
        f"difference {difference}, {beside.cases} cases"
    )


def _listed(flips: Sequence[Flip], most: int = 12) -> str:
    if not flips:
        return ""
    shown = ", ".join(str(flip.scenario_id) for flip in flips[:most])
    return f" (scenarios {shown}{', ...' if len(flips) > most else ''})"
