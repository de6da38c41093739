"""The two APIs of OpenAI-compatible endpoints: writing request bodies and reading answers.

This replaces the official SDK: its typed methods do not check answers, its import takes 0.9 s of CPU, and a request of
40 messages takes 13 ms.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from agentclinic import privacy
from agentclinic.errors import InputError
from agentclinic.files import expanded
from agentclinic.jsonl import encodable
from agentclinic.models.base import (
    MalformedError,
    Message,
    Purpose,
    RefusedError,
    Request,
    ServerError,
    Tool,
    ToolCall,
)
from agentclinic.models.structured import Format
from agentclinic.results.turn import Usage

Api = Literal["responses", "chat"]
Json = dict[str, Any]

PATHS: dict[Api, str] = {"responses": "/responses", "chat": "/chat/completions"}
EMBEDDINGS = "/embeddings"
API_NAMES: dict[Api, str] = {"responses": "the Responses API", "chat": "chat completions"}

RESERVED = frozenset({"model", "input", "messages", "stream", "background"})
"""Keys that `llm.responses` may not set: the model, the prompt, and answers in parts or in the background."""

_ONLY_RESPONSES = frozenset(
    {"text", "reasoning", "max_output_tokens", "instructions", "include", "truncation", "max_tool_calls"}
)
"""Settings that the chat API has under another name or not at all."""

_GPT_5 = re.compile(r"(^|/)gpt-?5")
_REASONS = re.compile(r"(^|/)(gpt-?5|o\d)")
"""Models whose hidden reasoning counts as output: a small cap would cut it off before any answer."""

CAPS: Mapping[Purpose, int] = {
    Purpose.DOCTOR: 1500,
    Purpose.PATIENT: 500,
    Purpose.MEASUREMENT: 800,
    Purpose.MODERATOR: 500,
    Purpose.PLANNER: 4000,
    Purpose.DISCRIMINATOR: 1000,
    Purpose.SYNTHESIS: 1500,
    Purpose.CONFIDENCE: 1000,
    Purpose.WRITER: 4000,
    Purpose.REVIEWER: 1000,
    Purpose.LEARNER: 2000,
    Purpose.COMPLETION: 300,
    Purpose.MEMORY: 200,
}
"""Maximum output tokens per purpose, about five times what a good reply takes, to stop a small model that loops."""


@dataclass(frozen=True)
class Answer:
    text: str
    tool_calls: tuple[ToolCall, ...]
    truncated: bool
    """The model ran out of output tokens."""
    model: str = ""
    """The name that the server gave."""


LONGEST_NAME = 200
"""Characters of a model's name that are kept: a server may send anything."""


class Target(NamedTuple):
    model: str
    settings: Mapping[str, Any]
    """`llm.responses` of the config."""
    is_openai: bool
    """OpenAI's own chat API requires `max_completion_tokens`; many other servers accept only `max_tokens`."""
    capped: bool = True
    """False once the model has used up a cap of ours without an answer: it thinks aloud."""
    explicit: Callable[[str], Mapping[str, Any]] = lambda _: {}
    """The generation settings that requests for a purpose always have, whatever the model's name."""


def request_body(api: Api, target: Target, request: Request, messages: Sequence[Message], form: Format | None) -> Json:
    build = _responses_body if api == "responses" else _chat_body
    body = build(target, request, messages, form)
    if request.tools and request.tool_choice != "auto":
        body["tool_choice"] = request.tool_choice
    return body


def output_cap(target: Target, request: Request) -> int | None:
    """The purpose's own cap on output tokens, if it is lower than the user's and the model can do with it."""
    # A doctor's structured reply holds a plan as well.
    purpose = Purpose.PLANNER if request.purpose is Purpose.DOCTOR and request.schema else request.purpose
    decided = target.explicit(request.purpose).keys() & {"max_output_tokens", "reasoning_effort"}
    if not target.capped or _REASONS.search(target.model) or "reasoning" in target.settings or decided:
        return None
    cap, given = CAPS.get(purpose), target.settings.get("max_output_tokens")
    return None if cap is None or (isinstance(given, int) and given <= cap) else cap


def _settings(target: Target, request: Request) -> Json:
    """The user's settings that may go to this model, with the purpose's own cap on output tokens."""
    settings = {name: value for name, value in target.settings.items() if name not in RESERVED}
    cap = output_cap(target, request)
    if cap is not None:
        settings["max_output_tokens"] = cap
    if _GPT_5.search(target.model):
        # These models refuse a temperature.
        settings.pop("temperature", None)
    else:
        settings.pop("reasoning", None)
        settings.pop("text", None)
        if request.temperature is not None:
            settings["temperature"] = request.temperature
    explicit = dict(target.explicit(request.purpose))
    for other_name in ("max_tokens", "max_completion_tokens") if "max_output_tokens" in explicit else ():
        settings.pop(other_name, None)
    if effort := explicit.pop("reasoning_effort", None):
        explicit["reasoning"] = {**as_object(settings.get("reasoning")), "effort": effort}
    return settings | explicit


def _responses_body(target: Target, request: Request, messages: Sequence[Message], form: Format | None) -> Json:
    body: Json = {"model": target.model, **_settings(target, request)}
    if form is not None:
        body["text"] = {**as_object(body.get("text")), "format": {"type": "json_schema", **form._asdict()}}
    body["input"] = [item for message in messages for item in _responses_items(message)]
    if request.tools:
        # Without "strict": false, this API requires closed schemas with all properties required.
        body["tools"] = [{"type": "function", **_described(tool), "strict": False} for tool in request.tools]
    return body


def _responses_items(message: Message) -> list[Json]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.content}]
    items: list[Json] = []
    if message.images:
        parts: list[Json] = [{"type": "input_text", "text": message.content}] if message.content else []
        parts += [{"type": "input_image", "image_url": image_url(image.url)} for image in message.images]
        items.append({"role": message.role, "content": parts})
    elif message.content or not message.tool_calls:
        # llama.cpp's server recognizes what a model said only by its type.
        kind = {"type": "message"} if message.role == "assistant" else {}
        items.append({**kind, "role": message.role, "content": message.content})
    items += [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return items


def _chat_body(target: Target, request: Request, messages: Sequence[Message], form: Format | None) -> Json:
    settings = _settings(target, request)
    body: Json = {"model": target.model}
    body |= {name: value for name, value in settings.items() if name not in _ONLY_RESPONSES}
    if "max_output_tokens" in settings:
        name = "max_completion_tokens" if target.is_openai else "max_tokens"
        body.setdefault(name, settings["max_output_tokens"])
    reasoning, text = settings.get("reasoning"), settings.get("text")
    if isinstance(reasoning, dict) and "effort" in reasoning:
        body["reasoning_effort"] = reasoning["effort"]
    if isinstance(text, dict):
        if "verbosity" in text:
            body["verbosity"] = text["verbosity"]
        if isinstance(text.get("format"), dict):
            body["response_format"] = _chat_format(text["format"])
    if form is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": form._asdict()}
    instructions = settings.get("instructions")
    body["messages"] = [{"role": "system", "content": instructions}] if instructions else []
    body["messages"] += [_chat_message(message) for message in messages]
    if request.tools:
        body["tools"] = [{"type": "function", "function": _described(tool)} for tool in request.tools]
    return body


def _described(tool: Tool) -> Json:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _chat_format(form: Json) -> Json:
    """The user's `text.format` in the nested form of the chat API."""
    if form.get("type") != "json_schema":
        return form
    return {"type": "json_schema", "json_schema": {k: v for k, v in form.items() if k != "type"}}


def _chat_message(message: Message) -> Json:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    result: Json = {"role": message.role, "content": message.content}
    if message.images:
        parts: list[Json] = [{"type": "text", "text": message.content}] if message.content else []
        parts += [{"type": "image_url", "image_url": {"url": image_url(image.url)}} for image in message.images]
        result["content"] = parts
    if message.tool_calls:
        result["content"] = message.content or None
        result["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return result


LARGEST_IMAGE = 20 * 2**20
"""Bytes. OpenAI's limit was 20 MB per request when this was chosen; a clinical photograph has 0.1 to 5 MB."""


def local_image(address: str) -> Path | None:
    """The file that an image's address stands for; None if it is on the web or in the address itself."""
    if address.lower().startswith(("http://", "https://", "data:")):
        return None
    return Path(unquote(urlsplit(address).path)) if address.startswith("file://") else expanded(address)


def image_url(address: str) -> str:
    """The address to send for an image: URLs unchanged, a local file as a data URL."""
    try:
        path = local_image(address)
        if path is None:
            return address
        stat = path.stat()
    except (OSError, ValueError) as error:  # a ValueError: no file can have this name
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{address}: image cannot be read ({reason}); check the image path in the case") from None
    if not path.is_file():
        raise InputError(f"{path}: not an image file")
    if stat.st_size > LARGEST_IMAGE:
        size = stat.st_size / 2**20
        raise InputError(f"{path}: image has {size:.0f} MB, the limit is {LARGEST_IMAGE // 2**20} MB; make it smaller")
    return _data_url(path, stat.st_mtime_ns, stat.st_size)


_IMAGES = {"png": rb"\x89PNG\r\n\x1a\n", "jpeg": rb"\xff\xd8\xff", "gif": rb"GIF8[79]a", "webp": rb"RIFF.{4}WEBP"}
"""How the files of each type begin: their names can be wrong."""


# An image is sent again with every later turn; 32 is enough for many encounters at once.
@lru_cache(maxsize=32)
def _data_url(path: Path, changed: int, size: int) -> str:  # noqa: ARG001 - part of the cache's key
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: image cannot be read ({error.strerror})") from None
    kind = next((kind for kind, start in _IMAGES.items() if re.match(start, content, re.DOTALL)), None)
    if kind is None:
        raise InputError(f"{path}: not a PNG, JPEG, GIF or WebP image; convert it to one of these")
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


MARKER = "[earlier dialogue left out]\n"


def clip(messages: Sequence[Message], longest: int) -> tuple[tuple[Message, ...], int]:
    """Cut messages down to `longest` characters in total; also returns how many were left out.

    The oldest text goes first, message by message, each from its beginning. System messages are cut only if they are
    too long on their own, and then at the end. No message is dropped, so every tool result keeps its call.
    """
    excess = sum(len(message.content) for message in messages) - longest
    if excess <= 0:
        return tuple(messages), 0
    kept = list(messages)
    left_out = 0
    for index, message in enumerate(kept):
        if message.role == "system" or len(message.content) <= len(MARKER):
            continue
        cut = min(len(message.content), excess + len(MARKER))
        # Where lines are short, cut at the end of one.
        line_end = message.content.find("\n", cut - 1, cut + 200) + 1
        cut = line_end if 0 < line_end < len(message.content) else cut
        kept[index] = replace(message, content=MARKER + message.content[cut:])
        left_out += cut
        excess -= cut - len(MARKER)
        if excess <= 0:
            return tuple(kept), left_out
    for index, message in reversed(list(enumerate(kept))):
        if message.role != "system" or excess <= 0:
            continue
        cut = min(len(message.content), excess)
        kept[index] = replace(message, content=message.content[: len(message.content) - cut])
        left_out += cut
        excess -= cut
    return tuple(kept), left_out


def error_in(body: Json) -> Json | None:
    if body.get("error") or body.get("status") in ("failed", "cancelled"):
        return body
    choice = _choice(body)
    return choice if choice.get("error") else None


def read_answer(api: Api, body: Json, host: str) -> Answer:
    """The text and tool calls of an answer; raises a `ModelError` if there are none."""
    answer = _read_responses(body, host) if api == "responses" else _read_chat(body, host)
    # Local servers leave a model's thinking in its text; control tokens in it must not count.
    answer = replace(answer, text=_THINKING.sub("", answer.text), model=_text(body.get("model"))[:LONGEST_NAME])
    if not answer.text.strip() and not answer.tool_calls and not answer.truncated:
        raise MalformedError(f"{host} answered without any text")
    return answer


_THINKING = re.compile(r"^\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)


def _read_responses(body: Json, host: str) -> Answer:
    output = body.get("output")
    if not isinstance(output, list):
        raise ServerError(f"{host} answered with JSON that is not a Responses API object")
    texts: list[str] = []
    calls: list[ToolCall] = []
    for item in objects(output):
        if item.get("type") == "function_call":
            calls.append(_tool_call(item.get("call_id") or item.get("id"), item, len(calls)))
        elif item.get("type", "message") == "message":
            content = item.get("content")
            parts = [{"text": content}] if isinstance(content, str) else objects(content)
            refusals = [_text(part.get("refusal")) for part in parts if part.get("type") == "refusal"]
            if refusals:
                raise RefusedError(_refused(host, refusals[0]))
            texts.append("".join(_text(part.get("text")) for part in parts))
    reason = as_object(body.get("incomplete_details")).get("reason")
    if reason == "content_filter":
        raise RefusedError(f"{host}: the answer was stopped by a content filter")
    return Answer("\n".join(filter(None, texts)), tuple(calls), body.get("status") == "incomplete")


def _read_chat(body: Json, host: str) -> Answer:
    choice = _choice(body)
    message = as_object(choice.get("message"))
    if not message:
        raise ServerError(f"{host} answered with JSON that is not a chat completion")
    if refusal := _text(message.get("refusal")):
        raise RefusedError(_refused(host, refusal))
    if choice.get("finish_reason") == "content_filter":
        raise RefusedError(f"{host}: the answer was stopped by a content filter")
    calls = [
        _tool_call(call.get("id"), as_object(call.get("function")), number)
        for number, call in enumerate(objects(message.get("tool_calls")))
    ]
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_text(part.get("text")) for part in objects(content))
    return Answer(_text(content), tuple(calls), choice.get("finish_reason") == "length")


def embedding_body(model: str, texts: Sequence[str]) -> bytes:
    """A request for embeddings; as numbers, because not every server knows base64."""
    return encoded({"model": model, "input": list(texts), "encoding_format": "float"})


def read_embeddings(body: Json, host: str) -> Answer:
    """The vectors of an answer, in the order of the texts, as a JSON list."""
    rows = objects(body.get("data"))
    if not rows:
        raise ServerError(f"{host} answered without embeddings")
    if all(isinstance(row.get("index"), int) for row in rows):
        rows.sort(key=lambda row: row["index"])
    return Answer(json.dumps([row.get("embedding") for row in rows]), (), False)


def read_usage(body: Json) -> Usage:
    """Tokens as either API counts them; None if the endpoint does not say."""
    usage = as_object(body.get("usage"))
    given = as_object(usage.get("input_tokens_details") or usage.get("prompt_tokens_details"))
    spoken = as_object(usage.get("output_tokens_details") or usage.get("completion_tokens_details"))
    return Usage(
        _count(usage.get("input_tokens", usage.get("prompt_tokens"))),
        _count(usage.get("output_tokens", usage.get("completion_tokens"))),
        _count(given.get("cached_tokens")),
        _count(spoken.get("reasoning_tokens")),
    )


def _refused(host: str, refusal: str) -> str:
    return f"{host}: the model declined to answer: {privacy.quotation(' '.join(refusal.split())[:200])}"


def _tool_call(call_id: Any, function: Json, number: int) -> ToolCall:
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        # Some servers send the arguments as an object, or omit them for a tool without parameters.
        arguments = json.dumps(arguments if arguments is not None else {})
    return ToolCall(_text(call_id) or f"call_{number}", _text(function.get("name")), encodable(arguments))


def _choice(body: Json) -> Json:
    choices = body.get("choices")
    return as_object(choices[0]) if isinstance(choices, list) and choices else {}


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def as_object(value: object) -> Json:
    """A JSON object; anything else counts as an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Json]:
    """The objects in a JSON list; none in anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12 else None
