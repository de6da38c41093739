"""Record every request and reply, and replay them.

An entry is found by unit, purpose, messages, parameters and occurrence within the unit, not by the model's name: a
recording of one model can be replayed in place of another.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError, model_validator

from agentclinic import privacy
from agentclinic.errors import InputError
from agentclinic.jsonl import JsonLines, read_json_lines
from agentclinic.models import base, structured
from agentclinic.models.base import MalformedError, Model, ModelError, NotRecordedError, Purpose, Reply, Request
from agentclinic.privacy import DataClass

Asked = Counter[tuple[str, str]]
"""How often each request was made, by counter and hash of the request."""

unit: ContextVar[tuple[str, Asked]] = ContextVar("agentclinic_unit")
"""The current unit and the requests made in it."""

_replies = TypeAdapter(Reply)
_errors: Mapping[str, type[ModelError]] = {
    error.kind: error
    for error in vars(base).values()
    if isinstance(error, type) and issubclass(error, ModelError) and error is not ModelError
}


def enter_unit(name: str) -> None:
    """Start a unit in this task: occurrences are counted from 0 again."""
    unit.set((name, Counter()))


def requests_made() -> Asked:
    return unit.get(("", Counter()))[1].copy()


def forget_requests_since(moment: Asked) -> None:
    """Go back to an earlier count: what a person took back is recorded again, and the newer entry wins."""
    counts = unit.get(("", Counter()))[1]
    counts.clear()
    counts.update(moment)


def _place(request: Request, counter: str) -> tuple[str, str, int]:
    """Unit, hash of the request, and its occurrence; a replay that is recorded is counted by both sides."""
    name, counts = unit.get(("", Counter()))  # outside a unit, every request is the first of its kind
    text = json.dumps(_request_content(request), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    occurrence = counts[counter, digest]
    counts[counter, digest] += 1
    return name, digest, occurrence


def _request_content(request: Request) -> dict[str, Any]:
    return {
        "purpose": request.purpose.value,
        "messages": [
            {
                "role": m.role,
                "content": m.content,
                **({"images": [image.url for image in m.images]} if m.images else {}),
                **({"tool_calls": [[c.id, c.name, c.arguments] for c in m.tool_calls]} if m.tool_calls else {}),
                **({"tool_call_id": m.tool_call_id} if m.tool_call_id else {}),
            }
            for m in request.messages
        ],
        **({"tools": [[t.name, t.description, dict(t.parameters)] for t in request.tools]} if request.tools else {}),
        **({"tool_choice": request.tool_choice} if request.tools else {}),
        **({"schema": request.schema.model_json_schema()} if request.schema else {}),
        **({"temperature": request.temperature} if request.temperature is not None else {}),
    }


class Recorder:
    """A model whose answers and failures are also written to a file."""

    def __init__(self, model: Model, sink: JsonLines, data_class: DataClass = DataClass.PUBLIC) -> None:
        self.name = model.name
        self._model = model
        self._sink = sink
        self._class = data_class

    async def reply(self, request: Request) -> Reply:
        entry = _line(_place(request, "record"), self.name, self._class, request)
        try:
            reply = await self._model.reply(request)
        except ModelError as error:
            text = error.text if isinstance(error, MalformedError) else ""
            said = {"text": text} if text else {}
            self._sink.append({**entry, "error": {"kind": error.kind, "message": str(error), **said}})
            raise
        self._sink.append({**entry, "reply": _as_json(reply)})
        return reply


def _line(place: tuple[str, str, int], model: str, data_class: DataClass, request: Request) -> dict[str, Any]:
    """A line of a recording, without the answer."""
    unit, key, n = place
    marked = {} if data_class is DataClass.PUBLIC else {"data_class": data_class.value}
    return {"unit": unit, "key": key, "n": n, "model": model, **marked, "request": _request_content(request)}


def _as_json(reply: Reply) -> Any:
    return _replies.dump_python(reply, mode="json", exclude={"parsed"})


class _Failure(BaseModel):
    kind: str
    message: str
    text: str = ""


class _Entry(BaseModel):
    """The part of a line that is needed to answer."""

    unit: str
    key: str
    n: int
    model: str = ""
    data_class: DataClass = DataClass.PUBLIC
    request: dict[str, Any] = {}
    reply: Reply | None = None
    error: _Failure | None = None

    @model_validator(mode="after")
    def _answers(self) -> _Entry:
        if (self.reply is None) is (self.error is None):
            raise ValueError("must have either a reply or an error")
        return self


class Replay:
    """Answers from a recording, without a network."""

    def __init__(self, path: Path) -> None:
        self.name = f"replay:{path}"
        self._path = path
        self._entries = dict(_read(path))
        self.data_class = privacy.strictest(entry.data_class for entry in self._entries.values())
        """The most restricted class of the recorded data."""

    def models_for(self, purpose: Purpose) -> frozenset[str]:
        return frozenset(entry.model for entry in self._entries.values() if entry.request.get("purpose") == purpose)

    async def reply(self, request: Request) -> Reply:
        place = _place(request, self.name)
        entry = self._entries.get(place)
        if entry is None:
            raise NotRecordedError(
                f"{self._path} has no {request.purpose} request like this one"
                f"{f' in unit {place[0]}' if place[0] else ''}: cases, prompts, settings or another role's replies "
                "have changed since the recording"
            )
        if entry.error:
            failure = _errors.get(entry.error.kind, ModelError)(entry.error.message)
            if isinstance(failure, MalformedError):
                failure.text = entry.error.text
            raise failure
        assert entry.reply is not None
        return _again(entry.reply, request, self._path)


def _again(reply: Reply, request: Request, path: Path) -> Reply:
    """A recorded reply as the model gave it, parsed by the schema if there is one and no builtin verdict."""
    if request.schema is None or reply.verdict:
        return reply
    try:
        return replace(reply, parsed=structured.parse(reply.text, request.schema))
    except structured.InvalidReplyError as problem:
        said = privacy.quotation(str(problem))
        raise MalformedError(f"{path}: a recorded reply no longer fits: {said}") from None


class Ongoing:
    """An encounter's own recording: when the encounter is resumed, its models repeat what they said, then continue.

    Every new reply is on the disk before it is used. Failures are not kept.
    """

    def __init__(self, path: Path, data_class: DataClass = DataClass.PUBLIC) -> None:
        self.path = path
        self._data_class = data_class
        entries = _read(path) if path.exists() else ()
        self._replies = {place: entry.reply for place, entry in entries if entry.reply}
        self._sink = JsonLines(path, private=data_class is DataClass.CREDENTIALED)

    async def reply(self, model: str, ask: Callable[[Request], Awaitable[Reply]], request: Request) -> Reply:
        """Repeat what the model of this name said here before; if it said nothing, ask it and keep the answer."""
        place = _place(request, "ongoing")
        kept = self._replies.get(place)
        if kept is not None:
            return _again(kept, request, self.path)
        reply = await ask(request)
        self._sink.append({**_line(place, model, self._data_class, request), "reply": _as_json(reply)})
        return reply

    def wrap(self, model: Model) -> Model:
        return _Continued(model, self)

    def close(self) -> None:
        self._sink.close()


class _Continued:
    def __init__(self, model: Model, recording: Ongoing) -> None:
        self.name = model.name
        self._model = model
        self._recording = recording

    async def reply(self, request: Request) -> Reply:
        return await self._recording.reply(self.name, self._model.reply, request)


def refuse_other_file(path: Path) -> None:
    """Refuse a file that is not a recording, before anything is appended to it."""
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--record {path}: cannot be written; name a file in a folder that exists")
    if path.is_file() and path.stat().st_size and next(_read(path), None) is None:
        raise InputError(f"--record {path}: not a recording; name another file")


def _read(path: Path) -> Iterator[tuple[tuple[str, str, int], _Entry]]:
    for number, line in read_json_lines(path, "an entry of a recording"):
        try:
            entry = _Entry.model_validate(line)
        except ValidationError:
            raise InputError(f"{path} line {number}: not an entry of a recording") from None
        yield (entry.unit, entry.key, entry.n), entry
