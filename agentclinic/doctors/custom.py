"""A doctor of the user's own: a class in a Python file with the seed's interface, synchronous or async."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agentclinic import privacy, sync_bridge
from agentclinic.cases.model import Case
from agentclinic.clinic.payloads import Exchange
from agentclinic.clinic.prompts import joined
from agentclinic.clinic.roles import History
from agentclinic.doctors.plain import Heard, take
from agentclinic.doctors.reference import NAMES
from agentclinic.errors import ConfigError
from agentclinic.models.base import ModelError, Reply, Usage
from agentclinic.models.gate import GateClosedError


class DoctorFileError(ModelError):
    """A user's doctor raised an exception or returned something that is not text."""

    kind = "doctor_program"


class DoctorView:
    """What a doctor may know of its scenario; the methods that would give it away raise."""

    def __init__(self, case: Case) -> None:
        self.door = case.door
        self.has_images = case.image is not None
        self.image_url: str | None = None
        """Address of the case's image, once it was shown."""

    @property
    def demographics(self) -> str:
        """Age and sex, as known at the door."""
        return self.door.demographics

    def examiner_information(self) -> str:
        """The doctor's objective."""
        return self.door.objective

    def patient_information(self) -> Any:
        """Hidden: ask the patient."""
        raise PermissionError("patient_information is hidden from doctors: ask the patient")

    def exam_information(self) -> Any:
        """Hidden: request tests."""
        raise PermissionError("exam_information is hidden from doctors: write REQUEST TEST: <test>")

    def diagnosis_information(self) -> Any:
        """Hidden: it is the answer."""
        raise PermissionError("diagnosis_information is hidden from doctors: it is the answer")


class OwnDoctor:
    """Lets a user's doctor lead an encounter."""

    def __init__(self, make: Callable[[DoctorView], Any], view: DoctorView, name: str) -> None:
        self._make = make
        self._view = view
        self._name = name
        self._doctor: Any = None
        self._history = History()

    @property
    def history(self) -> str:
        """The doctor's own `agent_hist` where it keeps one, else the dialogue as we passed it on."""
        own = getattr(self._doctor, "agent_hist", None)
        return own if isinstance(own, str) and own else self._history.text

    def state(self) -> None:
        """None: nobody but the doctor knows all it remembers."""

    def restore(self, state: object | None) -> None:
        """Nothing to do: a user's doctor does not go back."""

    async def act(
        self, heard: Heard, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> Reply:
        """Pass on what was heard, with the notes after it, and return what the doctor says."""
        del exchanges, turn, last
        if heard.images:
            self._view.image_url = heard.images[-1].url
        try:
            with sync_bridge.home():
                said = await self._infer(joined(heard.text if heard.speaker else "", notes))
        except (ModelError, GateClosedError):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what a user's program does wrong is data, not a crash
            said = privacy.quotation(str(error))
            raise DoctorFileError(f"{self._name}: {type(error).__name__}: {said}") from None
        if not isinstance(said, str) or not said.strip():
            what = "an empty text" if isinstance(said, str) else f"{type(said).__name__}, not text"
            raise DoctorFileError(f"{self._name}: inference_doctor returned {what}")
        self.say(heard, said)
        # What it asked of models through us is counted there; what it did in its own way nobody knows.
        return Reply(said, usage=Usage(requests=0))

    def say(self, heard: Heard, text: str) -> None:
        """Keep the dialogue as we passed it on."""
        take(self._history, heard, text)

    async def _infer(self, question: str) -> Any:
        if self._doctor is None:  # made where it may block and may ask a model
            self._doctor = await sync_bridge.in_thread(partial(self._make, self._view))
        infer = self._doctor.inference_doctor
        if _accepts(infer, "image_requested"):
            infer = partial(infer, image_requested=self._view.image_url is not None)
        if inspect.iscoroutinefunction(infer):
            return await infer(question)
        said = await sync_bridge.in_thread(partial(infer, question))
        return await said if inspect.isawaitable(said) else said


class DoctorFile:
    """`FILE.py:Class`, loaded once."""

    def __init__(self, spec: str) -> None:
        file, colon, name = spec.rpartition(":")
        if not colon or not file.endswith(".py"):
            raise ConfigError(f"doctor: {spec!r} is not a doctor; write plain, {', '.join(NAMES)}, or FILE.py:Class")
        self.path = Path(file).expanduser()
        self.name = spec
        try:
            source = self.path.read_bytes()
        except OSError as error:
            raise ConfigError(f"doctor: {self.path} cannot be read ({error.strerror})") from None
        self.digest = hashlib.sha256(source).hexdigest()[:16]
        self._class = _load(self.path, name)

    def make(self, case: Case, *, backend: str, limit: int, bias: str | None, images: bool) -> OwnDoctor:
        """A fresh doctor for one encounter, given those of the seed's arguments that it accepts."""
        offered = {"backend_str": backend, "max_infs": limit, "bias_present": bias, "img_request": images}
        accepted = {name: value for name, value in offered.items() if _accepts(self._class, name)}
        return OwnDoctor(partial(self._class, **accepted), DoctorView(case), self.name)


def _accepts(function: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _load(path: Path, name: str) -> Any:
    module_name = f"agentclinic_doctor_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"doctor: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's file may fail in any way when imported
        del sys.modules[module_name]
        raise ConfigError(f"doctor: {path} cannot be imported ({type(error).__name__}: {error})") from None
    finally:
        sys.path.remove(str(path.resolve().parent))
    found = getattr(module, name, None)
    if found is None:
        raise ConfigError(f"doctor: {path} has no class {name!r}")
    if not callable(getattr(found, "inference_doctor", None)):
        raise ConfigError(f"doctor: {name} in {path} has no method inference_doctor(question)")
    return found
