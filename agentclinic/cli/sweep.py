"""`agentclinic sweep`: play a matrix of runs, then compare them."""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import end_incomplete, end_without_result, finish, print_json, progress, show_arms

if TYPE_CHECKING:
    from agentclinic.runs.plan import Plan
    from agentclinic.runs.sweep import Arm, SweepFile
    from agentclinic.scoring.compare import Comparison, ComparisonReport


@opt.with_settings(*opt.ENGINE, "check")
def sweep_command(
    file: Annotated[
        Path, typer.Argument(help="Sweep file with a name, run (shared settings) and matrix (varied settings).")
    ],
    *,
    read: opt.Read,
    dry_run: opt.DryRun = False,
    full: opt.Full = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Run and compare all combinations of some settings.

    Each combination of the settings in the matrix is an arm, and every arm is compared with the baseline; --full adds
    the effect of each value, all else being equal. If the sweep stops early, the same command continues it. Limits on
    tokens and cost are for all arms together.
    """
    from agentclinic.cli.compare import comparison_lines
    from agentclinic.results.run_folder import ARMS, SWEEP, write_json
    from agentclinic.runs.estimate import estimate_run
    from agentclinic.runs.execute import units_left
    from agentclinic.runs.sweep import make_all_ready, plan_arms, play_arms, read_sweep
    from agentclinic.scoring.outcome import nothing_judged

    base = read()
    sweep, arms = read_sweep(file, base)
    plans = plan_arms(arms)
    if dry_run:
        for number, arm in enumerate(arms, start=1):
            sys.stderr.write(f"arm {number} of {len(arms)}: {arm.label}\n")
        left = {
            arm.label: estimate_run(plan, units_left(plan, arm.folder)) for arm, plan in zip(arms, plans, strict=True)
        }
        show_arms(left, as_json=json)
        return
    plans = finish(make_all_ready, arms, plans, progress(quiet=quiet))
    root = arms[0].folder.parent.parent
    root.mkdir(parents=True, exist_ok=True)
    write_json(root / SWEEP, {"name": sweep.name, "baseline": arms[0].label, ARMS: [arm.folder.name for arm in arms]})
    numbers = iter(range(1, len(arms) + 1))

    def announce(arm: Arm, _: Plan) -> None:
        sys.stderr.write(f"arm {next(numbers)} of {len(arms)}: {arm.label}\n")

    played = finish(play_arms, arms, plans, announce, partial(progress, quiet=quiet))
    last = played[-1]
    if last.missing:
        end_incomplete(
            f"stopped ({last.reason}): scenarios of this arm not played: {last.missing}; "
            "run the same command again to continue",
            interrupted=last.interrupted,
        )
    empty = [arm.label for arm, finished in zip(arms, played, strict=True) if nothing_judged(finished.summary)]
    report, against_baseline = _compare(sweep, arms, seed=base.run.seed)
    found = report.model_dump(mode="json")
    found["against_baseline"] = [comparison.model_dump(mode="json") for comparison in against_baseline]
    write_json(root / "comparison.json", found)
    if json:
        print_json(found)
    else:
        print("\n".join(comparison_lines(report, against_baseline, full=full)))
    sys.stderr.write(
        f"Written to {root / 'comparison.json'}; report on the runs with: agentclinic report {quote(str(root))}\n"
    )
    if empty:
        end_without_result(f"nothing could be judged in {len(empty)} of {len(arms)} arms: {'; '.join(empty)}")


def _compare(sweep: SweepFile, arms: list[Arm], *, seed: int) -> tuple[ComparisonReport, list[Comparison]]:
    """The effect of each setting, all else being equal, and every arm against the baseline, whatever differs.

    p-values are adjusted within each of these.
    """
    from agentclinic.results.run_data import load_run
    from agentclinic.runs.sweep import effects
    from agentclinic.scoring.compare import (
        ComparisonReport,
        accuracies,
        adjusted,
        compare_two,
        compared_runs,
        labels_of,
        load_arm,
    )

    loaded = {arm.label: load_arm(load_run(arm.folder), arm.label) for arm in arms}
    baseline, *others = loaded.values()
    by_factor: dict[str, list[Comparison]] = defaultdict(list)
    for factor, reference, arm in effects(sweep, arms):
        compared = compare_two(loaded[reference.label], loaded[arm.label], seed=seed, varied=(factor,))
        by_factor[factor].append(compared)
    report = ComparisonReport(
        runs=compared_runs([baseline, *others], labels_of([baseline, *others])),
        accuracies=[accuracy for one in loaded.values() for accuracy in accuracies(one)],
        comparisons=[comparison for compared in by_factor.values() for comparison in adjusted(compared)],
    )
    return report, adjusted([compare_two(baseline, other, seed=seed, varied=sweep.matrix) for other in others])
