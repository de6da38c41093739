"""How large the package is, and how long it takes to load its cases and answer a first question.

python benchmarks/size.py                    this checkout
python benchmarks/size.py --checkout DIR     beside another checkout, with the ratio of the two
python benchmarks/size.py --runs 9           the best of more repeats

The wheel is built by pip, which needs hatchling from the package index. Times are CPU times in fresh processes, the
best of several repeats in which the checkouts take turns; modules are compiled before. The first question is the first
turn of a builtin doctor on the first case: with it, tables are read that later turns use again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATASET = "OpenOSCE"
Figures = dict[str, float]


def sizes(checkout: Path) -> Figures:
    """The built wheel of a checkout and what it unpacks to, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*build, "--wheel-dir", folder, str(checkout)], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        return {"wheel, MB": wheel.stat().st_size / 1e6, "unpacked, MB": unpacked / 1e6}


def measured_here() -> Figures:
    """CPU seconds in this process: start and imports, loading all cases, and the first question."""
    import anyio

    from agentclinic.cases.registry import load_cases
    from agentclinic.config import RunSettings, Settings
    from agentclinic.runs.build import Models
    from agentclinic.runs.plan import make_plan
    from agentclinic.runs.play import play

    async def played() -> None:
        async with Models(plan.settings) as models:
            await play(plan, plan.units[0], models)

    start = time.process_time()
    load_cases(DATASET)
    load = time.process_time() - start
    # Two turns: a question, and the diagnosis that ends every encounter.
    plan = make_plan(Settings(run=RunSettings(dataset=DATASET, num_scenarios=1, total_inferences=2, seed=1)))
    planned = time.process_time()
    anyio.run(played)
    question = time.process_time() - planned
    return {
        "start, s": start,
        "load all cases, s": load,
        "first question, s": question,
        "all three, s": start + load + question,
    }


def measured(checkout: Path) -> Figures:
    """The times with the package of a checkout."""
    env = {**os.environ, "PYTHONPATH": str(checkout)}
    with tempfile.TemporaryDirectory() as folder:
        child = [sys.executable, str(Path(__file__).resolve()), "--measure"]
        done = subprocess.run(child, env=env, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def times(checkouts: Sequence[Path], runs: int) -> list[Figures]:
    """The best times of each checkout; the first round only compiles."""
    rounds = [[measured(checkout) for checkout in checkouts] for _ in range(runs + 1)][1:]
    return [{name: min(one[at][name] for one in rounds) for name in rounds[0][at]} for at in range(len(checkouts))]


def main() -> None:
    """Print a line per figure: before, now, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, help="another checkout, measured as 'before'")
    parser.add_argument("--runs", type=int, default=5, help="repeats, of which the best counts")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured_here()))
        return
    if given.checkout and not (given.checkout / "agentclinic" / "__init__.py").is_file():
        parser.error(f"{given.checkout}: no package agentclinic there; name the root of a checkout")
    checkouts = [*([given.checkout.resolve()] if given.checkout else []), ROOT]
    print(f"{'':24}{'before':>10}{'now':>10}{'ratio':>8}" if given.checkout else f"{'':24}{'now':>10}")
    found = [size | best for size, best in zip(map(sizes, checkouts), times(checkouts, given.runs), strict=True)]
    for name in found[-1]:
        values = [one[name] for one in found]
        ratio = f"{values[1] / values[0]:>8.2f}" if len(values) > 1 else ""
        print(f"{name:24}" + "".join(f"{value:>10.2f}" for value in values) + ratio)


if __name__ == "__main__":
    main()
