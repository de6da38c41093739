"""The seed's synchronous interface: thin doors onto the async core.

`DoctorAgent`, `PatientAgent` and `MeasurementAgent` keep `agent_hist` and answer through
`inference_<role>`; `query_model`, `compare_results`, `set_llm_config` and `load_llm_config` are functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentclinic import portal
from agentclinic.agents.doctor import Heard, PlainDoctor
from agentclinic.agents.prompts import load_prompt
from agentclinic.agents.protocol import parse_action
from agentclinic.agents.roles import Measurement, Moderator, Patient
from agentclinic.cases.model import AnswerKey
from agentclinic.cases.scenarios import Scenario
from agentclinic.config import LLMFile, Settings, parse_settings, read_json
from agentclinic.models.base import Image, Message, Model, Purpose, Reply, Request
from agentclinic.models.payloads import Exchange
from agentclinic.models.select import Models, current

_settings = Settings()
_open: dict[str, Models] = {}


def load_llm_config(path: str | Path = "llm.config.json") -> dict[str, Any]:
    """Read `llm.config.json`; hand the result to `set_llm_config`."""
    data = read_json(Path(path))
    parse_settings(LLMFile, data, str(path))
    return dict(data)


def set_llm_config(config: Mapping[str, Any]) -> None:
    """Use these endpoint and request settings from now on; reserved request keys are dropped."""
    global _settings
    parsed = parse_settings(LLMFile, dict(config), "set_llm_config")
    responses = {k: v for k, v in parsed.llm.responses.items() if k not in ("model", "input")}
    _settings = Settings(openai=parsed.openai, llm=parsed.llm.model_copy(update={"responses": responses}))


async def _model(name: str, settings: Settings) -> Model:
    running = current.get()
    if running is not None:
        return running.get(name)
    key = settings.model_dump_json() + str(settings.openai.api_key and settings.openai.api_key.get_secret_value())
    if key not in _open:
        _open[key] = await Models(settings).__aenter__()
    return _open[key].get(name)


def _ask(request: Request, name: str, settings: Settings | None = None) -> Reply:
    async def ask() -> Reply:
        model = await _model(name, settings or _settings)
        return await model.reply(request)

    return portal.call(ask, inside_run=current.get() is not None)


def query_model(
    model_str: str,
    prompt: str,
    system_prompt: str,
    tries: int | None = None,
    timeout: float | None = None,
    image_requested: bool = False,
    scene: Scenario | None = None,
    max_prompt_len: int | None = None,
    clip_prompt: bool | None = None,
) -> str:
    """Ask a model once and return its text. Inside a run it goes through that run's models."""
    given = {"tries": tries, "timeout": timeout, "max_prompt_len": max_prompt_len, "clip_prompt": clip_prompt}
    runtime = _settings.llm.runtime.model_copy(update={k: v for k, v in given.items() if v is not None})
    settings = _settings.model_copy(update={"llm": _settings.llm.model_copy(update={"runtime": runtime})})
    images = (Image(scene.image_url),) if image_requested and scene and scene.image_url else ()
    messages = (Message("system", system_prompt), Message("user", prompt, images=images))
    return _ask(Request(Purpose.QUERY, messages), model_str, settings).text


def compare_results(diagnosis: str, correct_diagnosis: str, moderator_llm: str, mod_pipe: object = None) -> str:
    """Have a moderator compare two diagnoses: `Yes` or `No`. `mod_pipe` is ignored."""
    del mod_pipe

    async def judge() -> str:
        moderator = Moderator(await _model(moderator_llm, _settings), load_prompt("moderator", _own_prompts()))
        verdict = await moderator.judge(parse_action(diagnosis).content, correct_diagnosis, AnswerKey())
        return "Yes" if verdict.yes else "No"

    return portal.call(judge, inside_run=current.get() is not None)


def _own_prompts() -> Path | None:
    own = Path("prompts")
    return own if own.is_dir() else None


class _Lazy:
    """A model chosen by name and opened when first spoken to."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def reply(self, request: Request) -> Reply:
        return await (await _model(self.name, _settings)).reply(request)


class PatientAgent:
    """The patient, one answer per call."""

    def __init__(self, scenario: Scenario, backend_str: str = "builtin", bias_present: str | None = None) -> None:
        self._arguments = (scenario, backend_str, bias_present)
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue."""
        scenario, backend, bias = self._arguments
        prompt = load_prompt("patient", _own_prompts())
        self._core = Patient(scenario.case, _Lazy(backend), prompt, bias=_bias(bias))

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line."""
        return self._core.history.text

    def system_prompt(self) -> str:
        """The patient's instructions."""
        return self._core.system_prompt

    def inference_patient(self, question: str) -> str:
        """Answer the doctor's words."""
        return portal.call(self._core.answer, question, inside_run=current.get() is not None).text

    def add_hist(self, hist_str: str) -> None:
        """Hear something said to somebody else."""
        self._core.overhear(hist_str)


class MeasurementAgent:
    """The measurement desk, one report per call."""

    def __init__(self, scenario: Scenario, backend_str: str = "builtin") -> None:
        self._arguments = (scenario, backend_str)
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue."""
        scenario, backend = self._arguments
        self._core = Measurement(scenario.case, _Lazy(backend), load_prompt("measurement", _own_prompts()))

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line."""
        return self._core.history.text

    def system_prompt(self) -> str:
        """The desk's instructions."""
        return self._core.system_prompt

    def inference_measurement(self, question: str) -> str:
        """Report what the doctor's words request; the reply starts with `RESULTS:`."""
        request = parse_action(question).content
        return portal.call(self._core.report, request, question, inside_run=current.get() is not None).text

    def add_hist(self, hist_str: str) -> None:
        """Hear something said to somebody else."""
        self._core.overhear(hist_str)


class DoctorAgent:
    """The plain doctor, one utterance per call."""

    def __init__(
        self,
        scenario: Scenario,
        backend_str: str = "builtin",
        max_infs: int = 20,
        bias_present: str | None = None,
        img_request: bool = False,
    ) -> None:
        self.MAX_INFS = max_infs
        self._arguments = (scenario, backend_str, bias_present, img_request)
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue and start at the first turn."""
        scenario, backend, bias, images = self._arguments
        self.infs = 0
        self._prompt = load_prompt("doctor", _own_prompts())
        self._core = PlainDoctor(
            scenario.case.door,
            _Lazy(backend),
            self._prompt,
            limit=self.MAX_INFS,
            bias=_bias(bias),
            images=images,
        )
        self._exchanges: list[Exchange] = []
        self._said = ""

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line."""
        return self._core.history

    def system_prompt(self) -> str:
        """The doctor's instructions."""
        return self._core.system_prompt

    def inference_doctor(self, question: str, image_requested: bool = False) -> str:
        """Say the next thing after hearing `question`; empty when the turns are used up."""
        if self.infs >= self.MAX_INFS:
            return "Maximum inferences reached"
        scenario = self._arguments[0]
        if self._said:
            action = parse_action(self._said)
            self._exchanges.append(Exchange(action.kind, action.content, question))
        shown = (Image(scenario.image_url),) if image_requested and scenario.image_url else ()
        heard = (
            Heard(_speaker(self._said), question, shown)
            if self._said
            else Heard("", question or self._prompt.text("opening"))
        )
        self.infs += 1
        turn, last = self.infs, self.infs == self.MAX_INFS

        async def act() -> Reply:
            return await self._core.act(heard, tuple(self._exchanges), turn=turn, last=last)

        self._said = portal.call(act, inside_run=current.get() is not None).text
        return self._said

    def add_hist(self, hist_str: str) -> None:
        """Take something into the history."""
        self._core.hear(hist_str)


def _speaker(said: str) -> str:
    return {"test": "Measurement", "images": "Clinic"}.get(parse_action(said).kind, "Patient")


def _bias(name: str | None) -> str | None:
    return None if name in (None, "", "None") else name


__all__ = [
    "DoctorAgent",
    "MeasurementAgent",
    "PatientAgent",
    "compare_results",
    "load_llm_config",
    "query_model",
    "set_llm_config",
]
