"""The tools of the original's `uncertainty_documentation_agent`: ours under other names, and a look at experiences.

`document_step` is `diagnosis_step` with two more texts, `final_diagnosis_documented` is `final_diagnosis`, and
`query_medical_guidelines` returns the experiences that fit (`run.memory`). What a model is told and what it calls is
translated here, so that the doctor itself knows only one set of names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentclinic.jsonl import loads
from agentclinic.models.base import Tool, ToolCall
from agentclinic.models.structured import at_most

QUERY = "query_medical_guidelines"
THEIRS = {
    "diagnosis_step": "document_step",
    "final_diagnosis": "final_diagnosis_documented",
    "current_uncertainties": "uncertainties",
    "next_step_action": "action",
    "reason_ready": "reason",
}
"""Their names for our tools and arguments."""
OURS = {theirs: ours for ours, theirs in THEIRS.items()}
TOOLS = ("document_step", "final_diagnosis_documented", QUERY)
_WORD = re.compile(rf"\b(?:{'|'.join(THEIRS)})\b")
_FURTHER = {
    "reference_relevance": "Whether what query_medical_guidelines returned helps here, and why.",
    "reason": "How the action tells apart the diagnoses that are possible now.",
}
"""Arguments that only `document_step` has."""
_LONGEST = 250


def in_their_words(text: str) -> str:
    """A text for the model with their names of tools and arguments."""
    return _WORD.sub(lambda found: THEIRS[found[0]], text)


def documented(tool: Tool) -> Tool:
    """One of our tools as theirs."""
    schema = dict(tool.parameters)
    more = _FURTHER if tool.name == "diagnosis_step" else {}
    schema["properties"] = {THEIRS.get(name, name): value for name, value in schema["properties"].items()}
    schema["properties"] |= {
        name: {"type": "string", "description": text, **at_most(_LONGEST)} for name, text in more.items()
    }
    schema["required"] = list(schema["properties"])
    return Tool(THEIRS[tool.name], in_their_words(tool.description), schema)


GUIDELINES = Tool(
    QUERY,
    "Look for experiences from earlier cases that fit what you know. It takes none of your turns; judge for yourself "
    "whether they apply to this patient.",
    {
        "type": "object",
        "properties": {
            "new_information": {"type": "string", "description": "What you learned last."},
            "uncertainties": {"type": "string", "description": "The diagnoses that are possible now, and why."},
        },
        "required": ["new_information", "uncertainties"],
    },
)


def in_our_words(call: ToolCall) -> tuple[ToolCall, Mapping[str, Any]]:
    """A call of one of their tools as one of ours, and what it says besides, by its key in the session."""
    if call.name not in OURS:
        return call, {}
    try:
        given = loads(call.arguments, strict=False)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        return replace(call, name=OURS[call.name]), {}
    said = {"reference_relevance": given.pop("reference_relevance", None)}
    if call.name == "document_step":
        said["action_reason"] = given.pop("reason", None)
    ours = {OURS.get(name, name): value for name, value in given.items()}
    arguments = json.dumps(ours, ensure_ascii=False)
    return replace(call, name=OURS[call.name], arguments=arguments), {k: str(v) for k, v in said.items() if v}
