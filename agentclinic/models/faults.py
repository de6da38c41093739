"""Turn failures at an endpoint into typed errors, without secrets in their messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from agentclinic import privacy
from agentclinic.config import checked_address, variable
from agentclinic.errors import ConfigError
from agentclinic.models.base import (
    AuthError,
    BadRequestError,
    ConnectError,
    ContextTooLongError,
    ModelError,
    NotAllowedHereError,
    QuotaError,
    RateLimitError,
    RefusedError,
    RequestTimeout,
    ServerError,
    UnknownModelError,
)
from agentclinic.models.echoes import Echoes
from agentclinic.models.gate import NotAllowedError
from agentclinic.models.retry import retry_after

LONGEST_QUOTE = 200
"""Maximum characters quoted from a server: enough for its message, too few for a web page."""

LONGEST_MESSAGE = 10_000
"""How much of a server's message is searched, in characters: its beginning says what is wrong; a megabyte takes the
searches below two seconds."""

LARGEST_ANSWER = 8 * 2**20
"""Maximum bytes of an answer, uncompressed. The longest outputs of today's models, 128,000 tokens, are about half a
megabyte, and six times that if every character is escaped; a compressed body of 1.5 MB can expand to gigabytes."""

LARGEST_FILE = 512 * 2**20
"""Maximum bytes of a file with a batch's answers: 10 kB for each of 50,000; a short answer takes about 2."""

_KEY_LIKE = re.compile(r"\b(sk|pk|rk|gsk|hf|xai)[-_][\w*.-]{6,}|(?i:bearer)\s+[\w.*~+/=-]{6,}")
_CONTEXT = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|prompt is too long|too many (input )?tokens", re.I
)
_NO_ROUTE = re.compile(r"(unknown|invalid|unrecognized)( request)? url|no (such )?route|unknown (path|endpoint)", re.I)
_FORMAT = re.compile(r"text\.format|response_format|json_schema|structured.?output|guided.?(json|decoding)", re.I)
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits"}
)
_REFUSAL_CODES = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
_STATUS_BY_CODE = {
    "rate_limit_exceeded": 429,
    "invalid_api_key": 401,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "server_error": 500,
    "timeout": 504,
}
"""The status that an error inside an HTTP 200 stands for."""


class NoRouteError(BadRequestError):
    """The endpoint does not have the API that was called."""


class FormatRejectedError(BadRequestError):
    """The endpoint does not accept a structured output format."""


class TooLargeError(Exception):
    """An answer was too large; the rest of it was not read."""


def require_address(base_url: str) -> None:
    """Refuse an address that cannot be used: one from the environment has not been checked yet."""
    try:
        checked_address(base_url)
    except ValueError as error:
        setting = "OPENAI_BASE_URL" if base_url == variable("OPENAI_BASE_URL") else "base_url"
        raise ConfigError(f"{setting} {error}") from None


class Host:
    """An endpoint's name in messages, and the secrets that must not appear in them."""

    def __init__(self, base_url: str, key: str | None) -> None:
        require_address(base_url)
        parts = urlsplit(base_url)
        self.name = parts.hostname or base_url
        if parts.port:
            self.name += f":{parts.port}"
        written = [secret for secret in (key, parts.username, parts.password) if secret]
        self._echoes = Echoes(form for secret in written for form in {secret, unquote(secret)})

    def __repr__(self) -> str:
        return f"Host({self.name!r})"

    def scrub(self, content: bytes) -> bytes:
        """Remove our own key from a body: some servers quote it in their answers."""
        return self._echoes.remove(content)

    def quote(self, text: str) -> str:
        """The server's words as one short line without anything that looks like a key.

        They may repeat the prompt, so they are not shown at all when the data is credentialed.
        """
        if privacy.silent():
            return privacy.LEFT_OUT
        text = self.scrub(text.encode("utf-8", "replace")).decode("utf-8", "replace")[:LONGEST_MESSAGE]
        text = " ".join(_KEY_LIKE.sub("[key]", text).split())
        text = "".join(char if char.isprintable() else "�" for char in text)
        return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


def from_answer(status: int, body: Any, headers: Mapping[str, str], host: Host, model: str) -> ModelError:
    """The error in an HTTP answer, by its status or, inside an HTTP 200, by its code."""
    error = _error_of(body)
    kind = str(error.get("type") or "")
    code = str(error.get("code") or kind)
    message = str(error.get("message") or "")
    said = message[:LONGEST_MESSAGE]
    given = status
    if status < 400:
        given = int(code) if re.fullmatch("[1-9][0-9]{2}", code) else _STATUS_BY_CODE.get(code, 500)
    quoted = f": {host.quote(message)}" if message else ""

    def describe(what: str, advice: str = "") -> str:
        return f"{host.name} answered {status} ({what}){quoted}{'; ' + advice if advice else ''}"

    if code in _QUOTA_CODES or kind in _QUOTA_CODES or given == 402:
        return QuotaError(describe("no credit left", "add credit or use another endpoint"))
    if given in (401, 403):
        return AuthError(describe("key not accepted", "set the endpoint's key in the environment, .env or the config"))
    if code in _REFUSAL_CODES:
        return RefusedError(describe("refused"))
    if code == "context_length_exceeded" or (given in (400, 413, 422) and _CONTEXT.search(said)):
        return ContextTooLongError(describe("prompt too long for the model"))
    if given == 429:
        return RateLimitError(describe("too many requests"), retry_after=retry_after(headers))
    if given in (408, 504):
        return RequestTimeout(describe("the server timed out"))
    names_model = code == "model_not_found" or "model" in said.lower()
    if given in (404, 405, 501) and not names_model:
        return NoRouteError(describe("no such address", "check base_url, which usually ends in /v1, and llm_api"))
    if given == 404:
        return UnknownModelError(describe(f"unknown model {model!r}", "`agentclinic probe` checks a name"))
    # Not only 400: the Python server of llama.cpp answers 500 to an unknown format.
    if given >= 400 and _FORMAT.search(f"{said} {error.get('param') or ''}"):
        return FormatRejectedError(describe("structured output not accepted"))
    if 400 <= given < 500:
        if _NO_ROUTE.search(said):
            return NoRouteError(describe("no such address"))
        return BadRequestError(describe("request not accepted"))
    return ServerError(describe("server error"), retry_after=retry_after(headers))


def from_exception(error: BaseException, host: Host, limit: float) -> ModelError:
    """The error of a request that got no answer.

    The chain of causes decides, not the outermost exception.
    """
    bottom = error
    while not isinstance(bottom, TimeoutError) and bottom.__cause__ is not None:
        bottom = bottom.__cause__
    import aiohttp  # imported here: it takes 0.1 s, and only requests that failed need it

    if isinstance(bottom, aiohttp.ConnectionTimeoutError):
        return ConnectError(f"{host.name} could not be reached (no connection in time)")
    if isinstance(bottom, TimeoutError):
        return RequestTimeout(f"{host.name} did not answer within {limit:g} s")
    if isinstance(bottom, TooLargeError):
        return ServerError(f"{host.name} sent more than {bottom} MB instead of an answer")
    if isinstance(bottom, NotAllowedError):
        return NotAllowedHereError(f"credentialed data may not go to {host.name} ({bottom}); see docs/privacy.md")
    if privacy.silent():  # the system's own words are harmless; any other exception may quote the server
        reason = (isinstance(bottom, OSError) and bottom.strerror) or privacy.LEFT_OUT
    else:
        reason = host.quote(str(bottom)) or "no reason given"
    return ConnectError(f"{host.name} could not be reached, or the connection broke ({reason})")


def _error_of(body: Any) -> dict[str, Any]:
    """The error object, wherever this server puts it."""
    error = (body.get("error") or body.get("detail") or body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        return error
    return {"message": error} if isinstance(error, str) and not error.lstrip().startswith("<") else {}
