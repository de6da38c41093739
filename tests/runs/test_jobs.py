"""Jobs: what a worker on another machine does with an item is what this process would do, for every command.

The workers here are in this process and are given what Ray would give them: pickled orders, and results through shards.
`test_ray.py` has the real ones.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from generate_support import made, sources, work
from memory_support import failed_run
from runs_support import lines, records, run_here, settings_for, untimed
from scripted_server import ScriptedServer

from agentclinic.config import Settings
from agentclinic.learn.run import LearnJob, learn, with_learner
from agentclinic.models.gate import Gate
from agentclinic.models.retry import Limiter
from agentclinic.runs import ray_cluster, ray_engine, shards
from agentclinic.runs.regrade import regrade
from agentclinic.runs.shards import is_settled
from agentclinic.runs.verdicts import JudgeJob

pytestmark = pytest.mark.anyio


class Workers:
    """A worker in this process."""

    done: ClassVar[list[str]] = []

    def __init__(self, settings: Settings, gate: Gate, job: Any, say: Any) -> None:
        self._settings: Settings = pickle.loads(pickle.dumps(settings))
        self._sent = job
        self._job: Any = pickle.loads(pickle.dumps(job))

    async def __aenter__(self) -> Self:
        self._path = shards.folder_for(self._job.journal) / "worker.jsonl"
        self._shard = shards.Shard(self._path)
        self._opened = self._job.opened(self._settings, lambda address, key, start: Limiter(start))
        self._work = await self._opened.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.__aexit__(None, None, None)
        self._shard.close()

    async def work(self, item: Any) -> Any:
        job = self._job
        result = await self._work(pickle.loads(pickle.dumps(self._sent.sent(item))))
        key = self._sent.key(item)
        place = self._shard.append(key, job.encode(result), settled=is_settled(job, result))
        self.done.append(key)
        return self._sent.decode(shards.read_place(self._path, place))


@pytest.fixture(autouse=True)
def workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "RayWorkers", Workers)
    monkeypatch.setattr(ray_cluster, "connect", lambda settings: None)
    monkeypatch.setattr(ray_cluster, "nodes", lambda ray, gate: [ray_cluster.Node("a", "here", "127.0.0.1", 4)])
    Workers.done = []


def on(settings: Settings, engine: str) -> Settings:
    return settings.model_copy(update={"run": settings.run.model_copy(update={"engine": engine})})


async def test_encounters(tmp_path: Path) -> None:
    settings = settings_for(None, tmp_path / "out", num_scenarios=2, doctor="uncertainty")
    _, local = await run_here(settings)
    finished, elsewhere = await run_here(on(settings, "ray"))
    assert untimed(elsewhere) == untimed(local)
    assert len(Workers.done) == 2
    assert not (finished.folder / shards.FOLDER).exists(), "everything is in the journal"


async def test_verdicts(server: ScriptedServer, tmp_path: Path) -> None:
    finished, _ = await run_here(settings_for(None, tmp_path / "out", num_scenarios=3))
    server.control(rules=[{"match": {"purpose": "moderator", "nth": 2}, "fault": 400}], moderator="Yes")
    settings = settings_for(server, tmp_path)
    first = await regrade(finished.folder, on(settings, "ray"), "a")
    assert (first.judged, first.failed, len(Workers.done)) == (2, 1, 3)
    server.control(moderator="Yes")

    # A command that was killed had judged one more: it is not asked for again.
    (unjudged,) = {record["scenario_id"] for record in records(finished.folder)} - {
        entry["scenario_id"] for entry in lines(first.path) if entry["correct"] is not None
    }
    again = await regrade(finished.folder, settings, "b")
    entry = next(one for one in lines(again.path) if one["scenario_id"] == unjudged)
    key = f"{unjudged}:{entry['case_hash']}:0"
    shard = shards.Shard(shards.folder_for(first.path) / "killed.jsonl")
    job = JudgeJob(first.path, finished.folder, Gate().data_class, resynthesize=False)
    shard.append(key, job.encode(entry), settled=True)
    shard.close()
    server.reset()
    last = await regrade(finished.folder, settings, "a")
    assert (last.judged, last.failed, server.log()) == (3, 0, [])
    same = [{key: value for key, value in line.items() if key != "checksum"} for line in lines(last.path)]
    assert sorted(same, key=lambda line: line["scenario_id"]) == [
        {key: value for key, value in line.items() if key != "checksum"} for line in lines(again.path)
    ]


async def test_lessons(server: ScriptedServer, tmp_path: Path) -> None:
    run = await failed_run(server, tmp_path)
    settings = with_learner(settings_for(None, tmp_path), "builtin", None)
    local, elsewhere = tmp_path / "local.jsonl", tmp_path / "ray.jsonl"
    learned = await learn([run], local, settings)
    assert learned == await learn([run], local, settings)
    there = await learn([run], elsewhere, on(settings, "ray"))
    assert there.encounters == learned.encounters == len(Workers.done) > 0
    assert lines(elsewhere) == lines(local)
    assert there.experiences == learned.experiences > 0


async def test_cases(tmp_path: Path) -> None:
    local = work(tmp_path / "local.jsonl", sources(3))
    elsewhere = work(tmp_path / "ray.jsonl", sources(3), engine="ray")
    await made(local)
    first = await made(elsewhere)
    assert lines(elsewhere.output) == lines(local.output)
    assert (first.missing, len(Workers.done)) == (0, 3)
    assert (await made(elsewhere)).missing == 0
    assert len(Workers.done) == 3, "nothing was left to make"


def test_a_job_holds_no_data(tmp_path: Path) -> None:
    jobs = (JudgeJob(tmp_path, tmp_path, Gate().data_class, False), LearnJob(tmp_path, Gate().data_class))
    assert all(len(pickle.dumps(job)) < 1000 for job in jobs)
