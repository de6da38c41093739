"""The web server of the viewer and the consulting room, and the viewer's own pages.

It answers on this machine only, unless there is a password. Pages of other sites can neither read from it nor act on
it: it answers only to its own names, accepts requests only from its own pages, and those run only scripts of this
package.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import secrets
import socket
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders, QueryParams
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentclinic import privacy
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.viewer.connections import LARGEST, Pace, Server, network_of
from agentclinic.viewer.data import Library

LOOPBACK = "127.0.0.1"
PASSWORD = "AGENTCLINIC_PASSWORD"
"""Environment variable with the password: a flag could be read in the list of processes."""
SHORTEST = 8
"""Minimum length of a password: anyone on the network may guess."""
GUESSES = (20, 3.0)
"""Wrong passwords from an address at once, and seconds for each after that: a class mistypes some, and at 20 guesses a
minute even a weak password holds."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Scripts, styles and requests of this server only; nothing inline, no frames, no markup made from text."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PACKAGE = Path(__file__).parent.parent
STATIC = (_PACKAGE / "report", _PACKAGE / "viewer" / "static")
"""Folders of scripts and styles: the report's, which all pages share, and those of served pages."""


def make_app(
    routes: Sequence[BaseRoute],
    *,
    host: str = LOOPBACK,
    password: str | None = None,
    lifespan: Any = None,
    guesses: Pace | None = None,
) -> Starlette:
    """The application: these routes and the package's scripts and styles, behind the checks of `Guard`.

    An error that AgentClinic can explain is answered with its message, as `{"error": ...}`.
    """
    return Starlette(
        routes=[*routes, *(file_route(f"/{name}", path) for name, path in static_files().items())],
        middleware=[Middleware(Guard, shared=not is_loopback(host), password=password, guesses=guesses)],
        exception_handlers={AgentClinicError: explained, ClientDisconnect: explained},
        lifespan=lifespan,
    )


def static_files() -> dict[str, Path]:
    return {path.name: path for folder in STATIC for path in sorted(folder.iterdir()) if path.suffix in _TYPES}


_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def file_route(address: str, path: Path) -> Route:
    async def send(_: Request) -> Response:
        return FileResponse(path, media_type=_TYPES.get(path.suffix, "text/html"))

    return Route(address, send)


def explained(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, status_code=400)


def too_soon(why: str, wait: float) -> Response:
    seconds = math.ceil(wait)
    return JSONResponse({"error": f"{why}: try again in {seconds} s."}, 429, {"Retry-After": str(seconds)})


class Guard:
    """Refuses requests from pages of other sites, asks for the password, and adds the security headers.

    An address that has sent too many wrong passwords must wait before it may send even the right one: otherwise it
    could go on guessing. Browsers with the cookie of an earlier right one need not wait: a class may share the address.
    A server for `programs` has no pages: what changes something may come from anything but a page.
    """

    def __init__(
        self, app: ASGIApp, *, shared: bool, password: str | None, guesses: Pace | None = None, programs: bool = False
    ) -> None:
        self._app = app
        self._programs = programs
        self._shared = shared
        self._password = password
        self._guesses = guesses or Pace(*GUESSES)
        self._proof = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(HTTPConnection(scope))
        blocked = False

        async def guarded(message: Message) -> None:
            nonlocal blocked
            if message["type"] == "http.response.start":
                # Checked here because only a finished answer shows which data it contains.
                blocked = self._shared and privacy.silent()
                if blocked:
                    await _LEAVES(scope, receive, send)
                MutableHeaders(scope=message).update(HEADERS)
                if self._password is not None and refused is None:
                    MutableHeaders(scope=message).append("Set-Cookie", f"{_PROOF}={self._proof}; {_ONLY_HERE}")
            if not blocked:
                await send(message)

        try:
            await (refused or self._app)(scope, receive, guarded)
        except asyncio.CancelledError:
            if scope["type"] != "websocket":
                raise
            # Ctrl-C while a session waits for an endpoint; the web server would print a traceback.
        except Exception as error:
            if not privacy.silent():
                raise
            # The web server prints a traceback of any exception that reaches it; ours shows only places in the code.
            raise RuntimeError(privacy.crash(error)) from None

    def _refusal(self, request: HTTPConnection) -> Response | None:
        """The answer to a request, or to the request for a WebSocket, that is not allowed; None if it is."""
        headers, method, path = request.headers, request.scope.get("method", "GET"), request.scope["path"]
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._shared and _name(host) not in _OWN_NAMES:
            # A page of another site whose name was made to point here (DNS rebinding) sends that name.
            return PlainTextResponse("This server answers to 127.0.0.1 and localhost only.", 421)
        site = headers.get("sec-fetch-site")
        opened = method == "GET" and headers.get("sec-fetch-dest") == "document"  # a link that someone followed
        foreign = origin is not None and origin.partition("://")[2] != host
        if foreign or (site not in (None, "none", "same-origin") and not opened):
            return PlainTextResponse("Requests from other sites are refused.", 403)
        if self._programs:
            if "transfer-encoding" in headers or int(headers.get("content-length", 0)) > LARGEST:
                return PlainTextResponse("That is too long.", 413)
        elif method not in ("GET", "HEAD") and origin is None and site != "same-origin":
            return PlainTextResponse("Requests that change something must come from a page of this server.", 403)
        if self._password is not None:
            network, given = network_of(request.scope["client"]), headers.get("authorization", "")
            proven = secrets.compare_digest(request.cookies.get(_PROOF, "").encode(), self._proof.encode())
            if given and not proven and (wait := self._guesses.wait(network)) > 0:
                return too_soon("Too many wrong passwords came from your address", wait)
            if not _knows(given, self._password):
                if given:
                    self._guesses.count(network)
                ask = {"WWW-Authenticate": 'Basic realm="AgentClinic"'}
                return PlainTextResponse("The password is missing or wrong.", 401, ask)
        if len(path) > _LONGEST_PATH:  # the router fails on a number with thousands of digits
            return PlainTextResponse("There is no page with such a long address.", 414)
        return None


_LONGEST_PATH = 1000
_PROOF, _ONLY_HERE = "agentclinic_password_known", "HttpOnly; SameSite=strict; Path=/"
_OWN_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_LEAVES = PlainTextResponse(
    "These runs hold credentialed data, which is shown on this machine only: start without --host.", 403
)


def _name(host: str) -> str:
    """The name in a Host header, without the port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _knows(authorization: str, password: str) -> bool:
    """Whether a request carries the password; any user name will do."""
    kind, _, encoded = authorization.partition(" ")
    try:
        given = base64.b64decode(encoded, validate=True).partition(b":")[2] if kind.lower() == "basic" else b""
    except ValueError:  # not Base64, or not even ASCII
        return False
    return secrets.compare_digest(given, password.encode())


def is_loopback(host: str) -> bool:
    """Whether an address is out of reach of other machines."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def password_for(host: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The password for an address that other machines can reach; None for one that they cannot."""
    if is_loopback(host):
        return None
    password = environment.get(PASSWORD, "")
    if len(password) < SHORTEST:
        raise InputError(
            f"--host {host}: other machines could read everything; set {PASSWORD} in the environment to a password of "
            f"at least {SHORTEST} characters, which they will have to give"
        )
    return password


def listen(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """A socket that listens at this address; port 0 stands for any free one."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot listen on {host}, port {port} ({reason}); choose another --port or --host") from None


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = LOOPBACK
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def serve(
    app: ASGIApp, *, host: str = LOOPBACK, port: int = 0, browser: bool = True, say: Callable[[str], object]
) -> None:
    """Serve until Ctrl-C; open the page in a browser, if wanted and available."""
    with listen(host, port) as listener:
        address = address_of(listener)
        say(f"Open {address} (Ctrl-C stops the server)")
        if browser:
            webbrowser.open(address)
        serve_at(listener, Server(app), say=say)


def serve_at(listener: socket.socket, server: Server, *, say: Callable[[str], object]) -> None:
    """Serve on this socket until Ctrl-C."""
    if not is_loopback(listener.getsockname()[0]):
        say(f"Other machines can connect with the password in {PASSWORD}; the traffic is not encrypted.")
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        say("stopped")


PAGE = Path(__file__).parent / "static" / "index.html"


def viewer_app(folder: Path, *, host: str = LOOPBACK, password: str | None = None) -> Starlette:
    library = Library(folder)
    answers: dict[str, Callable[[QueryParams], Any]] = {
        "runs": lambda _: library.runs(),
        "rows": lambda asked: library.rows(_text(asked, "run"), _number(asked, "first"), asked.get("version")),
        "encounter": lambda asked: library.index(_text(asked, "run")).encounter(_text(asked, "case")),
        "search": lambda asked: _searched(library, asked),
        "compare": lambda asked: library.compare(asked.getlist("run")),
    }
    routes = [Route(f"/data/{name}", _answering(answer)) for name, answer in answers.items()]
    return make_app([file_route("/", PAGE), *routes], host=host, password=password)


def _searched(library: Library, asked: QueryParams) -> Any:
    found, rest = library.index(_text(asked, "run")).search(_text(asked, "text"), _number(asked, "first"))
    return {"found": found, "next": rest}


def _answering(answer: Callable[[QueryParams], Any]) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:  # not async: it reads files, so it is called in a thread
        return JSONResponse(answer(request.query_params))

    return respond


def _text(asked: QueryParams, name: str) -> str:
    if not asked.get(name):
        raise InputError(f"{name}: missing from the address")
    return asked[name]


def _number(asked: QueryParams, name: str) -> int:
    try:
        return max(0, int(asked.get(name, "0")))
    except ValueError:
        raise InputError(f"{name}: not a number") from None
