"""`agentclinic run`: the run with its progress, and the table at the end."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import anyio
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agentclinic.config import ROLES, Settings
from agentclinic.results.outcome import MISSING
from agentclinic.runs.execute import Finished, execute
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.progress import progress_for
from agentclinic.runs.regrade import regrade
from agentclinic.runs.resume import resume
from agentclinic.scoring.estimates import Proportion
from agentclinic.scoring.outcome import Summary

_OUTCOMES = {
    "diagnosed_right": "diagnosed, judged right",
    "diagnosed_wrong": "diagnosed, judged wrong",
    "max_infs_reached": "no diagnosis within the turns",
    "doctor_failed": "doctor failed (counts as wrong)",
    "model_failed": "model failed (missing, not wrong)",
    "judge_failed": "judge failed (missing, not wrong)",
}


def run_command(settings: Settings, *, quiet: bool, as_json: bool, report: bool = False) -> None:
    """Run, then print the result; with `report`, write one and say where."""
    plan = make_plan(settings)
    _show(plan, anyio.run(execute, plan, progress_for(quiet=quiet, stream=sys.stderr)), as_json=as_json, report=report)


def resume_command(
    plan: Plan, folder: Path, *, retry_failed: bool, quiet: bool, as_json: bool, report: bool = False
) -> None:
    """Play what is missing in a run, then print the result of the whole."""
    again = partial(resume, plan, folder, progress_for(quiet=quiet, stream=sys.stderr), retry_failed=retry_failed)
    _show(plan, anyio.run(again), as_json=as_json, report=report)


def _show(plan: Plan, finished: Finished, *, as_json: bool, report: bool) -> None:
    if as_json:
        result = {"run": str(finished.folder), "missing": finished.missing, "stopped": finished.reason}
        print(json.dumps({**result, **finished.summary.model_dump(mode="json")}, indent=2))
    else:
        show_result(plan, finished, Console())
    if finished.missing:
        why = f" ({finished.reason})" if finished.reason else ""
        sys.stderr.write(
            f"{finished.missing} of {len(plan.units)} scenarios were not played{why}; go on with:\n"
            f"  agentclinic resume {finished.folder}\n"
        )
        raise SystemExit(130 if finished.interrupted else 3)
    failed = sum(finished.summary.outcomes.get(status, 0) for status in MISSING)
    if failed:
        sys.stderr.write(
            f"{failed} scenarios failed without a verdict; once the cause is mended, play them again with:\n"
            f"  agentclinic resume {finished.folder} --retry-failed\n"
        )
    if report:
        from agentclinic.report.files import write_report

        # On standard error where standard output is JSON for another program.
        print(f"Report written to {write_report([finished.folder])}", file=sys.stderr if as_json else sys.stdout)


def regrade_command(folder: Path, settings: Settings, name: str | None, *, resynthesize: bool, as_json: bool) -> None:
    """Judge a run again and say what changed."""
    regraded = anyio.run(partial(regrade, folder, settings, name, resynthesize=resynthesize))
    if as_json:
        changed = [{"scenario_id": s, "was": was, "is": now} for s, was, now in regraded.changed]
        result = {
            "path": str(regraded.path),
            "judged": regraded.judged,
            "failed": regraded.failed,
            "not_tried": regraded.not_tried,
            "changed": changed,
            "new_diagnoses": regraded.new_diagnoses,
        }
        print(json.dumps(result, indent=2))
    else:
        print(f"{regraded.judged} diagnoses judged by {settings.run.moderator_llm}, {regraded.failed} failed")
        for scenario, was, now in regraded.changed:
            before = {True: "right", False: "wrong", None: "not judged"}[was]
            print(f"  scenario {scenario}: was {before}, is {'right' if now else 'wrong'}")
        if regraded.new_diagnoses is not None:
            print(f"{regraded.new_diagnoses} diagnoses differ from the recorded ones")
        print(f"written to {regraded.path}; score it with: agentclinic score {folder} --judge {regraded.path.stem}")
    if regraded.failed:
        left = f", {regraded.not_tried} not tried" if regraded.not_tried else ""
        sys.stderr.write(
            f"{regraded.failed} failed{left}: {regraded.reason}\nrun the same command again to judge the rest\n"
        )
        raise SystemExit(3)


def show_result(plan: Plan, finished: Finished, console: Console) -> None:
    """The final table: what was evaluated, what came out, what to do next."""
    run, summary = plan.settings.run, finished.summary
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    played = f"{len(plan.cases)} of {plan.dataset}" + (f", {run.repeats} times each" if run.repeats > 1 else "")
    table.add_row("scenarios", escape(played))
    table.add_row("roles", escape(", ".join(f"{role} {getattr(run, f'{role}_llm')}" for role in ROLES)))
    if run.doctor != "plain":
        table.add_row("doctor", escape(run.doctor))
    if run.doctor_test_policy_enabled:
        table.add_row(
            "test policy", escape(f"{run.doctor_test_policy}, planning on {run.planner_baseline} information")
        )
    table.add_row("accuracy (strict)", _shown(summary.accuracy_strict))
    if summary.accuracy_lenient:
        table.add_row("accuracy (lenient)", _shown(summary.accuracy_lenient))
    if summary.if_missing_wrong != summary.if_missing_right:
        low, high = summary.if_missing_wrong or 0.0, summary.if_missing_right or 0.0
        table.add_row("if missing were known", f"between {low:.1%} (all wrong) and {high:.1%} (all right)")
    for name, count in summary.outcomes.items():
        table.add_row(_OUTCOMES.get(name, name), str(count))
    for fault, count in summary.faults.items():
        table.add_row(f"  {fault}", escape(f"{count}, e.g. {summary.fault_examples.get(fault) or 'without a word'}"))
    if summary.mean_turns is not None:
        table.add_row("turns per encounter", f"{summary.mean_turns:.1f}")
    tokens = _tokens(summary)
    if tokens:
        table.add_row("tokens", tokens)
    money = _money(summary)
    if tokens and money:
        table.add_row("cost", money)
    table.add_row("time", f"{finished.seconds:.1f} s")
    console.print(table)
    # Outside the table, where nothing folds it: a path is there to be copied.
    console.print(f"Written to {finished.folder}", markup=False, highlight=False, soft_wrap=True)
    if run.doctor_llm == "builtin" and run.doctor == "plain":
        console.print(
            "The builtin doctor is a small Bayesian program, not a language model. To test a model of your own:\n"
            "  export OPENAI_API_KEY=...   (or set base_url in llm.config.json for a local server)\n"
            "  agentclinic run --doctor_llm MODEL",
            highlight=False,
            soft_wrap=True,
        )
    console.print("A research benchmark, not medical advice.", style="dim")


def _shown(share: Proportion | None) -> str:
    if share is None or share.value is None:
        return "nothing to judge"
    return f"{share.value:.1%}  (95 % interval {share.low:.1%} to {share.high:.1%}; {share.count} of {share.of})"


def _tokens(summary: Summary) -> str:
    used = {role: (u.get("input_tokens"), u.get("output_tokens")) for role, u in summary.usage.items()}
    if all(pair == (0, 0) for pair in used.values()):
        return ""
    shown = []
    for role, (sent, received) in used.items():
        shown.append(
            f"{role} unknown" if sent is None or received is None else f"{role} {sent:,} in / {received:,} out"
        )
    return ", ".join(shown)


def _money(summary: Summary) -> str:
    shown = [
        f"{role} {'unknown' if usd is None else f'${usd:.4f}'}" for role, usd in summary.cost_usd.items() if usd != 0
    ]
    return ", ".join(shown)
