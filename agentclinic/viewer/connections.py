"""Limits on connections, attempts and messages, so that a server stays usable if clients are slow, stuck or hostile."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

_BATCH, _QUEUE = 16, 1024
"""Connections that are accepted at once, few because each takes a file descriptor (if there are none left, Python logs
that once for each), and connections that the system may hold for us in the meantime."""
LARGEST = 2**20
"""Bytes of a message that a program may send: many times what is read of an utterance."""
_PONG = 600.0
"""Seconds for the answer to a ping: a trainer may be busy with its model for minutes."""
_FILES = 4096
"""File descriptors we ask the system for: many allow only 256 or 1024 by default."""


@dataclass(frozen=True)
class Limits:
    """On connections. A class of 40 behind one address needs 240: browsers open at most six each."""

    seconds: float = 20.0
    """For the head of a request, then for its body, and for reading `slowest` bytes of the answer. Our own time, such
    as a page's wait for news, is not limited."""
    slowest: int = 20 * 1024
    """About 2 KB/s on a slow line, as the system reports in larger steps; up to 8 KB/s if the client's own buffer is
    large: less than any network on which the pages are usable."""
    in_all: int = 1024
    per_address: int = 512
    """Half, so that one address cannot take everything."""


def limits_here() -> Limits:
    """Limits that fit the files this process may open: half of those are left to games and models."""
    files = _FILES
    if sys.platform != "win32":
        import resource

        files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= files < _FILES:  # negative: unlimited
            with suppress(OSError, ValueError):  # macOS may refuse what it said it allows
                resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, hard) if hard >= 0 else _FILES, hard))
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] % 2**63
    most = min(Limits.in_all, files // 2 - 2 * _BATCH)
    return Limits(in_all=most, per_address=most // 2)


class Connection(H11Protocol):
    """Closes itself if its client keeps us waiting too long; without an answer, since browsers also connect in advance.

    If there are too many connections, the one that has kept us waiting longest is closed, so that newcomers get in.
    """

    _timer: asyncio.TimerHandle | None = None
    """Runs while we wait for the client."""
    _unread = 0
    """Bytes of the answer that were left when the timer was started."""
    _upgraded = False
    """It is a WebSocket now, whose client may take its time: pings find out whether it is still there."""
    network = ""

    def __init__(self, limits: Limits, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.network = network_of(self.client)
        self._watch()
        everyone = [one for one in self.connections if isinstance(one, Connection)]
        neighbors = [one for one in everyone if one.network == self.network]
        for those, most in ((neighbors, self._limits.per_address), (everyone, self._limits.in_all)):
            if len(those) > most:
                min(those, key=lambda one: one._timer.when() if one._timer else float("inf")).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        before = self.conn.their_state
        super().data_received(data)
        if self.conn.their_state is not before:  # bytes that complete nothing gain no time
            self._watch()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        super().handle_websocket_upgrade(event)
        self._upgraded = True

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def _watch(self) -> None:
        """Start the timer again if we are waiting for the client, else stop it."""
        if self._timer:
            self._timer.cancel()
        if self._upgraded:
            return
        asked = self.conn.their_state in (h11.DONE, h11.MUST_CLOSE)
        answering = asked and not self.cycle.response_complete and not self.flow.write_paused
        self._unread = self.transport.get_write_buffer_size()
        self._timer = None if answering else self.loop.call_later(self._limits.seconds, self._overdue)

    def _overdue(self) -> None:
        reads = 0 < self.transport.get_write_buffer_size() <= self._unread - self._limits.slowest
        self._watch() if reads else self.drop()

    def drop(self) -> None:
        self.connections.discard(self)
        self.transport.abort()


def network_of(client: tuple[str, int] | None) -> str:
    """What counts as one address: 64 bits in IPv6, because a machine has all addresses that share them."""
    name = client[0][:64] if client else ""
    try:
        return str(ip_network((ip_address(name).packed, 64), strict=False)) if ":" in name else name
    except ValueError:
        return name


class Pace:
    """Allows an address a number of attempts at once, and then one in every so many seconds."""

    _ADDRESSES = 10_000
    """Remembered; beyond that, the one that has been quiet longest is forgotten."""

    def __init__(self, at_once: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = at_once * seconds, seconds, clock
        self._forgiven: dict[str, float] = {}
        """When the attempts of an address no longer count."""

    def wait(self, network: str) -> float:
        """Seconds until the next attempt is allowed; 0 or less if it is allowed now."""
        return self._forgiven.get(network, 0) + self._seconds - self._most - self._clock()

    def count(self, network: str) -> None:
        self._forgiven[network] = max(self._clock(), self._forgiven.pop(network, 0)) + self._seconds
        if len(self._forgiven) > self._ADDRESSES:
            del self._forgiven[next(iter(self._forgiven))]


class BoundedLog(logging.Filter):
    """Lets a limited number of messages pass each minute: a client must not be able to fill a disk."""

    MOST = 20
    clock = staticmethod(time.monotonic)
    _began, _count = float("-inf"), 0

    def filter(self, record: logging.LogRecord) -> bool:
        if self.clock() - self._began >= 60:
            self._began, self._count = self.clock(), 0
        self._count += 1
        if self._count == self.MOST:
            record.msg, record.args = f"{record.getMessage()} (further messages are left out for a minute)", None
        return self._count <= self.MOST


_TERMINAL = {"handlers": ["terminal"], "level": "WARNING", "propagate": False}
_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"bounded": {"()": BoundedLog}},
    "handlers": {"terminal": {"class": "logging.StreamHandler", "filters": ["bounded"]}},
    "loggers": {"uvicorn": _TERMINAL, "asyncio": _TERMINAL},
}


class Server(uvicorn.Server):
    """The web server of an application; `run(sockets=[...])` answers requests until its `should_exit` is set."""

    def __init__(self, app: Any, limits: Limits | None = None, *, websockets: bool = False) -> None:
        protocol = cast("type[asyncio.Protocol]", partial(Connection, limits or limits_here()))
        # When the server stops, requests in progress have two seconds to finish: Ctrl-C means stop.
        bare: dict[str, Any] = {"access_log": False, "server_header": False, "ws": "none", "log_config": _LOGGING}
        if websockets:
            bare |= {"ws": "websockets-sansio", "ws_max_size": LARGEST, "ws_ping_timeout": _PONG}
        super().__init__(uvicorn.Config(app, http=protocol, backlog=_BATCH, timeout_graceful_shutdown=2, **bare))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_QUEUE)
            # The system's buffer of each connection: what it holds counts as read, so it should not be large.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
