"""The HTTP connection for all requests to one address; those that must pass the gate go only where it allows.

Imported with the first request, because aiohttp is slow to import.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from agentclinic.config import unix_parts
from agentclinic.models.faults import LARGEST_ANSWER, LARGEST_FILE, TooLargeError
from agentclinic.models.gate import Gate, NotAllowedError, is_loopback_address

if TYPE_CHECKING:
    from aiohappyeyeballs import AddrInfoType


def open_session(
    address: str, gate: Gate, *, connections: int, keep_alive: float, silence: float, connect: float
) -> aiohttp.ClientSession:
    """A session for requests to one address, without cookies.

    With a closed gate, it connects only to addresses that were checked just before. `silence` is how many seconds an
    answer may pause, and `connect` how many a connection may take.
    """
    options: dict[str, Any] = {"limit": connections, "keepalive_timeout": keep_alive}
    unix = unix_parts(address)
    if unix is not None:
        connector: aiohttp.BaseConnector = aiohttp.UnixConnector(unix.socket, **options)
    elif gate.closed:
        attested = gate.attests(address)
        options |= {"socket_factory": None if attested else _loopback_socket}
        connector = aiohttp.TCPConnector(ssl=_trusted(address), resolver=_Resolver(gate, anywhere=attested), **options)
    else:
        connector = aiohttp.TCPConnector(ssl=_trusted(address), **options)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=silence),
    )


def _trusted(address: str) -> ssl.SSLContext | bool:
    """The certificates to trust, with a closed gate too: those named in the environment, or the system's."""
    if not address.lower().startswith("https"):
        return True  # aiohttp's own, which plain HTTP never uses
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """Reading them takes 0.1 s of CPU time, and so does importing the library that finds them on every system."""
    import httpx2

    return httpx2.create_ssl_context()


def proxy_for(parts: SplitResult) -> str | None:
    """The proxy that the environment names for an address."""
    known = getproxies()
    proxy = known.get(parts.scheme) or known.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


async def exchange(
    session: aiohttp.ClientSession, method: str, url: str, headers: Mapping[str, str], content: bytes | None, **how: Any
) -> tuple[int, Mapping[str, str], bytes]:
    """Send a request, without following redirects; returns status, headers and body of the answer."""
    async with session.request(method, url, headers=headers, data=content, allow_redirects=False, **how) as answer:
        # Read in pieces: an answer may be compressed, or never end.
        most = LARGEST_FILE if url.endswith("/content") else LARGEST_ANSWER
        body = bytearray()
        async for piece in answer.content.iter_any():
            body += piece
            if len(body) > most:
                answer.close()
                raise TooLargeError(most // 2**20)
        return answer.status, answer.headers, bytes(body)


class _Resolver(AbstractResolver):
    """Resolves a name to addresses that the gate has just checked; refuses it if any of them is not loopback."""

    def __init__(self, gate: Gate, *, anywhere: bool) -> None:
        self._look_up = gate.resolve if anywhere else gate.local_addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - aiohttp asks for any
    ) -> list[ResolveResult]:
        found = await asyncio.to_thread(self._look_up, host)
        if isinstance(found, str):
            raise NotAllowedError(f"{host}: {found}")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _loopback_socket(info: AddrInfoType) -> socket.socket:
    """The last check: no socket is made for an address that is not loopback, wherever the address came from."""
    family, kind, protocol, _, address = info
    if not is_loopback_address(str(address[0])):
        raise NotAllowedError(f"{address[0]}: not a loopback address")
    return socket.socket(family=family, type=kind, proto=protocol)
