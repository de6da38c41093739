"""`agentclinic probe`: finds out what an endpoint can do."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import anyio
from pydantic import BaseModel

from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.models.base import Image, Message, Model, ModelError, Purpose, Request, Tool
from agentclinic.models.endpoint import Endpoint
from agentclinic.runs.build import Models


class _Colour(BaseModel):
    colour: str


_TOOL = Tool(
    "note_colour",
    "Write down a colour.",
    {
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True)
class Finding:
    """One thing tried."""

    what: str
    works: bool
    detail: str


def probe_command(settings: Settings, model: str, endpoint: str | None, *, as_json: bool) -> bool:
    """Try the endpoint and print what was found; False when it does not answer with text."""
    findings = anyio.run(_probe, settings, model, endpoint)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{'yes' if finding.works else 'no ':3}  {finding.what}: {finding.detail}")
        if findings[0].works:
            print(f"\nUse it with: agentclinic run --doctor_llm {model}")
    return findings[0].works


async def _probe(settings: Settings, name: str, endpoint: str | None) -> list[Finding]:
    # A recording would stand between us and the endpoint.
    settings = settings.model_copy(update={"run": settings.run.model_copy(update={"record": None})})
    async with Models(settings) as models:
        model = models.get(name, endpoint)
        if not isinstance(model, Endpoint):
            raise InputError(f"probe tries models at an endpoint; {name!r} is not one")
        text = await _text(model)
        if not text.works:
            return [text]
        return [text, await _tools(model), await _structured(model), await _image(model)]


def _ask(text: str, **options: Any) -> Request:
    images = options.pop("images", ())
    system = Message("system", "You are being tried out. Answer as briefly as you can.")
    return Request(Purpose.PROBE, (system, Message("user", text, images=images)), **options)


async def _text(model: Endpoint) -> Finding:
    try:
        reply = await model.reply(_ask("Write the word ready."))
    except ModelError as error:
        return Finding("answers", False, _plain(error))
    api = {"responses": "the Responses API", "chat": "chat completions"}.get(model.client.api or "", "an unknown API")
    used = reply.usage
    tokens = (
        "no token counts" if used.input_tokens is None else f"{used.input_tokens} tokens in, {used.output_tokens} out"
    )
    return Finding("answers", True, f"by {api}, with {tokens}; said {reply.text.strip()[:60]!r}")


async def _tools(model: Model) -> Finding:
    request = _ask("Write down the colour of the sky with the tool.", tools=(_TOOL,), tool_choice="required")
    try:
        reply = await model.reply(request)
    except ModelError as error:
        return Finding("tool calls", False, _plain(error))
    if not reply.tool_calls:
        return Finding("tool calls", False, f"wrote text instead: {reply.text.strip()[:60]!r}")
    call = reply.tool_calls[0]
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return Finding("tool calls", False, f"called {call.name} with arguments that are not JSON")
    if call.name != _TOOL.name or not isinstance(arguments, dict) or "colour" not in arguments:
        return Finding("tool calls", False, f"called {call.name} with {call.arguments[:60]}, not as asked")
    return Finding("tool calls", True, f"called {call.name}({call.arguments.strip()[:60]})")


async def _structured(model: Model) -> Finding:
    try:
        reply = await model.reply(_ask("Name the colour of the sky.", schema=_Colour))
    except ModelError as error:
        return Finding("structured output", False, _plain(error))
    how = f" ({'; '.join(reply.notes)})" if reply.notes else ""
    return Finding("structured output", True, f"{reply.text.strip()[:60]}{how}")


async def _image(model: Model) -> Finding:
    try:
        reply = await model.reply(_ask("Which colour fills this picture? One word.", images=(Image(red_square()),)))
    except ModelError as error:
        return Finding("images", False, _plain(error))
    if "red" in reply.text.lower():
        return Finding("images", True, "saw that the test picture is red")
    return Finding("images", False, f"accepted a picture but did not see that it is red: {reply.text.strip()[:60]!r}")


_MENDS = {
    "auth": "the key is not accepted: check OPENAI_API_KEY, .env or llm.config.json",
    "quota": "the account has no credit left",
    "connection": "nothing answers there: check base_url and whether the server runs",
    "timeout": "it does not answer in time: raise llm.runtime.request_timeout",
}


def _plain(error: ModelError) -> str:
    mend = _MENDS.get(error.kind)
    return f"{error} ({mend})" if mend else str(error)


def red_square(size: int = 32) -> str:
    """A small red PNG as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + b"\xff\x00\x00" * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
