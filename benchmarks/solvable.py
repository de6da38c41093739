"""Solvable worlds: what the exact solution takes, how fast encounters are, and what doctors earn against the best play.

python benchmarks/solvable.py                the solver, encounters per second, the table with 500 cases of each world
python benchmarks/solvable.py --cases 100    a quicker table
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import anyio

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.cases.solvable import PREFIX, Spec
from agentclinic.config import Settings
from agentclinic.doctors.solvable import CHOICES
from agentclinic.doctors.uncertainty.store import SessionStore
from agentclinic.results.record import Record
from agentclinic.results.regret import KINDS
from agentclinic.runs.build import Models
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.play import play
from agentclinic.scoring.metrics import information, regret_section
from agentclinic.scoring.outcome import summarise
from agentclinic.scoring.rows import row_of
from agentclinic.scoring.stats import Estimate, Proportion
from agentclinic.worlds.model import Costs, Disease, Finding, Utilities, World, bundled, read_world
from agentclinic.worlds.solve import ABSENT, PRESENT, UNKNOWN, Solution, State, random_value, solution, solve

DISEASES = 12
SIZES = range(8, 13)
RECURSIVE = (8, 9)
"""Sizes for which the baseline takes seconds, not minutes."""

# --- the solver -------------------------------------------------------------------------------------------------------


def random_world(findings: int, seed: int = 0) -> World:
    """A world of 12 diseases with random numbers, in which asking pays."""
    draw = random.Random(f"{findings} {seed}")
    names = [f"disease {number}" for number in range(DISEASES)]
    weights = [draw.uniform(0.2, 1) for _ in names]
    table = {
        f"finding {number}": Finding(
            by="test",
            price=draw.uniform(0, 200),
            minutes=draw.uniform(0, 60),
            probability={name: draw.uniform(0.02, 0.98) for name in names},
        )
        for number in range(findings)
    }
    return World(
        name=f"random-{findings}",
        title="random",
        patient="A patient.",
        objective="Find out.",
        diseases={name: Disease(prior=w / sum(weights)) for name, w in zip(names, weights, strict=True)},
        findings=table,
        utilities=Utilities(right=100, wrong=-20, deferred=30, no_answer=-40),
        costs=Costs(dollar=0.02, minute=0.02, turn=0.5),
    )


class Solved(NamedTuple):
    seconds: float
    before_mb: float
    """Peak memory of the process before it solved: Python, numpy and this package."""
    peak_mb: float


def solved(findings: int) -> Solved:
    """Solve a random world in this process."""
    world, before = random_world(findings), _peak_mb()
    began = time.process_time()
    solve(world)
    return Solved(time.process_time() - began, before, _peak_mb())


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def by_recursion(world: World) -> dict[State, float]:
    """The baseline: values of all states by plain recursion with a dictionary."""
    rows = world.utility_rows
    costs = [world.cost(name) for name in world.findings]
    table = [[(one.probability or {})[name] for name in world.diseases] for one in world.findings.values()]
    values: dict[State, float] = {}

    def value(state: State, joint: list[float]) -> float:
        if state in values:
            return values[state]
        total = sum(joint)
        best = max(sum(worth * p for worth, p in zip(row, joint, strict=True)) for row in rows) / total
        for column, known in enumerate(state):
            if known == UNKNOWN:
                yes = [p * q for p, q in zip(joint, table[column], strict=True)]
                no = [p - q for p, q in zip(joint, yes, strict=True)]
                after = sum(
                    sum(part) * value((*state[:column], found, *state[column + 1 :]), part)
                    for found, part in ((PRESENT, yes), (ABSENT, no))
                )
                best = max(best, after / total - costs[column])
        values[state] = best
        return best

    value((UNKNOWN,) * len(costs), world.priors)
    return values


def largest_difference(solved: Solution, values: dict[State, float]) -> float:
    """The largest difference between two solutions, over all states."""
    states = product((UNKNOWN, PRESENT, ABSENT), repeat=len(solved.cost))
    return max(abs(solved.value(state) - values[state]) for state in states)


def solver() -> Iterator[str]:
    """The table of the solver, each row measured in a fresh process, beside the baseline."""
    yield f"## The solver: random worlds of {DISEASES} diseases\n"
    yield "| findings | states | CPU s | peak MB (before solving) | recursion, CPU s | ratio | largest difference |"
    yield "|---|---|---|---|---|---|---|"
    for findings in SIZES:
        fresh = [sys.executable, __file__, "--solve", str(findings)]
        found = Solved(*json.loads(subprocess.run(fresh, capture_output=True, check=True).stdout))
        beside = "| |"
        if findings in RECURSIVE:
            world, began = random_world(findings), time.process_time()
            values = by_recursion(world)
            seconds = time.process_time() - began
            apart = largest_difference(solve(world), values)
            beside = f"{seconds:.2f} | x {seconds / found.seconds:.0f} | {apart:.0e}"
        memory = f"{found.peak_mb:.0f} ({found.before_mb:.0f})"
        yield f"| {findings} | {3**findings:,} | {found.seconds:.3f} | {memory} | {beside} |"


# --- encounters -------------------------------------------------------------------------------------------------------


def plan_for(dataset: str, cases: int, **run: Any) -> Plan:
    """The plan of a run without a language model, with seed 0."""
    settings = {"dataset": dataset, "num_scenarios": cases, "seed": 0, **run}
    return make_plan(Settings.model_validate({"run": settings}))


async def encounters(plan: Plan) -> list[Record]:
    """Play a plan, one encounter after another."""
    with tempfile.TemporaryDirectory() as folder:
        async with Models(plan.settings) as models:
            return [await play(plan, unit, models, SessionStore(Path(folder))) for unit in plan.units]


def speed(cases: int) -> Iterator[str]:
    """Encounters per second of one core; the first run of each kind fills caches and does not count."""
    kinds = {
        "builtin `plain`, OpenOSCE (baseline)": plan_for("OpenOSCE", 64),
        "`optimal`, chest-pain": plan_for(f"{PREFIX}chest-pain", cases, doctor="optimal"),
        "builtin `plain`, chest-pain": plan_for(f"{PREFIX}chest-pain", cases),
    }
    rates: dict[str, float] = {}
    yield "\n## Encounters per second, one core (CPU time)\n"
    yield "| | encounters | per second | ratio |"
    yield "|---|---|---|---|"
    for name, plan in kinds.items():
        anyio.run(encounters, plan)
        began = time.process_time()
        anyio.run(encounters, plan)
        rates[name] = len(plan.units) / (time.process_time() - began)
        ratio = rates[name] / next(iter(rates.values()))
        yield f"| {name} | {len(plan.units)} | {rates[name]:.0f} | x {ratio:.1f} |"


# --- the table --------------------------------------------------------------------------------------------------------

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: ("", {"doctor": name}) for name in CHOICES},
    "builtin, plain": ("", {}),
    "builtin, plain, table hidden": (",hidden", {}),
    "builtin, uncertainty": ("", {"doctor": "uncertainty"}),
    "builtin, test policy": ("", {"doctor_test_policy_enabled": True}),
}
"""The rows: how the world is shown, and the settings of the run."""
COLUMNS = ("utility", "regret", *KINDS.values(), "turns", "price, $", "right")


def row(records: Sequence[Record]) -> list[str]:
    """What one doctor earned in one world."""
    rows = [row_of(record) for record in records]
    found = regret_section(rows)
    kinds = [_short(found.value(f"regret_{kind}"), 1, interval=False) for kind in KINDS]
    return [
        _short(found.utility),
        _short(found.regret),
        *kinds,
        _short(information(rows).turns),
        _short(found.value("world_price"), 0),
        _short(summarise(records).accuracy_strict, 0, scale=100, unit="%"),
    ]


def _short(
    value: Estimate | Proportion | None, digits: int = 1, *, scale: int = 1, unit: str = "", interval: bool = True
) -> str:
    """A number with half the width of its 95% interval."""
    if value is None or value.value is None:
        return "-"
    shown = f"{scale * value.value:.{digits}f}{unit}"
    if not interval or value.low is None or value.high is None:
        return shown
    return f"{shown} ± {scale * (value.high - value.low) / 2:.{digits}f}"


def table(cases: int) -> Iterator[str]:
    """The worlds and the doctors."""
    yield f"\n## Worlds and doctors: {cases} cases each, seed 0"
    yield "\nPoints per encounter, ± half of the 95% interval. The kinds of regret add up to the regret."
    for name in bundled():
        world = read_world(Spec(name, False, False).path)
        known = solution(world)
        once = max(known.ending(known.start).values())
        yield (
            f"\n### {name}\n\nThe best play is worth {known.value(known.start):.2f} points, the best answer at once "
            f"{once:.2f}, acting at random {random_value(world):.2f}.\n"
        )
        yield f"| doctor | {' | '.join(COLUMNS)} |"
        yield f"|---|{'---|' * len(COLUMNS)}"
        for arm, (marks, run) in ARMS.items():
            records = anyio.run(encounters, plan_for(f"{PREFIX}{name}{marks}", cases, **run))
            yield f"| {arm} | {' | '.join(row(records))} |"


def main(given: Sequence[str] | None = None) -> None:
    """Print everything as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500, help="cases of each world for each doctor (default: 500)")
    parser.add_argument("--solve", type=int, help=argparse.SUPPRESS)  # one row of the solver's table
    options = parser.parse_args(given)
    if options.solve:
        print(json.dumps(solved(options.solve)))
        return
    for part in (solver(), speed(min(options.cases, 200)), table(options.cases)):
        for line in part:
            print(line, flush=True)


if __name__ == "__main__":
    main()
