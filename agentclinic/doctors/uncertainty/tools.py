"""The two tools a doctor reasons with, and what they write to its session.

Neither the parameters of the tools nor their descriptions mention the session: the code that runs the doctor sets it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agentclinic.doctors.uncertainty.steps import (
    ALLOWED,
    FEWEST,
    MOST,
    Doubts,
    NextStep,
    Uncertainty,
    as_question,
    loosely,
    read_action,
    read_uncertainties,
)
from agentclinic.doctors.uncertainty.store import Session, SessionStore
from agentclinic.doctors.uncertainty.synthesis import Synthesis
from agentclinic.errors import AgentClinicError
from agentclinic.jsonl import loads
from agentclinic.models.base import Tool
from agentclinic.models.structured import at_most
from agentclinic.results.utterance import DIAGNOSIS_READY, LONGEST, shortened


class ToolError(AgentClinicError):
    """A call that cannot be carried out; the message tells people and models what is allowed."""


def check_step(doubts: Doubts, action: str) -> str | None:
    """What is wrong with a step, in words for the doctor; None if nothing is."""
    following = read_action(action)
    if following is None:
        return f"next_step_action has no known form. Allowed are: {'; '.join(ALLOWED)}"
    if len(doubts.items) < FEWEST and following.kind != "ready":
        return (
            f"current_uncertainties names {len(doubts.items) or 'no'} diagnosis; name {FEWEST} to {MOST} that are "
            "still possible (a single one only when you are ready)"
        )
    return None


def take_step(
    store: SessionStore, session_id: str, new_information: str, doubts: Doubts, action: str, **ours: Any
) -> tuple[NextStep, list[str]]:
    """Always record a step; what does not fit is adjusted, with a remark. Returns what comes next and the remarks.

    A step with a `turn` replaces one for the same turn, so that a failed call can be repeated.
    """
    remarks = []
    following = read_action(action)
    if following is None:
        following = as_question(action) or NextStep("ask", OPEN_QUESTION)
        remarks.append("an action in no known form was taken as words to the patient")
    if len(doubts.items) > MOST:
        doubts = Doubts(doubts.said[:MOST], doubts.items[:MOST])
        remarks.append(f"only the first {MOST} diagnoses of the differential were kept")
    kept = [item.model_dump(mode="json") for item in doubts.items]
    written = new_information, action
    # A doctor that copies its notes into every step would double them each time.
    new_information, action = map(shortened, written)
    if (new_information, action) != written:
        remarks.append(f"only the beginning and the end of what is longer than {LONGEST:,} characters were kept")
    with store.change(session_id) as session:
        if "turn" in ours and session.steps and getattr(session.steps[-1], "turn", None) == ours["turn"]:
            session.steps.pop()
        noted = {"remarks": remarks} if remarks else {}
        session.add(new_information, doubts.said, action, differential=kept, **noted, **ours)
    return following, remarks


OPEN_QUESTION = "Please tell me in your own words what brings you in and how it began."
"""Said if a doctor has nothing usable to say and it is too early to conclude."""


def conclude(store: SessionStore, session_id: str, reason_ready: str, synthesis: Synthesis) -> str:
    """Write the final diagnosis to the session and return it in the form the clinic expects."""
    with store.change(session_id) as session:
        for key, value in {
            "final_diagnosis": synthesis.diagnosis,
            "reason_ready": reason_ready,
            "synthesis_prompt": synthesis.prompt,
            "synthesis_answer": synthesis.answer,
            "synthesis_model": synthesis.model,
            "synthesis_error": synthesis.error,
        }.items():
            setattr(session, key, value)
    return f"{DIAGNOSIS_READY}: {synthesis.diagnosis}"


def top_of(session: Session) -> str | None:
    """The leading diagnosis of the last step that names any: the most likely, else the first."""
    for step in reversed(session.steps):
        doubts = read_uncertainties(getattr(step, "differential", None) or step.current_uncertainties)
        if doubts.items:
            return max(doubts.items, key=lambda item: item.probability or 0.0).diagnosis
    return None


LONGEST_INFORMATION, LONGEST_ACTION = 600, 250
"""Characters. Without a bound, a small model fills the form until it runs out of tokens; longer text is accepted."""


def _as_list(schema: dict[str, Any]) -> None:
    """Ask for a list of bounded length; text, which some models send instead, is accepted but not asked for."""
    array = next(choice for choice in schema.pop("anyOf") if choice["type"] == "array")
    schema |= {**array, "minItems": FEWEST, "maxItems": MOST}


class DiagnosisStep(BaseModel):
    """Write down what you learned, what you still doubt and what you do next; your action is carried out."""

    model_config = ConfigDict(title="diagnosis_step", validate_assignment=True)

    new_information: str = Field(
        description="What was learned since your last step, as short facts that can be understood on their own; "
        "no interpretation. At the first step: age, sex and complaint.",
        json_schema_extra=at_most(LONGEST_INFORMATION),
    )
    current_uncertainties: Annotated[list[Uncertainty] | str, BeforeValidator(loosely)] = Field(
        description="The 2 to 4 diagnoses that are possible now, likeliest first, each with its probability.",
        json_schema_extra=_as_list,
    )
    next_step_action: str = Field(
        description="Exactly one of: `ASK PATIENT: <question>`, `REQUEST TEST: <test>`, `REQUEST IMAGES`, or "
        "`DIAGNOSIS READY` when the facts suffice.",
        json_schema_extra=at_most(LONGEST_ACTION),
    )


class FinalDiagnosis(BaseModel):
    """Conclude: the facts you wrote down are turned into the diagnosis. Not before you have collected any."""

    model_config = ConfigDict(title="final_diagnosis", validate_assignment=True)

    reason_ready: str = Field(
        description="Why the facts you collected suffice, in a sentence.", json_schema_extra=at_most(LONGEST_ACTION)
    )


ARGUMENTS: Mapping[str, type[BaseModel]] = {"diagnosis_step": DiagnosisStep, "final_diagnosis": FinalDiagnosis}
"""The arguments of every tool, by its name."""


@cache
def _tool(name: str) -> Tool:
    arguments = _arguments_of(name)
    schema = arguments.model_json_schema()
    parameters = _inlined(
        {key: value for key, value in schema.items() if key not in ("$defs", "description")}, schema.get("$defs", {})
    )
    return Tool(name, inspect.getdoc(arguments) or "", parameters)


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references, which some servers do not follow, and without titles, which none needs."""
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
    return {
        key: _inlined(value, definitions)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }


def tools(names: Sequence[str] | None = None) -> tuple[Tool, ...]:
    """The named tools, or all of them, as they are offered to a model."""
    return tuple(map(_tool, ARGUMENTS if names is None else names))


def _arguments_of(name: str) -> type[BaseModel]:
    if name not in ARGUMENTS:
        raise ToolError(f"there is no tool {name[:60]!r}; the tools are {', '.join(ARGUMENTS)}")
    return ARGUMENTS[name]


def read_arguments(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The validated arguments of a call, given as an object or as JSON text."""
    model = _arguments_of(name)
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments, strict=False)
        except ValueError:
            raise ToolError(
                f"the arguments of {name} are not valid JSON; send one object with {_wanted(model)}"
            ) from None
    try:
        parsed = model.model_validate(arguments)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in error.errors()[:3]
        )
        raise ToolError(f"the arguments of {name} cannot be used ({wrong}); it needs {_wanted(model)}") from None
    return {field: getattr(parsed, field) for field in model.model_fields}


def salvage(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The usable arguments of a step if not all can be used."""
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = loads(arguments, strict=False)
    if not isinstance(arguments, Mapping):
        return {}
    blank, usable = ARGUMENTS["diagnosis_step"].model_construct(), {}
    for field in DiagnosisStep.model_fields.keys() & arguments.keys():
        with suppress(ValidationError):
            setattr(blank, field, arguments[field])
            usable[field] = getattr(blank, field)
    return usable


def _wanted(model: type[BaseModel]) -> str:
    return ", ".join(model.model_fields)
