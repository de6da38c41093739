"""Working on many things at once, with one way to stop."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio
import anyio.lowlevel

Item = TypeVar("Item")
Take = Callable[[], Awaitable[Item | None]]
"""Gives the next item; None when there are no more."""

GRACE = 30.0
"""Seconds that work in progress has to finish after Ctrl-C: a turn of a slow model takes about ten."""


class Pool:
    """Workers that take items from one queue until it is empty or the pool is stopped.

    The first Ctrl-C takes no new item and lets work in progress finish; a second one, or the end of the grace period,
    stops at once. With `at_once`, for people at the keyboard, the first one does.
    """

    def __init__(
        self,
        workers: int,
        say: Callable[[str], None],
        *,
        what: str = "encounters",
        at_once: bool = False,
        grace: float = GRACE,
    ) -> None:
        self.reason: str | None = None
        """Why no further item is taken; None while the pool runs normally."""
        self.interrupted = False
        self._workers = workers
        self._say = say
        self._what = what
        self._at_once = at_once
        self._grace = grace

    def stop(self, reason: str) -> None:
        """Take no further item; the first reason given is kept."""
        if self.reason is None:
            self.reason = reason

    def interrupt(self, reason: str = "interrupted") -> None:
        self.interrupted = True
        self.stop(reason)

    async def work_off(self, take: Take[Item], work: Callable[[Item], Awaitable[None]]) -> None:
        async def worker() -> None:
            while self.reason is None and (item := await take()) is not None:
                await work(item)

        try:
            async with anyio.create_task_group() as watch:
                watch.start_soon(self._listen, watch.cancel_scope)
                async with anyio.create_task_group() as group:
                    for _ in range(self._workers):
                        group.start_soon(worker)
                watch.cancel_scope.cancel()
        except BaseExceptionGroup as several:
            raise first(several) from None

    async def _listen(self, scope: anyio.CancelScope) -> None:
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            return  # a loop cannot listen for signals there, and Ctrl-C stops at once
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                again = self.interrupted
                self.interrupt()
                if again or self._at_once:
                    scope.cancel()
                    return
                self._say(
                    f"stopping: {self._what} in progress have {self._grace:g} s to finish; "
                    "press Ctrl-C again to stop now"
                )
                scope.deadline = anyio.current_time() + self._grace


def one_by_one(items: Iterable[Item]) -> Take[Item]:
    """A queue over existing items; other tasks get a chance to run between two items."""
    queue = iter(items)

    async def take() -> Item | None:
        await anyio.lowlevel.checkpoint()
        return next(queue, None)

    return take


def first(error: BaseException) -> BaseException:
    """The first of several failures: the others were cancelled by it, or say the same."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
