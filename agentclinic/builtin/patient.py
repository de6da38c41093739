"""The builtin patient: the facts our matcher finds, in code's words."""

from __future__ import annotations

from agentclinic.clinic.answers import matched, worded
from agentclinic.clinic.payloads import PatientPayload
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS


def answer(payload: PatientPayload) -> Reply:
    """Answer each part of the question."""
    parts = matched(payload)
    return Reply(worded(parts), usage=NO_TOKENS, disclosures=tuple(part.disclosure for part in parts))
