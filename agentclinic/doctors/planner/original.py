"""A policy file with the original's keys, translated into ours, so that no other module has to know both dialects."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.clinic.prompts import joined
from agentclinic.config import parse_settings
from agentclinic.errors import ConfigError
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import says

CONSTRAINTS = {
    "prefer_low_cost_first": "low_cost_first",
    "avoid_back_to_back_imaging": "no_back_to_back_imaging",
    "allow_override_for_red_flags": "red_flag_override",
}
_COST = {"low_to_medium": "medium", "medium_to_high": "high", "mixed": "medium"}
"""Our cost levels for those that only the original has; the higher one where it names two."""


class _Category(BaseModel):
    model_config = ConfigDict(extra="forbid")

    description: str = ""
    typical_tests: tuple[str, ...] = ()
    cost_level: Literal["low", "low_to_medium", "medium", "medium_to_high", "high", "mixed"]


class _Transition(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: str = Field(alias="from")
    to: tuple[str, ...]
    conditions: str = ""


class _Original(BaseModel):
    """What is translated; the rest of the file is validated like a file of ours."""

    instructions: str = ""
    system_base: str | None = None
    inline_system: str | None = None
    constraints: dict[str, Any] = Field(default_factory=dict)
    categories: dict[str, dict[str, Any]] = Field(default_factory=dict)
    transitions: tuple[_Transition, ...] = ()
    synonyms: dict[str, str] = Field(default_factory=dict)


def is_original(data: Mapping[str, Any]) -> bool:
    """Whether a policy file has keys of the original that we do not have."""
    constraints, categories = data.get("constraints"), data.get("categories")
    return (
        "instructions" in data
        or isinstance(data.get("transitions"), list)
        or (isinstance(constraints, dict) and not CONSTRAINTS.keys().isdisjoint(constraints))
        or (isinstance(categories, dict) and any(map(_described, categories.values())))
    )


def translated(data: Mapping[str, Any], shipped: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A policy file of the original with our keys; what it leaves out stays left out."""
    ours = {"transitions"} if isinstance(data.get("transitions"), dict) else set()
    file = parse_settings(_Original, {key: value for key, value in data.items() if key not in ours}, where)
    described = {
        name: parse_settings(_Category, kind, f"{where}: categories.{name}")
        for name, kind in file.categories.items()
        if _described(kind)
    }
    guidance = _guidance(file.instructions, described, file.transitions)
    kinds = _kinds(described, shipped["categories"])
    own = {key: value for key, value in data.items() if key != "instructions"}
    own["system_base"] = joined(file.system_base or shipped["system_base"], guidance)
    own["inline_system"] = joined(file.inline_system or shipped["inline_system"], guidance)
    if "constraints" in data:
        own["constraints"] = _constraints(file.constraints, where)
    if "synonyms" in data:
        own["synonyms"] = _synonyms(file.synonyms, kinds, where)
    own["categories"] = kinds | {name: kind for name, kind in file.categories.items() if name not in described}
    if isinstance(data.get("transitions"), list):
        # Advice, with conditions in prose: orders cannot be checked against it.
        own["transitions"] = {}
    return own


def _described(kind: object) -> bool:
    """Whether a kind of test is described as in the original."""
    return isinstance(kind, dict) and not {"typical_tests", "description"}.isdisjoint(kind)


def _constraints(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    for theirs, ours in CONSTRAINTS.items():
        if theirs in given and ours in given:
            raise ConfigError(f"{where}: constraints has {theirs} and {ours}, which are the same; keep one")
    return {CONSTRAINTS.get(key, key): value for key, value in given.items()}


def _kinds(described: Mapping[str, _Category], shipped: Mapping[str, Any]) -> dict[str, Any]:
    """The kinds of tests in our form: the file's, and then the shipped ones for tests that it does not name."""
    kinds: dict[str, Any] = {}
    for name, kind in described.items():
        tests = [part.strip() for test in kind.typical_tests for part in _REMARK.sub("", test).split(" / ")]
        words = [*filter(None, tests), *shipped.get(name, {}).get("words", ())]
        kinds[name] = {"words": words, "cost_level": _COST.get(kind.cost_level, kind.cost_level)}
    return kinds | {
        name: {**kind, "words": [*kind["words"]]} for name, kind in shipped.items() if name not in described
    }


_REMARK = re.compile(r"\(.{0,200}?\)")


def _synonyms(given: Mapping[str, str], kinds: Mapping[str, Any], where: str) -> dict[str, str]:
    """Synonyms for tests in the knowledge base; a synonym for a kind of test becomes one of the words for that kind."""
    known = knowledge()
    kept, unknown = {}, []
    for word, target in given.items():
        tests = {mention.key for mention in known.test_names.find(target)}
        kind = next((kind for kind in kinds.values() if any(says(target, name) for name in kind["words"])), None)
        if len(tests) == 1:
            kept[word] = known.tests[tests.pop()].name
        elif kind:
            kind["words"].append(word)
        else:
            unknown.append(f"{word} ({target})")
    if unknown:
        warnings.warn(
            f"{where}: synonyms for tests that are not in the knowledge base have no effect: {', '.join(unknown)}",
            stacklevel=4,
        )
    return kept


def _guidance(instructions: str, described: Mapping[str, _Category], transitions: Sequence[_Transition]) -> str:
    """The file's advice as the planner reads it."""
    kinds = []
    for name, kind in described.items():
        tests = f"Tests: {', '.join(kind.typical_tests)}." if kind.typical_tests else ""
        about = " ".join(filter(None, (kind.description, tests)))
        kinds.append(f"- {name} (cost: {kind.cost_level.replace('_', ' ')}): {about}")
    steps = [f"- After {step.kind}: {', '.join(step.to)}. {step.conditions}".rstrip() for step in transitions]
    return joined(
        instructions.strip(),
        "\n".join(("Kinds of tests:", *kinds)) if kinds else "",
        "\n".join(("Which kind may come next:", *steps)) if steps else "",
    )
