"""The two tools a doctor reasons with, and what they write to its session.

Neither the parameters of the tools nor their descriptions mention the session: the code that runs the doctor sets it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
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
    fact_in,
    loosely,
    read_action,
)
from agentclinic.doctors.uncertainty.store import Session, SessionStore
from agentclinic.doctors.uncertainty.synthesis import Synthesis
from agentclinic.errors import AgentClinicError
from agentclinic.jsonl import loads
from agentclinic.models.base import Tool
from agentclinic.models.structured import at_most
from agentclinic.results.utterance import DIAGNOSIS_READY, LONGEST, REQUEST_IMAGES, shortened


class ToolError(AgentClinicError):
    """A call that cannot be carried out; the message tells people and models what is allowed."""


def check_step(doubts: Doubts, action: str, *, images: bool = True) -> str | None:
    """What is wrong with a step, in words for the doctor; None if nothing is."""
    following = read_action(action)
    if following is None:
        allowed = (form for form in ALLOWED if images or form != REQUEST_IMAGES)
        return f"next_step_action has no known form. Allowed are: {'; '.join(allowed)}"
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

    "No new facts" is not recorded as a fact.
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
    written = fact_in(new_information), action
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
    """The leading diagnosis of the newest differential: the most likely, else the first."""
    leading = max(session.doubts.items, key=lambda item: item.probability or 0.0, default=None)
    return leading.diagnosis if leading else None


LONGEST_INFORMATION, LONGEST_ACTION = 900, 250
"""Characters. Without a bound, a small model fills the form until it runs out of tokens; longer text is accepted."""


def _as_list(fewest: int) -> Callable[[dict[str, Any]], None]:
    """Ask for a list of bounded length; text, which some models send instead, is accepted but not asked for."""

    def change(schema: dict[str, Any]) -> None:
        array = next(choice for choice in schema.pop("anyOf") if choice["type"] == "array")
        schema |= {**array, "minItems": fewest, "maxItems": MOST}

    return change


class DiagnosisStep(BaseModel):
    """Write down what you learned, what you still doubt and what you do next; your action is carried out."""

    model_config = ConfigDict(title="diagnosis_step", validate_assignment=True)

    new_information: str = Field(
        description="What was learned since your last step: short facts that can be understood on their own; empty "
        "if there are none. At the first step: age, sex and complaint.",
        json_schema_extra=at_most(LONGEST_INFORMATION),
    )
    current_uncertainties: Annotated[list[Uncertainty] | str, BeforeValidator(loosely)] = Field(
        description="The 2 to 4 diagnoses that are possible now, likeliest first.",
        json_schema_extra=_as_list(FEWEST),
    )
    next_step_action: str = Field(
        description=f"Exactly one of: {', '.join(f'`{form}`' for form in ALLOWED[:-1])}, or `{ALLOWED[-1]}` when the "
        "facts suffice.",
        json_schema_extra=at_most(LONGEST_ACTION),
    )


class FinalDiagnosis(BaseModel):
    """Conclude: the facts you wrote down are turned into the diagnosis. Not before you have collected any."""

    # The original's call has only reason_ready, which is enough to conclude; the schema asks for all three.
    model_config = ConfigDict(title="final_diagnosis", validate_assignment=True)

    new_information: str = Field(
        default="",
        description="What was learned since your last step; empty if nothing was.",
        json_schema_extra=at_most(LONGEST_INFORMATION),
    )
    current_uncertainties: Annotated[list[Uncertainty] | str, BeforeValidator(loosely)] = Field(
        default_factory=list,
        description="Your final probabilities: 1 to 4 diagnoses.",
        json_schema_extra=_as_list(1),
    )
    reason_ready: str = Field(
        description="Why the facts you collected suffice, in a sentence.", json_schema_extra=at_most(LONGEST_ACTION)
    )


ARGUMENTS: Mapping[str, type[BaseModel]] = {"diagnosis_step": DiagnosisStep, "final_diagnosis": FinalDiagnosis}
"""The arguments of every tool, by its name."""


@cache
def _tool(name: str, *, images: bool) -> Tool:
    arguments = _arguments_of(name)
    schema = arguments.model_json_schema()
    parameters = _inlined(
        {key: value for key, value in schema.items() if key not in ("$defs", "description")}, schema.get("$defs", {})
    )
    parameters["required"] = list(parameters["properties"])
    if name == "final_diagnosis":  # diagnosis_step, which is offered with it, has already said what these are
        for field in parameters["properties"]["current_uncertainties"]["items"]["properties"].values():
            del field["description"]
    if not images and (action := parameters["properties"].get("next_step_action")):
        action["description"] = action["description"].replace(f" `{REQUEST_IMAGES}`,", "")
    return Tool(name, inspect.getdoc(arguments) or "", parameters)


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references, which some servers do not follow, and without titles and defaults."""
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        named = definitions[node["$ref"].rpartition("/")[2]]
        return _inlined({key: value for key, value in named.items() if key != "description"}, definitions)
    return {
        key: _inlined(value, definitions)
        for key, value in node.items()
        if key != "default" and not (key == "title" and isinstance(value, str))
    }


def tools(names: Sequence[str] | None = None, *, images: bool = True) -> tuple[Tool, ...]:
    """The named tools, or all of them, as they are offered to a model; `images`: whether it may ask for images."""
    return tuple(_tool(name, images=images) for name in (ARGUMENTS if names is None else names))


def _arguments_of(name: str) -> type[BaseModel]:
    if name not in ARGUMENTS:
        raise ToolError(f"there is no tool {name[:60]!r}; the tools are {', '.join(ARGUMENTS)}")
    return ARGUMENTS[name]


def read_arguments(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The validated arguments of a call, given as an object or as JSON text; those left out are missing."""
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
    return {field: getattr(parsed, field) for field in model.model_fields if field in parsed.model_fields_set}


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
    return ", ".join(name for name, field in model.model_fields.items() if field.is_required())
