"""Structured output: asking for JSON of a given shape and reading it out of whatever came back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from agentclinic.models.base import Message

# Keywords that the strict mode of the Responses API refuses or that carry no meaning for it; pydantic
# checks what they demand afterwards.
_DROPPED = frozenset(
    {"default", "title", "examples", "discriminator", "minLength", "maxLength", "uniqueItems", "$schema"}
)
_CANDIDATES = 50
"""Opening braces tried as the start of the object; a reply with more is not JSON with chatter around it."""


class InvalidReplyError(ValueError):
    """A reply is not of the demanded shape; the message says what is wrong, to people and models alike."""


class Format(NamedTuple):
    """A JSON schema as the APIs want it."""

    name: str
    schema: dict[str, Any]
    strict: bool
    """False where the schema has an object with free keys, which strict mode does not know."""


@lru_cache(maxsize=256)
def format_of(shape: type[BaseModel]) -> Format:
    """Return the schema of a model, closed and with all properties required, as strict mode demands."""
    schema = _close(shape.model_json_schema())
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in shape.__name__)
    return Format(name[:64], schema, not _has_free_keys(schema))


@lru_cache(maxsize=256)
def instruction(shape: type[BaseModel]) -> str:
    """Say in the prompt what shape is wanted: not every server heeds the API's own parameter."""
    schema = json.dumps(shape.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    return f"Answer with exactly one JSON object that matches this JSON schema, and nothing else:\n{schema}"


def with_instruction(messages: Sequence[Message], shape: type[BaseModel]) -> tuple[Message, ...]:
    """Put the instruction at the end of the leading system part.

    It joins the last system message instead of following it: many chat templates refuse a second one. Being
    static, it leaves the prefix of later turns as it was.
    """
    system = 0
    while system < len(messages) and messages[system].role == "system":
        system += 1
    if system == 0:
        return (Message("system", instruction(shape)), *messages)
    last = messages[system - 1]
    joined = replace(last, content=f"{last.content}\n\n{instruction(shape)}")
    return (*messages[: system - 1], joined, *messages[system:])


def complaint(problem: InvalidReplyError) -> Message:
    """Write the user message of the one repair turn."""
    return Message(
        "user",
        f"Your last answer cannot be used: {problem}. "
        "Answer again with only the JSON object that matches the schema, without any other text.",
    )


def parse(text: str, shape: type[BaseModel]) -> BaseModel:
    """Return the first object in the text that has the shape, whatever fences and chatter are around it."""
    problem = "it contains no JSON object"
    # strict=False: models write line breaks into strings as they are.
    decoder = json.JSONDecoder(strict=False)
    position = text.find("{")
    for _ in range(_CANDIDATES):
        if position < 0:
            break
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            problem = "its JSON is broken or incomplete"
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                # The text ends within the object; an object inside it is not the answer.
                break
            position = text.find("{", max(error.pos, position + 1))
            continue
        except RecursionError:
            raise InvalidReplyError("its JSON is nested too deeply") from None
        except ValueError:
            raise InvalidReplyError("it has a number with too many digits") from None
        try:
            return shape.model_validate(value)
        except ValidationError as error:
            problem = _explain(error)
        position = text.find("{", end)
    raise InvalidReplyError(problem)


def _explain(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    parts = [f"{'.'.join(str(p) for p in e['loc']) or 'the object'}: {e['msg'].lower()}" for e in found[:5]]
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return "; ".join(parts) + more


def _close(node: Any) -> Any:
    """Rewrite a schema node, and all below it, as strict mode wants it."""
    if isinstance(node, list):
        return [_close(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    closed: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword in _DROPPED:
            continue
        if keyword in ("properties", "$defs"):
            closed[keyword] = {name: _close(item) for name, item in value.items()}
        elif keyword in ("enum", "const", "required"):
            closed[keyword] = value
        elif keyword == "oneOf":
            closed["anyOf"] = _close(value)
        else:
            closed[keyword] = _close(value)
    if "properties" in closed:
        closed["required"] = list(closed["properties"])
        closed["additionalProperties"] = False
    return closed


def _has_free_keys(node: Any) -> bool:
    if isinstance(node, list):
        return any(_has_free_keys(item) for item in node)
    if not isinstance(node, dict):
        return False
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        return True
    return any(_has_free_keys(value) for value in node.values())
