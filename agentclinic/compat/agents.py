"""The original's synchronous interface, a thin layer over the async core.

The agents keep `agent_hist` and answer through `inference_<role>`; `query_model`, `compare_results`, `set_llm_config`
and `load_llm_config` are functions.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from agentclinic import sync_bridge
from agentclinic.cases.model import Case, Door
from agentclinic.clinic.doctor import Assignment, Dialogue, Doctor, Incoming, Observation
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import Prompt, Prompts, load_prompt, supported, user_prompts
from agentclinic.compat.scenarios import Scenario
from agentclinic.config import LLMFile, RunSettings, Settings, parse_settings, read_json
from agentclinic.doctors.custom import DoctorView
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine, PolicyDoctor
from agentclinic.doctors.planner.settings import load_policy
from agentclinic.doctors.uncertainty.agent_config import UNCERTAINTY, load_agent
from agentclinic.doctors.uncertainty.doctor import UncertaintyDoctor
from agentclinic.doctors.uncertainty.store import current_store
from agentclinic.models.base import Image, Message, Purpose, Request
from agentclinic.results.turn import Exchange, Turn, Usage
from agentclinic.results.utterance import Action, parse_action
from agentclinic.runs.build import LazyModel, ambient_settings, set_ambient_settings


class ForeignScenario(Protocol):
    """A scenario class that is not ours, as in a checkout of the original."""

    def examiner_information(self) -> Any: ...


AnyScenario = Scenario | DoctorView | ForeignScenario
"""One of our scenarios, the view of it that a custom doctor gets, or a foreign one."""


def load_llm_config(path: str | Path = "llm.config.json") -> dict[str, Any]:
    """Read `llm.config.json`, use its settings from now on, and return them."""
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
) -> str:
    """Ask a model once and return its text.

    Outside runs, the settings are those of `llm.config.json` in the working folder, or of `set_llm_config`. Inside a
    run, the request goes through the run's models.
    """
    given = {"tries": tries, "timeout": timeout, "max_prompt_len": max_prompt_len, "clip_prompt": clip_prompt}
    model = LazyModel(model_str, {name: value for name, value in given.items() if value is not None})
    images = _images(scene) if image_requested else ()
    messages = (Message("system", system_prompt), Message("user", prompt, images=images))
    return sync_bridge.call(model.reply, Request(Purpose.QUERY, messages)).text


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
            self.prompt_tokens += usage.input_tokens or 0
            self.completion_tokens += usage.output_tokens or 0
        self.total_tokens = self.prompt_tokens + self.completion_tokens

    def _forget_tokens(self) -> None:
        self.prompt_tokens = self.completion_tokens = self.total_tokens = 0


class _Agent(_Counted):
    """What `PatientAgent` and `MeasurementAgent` share."""

    _core: Patient | Laboratory

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line."""
        return self._core.history.text

    def system_prompt(self) -> str:
        return self._core.system_prompt

    def add_hist(self, hist_str: str) -> None:
        """Add something said to someone else to the history."""
        self._core.history.add("", hist_str)


class PatientAgent(_Agent):
    """The patient, one answer per call."""

    _core: Patient

    def __init__(self, scenario: Scenario, backend_str: str = "builtin", bias_present: str | None = None) -> None:
        self._arguments = (scenario, backend_str, bias_present)
        self.reset()

    def reset(self) -> None:
        scenario, backend, bias = self._arguments
        prompt = load_prompt("patient", user_prompts())
        self._forget_tokens()
        self._core = Patient(scenario.case, LazyModel(backend), prompt, bias=_bias(bias, prompt))

    def inference_patient(self, question: str) -> str:
        answer = sync_bridge.call(self._core.answer, question)
        self._count(answer)
        return answer.text


class MeasurementAgent(_Agent):
    """The laboratory, one report per call."""

    _core: Laboratory

    def __init__(self, scenario: Scenario, backend_str: str = "builtin") -> None:
        self._arguments = (scenario, backend_str)
        self.reset()

    def reset(self) -> None:
        scenario, backend = self._arguments
        self._forget_tokens()
        self._core = Laboratory(scenario.case, LazyModel(backend), load_prompt("measurement", user_prompts()))

    def inference_measurement(self, question: str) -> str:
        """Report what the doctor's words request; the reply starts with `RESULTS:`."""
        report = sync_bridge.call(self._core.report, parse_action(question).content, question)
        self._count(report)
        return report.text


_FINAL = re.compile(r"\s*This is the final question\. Please provide a diagnosis\.\s*")
"""What the original's script appends to the dialogue on the last turn."""
MEMORY = "Experience from earlier cases, which may not apply to this one:"


class DoctorAgent(_Counted):
    """The plain doctor, one utterance per call; also a base class for custom doctors.

    With `use_test_policy`, it plans with the policy named by `test_policy`, as in a run with
    `doctor_test_policy_enabled`.
    """

    _core: PlainDoctor | UncertaintyDoctor

    def __init__(
        self,
        scenario: AnyScenario,
        backend_str: str = "builtin",
        max_infs: int = 20,
        bias_present: str | None = None,
        img_request: bool = False,
        test_policy: str | None = None,
        use_test_policy: bool = False,
    ) -> None:
        self.MAX_INFS = max_infs
        self._scenario = scenario
        self._backend = backend_str
        self._bias = _bias(bias_present, load_prompt("doctor", user_prompts()))
        self._images = img_request
        self._policy = load_policy(test_policy or "test_policy", user_prompts()).file if use_test_policy else None
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue and start at the first turn."""
        self._core = self._new_core()
        self._speaker: Doctor = self._core
        if self._policy:
            engine = DifferentialDiagnosisEngine(self._assignment(), self._policy)
            self._speaker = PolicyDoctor(self._core, engine)
        self._forget_tokens()
        self._turn = 0
        self._usage: Usage | None = None
        self._exchanges: tuple[Exchange, ...] = ()
        self._said: Action | None = None

    def _new_core(self) -> PlainDoctor | UncertaintyDoctor:
        return PlainDoctor(self._assignment())

    def _assignment(self, *further: str, dialogue: Dialogue = "transcript") -> Assignment:
        own = user_prompts()
        return Assignment(
            _door_of(self._scenario),
            LazyModel(self._backend),
            Prompts({name: load_prompt(name, own) for name in ("doctor", *further)}),
            limit=self.MAX_INFS,
            bias=self._bias,
            images=self._images,
            dialogue=dialogue,
        )

    @property
    def infs(self) -> int:
        return self._turn

    @property
    def agent_hist(self) -> str:
        return self._core.history

    def system_prompt(self) -> str:
        return self._core.system_prompt

    def add_hist(self, hist_str: str) -> None:
        self._core.hear(hist_str)

    def inference_doctor(self, question: str, image_requested: bool = False, memory_context: str = "") -> str:
        """Say the next thing in reply to `question`; once the turns are used up, say so.

        `memory_context` is shown to the doctor in this turn only, as experience from earlier cases.
        """
        if self._turn >= self.MAX_INFS:
            return "Maximum inferences reached"
        question, final = _FINAL.subn("", question)
        images = _images(self._scenario) if image_requested else ()
        exchanges = self._exchanges
        if self._said is None:
            opening = load_prompt("doctor", user_prompts()).text("opening")
            incoming = Incoming("", question or opening, images)
        else:
            incoming = Incoming(_SPEAKERS[self._said.kind], question, images)
            exchanges = (*exchanges, Exchange(self._said.kind, self._said.content, question))
        turn = self._turn + 1
        notes = f"{MEMORY}\n{memory_context.strip()}" if memory_context.strip() else ""
        seen = Observation(incoming, exchanges, turn, last=bool(final) or turn == self.MAX_INFS, notes=notes)
        turns = sync_bridge.call(self._speaker.act, seen)
        said = turns[-1]
        # Only now, so that a failed call can be repeated.
        self._turn, self._exchanges, self._said = turn, exchanges, said.action
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
        self._agent = load_agent(name=agent_type).settings
        super().__init__(scenario, backend_str or self._agent.model, max_infs, bias_present, img_request)

    def _new_core(self) -> UncertaintyDoctor:
        """A new doctor with a new session; the files of old sessions stay."""
        self.session_id = f"scenario_{_number_of(self._scenario)}_{int(time.time())}_{secrets.token_hex(3)}"
        return UncertaintyDoctor(
            self._assignment("uncertainty", "synthesis", dialogue="chat"),
            self._agent,
            LazyModel(self._agent.synthesis_model or self._backend),
            current_store(),
            self.session_id,
        )

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
    objective: Any = scenario.examiner_information()
    return Door(objective if isinstance(objective, str) else json.dumps(objective, ensure_ascii=False), "")


def _number_of(scenario: AnyScenario) -> str:
    case = getattr(scenario, "case", None)
    if isinstance(case, Case):
        return str(case.scenario_id)
    return hashlib.sha256(_door_of(scenario).objective.encode()).hexdigest()[:8]


_SPEAKERS = {"test": "Measurement", "images": "Clinic", "question": "Patient", "diagnosis": "Patient", "none": "Clinic"}


def _bias(name: str | None, prompt: Prompt) -> str | None:
    return supported(RunSettings(doctor_bias=name).doctor_bias, prompt)
