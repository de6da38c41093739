"""The builtin clinic: roles without a language model, free, offline and deterministic.

`Builtin` is the only name used outside this package. It answers from a request's payload and never reads the prompts.
"""

from __future__ import annotations

from collections.abc import Callable

from agentclinic.builtin.doctor import act, confidence
from agentclinic.builtin.planner import discriminate, plan, plan_and_speak, step, synthesize
from agentclinic.builtin.roles import answer, judge, learn, report, write
from agentclinic.cases.model import WriterPayload
from agentclinic.clinic.payloads import DoctorPayload, JudgePayload, LaboratoryPayload, PatientPayload
from agentclinic.config import suggestion
from agentclinic.doctors.plain import ConfidencePayload
from agentclinic.doctors.planner.payloads import DiscriminatorPayload, InlinePayload, PlannerPayload
from agentclinic.doctors.uncertainty.synthesis import SynthesisPayload
from agentclinic.errors import ConfigError
from agentclinic.memory.experience import LearnerPayload
from agentclinic.models.base import BadRequestError, Reply, Request

JUDGES: dict[str, Callable[[JudgePayload], Reply]] = {"builtin": judge}
"""The judges that need no language model, by the name given to `--moderator-llm`. To add one, add a `builtin:NAME`."""


class Builtin:
    """Plays every role, chosen by the type of the payload; its name decides which judge it is."""

    reads_prompts = False

    def __init__(self, name: str = "builtin") -> None:
        if name not in JUDGES:
            raise ConfigError(f"there is no builtin model {name!r}{suggestion(name, JUDGES)}")
        self.name = name

    async def reply(self, request: Request) -> Reply:
        match request.payload:
            case DoctorPayload() as payload:
                return step(payload) if request.tools else act(payload)
            case PlannerPayload() as payload:
                return plan(payload)
            case InlinePayload() as payload:
                return plan_and_speak(payload)
            case DiscriminatorPayload() as payload:
                return discriminate(payload)
            case SynthesisPayload() as payload:
                return synthesize(payload)
            case ConfidencePayload() as payload:
                return confidence(payload)
            case PatientPayload() as payload:
                return answer(payload)
            case LaboratoryPayload() as payload:
                return report(payload)
            case JudgePayload() as payload:
                return JUDGES[self.name](payload)
            case LearnerPayload() as payload:
                return learn(payload)
            case WriterPayload() as payload:
                return write(payload)
        raise BadRequestError(
            f"the builtin model cannot answer a {request.purpose} request that has no payload; choose another model"
        )
