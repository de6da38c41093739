"""The Ray engine, on a real cluster of several processes: the same records as local, and nothing is lost or leaks."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from generate_support import question
from helpers import osce, write_rows
from runs_support import (
    AT_ENDPOINT,
    CLINIC,
    Json,
    asked,
    environment,
    lines,
    only_run,
    point_at,
    records,
    run_here,
    settings_for,
    units,
    untimed,
)
from runs_support import until as until_then
from scripted_server import LONG, ScriptedServer

from agentclinic.cli import main
from agentclinic.config import Settings
from agentclinic.runs.execute import Finished, execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.ray_engine import TRIES
from agentclinic.runs.resume import plan_again, resume

ray: Any = pytest.importorskip("ray", reason="Ray is not installed (the extra `ray`)")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]

KEY = "sk-planted-0123456789abcdefghij"
LOCAL = {"engine": "local", "address": None, "processes": None}


@pytest.fixture(scope="module")
def ray_folder() -> Iterator[Path]:
    """Ray's temporary folder; its path must be short, because sockets are in it."""
    folder = Path(tempfile.mkdtemp(prefix="ac-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(ray_folder: Path) -> Iterator[Any]:
    """A cluster that this process is connected to, with two CPUs; runs in this process use it."""
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def wide(cluster: Any) -> Any:
    """The cluster with two more CPUs on a second node."""
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes(LONG)
    return cluster


class Said(Progress):
    """What a run says to its user."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def on_ray(server: ScriptedServer | None, output: Path, *, runtime: Json | None = None, **run: Any) -> Settings:
    """Settings of a run in this process, on the cluster."""
    return settings_for(server, output, runtime=runtime, **{"engine": "ray", "workers": 4, "processes": 2, **run})


def start_here(settings: Settings) -> tuple[asyncio.Task[Finished], Said]:
    """Start a run in this process and leave it running."""
    said = Said()
    return asyncio.create_task(execute(make_plan(settings), said)), said


async def finished(task: asyncio.Task[Finished]) -> tuple[Finished, list[Json]]:
    """Wait for the end of a run; its records."""
    done = await asyncio.wait_for(task, LONG)
    return done, records(done.folder)


async def resume_here(folder: Path, overrides: Json) -> Finished:
    """Resume a run in this process."""
    return await resume(plan_again(folder, overrides), folder, Progress())


async def until(condition: Callable[[], bool], what: str, task: asyncio.Task[Finished] | None = None) -> None:
    """Wait for something to become true, while a run goes on in this process."""
    with anyio.move_on_after(LONG):
        while not condition():
            assert task is None or not task.done(), f"the run ended before {what}: {task and task.exception()}"
            await anyio.sleep(0.02)
        return
    raise AssertionError(f"waited in vain for {what}")


def workers(node: str | None = None) -> list[int]:
    """The process ids of the workers that are alive, on all nodes or on one."""
    from ray._private import state

    found = [one for one in state.actors().values() if one["State"] == "ALIVE" and one["ActorClassName"] == "Worker"]
    return [one["Pid"] for one in found if node in (None, one["Address"]["NodeID"])]


def list_of_jobs() -> list[Any]:
    """What the cluster shows of every command that has used it."""
    from ray._private import state

    jobs: Any = state.jobs
    return list(jobs())


def shard_lines(folder: Path) -> list[Json]:
    """All results in the shards of a run."""
    return [line for path in (folder / "shards").rglob("*.jsonl") for line in lines(path)]


def same(before: list[Json], after: list[Json]) -> bool:
    """Whether two runs have the same records, in whatever order."""
    ours, theirs = (sorted(map(untimed, each), key=lambda entry: units([entry])) for each in (before, after))
    return ours == theirs and bool(ours)


HELD = [{"match": {"purpose": "moderator"}, "fault": "hold"}]
"""Every encounter waits for its verdict until the script changes."""


@pytest.mark.slow
async def test_local_and_ray_give_the_same_records(cluster: Any, tmp_path: Path) -> None:
    _, local = await run_here(settings_for(None, tmp_path / "local", num_scenarios=3, repeats=2))
    done, distributed = await run_here(on_ray(None, tmp_path / "ray", num_scenarios=3, repeats=2, processes=1))

    assert same(local, distributed)
    assert (done.missing, done.reason) == (0, None)
    assert not (done.folder / "shards").exists()


async def test_a_killed_worker_loses_nothing_and_every_unit_is_recorded_once(
    cluster: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=HELD)
    task, said = start_here(on_ray(server, tmp_path / "out", num_scenarios=6))
    await until(lambda: asked(server, "moderator") == 4, "four verdicts to be waited for", task)
    before = workers()
    assert len(before) == 2
    os.kill(before[0], signal.SIGKILL)
    server.control(rules=[])

    done, written = await finished(task)

    assert units(written) == [(row, 0) for row in range(6)]
    assert {record["status"] for record in written} == {"diagnosed"}
    assert (done.missing, done.summary.presented) == (0, 6)
    assert "a worker process died; its 2 unfinished items are given to others" in said.lines
    assert asked(server, "moderator") == 8, "only what the killed worker had was played again"


@pytest.mark.slow
async def test_other_doctors_and_a_server_give_the_same_records(
    cluster: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    kinds: dict[str, tuple[ScriptedServer | None, Json]] = {
        "uncertainty": (None, {"doctor": "uncertainty"}),
        "policy": (None, {"doctor_test_policy_enabled": True}),
        "server": (server, {}),
    }
    for kind, (at, run) in kinds.items():
        one, local = await run_here(settings_for(at, tmp_path / kind / "local", num_scenarios=4, **run))
        other, distributed = await run_here(on_ray(at, tmp_path / kind / "ray", num_scenarios=4, **run))
        assert same(local, distributed), kind
        ours, theirs = ({path.relative_to(each) for path in each.rglob("*")} for each in (one.folder, other.folder))
        assert ours == theirs, "session files are there as well"


# Killed


def as_command(cluster: Any, *more: str | Path) -> list[str | Path]:
    """A run as a process of its own, on the cluster."""
    where = ["--engine", "ray", "--address", cluster.address, "--processes", "2", "--workers", "4"]
    return ["run", "--output_dir", "out", "--num_scenarios", "6", *AT_ENDPOINT, *where, *more]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_killed_command_loses_nothing_and_is_resumed_on_either_engine(
    engine: str, cluster: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    """It is killed when four results are in the workers' shards and none is in the journal."""
    point_at(tmp_path, server)
    server.control(rules=HELD)
    command = [*CLINIC, *map(str, as_command(cluster, "--openai-api-key", KEY))]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(OPENAI_BASE_URL=server.base_url),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until_then(lambda: asked(server, "moderator") == 4, "four verdicts to be waited for")
        folder = only_run(tmp_path / "out")
        assert len(workers()) == 2
        process.send_signal(signal.SIGSTOP)
        server.control(rules=[])
        until_then(lambda: len(shard_lines(folder)) == 4, "four results in shards")
    finally:
        process.kill()
        process.wait()
    assert records(folder) == []
    assert KEY not in json.dumps(list_of_jobs()), "everyone on the cluster can read that list"
    until_then(lambda: not workers(), "the workers to end")

    done = anyio.run(resume_here, folder, LOCAL if engine == "local" else {})

    assert units(records(folder)) == [(row, 0) for row in range(6)]
    assert {record["status"] for record in records(folder)} == {"diagnosed"}
    assert (done.missing, done.summary.presented) == (0, 6)
    assert asked(server, "moderator") == 6, "nothing that was finished was played again"
    assert not (folder / "shards").exists()


@pytest.mark.slow
async def test_the_run_goes_on_without_a_node_that_is_lost(
    cluster: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes(LONG)
    server.control(rules=HELD)
    task, said = start_here(on_ray(server, tmp_path / "out", num_scenarios=8, workers=6, processes=3))
    try:
        await until(lambda: asked(server, "moderator") == 6, "six verdicts to be waited for", task)
        there = workers(node.node_id)
        assert len(there) == 1
        cluster.remove_node(node, allow_graceful=False)
        # A worker notices that its node is gone; on a busy machine it might finish its items before it does.
        await until(lambda: not alive(there), "the worker on the lost node to end", task)
        server.control(rules=[])
        done, written = await finished(task)
    finally:
        cluster.wait_for_nodes(LONG)  # until Ray has noticed: the next test's workers must not be sent there

    assert units(written) == [(row, 0) for row in range(8)]
    assert (done.missing, done.reason) == (0, None)
    assert "a worker process died; its 2 unfinished items are given to others" in said.lines


@pytest.mark.slow
async def test_an_item_that_kills_its_worker_each_time_ends_the_run_with_a_word(cluster: Any, tmp_path: Path) -> None:
    doctor = tmp_path / "deadly.py"
    doctor.write_text(
        "import os, signal\n"
        "class Deadly:\n"
        "    def __init__(self, scenario):\n"
        "        pass\n"
        "    def inference_doctor(self, question):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run: Json = {"doctor": f"{doctor}:Deadly", "num_scenarios": 2, "workers": 1, "processes": 1}
    task, said = start_here(on_ray(None, tmp_path / "out", **run))

    done, written = await finished(task)

    assert f"died {TRIES} times; look for its cause in Ray's logs" in (done.reason or "")
    assert sum("a worker process died" in line for line in said.lines) == TRIES
    assert (written, done.missing, done.interrupted) == ([], 2, False)
    assert len(list((tmp_path / "out").iterdir())) == 1, "it can be resumed"


# Limits


@pytest.mark.slow
async def test_four_workers_keep_below_what_a_server_takes_as_one_process_does(
    wide: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    runtime = {"tries": 30}
    run: Json = {"num_scenarios": 14, "repeats": 3, "workers": 16}
    refused = {}
    for engine, settings in (
        ("local", settings_for(server, tmp_path / "local", runtime=runtime, **run)),
        ("ray", on_ray(server, tmp_path / "ray", runtime=runtime, **{**run, "processes": 4})),
    ):
        server.reset()
        server.control(capacity=4, latency=0.02)
        done, written = await run_here(settings)
        assert {record["status"] for record in written} == {"diagnosed"}
        assert (len(written), done.missing, done.reason) == (42, 0, None)
        refused[engine] = len(server.counts()["refused"])
    # Workers that did not know of each other's 429s would send four times what the server takes, for ever.
    assert 0 < refused["ray"] <= 2 * refused["local"]


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["token_limit", "max_cost"])
async def test_a_budget_ends_the_run_where_it_ends_a_local_one_but_for_what_was_in_flight(
    limit: str, cluster: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    def priced(settings: Settings) -> Settings:
        prices = {"*": {"input": 10.0, "output": 20.0}}
        openai = Settings.model_validate({"openai": {"base_url": server.base_url, "prices": prices}}).openai
        return settings.model_copy(update={"openai": openai})

    runtime = {limit: 12_000 if limit == "token_limit" else 0.15}
    local, alone = await run_here(priced(settings_for(server, tmp_path / "local", runtime=runtime)))
    done, written = await run_here(priced(on_ray(server, tmp_path / "ray", runtime=runtime, workers=2)))

    assert 0 < len(alone) <= len(written) <= len(alone) + 2 < 14
    assert done.missing == 14 - len(written)
    start_of = "the token limit of 12,000 is reached" if limit == "token_limit" else "the budget of $0.1500 is reached"
    assert (local.reason or "").startswith(start_of)
    assert (done.reason or "").startswith(start_of)


@pytest.mark.slow
async def test_a_server_that_is_gone_or_refuses_the_key_ends_the_run_with_the_reason(
    cluster: Any, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": "doctor", "nth": list(range(9, 99))}, "fault": "auth"}])
    refused, written = await run_here(on_ray(server, tmp_path / "refused", workers=2))
    assert "doctor: " in (refused.reason or "")
    assert "401" in (refused.reason or "")
    assert {record["status"] for record in written} == {"diagnosed"}
    assert 0 < len(written) == 14 - refused.missing

    with ScriptedServer() as mortal:
        mortal.control(rules=[{"match": {"purpose": "moderator", "nth": [5, 6, 7, 8]}, "fault": "hold"}])
        task, _ = start_here(on_ray(mortal, tmp_path / "gone"))
        await until(lambda: asked(mortal, "moderator") == 8, "the second four verdicts", task)
        mortal.kill()
        gone, written = await finished(task)
    assert "Encounters that failed for this reason were not recorded" in (gone.reason or "")
    assert {record["status"] for record in written} == {"diagnosed"}
    assert (len(written), gone.missing) == (4, 10)


# Refused


@pytest.mark.slow
def test_settings_that_cannot_be_sent_and_too_many_processes_are_refused_and_leave_no_run(
    cluster: Any, server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    config = json.loads(point_at(tmp_path, server).read_text())
    config["llm"]["responses"] = {"metadata": {"text": "x" * 100_000}}
    (tmp_path / "llm.config.json").write_text(json.dumps(config))
    for flags, complaint in (
        (["--processes", "1"], "the settings are too large to be sent to workers"),
        (["--processes", "99"], "processes 99: the cluster has"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["run", "--engine", "ray", "--output-dir", "out", *flags])
        said = capsys.readouterr().err
        assert ended.value.code == 2, said
        assert complaint in said
        assert "Traceback" not in said
        assert not list(tmp_path.glob("out/*"))


CHART = "Quagmire toe since the seventh regatta"
"""What no log may repeat."""


@pytest.mark.slow
def test_credentialed_cases_stay_on_this_machine_in_private_files_and_out_of_the_logs(
    cluster: Any, ray_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Also if a doctor prints and logs what it hears, and fails with a message that quotes it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talks.py").write_text(
        "import logging, sys\n"
        "class Talks:\n"
        "    def __init__(self, scenario):\n"
        "        self.turns = 0\n"
        "    def inference_doctor(self, question):\n"
        "        print(question, flush=True)\n"
        "        print(question, file=sys.stderr, flush=True)\n"
        "        logging.getLogger().error(question)\n"
        "        self.turns += 1\n"
        "        if self.turns == 3:\n"
        "            raise ValueError(question)\n"
        "        return 'REQUEST TEST: Toe_Biopsy'\n"
    )
    rows = [osce(tests={"Toe_Biopsy": CHART}, truth=f"Frobisher fever {number}") for number in range(2)]
    write_rows(tmp_path / "mimic.jsonl", *rows)
    attested = {
        "zero_retention": True,
        "no_training": True,
        "no_human_review": True,
        "attested_by": "A. Person",
        "attested_on": "2026-01-01",
    }
    settings = {"datasets": {"MIMICIV": "mimic.jsonl"}, "privacy": {"hosts": {"127.0.0.2": attested}}}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps(settings))
    where = ["--engine", "ray", "--processes", "1", "--dataset", "MIMICIV", "--doctor", "talks.py:Talks"]
    command = ["run", *where, "--output-dir", "out", "--quiet"]

    main(command)

    folder = only_run(tmp_path / "out")
    assert CHART in (folder / "scenarios.jsonl").read_text(), "the doctor did hear it"
    assert all(stat.S_IMODE(path.stat().st_mode) in (0o600, 0o700) for path in (folder, *folder.rglob("*")))
    assert not files_with([CHART], ray_folder)
    capsys.readouterr()

    elsewhere = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.2")
    try:
        cluster.wait_for_nodes(LONG)
        with pytest.raises(SystemExit) as ended:
            main([*command[:-2], "elsewhere"])
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert "credentialed data may not go to these machines of the cluster: " in said
        assert "(127.0.0.2)" in said
        assert not (tmp_path / "elsewhere").exists()
        main([*command, "--allow-host", "127.0.0.2"])
    finally:
        cluster.remove_node(elsewhere)


# A cluster that the command starts itself


class Command:
    """A command that starts a cluster of its own, in a process group of its own, as in a terminal."""

    def __init__(self, folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.ray_folder = Path(tempfile.mkdtemp(prefix="ac-", dir="/tmp"))
        ours = {"RAY_TMPDIR": str(self.ray_folder), "RAY_AUTH_MODE": "disabled"}
        self._files = [folder / "stdout", folder / "stderr"]
        with self._files[0].open("wb") as output, self._files[1].open("wb") as errors:
            self.process = subprocess.Popen(
                [*CLINIC, *arguments, "--engine", "ray", "--processes", "1"],
                cwd=folder,
                env=environment(**ours, **(env or {})),
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def stdout(self) -> str:
        return self._files[0].read_text()

    @property
    def stderr(self) -> str:
        return self._files[1].read_text()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that happens while the command runs."""
        until_then(lambda: condition() or self.process.poll() is not None, what)
        assert condition(), f"the command ended before {what}: {self.stdout}{self.stderr}"

    def ours(self) -> dict[int, str]:
        """Command lines of the processes that the command has started and that run, by their ids."""
        parents, shown = {}, {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents[int(path.name)] = int(parent)
                    shown[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        found = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return {pid: shown[pid] for pid in found - {self.process.pid}}

    def end(self) -> None:
        """Kill what is left of it."""
        for pid in self.ours():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.ray_folder, ignore_errors=True)


def alive(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text()]


def files_with(secrets: Iterable[str], *folders: Path) -> list[tuple[Path, str]]:
    """The files that hold one of these texts, and which."""
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert found
    return [(path, secret) for path in found for secret in secrets if secret.encode() in path.read_bytes()]


RUN = ["run", "--output_dir", "out", "--num_scenarios", "5", "--workers", "2", *AT_ENDPOINT]


@pytest.mark.slow
@pytest.mark.parametrize("whole_group", [True, False])
def test_ctrl_c_once_lets_work_in_progress_finish(whole_group: bool, server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=HELD)
    command = Command(tmp_path, *RUN, "--json")
    try:
        command.until(lambda: asked(server, "moderator") == 2, "two verdicts to be waited for")
        started = command.ours()
        if whole_group:  # and a worker dies, which Ray would report on standard output
            (worker,) = (pid for pid, shown in started.items() if "ray::Worker" in shown)
            os.kill(worker, signal.SIGKILL)
            command.until(lambda: asked(server, "moderator") == 4, "both to be asked for again")
            started |= command.ours()
        (os.killpg if whole_group else os.kill)(command.process.pid, signal.SIGINT)
        command.until(lambda: "press Ctrl-C again to stop now" in command.stderr, "the word on Ctrl-C")
        server.control(rules=[])
        assert command.process.wait(LONG) == 130
        until_then(lambda: not alive(started), "Ray's processes to end")
    finally:
        command.end()

    folder = only_run(tmp_path / "out")
    assert units(records(folder)) == [(0, 0), (1, 0)]
    assert json.loads(command.stdout)["missing"] == 3
    assert "3 of 5 scenarios were not played" in command.stderr
    assert f"agentclinic resume {folder.relative_to(tmp_path)}" in command.stderr
    assert "Traceback" not in command.stderr


@pytest.mark.slow
def test_ctrl_c_twice_stops_now_and_records_nothing_of_work_in_progress(server: ScriptedServer, tmp_path: Path) -> None:
    point_at(tmp_path, server)
    server.control(rules=HELD)
    command = Command(tmp_path, *RUN)
    try:
        command.until(lambda: asked(server, "moderator") == 2, "two verdicts to be waited for")
        started = command.ours()
        os.killpg(command.process.pid, signal.SIGINT)
        command.until(lambda: "press Ctrl-C again to stop now" in command.stderr, "the word on Ctrl-C")
        os.killpg(command.process.pid, signal.SIGINT)
        assert command.process.wait(LONG) == 130
        until_then(lambda: not alive(started), "Ray's processes to end")
    finally:
        command.end()

    folder = only_run(tmp_path / "out")
    assert records(folder) == []
    assert "5 of 5 scenarios were not played" in command.stderr
    assert "Traceback" not in command.stderr
    server.reset()

    anyio.run(resume_here, folder, LOCAL)

    assert units(records(folder)) == [(row, 0) for row in range(5)]


@pytest.mark.slow
def test_secrets_reach_the_workers_and_neither_disk_nor_logs_nor_the_environment(
    server: ScriptedServer, tmp_path: Path
) -> None:
    password, ward, lab = "planted-password-97531", "sk-ward-0123456789abcdefghij", "sk-lab-0123456789abcdefghij"
    coded = base64.b64encode(f"nurse:{password}".encode()).decode()
    secrets = [KEY, password, ward, lab, coded]
    point_at(tmp_path, server)
    (tmp_path / ".env").write_text(f"LAB_KEY={lab}\n")
    endpoints = {
        "ward": {"base_url": server.base_url, "api_key_env": "WARD_KEY"},
        "lab": {"base_url": server.base_url, "api_key_env": "LAB_KEY"},
        "court": {"base_url": server.base_url.replace("http://", f"http://nurse:{password}@")},
    }
    roles = {"patient_endpoint": "ward", "measurement_endpoint": "lab", "moderator_endpoint": "court"}
    (tmp_path / "agentclinic.config.json").write_text(json.dumps({"run": roles, "endpoints": endpoints}))
    server.control(rules=[*HELD, {"match": {"purpose": "patient"}, "fault": "echo_key"}])
    command = Command(tmp_path, *RUN, env={"OPENAI_API_KEY": KEY, "WARD_KEY": ward, "OPENAI_BASE_URL": server.base_url})
    try:
        command.until(lambda: asked(server, "moderator") == 2, "two verdicts to be waited for")
        started = command.ours()
        assert any("ray::Worker" in shown for shown in started.values())
        for pid, shown in started.items():
            environ = Path(f"/proc/{pid}/environ").read_bytes()
            assert not [secret for secret in secrets if secret.encode() in environ], shown
            assert not [secret for secret in secrets if secret in shown]
        server.control(rules=[])
        assert command.process.wait(LONG) == 0, command.stderr
        assert not files_with(secrets, tmp_path / "out", command.ray_folder)
    finally:
        command.end()

    sent = {entry["purpose"]: entry["headers"].get("authorization") for entry in server.log()}
    expected = {"doctor": f"Bearer {KEY}", "patient": f"Bearer {ward}", "measurement": f"Bearer {lab}"}
    assert sent == {**expected, "moderator": f"Basic {coded}"}
    assert not [secret for secret in secrets if secret in command.stdout + command.stderr]


def listening(pids: Iterable[int]) -> dict[str, int]:
    """The addresses at which processes accept connections, as the system shows them, and which process it is."""
    sockets = {}
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                sockets[entry.readlink().name] = pid
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, address, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in sockets:
                found[address] = sockets[f"socket:[{rest[5]}]"]
    return found


LOOPBACK = ("0100007F:", "0000000000000000FFFF00000100007F:", "00000000000000000000000001000000:")
"""127.0.0.1, the same written as an IPv6 address, and ::1."""


@pytest.mark.slow
def test_workers_do_not_import_what_lies_in_the_working_folder(tmp_path: Path) -> None:
    """A folder that was cloned may hold files with the names of modules, and a config that says `engine: ray`."""
    for name in ("agentclinic", "openai", "pydantic", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'mark')!r}).touch()\n")
    # Like the command `agentclinic`; with `python -m`, Python itself would begin with the working folder.
    command = Command(tmp_path, "run", "--num_scenarios", "1", "--output_dir", "out", env={"PYTHONSAFEPATH": "1"})
    try:
        assert command.process.wait(LONG) == 0, command.stderr
    finally:
        command.end()
    assert not (tmp_path / "mark").exists()


@pytest.mark.slow
def test_a_cluster_of_ours_gets_what_it_needs_and_is_closed_to_others(server: ScriptedServer, tmp_path: Path) -> None:
    """No variable that it does not need, nothing that listens on the network, a token that only its owner can read."""
    point_at(tmp_path, server)
    server.control(rules=HELD)
    withheld = {
        "OPENAI_CUSTOM_HEADERS": "X-Ward: planted-header",
        "HTTPS_PROXY": "http://nurse:planted-proxy@proxy.invalid:3128",
        "all_proxy": "http://nurse:planted-proxy@proxy.invalid:3128",
        "AGENTCLINIC_PASSWORD": "planted-viewer",
        "HF_TOKEN": "planted-token",
        "MY_SETTING": "planted-setting",
        "RAY_AUTH_TOKEN": "planted-auth",
    }
    needed = {
        "LC_TIME": "C.UTF-8",
        "SSL_CERT_FILE": os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"),
    }
    command = Command(tmp_path, *RUN, env={**withheld, **needed, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)})
    try:
        command.until(lambda: asked(server, "moderator") == 2, "two verdicts to be waited for")
        started = command.ours()
        assert len(started) > 5
        for pid, shown in started.items():
            environ = dict(
                entry.split("=", 1) for entry in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in entry
            )
            assert "planted" not in str(environ), (shown, environ)
            if not shown.startswith("ray::"):  # those have written their titles over a part of it
                assert {**environ, **needed} == environ, shown
        where = listening([*started, command.process.pid])
        assert where
        assert not [(address, started.get(pid)) for address, pid in where.items() if not address.startswith(LOOPBACK)]
        (token,) = tmp_path.glob("agentclinic-*/token")
        assert (stat.S_IMODE(token.stat().st_mode), stat.S_IMODE(token.parent.stat().st_mode)) == (0o600, 0o700)
        assert not files_with([token.read_text()], command.ray_folder)
        assert token.read_text() not in str(started)
        server.control(rules=[])
        assert command.process.wait(LONG) == 0, command.stderr
    finally:
        command.end()
    assert not list(tmp_path.glob("agentclinic-*")), "the token is removed"
    assert not (tmp_path / ".ray").exists()
    assert command.stderr.count("RAY_AUTH_MODE") == 0


@pytest.mark.slow
def test_sweep_regrade_learn_and_generate_write_what_they_write_here(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.json").write_text(
        json.dumps({"name": "s", "run": {"num_scenarios": 2}, "matrix": {"doctor": ["door_only", "prior_only"]}})
    )
    write_rows(tmp_path / "questions.jsonl", *(question(number) for number in range(3)))
    written = {}
    for name, engine in {"here": (), "there": ("--engine", "ray", "--processes", "2")}.items():
        there = tmp_path / name
        config = there / "agentclinic.config.json"
        there.mkdir()
        config.write_text(json.dumps({"run": {"output_dir": str(there)}}))
        main(["sweep", "sweep.json", "--config", str(config), "--quiet", *engine])
        arm = there / "s" / "arms" / "doctor-door-only"
        main(["regrade", str(arm), "--name", "again", "--quiet", *engine])
        main(["learn", str(arm), "--output", str(there / "experiences.jsonl"), "--all", "--quiet", *engine])
        source = ("--base-dir", str(tmp_path / "questions.jsonl"), "--output", str(there / "cases.jsonl"))
        main(["generate", "medqa", *source, "--quiet", *engine])
        files = (arm / "scenarios.jsonl", arm / "judgements" / "again.jsonl", there / "experiences.jsonl")
        written[name] = [untimed(lines(path)) for path in (*files, there / "cases.jsonl")]
        assert not list(there.rglob("shards")), "everything is where it belongs"
    assert [len(entries) for entries in written["here"]] == [2, 2, 2, 3]
    in_order = {name: [sorted(map(json.dumps, entries)) for entries in found] for name, found in written.items()}
    assert in_order["there"] == in_order["here"]
