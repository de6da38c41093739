"""The check before a run: one short request to each model, so that what cannot work is reported in seconds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio

from agentclinic.config import LLMSettings
from agentclinic.errors import InputError
from agentclinic.models.base import (
    BadRequestError,
    MalformedError,
    Message,
    ModelError,
    Purpose,
    RefusedError,
    Request,
    UnknownModelError,
)
from agentclinic.models.endpoint import Clients, Endpoint
from agentclinic.models.gate import Gate
from agentclinic.runs.build import Used
from agentclinic.runs.pool import first

CONNECT_SECONDS = 10.0
"""A server that is there accepts a connection within a second; a route across the world or a VPN may take a few."""
ANSWER_SECONDS = 15.0
"""Long enough for a busy server to write one word. One that is still loading its model takes longer and is not failed:
no answer in time is a warning."""
FEW_TOKENS = 16
"""Most output tokens of the check: the smallest number that OpenAI's Responses API accepts."""

_WAIT_AND_SEE = frozenset({"timeout", "server", "rate_limit"})
"""Errors that may pass while the run tries again: a model being loaded, an overloaded server."""
_REQUEST = Request(
    Purpose.CHECK,
    (Message("system", "This checks the connection. Answer with one word."), Message("user", "Write the word ready.")),
)
_EMBED = Request(Purpose.EMBEDDING, (Message("user", "ready"),))


class CheckError(InputError):
    """A model that the run needs cannot be used; nothing was written."""


@dataclass(frozen=True)
class Failure:
    """A model that did not answer the check."""

    used: Used
    error: ModelError
    meant: str = ""
    """The name that was probably meant, if the server does not know the model."""

    @property
    def passing(self) -> bool:
        """Whether the run may go on: the error may pass, or the model may not be asked at all."""
        return self.error.kind in _WAIT_AND_SEE or self.used.optional

    def __str__(self) -> str:
        advice = _ADVICE.get(self.error.kind, "").format(setting=self.used.setting)
        roles = ", ".join(self.used.roles)
        return f"{roles}: model {self.used.name!r}: {self.error}{'; ' + advice if advice else ''}{self.meant}"


_ADVICE = {
    "connection": "is the server running, and is this its address (OPENAI_BASE_URL, or {setting}.base_url)?",
}
"""What to do where the error itself does not say."""


def report(failed: Sequence[Failure], say: Callable[[str], None]) -> None:
    """Warn of failures that may pass; raise `CheckError` for the others."""
    lasting = [failure for failure in failed if not failure.passing]
    if lasting:
        found = "\n  ".join(str(failure) for failure in lasting)
        raise CheckError(
            "the check of the models failed, and nothing was started or written:\n"
            f"  {found}\n"
            "Fix this and run the same command again; --no-check skips the check"
        )
    for failure in failed:
        say(f"Warning: {failure}; going on")


async def gone(used: Sequence[Used], llm: LLMSettings, gate: Gate) -> str | None:
    """Ask these models once more, in the middle of a run; returns what is wrong, or None if they all answer."""
    failed = [one for one in await failures(used, llm, gate) if one.error.kind != "rate_limit"]
    return "; ".join(str(failure) for failure in failed) or None


async def failures(used: Sequence[Used], llm: LLMSettings, gate: Gate) -> list[Failure]:
    """Send one short request to each model, all at the same time; returns those that failed, in the same order."""
    found: dict[int, Failure] = {}

    async def ask(number: int, one: Used, clients: Clients) -> None:
        try:
            try:
                await _ask(clients, one, {"max_output_tokens": FEW_TOKENS})
            except BadRequestError as error:
                if type(error) is not BadRequestError:
                    raise
                # Our limit on the answer may be what the server rejects: ask once more, as the run will.
                await _ask(clients, one)
        except UnknownModelError as error:
            found[number] = Failure(one, error, await _endpoint(clients, one).named_like())
        except ModelError as error:
            found[number] = Failure(one, error)

    runtime = llm.runtime.model_copy(
        update={"tries": 1, "request_timeout": min(ANSWER_SECONDS, llm.runtime.request_timeout)}
    )
    llm, workers = llm.model_copy(update={"runtime": runtime}), max(1, len(used))
    try:
        async with (
            Clients(llm, workers=workers, gate=gate, connect_timeout=CONNECT_SECONDS) as clients,
            anyio.create_task_group() as group,
        ):
            for number, one in enumerate(used):
                group.start_soon(ask, number, one, clients)
    except BaseExceptionGroup as several:
        raise first(several) from None
    return [found[number] for number in sorted(found)]


async def _ask(clients: Clients, used: Used, limit: Mapping[str, int] | None = None) -> None:
    # Both are answers: with so few tokens, some models get no further than their hidden reasoning.
    with contextlib.suppress(MalformedError, RefusedError):
        await _endpoint(clients, used, limit).reply(_EMBED if used.roles == ("embedding",) else _REQUEST)


def _endpoint(clients: Clients, used: Used, limit: Mapping[str, int] | None = None) -> Endpoint:
    explicit = {**used.explicit, **(limit or {})}
    return clients.endpoint(used.name, base_url=used.base_url, api_key=used.key).always(lambda _: explicit)
