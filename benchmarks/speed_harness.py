"""How much time and CPU a whole `agentclinic run` adds to what its models take.

`SECTIONS` are parts of `speed.py`, which runs each of them for two checkouts. `python benchmarks/speed_harness.py
"1 s"` runs the sections whose names contain these words, for the checkout that PYTHONPATH names (else this one).

The scripted server plays every role and takes the given latency ± 20% for each reply. *Efficiency* is what the replies
of an encounter take, by the mean latency, ÷ what the encounter took by its record, means over all encounters. All
encounters of the first wave start at once, and their cases are new. *CPU* is that of the run's process from its first
request (builtin: its first encounter) to the end of the last encounter. *CPU before the first request* is measured
with modules that are compiled already, as those of an installed package are.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "support")]

from harness import raise_file_limit
from scale import CASES, ROLES, process
from scripted_server import ScriptedServer

JITTER = 0.2
LOOK = 0.02
"""Seconds between two looks at the run's CPU time."""
STARTS = 5
"""Runs whose median is the CPU time before the first request; one more before them compiles the modules."""


def run(workers: int, encounters: int, simulator: str, server: ScriptedServer, compiled: str) -> dict[str, float]:
    """Run the command, look at it while it runs, and read its records."""
    raise_file_limit()
    moments: list[tuple[float, float]] = []
    first: tuple[float, float] | None = None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment |= {"PYTHONPYCACHEPREFIX": compiled, "PYTHONPATH": os.environ.get("PYTHONPATH") or str(ROOT)}
    with tempfile.TemporaryDirectory() as home:
        cases = min(CASES, encounters)
        command = [sys.executable, "-m", "agentclinic", "run", "--dataset", "OpenOSCE", "--quiet"]
        command += ["--limit", str(cases), "--repeats", str(math.ceil(encounters / cases))]
        command += ["--workers", str(workers), "--output-dir", home]
        if simulator != "builtin":
            command += [word for role in ROLES for word in (f"--{role}-llm", "scripted")] + ["--simulator", simulator]
            environment |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        child = subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.DEVNULL)
        while child.poll() is None:
            found = process(child.pid)
            if found:
                moments.append((time.time(), found.cpu))
                if simulator != "builtin" and first is None and server.counts()["received"]:
                    first = moments[-1]
            time.sleep(LOOK)
        if child.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
        (journal,) = Path(home).glob("*/scenarios.jsonl")
        records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    return figures(records, moments, first)


def figures(
    records: list[dict[str, Any]], moments: list[tuple[float, float]], first: tuple[float, float] | None
) -> dict[str, float]:
    """What the records and the looks say; `first` is the look at which the first request had come."""
    began = [datetime.fromisoformat(record["timing"]["started_at"]).timestamp() for record in records]
    seconds = [record["timing"]["seconds"] for record in records]
    end = max(start + took for start, took in zip(began, seconds, strict=True))
    _, before = first or next(look for look in reversed(moments) if look[0] <= min(began))
    used = next(cpu for moment, cpu in reversed(moments) if moment <= end) - before
    requests = sum(role["requests"] or 0 for record in records for role in record["usage"].values())
    return {
        "failed": sum(record["status"] != "diagnosed" for record in records),
        "replies": requests / len(records),
        "seconds": statistics.fmean(seconds),
        "before": before,
        "ms an encounter": 1000 * used / len(records),
        "ms a request": 1000 * used / max(1, requests),
    }


def harness(simulator: str, workers: int = 64, latency: float = 1.0, encounters: int = CASES) -> dict[str, float]:
    """One run with many encounters at once."""
    with ScriptedServer() as server, tempfile.TemporaryDirectory() as compiled:
        server.control(latency=latency, jitter=JITTER, keep_log=False)
        found = run(workers, encounters, simulator, server, compiled)
    if simulator == "builtin":
        return {"CPU ms an encounter": found["ms an encounter"], "failed": found["failed"]}
    return {
        "efficiency": latency * found["replies"] / found["seconds"],
        "CPU ms a request": found["ms a request"],
        "replies an encounter": found["replies"],
        "failed": found["failed"],
    }


def first_request() -> dict[str, float]:
    """CPU seconds from the start of the command until the server receives the first request of an encounter."""
    with ScriptedServer() as server, tempfile.TemporaryDirectory() as compiled:
        seconds = []
        for _ in range(STARTS + 1):
            server.reset()
            server.control(doctor_turns=1, keep_log=False)
            seconds.append(run(1, 1, "voiced", server, compiled)["before"])
    return {"CPU s": statistics.median(seconds[1:])}


SIMULATORS = ("builtin", "voiced", "free")
SECTIONS: dict[str, Callable[[], dict[str, float]]] = {
    **{f"harness, 64 workers at 1 s: {name}": partial(harness, name) for name in SIMULATORS},
    **{f"harness, 1,000 workers at 10 s: {name}": partial(harness, name, 1000, 10.0, 1000) for name in SIMULATORS},
    "CPU before the first request": first_request,
}

if __name__ == "__main__":
    for title, section in SECTIONS.items():
        if all(word in title for word in sys.argv[1:]):
            print(f"{title}: {', '.join(f'{key} {value:.3f}' for key, value in section().items())}", flush=True)
