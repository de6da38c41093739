"""The bridge between synchronous code and the async core.

`call` runs a coroutine for synchronous code: on the loop of its encounter, or else on one background loop.
`in_thread` runs synchronous code for a coroutine, in a thread that cannot keep the process alive.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, TypeVarTuple

import anyio

from agentclinic.errors import AgentClinicError

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


@dataclass
class _Home:
    """The loop on which an encounter runs."""

    loop: asyncio.AbstractEventLoop
    over: bool = False
    """The encounter has ended, so its code may no longer ask for anything."""


_home: ContextVar[_Home | None] = ContextVar("agentclinic_home", default=None)
_starting = threading.Lock()


@contextmanager
def home() -> Iterator[None]:
    """Make `call` use the current loop in all code started within this block."""
    here = _Home(asyncio.get_running_loop())
    before = _home.set(here)
    try:
        yield
    finally:
        here.over = True
        _home.reset(before)


def call(function: Callable[[*Arguments], Coroutine[Any, Any, Result]], *arguments: *Arguments) -> Result:
    """Run a coroutine function from synchronous code and return its result."""
    here = _home.get()
    if here is not None and here.over:
        raise AgentClinicError("the encounter this call belongs to is over")
    with _starting:
        loop = here.loop if here else _background()
    if _running() is loop:
        raise AgentClinicError(
            f"{getattr(function, '__name__', 'this')} was called from inside a coroutine and would wait for itself; "
            "call it in a thread (await asyncio.to_thread(...)) or from a synchronous method"
        )
    pending = asyncio.run_coroutine_threadsafe(function(*arguments), loop)
    try:
        return pending.result()
    except BaseException:
        pending.cancel()  # Ctrl-C in this thread must also end the request on the loop
        raise


async def in_thread(function: Callable[[], Result]) -> Result:
    """Run a blocking function in its own thread; when cancelled, abandon the thread.

    Not in one of anyio's worker threads: Python waits for those when it exits, so one call that hangs would hang the
    process. An encounter waits for one call at a time, so there are never more threads than workers.
    """
    loop = asyncio.get_running_loop()
    done = anyio.Event()
    outcome: Future[Result] = Future()
    context = copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001 - raised again by outcome.result()
            outcome.set_exception(error)
        with suppress(RuntimeError):  # the loop is closed: no one is waiting anymore
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=work, daemon=True, name="agentclinic-blocking").start()
    await done.wait()
    return outcome.result()


def after_fork(function: Callable[[], None]) -> None:
    """Call a function in every process that is forked from this one: only the thread that forks is there."""
    if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
        os.register_at_fork(after_in_child=function)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@cache
def _background() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True, name="agentclinic-loop")
    thread.start()

    def stop() -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    atexit.register(stop)
    return loop


after_fork(_background.cache_clear)
