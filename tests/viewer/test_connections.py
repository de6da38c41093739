"""A server that stays usable while clients are slow, stuck or hostile; real sockets, and limits that are small."""

from __future__ import annotations

import logging
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from scripted_server import LONG
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from viewer_support import serving

from agentclinic.viewer.connections import BoundedLog, Limits, Pace, network_of
from agentclinic.viewer.server import make_app

HURRIED = Limits(seconds=0.2)
released, answered, arrived = threading.Event(), threading.Event(), threading.Semaphore(0)
PARTS, PART = 16, b"x" * 2**20


async def post(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


def held(_: Request) -> Response:
    arrived.release()
    assert released.wait(LONG)
    return PlainTextResponse("held")


async def large(_: Request) -> Response:
    async def parts() -> Iterator[bytes]:  # type: ignore[misc]
        for _ in range(PARTS):
            yield PART
        answered.set()

    return StreamingResponse(parts())


APP = make_app([Route("/", post, methods=["GET", "POST"]), Route("/held", held), Route("/large", large)])


def connected(address: str, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    """A connection on which so much was sent."""
    port = urlsplit(address).port
    assert port is not None
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    client.settimeout(LONG)
    client.bind((source, 0))
    client.connect(("127.0.0.1", port))
    client.sendall(sent.replace(b"HOST", b"Host: 127.0.0.1"))
    return client


def rest(client: socket.socket) -> bytes:
    """Everything that still comes until the server closes the connection."""
    said = bytearray()
    with suppress(ConnectionResetError):
        while part := client.recv(2**16):
            said += part
    return bytes(said)


def get(address: str, path: str = "/", source: str = "127.0.0.1") -> str:
    connection = HTTPConnection(urlsplit(address).netloc, timeout=LONG, source_address=(source, 0))
    connection.request("GET", path)
    try:
        return connection.getresponse().read().decode()
    finally:
        connection.close()


HELD = b"GET /held HTTP/1.1\r\nHOST\r\n\r\n"
HALVES = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nHOST\r\nX-Mor",
    "half a body": b"POST / HTTP/1.1\r\nHOST\r\nOrigin: http://127.0.0.1\r\nContent-Length: 50\r\n\r\n{",
    "half a body of a request that is refused": b"POST / HTTP/1.1\r\nHOST\r\nContent-Length: 50\r\n\r\n{",
    "an endless body": b"POST / HTTP/1.1\r\nHOST\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
    "half of the next head": b"GET / HTTP/1.1\r\nHOST\r\n\r\nGET / HT",
}


@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_a_request_that_is_not_sent_in_time_is_closed(sent: bytes) -> None:
    with serving(APP, HURRIED) as address, connected(address, sent) as client:
        assert rest(client).count(b"HTTP/1.1 2") == sent.count(b"GET / HTTP/1.1\r\nHOST\r\n\r\n")


def test_a_connection_that_was_used_gets_no_more_time() -> None:
    with serving(APP, HURRIED) as address, connected(address, b"GET / HTTP/1.1\r\nHOST\r\n\r\n") as client:
        answer = client.recv(2**16)
        if not answer.endswith(b"0"):  # head and body may come one after the other
            client.recv(2**16)
        with suppress(OSError):  # closed already
            client.sendall(b"GET / HT")
        assert rest(client) == b""


@pytest.mark.parametrize("sent", [HALVES["half a head"], HALVES["half a body"]])
def test_bytes_that_trickle_in_gain_no_time(sent: bytes) -> None:
    with serving(APP, HURRIED) as address, connected(address, sent) as client:
        client.settimeout(0.02)
        closed = False
        while not closed:
            try:
                client.sendall(b"e")
                closed = client.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True


def test_a_client_that_does_not_read_is_let_go_of() -> None:
    answered.clear()
    with serving(APP, HURRIED) as address, connected(address, b"GET /large HTTP/1.1\r\nHOST\r\n\r\n") as client:
        assert answered.wait(LONG), "the server gives up"
        assert len(rest(client)) < PARTS * len(PART)


def test_an_answer_may_take_its_time() -> None:
    released.clear()
    with serving(APP, HURRIED) as address, connected(address, HELD) as client:
        assert arrived.acquire(timeout=LONG)
        with connected(address) as idle:
            rest(idle)  # it is closed after the limit
        released.set()
        assert client.recv(2**16).startswith(b"HTTP/1.1 200")


def test_newcomers_take_the_place_of_those_who_keep_us_waiting_longest() -> None:
    with serving(APP, Limits(LONG, in_all=5, per_address=3)) as address, ExitStack() as stack:
        mine = stack.enter_context(connected(address, HALVES["half a head"]))
        others = [stack.enter_context(connected(address, HALVES["half a head"], "127.0.0.2")) for _ in range(8)]
        for other in others[:5]:
            assert rest(other) == b"", "three remain of its address"
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            assert get(address, source=source) == "0"
        mine.sendall(b"e: 1\r\n\r\n")
        assert mine.recv(2**16).startswith(b"HTTP/1.1 200"), "another address cannot push it out"
        third = [stack.enter_context(connected(address, b"", "127.0.0.3")) for _ in range(3)]
        fourth = [stack.enter_context(connected(address, b"", "127.0.0.4")) for _ in range(3)]
        assert len(third + fourth) == 6
        assert get(address, source="127.0.0.5") == "0", "in all there is room again"
        assert rest(others[-1]) == b""


def test_a_request_that_is_being_answered_is_not_given_up_for_a_newcomer() -> None:
    released.clear()
    with serving(APP, Limits(LONG, in_all=2, per_address=2)) as address, ExitStack() as stack:
        working = [stack.enter_context(connected(address, HELD)) for _ in range(2)]
        for _ in working:
            assert arrived.acquire(timeout=LONG)
        newcomer = stack.enter_context(connected(address))
        assert rest(newcomer) == b""
        released.set()
        for client in working:
            assert client.recv(2**16).startswith(b"HTTP/1.1 200")


def test_nonsense_does_not_fill_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(APP) as address:
        for number in range(100):
            upgrade = b"GET / HTTP/1.1\r\nHOST\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
            with connected(address, b"\x00\r\n\r\n" if number % 2 else upgrade) as client:
                client.recv(100)
    lines = capfd.readouterr().err.splitlines()
    assert 1 < len(lines) <= 2 * BoundedLog.MOST
    assert any("further messages are left out" in line for line in lines)


def test_a_minute_has_so_many_messages() -> None:
    now = [0.0]
    log = BoundedLog()
    log.clock = lambda: now[0]

    def passed() -> list[str]:
        records = [logging.LogRecord("x", logging.ERROR, "", 0, "no %s", (n,), None) for n in range(50)]
        return [record.getMessage() for record in records if log.filter(record)]

    last = f"no {log.MOST - 1} (further messages are left out for a minute)"
    assert passed() == [*(f"no {n}" for n in range(log.MOST - 1)), last]
    now[0] = 59.9
    assert passed() == []
    now[0] = 60.0
    assert len(passed()) == log.MOST


def test_a_pace_is_kept_for_each_address_and_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "_ADDRESSES", 3)
    now = [100.0]
    pace = Pace(2, 5.0, lambda: now[0])
    for _ in range(2):
        assert pace.wait("a") <= 0
        pace.count("a")
    assert (pace.wait("a"), pace.wait("b") <= 0) == (5, True)
    now[0] += 4
    assert pace.wait("a") == 1
    now[0] += 1
    assert pace.wait("a") == 0
    pace.count("a")
    assert pace.wait("a") == 5
    for address in "bcd":
        pace.count(address)
    assert pace.wait("a") <= 0, "forgotten"


def test_a_machine_with_many_addresses_counts_as_one() -> None:
    assert network_of(("192.0.2.7", 1)) == "192.0.2.7"
    assert network_of(("2001:db8::1", 1)) == network_of(("2001:db8::ffff:2", 1)) == "2001:db8::/64"
    assert network_of(("2001:db8:0:1::1", 1)) != "2001:db8::/64"
    assert network_of(("fe80::1%eth0", 1)) == "fe80::/64"
    assert (network_of(None), network_of(("odd:name" * 100, 1))) == ("", ("odd:name" * 8))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_more_half_sent_requests_than_files_block_no_one_and_write_nothing(tmp_path: Path) -> None:
    few = (256, 256)
    command = [sys.executable, "-m", "agentclinic", "view", str(tmp_path), "--no-browser"]
    with (
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few),
        ) as server,
        ExitStack() as stack,
    ):
        assert server.stdout is not None
        assert server.stderr is not None
        address = server.stdout.readline().split()[1]
        for number in range(300):
            stack.enter_context(connected(address, HALVES["half a head"], f"127.0.0.{2 + number % 3}"))
        assert "<html" in get(address)
        server.terminate()
        assert server.stderr.read() == ""
