"""From recorded facts to one diagnosis, by a model that sees the facts and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentclinic.clinic.doctor import is_readable, one_name
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.models.base import FATAL, MalformedError, Message, Model, ModelError, Purpose, Reply, Request
from agentclinic.results.turn import Usage
from agentclinic.results.utterance import name_in, one_line
from agentclinic.worlds.menu import answers_text
from agentclinic.worlds.model import World


@dataclass(frozen=True)
class SynthesisPayload:
    """The collected facts, and nothing else: no dialogue, no reasons."""

    facts: tuple[str, ...]
    menu: World | None = None
    """In a solvable world, what is possible."""


@dataclass(frozen=True)
class Synthesis:
    """A diagnosis and how it was made."""

    diagnosis: str
    prompt: str
    """The whole prompt."""
    answer: str
    """The model's answer, followed by `second`; empty if it failed."""
    model: str
    usage: Usage
    error: str | None = None
    """Why the top of the doctor's own differential was used instead."""
    second: Reply | None = None
    """The answer to `one_name`, if the first one could not be read as one disease."""


async def synthesise(
    model: Model,
    prompt: Prompt,
    facts: Sequence[str],
    fallback: str | None = None,
    *,
    clarify: bool = False,
    menu: World | None = None,
) -> Synthesis:
    """Ask for the diagnosis; if the model fails, use `fallback` and keep the failure.

    With `clarify`, a diagnosis that cannot be read as one disease is asked for once more.
    """
    system = joined(fill(prompt.text("system_base")), answers_text(menu) if menu else "")
    user = fill(prompt.text("user_prompt_template"), facts="\n".join(f"- {one_line(fact)}" for fact in facts))
    asked = f"{system}\n\n{user}"
    messages = [Message("system", system), Message("user", user)]
    request = Request(Purpose.SYNTHESIS, tuple(messages), payload=SynthesisPayload(tuple(facts), menu))
    try:
        reply = await model.reply(request)
        named = name_in(reply.text)
        if not named:
            raise MalformedError("the synthesis named no diagnosis", text=reply.text)
    except ModelError as error:
        if fallback is None or error.kind in FATAL:  # the user must fix it; a second-best answer would hide it
            raise
        answer = error.text if isinstance(error, MalformedError) else ""
        used = error.usage or Usage(requests=0)
        return Synthesis(fallback, asked, answer, model.name, used, f"{error.kind}: {error}")
    again = prompt.text("one_name") if clarify else ""
    if not again or is_readable(named, menu):
        return Synthesis(named, asked, reply.text, model.name, reply.usage)
    messages += [Message("assistant", reply.text), Message("user", again)]
    name, second = await one_name(model, replace(request, messages=tuple(messages)), menu)
    answer, usage = joined(reply.text, second.text), reply.usage + second.usage
    return Synthesis(name or named, asked, answer, model.name, usage, second=second)
