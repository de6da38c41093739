"""The builtin clinic: roles without a language model, free, offline and deterministic.

`Builtin` is the only name used outside this package. It answers from a request's payload and never reads the prompts.
"""

from __future__ import annotations

from agentclinic.cases.story import WriterPayload
from agentclinic.clinic.payloads import DoctorPayload, JudgePayload, LaboratoryPayload, PatientPayload
from agentclinic.doctors.confidence import ConfidencePayload
from agentclinic.doctors.planner.schema import DiscriminatorPayload, InlinePayload, PlannerPayload
from agentclinic.doctors.uncertainty.synthesis import SynthesisPayload
from agentclinic.memory.experience import LearnerPayload
from agentclinic.models.base import BadRequestError, Reply, Request


class Builtin:
    """Plays every role, chosen by the type of the payload."""

    name = "builtin"

    async def reply(self, request: Request) -> Reply:
        """Answer one request."""
        # Imported here: a run that uses only some builtin roles should not load the data of the others.
        match request.payload:
            case DoctorPayload() if request.tools:
                from agentclinic.builtin.planner import step

                return step(request.payload, request.tools)
            case DoctorPayload():
                from agentclinic.builtin.doctor import act

                return act(request.payload)
            case PlannerPayload():
                from agentclinic.builtin.planner import plan

                return plan(request.payload)
            case InlinePayload():
                from agentclinic.builtin.planner import plan_and_speak

                return plan_and_speak(request.payload)
            case DiscriminatorPayload():
                from agentclinic.builtin.planner import discriminate

                return discriminate(request.payload)
            case SynthesisPayload():
                from agentclinic.builtin.planner import synthesize

                return synthesize(request.payload)
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
            case LearnerPayload():
                from agentclinic.builtin.learner import learn

                return learn(request.payload)
            case WriterPayload():
                from agentclinic.builtin.writer import write

                return write(request.payload)
        raise BadRequestError(
            f"the builtin model cannot answer a {request.purpose} request that has no payload; choose another model"
        )
