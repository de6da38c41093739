"""The HTTP client for all requests, and the transport for those that must pass the gate or go over a unix socket.

Imported with the first request, because aiohttp, httpx2 and the SDK are slow to import.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx2
from aiohttp.abc import AbstractResolver, ResolveResult
from openai import DefaultAioHttpClient

from agentclinic.config import unix_parts
from agentclinic.models.faults import LARGEST_ANSWER, LARGEST_FILE, TooLargeError
from agentclinic.models.gate import Gate, NotAllowedError, is_loopback_address

if TYPE_CHECKING:
    from aiohappyeyeballs import AddrInfoType


_address = cache(httpx2.URL)


class LeanHttp(DefaultAioHttpClient):
    """The SDK's HTTP client on aiohttp, without redoing for each request what is the same for all.

    Merging headers and parsing the address took 0.2 of 1.4 ms of CPU per call (benchmarks/harness.py).
    """

    def build_request(self, method: str, url: httpx2.URL | str, **given: Any) -> httpx2.Request:
        # We only send bytes; the SDK provides all headers except these.
        own = [(name, self.headers[name]) for name in ("Accept-Encoding", "Connection")]
        headers, content = given["headers"], given.get("content")
        if content and content.startswith(b"--"):
            # Set here, because the SDK does not accept a finished form. No JSON begins like this.
            boundary = content[2 : content.index(b"\r\n")].decode()
            headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
            own.append(("Content-Type", f"multipart/form-data; boundary={boundary}"))
        return httpx2.Request(
            method,
            _address(url),
            headers=[*headers, *own],
            content=content,
            cookies=self.cookies,
            extensions={"timeout": self.timeout.as_dict()},
        )

    async def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        # Read here, because httpx2 has no limit: an answer may be compressed, or never end.
        response = await super().send(request, **{**given, "stream": True})
        most = LARGEST_FILE if request.url.path.endswith("/content") else LARGEST_ANSWER
        content = bytearray()
        try:
            async with aclosing(response.aiter_bytes()) as pieces:
                async for piece in pieces:
                    content += piece
                    if len(content) > most:
                        raise TooLargeError(most // 2**20)
        finally:
            await response.aclose()
        response.headers.pop("Content-Encoding", None)
        return httpx2.Response(response.status_code, headers=response.headers, content=bytes(content), request=request)


class Transport(httpx2.AsyncBaseTransport):
    """Sends requests to a single address, without redirects, cookies or proxies, whatever the environment says.

    With a closed gate, it connects only to addresses that were checked just before.
    """

    def __init__(self, base_url: str, gate: Gate, *, connections: int, keep_alive: float) -> None:
        self._base_url = base_url
        self._gate = gate
        self._options: dict[str, Any] = {"limit": connections, "keepalive_timeout": keep_alive}
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        session = self._session or self._open()
        limits = request.extensions.get("timeout", {})
        answer = await session.request(
            request.method,
            str(request.url),
            headers=request.headers.multi_items(),
            data=request.content,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=None,
                connect=limits.get("pool"),
                sock_connect=limits.get("connect"),
                sock_read=limits.get("read"),
            ),
        )
        return httpx2.Response(answer.status, headers=answer.raw_headers, stream=_Body(answer), request=request)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=self._connector(), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
        )
        return self._session

    def _connector(self) -> aiohttp.BaseConnector:
        unix = unix_parts(self._base_url)
        if unix is not None:
            return aiohttp.UnixConnector(unix.socket, **self._options)
        # The gate does not decide which certificates to trust: SSL_CERT_FILE works here as elsewhere.
        secure = httpx2.create_ssl_context(trust_env=True) if self._base_url.lower().startswith("https") else True
        attested = self._gate.attests(self._base_url)
        return aiohttp.TCPConnector(
            ssl=secure,
            resolver=_Resolver(self._gate, anywhere=attested),
            socket_factory=None if attested else _loopback_socket,
            **self._options,
        )


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, piece by piece: the reader decides how much of it to read."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._answer.content.iter_any():
            yield piece

    async def aclose(self) -> None:
        self._answer.release()


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
