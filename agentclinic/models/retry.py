"""One retry layer and one limiter for all requests to an endpoint.

Every failed try is seen and counted here. Tests replace the `Clock` so that they need not wait.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Generic, Protocol, TypeVar

from agentclinic.models.base import ClosedForLongError, ModelError, RateLimitError

Value = TypeVar("Value")

RETRYABLE = frozenset({"rate_limit", "timeout", "server", "connection", "malformed"})
"""Failures that another try may avoid. In this layer, malformed means an empty answer."""

JITTER = 0.25
"""Waits are lengthened by up to this share, so that requests that failed together do not return together."""

LONGEST_RETRY_AFTER = 600.0
"""Seconds. A run does not wait for an endpoint that asks for more: it stops, and can be resumed later."""

COOL_DOWN = 1.0
"""Minimum seconds between two halvings: one cause can give all 64 requests in flight a 429."""

RECOVERY_ROUNDS = 20
"""Rounds of successes from zero to full speed. Adding 1 per round, as TCP does, would take 1,000 workers half an hour
at 2 s per request; adding 5% of the start takes less than a minute and is still gentler than halving."""


@dataclass(frozen=True)
class Clock:
    """Time and randomness for the retry layer."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.monotonic
    random: random.Random = field(default_factory=random.Random)


class Turns(Protocol):
    """Who may send a request to an endpoint, and when."""

    async def acquire(self) -> float: ...

    def release(self) -> None: ...

    def succeeded(self) -> None: ...

    def throttled(self, since: float, retry_after: float | None) -> None:
        """Record a 429 for a request begun at `since`."""
        ...


class Limiter:
    """How many requests an endpoint gets at once: half as many after a 429, then slowly more again."""

    def __init__(self, start: int, clock: Clock | None = None) -> None:
        self._start = max(1, start)
        self._clock = clock or Clock()
        self._limit = float(self._start)
        self.active = 0
        """Requests in flight."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._halved_at: float | None = None

    @property
    def limit(self) -> int:
        """How many requests are now allowed at once."""
        return int(self._limit)

    def __repr__(self) -> str:
        return f"Limiter({self.active} of {self.limit}, started at {self._start})"

    async def acquire(self) -> float:
        while True:
            while self._paused_until and (wait := self._paused_until - self._clock.now()) > 0:
                await self._clock.sleep(wait)
            await self._take()
            if not self._paused_until or self._paused_until <= self._clock.now():
                self._paused_until = 0.0
                return self._clock.now()
            # Another request got a 429 while we were waiting.
            self.release()

    def take_free(self, most: int) -> int:
        """Take up to `most` further turns that are free now, without waiting; returns how many."""
        free = 0 if self._waiting else max(0, min(most, self.limit - self.active))
        self.active += free
        return free

    async def _take(self) -> None:
        if self.active < self.limit and not self._waiting:
            self.active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await waited_for(turn, self._waiting, self.release)

    def release(self) -> None:
        self.active -= 1
        self._admit()

    def succeeded(self) -> None:
        """Raise the limit by a request's share of a round."""
        if self._limit < self._start:
            self._limit = min(self._start, self._limit + self._start / (RECOVERY_ROUNDS * self._limit))
            self._admit()

    def throttled(self, since: float, retry_after: float | None) -> None:
        """Halve the limit, once per cause, and pause for as long as the endpoint asked."""
        now = self._clock.now()
        if retry_after is not None:
            self._paused_until = max(self._paused_until, now + retry_after)
        if self._halved_at is None or (since >= self._halved_at and now >= self._halved_at + COOL_DOWN):
            self._halved_at = now
            self._limit = max(1.0, self._limit / 2)

    def _admit(self) -> None:
        while self._waiting and self.active < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.active += 1
                turn.set_result(None)


async def waited_for(
    turn: asyncio.Future[Value], waiting: deque[asyncio.Future[Value]], release: Callable[[], None]
) -> Value:
    """Wait for a turn; if the request is canceled meanwhile, its turn is passed on."""
    try:
        return await turn
    except asyncio.CancelledError:
        if turn.done() and not turn.cancelled():
            release()
        elif turn in waiting:
            waiting.remove(turn)
        raise


@dataclass(frozen=True)
class Retry(Generic[Value]):
    """The result of a call and the number of tries that failed before it."""

    value: Value
    retries: int


async def with_retries(
    attempt: Callable[[], Awaitable[Value]], *, tries: int, pause: float, limiter: Turns, clock: Clock
) -> Retry[Value]:
    """Call `attempt` until it succeeds, fails for good, or has been tried `tries` times.

    The wait before another try is at least `pause` seconds, or what the endpoint asks for if that is longer, and a
    little more at random. A waiting request does not occupy the limiter.
    """
    retries = 0
    while True:
        since = await limiter.acquire()
        failure: ModelError | None = None
        try:
            value = await attempt()
        except ModelError as error:
            failure = error
        finally:
            limiter.release()
        if failure is None:
            limiter.succeeded()
            return Retry(value, retries)
        wait = failure.retry_after or 0.0
        if wait > LONGEST_RETRY_AFTER:
            failure = ClosedForLongError(
                f"{failure}; it asks to wait {wait / 3600:,.1f} hours, and no request waits longer than "
                f"{LONGEST_RETRY_AFTER / 60:g} minutes"
            )
        elif isinstance(failure, RateLimitError):
            limiter.throttled(since, failure.retry_after)
        failure.retries = retries
        retries += 1
        if failure.kind not in RETRYABLE or retries >= tries:
            raise failure
        await clock.sleep(max(pause, wait) * clock.random.uniform(1, 1 + JITTER))


def retry_after(headers: Mapping[str, str], wall_clock: Callable[[], float] = time.time) -> float | None:
    """Seconds that an answer asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.

    A date is compared with the answer's own: our clock may be wrong by hours.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None or given is None:
        return seconds
    until, now = _moment(given), _moment(headers.get("date"))
    return None if until is None else max(0.0, until - (wall_clock() if now is None else now))


def _moment(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    # "nan" and "-1" are numbers to Python but not waits; "inf" is longer than any wait we accept.
    return number if number >= 0 else None
