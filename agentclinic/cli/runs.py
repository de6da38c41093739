"""`agentclinic runs`: the list of runs."""

from __future__ import annotations

from pathlib import Path

from agentclinic.cli.format import print_json
from agentclinic.config import suggestion
from agentclinic.errors import InputError
from agentclinic.report.runs import ListedRun, list_runs
from agentclinic.report.tables import text_table
from agentclinic.runs.budget import money
from agentclinic.scoring.format import interval, percent

STATES = ("complete", "incomplete", "running", "unreadable")


def runs_command(
    folder: Path,
    *,
    dataset: str | None,
    doctor: str | None,
    model: str | None,
    state: str | None,
    limit: int | None = None,
    as_json: bool,
) -> None:
    """Print the runs that fit the filters: each is part of the column of that name, whatever its case."""
    if state is not None and state.lower() not in STATES:
        raise InputError(f"--state: {state!r} is not a state{suggestion(state, STATES)}")
    wanted = {"dataset": dataset, "doctor": doctor, "model": model, "state": state}
    found = [run for run in list_runs(folder) if all(_fits(getattr(run, key), part) for key, part in wanted.items())]
    if limit is not None:
        last = {run.path for run in sorted(found, key=lambda run: Path(run.path).stat().st_mtime_ns)[-limit:]}
        found = [run for run in found if run.path in last]
    if as_json:
        print_json([run.model_dump(mode="json") for run in found])
        return
    if not found:
        print(f"no run in {folder}{' matches' if any(wanted.values()) else ''}")
        return
    head = ("run", "cases", "right (95%)", "cost", "state", "doctor (model)")
    print("\n".join(text_table(head, map(_row, found))))
    for run in found:
        if run.problem:
            print(f"{run.name}: {run.problem}")


def _fits(value: str | None, part: str | None) -> bool:
    return part is None or part.lower() in (value or "").lower()


def _row(run: ListedRun) -> tuple[str, ...]:
    cases = str(run.encounters) if run.planned in (None, run.encounters) else f"{run.encounters} of {run.planned}"
    right = f"{percent(run.accuracy.value, 0)} ({interval(run.accuracy, 0)})" if run.accuracy else "-"
    # Builtin roles are free and use no tokens; a cost that is not known is not 0.
    cost = "unknown" if run.cost_usd is None else money(run.cost_usd)
    played = f"{run.doctor} ({run.model or 'unknown'})"
    if run.dataset and run.dataset not in run.name:  # most folders begin with their data set
        played += f" on {run.dataset}"
    if run.state == "unreadable":
        return run.name, "-", "-", "-", run.state, "-"
    return run.name, cases, right, cost, run.state, played
