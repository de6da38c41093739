"""The builtin clinic: roles without a language model, free, offline and deterministic.

Each role dispatches on the request's payload and never reads the prompts.
"""

from __future__ import annotations

from agentclinic.clinic.payloads import (
    ConfidencePayload,
    DiscriminatorPayload,
    DoctorPayload,
    JudgePayload,
    LaboratoryPayload,
    PatientPayload,
    PlannerPayload,
    SynthesisPayload,
    WriterPayload,
)
from agentclinic.models.base import BadRequestError, Reply, Request
from agentclinic.results.turn import Usage

NO_TOKENS = Usage(input_tokens=0, output_tokens=0, cached_tokens=0, reasoning_tokens=0)
"""A builtin role uses no tokens: known to be none, not unknown."""


class Builtin:
    """Answers every purpose it knows from the payload."""

    name = "builtin"

    async def reply(self, request: Request) -> Reply:
        """Answer one request."""
        # Imported here: a run that uses only some builtin roles should not load the others' knowledge.
        match request.payload:
            case DoctorPayload():
                if request.tools:
                    from agentclinic.builtin.planner import step

                    return step(request.payload, request.tools)
                from agentclinic.builtin.doctor import act

                return act(request.payload)
            case PlannerPayload():
                from agentclinic.builtin.planner import plan

                return plan(request.payload)
            case DiscriminatorPayload():
                from agentclinic.builtin.planner import discriminate

                return discriminate(request.payload)
            case SynthesisPayload():
                from agentclinic.builtin.planner import synthesise

                return synthesise(request.payload)
            case ConfidencePayload():
                from agentclinic.builtin.doctor import confidence

                return confidence(request.payload)
            case PatientPayload():
                from agentclinic.builtin.patient import answer

                return answer(request.payload)
            case LaboratoryPayload():
                from agentclinic.builtin.laboratory import report

                return report(request.payload)
            case JudgePayload():
                from agentclinic.builtin.judge import judge

                return judge(request.payload)
            case WriterPayload():
                from agentclinic.builtin.writer import write

                return write(request.payload)
        raise BadRequestError(
            f"the builtin model cannot answer a {request.purpose} request without its context; name a model"
        )
