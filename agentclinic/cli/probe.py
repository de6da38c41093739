"""`agentclinic probe`: find out what an endpoint can do."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any

import anyio
from pydantic import BaseModel

from agentclinic.cli.format import print_json
from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.models.base import Image, Message, ModelError, Purpose, Request, Tool
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


def probe_command(settings: Settings, model: str, endpoint: str | None, *, as_json: bool) -> None:
    """Try the endpoint and print what works; the exit code is 1 if it does not answer."""
    findings = anyio.run(_probe, settings, model, endpoint)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{'yes' if finding.works else 'no ':3}  {finding.what}: {finding.detail}")
        if findings[0].works:
            print(f"\nUse it with: agentclinic run --doctor_llm {model}")
    if not findings[0].works:
        raise SystemExit(1)


async def _probe(settings: Settings, name: str, endpoint: str | None) -> list[Finding]:
    # No recording: it would come between the probe and the endpoint.
    settings = settings.model_copy(update={"run": settings.run.model_copy(update={"record": None})})
    async with Models(settings) as models:
        model = models.get(name, endpoint)
        if not isinstance(model, Endpoint):
            raise InputError(f"probe needs a model at an endpoint; {name!r} is not one")
        findings = []
        for what, check in _CHECKS.items():
            try:
                findings.append(Finding(what, *await check(model)))
            except ModelError as error:
                fix = _FIXES.get(error.kind)
                findings.append(Finding(what, False, f"{error} ({fix})" if fix else str(error)))
            if not findings[0].works:
                break
        return findings


_FIXES = {
    "auth": "the key was rejected: check OPENAI_API_KEY, .env or llm.config.json",
    "quota": "the account has no credit left",
    "connection": "no server answers: check base_url and whether the server is running",
    "timeout": "it did not answer in time: raise llm.runtime.request_timeout",
}


def _ask(text: str, *images: Image, **options: Any) -> Request:
    system = Message("system", "You are being tried out. Answer as briefly as you can.")
    return Request(Purpose.PROBE, (system, Message("user", text, images=images)), **options)


async def _text(model: Endpoint) -> tuple[bool, str]:
    reply = await model.reply(_ask("Write the word ready."))
    api = {"responses": "the Responses API", "chat": "chat completions"}.get(model.client.api or "", "an unknown API")
    used = reply.usage
    tokens = (
        "no token counts" if used.input_tokens is None else f"{used.input_tokens} tokens in, {used.output_tokens} out"
    )
    return True, f"by {api}, with {tokens}; said {_short(reply.text)!r}"


async def _tools(model: Endpoint) -> tuple[bool, str]:
    request = _ask("Write down the colour of the sky with the tool.", tools=(_TOOL,), tool_choice="required")
    reply = await model.reply(request)
    if not reply.tool_calls:
        return False, f"wrote text instead: {_short(reply.text)!r}"
    call = reply.tool_calls[0]
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return False, f"called {call.name} with arguments that are not JSON"
    as_asked = call.name == _TOOL.name and isinstance(arguments, dict) and "colour" in arguments
    return as_asked, f"called {call.name}({_short(call.arguments)}){'' if as_asked else ', not as asked'}"


async def _structured(model: Endpoint) -> tuple[bool, str]:
    reply = await model.reply(_ask("Name the colour of the sky.", schema=_Colour))
    notes = f" ({'; '.join(reply.notes)})" if reply.notes else ""
    return True, f"{_short(reply.text)}{notes}"


async def _image(model: Endpoint) -> tuple[bool, str]:
    reply = await model.reply(_ask("Which colour fills this picture? One word.", Image(_red_square())))
    if "red" in reply.text.lower():
        return True, "recognized the red test picture"
    return False, f"accepted a picture but did not recognize that it is red: {_short(reply.text)!r}"


_CHECKS: dict[str, Callable[[Endpoint], Awaitable[tuple[bool, str]]]] = {
    "answers": _text,
    "tool calls": _tools,
    "structured output": _structured,
    "images": _image,
}
"""What is tried, in this order; if the first fails, the rest is not tried."""


def _short(text: str) -> str:
    return text.strip()[:60]


def _red_square(size: int = 32) -> str:
    """A small red PNG as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\x00" + b"\xff\x00\x00" * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()
