"""Many encounters while everything around them fails: every unit must be recorded once, with the right outcome.

python benchmarks/soak.py                                    2,000 encounters; the server is away for a minute, twice
python benchmarks/soak.py --encounters 200 --away 5 --seed 2

Half of the encounters are played by the plain doctor, half by the uncertainty-aware one, each in a run of its own, at
the scripted server, which spoils a fifth of its answers. The run is killed at random moments, stopped with Ctrl-C and
started again on a full disk (a limit on the size of files), and the server dies and comes back; each time the run is
resumed with `agentclinic resume`. The wall clock of every process jumps each second, by up to a year. What
failed without a verdict is played again with `--retry-failed`.

A word in the objective of each case decides how its encounters must end, so the right outcome of every unit is known.
The end of the output counts units that are lost, that are there twice, and that were scored wrong: a verdict or a
diagnosis that differs from the right one, or a failure of the endpoint that counts as the doctor's. Exits with 1 unless
all are 0.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from aiohttp import web
from scripted_server import Answer, Call, ScriptedServer, Server, main, mark_in

Json = dict[str, Any]

DOCTORS = ("plain", "uncertainty")
REPEATS = 2
TURNS = 12
"""Four are needed; an odd reply of the doctor costs it one more."""
TRIES = 3
SPOILED = 0.2
"""Share of answers with a fault."""
AT_SERVER: dict[str, Json] = {
    "429": {"fault": "429"},
    "429 with a date": {"fault": "429_retry_after_date", "seconds": 0.2},
    "500": {"fault": "500"},
    "503": {"fault": "503", "seconds": 0.05},
    "400": {"fault": "bad_request"},
    "no answer": {"fault": "hang"},
    "connection reset": {"fault": "reset"},
    "truncated JSON": {"fault": "truncated_json"},
    "JSON of another kind": {"raw": ["stumble"]},
    "error in a 200": {"fault": "200_error"},
    "web page": {"fault": "html"},
    "empty body": {"fault": "empty_body"},
    "far too large": {"fault": "bomb", "megabytes": 16},
}
"""Faults of the endpoint, on any request."""
OF_MODEL: dict[str, Json] = {
    "empty reply": {"fault": "empty"},
    "no usage": {"fault": "no_usage"},
    "fenced JSON": {"fault": "fenced_json"},
    "prose": {"reply": "I stumble over my words."},
    "half an object": {"reply": '{"stumble": '},
    "wrong object": {"reply": '{"stumble": true}'},
    "huge reply": {"reply": "stumble, " * 25_000},
    "odd characters": {"reply": "stumble \ud800 \x1b[31m \u2028 \u202e"},
}
IN_TOOL_CALL: dict[str, Any] = {
    "wrong arguments": {"stumble": [1]},
    "half the arguments": '{"stumble": ',
    "deep arguments": '{"stumble": ' + "[" * 100_000,
    "a number of 5,000 digits": '{"stumble": ' + "9" * 5_000 + "}",
}
"""Odd replies: each encounter meets at most one in a row, so that another try or the repair answers."""
STUMBLED = "stumble"
"""In every odd reply that is sent back or remembered."""
STEPS = [
    {
        "new_information": f"{learned} of {{mark}}",
        "current_uncertainties": [
            {"diagnosis": "Migraine {mark}", "probability": 0.7, "reason": ""},
            {"diagnosis": "Sinusitis", "probability": 0.2, "reason": ""},
        ],
        "next_step_action": action,
    }
    for learned, action in (
        ("Complaint", "ASK PATIENT: Since when have you had this?"),
        ("Duration", "REQUEST TEST: Complete blood count"),
        ("Blood count", "DIAGNOSIS READY"),
    )
]


class Right(NamedTuple):
    """How a unit must end."""

    status: str
    correct: bool
    diagnosis: str | None = None
    error: str | None = None


def right_outcome(row: int, doctor: str) -> Right:
    """The outcome that the number of a case decides."""
    match row % 20:
        case 1:
            return Right("doctor_failed", False, error="refused")
        case 2:
            return Right("doctor_failed", False, error="context_too_long")
        case 3 if doctor == "plain":  # the uncertainty-aware doctor always concludes
            return Right("max_infs_reached", False)
    return Right("diagnosed", row % 2 == 0, f"Migraine mark-{row}")


# --- the server, in its own process ---------------------------------------------------------------------------------


class SoakServer(Server):
    """The scripted server with faults drawn for each request, and outcomes decided by the case."""

    def reset(self) -> None:
        """Start again with this script."""
        super().reset()
        self.script.keep_log = False
        self.script.steps = STEPS
        self.script.synthesis = "Migraine {mark}"
        self.injected: Counter[str] = Counter()

    async def show_log(self, _request: web.Request) -> web.Response:
        """Counts alone."""
        return web.json_response({"received": self.received, "injected": self.injected})

    def rule_for(self, call: Call) -> Json | None:
        """A fault by chance, or what the case decides."""
        if call.purpose == "check":
            return None
        if call.draw(self.script.seed, "spoiled") < SPOILED:
            faults = dict(AT_SERVER)
            # Whatever is said in a synthesis is the diagnosis, so there is no right outcome for odd words.
            if call.occurrence == 0 and STUMBLED not in call.text and call.purpose != "synthesis":
                faults |= OF_MODEL
                for kind, arguments in IN_TOOL_CALL.items() if call.tools else ():
                    faults[kind] = {"tool_calls": [{"name": call.tools[0]["name"], "arguments": arguments}]}
            kind = list(faults)[int(call.draw(self.script.seed, "kind") * len(faults))]
            self.injected[kind] += 1
            return faults[kind]
        own = {1: "refusal", 2: "context"}.get(_row(call) % 20) if call.purpose == "doctor" else None
        return {"fault": own} if own else None

    def default(self, call: Call) -> Answer:
        """What doctor and judge say of this case."""
        row, text = _row(call), call.text
        if call.purpose == "moderator":
            return Answer("Yes" if row % 2 == 0 else "No")
        if call.purpose == "doctor" and not (call.tools or call.schema):
            lines = ["What brings you in today?", "Since when?", "REQUEST TEST: Complete_Blood_Count"]
            if row % 20 == 3:
                lines += [f"Question number {number}: how is it now?" for number in range(TURNS)]
            else:
                lines.append(f"DIAGNOSIS READY: Migraine mark-{row}")
            return Answer(next((line for line in lines if line not in text), lines[-1]))
        return super().default(call)


def _row(call: Call) -> int:
    found = re.fullmatch(r"mark-(\d+)", mark_in(call.text))
    return int(found[1]) if found else 0


class Servant(ScriptedServer):
    """That server as a child process, which can go away and come back with the same address."""

    program = Path(__file__).resolve()

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.injected: Counter[str] = Counter()
        """Faults by kind, counted when the server goes away."""
        self._seed = seed

    def come(self) -> None:
        """Start, or start again."""
        self.__enter__()
        self.control(seed=self._seed)

    def go(self) -> None:
        """Die, in the middle of whatever it is doing."""
        counts = self.counts()
        self.injected += Counter(counts["injected"])
        self.injected["requests"] += counts["received"]
        self.kill()


# --- the command, in its own process --------------------------------------------------------------------------------


def play(seed: int, most_bytes: int, arguments: list[str]) -> None:
    """Run `agentclinic` with a wall clock that jumps every second, and with files of at most so many bytes."""
    import datetime

    real, moments = time.time, random.Random(seed)
    shifts = [86400 * moments.choice((1, -1)) * moments.randint(1, 366) for _ in range(1000)]

    def jumping() -> float:
        return real() + shifts[int(time.monotonic()) % len(shifts)]

    class Kind(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, genuine)

    genuine = datetime.datetime

    class Jumping(genuine, metaclass=Kind):  # type: ignore[misc, valid-type]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return genuine.fromtimestamp(jumping(), tz)

    time.time = jumping
    datetime.datetime = Jumping  # type: ignore[misc]
    if most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    from agentclinic.cli import main as agentclinic

    agentclinic(arguments)


# --- the soak -------------------------------------------------------------------------------------------------------


class Soak:
    """One run of a doctor, and what befalls it."""

    def __init__(self, doctor: str, cases: int, seed: int, home: Path, server: Servant) -> None:
        self.chance = random.Random(f"{seed} {doctor}")
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.doctor = doctor
        self.cases = cases
        self._home = home
        self._server = server
        self._process: subprocess.Popen[str] | None = None
        from runs_support import own_rows

        shipped = [json.loads(row) for row in own_rows(100)]
        with (home / "cases.jsonl").open("w", encoding="utf-8") as file:
            for row in range(cases):
                case = json.loads(json.dumps(shipped[row % len(shipped)]))
                case["OSCE_Examination"]["Objective_for_Doctor"] += f" (mark-{row})"
                file.write(json.dumps(case) + "\n")
        runtime = {"timeout": 0, "tries": TRIES, "request_timeout": 5}
        settings = {"openai": {"base_url": server.base_url}, "llm": {"runtime": runtime}}
        (home / "llm.config.json").write_text(json.dumps(settings))

    @property
    def folder(self) -> Path | None:
        """The run's folder, once there is one."""
        return next((self._home / "out").glob("*"), None)

    @property
    def journal(self) -> bytes:
        """What is in the journal now."""
        path = self.folder / "scenarios.jsonl" if self.folder else None
        return path.read_bytes() if path and path.exists() else b""

    def play(self, events: Iterable[str], away: float) -> None:
        """Play the run to its end while these things happen to it."""
        events = list(events)
        self.chance.shuffle(events)
        for number, event in enumerate(events, start=1):
            share = (number - self.chance.random()) / (len(events) + 1)
            target = max(1, int(self.cases * REPEATS * share))
            while self.journal.count(b"\n") < target:
                if self._ended():
                    self._start()
                time.sleep(0.05)
            time.sleep(self.chance.random() / 4)
            getattr(self, f"_{event}")(away)
        self._finish(self._process or self._start())
        for _ in range(20):
            if not any(record["status"] in ("model_failed", "judge_failed") for record in self.records()):
                break
            self.counts["retries of failed units"] += 1
            self._finish(self._start("--retry-failed"))

    def records(self) -> list[Json]:
        """The lines of the journal."""
        return [json.loads(line) for line in self.journal.splitlines()]

    def _start(self, *flags: str, most_bytes: int = 0) -> subprocess.Popen[str]:
        roles = [word for role in ("doctor", "patient", "measurement", "moderator") for word in (f"--{role}-llm", "m")]
        command = ["resume", str(self.folder), *flags]
        if self.folder is None:
            command = [
                "run",
                "--dataset",
                "cases.jsonl",
                "--num-scenarios",
                str(self.cases),
                *roles,
                "--judge",
                "original",
            ]
            command += ["--doctor", self.doctor, "--simulator", "free", "--repeats", str(REPEATS)]
            command += ["--total-inferences", str(TURNS), "--workers", "16", "--output-dir", "out"]
        else:
            self.counts["resumes"] += 1
        child = [sys.executable, __file__, "--child", str(self.chance.randrange(10**6)), str(most_bytes)]
        with (self._home / "stderr").open("w") as errors:
            self._process = subprocess.Popen(
                [*child, *command, "--quiet"], cwd=self._home, stdout=subprocess.DEVNULL, stderr=errors, text=True
            )
        return self._process

    def _ended(self, *expected: int) -> bool:
        """Whether no process runs; one that ended in a way that is not documented is a problem."""
        if self._process is None:
            return True
        code = self._process.poll()
        if code is None:
            return False
        said = (self._home / "stderr").read_text()
        if "Traceback" in said or code not in (expected or (0, 3)):
            self.problems.append(f"{self.doctor}: exit code {code}: {said[-2000:]}")
        if code == 3 and "agentclinic resume" not in said:
            self.problems.append(f"{self.doctor}: no command to resume: {said[-500:]}")
        self.counts["stops with the command to resume"] += code == 3
        self._process = None
        if len(self.problems) > 10:
            raise SystemExit("\n".join(self.problems))
        return True

    def _end(self, number: int, *expected: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._ended(*expected)

    def _finish(self, process: subprocess.Popen[str]) -> None:
        while process.wait() == 3:
            self._ended()
            process = self._start()
        self._ended()

    def _kill(self, _away: float) -> None:
        self.counts["kills"] += 1
        self._end(signal.SIGKILL, -signal.SIGKILL, 0, 3)

    def _disk(self, _away: float) -> None:
        self.counts["interrupts"] += 1
        self._end(signal.SIGINT, 130, 0, 3)
        self.counts["full disks"] += 1
        self._start(most_bytes=len(self.journal) + self.chance.randrange(1, 200_000)).wait()
        self._ended(0, 1, 3)

    def _away(self, away: float) -> None:
        self.counts["times the server was away"] += 1
        self._server.go()
        time.sleep(away)
        self._server.come()


class Account(NamedTuple):
    """What became of the planned units."""

    outcomes: Counter[str]
    lost: list[str]
    duplicated: list[str]
    wrong: list[str]


def account(records: Iterable[Json], cases: int, doctor: str) -> Account:
    """Compare the lines of a journal with the plan and with the right outcomes."""
    found: dict[tuple[int, int], list[Json]] = {(row, turn): [] for row in range(cases) for turn in range(REPEATS)}
    wrong, outcomes = [], Counter[str]()
    for record in records:
        unit = record["scenario_id"], record["repeat"]
        found.setdefault(unit, []).append(record)
        right, fault = right_outcome(unit[0], doctor), record["fault"] or {}
        got = Right(record["status"], record["correct"], record["diagnosis_text"], fault.get("error"))
        missing = got.status in ("model_failed", "judge_failed") and got.correct is None
        outcomes[got.status + {True: ", right", False: ", wrong"}.get(got.correct, "")] += 1
        if unit[0] >= cases or not (missing or got == right):
            wrong.append(f"{doctor} {unit}: not {right} but {str(got)[:300]}: {fault.get('message')}")
    lost = [f"{doctor} {unit}" for unit, there in found.items() if not there]
    return Account(outcomes, lost, [f"{doctor} {unit}" for unit, there in found.items() if len(there) > 1], wrong)


def soak(given: argparse.Namespace) -> bool:
    """Play both runs and print the account; returns whether nothing was lost, doubled or scored wrong."""
    began, cases = time.monotonic(), given.encounters // len(given.doctor) // REPEATS
    server = Servant(given.seed)
    server.come()
    counts, outcomes, bad = Counter[str](), Counter[str](), dict[str, list[str]]()
    with tempfile.TemporaryDirectory() as place:
        for doctor in given.doctor:
            home = Path(given.keep or place, doctor)
            home.mkdir(parents=True)
            run = Soak(doctor, cases, given.seed, home, server)
            run.play(["kill"] * given.kills + ["disk"] * given.disks + ["away"], given.away)
            found = account(run.records(), cases, doctor)
            counts += run.counts
            outcomes += found.outcomes
            summary = json.loads((run.folder / "summary.json").read_text()) if run.folder else {}
            right = sum(right_outcome(row, doctor).correct for row in range(cases)) * REPEATS
            if (summary.get("presented"), summary.get("correct")) != (cases * REPEATS, right):
                run.problems.append(f"{doctor}: the summary has other counts")
            for kind, units in {**found._asdict(), "problems": run.problems}.items():
                if kind != "outcomes":
                    bad.setdefault(kind, []).extend(units)
    server.go()
    asked = server.injected.pop("requests")
    spoiled = sum(server.injected.values())
    print(f"{cases * REPEATS * len(given.doctor):,} encounters, {asked:,} requests, {time.monotonic() - began:.0f} s")
    print(f"faults injected: {spoiled:,} ({spoiled / asked:.0%} of requests)")
    for title, rows in (("", server.injected), ("what befell the runs:", counts), ("outcomes:", outcomes)):
        print(title, *(f"  {name:34}{count:7,}" for name, count in sorted(rows.items())), sep="\n")
    for kind, units in bad.items():
        print(f"{'scored wrong' if kind == 'wrong' else kind}: {len(units)}", *units[:5], sep="\n  ")
    return not any(bad.values())


if __name__ == "__main__":
    if "--until-stdin-closes" in sys.argv:
        main(SoakServer())
    elif sys.argv[1:2] == ["--child"]:
        play(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
    else:
        parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
        parser.add_argument("--encounters", type=int, default=2000)
        parser.add_argument("--doctor", nargs="*", choices=DOCTORS, default=DOCTORS, help="default: each, in turn")
        parser.add_argument("--kills", type=int, default=10, help="of each run")
        parser.add_argument("--disks", type=int, default=2, help="how often the disk of each run is full")
        parser.add_argument("--away", type=float, default=60.0, help="seconds the server is away in each run")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--keep", help="a new folder for the runs, which are otherwise removed")
        sys.exit(0 if soak(parser.parse_args()) else 1)
