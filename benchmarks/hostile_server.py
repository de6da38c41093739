"""Peak memory of a run at a server that sends far too much, against the same run with ordinary replies.

`python benchmarks/hostile_server.py` plays one demo case at the scripted server, each time in a process of its own.
The doctor's replies are ordinary, one or ten megabytes long, a packed body that unpacks to a gigabyte, or a body that
never ends. Printed are peak memory, seconds and how the encounter ended. A request is tried twice.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

RULES: dict[str, dict[str, Any] | None] = {
    "ordinary": None,
    "1 MB": {"reply": "x" * 10**6},
    "10 MB": {"reply": "x" * 10**7},
    "packed": {"fault": "bomb", "megabytes": 1024},
    "endless": {"fault": "endless"},
}


def play(base_url: str, output: str) -> None:
    """In the child: play one case and print peak memory, seconds and the outcome as JSON."""
    import anyio

    from agentclinic.config import Settings
    from agentclinic.results.journal import read_records
    from agentclinic.runs.execute import execute
    from agentclinic.runs.plan import make_plan
    from agentclinic.runs.progress import Progress

    run = {"doctor_llm": "scripted", "num_scenarios": 1, "total_inferences": 3, "output_dir": output}
    runtime = {"tries": 2, "timeout": 0, "request_timeout": 30}
    data = {"run": run, "openai": {"base_url": base_url}, "llm": {"runtime": runtime}}
    began = time.perf_counter()
    finished = anyio.run(execute, make_plan(Settings.model_validate(data)), Progress())
    (record,) = read_records(finished.folder / "scenarios.jsonl")
    fault = f": {record.fault.message}" if record.fault else ""
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
    print(json.dumps({"peak": peak, "seconds": time.perf_counter() - began, "outcome": f"{record.status}{fault}"}))


def main() -> None:
    """Play once for each kind of reply and print a table."""
    from scripted_server import ScriptedServer

    print(f"{'reply':10}{'peak MB':>9}{'ratio':>7}{'seconds':>9}  outcome")
    base = 0.0
    for name, rule in RULES.items():
        with ScriptedServer() as server, tempfile.TemporaryDirectory() as output:
            server.control(rules=[{"match": {"purpose": "doctor"}, **rule}] if rule else [])
            child = [sys.executable, __file__, "--child", server.base_url, output]
            done = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)
        base = base or done["peak"]
        ratio = done["peak"] / base
        print(f"{name:10}{done['peak']:9.0f}{ratio:7.2f}{done['seconds']:9.1f}  {done['outcome']}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--child", nargs=2, metavar=("BASE_URL", "OUTPUT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        play(*given.child)
    else:
        main()
