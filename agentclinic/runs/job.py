"""Work that can be done in another process: a `Job` says what to do with an item."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agentclinic.config import Settings
from agentclinic.errors import AgentClinicError
from agentclinic.models.base import FATAL
from agentclinic.models.endpoint import Share
from agentclinic.results.record import Fault

Item = TypeVar("Item")
Given = TypeVar("Given", contravariant=True)
Result = TypeVar("Result")
Work = Callable[[Item], Awaitable[Result]]


OUTAGE = frozenset({"connection", "timeout", "server"})
"""Errors that a server causes that has died, hangs, or is down behind its proxy."""


class EngineError(AgentClinicError):
    """The cluster can do no more work; what was finished is safe."""


class Job(Protocol[Given, Result]):
    """What to do with an item; it can be sent to another machine, and holds neither secrets nor data."""

    @property
    def journal(self) -> Path:
        """The file that the results go to; shards are kept beside it."""

    @property
    def final(self) -> bool:
        """Whether a recorded failure counts as done: then one is recorded only if no server is to blame for it."""

    def opened(self, settings: Settings, share: Share) -> AbstractAsyncContextManager[Work[Any, Result]]:
        """Start in a worker; yields the function that does an item as `sent` gives it. `share` limits its requests."""

    def key(self, item: Given) -> str:
        """What identifies the item."""

    def sent(self, item: Given) -> Any:
        """What a worker must know about the item: as little as possible."""

    def fault(self, result: Result) -> Fault | None:
        """The failure of a model, if there is no other result."""

    def encode(self, result: Result) -> str:
        """The result as JSON."""

    def decode(self, text: str) -> Result:
        """The result from its JSON."""


def is_settled(job: Job[Any, Result], result: Result) -> bool:
    """Whether a result counts whatever happens; a failure that may be the server's fault does not."""
    fault = job.fault(result)
    return fault is None or (job.final and fault.error not in FATAL | OUTAGE)
