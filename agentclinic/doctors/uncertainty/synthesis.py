"""From recorded facts to one diagnosis, by a model that sees the facts and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.models.base import FATAL, MalformedError, Message, Model, ModelError, Purpose, Request
from agentclinic.results.turn import Usage
from agentclinic.results.utterance import DIAGNOSIS_READY


@dataclass(frozen=True)
class SynthesisPayload:
    """The collected facts, and nothing else: no dialogue, no reasons."""

    facts: tuple[str, ...]


@dataclass(frozen=True)
class Synthesis:
    """A diagnosis and how it was made."""

    diagnosis: str
    prompt: str
    """The whole prompt."""
    answer: str
    """The model's answer; empty if it failed."""
    model: str
    usage: Usage
    error: str | None = None
    """Why the top of the doctor's own differential was used instead."""


async def synthesise(model: Model, prompt: Prompt, facts: Sequence[str], fallback: str | None = None) -> Synthesis:
    """Ask for the diagnosis; if the model fails, use `fallback` and keep the failure."""
    system = fill(prompt.text("system_base"))
    user = fill(prompt.text("user_prompt_template"), facts="\n".join(f"- {_one_line(fact)}" for fact in facts))
    asked = f"{system}\n\n{user}"
    try:
        reply = await model.reply(
            Request(
                Purpose.SYNTHESIS,
                (Message("system", system), Message("user", user)),
                payload=SynthesisPayload(tuple(facts)),
            )
        )
        named = name_in(reply.text)
        if not named:
            raise MalformedError("the synthesis named no diagnosis", text=reply.text)
    except ModelError as error:
        if fallback is None or error.kind in FATAL:  # the user must fix it; a second-best answer would hide it
            raise
        answer = error.text if isinstance(error, MalformedError) else ""
        used = error.usage or Usage(requests=0)
        return Synthesis(fallback, asked, answer, model.name, used, f"{error.kind}: {error}")
    return Synthesis(named, asked, reply.text, model.name, reply.usage)


# A label is a whole word before a colon or "is": "ischemic stroke" does not start with one.
_LABEL = re.compile(
    r"^(?:(?:the|my)\s+)?(?:(?:single\s+)?(?:most likely|likeliest|final|principal|primary|leading)(?:\s+diagnosis)?"
    r"|diagnosis)\W*?(?:\bis\b|[:–—-])\s*",
    re.IGNORECASE,
)


def name_in(answer: str) -> str:
    """The diagnosis in an answer: one line, without labels and decoration; empty if there is none."""
    text = answer.rpartition(DIAGNOSIS_READY)[2] if DIAGNOSIS_READY in answer else answer
    for line in text.splitlines():
        name = line.strip().strip("*_`#>\"' ").lstrip(":-– ")
        if not name or name.endswith(":"):  # a lead-in: the name follows
            continue
        name = _LABEL.sub("", name, count=1).strip("*_`\"' ")
        if name:
            return _one_line(name).removesuffix(".").strip("*_`\"' ")
    return ""


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
