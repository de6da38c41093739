"""`agentclinic run`: the run with its progress, and the table at the end."""

from __future__ import annotations

import json
import sys

import anyio
from rich import box
from rich.console import Console
from rich.table import Table

from agentclinic.config import ROLES, Settings
from agentclinic.runs.engine import Finished, execute
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.progress import observer_for
from agentclinic.scoring.outcome import Proportion, Summary

_OUTCOMES = {
    "diagnosed_right": "diagnosed, judged right",
    "diagnosed_wrong": "diagnosed, judged wrong",
    "max_infs_reached": "no diagnosis within the turns",
    "doctor_failed": "doctor failed (counts as wrong)",
    "model_failed": "model failed (missing, not wrong)",
    "judge_failed": "judge failed (missing, not wrong)",
}


def run_and_show(settings: Settings, *, quiet: bool, as_json: bool) -> None:
    """Run, then print the result."""
    plan = make_plan(settings)
    finished = anyio.run(execute, plan, observer_for(quiet=quiet, stream=sys.stderr))
    if as_json:
        print(json.dumps({"run": str(finished.folder), **finished.summary.model_dump(mode="json")}, indent=2))
    else:
        show_result(plan, finished, Console())


def show_result(plan: Plan, finished: Finished, console: Console) -> None:
    """The final table: what was evaluated, what came out, what to do next."""
    run, summary = plan.settings.run, finished.summary
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    played = f"{len(plan.cases)} of {plan.dataset}" + (f", {run.repeats} times each" if run.repeats > 1 else "")
    table.add_row("scenarios", played)
    table.add_row("roles", ", ".join(f"{role} {getattr(run, f'{role}_llm')}" for role in ROLES))
    table.add_row("accuracy (strict)", _shown(summary.accuracy_strict))
    if summary.accuracy_lenient:
        table.add_row("accuracy (lenient)", _shown(summary.accuracy_lenient))
    if summary.if_missing_wrong != summary.if_missing_right:
        low, high = summary.if_missing_wrong or 0.0, summary.if_missing_right or 0.0
        table.add_row("if missing were known", f"between {low:.1%} (all wrong) and {high:.1%} (all right)")
    for name, count in summary.outcomes.items():
        table.add_row(_OUTCOMES.get(name, name), str(count))
    for fault, count in summary.faults.items():
        table.add_row(f"  {fault}", str(count))
    if summary.mean_turns is not None:
        table.add_row("turns per encounter", f"{summary.mean_turns:.1f}")
    tokens = _tokens(summary)
    if tokens:
        table.add_row("tokens", tokens)
    table.add_row("time", f"{finished.seconds:.1f} s")
    table.add_row("written to", str(finished.folder))
    console.print(table)
    if run.doctor_llm == "builtin":
        console.print(
            "The builtin doctor is a small Bayesian program, not a language model. To test a model of your own:\n"
            "  export OPENAI_API_KEY=...   (or set base_url in llm.config.json for a local server)\n"
            "  agentclinic run --doctor_llm MODEL",
            highlight=False,
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
