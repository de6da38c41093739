"""One loop over items: encounters to play, diagnoses to judge, encounters to learn from, cases to make.

A campaign works on many items at once, in this process or on a cluster, and has each result written as soon as it is
there. It stops at Ctrl-C, at a limit, at an error that every further request would meet, and when a server is gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic

from agentclinic.config import Settings
from agentclinic.doctors.uncertainty.store import SessionError
from agentclinic.errors import InputError
from agentclinic.models.base import FATAL
from agentclinic.models.gate import Gate
from agentclinic.results.record import Fault
from agentclinic.runs.budget import Budget, Spent, refuse_unpriced
from agentclinic.runs.build import Models, Used
from agentclinic.runs.check import failures, gone, report
from agentclinic.runs.human import Leave
from agentclinic.runs.pool import Pool, Take, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.runs.shards import OUTAGE, EngineError, Item, Job, Result, Work, left_over, remove

FEWEST = 3
"""Failures in a row before the server is asked: one or two happen on a bad day, and asking costs a request."""

Ask = Callable[[Collection[str]], Awaitable[str | None]]
"""Asks the models of these roles once more; returns what is wrong, or None if they answer."""


class Outage:
    """Failures in a row that look like a server that is gone.

    After `FEWEST` of them, and with many workers after as many as can fail from one cause at the same moment, the
    models are asked with one short request. Only if that fails too is the work hopeless; a server that answers it may
    simply have failed on these prompts. Without `ask`, the count decides.
    """

    def __init__(self, workers: int, ask: Ask | None) -> None:
        self._most = max(FEWEST, workers)
        self._ask = ask
        self._asking = False
        self._roles: list[str] = []

    @property
    def suspects(self) -> bool:
        """Whether the last thing that happened was a failure of this kind."""
        return bool(self._roles)

    def answered(self) -> None:
        """Count an item that did not fail in this way: the failures before it are not in a row with others."""
        self._roles.clear()

    async def failed(self, role: str, message: str) -> str | None:
        """Count a failure; returns why the work is hopeless, or None if it is not."""
        self._roles.append(role)
        if len(self._roles) < self._most or self._asking:
            return None
        return f"{role}: {message}" if self._ask is None else await self.confirmed()

    async def confirmed(self) -> str | None:
        """Ask now, if the last thing that happened was a failure; returns why the work is hopeless."""
        if self._ask is None or not self._roles:
            return None
        self._asking = True
        try:
            reason = await self._ask(tuple(dict.fromkeys(self._roles)))
        finally:
            self._asking = False
        if reason is None or not self._roles:  # it answers, or answered another request meanwhile
            self._roles.clear()
            return None
        return reason


@dataclass(kw_only=True)
class Campaign(Generic[Item, Result]):
    """What one command does with its items; a command supplies what differs and calls `run`."""

    settings: Settings
    models: Models
    progress: Progress
    what: str
    """The items, in a message to the user: verdicts, cases."""
    title: str
    """The items, where their number is shown: diagnoses to judge, cases to make."""
    job: Job[Item, Result]
    here: Work[Item, Result]
    """Does an item in this process."""
    record: Callable[[str, Result], None]
    """Keeps a result, also a failure; what must not be lost is on the disk when this returns."""
    count: Callable[[Result], None]
    """Adds what a result cost to `spent`."""
    budget: Budget
    spent: Spent
    done: set[str]
    """Keys of the items that need no more work."""
    line: Callable[[], str] | None = None
    """The progress so far, in a few words, if that is not how many items failed."""
    asked: Sequence[Used] | None = None
    """The models to ask whether a server is gone; those of the roles that failed if not given."""
    show: Callable[[Item, Result], None] | None = None
    """Shows the user a result that has just come in."""
    paid: bool = False
    """Whether the answers are there already: then all of them are read, whatever happens."""
    again: Callable[[Result], bool] | None = None
    """Whether to do an item again although an earlier process left this result of it."""
    at_once: bool = False
    """Whether the first Ctrl-C stops at once."""
    pool: Pool = field(init=False)
    failures: list[Fault] = field(init=False, default_factory=list)
    """Of the items that were recorded without a result."""

    def __post_init__(self) -> None:
        run = self.settings.run
        self.pool = Pool(run.workers, self.progress.say, what=self.what, at_once=self.at_once)
        self._outage = Outage(run.workers, self._ask if run.check else None)
        self._held: list[tuple[str, Result]] = []
        """Failures in a row that may mean a server is gone: recorded once it turns out that it is not."""
        self._gone = False
        self._begun: set[str] = set()

    async def run(self, items: Collection[Item], keys: Collection[str] | None = None) -> None:
        """Do the items that are not done; `keys` are those of all items, if there are more than can be done now."""
        left = (item for item in items if self.job.key(item) not in self.done)
        await self.run_from(one_by_one(left), [self.job.key(item) for item in items] if keys is None else keys)

    async def run_from(self, take: Take[Item], keys: Collection[str]) -> None:
        """Do the items that `take` gives; `keys` are those of all items, `done` among them."""
        self._take_over(keys, self.again)
        self._check_limit()
        idle = self.pool.reason is not None or self.done.issuperset(keys)
        async with self._engine(idle=idle) as work:
            self.progress.start(len(keys), len(self.done.intersection(keys)), self.title)
            try:
                if not idle:
                    await self.pool.work_off(take, lambda item: self._do(work, item))
                await self._settle()
            finally:
                self.progress.stop()
        self._take_over(keys)

    @asynccontextmanager
    async def _engine(self, *, idle: bool) -> AsyncIterator[Work[Item, Result]]:
        """What does the items: this process, or the workers of a cluster on Ray."""
        if idle or not self.settings.ray:
            yield self.here
            return
        from agentclinic.runs.ray_engine import RayWorkers

        async with RayWorkers(self.settings, self.models.gate, self.job, self.progress.say) as workers:
            yield workers.work

    def _take_over(self, keys: Collection[str], again: Callable[[Result], bool] | None = None) -> None:
        """Record what workers of a cluster had finished when they, or the main process, were stopped."""
        for key, result in left_over(self.job, set(keys).difference(self.done)):
            if again is None or not again(result):
                self.count(result)
                self.record(key, result)
                self.done.add(key)
        remove(self.job.journal)

    async def _do(self, work: Work[Item, Result], item: Item) -> None:
        """Do one item; what was stopped is not recorded."""
        key = self.job.key(item)
        if key in self._begun:
            return  # it was given twice
        self._begun.add(key)
        try:
            result = await work(item)
        except Leave:
            self.pool.interrupt("you left")
            return
        # For example a missing image, or a session that cannot be written: something that the user must fix first.
        except (InputError, SessionError, EngineError) as error:
            self.pool.stop(str(error))
            return
        fault = self.job.fault(result)
        if fault and fault.error in FATAL and self.job.final:
            self.pool.stop(f"{fault.role}: {fault.message}")
            return
        self.count(result)
        if self.show:
            self.show(item, result)
        if fault is None or self.paid or fault.error not in OUTAGE:
            self._outage.answered()
            self._record_held()
            self._record(key, result)
            if fault and fault.error in FATAL and not self.paid:
                self.pool.stop(fault.message)
        elif self._gone and self.job.final:
            return  # it was under way when the server was found to be gone
        else:
            if self.job.final:
                self._held.append((key, result))
            else:
                self._record(key, result)
            await self._stop_if_hopeless(self._outage.failed(fault.role, fault.message))
        self._check_limit()

    async def _settle(self) -> None:
        """At the end: record the last failures, unless the server is still gone; then the next call tries again."""
        if self.pool.interrupted:
            return  # the user does not want to wait for an answer
        if self._held and not self._gone:
            await self._stop_if_hopeless(self._outage.confirmed())
        self._record_held()

    async def _stop_if_hopeless(self, verdict: Awaitable[str | None]) -> None:
        reason = await verdict
        if reason is not None:
            self._gone = True
            unrecorded = f". {self.what.capitalize()} that failed for this reason were not recorded"
            self.pool.stop(reason + (unrecorded if self.job.final else ""))
        if self._gone:
            self._held.clear()
        elif not self._outage.suspects:
            self._record_held()

    def _record_held(self) -> None:
        for key, result in self._held:
            self._record(key, result)
        self._held.clear()

    def _record(self, key: str, result: Result) -> None:
        fault = self.job.fault(result)
        if fault:
            self.failures.append(fault)
        self.record(key, result)
        if self.job.final or not fault:
            self.done.add(key)
        failed = f"{len(self.failures)} failed" if self.failures else ""
        self.progress.advance(self.line() if self.line else failed)

    async def _ask(self, roles: Collection[str]) -> str | None:
        asked = self.models.in_use(roles) if self.asked is None else self.asked
        return await gone(asked, self.settings.llm, self.models.gate)

    def _check_limit(self) -> None:
        reason = None if self.paid else self.budget.used_up(self.spent)
        if reason is not None:
            self.pool.stop(reason)


async def check_first(
    settings: Settings, models: Models, in_use: Sequence[Used], say: Callable[[str], None], *, left: bool
) -> None:
    """Before anything is written: refuse models without a price, and if work is left, what cannot be used for it."""
    refuse_unpriced(models, settings, in_use)
    if left and settings.run.check:
        report(await failures(in_use, settings.llm, models.gate), say)
    if left:
        check_engine(settings, models.gate)


def check_engine(settings: Settings, gate: Gate) -> None:
    """Refuse a cluster that cannot be used, or that this data may not go to, before anything is written."""
    if settings.ray:
        from agentclinic.runs import ray_cluster as cluster

        cluster.processes(settings, cluster.nodes(cluster.connect(settings), gate))
