"""Telling a server that is gone from requests that fail: count failures in a row, then ask once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

OUTAGE = frozenset({"connection", "timeout", "server"})
"""Errors that a server causes that has died, hangs, or is down behind its proxy."""
FEWEST = 3
"""Failures in a row before the server is asked: one or two happen on a bad day, and asking costs a request."""

Ask = Callable[[Collection[str]], Awaitable[str | None]]
"""Asks the models of these roles once more; returns what is wrong, or None if they answer."""


class Outage:
    """Failures in a row that look like a server that is gone.

    After `FEWEST` of them, and with many workers after as many as can fail from one cause at the same moment, the
    models are asked with one short request. Only if that fails too is the work hopeless; a server that answers it may
    simply have failed on these prompts. Without `ask`, the count decides.
    """

    def __init__(self, workers: int, ask: Ask | None) -> None:
        self._most = max(FEWEST, workers)
        self._ask = ask
        self._asking = False
        self._roles: list[str] = []

    @property
    def suspects(self) -> bool:
        """Whether the last thing that happened was a failure of this kind."""
        return bool(self._roles)

    def answered(self) -> None:
        """Count an encounter that did not fail in this way: the failures before it are not in a row with others."""
        self._roles.clear()

    async def failed(self, role: str, message: str) -> str | None:
        """Count a failure; returns why the work is hopeless, or None if it is not."""
        self._roles.append(role)
        if len(self._roles) < self._most or self._asking:
            return None
        return f"{role}: {message}" if self._ask is None else await self.confirmed()

    async def confirmed(self) -> str | None:
        """Ask now, if the last thing that happened was a failure; returns why the work is hopeless."""
        if self._ask is None or not self._roles:
            return None
        self._asking = True
        try:
            reason = await self._ask(tuple(dict.fromkeys(self._roles)))
        finally:
            self._asking = False
        if reason is None or not self._roles:  # it answers, or answered someone else meanwhile
            self._roles.clear()
            return None
        return reason
