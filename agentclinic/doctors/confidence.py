"""Asking a doctor, after its diagnosis and outside the dialogue, how sure it is."""

from __future__ import annotations

from agentclinic.cases.model import Door
from agentclinic.clinic.payloads import ConfidencePayload, Exchange, StatedDifferential
from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.models.base import Message, Purpose, Reply, Request
from agentclinic.results.differential import Differential, Hypothesis, Source


async def elicit(
    doctor: PlainDoctor, prompt: Prompt, door: Door, exchanges: tuple[Exchange, ...], diagnosis: str
) -> tuple[Differential | None, Reply]:
    """One request to the doctor's model; None where the answer is not of the demanded form."""
    asked = fill(prompt.text("confidence"), diagnosis=diagnosis, history=doctor.history.rstrip())
    reply = await doctor.model.reply(
        Request(
            Purpose.CONFIDENCE,
            (Message("system", doctor.system_prompt), Message("user", asked)),
            schema=StatedDifferential,
            payload=ConfidencePayload(door, exchanges, diagnosis),
        )
    )
    stated = reply.parsed
    return (as_differential(stated) if isinstance(stated, StatedDifferential) else None), reply


def as_differential(stated: StatedDifferential) -> Differential:
    """Stated probabilities as a differential, surest first; a sum over 1 is scaled down to 1."""
    total = sum(hypothesis.probability for hypothesis in stated.hypotheses)
    scale = max(1.0, total)
    ordered = sorted(stated.hypotheses, key=lambda hypothesis: -hypothesis.probability)
    return Differential(
        source=Source.ELICITED,
        hypotheses=tuple(
            Hypothesis(diagnosis=h.diagnosis, probability=min(1.0, h.probability / scale)) for h in ordered
        ),
        other=max(0.0, 1 - total / scale),
    )
