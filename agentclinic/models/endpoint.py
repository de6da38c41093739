"""Models behind OpenAI-compatible endpoints, by the Responses API or chat completions.

`Clients` holds one connection pool, one limiter and one memory of what the server can do for each address and
key; an `Endpoint` is one model there. The SDK is imported with the first request, as that takes a second.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial, reduce
from operator import add
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from agentclinic.config import LLMSettings, RuntimeSettings, unix_parts, without_credentials
from agentclinic.errors import ConfigError, InputError
from agentclinic.models import faults, wire
from agentclinic.models.base import MalformedError, Message, ModelError, Purpose, Reply, Request, ServerError
from agentclinic.models.clipping import clip
from agentclinic.models.gate import OPEN, Gate
from agentclinic.models.images import image_url
from agentclinic.models.retry import Clock, Limiter, with_retries
from agentclinic.models.structured import InvalidReplyError, complaint, format_of, parse, with_instruction
from agentclinic.results.turn import Usage

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
PURPOSE_HEADER = "X-AgentClinic-Purpose"

MOST_CONNECTIONS = 4096
"""Far above any sensible `workers`: the limiter, not the pool, decides how much is under way."""

KEEP_ALIVE = 60.0
"""Seconds an idle connection is kept; the 5 s of the SDK is less than many a turn takes."""

CONNECT_TIMEOUT = 30.0
"""Seconds; when 1,000 connections open at once, the last of them waits longer than the 5 s of the SDK."""

MANY_WORKERS = 32
"""From here on garbage collection is tuned to a run; smaller uses, such as a notebook, keep their own settings."""

_NOBODYS_BUSINESS = ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Async")
"""What the SDK tells every server about this machine, as X-Stainless-...: no server needs it, and the
headers of a request are built six times on their way."""


class HttpAnswer(NamedTuple):
    """An HTTP answer of any status."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Client:
    """The connection to one address with one key: shared by all models there, closed by `aclose`."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: SecretStr | None = None,
        *,
        runtime: RuntimeSettings | None = None,
        workers: int = 1,
        proxies: bool = True,
        clock: Clock | None = None,
        gate: Gate = OPEN,
    ) -> None:
        self.runtime = runtime or RuntimeSettings()
        self.clock = clock or Clock()
        self.gate = gate
        self._address = address = base_url or OPENAI_URL
        try:
            unix = unix_parts(address)
        except ValueError as error:
            raise ConfigError(f"base_url {error}") from None
        parts = urlsplit(f"http://localhost{unix.path}" if unix else address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = without_credentials(address)
            raise ConfigError(f"base_url {shown!r} is no http(s) address; e.g. http://127.0.0.1:8000/v1")
        self._key = api_key.get_secret_value().strip() if api_key else ""
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError(f"the key for {parts.hostname} has characters no key has; was it pasted whole?")
        # Credentials within the address are for servers behind a password; a key goes before them.
        self._base_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        if self._key:
            self._authorization = f"Bearer {self._key}"
        elif parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._key = base64.b64encode(pair.encode()).decode("ascii")
            self._authorization = f"Basic {self._key}"
        else:
            self._authorization = ""
        self.host = faults.Host(address, self._key)
        self.is_openai = parts.hostname.endswith((".openai.com", ".openai.azure.com"))
        # Loopback never goes through a proxy: the server is this machine's, and so is what is sent to it. Nor does
        # anything that has to pass the gate: a proxy is another host.
        self._trust_env = proxies and not is_loopback(parts.hostname) and not gate.closed
        self._own_transport = gate.closed or unix is not None
        self._connections = _connections()
        self.limiter = Limiter(min(workers, self._connections), self.clock)
        self.auto = self.runtime.llm_api == "auto"
        self.api: wire.Api | None = None if self.runtime.llm_api == "auto" else self.runtime.llm_api
        """The API known to be there; None while `auto` has not found out."""
        self.prompt_only: set[tuple[wire.Api, str]] = set()
        """Models for which the server refuses a structured output format, so that the prompt must do."""
        self._sdk: AsyncOpenAI | None = None

    def __repr__(self) -> str:
        return f"Client({self.host.name!r})"

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        if self._sdk is not None:
            await self._sdk.close()
            self._sdk = None

    async def post(self, path: str, content: bytes, purpose: Purpose) -> HttpAnswer:
        """Send one body; whatever HTTP status comes back is an answer, anything else raises."""
        import aiohttp
        import httpx2
        import openai

        try:
            sdk = self._sdk or self._open()
        except httpx2.InvalidURL:
            raise ConfigError(
                f"base_url: {self.host.name} is no host or address; e.g. http://127.0.0.1:8000/v1"
            ) from None
        # Explicit, so that no key, organisation or header of the environment can take its place.
        authorization = self._authorization or openai.Omit()
        limit = self.runtime.request_timeout
        failure: ModelError | None = None
        try:
            # The socket's timeout knows only silence: a server that drips would keep us for ever.
            async with asyncio.timeout(limit):
                response = await sdk.post(
                    path,
                    content=content,
                    cast_to=httpx2.Response,
                    options={
                        "headers": {
                            PURPOSE_HEADER: str(purpose),
                            "Authorization": authorization,
                            "X-Stainless-Retry-Count": openai.Omit(),
                            "X-Stainless-Read-Timeout": openai.Omit(),
                        }
                    },
                )
        except openai.APIStatusError as error:
            response = error.response
        except (openai.OpenAIError, aiohttp.ClientError, httpx2.HTTPError, OSError) as error:
            failure = faults.from_exception(error, self.host, limit)
        if failure is not None:
            # Raised outside the handler: the SDK's exception holds the request with all its headers.
            raise failure
        return HttpAnswer(response.status_code, response.headers, self.host.scrub(response.content))

    def _open(self) -> AsyncOpenAI:
        import httpx2
        from openai import AsyncOpenAI, Omit

        if self.limiter.limit >= MANY_WORKERS:
            _spare_the_collector()
        timeout = httpx2.Timeout(self.runtime.request_timeout, connect=CONNECT_TIMEOUT, pool=None)
        transport = None
        if self._own_transport:
            from agentclinic.models.transport import Transport

            transport = Transport(self._address, self.gate, connections=self._connections, keep_alive=KEEP_ALIVE)
        self._sdk = AsyncOpenAI(
            base_url=self._base_url,
            api_key="sent with each request",
            max_retries=0,
            timeout=timeout,
            default_headers={f"X-Stainless-{name}": Omit() for name in _NOBODYS_BUSINESS},  # type: ignore[misc]
            http_client=_lean_http()(
                limits=httpx2.Limits(
                    max_connections=self._connections,
                    max_keepalive_connections=self._connections,
                    keepalive_expiry=KEEP_ALIVE,
                ),
                timeout=timeout,
                follow_redirects=False,
                trust_env=self._trust_env,
                transport=transport,
            ),
        )
        if not self.is_openai:
            # Read from the environment by the SDK; they concern nobody but OpenAI.
            self._sdk.organization = None
            self._sdk.project = None
        return self._sdk


class Clients:
    """All endpoints of a run: `async with Clients(settings.llm, workers=8) as clients: ...`."""

    def __init__(
        self,
        llm: LLMSettings | None = None,
        *,
        workers: int = 1,
        proxies: bool = True,
        clock: Clock | None = None,
        gate: Gate = OPEN,
    ) -> None:
        self._llm = llm or LLMSettings()
        self._gate = gate
        self._workers = workers
        self._proxies = proxies
        self._clock = clock
        self._clients: dict[tuple[str, str], Client] = {}

    async def __aenter__(self) -> Clients:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients.values():
            await client.aclose()

    def endpoint(self, name: str, *, base_url: str | None = None, api_key: SecretStr | None = None) -> Endpoint:
        """Return the model `name` at an address (OpenAI's when not given); models there share one client."""
        where = ((base_url or OPENAI_URL).rstrip("/"), api_key.get_secret_value() if api_key else "")
        if where not in self._clients:
            self._clients[where] = Client(
                base_url,
                api_key,
                runtime=self._llm.runtime,
                workers=self._workers,
                proxies=self._proxies,
                clock=self._clock,
                gate=self._gate,
            )
        return Endpoint(name, self._clients[where], responses=self._llm.responses)


class Endpoint:
    """One model at an endpoint."""

    def __init__(self, name: str, client: Client, *, responses: Mapping[str, Any] | None = None) -> None:
        self._name = name
        self._client = client
        self._target = wire.Target(name, responses or {}, client.is_openai)

    def __repr__(self) -> str:
        return f"Endpoint({self._name!r} at {self._client.host.name!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def client(self) -> Client:
        """The connection this model is reached by."""
        return self._client

    async def reply(self, request: Request) -> Reply:
        """Answer one request or raise a `ModelError`."""
        tally = _Tally()
        try:
            return await self._reply(request, tally)
        except ModelError as error:
            error.retries = tally.retries + error.retries
            error.usage = tally.usage(error.retries)
            raise

    async def _reply(self, request: Request, tally: _Tally) -> Reply:
        if request.schema is None:
            answer = await self._ask(request, request.messages, tally)
            return tally.reply(answer)
        messages = with_instruction(request.messages, request.schema)
        answer = await self._ask(request, messages, tally)
        if answer.tool_calls:
            return tally.reply(answer)
        try:
            return tally.reply(answer, parse(answer.text, request.schema))
        except InvalidReplyError as invalid:
            problem = invalid
        if not request.repair:
            raise self._malformed(request.schema, "one answer", problem, answer)
        tally.note("answer repaired once")
        messages = (*messages, Message("assistant", answer.text), complaint(problem))
        answer = await self._ask(request, messages, tally)
        try:
            return tally.reply(answer, parse(answer.text, request.schema))
        except InvalidReplyError as invalid:
            problem = invalid
        raise self._malformed(request.schema, "two answers", problem, answer)

    def _malformed(
        self, shape: type[BaseModel], tried: str, problem: InvalidReplyError, answer: wire.Answer
    ) -> MalformedError:
        said = self._client.host.quote(str(problem))
        return MalformedError(f"{self._name} gave no usable {shape.__name__} in {tried}: {said}", text=answer.text)

    async def _ask(self, request: Request, messages: tuple[Message, ...], tally: _Tally) -> wire.Answer:
        """One turn: the API the server has, in the form the server takes, tried as often as need be."""
        client, runtime = self._client, self._client.runtime
        if client.gate.closed:
            _refuse_remote_images(messages)
        if runtime.clip_prompt:
            messages, left_out = clip(messages, runtime.max_prompt_len)
            if left_out:
                tally.note(f"prompt clipped: {left_out} characters left out")
        while True:
            api = client.api or "responses"
            prompt_only = (api, self._name) in client.prompt_only
            form = format_of(request.schema) if request.schema and not prompt_only else None
            body = wire.request_body(api, self._target, request, messages, form)
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
            try:
                got = await with_retries(
                    partial(self._try, api, content, request.purpose, tally),
                    tries=runtime.tries,
                    ceiling=runtime.timeout,
                    limiter=client.limiter,
                    clock=client.clock,
                )
            except faults.NoRouteError as error:
                if not client.auto or client.api == "responses":
                    raise
                if api == "chat":
                    # Neither API is there, which is a wrong address and nothing to remember.
                    client.api = None
                    raise
                client.api = "chat"
                tally.retries += error.retries
                continue
            except faults.FormatRejectedError as error:
                if form is None:
                    raise
                client.prompt_only.add((api, self._name))
                tally.retries += error.retries
                continue
            client.api = api
            tally.retries += got.retries
            break
        answer = got.value
        if client.auto and api == "chat":
            tally.note("answered by chat completions")
        if request.schema and form is None:
            tally.note("structured output asked for in the prompt only")
        if answer.truncated:
            if not answer.text.strip() and not answer.tool_calls:
                # Not tried again: it would cost as many tokens and end the same way.
                raise MalformedError(
                    f"{self._name} used up its output tokens before any text; raise llm.responses.max_output_tokens"
                )
            tally.note("truncated: out of output tokens")
        return answer

    async def _try(self, api: wire.Api, content: bytes, purpose: Purpose, tally: _Tally) -> wire.Answer:
        """One HTTP request."""
        host = self._client.host
        tally.requests += 1
        status, headers, data = await self._client.post(wire.PATHS[api], content, purpose)
        if 300 <= status < 400:
            raise faults.from_redirect(status, host)
        body = _loads(data)
        if status >= 400:
            raise faults.from_answer(status, body, headers, host, self._name)
        if not isinstance(body, dict):
            found = "nothing" if not data.strip() else "a web page" if data.lstrip()[:1] == b"<" else "broken JSON"
            raise ServerError(f"{host.name} answered {status} with {found} instead of an answer")
        error = wire.error_in(body)
        if error is not None:
            raise faults.from_answer(status, error, headers, host, self._name)
        tally.spent.append(wire.read_usage(body))
        return wire.read_answer(api, body, host.name)


class _Tally:
    """What one `reply` cost over all its tries and turns, and what the reader of a record should know."""

    def __init__(self) -> None:
        self.requests = 0
        self.retries = 0
        self.spent: list[Usage] = []
        self._notes: dict[str, None] = {}

    def note(self, text: str) -> None:
        self._notes[text] = None

    def usage(self, retries: int) -> Usage:
        """Tokens of all answers read; tries that brought none are counted, but cost no known tokens."""
        tokens = reduce(add, self.spent) if self.spent else Usage()
        return replace(tokens, requests=self.requests, retries=retries)

    def reply(self, answer: wire.Answer, parsed: BaseModel | None = None) -> Reply:
        return Reply(answer.text, answer.tool_calls, parsed, usage=self.usage(self.retries), notes=tuple(self._notes))


def _refuse_remote_images(messages: tuple[Message, ...]) -> None:
    """An address sent as an image would be fetched by the server, from elsewhere: credentialed images are files."""
    for image in (image for message in messages for image in message.images):
        if not image_url(image.url).lower().startswith("data:"):
            raise InputError("an image of a credentialed case is a web address; put the image into a local file")


def is_loopback(host: str) -> bool:
    """Whether an address is this machine by its name alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def _lean_http() -> type[httpx2.AsyncClient]:
    """The SDK's HTTP client on aiohttp, without merging anew for each request what is the same for all.

    Merging headers and parsing the address again took 0.2 of 1.4 ms of CPU a call (benchmarks/harness.py).
    """
    import httpx2
    from openai import DefaultAioHttpClient

    address = cache(httpx2.URL)

    class LeanHttp(DefaultAioHttpClient):
        def build_request(self, method: str, url: httpx2.URL | str, **given: Any) -> httpx2.Request:
            # All we ever send is the bytes of a body; the SDK brings every header but these.
            own = [(name, self.headers[name]) for name in ("Accept-Encoding", "Connection")]
            return httpx2.Request(
                method,
                address(url),
                headers=[*given["headers"], *own],
                content=given["content"],
                cookies=self.cookies,
                extensions={"timeout": self.timeout.as_dict()},
            )

    return LeanHttp


@cache
def _spare_the_collector() -> None:
    """Once in a process that asks much: keep garbage collection from walking all modules again and again.

    It took a fifth of all CPU with 500 encounters at once (benchmarks/README.md), in pauses for everybody.
    """
    gc.collect()
    gc.freeze()
    # What belongs to a request under way lives for seconds: at the default of 700 new objects it is walked
    # many times before any of it can be let go.
    gc.set_threshold(max(gc.get_threshold()[0], 10_000), 20, 50)


def _loads(data: bytes) -> Any:
    """Read the JSON in a body; the text itself where it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def _connections() -> int:
    """Count the connections one client may open: many, but no more than the system gives us files."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A hundred or so files are the process's own; the rest may be sockets.
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(16, min(MOST_CONNECTIONS, files - 128))
