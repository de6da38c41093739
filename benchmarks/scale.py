"""The local engine and Ray on the same work: encounters per second, encounters in flight, time and memory.

python benchmarks/scale.py                     every part; half an hour on two idle cores
python benchmarks/scale.py --only latency      a server that takes 10 s for each reply: 1, 2 and 4 workers, and local
python benchmarks/scale.py --only flight       10,000 encounters at once
python benchmarks/scale.py --only growth       1,000 to 20,000 builtin encounters; with --full, up to 50,000
python benchmarks/scale.py --quick             every part with a few encounters, in a minute: does the program work?

Every run is an `agentclinic run` of its own, and Ray's workers are on this machine. CPU time and memory are read from
/proc once a second, so this needs Linux. benchmarks/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from scripted_server import ScriptedServer

CASES = 64
"""Cases in OpenOSCE without its lockbox; every run plays as many of them as it has encounters, repeated."""
ROLES = ("doctor", "patient", "measurement", "moderator")
JITTER = 0.2
"""Share by which a reply's latency varies. Without it, all encounters would send their requests at the same moment."""
AIM = 0.85
TICK = os.sysconf("SC_CLK_TCK")


class Size(NamedTuple):
    """How much work each part does."""

    workers: tuple[int, ...]
    """Ray workers of the part `latency`."""
    each: int
    """Encounters in flight for each of them. A hundred send ten requests a second, which take a tenth of a core or two,
    so four workers and the server fit on two cores."""
    waves: int
    """Encounters for each of those in flight."""
    latency: float
    """Seconds for a reply."""
    flight: int
    """Encounters at once."""
    flight_latency: float
    """Long enough to start them all before the first one ends: two busy cores start forty a second."""
    growth: tuple[int, ...]
    """Builtin encounters in each run."""


SIZE = Size((1, 2, 4), 96, 2, 10.0, 10_000, 400.0, (1_000, 5_000, 20_000))
FULL = SIZE._replace(growth=(1_000, 10_000, 50_000))
QUICK = Size((2,), 8, 1, 0.5, 8, 0.5, (8, 16))


@dataclass
class Usage:
    """CPU time and memory of a command's processes by kind: main, worker, limits, and ray for Ray's own."""

    moments: list[tuple[float, Counter[str]]] = field(default_factory=list)
    """CPU seconds by kind up to each moment."""
    peak_mb: dict[str, float] = field(default_factory=dict)
    """Most resident memory of one process of each kind."""
    cpu: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Kind and CPU seconds of each process, by its number."""

    def look(self, main: int) -> None:
        """Record what the processes have used so far."""
        for number in family(main):
            found = process(number)
            if found:
                kind = "main" if number == main else found.kind
                self.cpu[number] = kind, found.cpu
                self.peak_mb[kind] = max(self.peak_mb.get(kind, 0.0), found.peak_mb)
        total = Counter[str]()
        for kind, seconds in self.cpu.values():
            total[kind] += seconds  # type: ignore[assignment] # a counter of seconds
        self.moments.append((time.time(), total))

    def between(self, start: float, end: float) -> dict[str, float]:
        """CPU seconds by kind between two moments, from the last look before each."""
        first, last = (
            next((used for moment, used in reversed(self.moments) if moment <= limit), Counter[str]())
            for limit in (start, end)
        )
        return {kind: last[kind] - first[kind] for kind in last}


class Process(NamedTuple):
    """A process as /proc describes it."""

    kind: str
    cpu: float
    peak_mb: float


def process(number: int) -> Process | None:
    """A process; None if it has ended."""
    try:
        folder = Path("/proc") / str(number)
        command = (folder / "cmdline").read_bytes()
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        peak = re.search(r"VmHWM:\s+(\d+)", (folder / "status").read_text())
    except OSError:
        return None
    kind = "worker" if command.startswith(b"ray::Worker") else "limits" if command.startswith(b"ray::Limits") else "ray"
    return Process(kind, (int(fields[11]) + int(fields[12])) / TICK, int(peak[1]) / 1024 if peak else 0.0)


def family(main: int) -> Iterator[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    waiting = [main]
    while waiting:
        number = waiting.pop()
        yield number
        waiting += children.get(number, [])


@dataclass
class Run:
    """A run that has ended, and what it used."""

    encounters: int
    failed: int
    """Without a diagnosis that was judged."""
    wall: float
    """Seconds of the whole command."""
    start: float
    end: float
    """When the first encounter began, and when the last one ended."""
    most: int
    """Encounters under way at the same time."""
    journal_kb: float
    """Of the journal, for each encounter."""
    usage: Usage

    @property
    def seconds(self) -> float:
        """From the first encounter's beginning to the last one's end: without starting Python and Ray."""
        return self.end - self.start

    @property
    def rate(self) -> float:
        """Encounters per second."""
        return self.encounters / self.seconds

    @property
    def cpu(self) -> dict[str, float]:
        """CPU seconds by kind while encounters were played."""
        return self.usage.between(self.start, self.end)

    def peaks(self) -> str:
        """Peak memory of the largest process of each kind that we start."""
        return ", ".join(
            f"{kind} {self.usage.peak_mb[kind]:,.0f}" for kind in ("main", "worker") if kind in self.usage.peak_mb
        )


def play(
    encounters: int, workers: int, processes: int, server: ScriptedServer | None = None, roles: Sequence[str] = ROLES
) -> Run:
    """Run the command, on Ray if there are `processes`, and watch it; if there is a server, it plays these roles."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        cases = min(CASES, encounters)
        flags = ["--dataset", "OpenOSCE", "--limit", str(cases), "--repeats", str(math.ceil(encounters / cases))]
        flags += ["--workers", str(workers), "--output-dir", name]
        if processes:
            flags += ["--engine", "ray", "--processes", str(processes)]
        if server:
            flags += [word for role in roles for word in (f"--{role}-llm", "scripted")] + ["--simulator", "free"]
            flags += ["--judge", "model"] if "moderator" in roles else []  # in a cascade, code would decide
            settings = {"openai": {"base_url": server.base_url}, "llm": {"runtime": {"request_timeout": 600}}}
            (home / "llm.config.json").write_text(json.dumps(settings))
        else:
            flags += ["--doctor", "door_only"]  # one turn: what is left is what the engine does for each encounter
        usage, began = Usage(), time.monotonic()
        with (home / "said").open("w") as said:
            command = [sys.executable, "-m", "agentclinic", "run", *flags, "--quiet"]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            child = subprocess.Popen(command, cwd=home, env=environment, stdout=said, stderr=said)
            while child.poll() is None:
                usage.look(child.pid)
                time.sleep(1.0)
        wall = time.monotonic() - began
        if child.returncode:
            raise SystemExit(f"exit code {child.returncode}: {(home / 'said').read_text()[-2000:]}")
        (journal,) = home.glob("*/scenarios.jsonl")
        return measured(journal, wall, usage)


def measured(journal: Path, wall: float, usage: Usage) -> Run:
    """What a journal says about the run."""
    changes: list[tuple[float, int]] = []
    encounters = failed = 0
    with journal.open(encoding="utf-8") as lines:
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            began = datetime.fromisoformat(record["timing"]["started_at"]).timestamp()
            changes += [(began, 1), (began + record["timing"]["seconds"], -1)]
            encounters += 1
            failed += record["status"] != "diagnosed"
    changes.sort()
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    size = journal.stat().st_size / 1024 / encounters
    return Run(encounters, failed, wall, changes[0][0], changes[-1][0], most, size, usage)


def title(processes: int) -> str:
    """The name of an arm."""
    return f"Ray, {processes} worker{'s' * (processes > 1)}" if processes else "local"


def latency(size: Size) -> None:
    """Encounters per second at a slow server, against as many times the rate of one process."""
    requests = 4  # doctor, patient, doctor, judge
    print(
        f"\nlatency: {size.latency:g} s a reply, {requests} replies in an encounter, "
        f"{size.each} encounters in flight for each process"
    )
    print(f"{'':15} encounters failed  per s  of ideal  of local x n  CPU share  ms CPU/encounter  wait for start, s")
    alone = 0.0
    for processes in (0, *size.workers):
        many = max(1, processes)
        with ScriptedServer() as server:
            server.control(doctor_turns=2, latency=size.latency, jitter=JITTER, keep_log=False)
            run = play(size.each * size.waves * many, size.each * many, processes, server)
            answered = server.counts()
        assert answered["received"] == requests * run.encounters
        alone = alone or run.rate
        cpu = sum(run.cpu.values())
        ideal = size.each * many / (requests * size.latency)
        print(
            f"{title(processes):15} {run.encounters:10,} {run.failed:6} {run.rate:6.2f} {run.rate / ideal:9.3f}"
            f" {run.rate / alone / many:13.3f} {cpu / run.seconds:10.1%} {1000 * cpu / run.encounters:17.1f}"
            f" {run.wall - run.seconds:19.1f}",
            flush=True,
        )
        print(f"{'':15} CPU seconds: {shares(run.cpu)}; server {answered['cpu']:.1f}. Peak MB: {run.peaks()}")
    print(f"aim: at least {AIM} of local x n")


def shares(cpu: dict[str, float]) -> str:
    """CPU seconds by kind."""
    return ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in sorted(cpu.items()) if seconds >= 0.05)


def flight(size: Size) -> None:
    """As many encounters at once as asked for, and what they take."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    memory = int((re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text()) or [0, 0])[1]) / 1024**2
    print(
        f"\nflight: {size.flight:,} workers, {size.flight_latency:g} s a reply, one reply in an encounter; "
        f"{files:,} open files for each process, {memory:.1f} GB of memory free, {os.cpu_count()} cores"
    )
    for processes in (0, max(size.workers)):
        with ScriptedServer() as server:
            server.control(doctor_turns=1, latency=size.flight_latency, jitter=JITTER, keep_log=False)
            run = play(size.flight, size.flight, processes, server, ("doctor",))
            answered = server.counts()
        print(
            f"{title(processes):15} {run.most:,} encounters in flight at most ({answered['peak']:,} requests), "
            f"{run.encounters:,} played, {run.failed} failed, {run.seconds:.0f} s"
        )
        print(
            f"{'':15} CPU seconds: {shares(run.cpu)}; server {answered['cpu']:.1f}. Peak MB: {run.peaks()}", flush=True
        )


def growth(size: Size) -> None:
    """Time and memory as a run gets longer."""
    print("\ngrowth: builtin encounters of one turn")
    print(f"{'':15} encounters    per s  ms CPU/encounter  peak MB{'':16}  KB of journal/encounter")
    for processes in (0, 2):
        runs = []
        for encounters in size.growth:
            run = play(encounters, 4, processes)
            runs.append(run)
            print(
                f"{title(processes):15} {run.encounters:10,} {run.rate:8.1f} {cpu_ms(run):17.1f}  {run.peaks():23}"
                f" {run.journal_kb:25.2f}",
                flush=True,
            )
        first, last = runs[0], runs[-1]
        memory = last.usage.peak_mb["main"] - first.usage.peak_mb["main"]
        print(
            f"{'':15} x {last.encounters / first.encounters:.0f}: seconds x {last.seconds / first.seconds:.1f}, "
            f"CPU x {sum(last.cpu.values()) / sum(first.cpu.values()):.1f}, memory of main "
            f"x {last.usage.peak_mb['main'] / first.usage.peak_mb['main']:.2f} "
            f"({1024 * memory / (last.encounters - first.encounters):.2f} KB for each further encounter)"
        )


def cpu_ms(run: Run) -> float:
    """CPU milliseconds of all processes for each encounter."""
    return 1000 * sum(run.cpu.values()) / run.encounters


PARTS = {"latency": latency, "flight": flight, "growth": growth}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part; default: all")
    parser.add_argument("--flight", type=int, help=f"encounters at once in the part flight; default: {SIZE.flight:,}")
    parser.add_argument("--full", action="store_true", help="growth up to 50,000 encounters; an hour on two idle cores")
    parser.add_argument("--quick", action="store_true", help="a few encounters: figures mean nothing")
    given = parser.parse_args(arguments)
    size = QUICK if given.quick else FULL if given.full else SIZE
    if given.flight:
        size = size._replace(flight=given.flight)
    print(f"{datetime.now():%d %B %Y}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before")
    for name, part in PARTS.items():
        if given.only in (None, name):
            part(size)
    print(f"load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
