"""What every kind of model is asked, what it answers, how it can fail, and what its tokens cost.

Every role sends a `Request` and gets a `Reply`. Endpoints use `messages`, `tools` and `schema`;
builtin models use `purpose` and `payload` and never read the prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from pydantic import BaseModel

from agentclinic.config import PriceSettings
from agentclinic.errors import AgentClinicError
from agentclinic.models.gate import is_loopback_address
from agentclinic.results.record import Verdict
from agentclinic.results.turn import Differential, Disclosure, Usage


class Purpose(StrEnum):
    """What a request is for; endpoints get it as the header `X-AgentClinic-Purpose`."""

    DOCTOR = "doctor"
    PATIENT = "patient"
    MEASUREMENT = "measurement"
    MODERATOR = "moderator"
    PLANNER = "planner"
    DISCRIMINATOR = "discriminator"
    SYNTHESIS = "synthesis"
    CONFIDENCE = "confidence"
    WRITER = "writer"
    REVIEWER = "reviewer"
    """Judges a reply of the patient or the laboratory, for `agentclinic audit`."""
    LEARNER = "learner"
    """Writes experiences from an encounter, for `agentclinic learn`."""
    COMPLETION = "completion"
    """Continues a line of a chart from its beginning, for `agentclinic study contamination`."""
    MEMORY = "memory"
    """Picks the experiences that fit a situation."""
    EMBEDDING = "embedding"
    """Each message is a text to embed; the reply's text is a JSON list of vectors."""
    QUERY = "query"
    """A `query_model` call, which belongs to no role."""
    PROBE = "probe"
    """A test request of `agentclinic probe`."""
    CHECK = "check"
    """The short request to each model before a run."""


@dataclass(frozen=True)
class Image:
    """An image shown to a model: an http(s) URL, a data URL or the path of a local file."""

    url: str


@dataclass(frozen=True)
class ToolCall:
    """A tool call by a model; `arguments` is JSON text, not yet validated."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""


@dataclass(frozen=True)
class Message:
    role: Literal["system", "user", "assistant", "tool"]
    content: str
    images: tuple[Image, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    """On an assistant message: the tool calls it made."""
    tool_call_id: str | None = None
    """On a tool message: the call it answers."""


@dataclass(frozen=True)
class Request:
    purpose: Purpose
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    schema: type[BaseModel] | None = None
    """When given, the reply's `parsed` holds a validated instance."""
    described: bool = False
    """Whether the prompt describes the form of the answer, so that a server that takes schemas need not be sent the
    schema in the prompt as well."""
    payload: object | None = None
    """Structured context, only what the role may see. Never sent to an endpoint."""
    temperature: float | None = None
    repair: bool = True
    """Whether the model gets one chance to repair a reply that does not fit `schema`."""


@dataclass(frozen=True)
class Reply:
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    parsed: BaseModel | None = None
    usage: Usage = field(default_factory=Usage)
    disclosures: tuple[Disclosure, ...] = ()
    """From the builtin patient and laboratory only; the clinic itself writes those of language models."""
    differential: Differential | None = None
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    """What a reader of the record should know, e.g. that the prompt was clipped or the reply repaired."""
    model: str = ""
    """The model's name as the endpoint reports it, which may be more specific than the requested one."""


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests: an endpoint, the builtin clinic, a recording, a person."""

    @property
    def name(self) -> str: ...

    async def reply(self, request: Request) -> Reply:
        """Answer one request or raise a `ModelError`."""
        ...


def reads_prompts(model: Model) -> bool:
    """Whether a model needs a request's messages: all do, unless they say otherwise in an attribute of this name."""
    return getattr(model, "reads_prompts", True)


class ModelError(AgentClinicError):
    """A model gave no usable reply. `kind` is what records and summaries show."""

    kind = "model"

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retries = 0
        """Failed tries before this one."""
        self.retry_after = retry_after
        """Seconds the endpoint asked to wait before the next try, if it did."""
        self.usage: Usage | None = None
        """What the failed tries cost, if known: bad answers are paid for like good ones."""
        self.traceback: str | None = None
        """Where the program of a custom doctor failed."""


class AuthError(ModelError):
    kind = "auth"


class QuotaError(ModelError):
    """The account has no credit left; waiting does not help."""

    kind = "quota"


class RateLimitError(ModelError):
    kind = "rate_limit"


class RequestTimeout(ModelError):  # noqa: N818 - the usual name
    kind = "timeout"


class ContextTooLongError(ModelError):
    kind = "context_too_long"


class RefusedError(ModelError):
    kind = "refused"


class MalformedError(ModelError):
    """The answer is empty, truncated or does not have the required form, even after one repair."""

    kind = "malformed"

    def __init__(self, message: str, *, text: str = "") -> None:
        super().__init__(message)
        self.text = text
        """The answer itself, if there is any: the caller may still be able to use it."""


class ClosedForLongError(ModelError):
    """The endpoint asks to wait longer than a run waits."""

    kind = "closed"


class ServerError(ModelError):
    kind = "server"


class ConnectError(ModelError):
    """The endpoint could not be reached, or the connection broke."""

    kind = "connection"


class NotRecordedError(ModelError):
    kind = "not_recorded"


class BadRequestError(ModelError):
    """The endpoint rejects the request itself, e.g. because of an unsupported parameter."""

    kind = "bad_request"


class UnknownModelError(BadRequestError):
    kind = "unknown_model"


class NotAllowedHereError(ModelError):
    """The request was not sent, because its data may not go to that address."""

    kind = "privacy"


FATAL = frozenset({"auth", "quota", "closed", "unknown_model", "privacy"})
"""Errors that every later request would get as well: the run stops, and no fallback hides them."""
OWN_FAULTS = frozenset({"refused", "context_too_long", "malformed", "doctor_program"})
"""Failures of the model or the doctor itself rather than of the endpoint: in the doctor's role they count as wrong."""

ANY_MODEL = "*"
"""The name in `prices` for every model without its own entry."""

BATCH_SHARE = 0.5
"""What a request in a batch costs, as a share of its usual price: the discount of OpenAI and most other providers."""


def cost_usd(
    model: str, base_url: str, usage: Mapping[str, int | None], prices: Mapping[str, PriceSettings] | None = None
) -> float | None:
    """The price of these tokens at that provider; None if it is not known.

    The user's own `prices` come first, then the list prices in the `genai-prices` package. A local server has no list
    price, even if the same model is sold elsewhere.
    """
    sent, received = usage.get("input_tokens"), usage.get("output_tokens")
    if sent is None or received is None:
        return None
    cached = usage.get("cached_tokens") or 0
    own = prices.get(model) or prices.get(ANY_MODEL) if prices else None
    if own is not None:
        again = own.input if own.cached_input is None else own.cached_input
        return ((sent - cached) * own.input + cached * again + received * own.output) / 1_000_000
    host = urlsplit(base_url).hostname or ""
    if host == "localhost" or is_loopback_address(host):
        return None
    # Imported here: it takes 0.2 s, and only hosted models need it.
    from genai_prices import Usage, calc_price

    tokens = Usage(input_tokens=sent, output_tokens=received, cache_read_tokens=cached or None)
    try:
        return float(calc_price(tokens, model_ref=model, provider_api_url=base_url).total_price)
    except LookupError:
        return None
