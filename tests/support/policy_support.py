"""Shared by the tests of the test policy: short notation for plans, and an engine with a scripted planner."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fakes import Scripted, assigned

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import Dialogue, Incoming, Observation
from agentclinic.clinic.prompts import Prompts
from agentclinic.doctors.planner.engine import Decision, DifferentialDiagnosisEngine
from agentclinic.doctors.planner.prompting import Baseline
from agentclinic.doctors.planner.schema import PlannerReply
from agentclinic.doctors.planner.settings import PolicyFile, load_policy
from agentclinic.models.base import Reply
from agentclinic.models.structured import parse
from agentclinic.results.turn import Exchange, Usage

Json = dict[str, Any]

DOOR = Door("Assess a patient with headache.", "35-year-old woman")
ASKED = Exchange("question", "What brings you here?", "My head throbs.")


def findings(shorthand: str) -> list[Json]:
    """Findings from signed weights: `+5` speaks for it, `-3` against, `?2` is unknown."""
    states = {"+": "present", "-": "absent", "?": "unknown"}
    return [
        {"finding": f"thing {place}", "weight": int(part[1:]), "expected": "present", "observed": states[part[0]]}
        for place, part in enumerate(shorthand.split())
    ]


def plan(discriminators: list[Json] | None = None, /, **hypotheses: str) -> str:
    """A planner's reply, diagnosis by diagnosis; underscores for spaces, findings in shorthand."""
    listed = [{"diagnosis": name.replace("_", " "), "findings": findings(said)} for name, said in hypotheses.items()]
    return json.dumps({"hypotheses": listed, "discriminators": discriminators or []})


def replied(text: str) -> Reply:
    """A reply as an endpoint with structured output gives it."""
    return Reply(text, parsed=parse(text, PlannerReply), usage=Usage(10, 5, 0, 0))


def policy(**settings: Any) -> PolicyFile:
    """The shipped policy with changed differential settings or constraints."""
    file = load_policy().file
    constraints = {key: settings.pop(key) for key in list(settings) if key in type(file.constraints).model_fields}
    return file.model_copy(
        update={
            "constraints": file.constraints.model_copy(update=constraints),
            "differential_settings": file.differential_settings.model_copy(update=settings),
        }
    )


class Planning:
    """An engine whose planner answers from a list."""

    def __init__(
        self,
        *answers: str | Reply | BaseException,
        baseline: Baseline | None = None,
        bias: str = "",
        dialogue: Dialogue = "chat",
        **settings: Any,
    ) -> None:
        said = [replied(answer) if isinstance(answer, str) else answer for answer in answers]
        self.model = Scripted(*said)
        assignment = assigned(DOOR, self.model, dialogue=dialogue)
        if bias:
            biased = replace(assignment.prompts["doctor"], biases={"given": bias})
            assignment = replace(assignment, prompts=Prompts({"doctor": biased}), bias="given")
        self.engine = DifferentialDiagnosisEngine(assignment, policy(**settings), baseline)

    async def turn(self, number: int = 2, exchanges: tuple[Exchange, ...] = (ASKED,)) -> Decision:
        incoming = Incoming("Patient", exchanges[-1].reply) if exchanges else Incoming("", "Begin.")
        return await self.engine.decide(Observation(incoming, exchanges, number))
