"""A worker process of a Ray cluster: does items of a job and writes each result to its shard.

Ray makes an actor of `Worker` and one of `Limits`. The settings, with the keys in them, come as an argument of `open`:
arguments of that size go from process to process and are not kept by Ray, neither in its object store nor in its logs.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import warnings
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agentclinic.config import Settings, provide
from agentclinic.errors import AgentClinicError
from agentclinic.models.shared_limit import Lease, Report, SharedLimiter
from agentclinic.privacy import DataClass
from agentclinic.runs.ray_cluster import FOR_REQUESTS
from agentclinic.runs.shards import Job, Place, Shard, Work, is_settled
from agentclinic.version import __version__

CHECK = "check"
"""A file among the shards that shows a worker that it can see what the main process writes."""


@dataclass(frozen=True)
class Order:
    """What a worker needs to start."""

    job: Job[Any, Any]
    settings: Settings
    variables: Mapping[str, str]
    """Environment variables: those with the keys that the settings refer to, and those that requests need."""
    data_class: DataClass
    name: str
    """The worker's name, and that of its shard."""
    shards: Path
    folder: Path
    """The working folder of the main process, used if this machine has it."""
    mark: str
    """What the main process wrote to the file `CHECK`."""


class Opened(NamedTuple):
    """What a worker reports about itself when it starts."""

    version: str
    python: str
    host: str
    problem: str | None = None
    """Why it cannot work."""


class Refused(NamedTuple):
    """An item could not be done at all, for a reason that the user must deal with."""

    message: str


class Worker:
    """The process, as the main process sees it."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()

    async def open(self, order: bytes, limits: Any) -> Opened:
        """Start; `order` is a pickled `Order`, `limits` the actor that keeps the limits."""
        opened = Opened(__version__, platform.python_version(), platform.node())
        try:
            given: Order = pickle.loads(order)
        except Exception as error:  # noqa: BLE001 - usually another version of the package
            return opened._replace(problem=f"cannot read the order ({type(error).__name__})")
        problem = _not_shared(given)
        if problem:
            return opened._replace(problem=problem)
        if given.data_class is DataClass.CREDENTIALED:
            _be_silent()  # what a program prints would go to Ray's logs
        warnings.simplefilter("ignore")  # the main process has shown them
        with suppress(OSError):
            os.chdir(given.folder)
        provide(given.variables)
        # Other users cannot read variables that are set while a process runs.
        os.environ.update({name: value for name, value in given.variables.items() if FOR_REQUESTS.fullmatch(name)})
        ours = _OurLimits(limits, given.name)

        def share(address: str, key: str, start: int) -> SharedLimiter:
            # A keyed hash: the name must not reveal the key.
            name = hashlib.blake2b(f"{address} {key}".encode(), key=given.mark.encode()).hexdigest()[:24]
            return SharedLimiter(ours, name, start)

        self._job = given.job
        self._shard = Shard(given.shards / f"{given.name}.jsonl")
        self._stack.callback(self._shard.close)
        try:
            self._work: Work[Any, Any] = await self._stack.enter_async_context(given.job.opened(given.settings, share))
        except AgentClinicError as error:
            return opened._replace(problem=str(error))
        return opened

    async def work(self, key: str, item: Any) -> Place | Refused:
        """Do an item, given as the job sends it; returns where in the shard the result is."""
        try:
            result = await self._work(item)
        except AgentClinicError as error:
            return Refused(str(error))
        return self._shard.append(key, self._job.encode(result), settled=is_settled(self._job, result))

    async def close(self) -> None:
        await self._stack.aclose()


class _OurLimits:
    """The limits in their actor, as asked by this process."""

    def __init__(self, actor: Any, process: str) -> None:
        self._actor = actor
        self._process = process

    def lease(self, endpoint: str, start: int, wanted: int) -> Awaitable[Lease]:
        asked: Awaitable[Lease] = self._actor.lease.remote(self._process, endpoint, start, wanted)
        return asked

    def report(self, endpoint: str, what: Report) -> Awaitable[None]:
        told: Awaitable[None] = self._actor.report.remote(self._process, endpoint, what)
        return told


def _not_shared(order: Order) -> str | None:
    """Why this machine cannot see what the main process writes; None if it can."""
    try:
        if (order.shards / CHECK).read_text() != order.mark:
            return f"{order.shards} is not the folder that the main process uses; give an output_dir that all share"
        (order.shards / f"{order.name}.check").write_text(order.mark)
    except OSError as error:
        return (
            f"{order.shards}: not there, or it cannot be written to ({error.strerror}); "
            "give an output_dir on storage that every machine of the cluster sees"
        )
    return None


def _be_silent() -> None:
    with Path(os.devnull).open("wb") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
