"""`agentclinic compare`: the report as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentclinic.errors import InputError
from agentclinic.report.files import run_names
from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import ComparisonReport, Flip, RuleComparison, SecondaryMetric, compare_arms, load_arm
from agentclinic.scoring.estimates import Estimate


def compare_command(places: Sequence[Path], judge: str | None, seed: int, *, as_json: bool) -> None:
    """Compare runs with the first one and print what came out."""
    if len(places) < 2:
        raise InputError("compare needs two runs or more; the first is the baseline")
    names = run_names(places)
    arms = [load_arm(load_run(place, judge), name) for place, name in zip(places, names, strict=True)]
    report = compare_arms(arms, seed=seed)
    print(report.model_dump_json(indent=2) if as_json else as_text(report))


def as_text(report: ComparisonReport) -> str:
    """The report for a person."""
    lines = ["accuracy (95 % interval):"]
    for accuracy in report.accuracies:
        repeats = f", {accuracy.repeats} repeats" if accuracy.repeats > 1 else ""
        lines.append(
            f"  {accuracy.arm}: {accuracy.rule} {_percent(accuracy.accuracy)}, {accuracy.cases} cases{repeats}"
        )
    for comparison in report.comparisons:
        lines += ["", f"{comparison.arm} against {comparison.baseline}:"]
        lines += [f"  warning: {warning}" for warning in comparison.warnings]
        for verdict in comparison.verdicts:
            lines += _verdict(verdict)
        lines += [_beside(beside) for beside in comparison.beside]
        lines += [f"  note: {note}" for note in comparison.notes]
    return "\n".join(lines)


def _verdict(verdict: RuleComparison) -> list[str]:
    tests = [f"bootstrap p = {verdict.p_bootstrap:.3g}", f"permutation p = {verdict.p_permutation:.3g}"]
    if verdict.p_mcnemar is not None:
        tests.append(f"exact McNemar p = {verdict.p_mcnemar:.3g}")
    if verdict.p_holm is not None:
        tests.append(f"Holm-adjusted p = {verdict.p_holm:.3g}")
    lines = [
        f"  {verdict.rule}: {verdict.before:.1%} -> {verdict.after:.1%}, difference {_percent(verdict.difference)}",
        f"    {', '.join(tests)}",
        f"    {verdict.cases} cases in {verdict.clusters} clusters by {verdict.clustered_by}",
        f"    {len(verdict.gained)} gained{_listed(verdict.gained)}, {len(verdict.lost)} lost{_listed(verdict.lost)}",
    ]
    if verdict.detectable is not None:
        lines.append(f"    smallest difference these data would find (80 % power): {verdict.detectable:.1%}")
    return [*lines, f"    => {verdict.conclusion}"]


def _beside(beside: SecondaryMetric) -> str:
    digits = 3 if abs(beside.before) < 1 and abs(beside.after) < 1 else 1
    gap = beside.difference
    shown = f"{gap.value or 0:+,.{digits}f} ({gap.low or 0:+,.{digits}f} to {gap.high or 0:+,.{digits}f})"
    return (
        f"  {beside.measure}: {beside.before:,.{digits}f} -> {beside.after:,.{digits}f}, difference {shown}, "
        f"{beside.cases} cases"
    )


def _listed(flips: Sequence[Flip], most: int = 12) -> str:
    if not flips:
        return ""
    shown = ", ".join(str(flip.scenario_id) for flip in flips[:most])
    return f" (scenarios {shown}{', ...' if len(flips) > most else ''})"


def _percent(estimate: Estimate) -> str:
    if estimate.value is None:
        return "unknown"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:+.1%}"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"
