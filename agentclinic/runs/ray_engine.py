"""The Ray engine: the main process gives items to workers on a cluster and reads the results from their shards.

A worker that dies is replaced; what it had finished is in its shard, and the rest is given to others. The limits on
requests are kept by one actor on the main process's machine. When the main process ends, Ray ends the others.
"""

from __future__ import annotations

import asyncio
import pickle
import platform
import secrets
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self

import anyio

from agentclinic import trust
from agentclinic.config import Settings
from agentclinic.errors import AgentClinicError, ConfigError, InputError
from agentclinic.files import write_whole
from agentclinic.models.gate import Gate
from agentclinic.models.shared_limit import Limits
from agentclinic.runs import ray_cluster as cluster
from agentclinic.runs import shards
from agentclinic.runs.ray_cluster import Node
from agentclinic.runs.ray_worker import CHECK, Opened, Order, Refused, Worker
from agentclinic.runs.shards import EngineError, Item, Job, Result
from agentclinic.version import __version__

TRIES = 4
"""How often an item is given to a worker: if the worker dies each time, the item may be what kills it."""
OPENING = 120.0
"""Seconds that a worker may take to start: importing from network storage is slow."""
LARGEST_ORDER = 90_000
"""Bytes. Ray sends an argument of up to 100 KB directly; a larger one goes through its object store, which may write it
to a disk, and the order holds the keys."""


@dataclass(eq=False)
class _Worker:
    """A worker, and the items it has."""

    name: str
    actor: Any
    shard: Path
    node: str
    items: set[str] = field(default_factory=set)
    """The keys of what it is working on."""
    finished: dict[str, str] = field(default_factory=dict)
    """When it has died: the results of those items that are in its shard."""
    dead: bool = False
    left: bool = False
    """Whether we no longer wait for an item that it may still be working on."""


class RayWorkers(Generic[Item, Result]):
    """The workers of one job: `async with RayWorkers(...) as workers: await workers.work(item)`."""

    def __init__(self, settings: Settings, gate: Gate, job: Job[Item, Result], say: Callable[[str], None]) -> None:
        self._settings = settings
        self._gate = gate
        self._job = job
        self._say = say
        self._mark = secrets.token_hex(16)
        self._workers: list[_Worker] = []
        self._numbers = iter(range(1_000_000))
        self._changed = asyncio.Event()
        """Set and replaced once a lost worker has been replaced, or could not be."""
        self._starting: set[asyncio.Task[None]] = set()
        self._hopeless: str | None = None

    async def __aenter__(self) -> Self:
        self._ray = cluster.connect(self._settings)
        try:
            nodes = cluster.nodes(self._ray, self._gate)
            count = cluster.processes(self._settings, nodes)
            self._most = self._settings.run.workers + count
            self._shards = shards.folder_for(self._job.journal)
            write_whole(self._shards / CHECK, self._mark, durable=False)
            self._limits = self._ray.remote(Limits).options(
                num_cpus=0,
                max_concurrency=1000 + 10 * count,  # two calls for each worker and endpoint
                max_restarts=-1,
                max_task_retries=-1,
                **_on(self._ray.get_runtime_context().get_node_id(), soft=False),
            ).remote()  # fmt: skip
            self._workers += await asyncio.gather(*(self._start(node) for node in cluster.spread(nodes, count)))
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self._close()

    async def _start(self, node: Node) -> _Worker:
        name = f"{self._mark[:8]}-{next(self._numbers):04d}"
        actor_class = self._ray.remote(Worker)
        actor = actor_class.options(
            num_cpus=1, max_restarts=0, max_concurrency=self._most, **_on(node.id, soft=not self._gate.closed)
        ).remote()
        order = pickle.dumps(
            Order(
                self._job,
                trust.shared(self._settings),
                cluster.secrets_of(self._settings),
                self._gate.data_class,
                name,
                self._shards,
                Path.cwd(),
                self._mark,
            )
        )
        if len(order) > LARGEST_ORDER:
            raise ConfigError(
                f"the settings are too large to be sent to workers ({len(order):,} bytes, at most {LARGEST_ORDER:,}); "
                "shorten llm.responses or endpoints"
            )
        try:
            opened: Opened = await asyncio.wait_for(_result(actor.open.remote(order, self._limits)), OPENING)
        except TimeoutError:
            self._ray.kill(actor)
            raise EngineError(f"a worker on {node.name} did not start within {OPENING:g} s") from None
        except self._ray.exceptions.RayError as error:
            raise EngineError(f"a worker on {node.name} cannot start ({_short(error)})") from None
        self._check(opened, name)
        return _Worker(name, actor, self._shards / f"{name}.jsonl", node.id)

    def _check(self, opened: Opened, name: str) -> None:
        """Refuse a worker that might give different results, or whose files we cannot see."""
        ours = (__version__, platform.python_version().rpartition(".")[0])
        theirs = (opened.version, opened.python.rpartition(".")[0])
        if theirs != ours:
            raise ConfigError(
                f"{opened.host} has AgentClinic {theirs[0]} on Python {theirs[1]}, and this machine {ours[0]} on "
                f"{ours[1]}; install the same versions on all machines"
            )
        if opened.problem:
            raise ConfigError(f"{opened.host}: {opened.problem}")
        check = self._shards / f"{name}.check"
        try:
            same = check.read_text() == self._mark
            check.unlink()
        except OSError:
            same = False
        if not same:
            raise ConfigError(
                f"what {opened.host} writes to {self._shards} cannot be read here; give an output_dir on storage that "
                "every machine of the cluster sees"
            )

    async def work(self, item: Item) -> Result:
        """Give an item to the worker that has the fewest, and wait for its result."""
        key, sent = self._job.key(item), self._job.sent(item)
        for _ in range(TRIES):
            worker = await self._free()
            worker.items.add(key)
            try:
                answer = await _result(worker.actor.work.remote(key, sent))
            except asyncio.CancelledError:
                worker.left = True
                raise
            except self._ray.exceptions.RayTaskError as error:
                raise EngineError(f"a worker failed ({_short(error.cause)})") from None
            except self._ray.exceptions.RayError:
                self._lose(worker)
                if key not in worker.finished:
                    continue
                return self._job.decode(worker.finished.pop(key))
            finally:
                worker.items.discard(key)
            if isinstance(answer, Refused):
                raise InputError(answer.message)
            return self._job.decode(await self._read(worker, answer))
        raise EngineError(f"the worker that was given {key} died {TRIES} times; look for its cause in Ray's logs")

    async def _read(self, worker: _Worker, place: shards.Place) -> str:
        """A result from a shard; network storage may take a moment to show it."""
        for wait in (0.05, 0.5, 5.0):
            with suppress(AgentClinicError):
                return shards.read_place(worker.shard, place)
            await anyio.sleep(wait)
        return shards.read_place(worker.shard, place)

    async def _free(self) -> _Worker:
        while True:
            if self._hopeless:
                raise EngineError(self._hopeless)
            alive = [worker for worker in self._workers if not worker.dead]
            if alive:
                return min(alive, key=lambda worker: len(worker.items))
            await self._changed.wait()

    def _lose(self, worker: _Worker) -> None:
        """Make sure that a worker that cannot be reached is dead, and start another."""
        if worker.dead:
            return
        worker.dead = True
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(worker.actor)
        self._limits.forget.remote(worker.name)
        worker.finished = shards.find(worker.shard, worker.items)  # once: a long run's shard takes seconds to read
        unfinished = len(worker.items) - len(worker.finished)
        self._say(f"a worker process died; its {unfinished} unfinished items are given to others")
        task = asyncio.create_task(self._replace())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _replace(self) -> None:
        try:
            alive = Counter(worker.node for worker in self._workers if not worker.dead)
            nodes = cluster.nodes(self._ray, self._gate)
            if not nodes:
                raise EngineError("no machine of the cluster has a CPU for a worker")
            node = min(nodes, key=lambda node: alive[node.id] / node.cpus)
            self._workers.append(await self._start(node))
        except AgentClinicError as error:
            starting = [task for task in self._starting if task is not asyncio.current_task() and not task.done()]
            if all(worker.dead for worker in self._workers) and not starting:
                self._hopeless = f"the last worker died and could not be replaced: {error}"
            else:
                self._say(f"the worker could not be replaced: {error}")
        self._changed.set()
        self._changed = asyncio.Event()

    async def _close(self) -> None:
        for task in self._starting:
            task.cancel()
        # A worker in the middle of an item is not asked to close: the item would fail, and be recorded as failed.
        idle = [worker for worker in self._workers if not (worker.dead or worker.left or worker.items)]
        closing = [_result(worker.actor.close.remote()) for worker in idle]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*closing, return_exceptions=True), 5.0)
        for worker in self._workers:
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(worker.actor)
        if hasattr(self, "_limits"):
            self._ray.kill(self._limits)
        cluster.disconnect()


async def _result(reference: Any) -> Any:
    return await reference


def _on(node: str, *, soft: bool) -> dict[str, Any]:
    """Options that start an actor on a machine; if `soft`, on another if that one is gone."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node, soft=soft)}


def _short(error: BaseException) -> str:
    """The type of an error only: its text may quote data."""
    return type(error).__name__
