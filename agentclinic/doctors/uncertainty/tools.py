"""The two tools a doctor reasons through, and a registry of them.

Each records to the current session and returns what is said next. The session is set by whoever runs the doctor:
neither the tools' parameters nor their descriptions speak of it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

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
from agentclinic.doctors.uncertainty.store import Session, SessionStore, Step, current_store, get_current_session
from agentclinic.doctors.uncertainty.synthesis import Synthesis
from agentclinic.errors import AgentClinicError
from agentclinic.models.base import Tool
from agentclinic.results.actions import DIAGNOSIS_READY


class ToolError(AgentClinicError):
    """A call that cannot be carried out; the message says what would be allowed, to people and models alike."""


@dataclass(frozen=True)
class Taken:
    """A step that was recorded."""

    step: Step
    next: NextStep
    doubts: Doubts
    remarks: tuple[str, ...] = ()


def check_step(doubts: Doubts, action: str) -> str | None:
    """What is wrong with a step, as the doctor is told; None when nothing is."""
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
) -> Taken:
    """Record a step whatever it is like; what does not fit is made to fit and remarked on.

    A step that names its `turn` takes the place of one for the same turn: a call that failed can be made again.
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
    with store.change(session_id) as session:
        if "turn" in ours and session.steps and getattr(session.steps[-1], "turn", None) == ours["turn"]:
            session.steps.pop()
        step = session.add(
            new_information, doubts.said, action, differential=kept, **({"remarks": remarks} if remarks else {}), **ours
        )
    return Taken(step, following, doubts, tuple(remarks))


OPEN_QUESTION = "Please tell me in your own words what brings you in and how it began."
"""Said where a doctor has nothing usable to say and it is too early to conclude."""


def conclude(store: SessionStore, session_id: str, reason_ready: str, synthesis: Synthesis) -> str:
    """Write the final diagnosis into the session and return it as the clinic expects it."""
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
    """The leading diagnosis of the last step that named any: the likeliest, else the first."""
    for step in reversed(session.steps):
        doubts = read_uncertainties(getattr(step, "differential", None) or step.current_uncertainties)
        if doubts.items:
            return max(doubts.items, key=lambda item: item.probability or 0.0).diagnosis
    return None


def diagnosis_step(
    new_information: Annotated[
        str,
        Field(
            description="What was learned since your last step, as short facts that can be understood on their own; "
            "no interpretation. At the first step: age, sex and complaint."
        ),
    ],
    current_uncertainties: Annotated[
        list[Uncertainty] | str,
        BeforeValidator(loosely),
        Field(description="The 2 to 4 diagnoses that are possible now, likeliest first, each with its probability."),
    ],
    next_step_action: Annotated[
        str,
        Field(
            description="Exactly one of: `ASK PATIENT: <question>`, `REQUEST TEST: <test>`, `REQUEST IMAGES`, or "
            "`DIAGNOSIS READY` when the facts suffice."
        ),
    ],
) -> str:
    """Write down what you learned, what you still doubt and what you do next; your action is carried out."""
    store, session_id = current_store(), get_current_session()
    doubts = read_uncertainties(current_uncertainties)
    problem = check_step(doubts, next_step_action)
    if problem:
        with store.change(session_id) as session:
            told = getattr(session, "refused_after", None) == len(session.steps)
            session.refused_after = len(session.steps)  # type: ignore[attr-defined]
        if not told:
            return problem
    return take_step(store, session_id, new_information, doubts, next_step_action).next.utterance


def final_diagnosis(
    reason_ready: Annotated[str, Field(description="Why the facts you collected suffice, in a sentence.")],
) -> str:
    """Conclude: the facts you wrote down are turned into the diagnosis. Not before you have collected any."""
    from agentclinic.compat.by_hand import synthesise_by_hand

    store, session_id = current_store(), get_current_session()
    session = store.load(session_id)
    if not session.facts:
        return NOT_YET
    synthesis = synthesise_by_hand(session.facts, top_of(session))
    return conclude(store, session_id, reason_ready, synthesis)


NOT_YET = (
    "It is too early for final_diagnosis: nothing has been learned that a diagnosis could be made from. "
    "Call diagnosis_step and find something out first."
)


@dataclass(frozen=True)
class Entry:
    """A registered tool."""

    function: Callable[..., str]
    arguments: type[BaseModel]
    tool: Tool


@cache
def registry() -> Mapping[str, Entry]:
    """Every tool by name, its schema made from the function."""
    return {function.__name__: _entry(function) for function in (diagnosis_step, final_diagnosis)}


def _entry(function: Callable[..., str]) -> Entry:
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {name: (hints[name], ...) for name in inspect.signature(function).parameters}
    arguments = create_model(function.__name__, __config__=ConfigDict(validate_assignment=True), **fields)
    schema = arguments.model_json_schema()
    parameters = _inlined({key: value for key, value in schema.items() if key != "$defs"}, schema.get("$defs", {}))
    return Entry(function, arguments, Tool(function.__name__, inspect.getdoc(function) or "", parameters))


def _inlined(node: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references and titles, which not every server follows or needs."""
    if isinstance(node, list):
        return [_inlined(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
    return {
        key: _inlined(value, definitions) for key, value in node.items() if not (key == "title" and _is_title(value))
    }


def _is_title(value: object) -> bool:
    return isinstance(value, str)


def tools(names: Sequence[str] | None = None) -> tuple[Tool, ...]:
    """The tools of these names, all when none are given, as a model is offered them."""
    return tuple(_known(name).tool for name in (names if names is not None else registry()))


def _known(name: str) -> Entry:
    if name not in registry():
        raise ToolError(f"there is no tool {name[:60]!r}; there are {', '.join(registry())}")
    return registry()[name]


def read_arguments(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Validated arguments of a call, given as an object or as its JSON text."""
    entry = _known(name)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except ValueError:
            raise ToolError(
                f"the arguments of {name} are not valid JSON; send one object with {_wanted(entry)}"
            ) from None
    try:
        parsed = entry.arguments.model_validate(arguments)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'the whole'}: {e['msg'].lower()}" for e in error.errors()[:3]
        )
        raise ToolError(f"the arguments of {name} cannot be used ({wrong}); it needs {_wanted(entry)}") from None
    return {field: getattr(parsed, field) for field in entry.arguments.model_fields}


def salvage(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Those arguments of a call that can be used, where not all of them can; empty for a tool nobody knows."""
    entry = registry().get(name)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return {}
    if entry is None or not isinstance(arguments, Mapping):
        return {}
    blank, usable = entry.arguments.model_construct(), {}
    for field in entry.arguments.model_fields.keys() & arguments.keys():
        with suppress(ValidationError):
            setattr(blank, field, arguments[field])
            usable[field] = getattr(blank, field)
    return usable


def _wanted(entry: Entry) -> str:
    return ", ".join(entry.arguments.model_fields)


def execute_tool(name: str, args: Mapping[str, Any] | str) -> str:
    """Call a tool by name with its arguments, in the current session."""
    return _known(name).function(**read_arguments(name, args))
