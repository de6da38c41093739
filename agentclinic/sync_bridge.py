"""Crossing between synchronous code and the one async core.

`call` leads from synchronous code into the core: to the loop of the encounter the code works in, elsewhere to a
single background loop. `in_thread` leads the other way, through a thread that cannot keep the process alive.
"""

from __future__ import annotations

import asyncio
import atexit
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
    """The loop from which other code was started."""

    loop: asyncio.AbstractEventLoop
    left: bool = False
    """Nobody waits for that code any more."""


_home: ContextVar[_Home | None] = ContextVar("agentclinic_home", default=None)
_starting = threading.Lock()


@contextmanager
def home() -> Iterator[None]:
    """Let `call`, in code started within this block, come back to the loop that runs now."""
    here = _Home(asyncio.get_running_loop())
    before = _home.set(here)
    try:
        yield
    finally:
        here.left = True
        _home.reset(before)


def call(function: Callable[[*Arguments], Coroutine[Any, Any, Result]], *arguments: *Arguments) -> Result:
    """Run a coroutine function to its end from synchronous code."""
    here = _home.get()
    if here is not None and here.left:
        raise AgentClinicError("the encounter this call belongs to is over")
    if here is not None:
        loop = here.loop
    else:
        with _starting:
            loop = _background()
    if _running() is loop:
        raise AgentClinicError(
            f"{getattr(function, '__name__', 'this')} was called from inside a coroutine and would wait for itself; "
            "call it in a thread (await asyncio.to_thread(...)) or from a synchronous method"
        )
    pending = asyncio.run_coroutine_threadsafe(function(*arguments), loop)
    try:
        return pending.result()
    except BaseException:
        pending.cancel()  # Ctrl-C here must not leave a request under way over there
        raise


async def in_thread(function: Callable[[], Result]) -> Result:
    """Run a blocking function in a thread of its own; when cancelled, leave it to itself.

    Not one of anyio's worker threads: Python waits for those at its end, so one hanging call would hang the process.
    As each encounter waits for one call at a time, there are never more threads than workers.
    """
    loop = asyncio.get_running_loop()
    done = anyio.Event()
    outcome: Future[Result] = Future()
    context = copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.set_exception(error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=work, daemon=True, name="agentclinic-blocking").start()
    await done.wait()
    return outcome.result()


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
