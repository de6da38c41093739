"""Models at OpenAI-compatible endpoints, through the Responses API or chat completions.

For each address and key, `Clients` has one `Client`: a connection pool, a limiter, and what is known about the server.
An `Endpoint` is one model there.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cache, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from agentclinic.config import MOST_WORKERS, LLMSettings, RuntimeSettings, nearest, unix_parts
from agentclinic.errors import ConfigError, InputError
from agentclinic.jsonl import loads
from agentclinic.models import faults, wire
from agentclinic.models.base import (
    BadRequestError,
    MalformedError,
    Message,
    ModelError,
    Purpose,
    Reply,
    Request,
    ServerError,
)
from agentclinic.models.gate import OPEN, Gate, is_loopback_address
from agentclinic.models.retry import Clock, Limiter, Retry, Turns, Value, with_retries
from agentclinic.models.structured import (
    Format,
    InvalidReplyError,
    complaint,
    format_of,
    parse,
    with_instruction,
    written_call,
)
from agentclinic.results.turn import NOTHING_ASKED, Usage
from agentclinic.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession

OPENAI_URL = "https://api.openai.com/v1"
PURPOSE_HEADER = "X-AgentClinic-Purpose"

KEEP_ALIVE = 60.0
"""Seconds an idle connection is kept; many turns take longer than the usual 5 or 15 s."""

CONNECT_TIMEOUT = 30.0
"""Seconds; when 1,000 connections open at once, the last one waits longer than the usual 5 s."""

MANY_WORKERS = 32
"""From this many workers on, garbage collection is tuned; smaller uses, such as a notebook, keep their settings."""

Share = Callable[[str, str, int], Turns]
"""Makes the turns, shared by all processes of a run, for an address, a key and a number of requests at once."""


class HttpAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


Send = Callable[[str, bytes | None, Purpose], Awaitable[HttpAnswer]]
"""Sends a body to a path, as `Client.send` does."""


class Client:
    """The connection to one address with one key, shared by all models there; close it with `aclose`."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: SecretStr | None = None,
        *,
        runtime: RuntimeSettings | None = None,
        workers: int = 1,
        clock: Clock | None = None,
        gate: Gate = OPEN,
        connect_timeout: float = CONNECT_TIMEOUT,
        share: Share | None = None,
    ) -> None:
        self._connect_timeout = connect_timeout
        self.runtime = runtime or RuntimeSettings()
        self.clock = clock or Clock()
        self.gate = gate
        self._address = address = base_url or OPENAI_URL
        faults.require_address(address)
        unix = unix_parts(address)
        parts = urlsplit(f"http://localhost{unix.path}" if unix else address)
        self._key = api_key.get_secret_value().strip() if api_key else ""
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigError(
                f"the key for {parts.hostname} has characters that do not occur in keys; was it pasted correctly?"
            )
        # Credentials in the address are for servers behind a password; a key takes precedence.
        self._base_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
        if self._key:
            self._authorization = f"Bearer {self._key}"
        elif parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._key = base64.b64encode(pair.encode()).decode("ascii")
            self._authorization = f"Basic {self._key}"
        else:
            self._authorization = ""
        self.host = faults.Host(address, self._key)
        host = parts.hostname or ""
        self.is_openai = host.endswith((".openai.com", ".openai.azure.com"))
        local = host == "localhost" or host.endswith(".localhost") or is_loopback_address(host)
        # Never use a proxy for loopback or for what has to pass the gate: a proxy is another host.
        self._uses_proxy = not local and not gate.closed
        self._connections = _connections()
        self._most = min(workers, self._connections)
        # A limit that processes share does not depend on how many connections this one may open.
        shared = share(address.rstrip("/"), self._key, workers) if share else None
        self.limiter: Turns = shared or Limiter(self._most, self.clock)
        self.auto = self.runtime.llm_api == "auto"
        self.api: wire.Api | None = None if self.runtime.llm_api == "auto" else self.runtime.llm_api
        """The API the server has; None until `auto` finds out."""
        self.doubts_formats = False
        """Whether `auto` left the Responses API because it may ignore output formats, as llama.cpp's does."""
        self.no_bounds: set[tuple[wire.Api, str]] = set()
        """Models for which the server refuses a format with maximum lengths."""
        self.prompt_only: set[tuple[wire.Api, str]] = set()
        """Models for which the server refuses a structured output format, so that only the prompt asks for it."""
        self.shown_schemas: set[str] = set()
        """Models that once did not obey a schema, so that the prompt always has it too, whether or not it describes the
        form."""
        self.calls_tools: dict[tuple[wire.Api, str], bool] = {}
        """Whether a model makes tool calls; unknown until it is asked for one. Some write them as text."""
        self._session: ClientSession | None = None
        self._proxy: str | None = None
        self._headers = {"User-Agent": f"AgentClinic/{__version__}", "Accept": "application/json"}
        if self.is_openai:
            self._headers |= _for_openai()
        # Last, so that no header from the environment can replace it.
        self._headers |= {"Authorization": self._authorization} if self._authorization else {}

    def __repr__(self) -> str:
        return f"Client({self.host.name!r})"

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self, path: str, content: bytes | None, purpose: Purpose, *, delete: bool = False, limit: float | None = None
    ) -> HttpAnswer:
        """Post a body; without one, get or delete the path. Returns answers of any status; any other outcome is raised.

        A body that begins with `--` is a form whose first line is its boundary. `limit`, in seconds, is for what takes
        longer than a request to a model.
        """
        import aiohttp  # with the first request: it takes 0.2 s

        from agentclinic.models.transport import exchange

        headers = {**self._headers, PURPOSE_HEADER: str(purpose)}
        if content is not None:
            boundary = content[2 : content.index(b"\r\n")].decode() if content.startswith(b"--") else ""
            headers["Content-Type"] = f"multipart/form-data; boundary={boundary}" if boundary else "application/json"
        method = "POST" if content is not None else "DELETE" if delete else "GET"
        limit = limit or self.runtime.request_timeout
        try:
            session = self._session or self._open()
            # The socket timeout only limits silence: a server that sends a byte now and then would never time out.
            async with asyncio.timeout(limit):
                status, found, body = await exchange(
                    session, method, self._base_url + path, headers, content, proxy=self._proxy
                )
        except aiohttp.InvalidURL:
            failure: Exception = ConfigError(
                f"base_url: {self.host.name} is not a host; write e.g. http://127.0.0.1:8000/v1"
            )
        except (aiohttp.ClientError, OSError, faults.TooLargeError) as error:
            failure = faults.from_exception(error, self.host, limit)
        else:
            return HttpAnswer(status, found, self.host.scrub(body))
        # Raised outside the handler: the exception holds the request with all its headers.
        raise failure

    async def retried(self, attempt: Callable[[], Awaitable[Value]], clock: Clock | None = None) -> Retry[Value]:
        """`with_retries`, with the settings and limits of this connection."""
        tries, pause = self.runtime.tries, self.runtime.timeout
        return await with_retries(attempt, tries=tries, pause=pause, limiter=self.limiter, clock=clock or self.clock)

    def _open(self) -> ClientSession:
        from agentclinic.models.transport import open_session, proxy_for

        if self._most >= MANY_WORKERS:
            tune_gc()
        self._proxy = proxy_for(urlsplit(self._base_url)) if self._uses_proxy else None
        self._session = open_session(
            self._address,
            self.gate,
            connections=self._connections,
            keep_alive=KEEP_ALIVE,
            silence=self.runtime.request_timeout,
            connect=self._connect_timeout,
        )
        return self._session


def _for_openai() -> dict[str, str]:
    """Headers that users of OpenAI set in the environment; they are for OpenAI only."""
    names = {"Openai-Organization": "OPENAI_ORG_ID", "Openai-Project": "OPENAI_PROJECT_ID"}
    headers = {header: os.environ[name] for header, name in names.items() if os.environ.get(name)}
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines():
        name, colon, value = line.partition(":")
        headers |= {name.strip().title(): value.strip()} if colon and name.strip() else {}
    return headers


class Clients:
    """All endpoints of a run: `async with Clients(settings.llm, workers=8) as clients: ...`."""

    def __init__(
        self,
        llm: LLMSettings | None = None,
        *,
        workers: int = 1,
        clock: Clock | None = None,
        gate: Gate = OPEN,
        connect_timeout: float = CONNECT_TIMEOUT,
        share: Share | None = None,
    ) -> None:
        self._llm = llm or LLMSettings()
        self._connect = partial(
            Client,
            runtime=self._llm.runtime,
            workers=workers,
            clock=clock,
            gate=gate,
            connect_timeout=connect_timeout,
            share=share,
        )
        self._clients: dict[tuple[str, str], Client] = {}

    async def __aenter__(self) -> Clients:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients.values():
            await client.aclose()

    def endpoint(
        self, name: str, *, base_url: str | None = None, api_key: SecretStr | None = None, send: Send | None = None
    ) -> Endpoint:
        """The model `name` at an address (default: OpenAI's); all models there share one client."""
        where = ((base_url or OPENAI_URL).rstrip("/"), api_key.get_secret_value() if api_key else "")
        if where not in self._clients:
            self._clients[where] = self._connect(base_url, api_key)
        return Endpoint(name, self._clients[where], responses=self._llm.responses, send=send)


class Endpoint:
    """One model at an endpoint. With `send`, its requests go through that instead of the client."""

    def __init__(
        self, name: str, client: Client, *, responses: Mapping[str, Any] | None = None, send: Send | None = None
    ) -> None:
        self.name = name
        self.client = client
        self._send = send or client.send
        self._target = wire.Target(name, responses or {}, client.is_openai)

    def always(self, explicit: Callable[[str], Mapping[str, Any]]) -> Self:
        """The model, whose requests have these settings from now on."""
        self._target = self._target._replace(explicit=explicit)
        return self

    def __repr__(self) -> str:
        return f"Endpoint({self.name!r} at {self.client.host.name!r})"

    async def reply(self, request: Request) -> Reply:
        tally = _Tally()
        try:
            return await self._reply(request, tally)
        except ModelError as error:
            error.retries = tally.retries + error.retries
            error.usage = tally.usage(error.retries)
            raise

    async def _reply(self, request: Request, tally: _Tally) -> Reply:
        if request.purpose is Purpose.EMBEDDING:
            return tally.reply(await self._embed(request, tally))
        if request.schema is None:
            return tally.reply(await self._ask(request, request.messages, tally))
        messages = request.messages
        answer = await self._ask(request, messages, tally)
        if answer.tool_calls:
            return tally.reply(answer)
        try:
            return tally.reply(answer, parse(answer.text, request.schema))
        except InvalidReplyError as invalid:
            problem = invalid
            self.client.shown_schemas.add(self.name)
            self._doubt_formats(tally)
        if not request.repair:
            raise self._malformed("one answer", problem, answer)
        tally.note("answer repaired once")
        messages = (*messages, Message("assistant", answer.text), complaint(problem))
        answer = await self._ask(request, messages, tally)
        try:
            return tally.reply(answer, parse(answer.text, request.schema))
        except InvalidReplyError as invalid:
            problem = invalid
        raise self._malformed("two answers", problem, answer)

    async def named_like(self) -> str:
        """A hint for the error about an unknown model: the listed name that was probably meant, or nothing."""
        try:
            answer = await self.client.send("/models", None, Purpose.CHECK)
        except ModelError:
            return ""
        entries = wire.objects(wire.as_object(_loads(answer.content)).get("data"))
        names = [str(entry["id"]) for entry in entries if entry.get("id") not in (None, self.name)]
        near = nearest(self.name, names) or (names[0] if len(names) == 1 else None)
        return f"; did you mean {self.client.host.quote(near)!r}?" if near else ""

    async def has(self, api: wire.Api) -> bool:
        # A request without content costs nothing: a server with that API rejects it, one without has no such address.
        status, headers, data = await self._send(wire.PATHS[api], b"{}", Purpose.CHECK)
        answer = faults.from_answer(status, _loads(data), headers, self.client.host, self.name)
        return not isinstance(answer, faults.NoRouteError)

    async def _embed(self, request: Request, tally: _Tally) -> wire.Answer:
        """The embeddings of the messages; the same in both APIs."""
        content = wire.embedding_body(self.name, [message.content for message in request.messages])

        async def once() -> wire.Answer:
            answer = await self._post(wire.EMBEDDINGS, content, request.purpose, tally)
            return wire.read_embeddings(answer, self.client.host.name)

        got = await self.client.retried(once)
        tally.retries += got.retries
        return got.value

    def _doubt_formats(self, tally: _Tally) -> None:
        """After a reply without the required form: if the server may ignore formats, use the other API from now on."""
        client = self.client
        if client.auto and client.api == "responses" and not client.is_openai and not client.doubts_formats:
            client.doubts_formats = True
            client.api = "chat"
            tally.note("the reply did not have the required form: chat completions are used from now on")

    def _malformed(self, tried: str, problem: InvalidReplyError, answer: wire.Answer) -> MalformedError:
        said = self.client.host.quote(str(problem))
        return MalformedError(f"{self.name} gave no usable structured reply in {tried}: {said}", text=answer.text)

    async def _ask(self, request: Request, messages: tuple[Message, ...], tally: _Tally) -> wire.Answer:
        """One turn, with retries, through the API and in the form that the server supports."""
        client, runtime = self.client, self.client.runtime
        if client.gate.closed:
            _refuse_remote_images(messages)
        while True:
            api = client.api or "responses"
            here = (api, self.name)
            must_call = bool(request.tools) and request.tool_choice == "required"
            if must_call and not client.calls_tools.get(here, True):
                raise BadRequestError(f"{self.name} makes no tool calls: it wrote an earlier one as text")
            form = None
            if request.schema and here not in client.prompt_only:
                form = format_of(request.schema, bounds=not client.is_openai and here not in client.no_bounds)
            sent = messages
            if request.schema:
                brief = request.described and form is not None and self.name not in client.shown_schemas
                sent = with_instruction(messages, request.schema, brief=brief)
            if runtime.clip_prompt:
                sent, left_out = wire.clip(sent, runtime.max_prompt_len)
                if left_out:
                    tally.note(f"prompt clipped: {left_out} characters left out")
            content = wire.encoded(wire.request_body(api, self._target, request, sent, form))
            try:
                got = await client.retried(partial(self._try, api, content, request.purpose, tally))
            except (faults.NoRouteError, faults.FormatRejectedError) as error:
                if not await self._adapt(error, api, request.schema, form):
                    raise
                tally.retries += error.retries
                continue
            if not client.doubts_formats:
                # Otherwise the choice is made, and a late answer must not undo it.
                client.api = api
            tally.retries += got.retries
            answer = got.value
            empty = not answer.text.strip() and not answer.tool_calls
            if not (answer.truncated and empty and wire.output_cap(self._target, request) is not None):
                break
            # Our own cap was too small: a reasoning model needs more tokens than its answer has.
            self._target = self._target._replace(capped=False)
            tally.note("asked again without a cap on the output")
        if client.auto and api == "chat":
            tally.note("answered by chat completions")
        if request.schema and form is None:
            tally.note("structured output asked for in the prompt only")
        if answer.truncated:
            if empty:
                # Not retried: it would cost as many tokens and end the same way.
                raise MalformedError(f"{self.name} used all its output tokens before any text; raise max_output_tokens")
            tally.note("truncated: out of output tokens")
        return self._with_written_call(request, answer, here, tally) if must_call else answer

    async def _adapt(
        self, error: ModelError, api: wire.Api, schema: type[BaseModel] | None, form: Format | None
    ) -> bool:
        """After a refusal, use another form or API from now on; False if there is no other."""
        client = self.client
        if isinstance(error, faults.FormatRejectedError):
            if schema is None or form is None:
                return False
            (client.prompt_only if form == format_of(schema) else client.no_bounds).add((api, self.name))
            return True
        if not client.auto:
            raise await self._with_other_api(error, api) from None
        if client.api == "responses":
            return False
        if api == "responses":
            client.api = "chat"
        else:
            # Either there is only the Responses API, whatever it does with formats, or neither exists: then the address
            # is wrong, and there is nothing to remember.
            client.api = "responses" if client.doubts_formats else None
        return client.api is not None

    async def _with_other_api(self, error: ModelError, api: wire.Api) -> ModelError:
        """The error if a server lacks the API in `llm_api`; it names the other API if the server has that one."""
        other: wire.Api = "chat" if api == "responses" else "responses"
        try:
            if not await self.has(other):
                return error
        except ModelError:
            return error
        return faults.NoRouteError(
            f"{self.client.host.name} has only {wire.API_NAMES[other]}, and llm_api is {api}; "
            f"set llm.runtime.llm_api to {other} or auto"
        )

    def _with_written_call(
        self, request: Request, answer: wire.Answer, here: tuple[wire.Api, str], tally: _Tally
    ) -> wire.Answer:
        """The answer to a request for a tool call, even one written as text; remembers whether the model makes calls.

        If it writes them as text, some servers do not let it end its answer, and each call uses up its output tokens.
        """
        call = None if answer.tool_calls else written_call(answer.text, request.tools)
        if answer.tool_calls:
            self.client.calls_tools[here] = True
        elif call or answer.truncated:
            self.client.calls_tools.setdefault(here, False)
        if call is None:
            return answer
        tally.note("the tool call was written as text")
        return replace(answer, text="", tool_calls=(call,))

    async def _try(self, api: wire.Api, content: bytes, purpose: Purpose, tally: _Tally) -> wire.Answer:
        body = await self._post(wire.PATHS[api], content, purpose, tally)
        return wire.read_answer(api, body, self.client.host.name)

    async def _post(self, path: str, content: bytes, purpose: Purpose, tally: _Tally) -> wire.Json:
        host = self.client.host
        tally.requests += 1
        answer = await self._send(path, content, purpose)
        body = body_of(answer, host, self.name)
        error = wire.error_in(body)
        if error is not None:
            raise faults.from_answer(answer.status, error, answer.headers, host, self.name)
        tally.spent.append(wire.read_usage(body))
        return body


def body_of(answer: HttpAnswer, host: faults.Host, model: str) -> wire.Json:
    """The JSON object in an answer; raises a `ModelError` for a redirect, an error status, and anything else."""
    status, headers, data = answer
    if 300 <= status < 400:
        # What was sent to one endpoint must not go to another.
        raise BadRequestError(
            f"{host.name} answered {status} (redirect, not followed); set base_url to the final address"
        )
    body = _loads(data)
    if status >= 400:
        raise faults.from_answer(status, body, headers, host, model)
    if not isinstance(body, dict):
        found = "nothing" if not data.strip() else "a web page" if data.lstrip()[:1] == b"<" else "broken JSON"
        raise ServerError(f"{host.name} answered {status} with {found} instead of an answer")
    return body


class _Tally:
    """What one `reply` cost over all its tries and turns, and the notes for its record."""

    def __init__(self) -> None:
        self.requests = 0
        self.retries = 0
        self.spent: list[Usage] = []
        self._notes: dict[str, None] = {}

    def note(self, text: str) -> None:
        self._notes[text] = None

    def usage(self, retries: int) -> Usage:
        """Tokens of all answers; tries without an answer are counted, but their tokens are unknown."""
        nothing = Usage() if self.requests else NOTHING_ASKED
        tokens = reduce(add, self.spent) if self.spent else nothing
        return replace(tokens, requests=self.requests, retries=retries)

    def reply(self, answer: wire.Answer, parsed: BaseModel | None = None) -> Reply:
        return Reply(
            answer.text,
            answer.tool_calls,
            parsed,
            usage=self.usage(self.retries),
            notes=tuple(self._notes),
            model=answer.model,
        )


def _refuse_remote_images(messages: tuple[Message, ...]) -> None:
    """Images of credentialed cases must be local files: the server would fetch a web address from elsewhere."""
    for image in (image for message in messages for image in message.images):
        if not wire.image_url(image.url).lower().startswith("data:"):
            raise InputError("an image of a credentialed case is a web address; save it as a local file")


@cache
def tune_gc() -> None:
    """Keep garbage collection from rescanning all modules; called once in a process with many requests.

    With 500 encounters at once, collecting took a fifth of all CPU time (benchmarks/README.md) and paused everything.
    """
    gc.freeze()
    # The objects of a request live for seconds: at the default threshold of 700 they are scanned many times before they
    # can be freed.
    gc.set_threshold(max(gc.get_threshold()[0], 10_000), 20, 50)


def _loads(data: bytes) -> Any:
    """The JSON in a body, or the text itself if it is not JSON."""
    text = data.decode("utf-8-sig", "replace")  # json.loads would also accept UTF-16, which was not searched for keys
    try:
        return loads(text)
    except ValueError:
        return text


def _connections() -> int:
    """How many connections one client may open, within the system's limit on open files."""
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return MOST_WORKERS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The process needs about a hundred files itself; the rest may be sockets.
    return MOST_WORKERS if files == resource.RLIM_INFINITY else max(16, min(MOST_WORKERS, files - 128))
