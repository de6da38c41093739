"""Crossing from synchronous code to the one async core: a single background loop, started when first needed."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar, TypeVarTuple

import anyio.from_thread
from anyio.from_thread import BlockingPortal

from agentclinic.errors import AgentClinicError

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

_lock = threading.Lock()
_portal: BlockingPortal | None = None
_stack = ExitStack()


def call(
    function: Callable[[*Arguments], Coroutine[Any, Any, Result]], *arguments: *Arguments, inside_run: bool = False
) -> Result:
    """Run a coroutine function to its end from synchronous code.

    Inside a run the call goes to that run's loop, elsewhere to the background loop.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise AgentClinicError(
            f"{getattr(function, '__name__', 'this')} was called from inside a coroutine and would block the clinic; "
            "call it from a synchronous method, or in a thread"
        )
    if inside_run:
        return anyio.from_thread.run(function, *arguments)
    answer: Result = _background().call(function, *arguments)
    return answer


def _background() -> BlockingPortal:
    global _portal
    with _lock:
        if _portal is None:
            _portal = _stack.enter_context(anyio.from_thread.start_blocking_portal())
            atexit.register(_stop)
        return _portal


def _stop() -> None:
    global _portal
    _portal = None
    _stack.close()
