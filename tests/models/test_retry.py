"""The retry layer and the limiter, with a fake clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentclinic.models import base
from agentclinic.models.base import ClosedForLongError, ModelError, RateLimitError, ServerError
from agentclinic.models.retry import Clock, Limiter, retry_after, with_retries

pytestmark = pytest.mark.anyio


class FakeTime:
    """A clock that sleeping moves forward, and a list of all sleeps."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self.clock = Clock(sleep=self.sleep, now=lambda: self.time, random=random.Random(0))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def failing(*errors: ModelError) -> Callable[[], Awaitable[str]]:
    """An attempt that fails with each error in turn, then answers."""
    left = list(errors)

    async def attempt() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return attempt


async def run(attempt: Callable[[], Awaitable[str]], time: FakeTime, tries: int = 6, pause: float = 30) -> int:
    limiter = Limiter(4, time.clock)
    got = await with_retries(attempt, tries=tries, pause=pause, limiter=limiter, clock=time.clock)
    assert got.value == "answer"
    return got.retries


async def test_an_immediate_answer_involves_no_wait() -> None:
    time = FakeTime()
    assert await run(failing(), time) == 0
    assert time.slept == []


@pytest.mark.parametrize(
    "kind",
    [
        base.RateLimitError,
        base.RequestTimeout,
        base.ServerError,
        base.ConnectError,
        base.MalformedError,
    ],
)
async def test_a_temporary_failure_is_retried(kind: type[ModelError]) -> None:
    assert await run(failing(kind("x"), kind("x")), FakeTime()) == 2


@pytest.mark.parametrize(
    "kind",
    [
        base.AuthError,
        base.QuotaError,
        base.ContextTooLongError,
        base.RefusedError,
        base.BadRequestError,
    ],
)
async def test_a_permanent_failure_is_not_retried(kind: type[ModelError]) -> None:
    time = FakeTime()
    with pytest.raises(kind) as caught:
        await run(failing(kind("x")), time)
    assert caught.value.retries == 0
    assert time.slept == []


async def test_the_last_try_raises_and_counts_the_failures_before_it() -> None:
    time = FakeTime()
    with pytest.raises(ServerError) as caught:
        await run(failing(*[ServerError("x") for _ in range(9)]), time, tries=4)
    assert caught.value.retries == 3
    assert len(time.slept) == 3


async def test_a_wait_is_never_shorter_than_the_setting_and_up_to_a_quarter_longer() -> None:
    time = FakeTime()
    await run(failing(*[ServerError("x") for _ in range(200)]), time, tries=201, pause=10)
    assert 10 <= min(time.slept) < 10.1
    assert 12.4 < max(time.slept) <= 12.5


@pytest.mark.parametrize(("asked", "waited"), [(47.5, 47.5), (2.0, 30.0)])
async def test_the_wait_an_endpoint_asks_for_counts_where_it_is_longer(asked: float, waited: float) -> None:
    time = FakeTime()
    await run(failing(RateLimitError("x", retry_after=asked)), time, pause=30)
    assert len(time.slept) == 1
    assert waited <= time.slept[0] <= 1.25 * waited


async def test_a_request_to_wait_more_than_ten_minutes_is_a_failure() -> None:
    time = FakeTime()
    for asked in (601, float("inf")):
        with pytest.raises(ClosedForLongError, match="and no request waits longer than 10 minutes"):
            await run(failing(RateLimitError("x", retry_after=asked)), time)
    assert time.slept == []


async def test_a_waiting_request_does_not_occupy_the_limiter() -> None:
    time = FakeTime()
    limiter = Limiter(1, time.clock)
    seen: list[int] = []

    async def sleep(seconds: float) -> None:
        seen.append(limiter.active)

    clock = Clock(sleep=sleep, now=lambda: time.time)
    await with_retries(failing(ServerError("x")), tries=2, pause=1, limiter=limiter, clock=clock)
    assert seen == [0]


async def test_no_more_requests_are_in_flight_than_the_limiter_allows() -> None:
    limiter, most = Limiter(5), 0

    async def attempt() -> str:
        nonlocal most
        most = max(most, limiter.active)
        await asyncio.sleep(0.001)
        return "answer"

    clock = Clock()
    await asyncio.gather(*(with_retries(attempt, tries=1, pause=1, limiter=limiter, clock=clock) for _ in range(40)))
    assert most == 5
    assert limiter.active == 0


async def test_waiting_requests_are_served_in_order() -> None:
    limiter, order = Limiter(1), list[int]()

    async def one(number: int) -> None:
        await limiter.acquire()
        order.append(number)
        await asyncio.sleep(0)
        limiter.release()

    await asyncio.gather(*(one(n) for n in range(20)))
    assert order == list(range(20))


async def test_a_cancelled_request_gives_its_turn_back() -> None:
    limiter = Limiter(1)
    await limiter.acquire()
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    limiter.release()  # goes to the second
    waiting[1].cancel()  # which is cancelled before it can run
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    await waiting[2]
    assert limiter.active == 1


async def test_many_429_for_one_cause_halve_once_and_a_later_one_halves_again() -> None:
    time = FakeTime()
    limiter = Limiter(64, time.clock)
    begun = [await limiter.acquire() for _ in range(64)]
    time.time += 3
    for since in begun:
        limiter.throttled(since, None)
    assert limiter.limit == 32
    time.time += 3
    limiter.throttled(begun[0], None)  # begun before the halving: the same cause
    assert limiter.limit == 32
    limiter.throttled(time.time, None)
    assert limiter.limit == 16


async def test_a_429_soon_after_a_halving_does_not_halve_again() -> None:
    """A request begun just after the halving may still meet the queue that the earlier ones built up."""
    time = FakeTime()
    limiter = Limiter(64, time.clock)
    limiter.throttled(time.time, None)
    for later, limit in ((0.5, 32), (0.99, 32), (1.0, 16)):
        time.time = 1000.0 + later
        limiter.throttled(since=time.time, retry_after=None)
        assert limiter.limit == limit, later


async def test_the_limit_never_falls_below_one() -> None:
    time = FakeTime()
    limiter = Limiter(3, time.clock)
    for _ in range(10):
        time.time += 2
        limiter.throttled(time.time, None)
    assert limiter.limit == 1


async def test_successes_bring_the_limit_back_to_the_start_and_no_higher() -> None:
    time = FakeTime()
    limiter = Limiter(64, time.clock)
    for _ in range(10):
        time.time += 2
        limiter.throttled(time.time, None)
    rounds = 0
    while limiter.limit < 64:
        before = limiter.limit
        for _ in range(before):
            limiter.succeeded()
        assert before < limiter.limit <= 64
        rounds += 1
    assert 15 <= rounds <= 25
    limiter.succeeded()
    assert limiter.limit == 64


async def test_new_requests_pause_as_long_as_a_429_asked() -> None:
    time = FakeTime()
    limiter = Limiter(8, time.clock)
    limiter.throttled(time.time, 7.0)
    assert await limiter.acquire() == 1007.0
    assert time.slept == [7.0]


async def test_requests_already_in_the_queue_pause_too() -> None:
    time = FakeTime()
    limiter = Limiter(1, time.clock)
    await limiter.acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    limiter.throttled(time.time, 7.0)
    limiter.release()
    assert await waiting == 1007.0
    assert limiter.active == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:05 GMT"}, 0.0),
        # Our clock is a year ahead of the server's, then a year behind it.
        ({"retry-after": "Wed, 01 Jan 1969 00:00:30 GMT", "date": "Wed, 01 Jan 1969 00:00:00 GMT"}, 30.0),
        ({"retry-after": "Fri, 01 Jan 1971 00:00:30 GMT", "date": "Fri, 01 Jan 1971 00:00:00 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT", "date": "now"}, 20.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
async def test_a_wait_is_read_as_seconds_milliseconds_or_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, wall_clock=lambda: 10.0) == seconds


@given(st.text())
def test_no_header_text_makes_reading_the_wait_fail(text: str) -> None:
    wait = retry_after({"retry-after": text})
    assert wait is None or wait >= 0
