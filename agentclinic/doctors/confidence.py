"""Asking a doctor how sure it is, after its diagnosis and outside the dialogue."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, Field

from agentclinic.cases.model import Door
from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.models.base import Message, Purpose, Reply, Request
from agentclinic.models.structured import at_most
from agentclinic.results.differential import Differential, Hypothesis, Source, as_differential
from agentclinic.results.turn import Exchange


@dataclass(frozen=True)
class ConfidencePayload:
    """What the doctor knows when asked, after the diagnosis, how sure it is."""

    door: Door
    exchanges: tuple[Exchange, ...]
    diagnosis: str


class StatedHypothesis(BaseModel):
    """A diagnosis and how likely the doctor thinks it is."""

    diagnosis: str = Field(json_schema_extra=at_most(80))
    probability: float = Field(ge=0, le=1)


class StatedDifferential(BaseModel):
    """What a doctor answers when asked how sure it is."""

    hypotheses: list[StatedHypothesis] = Field(min_length=1, max_length=10)


async def elicit(
    doctor: PlainDoctor, prompt: Prompt, door: Door, exchanges: tuple[Exchange, ...], diagnosis: str
) -> tuple[Differential | None, Reply]:
    """One request to the doctor's model; no differential if the answer does not have the required form."""
    asked = fill(prompt.text("confidence"), diagnosis=diagnosis, history=doctor.history.rstrip())
    reply = await doctor.model.reply(
        Request(
            Purpose.CONFIDENCE,
            (Message("system", doctor.system_prompt), Message("user", asked)),
            schema=StatedDifferential,
            payload=ConfidencePayload(door, exchanges, diagnosis),
        )
    )
    if not isinstance(reply.parsed, StatedDifferential):
        return None, reply
    stated = (Hypothesis(diagnosis=h.diagnosis, probability=h.probability) for h in reply.parsed.hypotheses)
    return as_differential(Source.ELICITED, stated), reply
