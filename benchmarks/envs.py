"""Environments: rollouts a second in 1 and 2 processes, CPU a rollout, and the memory of 1,000 environments.

python benchmarks/envs.py                   OpenOSCE and a solvable world, 150 rollouts each; 3 minutes
python benchmarks/envs.py --rollouts 50     a quick look

A rollout is one encounter from `reset` to `get_reward`: in OpenOSCE nine labeled questions, each asked for the first
time in its process, five orders and a diagnosis; in the world, everything on its menu. The baseline, in the same run,
is `agentclinic run` with the builtin doctor on the same data set, after its start.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.api import evaluate
from agentclinic.envs import ClinicEnv
from agentclinic.envs.episode import open_clinic
from agentclinic.vocabulary.base import knowledge

LABELS = ROOT / "benchmarks" / "labels"
DATASETS = ("OpenOSCE", "Solvable:chest-pain")
ENVIRONMENTS = 1_000
QUESTIONS, ORDERS = 9, 5
"""As many turns as the builtin doctor takes in OpenOSCE: 15.8 with its diagnosis."""


def lines_of(dataset: str, seed: int) -> list[tuple[str, str]]:
    """The tools called in one rollout, and their words."""
    chance = random.Random(seed)
    menu = open_clinic(dataset).plan.cases[0].door.menu
    if menu:
        tools = [("ask_patient" if one.by == "question" else "order_test", name) for name, one in menu.findings.items()]
        chance.shuffle(tools)
        return [*tools, ("diagnose", chance.choice(list(menu.diseases)))]
    tests = sorted(test.name for test in knowledge().tests.values())
    asked = [questions()[number % len(questions())] for number in range(seed * QUESTIONS, (seed + 1) * QUESTIONS)]
    tools = [("ask_patient", words) for words in asked]
    tools += [("order_test", name) for name in chance.sample(tests, ORDERS)]
    chance.shuffle(tools)
    return [*tools, ("diagnose", chance.choice(sorted(one.name for one in knowledge().diseases.values())))]


@cache
def questions() -> list[str]:
    """The labeled questions, in random order."""
    paths = sorted(LABELS.glob("questions*.jsonl"))
    rows = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    found = sorted({row["question"] for row in rows if isinstance(row.get("question"), str)})
    random.Random(0).shuffle(found)
    return found


def rollout(env: ClinicEnv, dataset: str, seed: int) -> float:
    env.reset(seed=seed)
    for tool, words in lines_of(dataset, seed):
        getattr(env, tool)(words)
    return env.get_reward()


def measure(dataset: str, count: int, first: int) -> dict[str, float]:
    """Seconds of the clock and of the CPU for rollouts in this process, after one that loads the tables."""
    env = ClinicEnv(dataset)
    rollout(env, dataset, first + count)
    clock, cpu = time.perf_counter(), time.process_time()
    for seed in range(first, first + count):
        rollout(env, dataset, seed)
    return {"seconds": time.perf_counter() - clock, "cpu": time.process_time() - cpu}


def side_by_side(dataset: str, count: int, processes: int) -> tuple[float, float]:
    """Rollouts a second of so many processes together, and CPU milliseconds of a rollout."""
    command = [sys.executable, __file__, "--rollouts", str(count), "--one", dataset]
    children = [
        subprocess.Popen([*command, str(number * count)], stdout=subprocess.PIPE, text=True)
        for number in range(processes)
    ]
    results: list[dict[str, float]] = [json.loads(child.communicate()[0]) for child in children]
    return sum(count / one["seconds"] for one in results), 1000 * sum(one["cpu"] for one in results) / count / processes


def baseline(dataset: str, count: int) -> tuple[float, float, float]:
    """Encounters a second of a run with the builtin doctor, its CPU milliseconds, and turns of an encounter."""
    with tempfile.TemporaryDirectory() as folder:
        run: dict[str, Any] = {"output_dir": folder, "progress": False}
        evaluate("plain", dataset, num_scenarios=1, **run)
        clock, cpu = time.perf_counter(), time.process_time()
        records = evaluate("plain", dataset, num_scenarios=count, **run).records
        clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    played = len(records)
    return played / clock, 1000 * cpu / played, sum(one.num_turns or 0 for one in records) / played


def memory(dataset: str, count: int = ENVIRONMENTS) -> tuple[float, float]:
    """Resident MB of this process with one environment, and with so many, all in the middle of an episode."""
    rollout(ClinicEnv(dataset), dataset, 0)
    before = _resident()
    every = [ClinicEnv(dataset) for _ in range(count)]
    for seed, env in enumerate(every):
        env.reset(seed=seed)
        for tool, words in lines_of(dataset, seed % 20)[:6]:  # few, so that no cache grows
            getattr(env, tool)(words)
    return before, _resident()


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=150)
    parser.add_argument("--environments", type=int, default=ENVIRONMENTS)
    parser.add_argument("--one", nargs=2, metavar=("DATASET", "FIRST"), help="measure in this process, for the others")
    parser.add_argument("--memory", metavar="DATASET", help="measure only the memory, in this process")
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(measure(given.one[0], given.rollouts, int(given.one[1]))))
        return
    if given.memory:
        before, after = memory(given.memory, given.environments)
        kilobytes = 1000 * (after - before) / given.environments
        print(
            f"{given.memory}: {before:.0f} MB with one environment, {after:.0f} MB with {given.environments:,} more in "
            f"the middle of an episode: {kilobytes:.0f} KB each"
        )
        return
    print("| data set | processes | rollouts/s | CPU ms/rollout | turns | run: encounters/s | CPU ms | turns | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for dataset in DATASETS:
        turns = len(lines_of(dataset, 0))
        speed, cpu, run_turns = baseline(dataset, given.rollouts)
        for processes in (1, 2):
            rate, each = side_by_side(dataset, given.rollouts, processes)
            print(
                f"| {dataset} | {processes} | {rate:.1f} | {each:.1f} | {turns} | {speed:.1f} | {cpu:.1f} | "
                f"{run_turns:.1f} | {cpu / each:.2f} |",
                flush=True,
            )
    print("(ratio: CPU of an encounter in a run ÷ CPU of a rollout)")
    for dataset in DATASETS:
        command = [sys.executable, __file__, "--memory", dataset, "--environments", str(given.environments)]
        print(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
