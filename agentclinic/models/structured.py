"""Structured output: asking for JSON of a given shape, and finding it in the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar, cast

from pydantic import AliasChoices, BaseModel, Field, ValidationError, create_model

from agentclinic.jsonl import clean, integer
from agentclinic.models.base import Message, Tool, ToolCall

# Keywords that the strict mode of OpenAI's API refuses or ignores; pydantic checks them afterwards.
_DROPPED = frozenset({"default", "title", "examples", "discriminator", "minLength", "uniqueItems", "$schema"})
_BOUNDS = frozenset({"maxLength"})
"""Keywords that keep a small model from writing endlessly; servers that build a grammar from the schema obey them."""
Shape = TypeVar("Shape", bound=BaseModel)
_CANDIDATES = 50
"""Opening braces tried as the start of the object; a reply with more is not JSON with some text around it."""


def at_most(characters: int) -> dict[str, Any]:
    """The maximum length of a string, for the schema that is sent; a longer string is still accepted."""
    return {"maxLength": characters}


def choosing(shape: type[Shape], field: str, names: tuple[str, ...], most: int) -> type[Shape]:
    """A shape whose list `field` may hold only these names, as an enumeration in the schema."""
    name: Any = Literal[names or ("none",)]
    chosen = create_model(
        shape.__name__, __base__=shape, __doc__=shape.__doc__, **{field: (list[name], Field(max_length=most))}
    )  # type: ignore[call-overload]
    return cast("type[Shape]", chosen)


class InvalidReplyError(ValueError):
    """A reply does not have the required shape; the message tells people and models what is wrong."""


class Format(NamedTuple):
    name: str
    schema: dict[str, Any]
    strict: bool
    """False if the schema has an object with free keys, which strict mode does not allow."""


@lru_cache(maxsize=256)
def format_of(shape: type[BaseModel], *, bounds: bool = False) -> Format:
    """The schema of a model, closed and with all properties required, as strict mode demands.

    With `bounds`, strings keep their maximum length, which OpenAI's own strict mode does not accept.
    """
    schema = _close(shape.model_json_schema(), _DROPPED if bounds else _DROPPED | _BOUNDS)
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in shape.__name__)
    return Format(name[:64], schema, not _has_free_keys(schema))


@lru_cache(maxsize=256)
def instruction(shape: type[BaseModel]) -> str:
    """The shape as part of the prompt: not every server obeys the API parameter."""
    schema = json.dumps(shape.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    return f"Answer with exactly one JSON object that matches this JSON schema, and nothing else:\n{schema}"


BRIEF = "Answer with exactly one JSON object of this form, and nothing else."
"""The instruction where the prompt describes the form and the schema is sent as a parameter."""


@lru_cache(maxsize=256)
def outline(shape: type[BaseModel]) -> str:
    """The form of an answer in short, for a prompt that explains the fields itself."""
    schema = format_of(shape).schema
    return _outlined(schema, schema.get("$defs", {}))


def _outlined(node: dict[str, Any], defined: dict[str, Any]) -> str:
    if "$ref" in node:
        return _outlined(defined[node["$ref"].rpartition("/")[2]], defined)
    if "anyOf" in node:
        return _outlined(node["anyOf"][0], defined)
    if "enum" in node:
        return json.dumps(" | ".join(map(str, node["enum"])))
    if "properties" in node:
        fields = (f"{json.dumps(name)}: {_outlined(item, defined)}" for name, item in node["properties"].items())
        return "{" + ", ".join(fields) + "}"
    if node.get("type") == "array":
        return f"[{_outlined(node['items'], defined)}, ...]"
    return {"integer": "1", "number": "0.1", "boolean": "true"}.get(node.get("type", ""), '"..."')


def with_instruction(
    messages: Sequence[Message], shape: type[BaseModel], *, brief: bool = False
) -> tuple[Message, ...]:
    """Add the instruction to the last of the leading system messages.

    Not as a separate message, because many chat templates refuse a second system message. It is static, so later
    turns keep the same prefix.
    """
    told = BRIEF if brief else instruction(shape)
    system = 0
    while system < len(messages) and messages[system].role == "system":
        system += 1
    if system == 0:
        return (Message("system", told), *messages)
    last = messages[system - 1]
    joined = replace(last, content=f"{last.content}\n\n{told}")
    return (*messages[: system - 1], joined, *messages[system:])


def complaint(problem: InvalidReplyError) -> Message:
    return Message(
        "user",
        f"Your last answer cannot be used: {problem}. "
        "Answer again with only the JSON object that matches the schema, without any other text.",
    )


def parse(text: str, shape: type[BaseModel]) -> BaseModel:
    """The first object in the text that has the shape, whatever fences and other text surround it."""
    problem = "it contains no JSON object"
    # strict=False: models write raw line breaks into strings.
    decoder = json.JSONDecoder(strict=False, parse_int=integer)
    position = text.find("{")
    for _ in range(_CANDIDATES):
        if position < 0:
            break
        try:
            value, end = decoder.raw_decode(text, position)
            value = clean(value)
        except json.JSONDecodeError as error:
            problem = "its JSON is broken or incomplete"
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                # The text ends inside the object; an object nested in it is not the answer.
                break
            position = text.find("{", max(error.pos, position + 1))
            continue
        except RecursionError:
            raise InvalidReplyError("its JSON is nested too deeply") from None
        except ValueError as error:
            raise InvalidReplyError(f"its JSON cannot be used: {error}") from None
        try:
            return shape.model_validate(value)
        except ValidationError as error:
            problem = _explain(error)
        position = text.find("{", end)
    raise InvalidReplyError(problem)


class _WrittenCall(BaseModel):
    name: str
    arguments: dict[str, Any] = Field(validation_alias=AliasChoices("arguments", "parameters"))


def written_call(text: str, tools: Sequence[Tool]) -> ToolCall | None:
    """A call of one of the tools that a model wrote as text, which small models do; None if there is none."""
    try:
        call = cast("_WrittenCall", parse(text, _WrittenCall))
    except InvalidReplyError:
        return None
    if call.name not in {tool.name for tool in tools}:
        return None
    return ToolCall("call_0", call.name, json.dumps(call.arguments, ensure_ascii=False))


def _explain(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)
    parts = [f"{'.'.join(str(p) for p in e['loc']) or 'the object'}: {e['msg'].lower()}" for e in found[:5]]
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return "; ".join(parts) + more


def _close(node: Any, dropped: frozenset[str]) -> Any:
    """A schema node, and everything below it, in the form strict mode requires."""
    if isinstance(node, list):
        return [_close(item, dropped) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    closed: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword in dropped:
            continue
        if keyword in ("properties", "$defs"):
            closed[keyword] = {name: _close(item, dropped) for name, item in value.items()}
        elif keyword in ("enum", "const", "required"):
            closed[keyword] = value
        elif keyword == "oneOf":
            closed["anyOf"] = _close(value, dropped)
        else:
            closed[keyword] = _close(value, dropped)
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
