"""How much time the harness adds to the time the models take, beside bare loops of the official SDK.

`python benchmarks/harness.py` plays 64 encounters at once against the scripted server at 1 s of latency;
`--encounters 1000 --latency 2` sets another load, `--all` measures both loads that have targets, `--runs 3`
repeats and reports medians. benchmarks/README.md says what is measured and how.

Each arm is a process of its own that does the same chains of 20 calls:

- ours: real encounters, every role at the endpoint, each record written to a journal as a run does
- create: `AsyncOpenAI().responses.create` with the bodies our encounters sent
- post: the SDK's `client.post("/responses", ...)` with those bodies
- server: those bodies, ready made, over plain sockets: what the server and this machine allow at best
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

    from agentclinic.models.endpoint import HttpAnswer
    from agentclinic.runs.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

ARMS = ("ours", "create", "post", "server")
DOCTOR_TURNS = 10
CHAIN = 2 * DOCTOR_TURNS
"""Calls in an encounter: the doctor's turns, a reply to each but the last, and the judge."""
JITTER = 0.5
DRAWN = "x-scripted-latency"
BESIDE_SDK = 0.95
"""What ours must reach of the bare SDK loop's efficiency."""


class Load(NamedTuple):
    """How many encounters at once, and the server's mean latency in seconds."""

    encounters: int
    latency: float

    def __str__(self) -> str:
        return f"{self.encounters:,} at {self.latency:g} s"


TARGETS = {Load(64, 1.0): 0.97, Load(1000, 2.0): 0.90}


@dataclass
class Chain:
    """One encounter's calls."""

    ideal: float = 0.0
    """Sum of the latencies that the server drew for these calls."""
    calls: int = 0
    errors: int = 0
    seconds: float = 0.0
    """From the moment it was due to start until its end."""

    def answered(self, drawn: str) -> None:
        """Count an answer whose header says which latency was drawn."""
        self.ideal += float(drawn)
        self.calls += 1


current: ContextVar[Chain] = ContextVar("current")
"""The encounter under way in this task."""


@dataclass
class Result:
    """What an arm measured."""

    arm: str
    efficiency: float
    """Mean ideal time ÷ mean measured time of an encounter."""
    ideal: float
    measured: float
    errors: int
    """Encounters without a verdict, calls too few or too many, and tries that had to be repeated."""
    cpu_ms: float
    """Of the arm's process, per call."""
    peak_mb: float
    """Most resident memory of the arm's process."""
    seconds: float
    starved: float | None = None
    """Share of the time in which the arm had work to do, but other processes had the cores; None where unknown."""
    server_cpu_ms: float = 0.0
    server_busy: float = 0.0
    """Share of one core that the server used."""

    def rounded(self) -> dict[str, Any]:
        """The figures to the digits that mean something."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


@dataclass
class Job:
    """What an arm is told."""

    arm: str
    base_url: str
    load: Load
    folder: Path

    def ready(self) -> None:
        """Say that the warm-up is over and wait until the server has been given its latency."""
        print("ready", flush=True)
        sys.stdin.readline()

    def bodies(self) -> list[list[tuple[str, dict[str, Any]]]]:
        """Purpose and body of each call, by case, as our encounters sent them."""
        cases: list[list[tuple[str, dict[str, Any]]]] = json.loads((self.folder / "bodies.json").read_text())
        return cases

    async def measure(self, encounter: Callable[[int], Awaitable[None]]) -> Result:
        """Start the encounters spread evenly over one latency, wait for all."""
        load = self.load
        cpu, waited, began = time.process_time(), time_in_queue(), time.perf_counter()

        async def one(number: int) -> Chain:
            due = began + load.latency * number / load.encounters
            await asyncio.sleep(due - time.perf_counter())
            chain = Chain()
            current.set(chain)
            await encounter(number)
            # From when it was due, not from when the busy loop got round to it.
            chain.seconds = time.perf_counter() - due
            return chain

        chains = await asyncio.gather(*(one(number) for number in range(load.encounters)))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        ideal = statistics.fmean(chain.ideal for chain in chains)
        measured = statistics.fmean(chain.seconds for chain in chains)
        calls = sum(chain.calls for chain in chains)
        return Result(
            self.arm,
            ideal / measured,
            ideal,
            measured,
            sum(chain.errors + abs(CHAIN - chain.calls) for chain in chains),
            1000 * cpu / max(1, calls),
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            seconds,
            None if waited is None else ((time_in_queue() or 0.0) - waited) / seconds,
        )


def time_in_queue() -> float | None:
    """Seconds this thread was ready to run and had to wait for a core; None where the system does not say."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return None


def make_plan(job: Job) -> Plan:
    """The bundled demo cases, repeated until there are enough, every role at the scripted server."""
    from agentclinic.cases.registry import load_cases
    from agentclinic.config import ROLES, EndpointSettings, RunSettings, Settings
    from agentclinic.runs import plan

    roles = {f"{role}_llm": "scripted" for role in ROLES} | {f"{role}_endpoint": "bench" for role in ROLES}
    cases = len(load_cases("OpenOSCE_Demo", {}))
    run = RunSettings.model_validate(
        {
            "workers": job.load.encounters,
            "repeats": math.ceil(job.load.encounters / cases),
            "judge": "original",
            "simulator": "free",  # in the others, code answers some of the calls
            **roles,
        }
    )
    return plan.make_plan(Settings(run=run, endpoints={"bench": EndpointSettings(base_url=job.base_url)}))


async def ours(job: Job) -> Result | None:
    """Real encounters; the first time, without latency, keep what they send for the other arms."""
    from agentclinic.jsonl import JsonLines
    from agentclinic.models.base import Purpose
    from agentclinic.models.endpoint import Endpoint
    from agentclinic.runs.build import Models
    from agentclinic.runs.play import play

    plan = make_plan(job)
    sent: list[tuple[str, dict[str, Any]]] = []
    keep = job.arm == "bodies"
    async with Models(plan.settings) as models:
        models.prepare()
        model = models.for_role("doctor")
        assert isinstance(model, Endpoint)
        send = model.client.send

        async def watched(path: str, content: bytes | None, purpose: Purpose) -> HttpAnswer:
            if keep and content is not None:
                sent.append((str(purpose), json.loads(content)))
            answer = await send(path, content, purpose)
            # A failed try has no latency to count; the encounter's time still holds it.
            if DRAWN in answer.headers:
                current.get().answered(answer.headers[DRAWN])
            return answer

        model._send = watched
        if keep:
            cases = []
            for unit in plan.units[: len(plan.cases)]:
                sent.clear()
                await play(plan, unit, models)
                cases.append(list(sent))
            (job.folder / "bodies.json").write_text(json.dumps(cases))
            return None
        await play(plan, plan.units[0], models)
        job.ready()
        with JsonLines(job.folder / "records.jsonl") as journal:

            async def encounter(number: int) -> None:
                record = await play(plan, plan.units[number], models)
                journal.append(record.model_dump(mode="json"))
                retries = sum(used["retries"] or 0 for used in (record.usage or {}).values())
                current.get().errors += retries + (record.correct is None)

            return await job.measure(encounter)


def _sdk(job: Job) -> AsyncOpenAI:
    """The SDK with the connection limits that our endpoint gives it."""
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    from agentclinic.config import MOST_WORKERS
    from agentclinic.models.endpoint import CONNECT_TIMEOUT, KEEP_ALIVE

    async def watch(response: httpx2.Response) -> None:
        if DRAWN in response.headers:
            current.get().answered(response.headers[DRAWN])

    timeout = httpx2.Timeout(120, connect=CONNECT_TIMEOUT, pool=None)
    limits = httpx2.Limits(
        max_connections=MOST_WORKERS, max_keepalive_connections=MOST_WORKERS, keepalive_expiry=KEEP_ALIVE
    )
    client = DefaultAioHttpClient(limits=limits, timeout=timeout, trust_env=False, event_hooks={"response": [watch]})
    return AsyncOpenAI(base_url=job.base_url, api_key="none", max_retries=0, timeout=timeout, http_client=client)


async def sdk(job: Job) -> Result:
    """A bare loop of the SDK, by its typed method or by its `post`."""
    import openai
    from openai.types.responses import Response

    from agentclinic.models.endpoint import PURPOSE_HEADER

    cases = job.bodies()
    async with _sdk(job) as client:

        async def create(purpose: str, body: dict[str, Any]) -> Response:
            made: Response = await client.responses.create(**body, extra_headers={PURPOSE_HEADER: purpose})
            return made

        async def post(purpose: str, body: dict[str, Any]) -> Response:
            return await client.post(
                "/responses", body=body, cast_to=Response, options={"headers": {PURPOSE_HEADER: purpose}}
            )

        call = create if job.arm == "create" else post

        async def encounter(number: int) -> None:
            for purpose, body in cases[number % len(cases)]:
                try:
                    assert (await call(purpose, body)).output_text
                except openai.OpenAIError:
                    current.get().errors += 1

        await encounter(0)
        job.ready()
        return await job.measure(encounter)


async def server(job: Job) -> Result:
    """Ready-made bytes over plain sockets, one for each encounter: nearly nothing but the server."""
    from agentclinic.models.endpoint import PURPOSE_HEADER

    address = urlsplit(job.base_url)

    def ready_made(purpose: str, body: dict[str, Any]) -> bytes:
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        head = f"POST {address.path}/responses HTTP/1.1\r\nHost: {address.netloc}\r\n{PURPOSE_HEADER}: {purpose}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data

    cases = [[ready_made(*call) for call in case] for case in job.bodies()]

    async def encounter(number: int) -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        for request in cases[number % len(cases)]:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            await reader.readexactly(int(fields["content-length"]))
            if DRAWN in fields:
                current.get().answered(fields[DRAWN])
        writer.close()

    await encounter(0)
    job.ready()
    return await job.measure(encounter)


def run_arm(arm: str, load: Load, folder: Path) -> Result | None:
    """Run one arm in a process of its own against a server of its own."""
    from scripted_server import ScriptedServer

    arguments = ["--arm", arm, "--encounters", str(load.encounters), "--latency", str(load.latency)]
    with ScriptedServer() as process:
        process.control(doctor_turns=DOCTOR_TURNS, keep_log=False)
        child = subprocess.Popen(
            [sys.executable, __file__, *arguments, "--base-url", process.base_url, "--folder", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")},
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child:
            if arm != "bodies":
                child.stdout.readline()
                process.control(latency=load.latency, jitter=JITTER)
                before = process.counts()
                child.stdin.write("go\n")
                child.stdin.flush()
            told = child.stdout.readline()
        if child.returncode:
            raise SystemExit(f"arm {arm} ended with {child.returncode}")
        if arm == "bodies":
            return None
        after = process.counts()
    result = Result(**json.loads(told))
    cpu = after["cpu"] - before["cpu"]
    result.server_cpu_ms = 1000 * cpu / max(1, after["received"] - before["received"])
    result.server_busy = cpu / result.seconds
    return result


def work(arguments: argparse.Namespace, load: Load) -> None:
    """Be the arm that was asked for."""
    job = Job(arguments.arm, arguments.base_url, load, arguments.folder)
    run = {"ours": ours, "bodies": ours, "create": sdk, "post": sdk, "server": server}[job.arm]
    current.set(Chain())  # of the warm-up
    result = asyncio.run(run(job))
    print(json.dumps(asdict(result) if result else None), flush=True)


def compare(load: Load, runs: int, arms: list[str]) -> dict[str, Any]:
    """Run the arms `runs` times, print the table, return the figures."""
    results: dict[str, list[Result]] = {arm: [] for arm in arms}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_arm("bodies", load, folder)
        for number in range(runs):
            # Another arm goes first each time: what else the machine does changes in the course of minutes.
            for arm in arms[number % len(arms) :] + arms[: number % len(arms)]:
                print(f"  {load}: run {number + 1} of {runs}, {arm} ...", file=sys.stderr, flush=True)
                (folder / "records.jsonl").unlink(missing_ok=True)
                result = run_arm(arm, load, folder)
                assert result is not None
                print(f"    {result.efficiency:.3f}", file=sys.stderr, flush=True)
                results[arm].append(result)
    ratios = [o.efficiency / c.efficiency for o, c in zip(results["ours"], results["create"], strict=True)]
    show(load, results, ratios)
    return {
        "encounters": load.encounters,
        "latency": load.latency,
        "runs": runs,
        "ratio": [round(ratio, 4) for ratio in ratios],
        "arms": {arm: [result.rounded() for result in several] for arm, several in results.items()},
    }


def show(load: Load, results: dict[str, list[Result]], ratios: list[float]) -> None:
    """Print the medians, and with several runs their spread."""
    several = len(ratios) > 1
    print(f"\n{load}, ±{JITTER:.0%}, {CHAIN} calls a chain{f', median of {len(ratios)} runs' if several else ''}")
    print(
        f"{'arm':8}{'efficiency':>11}{'spread':>16}{'errors':>8}{'ms CPU/call':>13}{'peak MB':>9}"
        f"{'starved':>9}{'server ms/call':>16}{'server busy':>13}"
    )
    for arm, rows in results.items():
        print(
            f"{arm:8}{_median(rows, 'efficiency'):11.3f}{_spread([row.efficiency for row in rows]):>16}"
            f"{sum(row.errors for row in rows):8}{_median(rows, 'cpu_ms'):13.2f}{_median(rows, 'peak_mb'):9.0f}"
            f"{_median(rows, 'starved'):9.0%}{_median(rows, 'server_cpu_ms'):16.2f}{_median(rows, 'server_busy'):12.0%}"
        )
    ratio = statistics.median(ratios)
    print(f"ours ÷ create: {ratio:.3f} {_spread(ratios) if several else ''}")
    mine = _median(results["ours"], "efficiency")
    errors = sum(row.errors for row in results["ours"])
    goals = {f"ours at least {BESIDE_SDK} of create": ratio >= BESIDE_SDK, "no errors in ours": not errors}
    if load in TARGETS:
        goals[f"efficiency at least {TARGETS[load]}"] = mine >= TARGETS[load]
    for goal, met in goals.items():
        print(f"  {'met   ' if met else 'MISSED'} {goal}")
    if "server" in results and _median(results["server"], "efficiency") < mine + 0.005:
        print("  note: the server alone is hardly faster; what is missing is the server's or the machine's")


def _median(rows: list[Result], name: str) -> float:
    return float(statistics.median(getattr(row, name) or 0.0 for row in rows))


def _spread(values: list[float]) -> str:
    return f"{min(values):.3f} - {max(values):.3f}" if len(values) > 1 else "-"


def raise_file_limit() -> None:
    """A socket is a file: allow as many as the system lets us, for the children too."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Measure, print, and end with 0 whatever was measured: a benchmark is no test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--encounters", type=int, default=64, help="encounters at once")
    parser.add_argument("--latency", type=float, default=1.0, help="the server's mean latency in seconds")
    parser.add_argument("--all", action="store_true", help="measure every load that has a target")
    parser.add_argument("--runs", type=int, default=1, help="repeat, and report medians")
    parser.add_argument("--without", nargs="+", choices=ARMS[2:], default=[], help="leave out these arms")
    for internal in ("--arm", "--base-url"):
        parser.add_argument(internal, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    load = Load(arguments.encounters, arguments.latency)
    if arguments.arm:
        work(arguments, load)
        return
    raise_file_limit()
    arms = [arm for arm in ARMS if arm not in arguments.without]
    figures = [compare(chosen, arguments.runs, arms) for chosen in (TARGETS if arguments.all else [load])]
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
