"""The gate as a table: data of every class against every kind of endpoint, with real sockets on loopback."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import LONG, Server

from agentclinic.config import LLMSettings, Settings
from agentclinic.errors import ConfigError, InputError
from agentclinic.models.base import Image, Message, ModelError, Purpose, Reply, Request
from agentclinic.models.endpoint import Clients
from agentclinic.models.gate import Gate, gate_for, is_loopback_address, lacking
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models

pytestmark = pytest.mark.anyio

OPEN_CLASSES = [DataClass.PUBLIC, DataClass.SYNTHETIC, DataClass.OPEN_DEMO]
ASK = Request(Purpose.PATIENT, (Message("system", "You are a patient."), Message("user", "Where does it hurt?")))
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
COMPLETE = {
    "zero_retention": True,
    "no_training": True,
    "no_human_review": True,
    "attested_by": "A. Steward, agreement 12",
    "attested_on": "2026-01-31",
}


class Places:
    """Where requests may arrive (a server and a unix socket), and a port where none ever may."""

    def __init__(self, folder: Path) -> None:
        self.server = Server()
        self.port = 0
        self.unix = folder / "llm.sock"
        self.strangers = 0
        """Connections to the forbidden port."""
        self.stranger_port = 0

    async def stranger(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.strangers += 1
        writer.close()

    def url(self, host: str, port: int | None = None) -> str:
        return f"http://{host}:{port or self.port}/v1"


def free_port_for_both() -> socket.socket:
    """A socket that listens for IPv4 and IPv6 on all addresses of this machine."""
    return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)


@pytest.fixture
async def places() -> AsyncIterator[Places]:
    folder = Path(tempfile.mkdtemp(prefix="gate-"))  # short: the path of a unix socket has at most 107 bytes
    found = Places(folder)
    runner = web.AppRunner(found.server.application())
    await runner.setup()
    with closing(free_port_for_both()) as ours, closing(free_port_for_both()) as theirs:
        await web.SockSite(runner, ours).start()
        await web.UnixSite(runner, str(found.unix)).start()
        found.port, found.stranger_port = ours.getsockname()[1], theirs.getsockname()[1]
        async with await asyncio.start_server(found.stranger, sock=theirs):
            yield found
        await runner.cleanup()
    shutil.rmtree(folder)


def names(answers: dict[str, list[str]]) -> Callable[[str], Sequence[str]]:
    """A name service that knows only these names."""

    def resolve(host: str) -> list[str]:
        if host not in answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return answers[host]

    return resolve


def settings_at(base_url: str, **more: Any) -> Settings:
    return Settings.model_validate({"openai": {"base_url": base_url}, "llm": {"runtime": {"tries": 1}}, **more})


async def ask(gate: Gate, base_url: str, request: Request = ASK) -> Reply:
    """One request without the check in advance, as if the name had changed since."""
    async with Clients(LLMSettings.model_validate({"runtime": {"tries": 1}}), gate=gate) as clients:
        return await clients.endpoint("scripted", base_url=base_url).reply(request)


ALLOWED = {
    "IPv4 loopback": ("127.0.0.1", None),
    "another of 127.0.0.0/8": ("127.8.9.10", None),
    "IPv6 loopback": ("[::1]", None),
    "IPv6 loopback in full": ("[0:0:0:0:0:0:0:1]", None),
    "IPv4-mapped loopback": ("[::ffff:127.0.0.1]", None),
    "localhost by the system's own lookup": ("localhost", "system"),
    "localhost in capitals": ("LOCALHOST", ["127.0.0.1"]),
    "a name in /etc/hosts": ("llm.lab", ["127.0.0.1"]),
    "a name for IPv6": ("llm.lab", ["::1"]),
    "a name for both": ("llm.lab", ["127.0.0.1", "::1"]),
    "a name with a trailing dot": ("llm.lab.", ["127.0.0.1"]),
    "a name under localhost": ("models.localhost", ["127.0.0.1"]),
    "a user before the host": ("user:word@127.0.0.1", None),
}
REFUSED = {
    "unspecified": ("0.0.0.0", None),
    "unspecified IPv6": ("[::]", None),
    "private 10/8": ("10.0.0.7", None),
    "private 172.16/12": ("172.16.0.9", None),
    "private 192.168/16": ("192.168.1.2", None),
    "carrier 100.64/10": ("100.64.0.1", None),
    "link-local": ("169.254.169.254", None),
    "unique local IPv6": ("[fd00::1]", None),
    "link-local IPv6": ("[fe80::1]", None),
    "public": ("203.0.113.7", None),
    "public IPv6": ("[2001:db8::7]", None),
    "IPv4-mapped private": ("[::ffff:10.0.0.7]", None),
    "IPv4-compatible loopback": ("[::127.0.0.1]", None),
    "6to4 of loopback": ("[2002:7f00:1::1]", None),
    "loopback with a scope": ("[::1%25lo]", None),
    "decimal": ("2130706433", None),
    "hexadecimal": ("0x7f000001", None),
    "octal": ("017700000001", None),
    "octal octets": ("0177.0.0.1", None),
    "short": ("127.1", None),
    "an address with a trailing dot": ("127.0.0.1.", None),
    "an unknown name": ("llm.lab", []),
    "a name elsewhere": ("llm.lab", ["203.0.113.7"]),
    "a name for both here and elsewhere": ("llm.lab", ["127.0.0.1", "203.0.113.7"]),
    "a name for both elsewhere and here": ("llm.lab", ["203.0.113.7", "127.0.0.1"]),
    "a name in the private range": ("llm.lab", ["10.0.0.7"]),
    "a name for a mapped private address": ("llm.lab", ["::ffff:10.0.0.7"]),
    "a name for the unspecified address": ("llm.lab", ["0.0.0.0"]),
    "localhost that points elsewhere": ("localhost", ["203.0.113.7"]),
    "localhost that points both ways": ("localhost", ["127.0.0.1", "10.0.0.7"]),
    "a name that only looks like loopback": ("127.0.0.1.example.org", ["203.0.113.7"]),
    "localhost as a user": ("localhost@203.0.113.7", None),
    "localhost as a user with a password": ("127.0.0.1:80@203.0.113.7", None),
}


def gate_with(host: str, answers: list[str] | str | None) -> Gate:
    if answers == "system":
        return Gate(DataClass.CREDENTIALED)
    known = {host.lower(): list(answers)} if answers else {}
    return Gate(DataClass.CREDENTIALED, resolve=names(known))


@pytest.mark.parametrize(("host", "answers"), ALLOWED.values(), ids=ALLOWED)
async def test_credentialed_data_goes_to_this_machine(host: str, answers: Any, places: Places) -> None:
    gate = gate_with(host, answers)
    gate.check(places.url(host), "openai.base_url")
    reply = await ask(gate, places.url(host))
    assert reply.text == places.server.script.patient
    assert places.server.received == 1


@pytest.mark.parametrize(("host", "answers"), REFUSED.values(), ids=REFUSED)
async def test_credentialed_data_goes_nowhere_else(host: str, answers: Any, places: Places) -> None:
    """Refused in advance, with advice; and without that check, when connecting."""
    gate, url = gate_with(host, answers), places.url(host, places.stranger_port)
    with pytest.raises(ConfigError, match=r"^openai.base_url: credentialed data may not go to .*--allow-host"):
        gate.check(url, "openai.base_url")
    with pytest.raises((ModelError, ConfigError)) as failed:
        await ask(gate, url)
    assert getattr(failed.value, "kind", "config") in ("privacy", "connection", "config")
    assert places.strangers == 0
    assert "Where does it hurt" not in str(failed.value)


@pytest.mark.parametrize("host", ["１２７.0.0.1", "127。0。0。1", "locаlhost"])
def test_a_host_in_other_scripts_is_refused_however_it_may_be_read(host: str) -> None:
    with pytest.raises(ConfigError, match="plain ASCII"):
        Gate(DataClass.CREDENTIALED, resolve=lambda _: ["127.0.0.1"]).check(f"http://{host}/v1", "openai.base_url")


@pytest.mark.parametrize("data_class", OPEN_CLASSES)
@pytest.mark.parametrize(("host", "answers"), [*ALLOWED.values(), *REFUSED.values()], ids=[*ALLOWED, *REFUSED])
def test_other_data_may_go_anywhere(host: str, answers: Any, data_class: DataClass) -> None:
    gate = gate_for(settings_at("http://127.0.0.1/v1"), data_class, resolve=names({}))
    gate.check(f"http://{host}:8000/v1", "openai.base_url")
    assert not gate.closed


async def test_an_address_of_this_machine_on_the_network_is_not_loopback(places: Places) -> None:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only asks which of our addresses would be used
            address = probe.getsockname()[0]
        except OSError:
            pytest.skip("this machine has no network address")
    if is_loopback_address(address):
        pytest.skip("this machine has no network address")
    gate, url = gate_with(address, None), places.url(address, places.stranger_port)
    with pytest.raises(ConfigError, match="not a loopback address"):
        gate.check(url, "openai.base_url")
    with pytest.raises(ModelError, match="not a loopback address"):
        await ask(gate, url)
    assert places.strangers == 0
    with closing(socket.create_connection((address, places.stranger_port), timeout=LONG)):
        pass  # the port was open all along


async def test_a_name_that_changes_its_address_is_not_followed(places: Places) -> None:
    answers = iter([["127.0.0.1"], ["203.0.113.7"]])
    gate = Gate(DataClass.CREDENTIALED, resolve=lambda _: next(answers))
    gate.check(places.url("llm.lab"), "openai.base_url")
    with pytest.raises(ModelError, match=r"llm.lab: the name resolves to 203.0.113.7, which is not loopback") as failed:
        await ask(gate, places.url("llm.lab"))
    assert failed.value.kind == "privacy"
    assert failed.value.retries == 0
    assert places.server.received == 0


async def test_the_connection_goes_to_the_address_that_was_checked(places: Places) -> None:
    """A name is looked up once per connection; what it resolves to a moment later does not matter."""
    asked: list[str] = []

    def resolve(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["203.0.113.7"]

    assert (await ask(Gate(DataClass.CREDENTIALED, resolve=resolve), places.url("llm.lab"))).text
    assert asked == ["llm.lab"]


@asynccontextmanager
async def redirecting(status: int, location: str) -> AsyncIterator[int]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": location})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.mark.parametrize("data_class", DataClass)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int, data_class: DataClass, places: Places) -> None:
    async with redirecting(status, f"http://127.0.0.1:{places.stranger_port}/v1") as port:
        gate = gate_for(settings_at("http://127.0.0.1/v1"), data_class)
        with pytest.raises(ModelError, match=f"answered {status} .redirect, not followed"):
            await ask(gate, places.url("127.0.0.1", port))
    assert places.strangers == 0


@pytest.mark.parametrize("variable", PROXY_VARIABLES)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "llm.lab", "attested.example.org"])
async def test_proxies_are_not_used(host: str, variable: str, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXY_VARIABLES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, f"http://127.0.0.1:{places.stranger_port}")
    known = {name: ["127.0.0.1"] for name in ("localhost", "llm.lab", "attested.example.org")}
    agreed = f"attested.example.org:{places.port}"
    settings = settings_at(places.url(host), privacy={"hosts": {agreed: COMPLETE}}, allow_hosts=(agreed,))
    async with Models(settings, DataClass.CREDENTIALED, resolve=names(known)) as models:
        assert (await models.get("scripted").reply(ASK)).text
    assert (places.server.received, places.strangers) == (1, 0)


async def test_without_the_gate_the_proxy_is_used(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would show nothing."""
    for name in (*PROXY_VARIABLES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{places.stranger_port}")
    with pytest.raises(ModelError):
        await ask(Gate(DataClass.PUBLIC), "http://llm.example.org/v1")
    assert places.strangers == 1


async def test_nothing_of_a_request_is_logged(places: Places, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await ask(Gate(DataClass.CREDENTIALED), places.url("127.0.0.1"))
    assert caplog.records, "without log records this test shows nothing"
    assert "Where does it hurt" not in caplog.text
    assert places.server.script.patient not in caplog.text


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of llm.lab that is not trusted, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    name = ["-subj", "/CN=llm.lab", "-addext", "subjectAltName=DNS:llm.lab"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


async def test_certificates_are_checked_as_usual(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate must be trusted and must name the host, not its address."""
    secure = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    secure.load_cert_chain(*certificate)
    server = Server()
    runner = web.AppRunner(server.application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=secure).start()
    port = runner.addresses[0][1]
    gate = Gate(DataClass.CREDENTIALED, resolve=names({"llm.lab": ["127.0.0.1"], "other.lab": ["127.0.0.1"]}))
    with pytest.raises(ModelError, match="certificate verify failed"):
        await ask(gate, f"https://llm.lab:{port}/v1")
    with pytest.raises(ModelError, match="certificate verify failed"):
        await ask(Gate(DataClass.PUBLIC), f"https://127.0.0.1:{port}/v1")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with pytest.raises(ModelError, match="Hostname mismatch"):
        await ask(gate, f"https://other.lab:{port}/v1")
    assert (await ask(gate, f"https://llm.lab:{port}/v1")).text
    assert server.received == 1
    await runner.cleanup()


# Unix sockets


@pytest.mark.parametrize("data_class", DataClass)
@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_data_of_every_class_may_go_to_a_unix_socket(data_class: DataClass, api: str, places: Places) -> None:
    settings = settings_at(f"unix://{places.unix}", llm={"runtime": {"tries": 1, "llm_api": api}})
    async with Models(settings, data_class) as models:
        assert (await models.get("scripted").reply(ASK)).text == places.server.script.patient
    assert [entry["api"] for entry in places.server.log] == [api]


async def test_a_unix_address_may_include_the_path_of_the_api(places: Places) -> None:
    with pytest.raises(ModelError, match="no such address"):
        await ask(Gate(), f"unix://{places.unix}:/elsewhere/v1")
    assert (await ask(Gate(), f"unix://{places.unix}:/v1")).text


async def test_a_missing_socket_is_a_failed_connection(places: Places) -> None:
    with pytest.raises(ModelError, match=r"unix:///no/such\.sock could not be reached"):
        await ask(Gate(DataClass.CREDENTIALED), "unix:///no/such.sock")


@pytest.mark.parametrize("address", ["unix:", "unix://", "unix://run/llm.sock", "unix:run", "unix:///run/x?key=1"])
def test_a_unix_address_without_a_full_path_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="full path of a socket"):
        settings_at(address)
    with pytest.raises(ConfigError, match="full path of a socket"):
        Clients().endpoint("scripted", base_url=address)


# Attested hosts


def attested(host: Any = "attested.example.org", **changes: Any) -> dict[str, Any]:
    entry = {key: value for key, value in {**COMPLETE, **changes}.items() if value is not None}
    return {"hosts": {host: entry}}


def gate_at(url: str, privacy: dict[str, Any] | None, *allowed: str) -> Gate:
    settings = settings_at(url, privacy=privacy or {}, allow_hosts=allowed)
    gate = gate_for(settings, DataClass.CREDENTIALED, resolve=names({"attested.example.org": ["203.0.113.7"]}))
    gate.check(url, "openai.base_url")
    return gate


URL = "https://attested.example.org/v1"


def test_an_attested_host_is_open_if_the_command_line_allows_it() -> None:
    assert gate_at(URL, attested(), "attested.example.org").attests(URL)
    assert gate_at(URL, attested(), "Attested.Example.org.").attests(URL)
    assert gate_at(URL, attested("attested.example.org:443"), "attested.example.org:443").attests(URL)


INCOMPLETE = {
    "zero_retention": (None, False),
    "no_training": (None, False),
    "no_human_review": (None, False),
    "attested_by": (None, "", "   "),
    "attested_on": (None, (date.today() + timedelta(days=2)).isoformat()),
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in INCOMPLETE.items() for value in values])
def test_an_incomplete_attestation_opens_nothing(key: str, value: object) -> None:
    privacy = attested(**{key: value})
    with pytest.raises(ConfigError, match=rf"--allow-host attested.example.org: privacy.hosts.*{key}"):
        gate_at(URL, privacy, "attested.example.org")
    with pytest.raises(ConfigError, match=rf"openai.base_url: .*complete privacy.hosts.*{key}"):
        gate_at(URL, privacy)


@pytest.mark.parametrize("value", ["yes", "true", 1, "on"])
def test_only_true_is_accepted_as_true(value: object) -> None:
    with pytest.raises(ValueError, match="valid boolean"):
        settings_at(URL, privacy=attested(zero_retention=value))


@pytest.mark.parametrize("value", [0, 20260131, "2026-13-01", "yesterday", "2026-01-31T00:00:00", True])
def test_only_a_date_is_accepted_as_a_date(value: object) -> None:
    with pytest.raises(ValueError, match="attested_on"):
        settings_at(URL, privacy=attested(attested_on=value))


def test_the_config_alone_opens_nothing() -> None:
    with pytest.raises(ConfigError, match=r"or allow it with --allow-host attested.example.org \(docs"):
        gate_at(URL, attested())


def test_the_command_line_alone_opens_nothing() -> None:
    with pytest.raises(ConfigError, match=r"not in privacy\.hosts of agentclinic\.config\.json"):
        gate_at(URL, None, "attested.example.org")


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example.org/v1",
        "https://sub.attested.example.org/v1",
        "https://attested.example.org.evil.example/v1",
        "https://attested.example.org:8443/v1",
        "https://attested.example.org@203.0.113.7/v1",
        "https://203.0.113.7/v1",
    ],
)
def test_only_the_exact_host_and_port_are_open(url: str) -> None:
    with pytest.raises(ConfigError, match="credentialed data may not go to"):
        gate_at(url, attested(), "attested.example.org")


@pytest.mark.parametrize(
    "host", ["https://attested.example.org", "attested.example.org/v1", "*.example.org", "", "a b"]
)
def test_anything_but_a_host_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="must be a host"):
        gate_at(URL, attested(), host)
    with pytest.raises(ValueError, match="must be a host"):
        settings_at(URL, privacy=attested(host))


@pytest.mark.parametrize("given", ["nurse:planted@host", "nurse:planted@host:8000", "https://nurse:planted@host/v1"])
@pytest.mark.parametrize("data_class", [DataClass.PUBLIC, DataClass.CREDENTIALED])
def test_a_password_in_an_allowed_host_is_refused_and_not_repeated(data_class: DataClass, given: str) -> None:
    settings = Settings(allow_hosts=(given,))
    with pytest.raises(ConfigError, match="--allow-host: must be a host or host:port") as refused:
        gate_for(settings, data_class)
    assert "planted" not in str(refused.value)


def test_an_impossible_port_of_an_allowed_host_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--allow-host: must be a host or host:port \(1 to 65535\)"):
        gate_for(Settings(allow_hosts=("10.0.0.7:99999",)), DataClass.CREDENTIALED)


def test_a_host_named_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="names a host twice"):
        settings_at(URL, privacy={"hosts": {"a.example": COMPLETE, "A.example": COMPLETE}})


async def test_an_attested_host_is_reached(places: Places) -> None:
    host = f"attested.example.org:{places.port}"
    settings = settings_at(places.url("attested.example.org"), privacy=attested(host), allow_hosts=(host,))
    known = names({"attested.example.org": ["127.0.0.1"]})
    async with Models(settings, DataClass.CREDENTIALED, resolve=known) as models:
        assert (await models.get("scripted").reply(ASK)).text
    assert places.server.received == 1


def test_an_attested_host_without_encryption_causes_a_warning() -> None:
    with pytest.warns(UserWarning, match="unencrypted; use https"):
        gate_at("http://attested.example.org/v1", attested(), "attested.example.org")


def test_an_endpoint_may_not_be_asked_to_store_credentialed_data() -> None:
    settings = settings_at("http://127.0.0.1/v1", llm={"responses": {"store": True}})
    with pytest.raises(ConfigError, match=r"llm\.responses\.store"):
        gate_for(settings, DataClass.CREDENTIALED)
    assert not gate_for(settings, DataClass.PUBLIC).closed


def test_an_attestation_of_today_counts() -> None:
    entry = settings_at(URL, privacy=attested(attested_on="2026-02-01")).privacy.hosts["attested.example.org"]
    assert lacking(entry, today=date(2026, 2, 1)) == []
    assert lacking(entry, today=date(2026, 1, 31)) == ["attested_on is in the future"]


# Images


@pytest.mark.parametrize("address", ["https://203.0.113.7/x.png", "HTTP://127.0.0.1/x.png"])
async def test_an_image_of_a_credentialed_case_is_never_a_web_address(address: str, places: Places) -> None:
    request = Request(Purpose.DOCTOR, (Message("user", "Look.", images=(Image(address),)),))
    with pytest.raises(InputError, match="local file"):
        await ask(Gate(DataClass.CREDENTIALED), places.url("127.0.0.1"), request)
    assert places.server.received == 0
    assert (await ask(Gate(), places.url("127.0.0.1"), request)).text


async def test_a_local_image_is_sent_as_data(places: Places, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n rest")
    request = Request(Purpose.DOCTOR, (Message("user", "Look.", images=(Image(str(tmp_path / "x.png")),)),))
    await ask(Gate(DataClass.CREDENTIALED), places.url("127.0.0.1"), request)
    assert "data:image/png;base64," in json.dumps(places.server.log[0]["body"])


# Spellings


def loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Loopback by its bits: 127.0.0.0/8, ::1, or 127.0.0.0/8 mapped into IPv6."""
    number = int(address)
    if address.version == 4:
        return number >> 24 == 127
    return number == 1 or number >> 24 == (0xFFFF << 8 | 127)


ADDRESSES = st.one_of(
    st.ip_addresses(),
    st.integers(0, 2**24 - 1).map(lambda n: ipaddress.IPv4Address(127 << 24 | n)),
    st.integers(0, 2**32 - 1).map(lambda n: ipaddress.IPv6Address(0xFFFF << 32 | n)),
    st.integers(0, 2**24 - 1).map(lambda n: ipaddress.IPv6Address((0xFFFF << 8 | 127) << 24 | n)),
    st.integers(0, 3).map(ipaddress.IPv6Address),
)
CLOSED = Gate(DataClass.CREDENTIALED, resolve=names({}))


@given(ADDRESSES)
def test_an_address_is_allowed_exactly_if_it_is_loopback(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert is_loopback_address(str(address)) == loopback(address)
    assert is_loopback_address(address.exploded) == loopback(address)
    assert (CLOSED.refusal(str(address)) is None) == loopback(address)


@given(st.ip_addresses(v=4), st.sampled_from(["decimal", "hex", "HEX", "octal", "short", "padded", "hex octets"]))
def test_no_other_spelling_of_an_address_is_allowed(address: ipaddress.IPv4Address, how: str) -> None:
    number, octets = int(address), address.packed
    spelled = {
        "decimal": str(number),
        "hex": f"{number:#x}",
        "HEX": f"0X{number:X}",
        "octal": f"0{number:o}",
        "short": f"{octets[0]}.{number & 0xFFFFFF}",
        "padded": ".".join(f"0{octet:o}" for octet in octets),
        "hex octets": ".".join(f"{octet:#x}" for octet in octets),
    }[how]
    assert CLOSED.refusal(spelled) is not None
    everything = Gate(DataClass.CREDENTIALED, resolve=lambda _: ["127.0.0.1"])
    assert everything.refusal(spelled) is not None, "not even if the system reads it as loopback"


@given(st.lists(ADDRESSES, max_size=4))
def test_a_name_is_allowed_exactly_if_all_its_addresses_are_loopback(
    addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address],
) -> None:
    gate = Gate(DataClass.CREDENTIALED, resolve=lambda _: [str(address) for address in addresses])
    assert (gate.refusal("llm.lab") is None) == (bool(addresses) and all(map(loopback, addresses)))


@pytest.mark.slow
@given(st.text(max_size=30))
def test_no_host_makes_the_gate_fail(host: str) -> None:
    assert CLOSED.refusal(host) is not None or is_loopback_address(host)


@given(st.text(alphabet="htps:/@[]%.?#\\127.0localexmpf", max_size=40))
def test_any_text_for_an_address_is_refused_or_loopback(url: str) -> None:
    try:
        CLOSED.check(f"http://{url}", "openai.base_url")
    except ConfigError:
        return
    host = url.rpartition("@")[2] if "@" in url.split("/")[0].split("?")[0].split("#")[0] else url
    assert host.startswith(("127.", "[::", "[0", "[1")), url
