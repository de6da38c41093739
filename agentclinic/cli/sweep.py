"""`agentclinic sweep`: play a matrix of runs, then compare them."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import anyio

from agentclinic.cli.compare import as_text
from agentclinic.config import Settings
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import write_json
from agentclinic.runs.progress import progress_for
from agentclinic.runs.sweep import Arm, SweepFile, admit, effects, play_arm, read_sweep
from agentclinic.scoring.compare import Comparison, ComparisonReport, accuracies, adjusted, compare_two, load_arm


def sweep_command(path: Path, base: Settings, *, dry_run: bool, quiet: bool, as_json: bool) -> None:
    """Play every arm (or go on where an earlier call stopped) and print the comparison."""
    sweep, arms = read_sweep(path, base)
    anyio.run(admit, arms)
    for number, arm in enumerate(arms, start=1):
        sys.stderr.write(f"arm {number} of {len(arms)}: {arm.label}\n")
        if dry_run:
            continue
        finished = anyio.run(play_arm, arm, progress_for(quiet=quiet, stream=sys.stderr))
        if finished.missing:
            sys.stderr.write(
                f"stopped ({finished.reason}): {finished.missing} scenarios of this arm are missing; "
                "the same command goes on from here\n"
            )
            raise SystemExit(130 if finished.interrupted else 3)
    if dry_run:
        return
    report = compare_sweep(sweep, arms, seed=base.run.seed)
    place = arms[0].folder.parent.parent / "comparison.json"
    write_json(place, report.model_dump(mode="json"))
    print(report.model_dump_json(indent=2) if as_json else as_text(report))
    sys.stderr.write(f"written to {place}\n")


def compare_sweep(sweep: SweepFile, arms: list[Arm], *, seed: int) -> ComparisonReport:
    """The effect of each factor, value by value, all else equal; p-values adjusted within a factor."""
    loaded = {arm.label: load_arm(load_run(arm.folder), arm.label) for arm in arms}
    by_factor: dict[str, list[Comparison]] = defaultdict(list)
    for effect in effects(sweep, arms):
        compared = compare_two(
            loaded[effect.reference.label], loaded[effect.arm.label], seed=seed, varied=effect.factor
        )
        by_factor[effect.factor].append(compared)
    return ComparisonReport(
        accuracies=[accuracy for arm in loaded.values() for accuracy in accuracies(arm, seed=seed)],
        comparisons=[comparison for compared in by_factor.values() for comparison in adjusted(compared)],
    )
