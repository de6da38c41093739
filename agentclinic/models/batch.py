"""Requests through a provider's batch endpoint: uploaded as a file, answered within a day, at half the price.

What will be submitted is first noted in a file, so that the same command finds its batches again after being killed.
The requests are those that an `Endpoint` would send: `capture` collects them, and `FromBatch` supplies the answers.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentclinic.config import read_json
from agentclinic.errors import InputError
from agentclinic.files import write_whole
from agentclinic.jsonl import loads
from agentclinic.models import wire
from agentclinic.models.base import ModelError, Purpose, ServerError
from agentclinic.models.endpoint import Endpoint, HttpAnswer, body_of
from agentclinic.models.faults import NoRouteError
from agentclinic.models.retry import RETRYABLE, Clock, Value
from agentclinic.models.wire import as_object, encoded, objects
from agentclinic.results.turn import Usage

MOST_REQUESTS = 50_000
"""Requests in one batch: OpenAI's limit."""
MOST_BYTES = 200_000_000
"""Size of one batch's file: OpenAI's limit."""
WINDOW = "24h"
"""The only completion window that OpenAI offers."""
POLL = 20.0
"""Seconds between checks of a batch: it takes minutes to hours, and each check is one small request."""
FILE_SECONDS = 900.0
"""Time limit for sending or fetching a file: 200 MB at 2 Mbit/s take 800 s."""
MOST_PAGES = 100
"""How many pages of a list are searched, 100 entries each, newest first: ours was created recently."""
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
"""Final statuses."""
_PASSING = frozenset({"connection", "timeout", "server", "rate_limit"})
"""Failures that pass during hours of waiting: a laptop that sleeps, a server that restarts."""


class NotAnsweredError(ModelError):
    """The request failed in its batch, or its follow-up was not sent."""

    kind = "batch"


class NoBatchesError(InputError):
    """The server has no batch endpoint."""


class Captured(Exception):  # noqa: N818 - not an error: it carries a request
    """A request that was not sent, because it goes into a batch."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content


async def capture(path: str, content: bytes | None, purpose: Purpose) -> NoReturn:
    """Instead of sending a request, raise it as `Captured`."""
    del path, purpose
    raise Captured(content or b"")


class FromBatch:
    """Answers the first request from a batch, if it has an answer, and sends others to the server.

    `stop` returns the reason why no follow-up may be sent, or None.
    """

    def __init__(self, answer: HttpAnswer | None, endpoint: Endpoint, stop: Callable[[], str | None]) -> None:
        self.usage = Usage()
        """What the answer in the batch used."""
        self._answer = answer
        self._endpoint = endpoint
        self._stop = stop

    async def send(self, path: str, content: bytes | None, purpose: Purpose) -> HttpAnswer:
        client = self._endpoint.client
        answer, self._answer = self._answer, None
        if answer is None:
            if (reason := self._stop()) is not None:
                raise NotAnsweredError(f"no usable answer in the batch, and not asked again: {reason}")
            return await client.send(path, content, purpose)
        try:
            self.usage = wire.read_usage(body_of(answer, client.host, self._endpoint.name))
        except ModelError as error:
            if error.kind in RETRYABLE:  # ask again in the next batch, not now at full price
                raise NotAnsweredError(f"in the batch: {error}") from None
        return answer


ProviderId = Annotated[str, Field(pattern=r"^[\w:-][\w.:-]*$")]
"""An id at a provider; a note that was forged must not lead to other addresses there, such as `..`."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: str
    """In the file's name and in the batch's metadata, so that both can be found again."""
    requests: dict[str, str]
    """The id of each request in the batch, by our own key; it is a hash of the key and the request."""
    file_id: ProviderId | None = None
    batch_id: ProviderId | None = None


class Note(BaseModel):
    """What was submitted, or is about to be."""

    model_config = ConfigDict(extra="forbid")

    model: str
    host: str
    api: wire.Api
    parts: list[Part]
    to_delete: list[ProviderId] | None = None
    """Files at the provider that are no longer needed; None until all answers have been used."""


class Batches:
    """The batches for one set of requests to a model; `path` is where they are noted."""

    def __init__(self, path: Path, endpoint: Endpoint, purpose: Purpose, clock: Clock | None = None) -> None:
        self.path = path
        self.reason: str | None = None
        """Why some requests have no answer."""
        self._endpoint = endpoint
        self._client = endpoint.client
        self._purpose = purpose
        self._clock = clock or self._client.clock
        self._states: dict[str, wire.Json] = {}
        self._outdated: set[str] = set()
        self._resumed = path.exists()
        self.note = read_note(path)
        if self.note is not None and (self.note.model, self.note.host) != (endpoint.name, self._client.host.name):
            raise InputError(
                f"{path} is about a batch for {self.note.model!r} at {self.note.host}, not for {endpoint.name!r} at "
                f"{self._client.host.name}; use that model again, or another file with --name"
            )

    @property
    def ids(self) -> tuple[str, ...]:
        """The provider's ids of the batches."""
        return tuple(part.batch_id for part in self._parts if part.batch_id)

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for part in self._parts for key in part.requests)

    @property
    def _parts(self) -> list[Part]:
        return self.note.parts if self.note else []

    async def api(self) -> wire.Api:
        """The API whose requests are submitted: the noted one, that of `llm_api`, or one that the server has."""
        if self.note is not None:
            return self.note.api
        if not self._client.auto:
            return self._client.api or "responses"
        has = self._client.is_openai or await self._retried(lambda: self._endpoint.has("responses"))
        return "responses" if has else "chat"

    def plan(self, api: wire.Api, requests: Mapping[str, bytes]) -> None:
        """Note what will be submitted, by key; if there is a note already, check that its requests are the same.

        If only some have changed, because their encounters were played again, those are left for the next batch.
        """
        if self.note is None:
            self.note = Note(
                model=self._endpoint.name, host=self._client.host.name, api=api, parts=list(_split(api, requests))
            )
            self._write()
            return
        noted = {key: custom_id for part in self._parts for key, custom_id in part.requests.items()}
        known = [key for key in requests if key in noted]
        self._outdated = {key for key in known if noted[key] != _id(key, requests[key])}
        if known and len(self._outdated) == len(known):
            raise InputError(
                f"{self.path}: a batch was submitted with other prompts or settings; restore them to fetch its "
                "answers, or delete this file to forget it"
            )

    async def submit(self, requests: Mapping[str, bytes], say: Callable[[str], None]) -> None:
        """Upload what has not been uploaded yet, and create its batches."""
        for part in self._parts:
            if part.batch_id is None:
                try:
                    await self._submit(part, requests)
                except (NoBatchesError, ModelError) as error:
                    certain = isinstance(error, NoBatchesError) or not (self._resumed or error.kind in _PASSING)
                    if certain and not self.ids:  # no batch was created, so there is nothing to resume
                        await self.finish(say)
                    raise
                say(f"batch {part.batch_id} at {self._client.host.name}: {len(part.requests)} requests submitted")

    async def _submit(self, part: Part, requests: Mapping[str, bytes]) -> None:
        if part.file_id is None:
            name = f"agentclinic-{part.token}.jsonl"
            form = _form(name, b"".join(self._lines(part, requests)))
            part.file_id = await self._made("/files", lambda entry: entry.get("filename") == name, form, FILE_SECONDS)
            self._write()
        order = {
            "input_file_id": part.file_id,
            "endpoint": _url(self._api),
            "completion_window": WINDOW,
            "metadata": {"agentclinic": part.token},
        }
        part.batch_id = await self._made(
            "/batches",
            lambda entry: as_object(entry.get("metadata")).get("agentclinic") == part.token,
            encoded(order),
        )
        self._write()

    async def wait(self, show: Callable[[int], None], say: Callable[[str], None], *, once: bool = False) -> bool:
        """Check the batches until all have ended, or only `once`; returns whether all have ended.

        `show` gets the number of requests that are done.
        """
        warned = False
        while True:
            try:
                for part in self._parts:
                    await self._look(part)
            except ModelError as error:
                if once or error.kind not in _PASSING:
                    raise
                if not warned:
                    say(f"Warning: {error}; checking the batch again every {POLL:g} s")
                warned = True
            else:
                warned = False
                show(sum(_done(self._states[part.token], len(part.requests)) for part in self._parts))
                if all(map(_is_over, self._states.values())):
                    return True
            if once:
                return False
            await self._clock.sleep(POLL)

    async def answers(self) -> dict[str, HttpAnswer | None]:
        """The answers by key; None if a request has several that differ. Requests without an answer are left out."""
        found: dict[str, HttpAnswer | None] = {}
        for part in self._parts:
            state = self._states[part.token]
            keys = {custom_id: key for key, custom_id in part.requests.items() if key not in self._outdated}
            said = [str(error.get("message")) for error in objects(as_object(state.get("errors")).get("data"))]
            given: dict[str, list[HttpAnswer | None]] = {}
            for name in ("output_file_id", "error_file_id"):
                for entry in _entries(await self._content(str(state[name]))) if state.get(name) else ():
                    if (key := keys.get(str(entry.get("custom_id")))) is not None:
                        given.setdefault(key, []).append(_answer(entry))
                    if isinstance(entry.get("error"), dict):
                        said.append(str(entry["error"].get("message")))
            for key, (first, *others) in given.items():
                if first or any(others):
                    found[key] = first if all(other == first for other in others) else None
            missing = sum(key not in found for key in keys.values())
            if missing and self.reason is None:
                why = f": {self._client.host.quote(said[0])}" if said else ""
                self.reason = (
                    f"batch {part.batch_id} is {state.get('status')}, {missing} of {len(part.requests)} requests were "
                    f"not answered{why}"
                )
        return found

    async def finish(self, say: Callable[[str], None]) -> None:
        """Delete the files at the provider, then the note; called once all answers have been used."""
        if self.note is None:
            return
        if self.note.to_delete is None:
            states = [self._states.get(part.token, {}) for part in self._parts]
            files = [part.file_id for part in self._parts]
            files += [state.get(name) for state in states for name in ("output_file_id", "error_file_id")]
            self.note.to_delete = [str(file) for file in files if file]
            self._write()
        for file in self.note.to_delete:
            try:
                await self._retried(partial(self._ask, f"/files/{quote(file, safe='')}", delete=True))
            except NoRouteError:
                pass  # an earlier call has deleted it
            except ModelError as error:
                say(f"Warning: {file} could not be deleted at {self._client.host.name} ({error}); delete it there")
        self.path.unlink(missing_ok=True)
        self.note = None

    @property
    def _api(self) -> wire.Api:
        assert self.note is not None
        return self.note.api

    def _write(self) -> None:
        assert self.note is not None
        write_whole(self.path, self.note.model_dump_json(indent=1))

    def _lines(self, part: Part, requests: Mapping[str, bytes]) -> Iterator[bytes]:
        changed = [key for key in part.requests if key not in requests or key in self._outdated]
        if changed:
            raise InputError(
                f"{self.path}: {len(changed)} of the requests changed before they were submitted; delete this "
                "file to start over"
            )
        return (_line(self._api, custom_id, requests[key]) for key, custom_id in part.requests.items())

    async def _look(self, part: Part) -> None:
        if _is_over(self._states.get(part.token, {})):
            return
        path = f"/batches/{quote(part.batch_id or '', safe='')}"
        try:
            self._states[part.token] = await self._retried(lambda: self._ask(path))
        except NoRouteError:
            raise InputError(
                f"{self._client.host.name} does not know batch {part.batch_id}: use the key and the project that it "
                f"was submitted with, or delete {self.path} to start over"
            ) from None

    async def _content(self, file: str) -> bytes:
        async def once() -> bytes:
            path = f"/files/{quote(file, safe='')}/content"
            answer = await self._client.send(path, None, self._purpose, limit=FILE_SECONDS)
            if answer.status >= 300:
                body_of(answer, self._client.host, self._endpoint.name)
            return answer.content

        try:
            return await self._retried(once)
        except NoRouteError:
            raise InputError(
                f"{self._client.host.name} no longer has {file}, which holds answers from the batch; delete "
                f"{self.path} to start over"
            ) from None

    async def _made(
        self, path: str, ours: Callable[[wire.Json], bool], content: bytes, limit: float | None = None
    ) -> str:
        """Create a file or a batch only once: on every try but the first, check whether it already exists."""
        look = self._resumed

        async def attempt() -> wire.Json:
            nonlocal look
            if look and (found := await self._find(path, ours)):
                return found
            look = True
            return await self._ask(path, content, limit=limit)

        try:
            made = await self._retried(attempt)
        except NoRouteError as error:
            raise NoBatchesError(
                f"{self._client.host.name} has no batches ({path}: {error}); leave out --batch to judge with single "
                "requests"
            ) from None
        if not isinstance(made.get("id"), str):
            raise ServerError(f"{self._client.host.name} answered {path} without an id")
        return str(made["id"])

    async def _find(self, path: str, ours: Callable[[wire.Json], bool]) -> wire.Json | None:
        after = ""
        for _ in range(MOST_PAGES):
            try:
                page = await self._ask(f"{path}?limit=100{after}")
            except NoRouteError:  # a server without lists
                break
            entries = objects(page.get("data"))
            for entry in entries:
                if ours(entry):
                    return entry
            if not entries or not page.get("has_more"):
                break
            after = f"&after={quote(str(entries[-1].get('id')), safe='')}"
        return None

    async def _ask(self, path: str, content: bytes | None = None, **options: Any) -> wire.Json:
        answer = await self._client.send(path, content, self._purpose, **options)
        return body_of(answer, self._client.host, self._endpoint.name)

    async def _retried(self, attempt: Callable[[], Awaitable[Value]]) -> Value:
        return (await self._client.retried(attempt, self._clock)).value


def read_note(path: Path) -> Note | None:
    if not path.exists():
        return None
    try:
        return Note.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{path}: not the note of a batch ({where}: {first['msg'].lower()}); restore it, or delete it to start over"
        ) from None


def keys_noted(path: Path) -> frozenset[str]:
    note = read_note(path)
    return frozenset(key for part in note.parts for key in part.requests) if note else frozenset()


def _split(api: wire.Api, requests: Mapping[str, bytes]) -> Iterator[Part]:
    """As few batches as the limits allow."""
    part, size = Part(token=secrets.token_hex(12), requests={}), 0
    for key, content in requests.items():
        custom_id = _id(key, content)
        length = len(_line(api, custom_id, content))
        if part.requests and (len(part.requests) == MOST_REQUESTS or size + length > MOST_BYTES):
            yield part
            part, size = Part(token=secrets.token_hex(12), requests={}), 0
        part.requests[key] = custom_id
        size += length
    yield part


def _id(key: str, content: bytes) -> str:
    """A request's id in a batch: it changes with the request, and says nothing about the case."""
    return hashlib.sha256(key.encode() + b"\n" + content).hexdigest()[:32]


def _url(api: wire.Api) -> str:
    return f"/v1{wire.PATHS[api]}"


def _line(api: wire.Api, custom_id: str, content: bytes) -> bytes:
    entry = {"custom_id": custom_id, "method": "POST", "url": _url(api), "body": json.loads(content)}
    return json.dumps(entry).encode() + b"\n"  # in ASCII: some readers also end a line at U+2028


def _form(name: str, content: bytes) -> bytes:
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()


def _entries(content: bytes) -> Iterator[wire.Json]:
    """The objects in a file of answers; a broken line is a request without an answer."""
    for line in BytesIO(content):
        with suppress(ValueError):
            entry = loads(line, object_pairs_hook=_unique)
            if isinstance(entry, dict):
                yield entry


def _unique(pairs: list[tuple[str, Any]]) -> wire.Json:
    if len(entry := dict(pairs)) != len(pairs):
        raise ValueError("an object has the same key twice")
    return entry


def _answer(entry: wire.Json) -> HttpAnswer | None:
    """The answer in an entry; None if the request failed."""
    response = as_object(entry.get("response"))
    status = response.get("status_code")
    if entry.get("error") or type(status) is not int or not 200 <= status < 600:
        return None
    return HttpAnswer(status, {}, encoded(response.get("body")))


def _is_over(batch: wire.Json) -> bool:
    return str(batch.get("status")) in _OVER


def _done(batch: wire.Json, most: int) -> int:
    """How many requests are done according to the server, but no more than we sent."""
    counts = as_object(batch.get("request_counts"))
    done = sum(count for name in ("completed", "failed") if isinstance(count := counts.get(name), int))
    return min(max(done, 0), most)
