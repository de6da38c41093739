"""The seed's synchronous interface: thin doors onto the async core.

`DoctorAgent`, `PatientAgent` and `MeasurementAgent` keep `agent_hist` and answer through
`inference_<role>`; `query_model`, `compare_results`, `set_llm_config` and `load_llm_config` are functions.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agentclinic import portal, privacy
from agentclinic.agents.doctor import Heard, PlainDoctor
from agentclinic.agents.own import DoctorView
from agentclinic.agents.prompts import load_prompt
from agentclinic.agents.protocol import Action, parse_action
from agentclinic.agents.roles import Measurement, Moderator, Patient
from agentclinic.cases.scenarios import Scenario
from agentclinic.config import LLMFile, RunSettings, Settings, parse_settings, read_json
from agentclinic.models.base import Image, Message, Purpose, Reply, Request
from agentclinic.models.payloads import Exchange
from agentclinic.models.select import Models, current

_settings = Settings()
_open: dict[str, Models] = {}
_opening = anyio.Lock()

AnyScenario = Scenario | DoctorView
"""A scenario as a loader gives it, or the view of it that a user's doctor gets."""


def load_llm_config(path: str | Path = "llm.config.json") -> dict[str, Any]:
    """Read `llm.config.json`; hand the result to `set_llm_config`."""
    data = read_json(Path(path))
    parse_settings(LLMFile, data, str(path))
    return dict(data)


def set_llm_config(config: Mapping[str, Any]) -> None:
    """Use these endpoint and request settings from now on; reserved keys among them reach no request."""
    global _settings
    parsed = parse_settings(LLMFile, dict(config), "set_llm_config")
    _settings = Settings(openai=parsed.openai, llm=parsed.llm)


class _Named:
    """A model chosen by name when it is spoken to: within a run one of the run's, else one of our own."""

    def __init__(self, name: str, settings: Settings | None = None) -> None:
        self.name = name
        self._settings = settings

    async def reply(self, request: Request) -> Reply:
        models = current.get() or await _models(self._settings or _settings)
        return await models.get(self.name).reply(request)


async def _models(settings: Settings) -> Models:
    # Code that runs outside any run of ours says nothing of its data: the strictest met in this process counts.
    data_class = privacy.met()
    secret = settings.openai.api_key and settings.openai.api_key.get_secret_value()
    key = f"{data_class} {settings.model_dump_json()} {secret}"
    async with _opening:
        if key not in _open:
            if not _open:
                atexit.register(portal.call, _close)
            _open[key] = await Models(settings, data_class).__aenter__()
        return _open[key]


async def _close() -> None:
    for models in _open.values():
        await models.__aexit__(None, None, None)
    _open.clear()


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
    """Ask a model once and return its text. Inside a run it goes through that run's models."""
    given = {"tries": tries, "timeout": timeout, "max_prompt_len": max_prompt_len, "clip_prompt": clip_prompt}
    runtime = _settings.llm.runtime.model_copy(update={k: v for k, v in given.items() if v is not None})
    settings = _settings.model_copy(update={"llm": _settings.llm.model_copy(update={"runtime": runtime})})
    images = (Image(scene.image_url),) if image_requested and scene and scene.image_url else ()
    messages = (Message("system", system_prompt), Message("user", prompt, images=images))
    return portal.call(_Named(model_str, settings).reply, Request(Purpose.QUERY, messages)).text


def compare_results(diagnosis: str, correct_diagnosis: str, moderator_llm: str, mod_pipe: object = None) -> str:
    """Have a moderator compare two diagnoses: `Yes` or `No`. `mod_pipe` is ignored."""
    del mod_pipe

    moderator = Moderator(_Named(moderator_llm), load_prompt("moderator", _own_prompts()))
    verdict = portal.call(moderator.judge, parse_action(diagnosis).content, correct_diagnosis)
    return "Yes" if verdict.yes else "No"


def _own_prompts() -> Path | None:
    own = Path("prompts")
    return own if own.is_dir() else None


class PatientAgent:
    """The patient, one answer per call."""

    def __init__(self, scenario: Scenario, backend_str: str = "builtin", bias_present: str | None = None) -> None:
        self._arguments = (scenario, backend_str, bias_present)
        self.reset()

    def reset(self) -> None:
        """Forget the dialogue."""
        scenario, backend, bias = self._arguments
        prompt = load_prompt("patient", _own_prompts())
        self._core = Patient(scenario.case, _Named(backend), prompt, bias=_bias(bias))

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line."""
        return self._core.history.text

    def system_prompt(self) -> str:
        """The patient's instructions."""
        return self._core.system_prompt

    def inference_patient(self, question: str) -> str:
        """Answer the doctor's words."""
        return portal.call(self._core.answer, question).text

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
        self._core = Measurement(scenario.case, _Named(backend), load_prompt("measurement", _own_prompts()))

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
        return portal.call(self._core.report, request, question).text

    def add_hist(self, hist_str: str) -> None:
        """Hear something said to somebody else."""
        self._core.overhear(hist_str)


class DoctorAgent:
    """The plain doctor, one utterance per call; also a base for doctors of one's own."""

    def __init__(
        self,
        scenario: AnyScenario,
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
            scenario.door if isinstance(scenario, DoctorView) else scenario.case.door,
            _Named(backend),
            self._prompt,
            limit=self.MAX_INFS,
            bias=_bias(bias),
            images=images,
        )
        self._exchanges: tuple[Exchange, ...] = ()
        self._said: Action | None = None

    @property
    def agent_hist(self) -> str:
        """The dialogue so far; each entry is followed by a blank line."""
        return self._core.history

    def system_prompt(self) -> str:
        """The doctor's instructions."""
        return self._core.system_prompt

    def inference_doctor(self, question: str, image_requested: bool = False) -> str:
        """Say the next thing after hearing `question`; when the turns are used up, say that."""
        if self.infs >= self.MAX_INFS:
            return "Maximum inferences reached"
        image = self._arguments[0].image_url if image_requested else None
        images = (Image(image),) if image else ()
        exchanges = self._exchanges
        if self._said is None:
            heard = Heard("", question or self._prompt.text("opening"), images)
        else:
            heard = Heard(_SPEAKERS[self._said.kind], question, images)
            exchanges = (*exchanges, Exchange(self._said.kind, self._said.content, question))
        turn = self.infs + 1
        act = partial(self._core.act, turn=turn, last=turn == self.MAX_INFS)
        reply = portal.call(act, heard, exchanges)
        # Only now: a call that failed can be made again.
        self.infs, self._exchanges, self._said = turn, exchanges, parse_action(reply.text)
        return reply.text

    def add_hist(self, hist_str: str) -> None:
        """Take something into the history."""
        self._core.hear(hist_str)


_SPEAKERS = {"test": "Measurement", "images": "Clinic", "question": "Patient", "diagnosis": "Patient"}


def _bias(name: str | None) -> str | None:
    return RunSettings(doctor_bias=name).doctor_bias


__all__ = [
    "DoctorAgent",
    "MeasurementAgent",
    "PatientAgent",
    "compare_results",
    "load_llm_config",
    "query_model",
    "set_llm_config",
]
