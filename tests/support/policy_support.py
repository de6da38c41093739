"""Shared by the tests of the test policy: short notation for plans, and an engine with a scripted planner."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fakes import Scripted, assigned
from pydantic import BaseModel

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import Dialogue, Incoming, Observation
from agentclinic.clinic.prompts import Prompts
from agentclinic.doctors.planner.engine import Decision, DifferentialDiagnosisEngine
from agentclinic.doctors.planner.prompting import Baseline
from agentclinic.doctors.planner.schema import PlannerReply, TableReply
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


def table_plan(priors: dict[str, float] | None = None, /, *, observed: str = "", **findings: str) -> str:
    """A reply with `scoring: bayes`: findings with a word for each hypothesis and then for something else.

    A finding named `test_...` is found out by a test. `observed` is `1+ 2- 3?`: by number, present, absent, unknown.
    """
    states = {"+": "present", "-": "absent", "?": "unknown", "x": "unavailable"}
    rows = []
    for name, words in findings.items():
        of = [*"ABCDEFGH"[: len(words.split()) - 1], "other"]
        ratings = [{"of": who, "how": word.replace("_", " ")} for who, word in zip(of, words.split(), strict=True)]
        test, named = name.startswith("test_"), name.removeprefix("test_").replace("_", " ")
        request = f"REQUEST TEST: {named}" if test else f"Do you have {named}?"
        rows.append({"finding": named, "request": request, "group": "", "ratings": ratings, "observed": "unknown"})
    return json.dumps(
        {
            "hypotheses": [{"diagnosis": name, "prior": prior} for name, prior in (priors or {}).items()],
            "findings": rows,
            "ratings": [],
            "observed": [{"finding": part[:-1], "observed": states[part[-1]]} for part in observed.split()],
            "danger": "",
        }
    )


def replied(text: str, shape: type[BaseModel] = PlannerReply) -> Reply:
    """A reply as an endpoint with structured output gives it."""
    return Reply(text, parsed=parse(text, shape), usage=Usage(10, 5, 0, 0))


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
        rules: bool = False,
        **settings: Any,
    ) -> None:
        shape = TableReply if settings.get("scoring") == "bayes" else PlannerReply
        said = [replied(answer, shape) if isinstance(answer, str) else answer for answer in answers]
        self.model = Scripted(*said)
        assignment = assigned(DOOR, self.model, dialogue=dialogue)
        if bias:
            biased = replace(assignment.prompts["doctor"], biases={"given": bias})
            assignment = replace(assignment, prompts=Prompts({"doctor": biased}), bias="given")
        self.engine = DifferentialDiagnosisEngine(assignment, policy(**settings), baseline, rules=rules)

    async def turn(self, number: int = 2, exchanges: tuple[Exchange, ...] = (ASKED,)) -> Decision:
        incoming = Incoming("Patient", exchanges[-1].reply) if exchanges else Incoming("", "Begin.")
        return await self.engine.decide(Observation(incoming, exchanges, number))
