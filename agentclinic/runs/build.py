"""Models by name: builtin, human, replay:FILE; anything else is a model at an endpoint.

At the end: models for code outside runs, such as a notebook, the synchronous interface, or a tool called directly.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import anyio
from pydantic import SecretStr

from agentclinic import privacy, sync_bridge, trust
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import (
    REPLAY,
    RoleModel,
    Settings,
    beside_in_dotenv,
    is_at_endpoint,
    is_builtin_or_person,
    is_person,
    load_settings,
    nearest,
    suggestion,
    variable,
)
from agentclinic.doctors.custom import is_custom
from agentclinic.errors import ConfigError
from agentclinic.files import find_up
from agentclinic.jsonl import JsonLines
from agentclinic.models.base import Model, Purpose, Reply, Request, cost_usd
from agentclinic.models.endpoint import OPENAI_URL, Clients, Endpoint, Send, Share
from agentclinic.models.faults import Host, require_address
from agentclinic.models.gate import Resolve, gate_for, system_addresses
from agentclinic.models.recording import Ongoing, Recorder, Replay, refuse_other_file
from agentclinic.models.wire import Api
from agentclinic.privacy import DataClass
from agentclinic.runs.plan import simulator_of
from agentclinic.trust import Trust


class ModelSource(Protocol):
    """Anything that finds a model by name."""

    def get(self, name: str, endpoint: str | None = None) -> Model: ...


current: ContextVar[ModelSource | None] = ContextVar("agentclinic_models", default=None)
"""The models of the run that this code belongs to; `query_model` uses them if there is one."""


def models_in_use(settings: Settings) -> tuple[str, ...]:
    """The roles that ask their model in a run with these settings; the planner's requests are the doctor's.

    The one place that knows it: the check, the budgets and the estimate of a dry run all start from here.
    """
    run = settings.run
    laboratory = load_prompt("measurement", Path(run.prompts_dir) if run.prompts_dir else None)
    # Voiced, our matcher reads the chart (`clinic.laboratory`).
    silent = {"measurement"} if simulator_of(settings, "measurement", laboratory) == "voiced" else set()
    return tuple(role for role in settings.models if role not in silent)


@dataclass(frozen=True)
class Used:
    """A model at an endpoint that a run will ask, and the roles it plays."""

    roles: tuple[str, ...]
    name: str
    base_url: str
    key: SecretStr | None
    endpoint: str | None = None
    """Its name in `endpoints`; None for the default endpoint."""
    optional: bool = False
    """A custom doctor may ask the model named for it, or not."""
    explicit: dict[str, Any] = field(default_factory=dict)
    """The generation settings that its requests have."""

    @property
    def setting(self) -> str:
        return _setting(self.endpoint)

    @property
    def host(self) -> str:
        """The endpoint's name in messages."""
        return Host(self.base_url, None).name


class Models:
    """The models of one run, opened when first asked for and closed together.

    `data_class` is that of everything sent to them, by default the strictest seen in this process. Credentialed data
    goes only where the gate allows, and recordings of it are readable by their owner only. `person` plays in place of
    someone at the terminal. With an `ongoing` recording, an encounter that was stopped continues where it was; `person`
    itself keeps what the person said. `share` makes limits on requests that hold across processes.
    """

    def __init__(
        self,
        settings: Settings,
        data_class: DataClass | None = None,
        *,
        resolve: Resolve = system_addresses,
        person: Model | None = None,
        ongoing: Ongoing | None = None,
        share: Share | None = None,
    ) -> None:
        self._share = share
        self._person = person
        self._ongoing = ongoing
        self.gate = gate_for(settings, privacy.strictest_seen() if data_class is None else data_class, resolve=resolve)
        self._settings = settings
        self._by_role = settings.models
        self._stack = AsyncExitStack()
        self._chosen: dict[tuple[str, str | None], Model] = {}
        self._models: dict[tuple[str, str | None], Model] = {}
        self._sink: JsonLines | None = None

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        clients = Clients(self._settings.llm, workers=self._settings.run.workers, gate=self.gate, share=self._share)
        self._clients = await self._stack.enter_async_context(clients)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def settle(self, settings: Settings) -> None:
        """Use the settings with what was decided before the run; they name the same models."""
        self._settings = settings

    def in_use(self, roles: Iterable[str] | None = None) -> tuple[Used, ...]:
        """The models at endpoints that the run will ask, each once; builtin, people and recordings are not asked."""
        found: dict[tuple[str, str, str], Used] = {}
        for role in models_in_use(self._settings) if roles is None else roles:
            used = self.at_endpoint(role, *self.model_for(role))
            if used is not None:
                key = (used.name, used.base_url, used.key.get_secret_value() if used.key else "")
                before = found.get(key)
                if before is not None:
                    roles_of, optional = (*before.roles, role), before.optional and used.optional
                    used = replace(used, roles=roles_of, optional=optional, explicit=before.explicit | used.explicit)
                found[key] = used
        return tuple(found.values())

    def at_endpoint(self, role: str, name: str, endpoint: str | None) -> Used | None:
        """The model of that name, if it is at an endpoint; refused if its key may not go there."""
        if not is_at_endpoint(name):
            return None
        base_url, key = self._address(endpoint)
        optional = role == "doctor" and self.custom_doctor
        explicit = self._settings.run.generation_of(role)
        return Used((role,), name, base_url or OPENAI_URL, key, endpoint, optional, explicit)

    def prepare(self) -> None:
        """Choose every role's model now, so that a missing key or file is reported before anything happens."""
        self.admit()
        for role in self._settings.models:
            self.for_role(role)

    def admit(self) -> None:
        """Refuse models that cannot be used, such as one at an address closed to this data; writes nothing."""
        if self._settings.run.record is not None:
            refuse_other_file(Path(self._settings.run.record))
        for model in self._settings.models.values():
            self._choice(*model)

    def get(self, name: str, endpoint: str | None = None) -> Model:
        """The model of that name at that endpoint; the same object for the same arguments."""
        key = (name, endpoint)
        if key not in self._models:
            model, sink = self._choice(name, endpoint), self._recording()
            if self._ongoing and model is not self._person:
                model = self._ongoing.wrap(model)
            self._models[key] = Recorder(model, sink, self.gate.data_class) if sink else model
        return self._models[key]

    def _recording(self) -> JsonLines | None:
        record = self._settings.run.record
        if record is not None and self._sink is None:
            # The journal must survive a power cut; a recording only has to survive a crash of this process.
            sink = JsonLines(Path(record), durable=False, private=self.gate.closed)
            self._sink = self._stack.enter_context(sink)
        return self._sink

    def _choice(self, name: str, endpoint: str | None) -> Model:
        key = (name, endpoint)
        if key not in self._chosen:
            self._chosen[key] = self._choose(name, endpoint)
        return self._chosen[key]

    def for_role(self, role: str) -> Model:
        return self.get(*self.model_for(role))

    def through(self, role: str, api: Api) -> Callable[[Send], Endpoint]:
        """Makes models at a role's endpoint that send requests in another way; each knows only its own requests."""
        name, endpoint = self.model_for(role)
        base_url, key = self._address(endpoint)
        llm, explicit = self._settings.with_runtime(llm_api=api).llm, self._settings.run.generation_of
        where: dict[str, Any] = {"base_url": base_url, "api_key": key}
        return lambda send: Clients(llm, gate=self.gate).endpoint(name, **where, send=send).always(explicit)

    def model_for(self, role: str) -> RoleModel:
        """Name and endpoint of a role's model; planner and synthesis use the doctor's unless another is named."""
        return self._by_role.get(role, self._by_role["doctor"])

    def simulates(self, role: str) -> bool:
        """Whether a language model plays a role, or a recording of one: not builtin, and not a person."""
        name, endpoint = self.model_for(role)
        model = self._choice(name, endpoint)
        names = model.models_for(Purpose(role)) if isinstance(model, Replay) else {name}
        return not any(map(is_builtin_or_person, names))

    @property
    def custom_doctor(self) -> bool:
        """Whether the doctor is a user's program, which may ask other models than the one named for it, or none."""
        return is_custom(self._settings.run.doctor)

    def cost_usd(self, role: str, usage: Mapping[str, int | None]) -> float | None:
        """What a role's tokens cost in this run: nothing for builtin and people, None if unknown."""
        return self.price(*self.model_for(role), usage)

    def price(self, name: str, endpoint: str | None, usage: Mapping[str, int | None]) -> float | None:
        """What tokens of a model cost: by the user's own prices, else by the list price; None if unknown."""
        if is_builtin_or_person(name):
            return 0.0
        if name.startswith(REPLAY):
            return None
        prices = (self._settings.endpoints[endpoint] if endpoint else self._settings.openai).prices
        return cost_usd(name, self._base_url(endpoint) or OPENAI_URL, usage, prices)

    def host(self, endpoint: str | None) -> str:
        """The name of an endpoint's host in messages."""
        return Host(self._base_url(endpoint) or OPENAI_URL, None).name

    def _choose(self, name: str, endpoint: str | None) -> Model:
        if not is_at_endpoint(name):
            if endpoint:
                raise ConfigError(f"{name} needs no endpoint; leave out {endpoint!r} or name a model there")
            if is_person(name):
                from agentclinic.runs.human import Human

                return self._person or Human(undo=not is_custom(self._settings.run.doctor), name=name)
            if name.startswith(REPLAY):
                return self._replay(Path(name.removeprefix(REPLAY)))
            from agentclinic.builtin import Builtin

            return Builtin(name)
        self.gate.check(self._base_url(endpoint) or OPENAI_URL, f"{_setting(endpoint)}.base_url")
        base_url, key = self._address(endpoint)
        if key is None and base_url is None:
            near = nearest(name, ("builtin", "human"))
            if near:
                raise ConfigError(f"there is no model {name!r} without a key or a server; did you mean {near!r}?")
            raise ConfigError(
                f"model {name!r} needs a key or a server: set OPENAI_API_KEY, or OPENAI_BASE_URL to the address of a "
                "server, in the environment or in .env (or openai.base_url in llm.config.json); `builtin` needs "
                "neither, and `agentclinic demo-server` serves a model without a key"
            )
        return self._clients.endpoint(name, base_url=base_url, api_key=key).always(self._settings.run.generation_of)

    def _replay(self, path: Path) -> Replay:
        replay = Replay(path)
        if replay.data_class is DataClass.CREDENTIALED and not self.gate.closed:
            # Its replies would go to the models of other roles, which may be anywhere.
            raise ConfigError(
                f"{REPLAY}{path} is a recording of credentialed data, but the cases of this run are "
                f"{self.gate.data_class}; replay it with the data set it was made from"
            )
        return replay

    def _base_url(self, endpoint: str | None) -> str | None:
        """The address of an endpoint; None for OpenAI's own."""
        if endpoint is None:
            return self._settings.openai.base_url or variable("OPENAI_BASE_URL")
        known = self._settings.endpoints
        if endpoint not in known:
            raise ConfigError(f"unknown endpoint {endpoint!r}{suggestion(endpoint, known) or '; `endpoints` is empty'}")
        return known[endpoint].base_url

    def _address(self, endpoint: str | None) -> tuple[str | None, SecretStr | None]:
        """Address and key of an endpoint; refused if only a file says that the key goes there."""
        base_url, keys = self._base_url(endpoint), self._keys(endpoint)
        require_address(base_url or OPENAI_URL)
        address = trust.plain(base_url or OPENAI_URL)
        chosen = next((key for key in keys if self._may_go(key, address)), None)
        if chosen is None and keys:
            chosen, setting = keys[0], f"{_setting(endpoint)}.base_url"
            others = {e.api_key_env for e in self._settings.endpoints.values() if trust.plain(e.base_url) == address}
            names = ", ".join(sorted({chosen.name, *filter(None, others)}))  # --trust-address holds for all of them
            trust.confirm(
                Trust(chosen.name, address),
                self._settings.given,
                f"Send your key {chosen.name} to {address}, which {setting[:60]} names?",
                f"{setting}: your key {names} would go to {address}, which only a file names and you have not "
                f"confirmed. If you trust it, add --trust-address {address}, or set OPENAI_BASE_URL to it; this is "
                f"remembered.{'' if endpoint else ' Or put key and address into the same file'} (docs/others-runs.md)",
                asking=current.get() is None,  # not in the middle of a run
            )
        return base_url, chosen.value if chosen else None

    def _keys(self, endpoint: str | None) -> list[_Key]:
        """The keys for an endpoint, the preferred one first."""
        if endpoint is not None:
            name = self._settings.endpoints[endpoint].api_key_env
            if name and not variable(name):
                raise ConfigError(f"endpoint {endpoint!r}: set its key in the environment variable {name} or in .env")
            return [_Key(name, SecretStr(variable(name) or ""), None)] if name else []
        name, own = "OPENAI_API_KEY", self._settings.openai.api_key
        found = (
            _Key(name, SecretStr(variable(name) or ""), beside_in_dotenv(name, "OPENAI_BASE_URL")),
            _Key("openai.api_key", own or SecretStr(""), self._settings.beside_key),
        )
        return [key for key in found if key.value.get_secret_value()]

    def _may_go(self, key: _Key, address: str) -> bool:
        """Whether a key may go to an address without a question."""
        claim, given = Trust(key.name, address), self._settings.given
        if trust.is_providers_own(*claim) or (key.beside and trust.plain(key.beside) == address):
            trust.allow(claim)
            return True
        typed = (*given.addresses, os.environ.get("OPENAI_BASE_URL", ""))
        return trust.is_trusted(claim, given, named=address in map(trust.plain, filter(None, typed)))


class _Key(NamedTuple):
    name: str
    value: SecretStr
    beside: str | None
    """The address in the file that holds the key."""


def _setting(endpoint: str | None) -> str:
    return f"endpoints.{endpoint}" if endpoint else "openai"


USUAL_LLM_CONFIG = "llm.config.json"
_ambient: Settings | None = None
_open: dict[str, Models] = {}
_opening = anyio.Lock()


def ambient_settings() -> Settings:
    """The settings used outside runs: those set, else the user's `llm.config.json` (`find_up`), else the defaults."""
    return _ambient or load_settings(llm_config=find_up(USUAL_LLM_CONFIG))


def set_ambient_settings(settings: Settings | None) -> None:
    """Use these settings outside runs from now on; None goes back to the file of the working folder."""
    global _ambient
    _ambient = settings


class LazyModel:
    """A model found by name when it is asked: one of the run's models, or its own outside runs."""

    def __init__(self, name: str, runtime: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self._runtime = dict(runtime or {})
        """Changes to `llm.runtime`, outside runs only."""

    async def reply(self, request: Request) -> Reply:
        models = current.get() or await shared_models(ambient_settings().with_runtime(**self._runtime))
        return await models.get(self.name).reply(request)


async def shared_models(settings: Settings, data_class: DataClass | None = None) -> Models:
    """The models of these settings outside runs, opened once and closed when the process ends.

    If the class of the data is not known, the strictest class seen in this process applies.
    """
    data_class = data_class or privacy.strictest_seen()
    secret = settings.openai.api_key and settings.openai.api_key.get_secret_value()
    key = f"{data_class} {settings.model_dump_json()} {secret}"
    async with _opening:
        if key not in _open:
            if not _open:
                atexit.register(sync_bridge.call, _close)
            _open[key] = await Models(settings, data_class).__aenter__()
        return _open[key]


async def _close() -> None:
    for models in _open.values():
        await models.__aexit__(None, None, None)
    _open.clear()


sync_bridge.after_fork(_open.clear)  # they belong to the loop of the other process
