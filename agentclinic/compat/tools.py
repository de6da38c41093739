"""The doctor's two tools and its sessions as plain functions, under the original's names.

Each tool writes to the current session (`set_current_session`) and returns what to say next. The diagnosis is
synthesized by `synthesis_model` in `agent_config.yaml`, else by `model`. As in the original, a tool that fails returns
a text that begins with `Error: `; in a run, a failing model still fails the encounter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

from agentclinic import sync_bridge
from agentclinic.clinic.prompts import load_prompt, user_prompts
from agentclinic.doctors.uncertainty.agent_config import load_agent
from agentclinic.doctors.uncertainty.documented import QUERY, in_our_words, in_their_words
from agentclinic.doctors.uncertainty.steps import fact_in, read_uncertainties
from agentclinic.doctors.uncertainty.store import current_store, needed_session
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.doctors.uncertainty.tools import (
    ARGUMENTS,
    ToolError,
    check_step,
    conclude,
    read_arguments,
    take_step,
    tools,
    top_of,
)
from agentclinic.errors import AgentClinicError
from agentclinic.models.base import ModelError, ToolCall
from agentclinic.models.gate import GateClosedError
from agentclinic.results.utterance import DIAGNOSIS_READY
from agentclinic.runs.build import LazyModel, current
from agentclinic.trust import UntrustedError

NOT_YET = (
    "It is too early for final_diagnosis: nothing has been learned that a diagnosis could be made from. "
    "Call diagnosis_step and find something out first."
)


P = ParamSpec("P")


def _failing_in_words(tool: Callable[P, str]) -> Callable[P, str]:
    @wraps(tool)
    def call(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return tool(*args, **kwargs)
        except (GateClosedError, UntrustedError):
            raise
        except AgentClinicError as error:
            if isinstance(error, ModelError) and current.get():
                raise
            return f"Error: {error}"

    return call


@_failing_in_words
def diagnosis_step(new_information: str, current_uncertainties: str | Sequence[Any], next_step_action: str) -> str:
    """Record a step and return what to say next; a step that cannot be used is sent back once."""
    return _step(new_information, current_uncertainties, next_step_action)


def _step(
    new_information: str, current_uncertainties: str | Sequence[Any], next_step_action: str, **further: Any
) -> str:
    """`diagnosis_step`; `further` is kept with the step."""
    store, session_id = current_store(), needed_session()
    doubts = read_uncertainties(current_uncertainties)
    problem = check_step(doubts, next_step_action)
    if problem:
        with store.change(session_id) as session:
            sent_back = getattr(session, "refused_after", None) == len(session.steps)
            session.refused_after = len(session.steps)  # type: ignore[attr-defined]
        if not sent_back:
            return problem
    following, _ = take_step(store, session_id, new_information, doubts, next_step_action, **further)
    return following.utterance


@_failing_in_words
def final_diagnosis(
    reason_ready: str, new_information: str = "", current_uncertainties: str | Sequence[Any] = ()
) -> str:
    """Turn the recorded facts into a diagnosis, once there are any.

    The original has only the first argument. The newest facts and the final probabilities become a last step.
    """
    store, session_id = current_store(), needed_session()
    session = store.load(session_id)
    if not (session.facts or fact_in(new_information)):
        return NOT_YET
    doubts = read_uncertainties(current_uncertainties)
    if fact_in(new_information) or doubts.items:
        take_step(store, session_id, new_information, doubts if doubts.items else session.doubts, DIAGNOSIS_READY)
        session = store.load(session_id)
    agent = load_agent().settings
    model = LazyModel(agent.synthesis_model or agent.model)
    prompt = load_prompt("synthesis", user_prompts())
    synthesis = sync_bridge.call(synthesise, model, prompt, session.facts, top_of(session))
    return conclude(store, session_id, reason_ready, synthesis)


@_failing_in_words
def execute_tool(name: str, args: Mapping[str, Any] | str) -> str:
    """Call a tool by name with its arguments, in the current session; an error is returned as a text.

    The tools of the `uncertainty_documentation_agent` that record a step or conclude can be called, too.
    """
    if name == QUERY:
        raise ToolError(f"{QUERY} needs the experiences of a run; use agentclinic run --memory FILE")
    written = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
    call, further = in_our_words(ToolCall("", name, written))
    try:
        arguments = read_arguments(call.name, call.arguments)  # first: it refuses an unknown tool
    except ToolError as error:
        raise (ToolError(in_their_words(str(error))) if call.name != name else error) from None
    return _step(**arguments, **further) if call.name == "diagnosis_step" else final_diagnosis(**arguments)


def get_tool_names() -> list[str]:
    return list(ARGUMENTS)


def get_tool_schema(name: str) -> dict[str, Any] | None:
    """A tool as it is offered to a model; None if there is none of that name."""
    return next((schema for schema in get_tool_schemas() if schema["function"]["name"] == name), None)


def get_tool_schemas() -> list[dict[str, Any]]:
    """All tools as they are offered to a model."""
    shown = ((tool.name, tool.description, tool.parameters) for tool in tools(get_tool_names()))
    keys = ("name", "description", "parameters")
    return [{"type": "function", "function": dict(zip(keys, each, strict=True))} for each in shown]
