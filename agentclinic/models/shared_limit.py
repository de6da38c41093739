"""A limit on requests to an endpoint that many processes share: `Limits` keeps it, and each has a `SharedLimiter`.

Calls to `Limits` are messages between machines, so a `SharedLimiter` makes few of them: one call asks for all the turns
that its process is waiting for, and another reports everything since the last report.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

from agentclinic.models.retry import Clock, Limiter, waited_for


class Lease(NamedTuple):
    """Turns that a process may use, and when they were given, on the clock of `Limits`."""

    turns: int
    since: float


class Report(NamedTuple):
    returned: int
    succeeded: int
    throttled: Sequence[tuple[float, float | None]]
    """For each 429: when the request's turn was given, and the seconds that the endpoint asks to wait."""


class Limits:
    """The limits of all endpoints, and how many turns each process holds."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._limiters: dict[str, Limiter] = {}
        self._held: Counter[tuple[str, str]] = Counter()
        """Turns by process and endpoint."""
        self._gone: set[str] = set()

    async def lease(self, process: str, endpoint: str, start: int, wanted: int) -> Lease:
        """Wait for a turn at an endpoint, and take up to `wanted` of those that are free then."""
        limiter = self._limiters.setdefault(endpoint, Limiter(start, self._clock))
        since = await limiter.acquire()
        turns = 1 + limiter.take_free(wanted - 1)
        self._held[process, endpoint] += turns
        if process in self._gone:
            self._return(process, endpoint, turns)
        return Lease(turns, since)

    async def report(self, process: str, endpoint: str, what: Report) -> None:
        limiter = self._limiters.get(endpoint)
        if limiter is None:
            return  # the process with the limits was restarted
        for since, retry_after in what.throttled:
            limiter.throttled(since, retry_after)
        for _ in range(what.succeeded):
            limiter.succeeded()
        self._return(process, endpoint, what.returned)

    async def forget(self, process: str) -> None:
        """Take back all turns of a process that has ended."""
        self._gone.add(process)
        for (holder, endpoint), turns in list(self._held.items()):
            if holder == process:
                self._return(process, endpoint, turns)

    def _return(self, process: str, endpoint: str, turns: int) -> None:
        turns = min(turns, self._held[process, endpoint])  # the turns of a forgotten process have already been returned
        self._held[process, endpoint] -= turns
        for _ in range(turns):
            self._limiters[endpoint].release()


class RemoteLimits(Protocol):
    """`Limits` in another process, called on behalf of this one."""

    def lease(self, endpoint: str, start: int, wanted: int) -> Awaitable[Lease]: ...

    def report(self, endpoint: str, what: Report) -> Awaitable[None]: ...


class SharedLimiter:
    """The `Turns` of one process at an endpoint, out of a limit that it shares with others."""

    def __init__(self, limits: RemoteLimits, endpoint: str, start: int) -> None:
        self._limits = limits
        self._endpoint = endpoint
        self._start = start
        self._waiting: deque[asyncio.Future[float]] = deque()
        self._asking: asyncio.Task[None] | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._returned = self._succeeded = 0
        self._throttled: list[tuple[float, float | None]] = []

    async def acquire(self) -> float:
        turn: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return await waited_for(turn, self._waiting, self.release)

    def release(self) -> None:
        self._returned += 1
        self._tell()

    def succeeded(self) -> None:
        self._succeeded += 1
        self._tell()

    def throttled(self, since: float, retry_after: float | None) -> None:
        self._throttled.append((since, retry_after))
        self._tell()

    async def _ask(self) -> None:
        try:
            while self._waiting:
                turns, since = await self._limits.lease(self._endpoint, self._start, len(self._waiting))
                while turns and self._waiting:
                    turn = self._waiting.popleft()
                    if not turn.done():
                        turn.set_result(since)
                        turns -= 1
                if turns:  # the requests that waited for them were canceled
                    self._returned += turns
                    self._tell()
        except Exception as error:  # noqa: BLE001 - the limits cannot be reached: requests that wait must fail
            while self._waiting:
                turn = self._waiting.popleft()
                if not turn.done():
                    turn.set_exception(error)
        finally:
            self._asking = None

    def _tell(self) -> None:
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._report())

    async def _report(self) -> None:
        try:
            while self._returned or self._succeeded or self._throttled:
                what = Report(self._returned, self._succeeded, tuple(self._throttled))
                self._returned = self._succeeded = 0
                self._throttled.clear()
                await self._limits.report(self._endpoint, what)
        finally:
            self._reporting = None
