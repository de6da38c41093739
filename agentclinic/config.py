"""Reading settings: `agentclinic.config.json`, `llm.config.json`, the environment and flags.

Flags override files, and files override defaults. An unknown key is an error that names the nearest known one. The
one-line docstrings under the fields are also the command line's help and the reference in docs/settings.md.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar, get_args
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StrictBool,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from agentclinic import privacy
from agentclinic.errors import ConfigError
from agentclinic.files import exists, expanded, find_up, read_limited
from agentclinic.jsonl import clean, integer, kind_of

ROLE_NAMES = {"doctor": "doctor", "patient": "patient", "measurement": "laboratory", "moderator": "judge"}
"""The roles by their keys in settings and records, and what people call them."""
ROLES = tuple(ROLE_NAMES)
GENERATION = ("temperature", "top_p", "max_output_tokens", "reasoning_effort")
ALL_GENERATION = (*GENERATION, *(f"{role}_{name}" for role in ROLES for name in GENERATION))
"""How models write: settings for all roles, and for one role such as `doctor_temperature`."""
GENERATION_OF = {
    **{role: role for role in (*ROLES, "memory")},
    **dict.fromkeys(("planner", "discriminator", "synthesis", "confidence", "completion", "query"), "doctor"),
}
"""Whose generation settings a request has, by its purpose; a learner, a reviewer and a writer have none."""


def is_person(name: str | None) -> bool:
    """Whether a model's name stands for a person: `human`, or `human:NAME` for one who is known by a name."""
    return name == "human" or (name or "").startswith("human:")


def is_builtin(name: str | None) -> bool:
    return (name or "").partition(":")[0] == "builtin"


def is_builtin_or_person(name: str | None) -> bool:
    """Whether a model's name stands for something other than a language model or a recording."""
    return is_builtin(name) or is_person(name)


def is_at_endpoint(name: str) -> bool:
    return not is_builtin_or_person(name) and not name.startswith(REPLAY)


REPLAY = "replay:"
"""The model `replay:FILE` answers from a recording."""
MOST_WORKERS = 20_000
"""More than any endpoint serves at once, and twice what we have tried (docs/scale.md)."""
MOST_TURNS = 10_000
"""A consultation takes about 20 turns; more than this is a slip."""
MOST_REPEATS = 1000
"""With a thousand repeats, the interval of a single case's accuracy is within three points; more is a slip."""
MOST_PROCESSES = 4096
"""Worker processes on a cluster: more than the largest that labs have; a larger number is a slip."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "original": {
        "simulator": "free",
        "dialogue": "transcript",
        "missing_test": "normal",
        "pending_results": False,
        "setting_limits": False,
        "planner_baseline": "full",
        "policy_in_prompt": True,
        "judge": "original",
    },
    "frugal": {"test_budget": 300, "order_limit": 3, "total_inferences": 12},
}
"""What each preset sets; docs/budget.md says why the numbers of `frugal`.

`planner_baseline` and `policy_in_prompt` matter only with a test policy, and `judge` only with a judge's model."""


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `run` settings from several places; the last one wins. A preset counts as set where it is named."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= {**PRESETS.get(str(layer.get("preset")), {}), **layer}
    return merged


TRAITS = ("recall", "disclosure", "literacy", "verbosity")
"""What can make a patient difficult (docs/traits.md)."""
DRAWN_TRAITS = frozenset({"recall", "verbosity"})
"""Traits that touch other facts in each repeat."""
STRONGEST = 3
"""The highest level of a trait; 0 is a patient without it."""
PROFILES: Mapping[str, Mapping[str, int]] = {
    "forgetful": {"recall": 2},
    "guarded": {"disclosure": 2},
    "plain_words": {"literacy": 2},
    "talkative": {"verbosity": 2},
    "difficult": dict.fromkeys(TRAITS, 2),
}
"""Patients with a name, by their traits."""


def _traits(given: object) -> object:
    """Traits as a mapping without those at level 0: from a mapping, a profile's name, or `recall=2,literacy=1`."""
    if given is None:
        return {}
    if isinstance(given, str):
        named = PROFILES.get(given.strip())
        given = named if named is not None else _traits_in(given)
    if not isinstance(given, Mapping):
        raise ValueError(f"must name traits and their levels, such as {{recall: 2}}, not {kind_of(given)}")
    for name, level in given.items():
        if name not in TRAITS:
            raise ValueError(
                f"there is no trait {name!r}{suggestion(str(name), TRAITS)}; there are {', '.join(TRAITS)}"
            )
        if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= STRONGEST:
            raise ValueError(f"{name}: the level must be a whole number from 0 to {STRONGEST}, not {level!r}")
    return {name: given[name] for name in TRAITS if given.get(name)}


def _traits_in(text: str) -> dict[str, object]:
    """Traits as written in a flag."""
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    pairs = [re.fullmatch(r"(\w+)\s*=\s*(\w+)", entry) for entry in entries]
    if not all(pairs):
        profiles = ", ".join(PROFILES)
        raise ValueError(f"{text!r} is neither a profile ({profiles}) nor traits with levels, such as recall=2")
    return {pair[1]: int(pair[2]) if pair[2].isdigit() else pair[2] for pair in pairs if pair}


def traits_text(traits: Mapping[str, int]) -> str:
    """Traits as written in a flag, and in labels; empty if there are none."""
    return ",".join(f"{name}={level}" for name, level in traits.items())


Traits = Annotated[dict[str, int], BeforeValidator(_traits)]
JudgeMode = Literal["builtin", "cascade", "model", "original"]
Retrieval = Literal["bm25", "embeddings", "shuffled"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
_Temperature = Annotated[float | None, Field(ge=0, le=2)]
_TopP = Annotated[float | None, Field(gt=0, le=1)]
_Tokens = Annotated[int | None, Field(ge=1)]


class RoleModel(NamedTuple):
    """The model of a role, and its endpoint by its name in `endpoints`; None for the default one."""

    name: str
    endpoint: str | None


class RunSettings(_Section):
    """The `run` section of `agentclinic.config.json`; each key is also a flag of `agentclinic run`."""

    preset: Literal["original", "frugal"] | None = None
    """A named group of settings, which other flags override: `original` plays as the original does (docs/runs.md),
    `frugal` makes ordering everything impossible (docs/budget.md)."""
    dataset: str = "OpenOSCE_Demo"
    """Data set: a name from `agentclinic data list` or from `datasets`, the path of a case file, or a solvable world as
    Solvable:NAME or Solvable:FILE, with `,invented` for invented names and `,hidden` to hide the probabilities
    (docs/solvable.md)."""
    num_scenarios: int | None = Field(default=None, ge=1)
    """Evaluate at most this many scenarios (default: all; 100 in a solvable world)."""
    offset: int = Field(default=0, ge=0)
    """Skip this many scenarios first."""
    scenarios: str | None = None
    """Evaluate only these cases: rows, counted from 0, or ids, e.g. 3,7,10-20 or osce-a01,osce-a04."""
    sample: int | None = Field(default=None, ge=1)
    """Evaluate a random sample of this size; the same `seed` draws the same sample."""
    lockbox: bool = False
    """Include the lockbox, if the data set has one: cases that are scored once per release."""
    seed: int = 0
    """Random seed; with builtin roles, runs with the same seed differ only in `timing`."""
    repeats: int = Field(default=1, ge=1, le=MOST_REPEATS)
    """Run every scenario this many times."""
    total_inferences: int = Field(default=20, ge=1, le=MOST_TURNS)
    """Number of turns the doctor has; on the last one it is told to give its diagnosis."""
    workers: int = Field(default=1, ge=1, le=MOST_WORKERS)
    """How many encounters, cases or requests to work on at the same time."""
    engine: Literal["local", "ray"] = "local"
    """Where the work is done: in this process, or by the worker processes of a Ray cluster (docs/scale.md)."""
    address: str | None = None
    """Address of the Ray cluster, e.g. auto or 10.0.0.1:6379 (default: start one on this machine for this command)."""
    processes: int | None = Field(default=None, ge=1, le=MOST_PROCESSES)
    """Worker processes on the Ray cluster, which share `workers` (default: one per CPU, at most `workers`)."""
    inf_type: Literal["llm", "human_doctor", "human_patient"] = "llm"
    """Models in all roles, or a person at the terminal as the doctor or the patient."""
    doctor_llm: str = "builtin"
    """Model of the doctor: builtin, human (or human:NAME), replay:FILE, or the name of a model at the endpoint."""
    patient_llm: str = "builtin"
    """Model of the patient."""
    measurement_llm: str = "builtin"
    """Model of the laboratory."""
    moderator_llm: str = "builtin"
    """Model of the judge."""
    judge: JudgeMode | None = None
    """How diagnoses are judged: by code alone; in a cascade, by code and, where it cannot read one, by the judge's
    model; by the model alone; or by the model as in the original (default: cascade if `moderator_llm` names a model,
    else builtin)."""
    doctor_endpoint: str | None = None
    """Endpoint of the doctor, by its name in `endpoints` (default: the default endpoint)."""
    patient_endpoint: str | None = None
    """Endpoint of the patient, by its name in `endpoints`."""
    measurement_endpoint: str | None = None
    """Endpoint of the laboratory, by its name in `endpoints`."""
    moderator_endpoint: str | None = None
    """Endpoint of the judge, by its name in `endpoints`."""
    temperature: _Temperature = None
    """Temperature of all models, 0 to 2. For one role, put its name first, here and below: doctor_temperature, ..."""
    top_p: _TopP = None
    """Top-p of all models: sample only from the most likely tokens, which make up this share."""
    max_output_tokens: _Tokens = None
    """Maximum tokens in a reply, including hidden reasoning (default: a cap for each kind of request)."""
    reasoning_effort: Effort | None = None
    """How much all models reason before they reply; like the others, sent whatever the model's name."""
    doctor_temperature: _Temperature = None
    doctor_top_p: _TopP = None
    doctor_max_output_tokens: _Tokens = None
    doctor_reasoning_effort: Effort | None = None
    patient_temperature: _Temperature = None
    patient_top_p: _TopP = None
    patient_max_output_tokens: _Tokens = None
    patient_reasoning_effort: Effort | None = None
    measurement_temperature: _Temperature = None
    measurement_top_p: _TopP = None
    measurement_max_output_tokens: _Tokens = None
    measurement_reasoning_effort: Effort | None = None
    moderator_temperature: _Temperature = None
    moderator_top_p: _TopP = None
    moderator_max_output_tokens: _Tokens = None
    moderator_reasoning_effort: Effort | None = None
    doctor: str = "plain"
    """Doctor: plain, uncertainty, prior_only, door_only, random_questions, history_only or full_information (the last
    five for reference, docs/scoring.md), in a solvable world also optimal, greedy, checklist, ask_everything or
    random_actions (for reference, docs/solvable.md), or your own as FILE.py:Class."""
    agent_config: str | None = None
    """Config file of the uncertainty doctor (default: `agent/agent_config.yaml` if it exists, else the shipped one)."""
    uncertainty_agent_type: str | None = None
    """Agent in `agent_config` that plays the uncertainty doctor (default: uncertainty_aware_doctor)."""
    doctor_bias: str | None = None
    """Bias to add to the prompt of a language-model doctor: recency, frequency, false_consensus, confirmation,
    status_quo, gender, race, sexual_orientation, cultural, education, religion, socioeconomic, or another name in your
    doctor.json; an unknown one is refused (`--preset original`: ignored)."""
    patient_bias: str | None = None
    """Bias to add to the prompt of a language-model patient: recency, frequency, false_consensus, self_diagnosis,
    gender, race, sexual_orientation, cultural, education, religion, socioeconomic, or another name in your
    patient.json; an unknown one is refused (`--preset original`: ignored)."""
    patient_traits: Traits = {}
    """Traits of a difficult patient, each at a level from 0 to 3, such as recall=2,literacy=1 (recall, disclosure,
    literacy, verbosity), or a profile: forgetful, guarded, plain_words, talkative, difficult (docs/traits.md)."""
    simulator: Literal["auto", "grounded", "voiced", "free"] = "auto"
    """How language models play patient and laboratory; auto tries each on up to 40 short requests before the run and
    takes grounded where it chooses facts better than our matcher, else voiced (docs/simulator.md)."""
    dialogue: Literal["chat", "transcript"] | None = None
    """How models are shown the dialogue (default: chat)."""
    doctor_image_request: bool = False
    """Let the doctor ask for images with REQUEST IMAGES; ignored with a warning if no case has an image."""
    missing_test: Literal["unavailable", "normal", "completed"] | None = None
    """What the laboratory reports for a test that is not in the chart: that it is not available, normal readings, or a
    plausible normal result that agrees with the chart (default: completed for OpenOSCE and OpenOSCE_Demo, else
    unavailable; docs/simulator.md)."""
    pending_results: bool | None = None
    """Report a result that cannot be back in the time of the case's setting as taken and pending (default: on for
    OpenOSCE and OpenOSCE_Demo, else off; docs/simulator.md)."""
    setting_limits: bool = True
    """In cases whose setting is a telephone, a rural clinic or a district hospital, let the doctor order only what can
    be had there (docs/budget.md)."""
    test_budget: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Dollars that the doctor can spend on tests in an encounter; what exceeds them is not done (default: no limit;
    docs/budget.md)."""
    order_limit: int | None = Field(default=None, ge=1)
    """Tests and examinations that are done of one order (default: all; docs/budget.md)."""
    silent_symptom: Literal["deny", "unknown"] = "deny"
    """What the patient answers about a symptom that the chart does not mention."""
    elicit_confidence: bool = False
    """After the diagnosis, ask the doctor for its confidence, outside the dialogue."""
    doctor_test_policy_enabled: bool = False
    """Use the test policy: a scored differential and planning notes on every turn, and an early finish."""
    doctor_test_policy: str = "test_policy"
    """Prompt file (without .json) that configures the test policy."""
    doctor_test_policy_mode: Literal["separate", "inline"] = "separate"
    """Plan in a request of its own before each utterance, or plan and speak in one structured reply."""
    planner_baseline: Literal["door", "full"] = "door"
    """What the planner knows at the start: what a doctor knows at the door, or the patient's full script."""
    policy_in_prompt: bool = False
    """Put the test policy into the plain doctor's system prompt as well (default: planning notes only)."""
    memory: str | None = None
    """File of experiences, made by `agentclinic learn` or `memory import`, offered to the doctor where they fit."""
    memory_retrieval: Retrieval = "bm25"
    """How experiences are found: by words, by embeddings, or drawn by chance as a control."""
    memory_llm: str | None = None
    """Model that picks among the ten best experiences, or none of them (default: the two best are offered)."""
    memory_endpoint: str | None = None
    """Endpoint of the model that picks, by its name in `endpoints`."""
    embedding_llm: str | None = None
    """Embedding model for memory_retrieval embeddings."""
    embedding_endpoint: str | None = None
    """Endpoint of the embedding model, by its name in `endpoints`."""
    split: str | None = None
    """File that divides the cases into those to learn from and those to test on; needs `part`."""
    part: Literal["train", "test"] | None = None
    """Play only this part of `split`; without that file, this half of the data set (twins and near copies together)."""
    synthesis_llm: str | None = None
    """Model that makes the diagnosis from the uncertainty doctor's facts (default: the doctor's)."""
    synthesis_endpoint: str | None = None
    """Endpoint of the synthesis model, by its name in `endpoints` (default: the doctor's)."""
    resource_level: Literal["normal", "busy", "scarce"] | None = None
    """Care setting; waiting times are doubled when busy and four times as long when scarce, or as your
    measurement_cost.json says (docs/scoring.md)."""
    measurement_cost_llm: str | None = None
    """Ignored with a warning: test_economics_log is filled from a price table, without a model."""
    prompts_dir: str | None = None
    """Folder with prompt files that replace the shipped ones, file by file (default: `prompts` if it exists)."""
    record: str | None = None
    """Record every request and reply in this file, for `replay:FILE`."""
    output_dir: str = "runs"
    """Folder in which to create the run folder."""
    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$")
    """Name of the run, added to that of its folder: letters, digits, `.`, `_` and `-`."""
    check: bool = True
    """Before anything else, send one short request to each model, and stop if it cannot be used."""

    @property
    def selection(self) -> dict[str, Any]:
        return self.model_dump(include={"scenarios", "offset", "sample", "num_scenarios", "seed", "lockbox"})

    @property
    def people(self) -> bool:
        """Whether a person plays the doctor or the patient."""
        return is_person(self.doctor_llm) or is_person(self.patient_llm)

    @property
    def generation(self) -> dict[str, Any]:
        """The generation settings that are set, for all roles or for one, by key."""
        return {key: value for key in ALL_GENERATION if (value := getattr(self, key)) is not None}

    def generation_of(self, purpose: str) -> dict[str, Any]:
        """What a request for this purpose, or of this role, says about its reply; a role's own settings win."""
        role, given = GENERATION_OF.get(purpose), self.generation
        values = {name: given.get(f"{role}_{name}", given.get(name)) for name in GENERATION if role}
        return {name: value for name, value in values.items() if value is not None}

    def model_of(self, role: str) -> RoleModel | None:
        name = getattr(self, f"{role}_llm")
        return RoleModel(name, getattr(self, f"{role}_endpoint")) if name or role in ROLES else None

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, data: object) -> object:
        return layered(data) if isinstance(data, dict) else data

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, data: object) -> object:
        if isinstance(data, dict) and "judge_relation" in data:
            if data["judge_relation"] is not False:  # what every config.used.json of older versions says
                raise ValueError("judge_relation is now judge: cascade, model or original; set that instead")
            data = {key: value for key, value in data.items() if key != "judge_relation"}
        if isinstance(data, dict) and _ELSEWHERE in data:
            data = {key: value for key, value in data.items() if key != _ELSEWHERE}
            told = "it is the folder of another program (DyLAN), which is not run here"
            warnings.warn(f"run.{_ELSEWHERE} is ignored: {told}", FutureWarning, stacklevel=2)
        return data

    @field_validator("simulator", mode="before")
    @classmethod
    def _default_simulator(cls, value: object) -> object:
        return "auto" if value is None else value  # what configs of older versions say

    @field_validator("doctor_bias", "patient_bias", mode="before")
    @classmethod
    def _no_bias(cls, value: object) -> object:
        return None if value in (None, "", "None", "none", "null") else value


_ELSEWHERE = "dylan_repo_dir"
"""A key in some configs of the original that has no counterpart here."""
NEEDS = {
    "engine ray": ("address", "processes"),
    "doctor_test_policy_enabled": ("planner_baseline", "policy_in_prompt", "doctor_test_policy_mode"),
    "doctor uncertainty": ("synthesis_llm", "synthesis_endpoint", "agent_config", "uncertainty_agent_type"),
    "synthesis_llm": ("synthesis_endpoint",),
    "part": ("split",),
    "memory": ("memory_retrieval", "memory_llm", "memory_endpoint", "embedding_llm", "embedding_endpoint"),
    "embedding_llm": ("memory_retrieval embeddings",),
    "memory_retrieval embeddings": ("embedding_llm",),
}
"""Settings, as a key or a key with a value, and those that have no effect without them."""


def defaults(*keys: str) -> dict[str, Any]:
    return {key: RunSettings.model_fields[key].default for key in keys}


def refuse_without_effect(run: RunSettings, *keys: str) -> None:
    """Refuse settings that have no effect without another one: those with these keys, or all."""

    def is_set(setting: str) -> bool:
        key, _, value = setting.partition(" ")
        return bool(getattr(run, key) == value if value else getattr(run, key) != defaults(key)[key])

    for needed, dependent in NEEDS.items():
        for setting in dependent:
            key = setting.partition(" ")[0]
            by_preset = run.preset is not None and key in PRESETS[run.preset]
            if (not keys or key in keys) and is_set(setting) and not is_set(needed) and not by_preset:
                raise ConfigError(f"{setting} has no effect without {needed}; set both, or leave out {key}")


class PlannerSettings(NamedTuple):
    """The test policy that the doctor plans with."""

    policy: str
    """Its prompt file, without .json."""
    inline: bool
    """Plan and speak in one reply."""
    baseline: Literal["door", "full"]


class MemorySettings(NamedTuple):
    """The experiences that the doctor is offered."""

    path: str
    retrieval: Retrieval
    embedding: RoleModel | None
    """The model that finds them, if they are found by embeddings."""
    picker: RoleModel | None


class RaySettings(NamedTuple):
    """The cluster that does the work."""

    address: str | None = None
    processes: int | None = None


STUDY_DECIDES = frozenset({"memory", "split", "part", "record", "output_dir", "inf_type"})
"""Settings of `run` that a study decides itself."""


class Given(NamedTuple):
    """What the person at the keyboard said, as opposed to what a file says; never written."""

    flags: Mapping[str, Any] = {}
    """Settings of `run` given as flags, or as arguments in Python."""
    addresses: tuple[str, ...] = ()
    """From `--trust-address`."""
    programs: tuple[str, ...] = ()
    """From `--trust-program`."""
    trusted: frozenset[tuple[str, str]] = frozenset()
    """On a worker: what the main process allowed (`agentclinic.trust`)."""
    ask: Callable[[str], bool] | None = None
    """Asks the person at the terminal to confirm something; None if there is no one to ask."""

    def names(self, run: RunSettings, key: str) -> bool:
        """Whether the value of a setting was given as a flag."""
        return key in self.flags and self.flags[key] == getattr(run, key)


class UnixParts(NamedTuple):
    """An address on a unix socket, e.g. unix:///run/llm.sock or unix:///run/llm.sock:/api/v1."""

    socket: str
    path: str
    """The path of the API on the server."""


def is_unix(address: str) -> bool:
    return address.lower().startswith("unix:")


def unix_parts(address: str) -> UnixParts | None:
    """Socket and path of a `unix://` address; None for any other address, `ValueError` if it is malformed."""
    if not is_unix(address):
        return None
    place, _, path = address[len("unix:") :].removeprefix("//").partition(":/")
    if not place.startswith("/") or re.search(r"[?#\0]", address):
        raise ValueError("must be unix:// followed by the full path of a socket, e.g. unix:///run/llm.sock")
    return UnixParts(place, f"/{path}" if path else "/v1")


def checked_address(value: object) -> object:
    """Refuse anything but an address, without repeating it: it may be a key or contain a password."""
    if not isinstance(value, str):
        return value
    address = value.strip()
    if not address:
        return None
    unix = unix_parts(address)
    try:
        parts = urlsplit(f"http://localhost{unix.socket}{unix.path}" if unix else address)
        # A letter of another alphabet can look like one of a host that people know.
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.hostname.isascii() and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be an http(s) address with a port from 1 to 65535, e.g. http://127.0.0.1:8000/v1")
    if parts.query or parts.fragment:
        raise ValueError("must not have a query (?...); put a key into openai.api_key or the environment")
    if privacy.key_in_path(parts.path):
        raise ValueError(
            "must not have a key in its path, which is recorded; put the key into openai.api_key or the environment"
        )
    return address


def _variable_name(value: str) -> str:
    """Refuse a key in place of the name of its variable: that name is shown and recorded."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", value):
        raise ValueError("must be the name of an environment variable in capitals, not the key itself")
    return value


def _without_secrets(responses: dict[str, Any]) -> dict[str, Any]:
    """Refuse settings that hold keys, at any depth: `llm.responses` is written to every record."""
    found = _secret_in(responses)
    if found:
        raise ValueError(f"{found} does not belong here; put a key into openai.api_key or the environment")
    return responses


def _secret_in(value: Any) -> str | None:
    """The name of the first setting that may hold a key; names inside a JSON schema are not settings."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        if isinstance(name, str) and privacy.names_secret(name) and isinstance(child, str | dict | list):
            return privacy.shown_name(name)
        inside = None if name in ("schema", "parameters") else _secret_in(child)
        if inside:
            return inside
    return None


Dollars = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]


class PriceSettings(_Section):
    """One entry of `prices`: what a model's tokens cost, in US dollars per million. 0 is a price: a free server."""

    input: Dollars
    """Dollars per million input tokens."""
    output: Dollars
    """Dollars per million output tokens, including those of hidden reasoning."""
    cached_input: Dollars | None = None
    """Dollars per million input tokens that came from the provider's cache (default: the same as `input`)."""


class OpenAISettings(_Section):
    """The `openai` section of `llm.config.json`: the default endpoint."""

    api_key: SecretStr | None = None
    """Key of the default endpoint. Better: set OPENAI_API_KEY in the environment or in `.env`."""
    base_url: Annotated[str | None, BeforeValidator(checked_address)] = Field(default=None, repr=False)
    """Address of an OpenAI-compatible server, http(s):// or unix:///SOCKET (default: OpenAI's)."""
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    """Prices of its models by name, or `*` for all others; they win over the list prices we know."""


class RuntimeSettings(_Section):
    """The `llm.runtime` section of `llm.config.json`."""

    tries: int = Field(default=6, ge=1)
    """How many times to try a request before it counts as failed."""
    timeout: float = Field(default=5.0, ge=0)
    """Shortest wait between two tries, in seconds; it is longer if the server asks for more."""
    request_timeout: float = Field(default=120.0, gt=0)
    """Time limit for one request, in seconds."""
    encounter_timeout: float | None = Field(default=None, gt=0)
    """Time limit for one encounter, in seconds."""
    token_limit: int | None = Field(default=None, ge=1)
    """Stop the run cleanly after this many tokens; it can be resumed."""
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Stop the run cleanly after this many US dollars; it can be resumed. Refused if a model's price is unknown."""
    clip_prompt: bool = False
    """Shorten prompts longer than `max_prompt_len`, keeping the instructions and the newest part."""
    max_prompt_len: int = Field(default=16384, ge=256)
    """Longest prompt, in characters, if `clip_prompt` is on."""
    llm_api: Literal["responses", "chat", "auto"] = "auto"
    """API of the endpoint; auto tries Responses first and remembers what worked."""


class LLMSettings(_Section):
    """The `llm` section of `llm.config.json`."""

    responses: Annotated[dict[str, Any], AfterValidator(_without_secrets)] = Field(default_factory=dict)
    """Merged into every request: max_output_tokens, reasoning, text, ...; never `model` or `input`."""
    runtime: RuntimeSettings = RuntimeSettings()


class EndpointSettings(_Section):
    """One entry of `endpoints` in `agentclinic.config.json`."""

    base_url: Annotated[str, BeforeValidator(checked_address)] = Field(repr=False)
    """Address of an OpenAI-compatible server."""
    api_key_env: Annotated[str, AfterValidator(_variable_name)] | None = Field(default=None, repr=False)
    """Environment variable that holds its key (default: no key is sent)."""
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    """Prices of its models by name, or `*` for all others; they win over the list prices we know."""


def host_name(name: str) -> str:
    """A host as in `privacy.hosts` and `--allow-host`: lower case, with a port unless it is the default one."""
    found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(:[0-9]{1,5})?", name.strip().lower())
    if not found or not 0 < int((found[2] or ":1")[1:]) < 2**16:
        raise ValueError(
            "must be a host or host:port (1 to 65535), without user, http:// or path, e.g. llm.example.org or "
            "10.0.0.7:8000"
        )
    return found[1] + (found[2] or "")


def _by_host(value: object) -> object:
    if not isinstance(value, dict):
        return value
    hosts = {host_name(str(name)): entry for name, entry in value.items()}
    if len(hosts) < len(value):
        raise ValueError("names a host twice")
    return hosts


def _day(value: object) -> object:
    """Refuse numbers and times, which pydantic would accept as dates."""
    if not (value is None or type(value) is date or (isinstance(value, str) and re.fullmatch(r"[\d-]{10}", value))):
        raise ValueError("must be a date, as YYYY-MM-DD")
    return value


class Attestation(_Section):
    """One entry of `privacy.hosts` in `agentclinic.config.json`: how a host treats data, and who attests it."""

    zero_retention: StrictBool = False
    """The host keeps neither requests nor answers."""
    no_training: StrictBool = False
    """The host uses none of the data to train or improve a model."""
    no_human_review: StrictBool = False
    """No one at the host reads any of the data, not even for abuse monitoring."""
    attested_by: str | None = None
    """The person who attests this, and the agreement it is based on."""
    attested_on: Annotated[date | None, BeforeValidator(_day)] = None
    """The date of the attestation, as YYYY-MM-DD."""


class PrivacySettings(_Section):
    """The `privacy` section of `agentclinic.config.json`."""

    hosts: Annotated[dict[str, Attestation], BeforeValidator(_by_host)] = Field(default_factory=dict)
    """Hosts (or host:port) that may get credentialed data if `--allow-host` names them as well (docs/privacy.md)."""


class LLMFile(_Section):
    """The whole of `llm.config.json`."""

    openai: OpenAISettings = OpenAISettings()
    llm: LLMSettings = LLMSettings()


class ClinicFile(_Section):
    """The whole of `agentclinic.config.json`."""

    run: RunSettings = RunSettings()
    datasets: dict[str, str] = Field(default_factory=dict)
    """Paths of data sets by name, relative to this file."""
    endpoints: dict[str, EndpointSettings] = Field(default_factory=dict)
    """More endpoints by name, for `<role>_endpoint`."""
    privacy: PrivacySettings = PrivacySettings()


class SimulatorChoice(_Section):
    """How `simulator: auto` decided that a role is played, and what it is based on."""

    simulator: Literal["grounded", "voiced"]
    because: str
    f1_model: float | None = None
    """F1 of the facts that the model chose on the sample; null if it was not tried."""
    f1_matcher: float | None = None
    """F1 of our matcher on the same questions or orders."""
    f1_difference: float | None = None
    low: float | None = None
    """Of the 95% interval of the difference, as is `high`."""
    high: float | None = None
    rows: int = 0
    """Questions or orders that were answered."""
    requests: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cost_usd: float | None = 0.0
    """Null if the price is not known."""
    cached: bool = False
    """Whether it was decided before: then this run has not paid for it."""
    decided_at: str | None = None
    """Date and time in UTC; null if the model was not tried."""
    key: str | None = None
    """What the decision holds for, as a hash: model, endpoint, prompt, schema, sample, settings and version."""


class Settings(LLMFile, ClinicFile):
    """All settings. `run` has the keys of files and flags; what plays reads `planner`, `memory` and `ray`."""

    allow_hosts: tuple[str, ...] = Field(default=(), exclude=True)
    """From `--allow-host`; command line only, so a file cannot set it."""
    given: Given = Field(default=Given(), exclude=True, repr=False)
    """From the command line only, like `allow_hosts`."""
    beside_key: str | None = Field(default_factory=lambda data: data["openai"].base_url, exclude=True, repr=False)
    """The address in the file that holds `openai.api_key`, where that key may go."""

    simulators: dict[str, SimulatorChoice] = Field(default_factory=dict, exclude=True, repr=False)
    """What `simulator: auto` decided, by role; made before a run, so a file cannot set it."""

    @property
    def planner(self) -> PlannerSettings | None:
        run = self.run
        if not run.doctor_test_policy_enabled:
            return None
        return PlannerSettings(run.doctor_test_policy, run.doctor_test_policy_mode == "inline", run.planner_baseline)

    @property
    def memory(self) -> MemorySettings | None:
        run = self.run
        if run.memory is None:
            return None
        embedding = run.model_of("embedding") if run.memory_retrieval == "embeddings" else None
        return MemorySettings(run.memory, run.memory_retrieval, embedding, run.model_of("memory"))

    @property
    def ray(self) -> RaySettings | None:
        """None if this process does the work."""
        address = None if self.run.address == "local" else self.run.address  # Ray's word for what None means here
        return RaySettings(address, self.run.processes) if self.run.engine == "ray" else None

    @property
    def models(self) -> dict[str, RoleModel]:
        """The models by role; planner and synthesis use the doctor's unless another is named."""
        memory = self.memory
        further = {"memory": memory.picker, "embedding": memory.embedding} if memory else {}
        named = {role: self.run.model_of(role) for role in (*ROLES, "synthesis")} | further
        return {role: model for role, model in named.items() if model}

    def changed(self, **run: Any) -> Self:
        """The settings with other values for some keys of `run`."""
        return self.model_copy(update={"run": self.run.model_copy(update=run)})

    def with_runtime(self, **runtime: Any) -> Self:
        """The settings with other values for some keys of `llm.runtime`."""
        changed = self.llm.runtime.model_copy(update=runtime)
        return self.model_copy(update={"llm": self.llm.model_copy(update={"runtime": changed})})

    def public(self) -> dict[str, Any]:
        """The settings without secrets, as written to `config.used.json`."""
        unset = set(ALL_GENERATION).difference(self.run.generation)
        data = self.model_dump(mode="json", exclude={"openai": {"api_key"}, "privacy": True, "run": unset})
        for endpoint in (data["openai"], *data["endpoints"].values()):
            endpoint["base_url"] = without_credentials(endpoint["base_url"])
            if not endpoint["prices"]:
                del endpoint["prices"]
        return data | ({"privacy": self.privacy.model_dump(mode="json")} if self.privacy.hosts else {})


def with_limits(settings: Settings, token_limit: int | None, max_cost: float | None) -> Settings:
    """The settings with new limits; None keeps what they have."""
    given = {"token_limit": token_limit, "max_cost": max_cost}
    return settings.with_runtime(**{key: limit for key, limit in given.items() if limit is not None})


def without_credentials(url: str | None) -> str | None:
    """The address without what may be a secret: user, password, query, fragment, and a path with a key in it."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not an address)"
    hidden = "/(not shown: it may hold a key)" if privacy.key_in_path(parts.path) else None
    if is_unix(url):
        return f"unix:{hidden}" if hidden else url
    if not parts.netloc:  # no scheme: user and password are in the place of the path
        return hidden or url.partition("?")[0].partition("#")[0].rpartition("@")[2]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], hidden or parts.path, "", ""))


USED = "config.used.json"
"""File in a run's folder with the settings it was played with."""
_USED = "agentclinic"
"""The section that only `config.used.json` of our own runs has: what the program recorded about the run."""


def load_settings(
    config: Path | None = None,
    llm_config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    allow_hosts: Sequence[str] | None = None,
    given: Given | None = None,
) -> Settings:
    """Read both files (defaults if a path is None) and apply `overrides` to the `run` section.

    `config` may have the `openai` and `llm` sections too, as a run's `config.used.json` and the original's early
    configs do; they apply unless `llm_config` is given. Paths that are not next to a `config.used.json` are relative to
    the working folder, as in its run. `allow_hosts` and `given` come from the command line and cannot be set in a file;
    `overrides` are added to the flags of `given`.
    """
    data = read_json(config) if config else {}
    llm = load_llm_file(llm_config)
    folders = [config.parent if config else Path()]
    if config and config.name == USED:
        folders.append(Path())
    if isinstance(data, dict):
        own = {name: data[name] for name in LLMFile.model_fields if name in data}
        data = {name: section for name, section in data.items() if name != _USED and name not in own}
        if own and llm_config is None:
            llm = parse_settings(LLMFile, own, str(config))
    clinic = parse_settings(ClinicFile, data, str(config))
    keys = layered(clinic.run.model_dump(exclude_unset=True), overrides or {})
    run = parse_settings(RunSettings, keys, "")
    if run.measurement_cost_llm is not None:
        # FutureWarning: Python does not show a DeprecationWarning to users.
        replaced = "test_economics_log is filled from a price table, without a model (docs/scoring.md)"
        warnings.warn(f"run.measurement_cost_llm is ignored: {replaced}", FutureWarning, stacklevel=2)
    return Settings(
        run=run,
        datasets={name: str(_in_first(folders, path)) for name, path in clinic.datasets.items()},
        endpoints=clinic.endpoints,
        openai=llm.openai,
        llm=llm.llm,
        privacy=clinic.privacy,
        allow_hosts=tuple(allow_hosts or ()),
        given=(given or Given())._replace(flags=dict(overrides or {})),
    )


def has_llm_sections(path: Path) -> bool:
    """Whether a config has sections of `llm.config.json`, as `config.used.json` and the original's early configs do."""
    data = read_json(path)
    return isinstance(data, dict) and any(name in data for name in LLMFile.model_fields)


def load_llm_file(path: Path | None) -> LLMFile:
    """Read `llm.config.json`; the defaults if there is no file."""
    return parse_settings(LLMFile, read_json(path), str(path)) if path else LLMFile()


def places(folders: Iterable[Path], path: str) -> list[Path]:
    """The full paths that a path in a config file may stand for, each relative to one of the folders."""
    return list(dict.fromkeys((folder / expanded(path)).absolute() for folder in folders))


def _in_first(folders: Sequence[Path], path: str) -> Path:
    """The full path, so that a run resumed from another folder finds the same file; in the first folder that has it."""
    tried = places(folders, path)
    return next((place for place in tried if exists(place)), tried[-1])


def read_json(path: Path) -> Any:
    """Read a JSON file without its comments (keys that begin with `_`); every error names the file and what to do."""
    try:
        text = read_limited(path).decode("utf-8-sig")
        data = json.loads(text, parse_int=integer, object_hook=_without_comments)
        clean(data)  # refuses deep nesting; a path keeps bytes that are not UTF-8, or its file would not be found
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check the path") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path} line {error.lineno}: not valid JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):  # a number that is too long, or nesting that is too deep
        raise ConfigError(f"{path}: not readable JSON; shorten its numbers and its nesting") from None
    return data


def _without_comments(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if not key.startswith("_")}


Parsed = TypeVar("Parsed", bound=BaseModel)


def parse_settings(model: type[Parsed], data: Any, where: str) -> Parsed:
    """Read data as settings; an error lists what is wrong, key by key. `where` is empty for arguments and flags."""
    where = f"{where}: " if where else ""
    if not isinstance(data, dict):
        raise ConfigError(f"{where}expected a JSON object, found {kind_of(data)}")
    try:
        parsed = model.model_validate(data)
        misplaced = _holds_key(data)
    except ValidationError as error:
        what = "key" if where else "argument"
        raise ConfigError(where + "; ".join(_explain(model, e, what) for e in error.errors())) from None
    except RecursionError:
        raise ConfigError(f"{where}nested too deeply") from None
    except UnicodeEncodeError:  # half a surrogate pair in a key; in a value it may be part of a file's name
        raise ConfigError(f"{where}a key is not UTF-8 text; write it in plain letters") from None
    if misplaced:
        raise ConfigError(f"{where}an API key is in the wrong place; put it into openai.api_key or the environment")
    return parsed


def _holds_key(value: Any) -> bool:
    """Whether a key is in place of a name, or of a setting that is shown and recorded."""
    if isinstance(value, str):
        return privacy.holds_key(value)
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    # These two may hold one: they are never shown with it.
    return any(
        _holds_key(name) or (name not in ("api_key", "base_url") and _holds_key(held)) for name, held in children
    )


def _explain(model: type[BaseModel], error: Any, what: str) -> str:
    place = tuple(part for part in error["loc"] if isinstance(part, str))
    key = ".".join(privacy.shown_name(str(part)) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown {what} {key!r}{suggestion(place[-1], _known_keys(model, place[:-1]))}"
    # Without the value: it may be a secret in the wrong place.
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{key}: {message[0].lower()}{message[1:]}"


def _known_keys(model: type[BaseModel], place: tuple[str, ...]) -> Iterable[str]:
    current: Any = model
    for name in place:
        field = getattr(current, "model_fields", {}).get(name)
        if field is None:
            # A key of a mapping, such as endpoints.<name>.
            continue
        current = field.annotation
        arguments = getattr(current, "__args__", ())
        if arguments:
            current = arguments[-1]
    return list(getattr(current, "model_fields", {}))


NEAR = 0.65
"""How much of a word must be right. At 0.6, `limit` would be taken for `split`; at 0.5, `temperature` for
`moderator_llm` and `timeout` for `simulator`; at 0.75, `doctor_model` would no longer be taken for `doctor_llm`."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant; None if nothing is near."""
    plain = {name.lower().replace("-", "_"): name for name in known}
    asked = word.lower().replace("-", "_")
    near = difflib.get_close_matches(asked, plain, n=1, cutoff=NEAR)
    # Part of one name only, such as `demo` or `uncertain`.
    holding = [name for name in plain if len(asked) >= 4 and asked in name]
    return plain[near[0]] if near else plain[holding[0]] if len(holding) == 1 else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the nearest known word, or else all known words."""
    known = list(known)
    near = nearest(word, known)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; choose from {', '.join(sorted(known))}" if known else ""


def described(field: FieldInfo) -> str:
    """A field's docstring on one line."""
    return " ".join((field.description or "").split())


def choices(field: FieldInfo) -> list[str]:
    """The values that a field with a fixed set of them may have."""
    kinds = (field.annotation, *get_args(field.annotation))
    return [value for kind in kinds for value in get_args(kind) if isinstance(value, str)]


def variable(name: str) -> str | None:
    """A variable from the environment, or else from the user's `.env` (`find_up`)."""
    return _provided.get(name) or os.environ.get(name) or _in_dotenv(name) or None


def beside_in_dotenv(name: str, other: str) -> str | None:
    """Another variable in `.env`, if this one comes from there too."""
    return None if name in _provided or os.environ.get(name) else _in_dotenv(other)


def variables_in(path: Path) -> frozenset[str]:
    """The names of the variables that a `.env` file sets."""
    return frozenset(name for name, value in _dotenv(path.absolute()).items() if value)


_provided: dict[str, str] = {}


def provide(variables: Mapping[str, str]) -> None:
    """Use these variables in this process from now on; unlike its environment, no other process can read them."""
    _provided.update(variables)


def _in_dotenv(name: str) -> str | None:
    path = find_up(".env")
    return _dotenv(path.absolute()).get(name) if path else None


@cache
def _dotenv(path: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values

    try:
        return dict(dotenv_values(path))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
