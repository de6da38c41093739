"""What the tests of runs share: the command line as a process, runs in this process, and reading what was written."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from scripted_server import LONG, ScriptedServer

from agentclinic.config import Given, Settings
from agentclinic.runs.execute import Finished, execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "agentclinic"
PUBLIC = {
    "MedQA": (DATA / "agentclinic_medqa.jsonl", 107),
    "MedQA_Ext": (DATA / "agentclinic_medqa_extended.jsonl", 214),
    "NEJM": (DATA / "agentclinic_nejm.jsonl", 15),
    "NEJM_Ext": (DATA / "agentclinic_nejm_extended.jsonl", 120),
}
"""The public data sets, which are not part of the repository, and how many rows each has."""


def own_rows(count: int) -> list[str]:
    """Rows of our own cases, one JSON object each, all of them open."""
    bundled = ROOT / "agentclinic" / "cases" / "bundled"
    files = [bundled / "openosce.jsonl", bundled / "openosce_demo.jsonl"]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in map(json.loads, lines) if row["OSCE_Examination"].get("lockbox") is not True]
    assert len(rows) >= count
    return [json.dumps(row, ensure_ascii=False) for row in rows[:count]]


def own_cases(folder: Path, count: int) -> Path:
    """A file of so many of our own cases."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "own_cases.jsonl"
    path.write_text("\n".join(own_rows(count)) + "\n", encoding="utf-8")
    return path


CLINIC = [sys.executable, "-m", "agentclinic"]
ROLES = ("doctor", "patient", "measurement", "moderator")
AT_ENDPOINT = [*(word for role in ROLES for word in (f"--{role}_llm", "scripted")), "--simulator", "free"]
AT_ENDPOINT += ["--judge", "model"]
"""Flags that put every role at the endpoint; patient, laboratory and judge say what the script has for them."""

Json = dict[str, Any]


def environment(**changes: str) -> dict[str, str]:
    """The environment without anything that could name a real endpoint or key."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "COLUMNS"))}
    return {**kept, **changes}


class Process:
    """A running command, in its own process."""

    def __init__(self, nursery: Nursery, pid: int, output: Path) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery
        self._output = output

    @property
    def stdout(self) -> str:
        return (self._output / "stdout").read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        return (self._output / "stderr").read_text(encoding="utf-8")

    def poll(self) -> int | None:
        """The exit code, negative after a signal; None while it runs."""
        if self.returncode is None:
            self.returncode = self._nursery.ask(poll=self.pid)["code"]
        return self.returncode

    def wait(self) -> int:
        until(lambda: self.poll() is not None, "the end of the process")
        assert self.returncode is not None
        return self.returncode

    def signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Nursery:
    """Makes processes of the command line without waiting for its imports and tables each time.

    A process that has loaded everything forks one for each command. Each is a real process with the real
    `main`, and can be killed; what the start itself does is tested where `CLINIC` is called.
    """

    def __init__(self) -> None:
        self._mother = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **question: Any) -> Json:
        assert self._mother.stdin is not None
        assert self._mother.stdout is not None
        self._mother.stdin.write(json.dumps(question) + "\n")
        self._mother.stdin.flush()
        answer: Json = json.loads(self._mother.stdout.readline())
        return answer

    def start(self, arguments: Iterable[str], cwd: Path, env: Mapping[str, str]) -> Process:
        output = Path(tempfile.mkdtemp(prefix="agentclinic-test-"))
        atexit.register(shutil.rmtree, output, ignore_errors=True)
        for name in ("stdout", "stderr"):  # there from the start, so that a test may look at once
            (output / name).touch()
        answer = self.ask(arguments=list(arguments), cwd=str(cwd), env=dict(env), output=str(output))
        return Process(self, answer["pid"], output)

    def close(self) -> None:
        """End the process that makes the others."""
        self._mother.communicate()


@cache
def nursery() -> Nursery:
    return Nursery()


def _mother() -> list[str] | None:
    """Fork a process for each command that comes in; in that process, return the command's arguments."""
    import anyio

    slow = ("audit.run", "generate.run", "learn.run", "report.card", "runs.regrade", "scoring.sessions", "cli.people")
    for name in ("aiohttp", "httpx2", *(f"agentclinic.{each}" for each in slow)):
        importlib.import_module(name)
    # An encounter reads the vocabulary and the matcher, which takes ten times as long as the encounter itself.
    with tempfile.TemporaryDirectory(prefix="agentclinic-test-") as scratch:
        anyio.run(run_here, settings_for(None, Path(scratch), num_scenarios=1))
    gc.collect()
    gc.freeze()  # a collection in a child would copy all of it: 0.35 s for --version instead of 1.3
    for line in sys.stdin:
        question = json.loads(line)
        if "poll" in question:
            pid, status = os.waitpid(question["poll"], os.WNOHANG)
            print(json.dumps({"code": os.waitstatus_to_exitcode(status) if pid else None}), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            # Ctrl-C is ignored if the tests run in the background; here it must work.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(question["cwd"])
            os.environ.clear()
            os.environ.update(question["env"])
            output = Path(question["output"])
            for descriptor, path in enumerate((Path(os.devnull), output / "stdout", output / "stderr")):
                os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), descriptor)
            arguments: list[str] = question["arguments"]
            return arguments
        print(json.dumps({"pid": pid}), flush=True)
    return None


def start(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Process:
    """Start a command and leave it running."""
    return nursery().start(map(str, arguments), cwd, environment(**(env or {})))


def clinic(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, expect: int | None = 0) -> Process:
    """Run a command to its end and check its exit code; no command may ever show a traceback of ours."""
    process = start(*arguments, cwd=cwd, env=env)
    try:
        process.wait()
    finally:
        process.signal(signal.SIGKILL)
    said = f"{process.stdout}\n{process.stderr}"
    assert "Traceback" not in said.replace("the doctor's program failed\nTraceback", ""), said
    assert expect is None or process.returncode == expect, f"exit code {process.returncode}\n{said}"
    return process


def until(condition: Callable[[], bool], what: str, process: Process | None = None) -> None:
    """Wait for something to become true; not for ever, and not for a process that is gone."""
    deadline = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError(f"the process ended before {what}: {process.stdout}{process.stderr}")
        time.sleep(0.01)


def point_at(folder: Path, server: ScriptedServer, key: str | None = None, **runtime: Any) -> Path:
    """Write an `llm.config.json` that names the scripted server; waits between tries take no time."""
    path = folder / "llm.config.json"
    settings = {
        "openai": {"base_url": server.base_url, "api_key": key},
        "llm": {"runtime": {"timeout": 0, "tries": 3, **runtime}},
    }
    path.write_text(json.dumps(settings))
    return path


def settings_for(server: ScriptedServer | None, output: Path, *, runtime: Json | None = None, **run: Any) -> Settings:
    """Settings of a run in this process: every role at the server, or builtin without a server."""
    asked = "preset" not in run and run.get("moderator_llm") != "builtin"
    free = {"simulator": "free", **({"judge": "model"} if asked else {})}
    roles = {f"{role}_llm": "scripted" for role in ROLES} | free if server else {}
    return Settings.model_validate(
        {
            "run": {"output_dir": str(output), **roles, **run},
            "openai": {"base_url": server.base_url} if server else {},
            "llm": {"runtime": {"timeout": 0, "tries": 2, **(runtime or {})}},
            "given": Given(flags=run),
        }
    )


async def run_here(settings: Settings) -> tuple[Finished, list[Json]]:
    """Play a run in this process and read its records."""
    finished = await execute(make_plan(settings), Progress())
    return finished, records(finished.folder)


def records(folder: Path) -> list[Json]:
    """The lines of `scenarios.jsonl`; each must be whole."""
    return lines(folder / "scenarios.jsonl")


def lines(path: Path) -> list[Json]:
    """The objects of a JSON lines file; a line that is not whole fails."""
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def summary(folder: Path) -> Json:
    """The run's `summary.json`."""
    content: Json = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return content


def only_run(output: Path) -> Path:
    """The one run folder in there."""
    (folder,) = output.glob("[!.]*")
    return folder


def untimed(value: Any) -> Any:
    """The value without `timing`, and without the original's keys of a summary for the same."""
    if isinstance(value, dict):
        timed = {"timing"} | ({"duration_seconds", "timestamp", "output_dir"} if "scenario_file" in value else set())
        return {key: untimed(item) for key, item in value.items() if key not in timed}
    return [untimed(item) for item in value] if isinstance(value, list) else value


def without(record: Json, keys: Iterable[str]) -> Json:
    """The record without some keys."""
    return {key: value for key, value in record.items() if key not in set(keys)}


def units(entries: Iterable[Json]) -> list[tuple[int, int]]:
    """Row and repeat of each record, sorted."""
    return sorted((entry["scenario_id"], entry["repeat"]) for entry in entries)


def asked(server: ScriptedServer, purpose: str | None = None) -> int:
    """Requests the server has received."""
    if purpose is None:
        return int(server.counts()["received"])
    return sum(entry["purpose"] == purpose for entry in server.log())


if __name__ == "__main__":
    command = _mother()
    if command is not None:
        from agentclinic.cli import main

        ended: object = None
        try:
            main(command)
        except SystemExit as left:
            ended = left.code
        except BaseException:  # noqa: BLE001 - a traceback and exit code 1, as without us
            traceback.print_exc()
            ended = 1
        threading._shutdown()  # type: ignore[attr-defined] # wait for threads, as Python does
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        # Python would take apart all that was loaded before the fork, which costs more than most commands.
        os._exit(ended if isinstance(ended, int) else int(ended is not None))
