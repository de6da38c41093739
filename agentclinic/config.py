"""Reading settings: `agentclinic.config.json`, `llm.config.json`, the environment and flags.

Flags win over files, files over defaults. A key nobody knows is refused, naming the nearest known one.
The one-line docstrings under the fields are also the command line's help and the reference in docs/.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
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
)

from agentclinic.errors import ConfigError

ROLES = ("doctor", "patient", "measurement", "moderator")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class RunSettings(_Section):
    """The `run` section of `agentclinic.config.json`; each key is also a flag of `agentclinic run`."""

    dataset: str = "OpenOSCE_Demo"
    """Data set to evaluate: a name from `agentclinic data list`, from `datasets`, or a path to a case file."""
    num_scenarios: int | None = Field(default=None, ge=1)
    """Evaluate at most this many scenarios; all when not given."""
    offset: int = Field(default=0, ge=0)
    """Skip this many scenarios first."""
    scenarios: str | None = None
    """Evaluate exactly these rows, counted from 0, e.g. 3,7,10-20."""
    sample: int | None = Field(default=None, ge=1)
    """Draw this many scenarios at random, reproducibly by `seed`."""
    lockbox: bool = False
    """Also play the cases that are kept for one scoring per release (OpenOSCE's lockbox third)."""
    seed: int = 0
    """Seed of everything random: two runs with the same seed differ in `timing` only."""
    repeats: int = Field(default=1, ge=1)
    """Play every scenario this many times."""
    total_inferences: int = Field(default=20, ge=1)
    """Turns the doctor has; on the last one it is told to commit."""
    workers: int = Field(default=1, ge=1)
    """Scenarios played at the same time."""
    inf_type: Literal["llm", "human_doctor", "human_patient"] = "llm"
    """Who plays: models only, or a person at the terminal as doctor or patient."""
    doctor_llm: str = "builtin"
    """Doctor's model: builtin, human, replay:FILE, or a model name at the endpoint."""
    patient_llm: str = "builtin"
    """Patient's model."""
    measurement_llm: str = "builtin"
    """Measurement agent's model."""
    moderator_llm: str = "builtin"
    """Judge's model."""
    judge_relation: bool = False
    """Ask a language-model judge for the relation and its reason instead of Yes or No."""
    doctor_endpoint: str | None = None
    """Name in `endpoints` of the doctor's endpoint; the default endpoint when not given."""
    patient_endpoint: str | None = None
    """Name in `endpoints` of the patient's endpoint."""
    measurement_endpoint: str | None = None
    """Name in `endpoints` of the measurement agent's endpoint."""
    moderator_endpoint: str | None = None
    """Name in `endpoints` of the judge's endpoint."""
    doctor: str = "plain"
    """Which doctor: plain, uncertainty, a reference (see docs/scoring.md), or your own as FILE.py:Class."""
    agent_config: str | None = None
    """File that configures the uncertainty doctor; `agent/agent_config.yaml` when that exists, else the shipped one."""
    doctor_bias: str | None = None
    """Bias injected into the doctor's prompt; None for no bias."""
    patient_bias: str | None = None
    """Bias injected into the patient's prompt; None for no bias."""
    doctor_image_request: bool = False
    """Let the doctor ask for images with REQUEST IMAGES (NEJM and NEJM_Ext)."""
    missing_test: Literal["unavailable", "normal"] = "unavailable"
    """What the laboratory says of a test that is not in the chart."""
    silent_symptom: Literal["deny", "unknown"] = "deny"
    """What the patient says of a symptom on which the chart is silent."""
    elicit_confidence: bool = False
    """After the diagnosis, ask the doctor once, outside the dialogue, how sure it is."""
    doctor_test_policy_enabled: bool = False
    """Plan with the test policy engine: a scored differential and notes every turn, and an early finish."""
    doctor_test_policy: str = "test_policy"
    """Prompt file (without .json) that configures the test policy engine."""
    planner_baseline: Literal["door", "full"] = "door"
    """What the planner knows at first: what a doctor knows at the door, or the patient's whole script."""
    synthesis_llm: str | None = None
    """Model that turns the uncertainty doctor's facts into the diagnosis; the doctor's own when not given."""
    synthesis_endpoint: str | None = None
    """Name in `endpoints` of the synthesis model's endpoint; the doctor's when not given."""
    resource_level: str | None = None
    """Free text copied into every record, for runs that compare settings of care."""
    measurement_cost_llm: str | None = None
    """Deprecated: accepted and ignored."""
    prompts_dir: str | None = None
    """Folder with prompt files that win over the shipped ones, file by file; `prompts` when that exists."""
    record: str | None = None
    """Keep every request and reply in this file, for `replay:FILE`."""
    output_dir: str = "runs"
    """Folder in which the run's own folder is made."""

    @field_validator("doctor_bias", "patient_bias", mode="before")
    @classmethod
    def _no_bias(cls, value: object) -> object:
        return None if value in (None, "", "None", "none", "null") else value


class UnixParts(NamedTuple):
    """An address on a unix socket, e.g. unix:///run/llm.sock or unix:///run/llm.sock:/api/v1."""

    socket: str
    path: str
    """Where the API is within the server."""


def is_unix(address: str) -> bool:
    """Whether an address is a unix socket's."""
    return address.lower().startswith("unix:")


def unix_parts(address: str) -> UnixParts | None:
    """Socket and path of a `unix://` address; None for any other, `ValueError` for one that cannot be used."""
    if not is_unix(address):
        return None
    place, _, path = address[len("unix:") :].removeprefix("//").partition(":/")
    if not place.startswith("/") or re.search(r"[?#\0]", address):
        raise ValueError("must be unix:// and the full path of a socket, e.g. unix:///run/llm.sock")
    return UnixParts(place, f"/{path}" if path else "/v1")


def _address(value: object) -> object:
    """Refuse what is no address without repeating it: it may be a key. An address may hold a password, too."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str) and unix_parts(value.strip()):
        return value.strip()
    try:
        parts = urlsplit(value.strip()) if isinstance(value, str) else None
        usable = parts is None or (parts.scheme in ("http", "https") and bool(parts.hostname))
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be an http(s) address, e.g. http://127.0.0.1:8000/v1")
    return value.strip() if isinstance(value, str) else value


def _variable_name(value: str) -> str:
    """Refuse a key put where the name of its variable belongs: the name is shown and written down."""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", value):
        raise ValueError("must be the name of an environment variable in capitals, not the key itself")
    return value


_NOT_IN_RESPONSES = ("api_key", "authorization", "headers", "default_headers", "extra_headers", "extra_query")


def _without_secrets(responses: dict[str, Any]) -> dict[str, Any]:
    """Refuse what holds keys: these settings are written into every record."""
    found = [key for key in responses if key.lower().replace("-", "_") in _NOT_IN_RESPONSES]
    if found:
        raise ValueError(f"{found[0]} does not belong here; a key goes to openai.api_key or into the environment")
    return responses


class OpenAISettings(_Section):
    """The `openai` section of `llm.config.json`: the default endpoint."""

    api_key: SecretStr | None = None
    """Key of the default endpoint. Better: set OPENAI_API_KEY in the environment or in `.env`."""
    base_url: Annotated[str | None, BeforeValidator(_address)] = Field(default=None, repr=False)
    """Address of an OpenAI-compatible server, http(s):// or unix:///SOCKET; OpenAI's when not given."""


class RuntimeSettings(_Section):
    """The `llm.runtime` section of `llm.config.json`."""

    tries: int = Field(default=6, ge=1)
    """How often a request is tried before it counts as failed."""
    timeout: float = Field(default=30.0, ge=0)
    """The longest wait between two tries, in seconds."""
    request_timeout: float = Field(default=120.0, gt=0)
    """Time limit of one request, in seconds."""
    encounter_timeout: float | None = Field(default=None, gt=0)
    """Time limit of one whole encounter, in seconds."""
    token_limit: int | None = Field(default=None, ge=1)
    """End the run cleanly and resumably once this many tokens were used."""
    clip_prompt: bool = False
    """Shorten a prompt longer than `max_prompt_len`, keeping its instructions and its newest part."""
    max_prompt_len: int = Field(default=16384, ge=256)
    """Longest prompt in characters when `clip_prompt` is on."""
    llm_api: Literal["responses", "chat", "auto"] = "auto"
    """Which API the endpoint speaks; auto tries Responses first and remembers what worked."""


class LLMSettings(_Section):
    """The `llm` section of `llm.config.json`."""

    responses: Annotated[dict[str, Any], AfterValidator(_without_secrets)] = Field(default_factory=dict)
    """Merged into every request: max_output_tokens, reasoning, text, ... Never `model` or `input`."""
    runtime: RuntimeSettings = RuntimeSettings()


class EndpointSettings(_Section):
    """One entry of `endpoints` in `agentclinic.config.json`."""

    base_url: Annotated[str, BeforeValidator(_address)] = Field(repr=False)
    """Address of an OpenAI-compatible server."""
    api_key_env: Annotated[str, AfterValidator(_variable_name)] | None = Field(default=None, repr=False)
    """Environment variable that holds its key; no key is sent when not given."""


def host_name(name: str) -> str:
    """A host as `privacy.hosts` and `--allow-host` name it: in small letters, with a port where it is not the usual."""
    found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(:[0-9]{1,5})?", name.strip().lower())
    if not found:
        raise ValueError(
            "must be a host, or host:port, without http:// and path, e.g. llm.example.org or 10.0.0.7:8000"
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
    """Refuse numbers and times, which pydantic would take for days."""
    if not (value is None or type(value) is date or (isinstance(value, str) and re.fullmatch(r"[\d-]{10}", value))):
        raise ValueError("must be a day, as YYYY-MM-DD")
    return value


class Attestation(_Section):
    """One entry of `privacy.hosts` in `agentclinic.config.json`: what somebody answers for at a host."""

    zero_retention: StrictBool = False
    """The host keeps nothing of what is sent to it and of what it answers."""
    no_training: StrictBool = False
    """Nothing of it is used to train or improve a model."""
    no_human_review: StrictBool = False
    """No person at the host reads any of it, for abuse monitoring included."""
    attested_by: str | None = None
    """Who answers for this: a person, with the agreement it rests on."""
    attested_on: Annotated[date | None, BeforeValidator(_day)] = None
    """On which day, as YYYY-MM-DD."""


class PrivacySettings(_Section):
    """The `privacy` section of `agentclinic.config.json`."""

    hosts: Annotated[dict[str, Attestation], BeforeValidator(_by_host)] = Field(default_factory=dict)
    """Hosts, or host:port, that may get credentialed data when `--allow-host` names them, too (docs/privacy.md)."""


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
    """Further endpoints by name, for `<role>_endpoint`."""
    privacy: PrivacySettings = PrivacySettings()


class Settings(_Section):
    """Everything a run needs to know."""

    run: RunSettings = RunSettings()
    datasets: dict[str, str] = Field(default_factory=dict)
    endpoints: dict[str, EndpointSettings] = Field(default_factory=dict)
    openai: OpenAISettings = OpenAISettings()
    llm: LLMSettings = LLMSettings()
    privacy: PrivacySettings = PrivacySettings()
    allow_hosts: tuple[str, ...] = Field(default=(), exclude=True)
    """What `--allow-host` said: on the command line only, so no file can hold it."""

    def public(self) -> dict[str, Any]:
        """The settings as written to `config.used.json`: without secrets."""
        unused = {} if self.privacy.hosts else {"privacy": True}
        data = self.model_dump(mode="json", exclude={"openai": {"api_key"}, **unused})
        data["openai"]["base_url"] = without_credentials(self.openai.base_url)
        for endpoint in data["endpoints"].values():
            endpoint["base_url"] = without_credentials(endpoint["base_url"])
        return data


def without_credentials(url: str | None) -> str | None:
    """The address without user, password, query and fragment, any of which may hold a secret."""
    if url is None or is_unix(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not an address)"
    if not parts.netloc:  # no scheme: user and password stand where a path would
        return url.partition("?")[0].partition("#")[0].rpartition("@")[2]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


_USED = "agentclinic"
"""The section that only a run's `config.used.json` has: what the program wrote down about the run."""


def load_settings(
    config: Path | None = None,
    llm_config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    allow_hosts: Sequence[str] | None = None,
) -> Settings:
    """Read both files (defaults where a path is None) and lay `overrides` of the `run` section on top.

    `config` may be a run's `config.used.json`, whose `openai` and `llm` sections apply unless `llm_config` is given.
    `allow_hosts` is what `--allow-host` said; it has no place in a file.
    """
    data = read_json(config) if config else {}
    llm = load_llm_file(llm_config)
    if isinstance(data, dict) and _USED in data:
        used_llm = {name: section for name, section in data.items() if name in LLMFile.model_fields}
        data = {name: section for name, section in data.items() if name != _USED and name not in used_llm}
        if llm_config is None:
            llm = parse_settings(LLMFile, used_llm, str(config))
    clinic = parse_settings(ClinicFile, data, str(config))
    run = clinic.run.model_dump(exclude_unset=True) | dict(overrides or {})
    parsed = clinic.model_copy(update={"run": parse_settings(RunSettings, run, "the flags")})
    if parsed.run.measurement_cost_llm is not None:
        # FutureWarning: Python keeps DeprecationWarning from users.
        warnings.warn("run.measurement_cost_llm is deprecated and ignored", FutureWarning, stacklevel=2)
    folder = config.parent if config else Path()
    return Settings(
        run=parsed.run,
        datasets={name: str(_relative_to(folder, path)) for name, path in parsed.datasets.items()},
        endpoints=parsed.endpoints,
        openai=llm.openai,
        llm=llm.llm,
        privacy=parsed.privacy,
        allow_hosts=tuple(allow_hosts or ()),
    )


def is_used_config(path: Path) -> bool:
    """Whether a file is a run's `config.used.json`, which holds the `openai` and `llm` sections too."""
    data = read_json(path)
    return isinstance(data, dict) and _USED in data


def load_llm_file(path: Path | None) -> LLMFile:
    """Read `llm.config.json`; the defaults where there is none."""
    return parse_settings(LLMFile, read_json(path), str(path)) if path else LLMFile()


def _relative_to(folder: Path, path: str) -> Path:
    """Full path: a run resumed from another folder must find the same file."""
    return (folder / Path(path).expanduser()).absolute()


def read_json(path: Path) -> Any:
    """Read a JSON file; every way this can fail names the file and the mend."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; `agentclinic init DIR` writes a folder with one") from None
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path} line {error.lineno}: not valid JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None


Parsed = TypeVar("Parsed", bound=BaseModel)


def parse_settings(model: type[Parsed], data: Any, where: str) -> Parsed:
    """Read data as settings; what is wrong with it is named key by key."""
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected a JSON object, found {type(data).__name__}")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{where}: " + "; ".join(_explain(model, e) for e in error.errors())) from None


def _explain(model: type[BaseModel], error: Any) -> str:
    place = tuple(part for part in error["loc"] if isinstance(part, str))
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}{suggestion(place[-1], _known_keys(model, place[:-1]))}"
    # The value is left out on purpose: it may be a secret put in the wrong place.
    message = error["msg"].removeprefix("Value error, ")
    return f"{key}: {message[0].lower()}{message[1:]}"


def _known_keys(model: type[BaseModel], place: tuple[str, ...]) -> Iterable[str]:
    current: Any = model
    for name in place:
        field = getattr(current, "model_fields", {}).get(name)
        if field is None:
            # An entry of a mapping such as endpoints.<name>: its value model is the mapping's argument.
            continue
        current = field.annotation
        arguments = getattr(current, "__args__", ())
        if arguments:
            current = arguments[-1]
    return list(getattr(current, "model_fields", {}))


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown word: the nearest known one, or all of them when few."""
    known = list(known)
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in known], n=1, cutoff=0.5)
    if near:
        match = next(name for name in known if name.lower() == near[0])
        return f"; did you mean {match!r}?"
    return f"; known are {', '.join(sorted(known))}" if known else ""


def variable(name: str) -> str | None:
    """A variable of the environment, else of the file `.env` in the working folder."""
    return os.environ.get(name) or _dotenv(Path.cwd() / ".env").get(name) or None


@cache
def _dotenv(path: Path) -> dict[str, str | None]:
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    return dict(dotenv_values(path))
