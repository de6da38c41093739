"""One limit on requests for many processes, with a fake clock and no cluster."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from scripted_server import LONG

from agentclinic.models.base import RateLimitError
from agentclinic.models.retry import Clock, with_retries
from agentclinic.models.shared_limit import Lease, Limits, Report, SharedLimiter

pytestmark = pytest.mark.anyio

ENDPOINT = "an endpoint"


class FakeTime:
    """A clock that sleeping moves forward."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self.clock = Clock(sleep=self.sleep, now=lambda: self.time, random=random.Random(0))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


class Process:
    """A process's way to the limits: each call is a message, which takes a moment and is counted."""

    def __init__(self, limits: Limits, name: str) -> None:
        self.limits = limits
        self.name = name
        self.sent: Counter[str] = Counter()

    async def lease(self, endpoint: str, start: int, wanted: int) -> Lease:
        self.sent["lease"] += 1
        await asyncio.sleep(0)
        return await self.limits.lease(self.name, endpoint, start, wanted)

    async def report(self, endpoint: str, what: Report) -> None:
        self.sent["report"] += 1
        await asyncio.sleep(0)
        await self.limits.report(self.name, endpoint, what)


async def settle() -> None:
    """Let everything happen that can without the clock."""
    for _ in range(50):
        await asyncio.sleep(0)


async def free(limits: Limits, start: int) -> int:
    """How many turns a new process gets at once; it gives them back."""
    lease = await asyncio.wait_for(limits.lease("probe", ENDPOINT, start, 10_000), LONG)
    await limits.report("probe", ENDPOINT, Report(lease.turns, 0, ()))
    return lease.turns


@pytest.mark.parametrize("processes", [1, 4])
async def test_processes_share_one_limit_and_every_request_has_its_turn(processes: int) -> None:
    limits = Limits(FakeTime().clock)
    flying = most = answered = 0

    async def attempt() -> str:
        nonlocal flying, most, answered
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0)
        flying -= 1
        answered += 1
        return "answer"

    clock = FakeTime().clock
    shares = [SharedLimiter(Process(limits, f"p{n}"), ENDPOINT, 5) for n in range(processes)]
    requests = [with_retries(attempt, tries=1, pause=1, limiter=shares[n % processes], clock=clock) for n in range(200)]
    await asyncio.wait_for(asyncio.gather(*requests), LONG)
    await settle()

    assert (most, answered) == (5, 200)
    assert await free(limits, 5) == 5, "every turn was given back"


async def test_endpoints_do_not_share_a_limit() -> None:
    limits = Limits(FakeTime().clock)
    assert (await limits.lease("p", "one", 3, 9)).turns == 3
    assert (await limits.lease("p", "two", 4, 9)).turns == 4


async def test_few_messages_are_sent_for_many_requests() -> None:
    """All that wait ask with one message, and all that came back in the meantime are reported with one."""
    process = Process(Limits(FakeTime().clock), "p")
    share = SharedLimiter(process, ENDPOINT, 1000)

    await asyncio.gather(*(share.acquire() for _ in range(1000)))
    assert process.sent["lease"] <= 2
    for _ in range(1000):
        share.release()
        share.succeeded()
    await settle()

    assert process.sent["report"] <= 2
    assert await free(process.limits, 1000) == 1000


async def test_a_429_halves_the_limit_of_all_once_per_cause_and_pauses_all() -> None:
    time = FakeTime()
    limits = Limits(time.clock)
    shares = [SharedLimiter(Process(limits, f"p{n}"), ENDPOINT, 64) for n in range(4)]
    begun = [[await share.acquire() for _ in range(16)] for share in shares]
    time.time += 3
    for share, times in zip(shares, begun, strict=True):  # one cause: every process hears of it
        for since in times:
            share.throttled(since, None)
            share.release()
    await settle()
    assert await free(limits, 64) == 32

    shares[0].throttled(begun[0][0], 7.0)  # an old request, but it says how long to wait
    await settle()
    asked = time.time
    assert await shares[3].acquire() == asked + 7.0, "another process waits as well"
    assert time.slept == [7.0]
    shares[3].release()
    await settle()
    assert await free(limits, 64) == 32

    shares[1].throttled(time.time, None)  # begun after the halving: another cause
    await settle()
    assert await free(limits, 64) == 16


async def test_successes_of_all_processes_bring_the_limit_back_to_the_start() -> None:
    time = FakeTime()
    limits = Limits(time.clock)
    shares = [SharedLimiter(Process(limits, f"p{n}"), ENDPOINT, 8) for n in range(4)]
    for _ in range(5):
        shares[0].throttled(await shares[0].acquire(), None)
        shares[0].release()
        await settle()
        time.time += 2
    assert await free(limits, 8) == 1

    rounds = 0
    while await free(limits, 8) < 8:
        for share in shares:
            share.succeeded()
        await settle()
        rounds += 1
    assert 5 < rounds < 100
    shares[1].succeeded()
    await settle()
    assert await free(limits, 8) == 8


async def test_a_forgotten_process_gives_its_turns_back() -> None:
    limits = Limits(FakeTime().clock)
    dead, alive = (Process(limits, name) for name in ("dead", "alive"))
    lost = SharedLimiter(dead, ENDPOINT, 6)
    await asyncio.gather(*(lost.acquire() for _ in range(6)))
    waiting = asyncio.create_task(SharedLimiter(alive, ENDPOINT, 6).acquire())
    await settle()
    assert not waiting.done()

    await limits.forget("dead")
    await asyncio.wait_for(waiting, LONG)
    await dead.report(ENDPOINT, Report(6, 0, ()))  # sent before it died, and late

    assert await free(limits, 6) == 5, "its turns are not given back twice"


async def test_a_process_that_is_forgotten_while_it_waits_keeps_no_turn() -> None:
    limits = Limits(FakeTime().clock)
    holder = SharedLimiter(Process(limits, "holder"), ENDPOINT, 2)
    await asyncio.gather(holder.acquire(), holder.acquire())
    waiting = asyncio.create_task(SharedLimiter(Process(limits, "dead"), ENDPOINT, 2).acquire())
    await settle()

    await limits.forget("dead")
    holder.release()
    holder.release()
    await settle()

    assert await free(limits, 2) == 2
    waiting.cancel()


async def test_a_cancelled_wait_gives_its_turn_back() -> None:
    limits = Limits(FakeTime().clock)
    share = SharedLimiter(Process(limits, "p"), ENDPOINT, 1)
    await share.acquire()
    waiting = [asyncio.create_task(share.acquire()) for _ in range(3)]
    await settle()
    waiting[0].cancel()  # while it waits
    share.release()
    await asyncio.sleep(0)  # the turn is on its way to one of the others
    waiting[1].cancel()
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    await asyncio.wait_for(waiting[2], LONG)
    share.release()
    await settle()
    assert await free(limits, 1) == 1

    alone = asyncio.create_task(share.acquire())
    await asyncio.sleep(0)
    alone.cancel()  # no one is left to take the turn that was asked for
    await asyncio.gather(alone, return_exceptions=True)
    await settle()
    assert await free(limits, 1) == 1


@pytest.mark.parametrize("moment", range(8))
async def test_at_whatever_moment_a_wait_is_cancelled_no_turn_is_lost(moment: int) -> None:
    limits = Limits(FakeTime().clock)
    share = SharedLimiter(Process(limits, "p"), ENDPOINT, 1)
    task = asyncio.create_task(share.acquire())
    for _ in range(moment):
        await asyncio.sleep(0)
    task.cancel()
    if not isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError):
        share.release()  # it had its turn
    await settle()
    assert await free(limits, 1) == 1


async def test_limits_that_were_lost_begin_again() -> None:
    """Their process died, and another was started: what is reported of turns that it does not know is no harm."""
    process = Process(Limits(FakeTime().clock), "p")
    share = SharedLimiter(process, ENDPOINT, 3)
    since = (await asyncio.gather(*(share.acquire() for _ in range(3))))[0]
    process.limits = Limits(FakeTime().clock)

    share.release()
    share.throttled(since, 5.0)
    await settle()
    await share.acquire()
    for _ in range(3):  # two from before, one from now
        share.release()
    await settle()

    assert await free(process.limits, 3) == 3


class Gone(Process):
    """The limits' process has ended for good."""

    async def lease(self, endpoint: str, start: int, wanted: int) -> Lease:
        raise ConnectionError("the limits are gone")


async def test_when_the_limits_cannot_be_reached_requests_fail_and_do_not_wait_for_ever() -> None:
    share = SharedLimiter(Gone(Limits(FakeTime().clock), "p"), ENDPOINT, 3)
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(share.acquire(), LONG)


async def test_a_request_that_is_answered_429_is_tried_again_in_its_turn() -> None:
    time = FakeTime()
    limits = Limits(time.clock)
    share = SharedLimiter(Process(limits, "p"), ENDPOINT, 4)
    left = [RateLimitError("x", retry_after=2.0)]

    async def attempt() -> str:
        if left:
            raise left.pop()
        return "answer"

    got = await with_retries(attempt, tries=2, pause=0, limiter=share, clock=time.clock)
    await settle()

    assert (got.value, got.retries) == ("answer", 1)
    assert time.time >= 1002.0
    assert await free(limits, 4) == 2
