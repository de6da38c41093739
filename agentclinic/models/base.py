"""What a role asks of a model and what comes back, whatever kind of model it is.

Every role sends a `Request` and gets a `Reply`. Endpoints use `messages`, `tools` and `schema`;
builtin models use `purpose` and `payload` and never read the prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel

from agentclinic.errors import AgentClinicError
from agentclinic.results.differential import Differential
from agentclinic.results.outcome import Verdict
from agentclinic.results.turn import Disclosure, Usage


class Purpose(StrEnum):
    """What a request is for; sent to endpoints as the header `X-AgentClinic-Purpose`."""

    DOCTOR = "doctor"
    PATIENT = "patient"
    MEASUREMENT = "measurement"
    MODERATOR = "moderator"
    PLANNER = "planner"
    DISCRIMINATOR = "discriminator"
    SYNTHESIS = "synthesis"
    CONFIDENCE = "confidence"
    WRITER = "writer"
    QUERY = "query"
    """A plain `query_model` call that belongs to no role."""
    PROBE = "probe"
    """`agentclinic probe` trying out an endpoint."""


@dataclass(frozen=True)
class Image:
    """An image shown to a model, by address: http(s) URL, data URL, or path of a local file."""

    url: str


@dataclass(frozen=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` is its JSON text, not yet validated."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Tool:
    """A function the model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    images: tuple[Image, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls an assistant message made."""
    tool_call_id: str | None = None
    """On a tool message: the call it answers."""


@dataclass(frozen=True)
class Request:
    """One question to a model."""

    purpose: Purpose
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    schema: type[BaseModel] | None = None
    """When given, the reply's `parsed` holds a validated instance."""
    payload: object | None = None
    """Structured context, only what the role may see (`clinic.payloads`). Never sent to an endpoint."""
    temperature: float | None = None
    repair: bool = True
    """Whether a reply that does not fit `schema` is sent back once; False where whoever asks decides about that."""


@dataclass(frozen=True)
class Reply:
    """What a model answered."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    parsed: BaseModel | None = None
    usage: Usage = field(default_factory=Usage)
    disclosures: tuple[Disclosure, ...] = ()
    """Known for builtin patients and laboratories only."""
    differential: Differential | None = None
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    """What the reader of a record should know: a clipped prompt, a repair turn, a fallback API."""


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests: an endpoint, the builtin clinic, a recording, a person."""

    @property
    def name(self) -> str:
        """The name it was selected by."""
        ...

    async def reply(self, request: Request) -> Reply:
        """Answer one request or raise a `ModelError`."""
        ...


class ModelError(AgentClinicError):
    """A model gave no usable reply. `kind` is what records and summaries show."""

    kind = "model"

    def __init__(self, message: str, *, retries: int = 0) -> None:
        super().__init__(message)
        self.retries = retries
        """Tries that failed before this one."""
        self.retry_after: float | None = None
        """Seconds the endpoint asks to wait before the next try, where it says so."""
        self.usage: Usage | None = None
        """What the failed tries cost, where the endpoint says so: bad answers are paid for like good ones."""


class AuthError(ModelError):
    """The endpoint does not accept the key."""

    kind = "auth"


class QuotaError(ModelError):
    """The account has no credit left; waiting does not help."""

    kind = "quota"


class RateLimitError(ModelError):
    """Too many requests for now."""

    kind = "rate_limit"

    def __init__(self, message: str, *, retry_after: float | None = None, retries: int = 0) -> None:
        super().__init__(message, retries=retries)
        self.retry_after = retry_after


class RequestTimeout(ModelError):  # noqa: N818 - the name the field uses
    """No answer within the time limit."""

    kind = "timeout"


class ContextTooLongError(ModelError):
    """The prompt does not fit the model's context."""

    kind = "context_too_long"


class RefusedError(ModelError):
    """The model declined to answer."""

    kind = "refused"


class MalformedError(ModelError):
    """The answer is empty, truncated or not of the demanded form, also after one repair."""

    kind = "malformed"

    def __init__(self, message: str, *, text: str = "", retries: int = 0) -> None:
        super().__init__(message, retries=retries)
        self.text = text
        """What was answered instead, where there is a text: somebody may still make something of it."""


class ServerError(ModelError):
    """The endpoint failed."""

    kind = "server"


class ConnectError(ModelError):
    """The endpoint could not be reached or broke off."""

    kind = "connection"


class NotRecordedError(ModelError):
    """A replay was asked something its recording does not hold."""

    kind = "not_recorded"


class BadRequestError(ModelError):
    """The endpoint rejects the request itself (unknown model, unsupported parameter)."""

    kind = "bad_request"


class UnknownModelError(BadRequestError):
    """The endpoint does not have a model of that name."""

    kind = "unknown_model"


class NotAllowedHereError(ModelError):
    """The request was not sent: its data may not go to that address."""

    kind = "privacy"


FATAL = frozenset({"auth", "quota", "unknown_model", "privacy"})
"""Errors that every further request would meet, too: whoever sends many stops, and nobody goes on with second best."""
OWN_FAULTS = frozenset({"refused", "context_too_long", "malformed", "doctor_program"})
"""Failures that are the speaker's own doing rather than the endpoint's (DESIGN, "Whose fault")."""
