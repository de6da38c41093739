"""Asking a doctor how sure it is, after its diagnosis and outside the dialogue."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import turn_of
from agentclinic.clinic.prompts import fill
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.models.base import Message, ModelError, Purpose, Request
from agentclinic.models.structured import at_most
from agentclinic.results.differential import Hypothesis, Source, as_differential
from agentclinic.results.turn import Exchange, Turn


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


async def elicit(doctor: PlainDoctor, exchanges: tuple[Exchange, ...], diagnosis: str, *, turn: int) -> Turn:
    """The differential that the doctor's model states when asked, as a turn that is not part of the dialogue.

    It is None if the answer does not have the required form. A failure is noted and does not count against the doctor.
    """
    given = doctor.assignment
    asked = fill(given.prompts["doctor"].text("confidence"), diagnosis=diagnosis, history=doctor.history.rstrip())
    try:
        reply = await doctor.model.reply(
            Request(
                Purpose.CONFIDENCE,
                (Message("system", doctor.system_prompt), Message("user", asked)),
                schema=StatedDifferential,
                payload=ConfidencePayload(given.door, exchanges, diagnosis),
            )
        )
    except ModelError as error:
        return Turn(turn=turn, role="confidence", text="", notes=(f"confidence not stated: {error.kind}",))
    differential = None
    if isinstance(reply.parsed, StatedDifferential):
        stated = (Hypothesis(diagnosis=h.diagnosis, probability=h.probability) for h in reply.parsed.hypotheses)
        differential = as_differential(Source.ELICITED, stated)
    return turn_of(replace(reply, differential=differential), turn=turn, role="confidence")
