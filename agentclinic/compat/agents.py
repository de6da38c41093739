"""The original's synchronous interface, a thin layer over the async core.

The agents keep `agent_hist` and answer through `inference_<role>`; their attributes have the original's names.
`query_model`, `compare_results`, `set_llm_config`, `load_llm_config` and the like are functions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from agentclinic import privacy, sync_bridge, trust
from agentclinic.cases.model import JSON, Case, Door, as_text
from agentclinic.clinic.doctor import Assignment, Dialogue, Doctor, Incoming, Observation
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import SHIPPED, Prompts, fill, joined, load_prompt, supported, user_prompts
from agentclinic.compat.policy_engine import DifferentialDiagnosisEngine, as_question
from agentclinic.compat.scenarios import Scenario
from agentclinic.config import LLMFile, RunSettings, Settings, parse_settings, read_json
from agentclinic.doctors.custom import DoctorView
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.doctors.planner.engine import PolicyDoctor
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.doctors.uncertainty.agent_config import UNCERTAINTY, load_agent
from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor
from agentclinic.doctors.uncertainty.store import current_store, set_current_session
from agentclinic.errors import ConfigError
from agentclinic.files import find_up
from agentclinic.models.base import Image, Message, Purpose, Request
from agentclinic.models.endpoint import OPENAI_URL
from agentclinic.models.gate import GateClosedError
from agentclinic.results.turn import Exchange, Turn, Usage
from agentclinic.results.utterance import DIAGNOSIS_READY, Action, parse_action
from agentclinic.runs.build import USUAL_LLM_CONFIG, LazyModel, Models, ambient_settings, set_ambient_settings
from agentclinic.scoring.costs import load_costs
from agentclinic.scoring.orders import price_of, waiting_factor

if TYPE_CHECKING:
    from openai import OpenAI


class ForeignScenario(Protocol):
    """A scenario class that is not ours, as in a checkout of the original."""

    def examiner_information(self) -> Any: ...
    def exam_information(self) -> Any: ...


AnyScenario = Scenario | DoctorView | ForeignScenario
"""One of our scenarios, the view of it that a custom doctor gets, or a foreign one."""


def load_llm_config(path: str | Path | None = None) -> dict[str, Any]:
    """Read `llm.config.json`, use its settings from now on, and return them; without a path, the user's (`find_up`)."""
    path = path or find_up(USUAL_LLM_CONFIG) or USUAL_LLM_CONFIG
    data = read_json(Path(path))
    _use(parse_settings(LLMFile, data, str(path)))
    return dict(data)


def set_llm_config(
    config: Mapping[str, Any] | None = None,
    *,
    responses: Mapping[str, Any] | None = None,
    runtime: Mapping[str, Any] | None = None,
) -> None:
    """Use these endpoint and request settings from now on; reserved keys are never sent.

    `config` is everything that `llm.config.json` may hold. `responses` and `runtime` replace one of its sections and
    keep the rest.
    """
    where = "set_llm_config"
    if config is None:
        known = ambient_settings()
        file = LLMFile(openai=known.openai, llm=known.llm)
    else:
        file = parse_settings(LLMFile, dict(config), where)
    given = {name: dict(value) for name, value in (("responses", responses), ("runtime", runtime)) if value is not None}
    llm = parse_settings(LLMFile, {"llm": given}, where).llm
    changes = {name: getattr(llm, name) for name in given}
    _use(file.model_copy(update={"llm": file.llm.model_copy(update=changes)}))


def _use(file: LLMFile) -> None:
    set_ambient_settings(Settings(openai=file.openai, llm=file.llm))


def init_openai_client(api_key: str | None = None, base_url: str | None = None) -> None:
    """Use this key and this address of the default endpoint from now on, and keep all other settings.

    Without a key or an address, that of the environment is used, as everywhere.
    """
    known = ambient_settings()
    given = parse_settings(LLMFile, {"openai": {"api_key": api_key, "base_url": base_url}}, "init_openai_client").openai
    openai = known.openai.model_copy(update={"api_key": given.api_key, "base_url": given.base_url})
    _use(LLMFile(openai=openai, llm=known.llm))


def get_openai_client() -> OpenAI:
    """A client of the package `openai`, which must be installed, for the default endpoint.

    What a script sends through it is neither recorded nor counted, so credentialed data may not use it.
    """
    if privacy.silent():
        raise GateClosedError("get_openai_client: its requests are not checked; for credentialed cases use query_model")
    try:
        from openai import Omit, OpenAI
    except ModuleNotFoundError:
        raise ConfigError(
            "get_openai_client needs the package openai; run `pip install openai`, or use query_model"
        ) from None
    settings = ambient_settings()
    used = Models(settings).at_endpoint("query", "any", None)
    assert used is not None, "every name but those of builtin models and people is at an endpoint"
    if used.key is None and used.base_url == OPENAI_URL:
        raise ConfigError("get_openai_client: set OPENAI_API_KEY, or OPENAI_BASE_URL to the address of a server")
    elsewhere = not trust.is_providers_own("OPENAI_API_KEY", used.base_url)
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines() if elsewhere else []
    left_out: dict[str, Any] = {line.partition(":")[0].strip(): Omit() for line in lines}
    client = OpenAI(
        api_key=used.key.get_secret_value() if used.key else "none",
        base_url=used.base_url,
        timeout=settings.llm.runtime.request_timeout,
        default_headers=left_out,
    )
    if elsewhere:  # headers that the package takes from the environment are for OpenAI only
        client.organization = client.project = None
    return client


def load_prompts_json(name: str) -> dict[str, Any]:
    """The content of `prompts/<name>.json`: the user's file, else the shipped one."""
    own = user_prompts()
    for path in (*([own / f"{name}.json"] if own else ()), SHIPPED / f"{name}.json"):
        if path.is_file():
            return dict(read_json(path))
    raise ConfigError(f"{own or 'prompts'}/{name}.json: no such file, and none of this name is shipped; add it")


@dataclass(frozen=True)
class TokenUsage:
    """The tokens of a reply, with the names of the chat API; what the endpoint does not report counts as 0."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@overload
def query_model(
    model_str: str,
    prompt: str,
    system_prompt: str,
    tries: int | None = ...,
    timeout: float | None = ...,
    image_requested: bool = ...,
    scene: AnyScenario | None = ...,
    max_prompt_len: int | None = ...,
    clip_prompt: bool | None = ...,
    return_usage: Literal[False] = ...,
) -> str: ...
@overload
def query_model(
    model_str: str,
    prompt: str,
    system_prompt: str,
    tries: int | None = ...,
    timeout: float | None = ...,
    image_requested: bool = ...,
    scene: AnyScenario | None = ...,
    max_prompt_len: int | None = ...,
    clip_prompt: bool | None = ...,
    *,
    return_usage: Literal[True],
) -> tuple[str, TokenUsage]: ...
def query_model(
    model_str: str,
    prompt: str,
    system_prompt: str,
    tries: int | None = None,
    timeout: float | None = None,
    image_requested: bool = False,
    scene: AnyScenario | None = None,
    max_prompt_len: int | None = None,
    clip_prompt: bool | None = None,
    return_usage: bool = False,
) -> str | tuple[str, TokenUsage]:
    """Ask a model once and return its text; with `return_usage`, also its tokens.

    Outside runs, the settings are those of the user's `llm.config.json` (`find_up`), or of `set_llm_config`. Inside a
    run, the request goes through the run's models.
    """
    given = {"tries": tries, "timeout": timeout, "max_prompt_len": max_prompt_len, "clip_prompt": clip_prompt}
    model = LazyModel(model_str, {name: value for name, value in given.items() if value is not None})
    images = _images(scene) if image_requested else ()
    messages = (Message("system", system_prompt), Message("user", prompt, images=images))
    reply = sync_bridge.call(model.reply, Request(Purpose.QUERY, messages))
    if not return_usage:
        return reply.text
    return reply.text, TokenUsage(reply.usage.input_tokens or 0, reply.usage.output_tokens or 0)


def compare_results(
    diagnosis: str, correct_diagnosis: str, moderator_llm: str, mod_pipe: object = None, *unused: object
) -> str:
    """Let a judge compare what a doctor said with the truth; returns `yes` or `no`, which the original's scripts test.

    As there, a model is shown the whole text. Those scripts pass further arguments, which have no effect.
    """
    del mod_pipe, unused
    judge = Judge(LazyModel(moderator_llm), load_prompt("moderator", user_prompts()), "original")
    asked = JudgePayload(parse_action(diagnosis).content, correct_diagnosis, utterance=diagnosis)
    verdict = sync_bridge.call(judge.judge, asked)
    return "yes" if verdict.correct else "no"


class _Counted:
    """The tokens an agent has used since it was built or reset. Tokens that an endpoint does not report count as 0."""

    prompt_tokens = 0
    completion_tokens = 0
    total_tokens = 0

    def _count(self, *turns: Turn) -> None:
        for usage in filter(None, (turn.usage for turn in turns)):
            self._add(usage.input_tokens or 0, usage.output_tokens or 0)

    def _add(self, sent: int, received: int) -> None:
        self.prompt_tokens += sent
        self.completion_tokens += received
        self.total_tokens += sent + received

    def _forget_tokens(self) -> None:
        self.prompt_tokens = self.completion_tokens = self.total_tokens = 0


class _Agent(_Counted):
    """What `PatientAgent` and `MeasurementAgent` share; attributes that are assigned count from the next call on."""

    bias_present: str | None = None
    pipe = None
    _made_of: tuple[Any, ...] = ()

    def __init__(self, scenario: Scenario, backend_str: str) -> None:
        self.scenario = scenario
        self.backend = backend_str
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue."""
        self._forget_tokens()
        self._core: Patient | Laboratory | None = None
        self._role()  # says now what is wrong with a setting

    def _role(self) -> Patient | Laboratory:
        """The role that answers, made again if something that it is made of was assigned."""
        made_of = (self.scenario, self.backend, self.bias_present)
        if self._core is None or made_of != self._made_of:
            before, self._core, self._made_of = self._core, self._new_core(), made_of
            self._core.history.replace(before.history.text if before else "")
        return self._core

    def _new_core(self) -> Patient | Laboratory:
        raise NotImplementedError

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line. It may be assigned."""
        return self._role().history.text

    @agent_hist.setter
    def agent_hist(self, text: str) -> None:
        self._role().history.replace(text)

    def system_prompt(self) -> str:
        return self._role().system_prompt

    def add_hist(self, hist_str: str) -> None:
        """Add something said to someone else to the history."""
        self._role().history.add("", hist_str)


class PatientAgent(_Agent):
    """The patient, one answer per call."""

    disease = ""

    def __init__(self, scenario: Scenario, backend_str: str = "builtin", bias_present: str | None = None) -> None:
        self.bias_present = _no_bias(bias_present)
        self.biases = list(load_prompt("patient", user_prompts()).biases)
        super().__init__(scenario, backend_str)

    def _new_core(self) -> Patient:
        prompt = load_prompt("patient", user_prompts())
        bias = supported(self.bias_present, prompt)
        return Patient(self.scenario.case, LazyModel(self.backend), prompt, bias=bias)

    @property
    def symptoms(self) -> JSON:
        """What the patient knows."""
        return self.scenario.patient_information()

    def generate_bias(self) -> str:
        """What the bias adds to the system prompt."""
        return _bias_text("patient", self.bias_present)

    def inference_patient(self, question: str) -> str:
        role = self._role()
        assert isinstance(role, Patient)
        answer = sync_bridge.call(role.answer, question)
        self._count(answer)
        return answer.text


class MeasurementAgent(_Agent):
    """The laboratory, one report per call."""

    presentation = ""

    def __init__(self, scenario: Scenario, backend_str: str = "builtin") -> None:
        super().__init__(scenario, backend_str)

    def _new_core(self) -> Laboratory:
        return Laboratory(self.scenario.case, LazyModel(self.backend), load_prompt("measurement", user_prompts()))

    @property
    def information(self) -> JSON:
        """What the laboratory knows."""
        return self.scenario.exam_information()

    def inference_measurement(self, question: str) -> str:
        """Report what the doctor's words request; the reply starts with `RESULTS:`."""
        role = self._role()
        assert isinstance(role, Laboratory)
        report = sync_bridge.call(role.report, parse_action(question).content, question)
        self._count(report)
        return report.text


class CostEstimatorAgent(_Counted):
    """Estimates prices and times of the tests that a doctor's words request, as JSON.

    A language model is shown the instructions, prices and factors in the user's `prompts/measurement_cost.json`;
    `builtin` looks the test up there, or else in our own table (docs/scoring.md).
    """

    pipe = None

    def __init__(self, scenario: AnyScenario, backend_str: str = "builtin") -> None:
        self.scenario = scenario
        self.backend = backend_str
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue."""
        self._forget_tokens()
        self.agent_hist = ""
        self.information: Any = self.scenario.exam_information()

    def inference_cost(self, question: str, resource_level: str = "normal") -> str:
        """The estimate: an object with `tests`, each with its name, price in dollars, minutes and waiting minutes."""
        if self.backend == "builtin":
            answer = _priced(parse_action(question).content, resource_level)
        else:
            asked = fill(
                load_prompts_json(_COSTS).get("user_prompt_template", "{question}\n{resource_level}"),
                agent_hist=self.agent_hist,
                question=question,
                resource_level=resource_level,
                scenario_info=as_text(self.information),
            )
            answer, used = query_model(self.backend, asked, self.system_prompt(), return_usage=True)
            self._add(used.prompt_tokens, used.completion_tokens)
        self.add_hist(f"{question}\n\n{answer}")
        return answer

    def system_prompt(self) -> str:
        """The file's instructions, followed by its prices and factors as JSON."""
        file = load_prompts_json(_COSTS)
        tables = [f"{key}: {json.dumps(file[key], ensure_ascii=False)}" for key in _COST_TABLES if key in file]
        suffix = str(file.get("system_presentation_suffix", "")).replace("{}", as_text(self.information))
        return joined(str(file.get("instructions") or file.get("system_base", "")), "\n".join(tables)) + suffix

    def add_hist(self, hist_str: str) -> None:
        self.agent_hist += hist_str + "\n\n"


_COSTS = "measurement_cost"
_COST_TABLES = ("known_costs", "scaling_rules")


def _priced(order: str, resource_level: str) -> str:
    costs = load_costs(user_prompts())
    own = costs.about([order], resource_level) if costs else None
    waiting = own.waiting if own else waiting_factor(resource_level)
    tests = [] if (test := price_of(order, own)) is None else [
        {
            "test_name": test.name,
            "estimate_currency": "USD",
            "estimate_cost": test.usd,
            "expected_duration_minutes": test.duration_minutes,
            "expected_wait_time_minutes": test.wait_minutes * waiting,
            "assumptions": test.source,
        }
    ]  # fmt: skip
    return json.dumps({"tests": tests})


_FINAL = re.compile(r"\s*This is the final question\. Please provide a diagnosis\.\s*")
"""What the original's script appends to the dialogue on the last turn."""
MEMORY = "Experience from earlier cases, which may not apply to this one:"
EARLIER = "The dialogue so far:"


class DoctorAgent(_Counted):
    """The plain doctor, one utterance per call; also a base class for custom doctors.

    With `use_test_policy`, it plans with `test_policy` (the name of a policy file, or its content), as in a run with
    `doctor_test_policy_enabled` and `policy_in_prompt`. Attributes may be assigned, also before or in place of
    `__init__`, and count from the next turn on.
    """

    scenario: AnyScenario
    backend = "builtin"
    MAX_INFS = 20
    infs = 0
    bias_present: str | None = None
    img_request = False
    presentation: Any = ""
    """What the doctor is told before the dialogue."""
    test_policy: str | Mapping[str, Any] | None = None
    use_test_policy = False
    policy_engine: DifferentialDiagnosisEngine | None = None
    """What plans; None if nothing does."""
    pipe = None
    _core: PlainDoctor | UncertaintyDoctor | None = None
    _made_of: tuple[Any, ...] = ()
    _assigned: str | None = ""
    """A history that the core does not have yet."""
    _earlier = ""
    """The last one that was assigned."""
    _usage: Usage | None = None
    _exchanges: tuple[Exchange, ...] = ()
    _said: Action | None = None

    def __init__(
        self,
        scenario: AnyScenario,
        backend_str: str = "builtin",
        max_infs: int = 20,
        bias_present: str | None = None,
        img_request: bool = False,
        test_policy: str | Mapping[str, Any] | None = None,
        use_test_policy: bool = False,
    ) -> None:
        self.scenario = scenario
        self.backend = backend_str
        self.MAX_INFS = max_infs
        self.bias_present = _no_bias(bias_present)
        self.img_request = img_request
        self.test_policy = test_policy
        self.use_test_policy = use_test_policy
        self.biases = list(load_prompt("doctor", user_prompts()).biases)
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue and start at the first turn."""
        self.presentation = self.scenario.examiner_information()
        self.infs = 0
        self.agent_hist = ""
        self._core, self._usage = None, None
        self._forget_tokens()
        if self.use_test_policy:
            policy = self.test_policy or "test_policy"
            file = load_policy(policy, user_prompts()).file if isinstance(policy, str) else policy
            self.policy_engine = DifferentialDiagnosisEngine(policy=file, assignment=self._assignment())
        self._doctor()  # says now what is wrong with a setting

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line. It may be assigned."""
        return self._core.history if self._core and self._assigned is None else self._assigned or ""

    @agent_hist.setter
    def agent_hist(self, text: str) -> None:
        self._assigned, self._earlier = text, text.strip()
        self._exchanges = ()
        self._said = Action("question", as_question(text)) if text.strip() else None

    def _doctor(self) -> PlainDoctor | UncertaintyDoctor:
        """The doctor that speaks, made again if something that it is made of was assigned."""
        made_of = (
            self.scenario, self.backend, self.MAX_INFS, self.bias_present, self.img_request, self.presentation,
            self.policy_engine,
        )  # fmt: skip
        if self._core is None or self._assigned is not None or made_of != self._made_of:
            before, core = self.agent_hist, self._new_core()
            if before.strip():
                core.hear(before.rstrip("\n"))
            self._core, self._assigned, self._made_of = core, None, made_of
            self._speaker: Doctor = PolicyDoctor(core, self.policy_engine) if self.policy_engine else core
        if isinstance(self._core, PlainDoctor):
            self._core.asked, self._core.instructions = self.infs, None
        return self._core

    def _new_core(self) -> PlainDoctor | UncertaintyDoctor:
        return PlainDoctor(self._assignment())

    def _assignment(self, *further: str, dialogue: Dialogue = "transcript") -> Assignment:
        prompts = Prompts({name: load_prompt(name, user_prompts()) for name in ("doctor", *further)})
        door, told = _door_of(self.scenario), self.presentation
        if told not in ("", door.told, self.scenario.examiner_information()):
            door = Door(_words(told), "")
        return Assignment(
            door,
            LazyModel(self.backend),
            prompts,
            limit=self.MAX_INFS,
            bias=supported(self.bias_present, prompts["doctor"]),
            images=self.img_request,
            dialogue=dialogue,
            policy=self.policy_engine.policy.for_doctor if self.policy_engine else "",
        )

    def generate_bias(self) -> str:
        """What the bias adds to the system prompt."""
        return _bias_text("doctor", self.bias_present)

    def system_prompt(self) -> str:
        """The doctor's instructions; a subclass may replace them."""
        return self._doctor().system_prompt

    def add_hist(self, hist_str: str) -> None:
        self._doctor().hear(hist_str)

    def inference_doctor(self, question: str, image_requested: bool = False, memory_context: str = "") -> str:
        """Say the next thing in reply to `question`; once the turns are used up, say so.

        `memory_context` is shown to the doctor in this turn only, as experience from earlier cases.
        """
        if self.infs >= self.MAX_INFS:
            return "Maximum inferences reached"
        return self._turn(question, image_requested, memory_context)

    def _turn(self, question: str, image_requested: bool, memory_context: str, *further: str) -> str:
        core = self._doctor()
        if isinstance(core, PlainDoctor) and type(self).system_prompt is not DoctorAgent.system_prompt:
            core.instructions = self.system_prompt()
        question, final = _FINAL.subn("", question)
        images = _images(self.scenario) if image_requested else ()
        exchanges = self._exchanges
        if self._said is None:
            opening = load_prompt("doctor", user_prompts()).text("opening")
            incoming = Incoming("", question or opening, images)
        else:
            incoming = Incoming(_SPEAKERS[self._said.kind], question, images)
            exchanges = (*exchanges, Exchange(self._said.kind, self._said.content, question))
        turn = self.infs + 1
        notes = joined(f"{MEMORY}\n{memory_context.strip()}" if memory_context.strip() else "", *further)
        seen = Observation(incoming, exchanges, turn, last=bool(final) or turn >= self.MAX_INFS, notes=notes)
        turns = sync_bridge.call(self._speaker.act, seen)
        said = turns[-1]
        # Only now, so that a failed call can be repeated.
        self.infs, self._exchanges, self._said = turn, exchanges, said.action
        self._count(*turns)
        self._usage = self._usage + said.usage if self._usage and said.usage else said.usage
        return said.text


class UncertaintyAwareDoctorAgent(DoctorAgent):
    """The uncertainty-aware doctor in place of `DoctorAgent`: with its own session, one tool call per utterance.

    `agent_type` names the entry in `agent_config.yaml`; its model plays the doctor unless `backend_str` names another.
    """

    def __init__(
        self,
        scenario: AnyScenario,
        backend_str: str | None = None,
        max_infs: int = 20,
        bias_present: str | None = None,
        img_request: bool = False,
        agent_type: str = UNCERTAINTY,
    ) -> None:
        self.agent_type = agent_type
        agent = load_agent(name=agent_type)
        self._agent = agent.settings
        if backend_str and agent.settings.model not in (backend_str, "builtin"):
            warnings.warn(
                f"backend_str {backend_str!r} overrides the model {agent.settings.model!r} in {agent.path}; leave it "
                "out to use the latter",
                stacklevel=2,
            )
        super().__init__(scenario, backend_str or self._agent.model, max_infs, bias_present, img_request)

    def reset(self) -> None:
        """Forget the dialogue and start a new session; the files of old sessions stay."""
        self.session_id = f"scenario_{_number_of(self.scenario)}_{int(time.time())}_{secrets.token_hex(3)}"
        super().reset()

    def _new_core(self) -> UncertaintyDoctor:
        core = UncertaintyDoctor(
            self._assignment("uncertainty", "synthesis", dialogue="chat"),
            self._agent,
            LazyModel(self._agent.synthesis_model or self.backend),
            current_store(),
            self.session_id,
        )
        if isinstance(self._core, UncertaintyDoctor):  # the session goes on
            core.begun, core.last_action = self._core.begun, self._core.last_action
        return core

    def inference_doctor(self, question: str, image_requested: bool = False, memory_context: str = "") -> str:
        """Say the next thing in reply to `question`; once the turns are used up, conclude."""
        set_current_session(self.session_id)
        if self.infs >= self.MAX_INFS and self._said and self._said.kind == "diagnosis":
            return f"{DIAGNOSIS_READY}: {self._said.content}"
        earlier = (f"{EARLIER}\n{self._earlier}",) if self._earlier else ()
        return self._turn(question, image_requested, memory_context, *earlier)

    @property
    def input_tokens(self) -> int | None:
        """Tokens sent so far, synthesis included; None if the endpoint does not report them."""
        return self._usage.input_tokens if self._usage else 0

    @property
    def output_tokens(self) -> int | None:
        """Tokens received so far; None if the endpoint does not report them."""
        return self._usage.output_tokens if self._usage else 0


def _images(scenario: AnyScenario | None) -> tuple[Image, ...]:
    address = getattr(scenario, "image_url", None)
    return (Image(address),) if address else ()


def _door_of(scenario: AnyScenario) -> Door:
    """What a doctor may know at the door; for a foreign scenario, its objective."""
    if isinstance(scenario, DoctorView):
        return scenario.door
    case = getattr(scenario, "case", None)
    if isinstance(case, Case):
        return case.door
    return Door(_words(scenario.examiner_information()), "")


def _words(told: Any) -> str:
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)


def _number_of(scenario: AnyScenario) -> str:
    case = getattr(scenario, "case", None)
    if isinstance(case, Case):
        return str(case.scenario_id)
    return hashlib.sha256(_door_of(scenario).objective.encode()).hexdigest()[:8]


_SPEAKERS = {"test": "Measurement", "images": "Clinic", "question": "Patient", "diagnosis": "Patient", "none": "Clinic"}


def _no_bias(name: str | None) -> str | None:
    """The bias; None for the original's ways to write that there is none."""
    return RunSettings(doctor_bias=name).doctor_bias


def _bias_text(role: str, name: str | None) -> str:
    prompt = load_prompt(role, user_prompts())
    return prompt.bias(supported(name, prompt))
