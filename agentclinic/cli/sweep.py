"""`agentclinic sweep`: play a matrix of runs, then compare them."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from shlex import quote

import anyio

from agentclinic.cli.compare import comparison_lines
from agentclinic.cli.estimate import show_arms
from agentclinic.cli.format import end_incomplete, end_without_result, print_json
from agentclinic.config import Settings
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import ARMS, SWEEP, write_json
from agentclinic.runs.estimate import estimate_run
from agentclinic.runs.execute import units_left
from agentclinic.runs.progress import progress_for
from agentclinic.runs.sweep import (
    Arm,
    SweepFile,
    effects,
    make_all_ready,
    plan_arms,
    play_arm,
    read_sweep,
    spent_elsewhere,
)
from agentclinic.scoring.compare import (
    Comparison,
    ComparisonReport,
    accuracies,
    adjusted,
    compare_two,
    compared_runs,
    labels_of,
    load_arm,
)
from agentclinic.scoring.outcome import nothing_judged


class SweepReport(ComparisonReport):
    """Everything `agentclinic sweep` finds out: `comparisons` has the effect of each setting, all else being equal."""

    against_baseline: list[Comparison]
    """Every other arm against the baseline, whatever differs."""


def sweep_command(path: Path, base: Settings, *, dry_run: bool, full: bool, quiet: bool, as_json: bool) -> None:
    """Play every arm, or continue an earlier sweep, and print the comparison. A dry run only estimates."""
    sweep, arms = read_sweep(path, base)
    plans = plan_arms(arms)
    if dry_run:
        for number, arm in enumerate(arms, start=1):
            sys.stderr.write(f"arm {number} of {len(arms)}: {arm.label}\n")
        left = {
            arm.label: estimate_run(plan, units_left(plan, arm.folder)) for arm, plan in zip(arms, plans, strict=True)
        }
        show_arms(left, as_json=as_json)
        return
    anyio.run(make_all_ready, arms, plans, progress_for(quiet=quiet, stream=sys.stderr))
    root = arms[0].folder.parent.parent
    root.mkdir(parents=True, exist_ok=True)
    write_json(root / SWEEP, {"name": sweep.name, "baseline": arms[0].label, ARMS: [arm.folder.name for arm in arms]})
    empty = []
    for number, (arm, plan) in enumerate(zip(arms, plans, strict=True), start=1):
        sys.stderr.write(f"arm {number} of {len(arms)}: {arm.label}\n")
        progress = progress_for(quiet=quiet, stream=sys.stderr)
        finished = anyio.run(play_arm, arm, plan, progress, spent_elsewhere(arm, arms, plans))
        if nothing_judged(finished.summary):
            empty.append(arm.label)
        if finished.missing:
            end_incomplete(
                f"stopped ({finished.reason}): {finished.missing} scenarios of this arm are missing; "
                "run the same command again to continue",
                interrupted=finished.interrupted,
            )
    report = _compare(sweep, arms, seed=base.run.seed)
    write_json(root / "comparison.json", report.model_dump(mode="json"))
    if as_json:
        print_json(report)
    else:
        print("\n".join(comparison_lines(report, report.against_baseline, full=full)))
    sys.stderr.write(
        f"Written to {root / 'comparison.json'}; report on the runs with: agentclinic report {quote(str(root))}\n"
    )
    if empty:
        end_without_result(f"nothing could be judged in {len(empty)} of {len(arms)} arms: {'; '.join(empty)}")


def _compare(sweep: SweepFile, arms: list[Arm], *, seed: int) -> SweepReport:
    """Every arm against the baseline, and each setting's effect; p-values are adjusted within each of these."""
    loaded = {arm.label: load_arm(load_run(arm.folder), arm.label) for arm in arms}
    baseline, *others = loaded.values()
    by_factor: dict[str, list[Comparison]] = defaultdict(list)
    for effect in effects(sweep, arms):
        compared = compare_two(
            loaded[effect.reference.label], loaded[effect.arm.label], seed=seed, varied=(effect.factor,)
        )
        by_factor[effect.factor].append(compared)
    return SweepReport(
        runs=compared_runs([baseline, *others], labels_of([baseline, *others])),
        accuracies=[accuracy for arm in loaded.values() for accuracy in accuracies(arm, seed=seed)],
        comparisons=[comparison for compared in by_factor.values() for comparison in adjusted(compared)],
        against_baseline=adjusted([compare_two(baseline, arm, seed=seed, varied=sweep.matrix) for arm in others]),
    )
