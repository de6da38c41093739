"""The worker pool: how much at once, what stops it, and how long work in progress may take after Ctrl-C."""

from __future__ import annotations

import os
import signal

import anyio
import pytest
from scripted_server import LONG

from agentclinic.runs.pool import GRACE, Pool, one_by_one

pytestmark = pytest.mark.anyio


def quiet(message: str) -> None:
    del message


async def test_every_item_is_worked_on_once_and_never_more_at_a_time_than_there_are_workers() -> None:
    running, most, done = 0, 0, []

    async def work(item: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1
        done.append(item)

    await Pool(3, quiet).work_off(one_by_one(range(20)), work)
    assert sorted(done) == list(range(20))
    assert most == 3


async def test_a_stopped_pool_takes_no_further_item_and_keeps_the_first_reason() -> None:
    done: list[int] = []
    pool = Pool(1, quiet)

    async def work(item: int) -> None:
        done.append(item)
        if item == 2:
            pool.stop("the disk is full")
            pool.stop("something else")

    await pool.work_off(one_by_one(range(20)), work)
    assert done == [0, 1, 2]
    assert (pool.reason, pool.interrupted) == ("the disk is full", False)


async def test_an_error_ends_the_pool_and_is_raised_as_it_is() -> None:
    async def work(item: int) -> None:
        if item == 1:
            raise ZeroDivisionError
        await anyio.sleep_forever()

    with pytest.raises(ZeroDivisionError):
        await Pool(2, quiet).work_off(one_by_one(range(4)), work)


async def interrupted(pool: Pool, *, signals: int) -> list[str]:
    """Work that never ends, interrupted once it has begun; what had happened by the end."""
    events: list[str] = []

    async def hang(item: int) -> None:
        try:
            for _ in range(signals):
                os.kill(os.getpid(), signal.SIGINT)
                await anyio.sleep(0.05)  # signals that arrive together count as one
            await anyio.sleep_forever()
        finally:
            events.append(f"stopped {item}")

    with anyio.fail_after(LONG):
        await pool.work_off(one_by_one(range(5)), hang)
    return events


async def test_work_in_progress_is_stopped_when_the_grace_period_is_over() -> None:
    said: list[str] = []
    pool = Pool(1, said.append, what="verdicts", grace=0.1)
    assert await interrupted(pool, signals=1) == ["stopped 0"]
    assert (pool.reason, pool.interrupted) == ("interrupted", True)
    assert said == ["stopping: verdicts in progress have 0.1 s to finish; press Ctrl-C again to stop now"]


async def test_a_second_interrupt_stops_at_once_whatever_the_grace_period() -> None:
    assert await interrupted(Pool(1, quiet, grace=3600), signals=2) == ["stopped 0"]


async def test_people_at_the_keyboard_are_not_kept_waiting() -> None:
    said: list[str] = []
    assert await interrupted(Pool(1, said.append, at_once=True, grace=3600), signals=1) == ["stopped 0"]
    assert said == []


def test_work_in_progress_has_time_for_a_slow_turn() -> None:
    assert Pool(1, quiet)._grace == GRACE >= 10
