"""`prompts/test_policy.json`: thresholds, planning rules and the planner's texts, validated when they are read.

A file with the original's keys is translated into ours, so that no other module has to know both dialects.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from agentclinic.clinic.prompts import SHIPPED, joined
from agentclinic.config import parse_settings, read_json, suggestion
from agentclinic.doctors.planner.schema import MOST_FINDINGS, MOST_HYPOTHESES
from agentclinic.errors import ConfigError
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import says

CONSTRAINTS = {
    "prefer_low_cost_first": "low_cost_first",
    "avoid_back_to_back_imaging": "no_back_to_back_imaging",
    "allow_override_for_red_flags": "red_flag_override",
}
_COST = {"low_to_medium": "medium", "medium_to_high": "high", "mixed": "medium"}
"""Our cost levels for those that only the original has; the higher one if it names two."""


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
    """What is translated; the rest is validated like one of our own files."""

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
    own.setdefault("doctor_policy", guidance)
    own["system_base"] = joined(file.system_base or shipped["system_base"], guidance)
    own["inline_system"] = joined(file.inline_system or shipped["inline_system"], guidance)
    if isinstance(table := data.get("bayes", {}), dict):
        told = {key: table.get(key, shipped["bayes"][key]) for key in ("system_base", "inline_system")}
        own["bayes"] = table | {key: joined(str(text), guidance) for key, text in told.items()}
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
    """The file's advice as the planner reads it, and the doctor with `policy_in_prompt`."""
    kinds = []
    for name, kind in described.items():
        tests = f"Tests: {', '.join(kind.typical_tests)}." if kind.typical_tests else ""
        about = " ".join(filter(None, (kind.description, tests)))
        kinds.append(f"- {name} (cost: {kind.cost_level.replace('_', ' ')}): {about}")
    steps = [f"- After {step.kind}: {', '.join(step.to)}. {step.conditions}".rstrip() for step in transitions]
    return _listed(instructions, kinds, steps)


def _listed(instructions: str, kinds: Sequence[str], steps: Sequence[str]) -> str:
    return joined(
        instructions.strip(),
        "\n".join(("Kinds of tests:", *kinds)) if kinds else "",
        "\n".join(("Which kind may come next:", *steps)) if steps else "",
    )


FEWEST = 3
"""The requirement is never relaxed below this; the original's value."""

CostLevel = Literal["low", "medium", "high"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Constraints(_Part):
    """When to stop, and which ordering rules the doctor is told and its orders are checked against."""

    finish_early_if_confident: float = Field(default=0.7, ge=0, le=1)
    """The leader's confidence for an early finish; with `scoring: weights`."""
    probability_to_finish: float = Field(default=0.9, ge=0, le=1)
    """The leader's probability for an early finish; with `scoring: bayes`."""
    one_test_per_turn: bool = True
    low_cost_first: bool = True
    no_back_to_back_imaging: bool = True
    red_flag_override: bool = True


class DifferentialSettings(_Part):
    """What the planner is asked for."""

    scoring: Literal["weights", "bayes"] = "weights"
    """By weights, as in the original, or by Bayes' rule from a table that is kept from plan to plan."""
    min_symptoms_per_disease: int = Field(default=4, ge=FEWEST, le=MOST_FINDINGS)
    min_diagnoses: int = Field(default=3, ge=1)
    """A plan with fewer cannot end the encounter: being ahead of so few says little."""
    max_differentials: int = Field(default=5, ge=1, le=MOST_HYPOTHESES)
    confidence_close_threshold: float = Field(default=0.12, ge=0, le=1)
    discriminators: Literal["with_plan", "separate", "off"] = "with_plan"

    @model_validator(mode="after")
    def _can_finish(self) -> DifferentialSettings:
        if self.min_diagnoses > self.max_differentials:
            raise ValueError(
                f"min_diagnoses is {self.min_diagnoses} and max_differentials {self.max_differentials}, "
                "so no plan could ever end an encounter; lower min_diagnoses"
            )
        return self


class Category(_Part):
    """A kind of test: its words and usual cost, for tests that are not in the knowledge base."""

    words: tuple[str, ...]
    cost_level: CostLevel


_SWITCHES = tuple(name for name, field in Constraints.model_fields.items() if field.annotation is bool)
_CASE = ("door", "baseline", "transcript", "reply")
_NEEDED = {
    "user_prompt_template": (*_CASE, "min_findings"),
    "discriminator_template": (*_CASE, "close"),
    "chat_system": ("door", "baseline"),
    "chat_task": ("reply", "min_findings"),
    "chat_discriminators": ("reply", "close"),
    "inline_task": ("min_findings",),
}
"""Placeholders that each text must contain."""
_NEEDED_FOR_TABLE = {
    "user_prompt_template": (*_CASE, "min_findings", "table"),
    "chat_task": ("reply", "min_findings", "table"),
    "inline_task": ("min_findings", "table"),
}
"""The same, with `scoring: bayes`."""
_CHAT = {"user_prompt_template": "chat_task", "discriminator_template": "chat_discriminators"}
"""Texts of the transcript form, and those that take their place in a chat."""


class Texts(_Part):
    """What the planner is told, and the doctor that plans inline; the words differ with `scoring`."""

    system_base: str = Field(min_length=1)
    user_prompt_template: str = Field(min_length=1)
    chat_task: str = ""
    """In place of it, if the dialogue is a chat."""
    inline_system: str = Field(min_length=1)
    inline_task: str = Field(min_length=1)
    retry: str = Field(min_length=1)


class TableTexts(Texts):
    """The texts with `scoring: bayes`."""

    @field_validator(*_NEEDED_FOR_TABLE)
    @classmethod
    def _sees_the_table(cls, value: str, info: ValidationInfo) -> str:
        return _complete(value, _NEEDED_FOR_TABLE[info.field_name or ""])


class PolicyFile(Texts):
    """All of `test_policy.json`."""

    bayes: TableTexts
    discriminators_with_plan: str = ""
    """After the instructions, or in place of `{discriminators}` in a task."""
    discriminator_template: str = Field(min_length=1)
    chat_system: str = ""
    """With `chat_task` and the next two, shows the planner the dialogue as a chat; if one is missing, it gets a
    transcript."""
    chat_opening: str = ""
    chat_discriminators: str = ""
    advice: str = ""
    doctor_instructions: str = ""
    """With `policy_in_prompt`: how the doctor should plan; its kinds of tests and transitions follow."""
    doctor_policy: str | None = None
    """In place of these three, if the file words them itself, as the original's does."""
    fallback_advice: str = Field(min_length=1)
    constraints: Constraints = Constraints()
    differential_settings: DifferentialSettings = DifferentialSettings()
    planning_rules: dict[str, str] | tuple[str, ...] = ()
    """What the doctor is told: a sentence for each constraint, shown while that is on, or a list, always shown."""
    categories: dict[str, Category] = Field(default_factory=dict)
    transitions: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Kind of test to the kinds that may follow it; a kind not listed may be followed by any."""
    synonyms: dict[str, str] = Field(default_factory=dict)
    """Other words for tests, mapped to their names in the knowledge base."""
    red_flags: tuple[str, ...] = ()
    """Findings of the knowledge base that justify an expensive test at once."""

    @property
    def chat(self) -> bool:
        """Whether the file has the texts to show the dialogue as a chat."""
        return all((self.chat_system, self.chat_opening, self.texts.chat_task, self.chat_discriminators))

    @property
    def texts(self) -> Texts:
        """The texts for the way of scoring."""
        return self.bayes if self.differential_settings.scoring == "bayes" else self

    @property
    def finish_at(self) -> float:
        """The leader's number for an early finish."""
        table = self.differential_settings.scoring == "bayes"
        return self.constraints.probability_to_finish if table else self.constraints.finish_early_if_confident

    @property
    def for_doctor(self) -> str:
        """The policy as part of the doctor's system prompt, as in the original: all of it, and how to act on it."""
        kinds = [f"- {name} (cost: {k.cost_level}): {', '.join(k.words)}" for name, k in self.categories.items()]
        steps = [f"- After {name}: {', '.join(after)}." for name, after in self.transitions.items()]
        told = _listed(self.doctor_instructions, kinds, steps) if self.doctor_policy is None else self.doctor_policy
        sure = (
            f"Plan before you speak. At a confidence of {self.finish_at:.0%} or more, give "
            "your diagnosis; below it, ask one short question or order one test that the policy allows next. Go on to "
            "a more expensive test only if its result would change what is done, or for a red flag."
        )
        rules = "\n".join(("Constraints:", *(f"- {rule}" for rule in (*self.rules, sure))))
        return joined("[Test policy]", told, rules)

    @property
    def rules(self) -> tuple[str, ...]:
        if isinstance(self.planning_rules, tuple):
            return self.planning_rules
        return tuple(rule for switch, rule in self.planning_rules.items() if getattr(self.constraints, switch))

    @field_validator(*_NEEDED)
    @classmethod
    def _sees_the_case(cls, value: str, info: ValidationInfo) -> str:
        return _complete(value, _NEEDED[info.field_name or ""])

    @field_validator("planning_rules")
    @classmethod
    def _known_constraints(cls, value: dict[str, str] | tuple[str, ...]) -> dict[str, str] | tuple[str, ...]:
        _refuse_unknown(value if isinstance(value, dict) else (), _SWITCHES, "a constraint that can be on or off")
        return value

    @field_validator("red_flags")
    @classmethod
    def _known_findings(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        _refuse_unknown(value, knowledge().findings, "a finding of the knowledge base")
        return value

    @field_validator("synonyms")
    @classmethod
    def _known_tests(cls, value: dict[str, str]) -> dict[str, str]:
        names = {test.name for test in knowledge().tests.values()}
        _refuse_unknown(value.values(), names, "a test of the knowledge base")
        return value

    @field_validator("transitions")
    @classmethod
    def _known_kinds(cls, value: dict[str, tuple[str, ...]], info: ValidationInfo) -> dict[str, tuple[str, ...]]:
        kinds = {*(test.category for test in knowledge().tests.values()), *info.data.get("categories", {})}
        _refuse_unknown((*value, *chain.from_iterable(value.values())), kinds, "a kind of test")
        return value


def _complete(value: str, placeholders: Iterable[str]) -> str:
    for needed in placeholders if value else ():
        if f"{{{needed}}}" not in value:
            raise ValueError(f"lacks {{{needed}}}, which the planner needs; add it")
    return value


def _refuse_unknown(names: Iterable[str], known: Collection[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not {what}{suggestion(name, known)}")


@dataclass(frozen=True)
class Policy:
    """A policy, and a hash of its file for the record."""

    file: PolicyFile
    path: Path
    digest: str


def load_policy(name: str = "test_policy", folder: Path | None = None, *, chat: bool = False) -> Policy:
    """Read `<name>.json` from the user's prompts if it is there, else the shipped one.

    The original's file implies a transcript, unless the settings ask for a `chat`.
    """
    path = next((p / f"{name}.json" for p in (folder, SHIPPED) if p and (p / f"{name}.json").is_file()), None)
    if path is None:
        where = f"in {folder} or among the shipped prompts" if folder else "among the shipped prompts"
        raise ConfigError(f"doctor_test_policy: there is no {name}.json {where}; use test_policy, or add the file")
    data: Any = read_json(path)
    if isinstance(data, dict) and path.parent != SHIPPED:
        data = _completed(data, str(path), chat=chat)
    file = parse_settings(PolicyFile, data, str(path))
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]
    return Policy(file, path, digest)


def policy_of(data: Mapping[str, Any], where: str) -> PolicyFile:
    """A policy given as data, such as the content of a file; `where` is its name in errors."""
    return parse_settings(PolicyFile, _completed(data, where), where)


def _completed(data: Mapping[str, Any], where: str, *, chat: bool = False) -> dict[str, Any]:
    """A user's policy with our keys, and from the shipped one what it leaves out."""
    # If it words the planner's task itself, our words for a chat must not take their place: the planner gets a
    # transcript.
    unsaid = {words: "" for transcript, words in _CHAT.items() if transcript in data and words not in data}
    shipped = read_json(SHIPPED / "test_policy.json")
    if is_original(data):
        data = translated(data, shipped, where)
        unsaid |= {} if chat else dict.fromkeys(_CHAT.values(), "")
    table = data.get("bayes", {})
    if isinstance(table, dict):
        own = {"chat_task": ""} if "user_prompt_template" in table and "chat_task" not in table else {}
        data = {**data, "bayes": {**shipped["bayes"], **own, **table}}
    return {**shipped, **unsaid, **data}
