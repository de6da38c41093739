"""The bridge between synchronous code and the async core."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import Future
from contextvars import ContextVar

import pytest
from scripted_server import LONG

from agentclinic import sync_bridge
from agentclinic.errors import AgentClinicError


def test_ctrl_c_in_the_calling_thread_cancels_the_request_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is raised where it would strike, not sent as a signal: one that comes just before the thread begins to
    wait is noticed by Python only when the wait is over."""
    started, cancelled = threading.Event(), threading.Event()
    result = Future.result

    def interrupted(self: Future[None], timeout: float | None = None) -> None:
        if threading.current_thread() is not threading.main_thread():
            return result(self, timeout)
        assert started.wait(LONG)
        raise KeyboardInterrupt

    async def request() -> None:
        started.set()
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sync_bridge.call(request)
    assert cancelled.wait(LONG / 2)


async def loop_now() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_plain_threads_share_one_background_loop() -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    threads = [threading.Thread(target=lambda: loops.append(sync_bridge.call(loop_now))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert len(loops) == 8
    assert len(set(loops)) == 1


def test_code_of_an_encounter_comes_back_to_its_loop_until_the_encounter_is_over() -> None:
    may_ask_again, complaints = threading.Event(), list[str]()

    def later() -> None:
        may_ask_again.wait(LONG)
        try:
            sync_bridge.call(loop_now)
        except AgentClinicError as error:
            complaints.append(str(error))

    async def encounter() -> None:
        with sync_bridge.home():
            assert await sync_bridge.in_thread(lambda: sync_bridge.call(loop_now)) is asyncio.get_running_loop()
            left_behind = asyncio.create_task(sync_bridge.in_thread(later))
            await asyncio.sleep(0)
        may_ask_again.set()
        await left_behind

    asyncio.run(encounter())
    assert complaints == ["the encounter this call belongs to is over"]


def test_a_call_that_would_wait_for_itself_is_refused() -> None:
    async def inner() -> int:
        return 1

    async def outer() -> int:
        return sync_bridge.call(inner)

    with pytest.raises(AgentClinicError, match="inner was called from inside a coroutine"):
        sync_bridge.call(outer)


def test_a_call_works_where_another_loop_is_running_as_in_a_notebook() -> None:
    async def cell() -> asyncio.AbstractEventLoop:
        return sync_bridge.call(loop_now)

    assert asyncio.run(cell()).is_running()


@pytest.mark.anyio
async def test_a_function_in_a_thread_keeps_its_context_and_passes_exceptions_on() -> None:
    mood: ContextVar[str] = ContextVar("mood", default="unknown")
    mood.set("good")
    assert await sync_bridge.in_thread(mood.get) == "good"
    assert await sync_bridge.in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await sync_bridge.in_thread(lambda: 1 // 0)


def test_a_function_that_hangs_does_not_keep_the_process_alive() -> None:
    script = """
        import anyio, threading
        from agentclinic import sync_bridge

        async def main():
            with anyio.move_on_after(0.01):
                await sync_bridge.in_thread(threading.Event().wait)

        anyio.run(main)
        print("over")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=LONG, check=True
    )
    assert (done.stdout, done.stderr) == ("over\n", "")
