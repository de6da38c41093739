"""A consulting room on the network, with few file descriptors, and clients that are slow, stuck or hostile.

Each try is one more client that stays: half of a head or a body, a request that comes byte by byte, an idle connection,
answers that are never read, nonsense, wrong passwords, joins under a name that is taken. They come from the address of
an honest client as well as from others, and differ in what is sent, where it is cut and with what password. After each,
honest requests are made. A try falls if one is refused or takes over 5 s, if the log is long, or has a traceback.
"""

from __future__ import annotations

import base64
import os
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from play_support import traced_cases

TRIES = 500
FILES = 256
"""File descriptors of the server, as macOS gives them."""
LONGEST = 5.0
"""Seconds that an honest request may take."""
MOST_LINES = 200
"""Of the server's log: a minute has at most 20 messages, each of which may have a few lines."""
PASSWORD = "correct horse battery"


def attack(tries: int, seed: int, folder: Path) -> Iterator[str | None]:
    """One item per try: None if it held, else what fell."""
    draw = random.Random(seed)
    with Server(folder) as server, ExitStack() as stack:
        trickle = stack.enter_context(Trickle())
        browser = Honest(server.port, "127.0.0.1")
        browser.ask("/")  # the page is open before the attack
        for number in range(tries):
            hostile = stack.enter_context(_connected(server.port, f"127.0.0.{draw.randint(1, 9)}"))
            with suppress(OSError):  # the server may close it at once
                draw.choice(KINDS)(draw, hostile, trickle)
            newcomer = Honest(server.port, f"127.0.0.{10 + number % 240}")
            yield browser.ask(draw.choice(PAGES)) or newcomer.ask("/") or server.problem()


PAGES = ("/", "/play.js", "/api/room", "/api/tests")


class Server:
    """`agentclinic play` as a process of its own, for other machines."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        self._known: set[str] = set()
        cases = traced_cases(folder / "cases.jsonl", 3)
        command = [sys.executable, "-m", "agentclinic", "play", "--dataset", str(cases), "--host", "0.0.0.0"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "--port", "0", "--no-browser"],
                cwd=folder,
                env={**os.environ, "AGENTCLINIC_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),
            )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().split(":")[2].partition("/")[0])

    def problem(self) -> str | None:
        """What is wrong with the log, said once."""
        log = self._log.read_text()
        found = {f"{log.count('Traceback')} tracebacks"} if "Traceback" in log else set()
        if log.count("\n") > MOST_LINES:
            found.add(f"the log has more than {MOST_LINES} lines")
        new = found - self._known
        self._known |= found
        return ", ".join(sorted(new)) or None

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


class Honest:
    """A browser whose user knows the password; each request has a connection of its own."""

    def __init__(self, port: int, source: str) -> None:
        self._port = port
        self._source = source
        self._headers = {"Authorization": _basic(PASSWORD)}

    def ask(self, path: str) -> str | None:
        """What went wrong with a request."""
        began = time.monotonic()
        connection = HTTPConnection("127.0.0.1", self._port, timeout=LONGEST, source_address=(self._source, 0))
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            answer.read()
            for cookie in answer.headers.get_all("set-cookie", ()):
                self._headers["Cookie"] = cookie.partition(";")[0]
            status = answer.status
        except (OSError, HTTPException) as error:
            return f"honest request for {path}: {error!r}"
        finally:
            connection.close()
        if status != 200:
            return f"honest request for {path}: status {status}"
        return f"honest request for {path}: over 5 s" if time.monotonic() - began > LONGEST else None


def _basic(password: str) -> str:
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


def _connected(port: int, source: str) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(LONGEST)
    client.bind((source, 0))
    with suppress(OSError):
        client.connect(("127.0.0.1", port))
    return client


class Trickle:
    """Sends one byte at a time to each of many connections, for as long as they accept it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[socket.socket, Iterator[int]]] = []
        self._stopped = threading.Event()

    def add(self, client: socket.socket, content: bytes) -> None:
        client.setblocking(False)
        self._waiting.append((client, iter(content)))

    def _run(self) -> None:
        while not self._stopped.wait(0.05):
            for client, content in list(self._waiting):
                try:
                    client.send(bytes([next(content)]))
                except BlockingIOError:
                    continue
                except (OSError, StopIteration):
                    self._waiting.remove((client, content))

    def __enter__(self) -> Trickle:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()


def _head(draw: random.Random, method: str = "GET", path: str | None = None, **headers: str) -> bytes:
    """The head of a request; some know the password, some do not."""
    given: dict[str, str] = {"Host": "127.0.0.1", "Origin": "http://127.0.0.1", **headers}
    who = draw.choice(("stranger", "insider", "guesser"))
    if who != "stranger":
        given["Authorization"] = _basic(PASSWORD if who == "insider" else f"guess {draw.random()}")
    for _ in range(draw.randint(0, 9)):
        given[f"X-{draw.randrange(1000)}"] = "x" * draw.randint(1, 900)
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path or draw.choice(PAGES)} HTTP/1.1\r\n{lines}\r\n".encode()


def _body(draw: random.Random) -> bytes:
    path, size = draw.choice(("/api/join", "/api/games", "/")), draw.randint(2, 10**6)
    if draw.random() < 0.3:
        return _head(draw, "POST", path, Transfer_Encoding="chunked").replace(b"_", b"-") + b"ffff\r\n"
    return _head(draw, "POST", path, **{"Content-Length": str(size)})


def half_head(draw: random.Random, client: socket.socket, _: Trickle) -> None:
    head = _head(draw)
    client.sendall(head[: draw.randrange(len(head))])


def half_body(draw: random.Random, client: socket.socket, _: Trickle) -> None:
    client.sendall(_body(draw) + b"{" * draw.randint(0, 1))


def bytewise_head(draw: random.Random, client: socket.socket, trickle: Trickle) -> None:
    trickle.add(client, _head(draw))


def bytewise_body(draw: random.Random, client: socket.socket, trickle: Trickle) -> None:
    client.sendall(_body(draw))
    trickle.add(client, b'{"name": "' + b"x" * draw.randint(10, 10_000))


def idle(draw: random.Random, client: socket.socket, _: Trickle) -> None:
    """Connects in advance, or stays after an answer."""
    if draw.random() < 0.5:
        client.sendall(_head(draw))
        client.recv(100)


def never_reads(draw: random.Random, client: socket.socket, _: Trickle) -> None:
    client.settimeout(0.2)
    client.sendall(b"".join(_head(draw) for _ in range(draw.randint(1, 300))))


def nonsense(draw: random.Random, client: socket.socket, _: Trickle) -> None:
    client.sendall(
        draw.choice((draw.randbytes(draw.randint(1, 5000)), b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n"))
    )
    client.sendall(_head(draw, Connection="upgrade", Upgrade="websocket"))


def guesses(draw: random.Random, client: socket.socket, _: Trickle) -> None:
    """Many wrong passwords on one connection."""
    client.settimeout(0.2)
    for number in range(draw.randint(5, 40)):
        client.sendall(f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: {_basic(f'guess {number}')}\r\n\r\n".encode())
        client.recv(4096)


def joins(draw: random.Random, client: socket.socket, _: Trickle) -> None:
    """Names that are taken, with codes that are guessed."""
    for number in range(draw.randint(1, 20)):
        said = f'{{"name": "Anna", "code": "{draw.random()}{number}"}}'.encode()
        client.sendall(_head(draw, "POST", "/api/join", **{"Content-Length": str(len(said))}) + said)
        client.recv(4096)


KINDS: tuple[Callable[[random.Random, socket.socket, Trickle], None], ...] = (
    *(half_head, half_body, bytewise_head, bytewise_body, never_reads) * 3,
    *(idle, nonsense, guesses, joins),
)
