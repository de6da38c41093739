"""A server sends our key back: in an error, a reply, a tool call, a model's name, a list of models, a broken header.

Twenty random keys in the shapes of several providers, each in every spelling of `SPELLINGS`, in one of the `PLACES` in
turn, go through the real client. What a run could write or show is unescaped, decoded and searched for the key. A reply
that lost its ordinary words has fallen as well, and so has any error but a model's.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
import json
import random
import re
import string
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pydantic import SecretStr

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from agentclinic.config import LLMSettings, RuntimeSettings
from agentclinic.models.base import Message, ModelError, Purpose, Request, Tool
from agentclinic.models.endpoint import Clients

KEYS = 20
HIDDEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
"""Zero-width characters, and a soft hyphen."""


def _between(separator: str) -> Callable[[str], str]:
    return lambda key: separator.join(key)


def _base64(key: str, before: str, *, url: bool = False, padded: bool = True) -> str:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    text = encode(f"{before}{key}!".encode()).decode()
    return text if padded else text.rstrip("=")


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "small letters": str.lower,
    "swapped case": str.swapcase,
    "hexadecimal": lambda key: key.encode().hex(),
    "Base64, MIME lines": lambda key: re.sub("(.{16})", r"\1\r\n", _base64(key, "")),
    "Base64 of a header": lambda key: _base64(key, "Authorization: Bearer "),
    **{
        f"Base64 after {before}, {'URL-safe' if url else 'standard'}, {'padded' if padded else 'not padded'}": partial(
            _base64, before="x" * before, url=url, padded=padded
        )
        for before in range(3)
        for url in (False, True)
        for padded in (False, True)
    },
    "URL escapes": lambda key: "".join(f"%{ord(char):02X}" for char in key),
    "URL escapes in small letters": lambda key: "".join(f"%{ord(char):02x}" for char in key),
    "URL escapes where needed": lambda key: quote(key.replace("-", "%2D").replace("_", "%5f"), safe="%"),
    "URL escapes twice": lambda key: quote("".join(f"%{ord(char):02x}" for char in key)),
    "URL escapes three times": lambda key: quote(quote("".join(f"%{ord(char):02X}" for char in key))),
    "HTML, decimal": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "HTML, decimal with zeros": lambda key: "".join(f"&#{ord(char):06d};" for char in key),
    "HTML, hexadecimal": lambda key: "".join(f"&#x{ord(char):x};" for char in key),
    "HTML, hexadecimal capitals": lambda key: "".join(f"&#X{ord(char):X};" for char in key),
    "HTML, punctuation": lambda key: key.replace("-", "&#45;").replace("_", "&#x5f;").replace("+", "&plus;"),
    "HTML, named": lambda key: key.replace("-", "&hyphen;").replace("_", "&lowbar;").replace(".", "&period;"),
    "HTML twice": lambda key: html.escape("".join(f"&#{ord(char)};" for char in key)),
    "JSON escapes": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "JSON escapes in capitals": lambda key: "".join(f"\\u{ord(char):04X}" for char in key),
    "JSON escapes twice": lambda key: "".join(f"\\\\u{ord(char):04x}" for char in key),
    "string escapes": lambda key: "".join(f"\\x{ord(char):02x}" for char in key),
    "escapes of several kinds": lambda key: "".join(
        (f"%{ord(char):02x}", f"&#{ord(char)};", f"\\u{ord(char):04x}", char)[place % 4]
        for place, char in enumerate(key)
    ),
    "spaces": _between(" "),
    "two spaces": _between("  "),
    "no-break spaces": _between("\u00a0"),
    "tabs": _between("\t"),
    "lines": _between("\n"),
    "lines of Windows": _between("\r\n"),
    "written line breaks": _between("\\n"),
    "dashes": _between("-"),
    "long dashes": _between("\u2014"),
    "dots": _between("."),
    "stars": _between("*"),
    "groups of four": lambda key: " ".join(re.findall(".{1,4}", key)),
    "lines of ten": lambda key: "\n".join(re.findall(".{1,10}", key)),
    "quoted pieces": lambda key: '", "'.join(re.findall(".{1,7}", key)),
    "zero-width, one kind": _between(HIDDEN[0]),
    "zero-width, all kinds": lambda key: "".join(char + HIDDEN[n % len(HIDDEN)] for n, char in enumerate(key)),
    "zero-width as HTML": _between("&#8203;"),
    "zero-width as named HTML": _between("&ZeroWidthSpace;"),
    "zero-width as JSON": _between("\\u200b"),
    "zero-width as URL": _between("%E2%80%8B"),
    "capitals and spaces": lambda key: " ".join(key.upper()),
    "Base64 with spaces": lambda key: " ".join(_base64(key, "x")),
    "Base64 as URL": lambda key: quote(_base64(key, "xx"), safe=""),
    "URL escapes as HTML": lambda key: "".join(f"&#37;{ord(char):02x}" for char in key),
}

PLACES = ("error", "reply", "model", "tool call", "refusal", "other error", "models", "header", "page")
TRIES = KEYS * len(SPELLINGS)

BEFORE, AFTER = "The patient reports 95% of the pain & fever; ", " - since Tuesday."


def make_keys(rng: random.Random) -> list[str]:
    """Keys at random, in the shapes that providers give them."""
    letters, small = string.ascii_letters + string.digits, string.ascii_lowercase + string.digits
    shapes = (
        ("sk-", letters, 48),
        ("sk-proj-", letters + "-_", 120),
        ("sk-ant-api03-", letters + "-_", 93),
        ("hf_", string.ascii_letters, 34),
        ("gsk_", letters, 52),
        ("xai-", letters, 80),
        ("AIza", letters + "-_", 35),
        ("", "0123456789abcdef", 32),
        ("", letters + "+/", 86),
        ("token-", small, 12),
    )
    return [
        prefix + "".join(rng.choices(alphabet, k=length - 1)) + rng.choice(string.digits)
        for prefix, alphabet, length in (shapes[number % len(shapes)] for number in range(KEYS))
    ]


class Server:
    """Answers every request as `answer` says: a status, a body and further bytes of its head."""

    answer: tuple[int, bytes, bytes] = (200, b"{}", b"")

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                status, body, more = self.answer
                kind = b"text/html" if body.startswith(b"<") else b"application/json"
                writer.write(
                    b"HTTP/1.1 %d OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b"
                    % (status, kind, len(body), more, body)
                )
                await writer.drain()
        writer.close()


def _answer(place: str, said: str) -> tuple[int, bytes, bytes]:
    """The server's answer with a text in one of the places; JSON escapes in the text are those of the body itself."""

    def body(value: Any) -> bytes:
        marked = json.dumps(value, ensure_ascii=False)
        # Spellings with JSON's own escapes are put in as they are; all others as JSON writes them.
        raw = said if re.fullmatch(r"(?:[^\\\"\n\r\t]|\\+u[0-9a-fA-F]{4})*", said) else json.dumps(said)[1:-1]
        return marked.replace("PLACE", raw).encode()

    text = f"{BEFORE}PLACE{AFTER}"
    message: dict[str, Any] = {"role": "assistant", "content": f"{BEFORE}Nothing{AFTER}"}
    chat: dict[str, Any] = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    match place:
        case "error":
            return 401, body({"error": {"message": text, "code": "invalid_api_key"}}), b""
        case "other error":
            return 400, body({"detail": text}), b""
        case "page":
            return 502, b"<html>" + body(text) + b"</html>", b""
        case "models":
            return 200, body({"data": [{"id": "PLACE"}]}), b""
        case "header":
            shown = said.encode().replace(b"\r", b"").replace(b"\n", b"\\n")
            return 200, body(chat), b"Content-Length: " + shown + b"\r\n"
        case "model":
            chat["model"] = "PLACE"
        case "refusal":
            message["refusal"] = text
        case "tool call":
            call = {"name": "weigh", "arguments": '{"note": "' + text + '"}'}
            message["tool_calls"] = [{"id": "PLACE", "type": "function", "function": call}]
        case _:
            message["content"] = text
    return 200, body(chat), b""


def _plain(text: str) -> Iterator[str]:
    """A text as a reader with patience could read it: with all escapes undone, and without what is between letters."""
    for _ in range(5):
        yield text
        text = unquote(html.unescape(text))
        text = re.sub(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))", lambda m: chr(int(m[1] or m[2], 16)), text)
        text = re.sub(r"\\+[nrt]", " ", text)


def _found(key: str, shown: str) -> bool:
    """Whether a text has the key in it, in any spelling."""

    def bare(text: str) -> str:
        return re.sub("[^a-z0-9]", "", text.lower())

    for text in _plain(shown):
        if bare(key) in bare(text) or key.encode().hex() in bare(text):
            return True
        # Base64 at any place: all that could be Base64, decoded from each of four beginnings.
        for coded in (text, re.sub(r"\s", "", text)):
            for run in re.findall(r"[A-Za-z0-9+/_-]{16,}", coded):
                for start in range(4):
                    piece = run[start:].translate(str.maketrans("-_", "+/"))
                    decoded = base64.b64decode(piece[: len(piece) // 4 * 4])
                    if key.encode().lower()[2:-2] in decoded.lower():
                        return True
    return False


TOOL = Tool("weigh", "Weigh the patient.", {"type": "object", "properties": {"note": {"type": "string"}}})
ASKED = Request(Purpose.PATIENT, (Message("user", "How are you?"),), tools=(TOOL,))


async def _try(server: Server, port: int, key: str, spelling: str, place: str) -> str | None:
    server.answer = _answer(place, SPELLINGS[spelling](key))
    llm = LLMSettings(runtime=RuntimeSettings(tries=1, timeout=0, llm_api="chat", request_timeout=20))
    where = f"{spelling} in {place}"
    async with Clients(llm) as clients:
        endpoint = clients.endpoint("m", base_url=f"http://127.0.0.1:{port}/v1", api_key=SecretStr(key))
        try:
            if place == "models":
                shown = await endpoint.named_like()
            else:
                reply = await endpoint.reply(ASKED)
                shown = json.dumps([asdict(reply), repr(reply)], default=str, ensure_ascii=False)
                if BEFORE not in json.loads(shown)[0]["text"]:
                    return f"{where}: the words around the key are gone"
        except ModelError as error:
            shown = f"{error} {error!r} {getattr(error, 'text', '')}"
        except Exception as error:  # noqa: BLE001 - any other one is a traceback for the user
            return f"{where}: {type(error).__name__}"
    return f"{where}: the key of {len(key)} characters is in {shown[:200]!r}" if _found(key, shown) else None


async def _tries(rng: random.Random, tries: int) -> list[str | None]:
    keys, spellings = make_keys(rng), list(SPELLINGS)
    cases = [(key, name) for key in keys for name in spellings]
    if tries < len(cases):
        cases = rng.sample(cases, tries)
    held: list[str | None] = []
    server = Server()
    listener = await asyncio.start_server(server, "127.0.0.1", 0, limit=2**20)
    port = listener.sockets[0].getsockname()[1]
    async with listener:
        for number in range(tries):
            key, name = cases[number % len(cases)]
            place = PLACES[(number + number // len(spellings)) % len(PLACES)]
            held.append(await _try(server, port, key, name, place))
    return held


def attack(tries: int, seed: int, folder: Path) -> Iterator[str | None]:  # noqa: ARG001 - nothing is written
    yield from asyncio.run(_tries(random.Random(seed), tries))
