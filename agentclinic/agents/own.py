"""A doctor of the user's own: a class in a Python file with the seed's interface, synchronous or async."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentclinic.agents.doctor import Heard
from agentclinic.agents.roles import History
from agentclinic.cases.model import Case
from agentclinic.errors import ConfigError
from agentclinic.models.base import ModelError, Reply, Usage
from agentclinic.models.payloads import Exchange


class DoctorFileError(ModelError):
    """A user's doctor raised an exception or returned something that is not text."""

    kind = "doctor_program"


class DoctorView:
    """What a doctor may know of its scenario; the methods that would give it away raise."""

    def __init__(self, case: Case) -> None:
        self._objective = case.door.objective
        self.demographics = case.door.demographics
        self.has_images = case.image is not None

    def examiner_information(self) -> str:
        """The doctor's objective."""
        return self._objective

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

    def __init__(self, doctor: Any, name: str, threads: anyio.CapacityLimiter | None = None) -> None:
        self._doctor = doctor
        self._name = name
        self._threads = threads
        self._history = History()
        self._passes_images = "image_requested" in inspect.signature(doctor.inference_doctor).parameters
        self._images = False

    @property
    def history(self) -> str:
        """The doctor's own `agent_hist` where it keeps one, else the dialogue as we passed it on."""
        own = getattr(self._doctor, "agent_hist", None)
        return own if isinstance(own, str) and own else self._history.text

    async def act(self, heard: Heard, exchanges: tuple[Exchange, ...], *, turn: int, last: bool) -> Reply:
        """Pass on what was heard and return what the doctor says."""
        del exchanges, turn, last
        self._images = self._images or bool(heard.images)
        options = {"image_requested": self._images} if self._passes_images else {}
        question = heard.text if heard.speaker else ""
        try:
            infer = partial(self._doctor.inference_doctor, question, **options)
            if inspect.iscoroutinefunction(self._doctor.inference_doctor):
                said = await infer()
            else:
                said = await anyio.to_thread.run_sync(infer, abandon_on_cancel=True, limiter=self._threads)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a user's program does wrong is data, not a crash
            raise DoctorFileError(f"{self._name}: {type(error).__name__}: {error}") from None
        if not isinstance(said, str) or not said.strip():
            raise DoctorFileError(f"{self._name}: inference_doctor returned {type(said).__name__}, not text")
        if heard.speaker:
            self._history.add(f"{heard.speaker}: {heard.text}")
        self._history.add(f"Doctor: {said}")
        return Reply(said, usage=Usage(requests=0))


class DoctorFile:
    """`FILE.py:Class`, loaded once."""

    def __init__(self, spec: str) -> None:
        file, colon, name = spec.rpartition(":")
        if not colon or not file.endswith(".py"):
            raise ConfigError(f"doctor: {spec!r} is not a doctor; write plain, or your own as FILE.py:Class")
        self.path = Path(file).expanduser()
        self.name = spec
        try:
            source = self.path.read_bytes()
        except OSError as error:
            raise ConfigError(f"doctor: {self.path} cannot be read ({error.strerror})") from None
        self.digest = hashlib.sha256(source).hexdigest()[:16]
        self._class = _load(self.path, name)
        self._threads: anyio.CapacityLimiter | None = None

    def make(self, case: Case, *, backend: str, limit: int, bias: str | None, images: bool, workers: int) -> OwnDoctor:
        """A fresh doctor for one encounter, given those of the seed's arguments that it accepts."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(workers)  # the default of 40 would hold back more workers
        offered = {"backend_str": backend, "max_infs": limit, "bias_present": bias, "img_request": images}
        parameters = inspect.signature(self._class).parameters
        takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        accepted = {name: value for name, value in offered.items() if takes_all or name in parameters}
        try:
            return OwnDoctor(self._class(DoctorView(case), **accepted), self.name, self._threads)
        except Exception as error:  # noqa: BLE001 - as above
            raise DoctorFileError(f"{self.name}: {type(error).__name__}: {error}") from None


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
    except Exception as error:  # noqa: BLE001 - a user's file may fail in any way when imported
        raise ConfigError(f"doctor: {path} cannot be imported ({type(error).__name__}: {error})") from None
    finally:
        sys.path.remove(str(path.resolve().parent))
    found = getattr(module, name, None)
    if found is None:
        raise ConfigError(f"doctor: {path} has no class {name!r}")
    if not callable(getattr(found, "inference_doctor", None)):
        raise ConfigError(f"doctor: {name} in {path} has no method inference_doctor(question)")
    return found
