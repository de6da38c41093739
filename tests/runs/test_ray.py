"""The Ray engine, on a real cluster of several processes: the same records as local, and nothing is lost or leaks."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from runs_support import LONG, Json, asked, records, run_here, settings_for, units, untimed
from scripted_server import ScriptedServer

from agentclinic.config import Settings
from agentclinic.runs.execute import Finished, execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import plan_again, resume

ray: Any = pytest.importorskip("ray", reason="Ray is not installed (the extra `ray`)")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]

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

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def wide(cluster: Any) -> Any:
    """The cluster with two more CPUs on a second node."""
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
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


async def until(condition: Callable[[], bool], what: str, task: asyncio.Task[Finished] | None = None) -> None:
    """Wait for something to become true, while a run goes on in this process."""
    with anyio.move_on_after(LONG):
        while not condition():
            assert task is None or not task.done(), f"the run ended before {what}: {task and task.exception()}"
            await anyio.sleep(0.02)
        return
    raise AssertionError(f"waited in vain for {what}")


def workers() -> list[int]:
    """The process ids of the workers that are alive."""
    from ray._private import state

    found = state.actors().values()
    return [one["Pid"] for one in found if one["State"] == "ALIVE" and one["ActorClassName"] == "Worker"]


def same(before: list[Json], after: list[Json]) -> bool:
    """Whether two runs have the same records, in whatever order."""
    ours, theirs = (sorted(map(untimed, each), key=lambda entry: units([entry])) for each in (before, after))
    return ours == theirs and bool(ours)


HELD = [{"match": {"purpose": "moderator"}, "fault": "hold"}]
"""Every encounter waits for its verdict until the script changes."""


async def test_local_and_ray_give_the_same_records(cluster: Any, tmp_path: Path) -> None:
    _, local = await run_here(settings_for(None, tmp_path / "local", num_scenarios=3, repeats=2))
    done, distributed = await run_here(on_ray(None, tmp_path / "ray", num_scenarios=3, repeats=2))

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
