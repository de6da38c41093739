"""Custom doctors: a class in a Python file, or a class or an instance passed to `evaluate`."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from concurrent import futures
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import agentclinic
from agentclinic import privacy, sync_bridge
from agentclinic.cases.model import Case
from agentclinic.clinic.doctor import Assignment, Dialogue, History, Incoming, Observation, Utterance, spoken, utterance
from agentclinic.clinic.prompts import joined
from agentclinic.config import nearest
from agentclinic.doctors.reference import REFERENCES
from agentclinic.errors import ConfigError
from agentclinic.files import expanded
from agentclinic.jsonl import encodable, loads
from agentclinic.models.base import ModelError, Reply
from agentclinic.models.gate import GateClosedError
from agentclinic.results.turn import Exchange, Turn
from agentclinic.trust import UntrustedError, read_program

_DIALOGUE = frozenset({"doctor", "patient", "measurement", "clinic"})
"""Roles that a doctor's side work may not have: it must not speak for others, or for the doctor a second time."""


_OURS = (*(f"{Path(file).parent}{os.sep}" for file in (agentclinic.__file__, futures.__file__)), "<frozen importlib")
"""Files whose code calls a user's program: these calls tell nothing about it."""
_FRAMES = 20
"""How many calls a traceback shows, the last ones: endless recursion has a thousand."""


class CustomDoctorError(ModelError):
    """A custom doctor raised an exception or returned something that cannot be used."""

    kind = "doctor_program"


class Doctor(Protocol):
    """A custom doctor with our interface."""

    def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> object:
        """Take a turn: return text, an `Utterance`, a turn, or side work and then the doctor's own turn; may be async.

        `turn` counts from 1; on the `last` turn only a diagnosis counts. `notes` is a planner's advice.
        """
        ...


class DoctorView:
    """The scenario as a custom doctor sees it: what is known at the door.

    The original's methods that would give the answer away raise `PermissionError`.
    """

    def __init__(self, case: Case) -> None:
        self.door = case.door
        self.has_images = case.image is not None
        self.image_url: str | None = None
        """Address of the case's image, once it has been shown."""

    @property
    def demographics(self) -> str:
        return self.door.demographics

    def examiner_information(self) -> str:
        """The doctor's objective."""
        return self.door.told

    def patient_information(self) -> Any:
        raise PermissionError("patient_information is hidden from doctors: ask the patient")

    def exam_information(self) -> Any:
        raise PermissionError("exam_information is hidden from doctors: write REQUEST TEST: <test>")

    def diagnosis_information(self) -> Any:
        raise PermissionError("diagnosis_information is hidden from doctors: it is the answer")


class CustomDoctor:
    """Runs a user's doctor in an encounter.

    The doctor has either the original's `inference_doctor(question)` or our own `act` (`agentclinic.Doctor`). Both
    return text, or an `Utterance`, which also says how sure the doctor is. With memory, `recall(experiences)` is called
    before a turn for which there are any. All may be synchronous or async.
    """

    def __init__(
        self, make: Callable[[DoctorView], Any], view: DoctorView, name: str, dialogue: Dialogue = "chat"
    ) -> None:
        self._dialogue = dialogue
        self._make = make
        self._view = view
        self._name = name
        self._doctor: Any = None
        self._history = History()
        self._own_history = ""

    @property
    def history(self) -> str:
        """The doctor's own `agent_hist` if it keeps one, else the dialogue."""
        return self._own_history or self._history.text

    async def act(self, seen: Observation) -> tuple[Turn, ...]:
        """Pass on what reached the doctor, followed by the notes, and return what the doctor says."""
        incoming = seen.incoming
        if incoming.images:
            self._view.image_url = incoming.images[-1].url
        try:
            with sync_bridge.home():
                if self._doctor is None:  # built in a thread, where it may block and may ask a model
                    self._doctor = await sync_bridge.in_thread(partial(self._make, self._view))
                advice = await self._advised(seen)
                if hasattr(self._doctor, "act"):
                    notes = joined(advice, seen.notes)
                    act: Callable[[], Any] = partial(
                        self._doctor.act, incoming, seen.exchanges, turn=seen.turn, last=seen.last, notes=notes
                    )
                else:
                    act = self._inference(incoming.text if incoming.speaker else "", advice, seen.notes)
                turns = self._turns(await _called(act), seen.turn)
                own = getattr(self._doctor, "agent_hist", None)
        except (ModelError, GateClosedError, UntrustedError):
            raise
        except BaseException as error:
            # A bug in a user's program is data, not a crash, even a SystemExit; only our own cancellation is passed on.
            if _cancelling():
                raise
            raise _crash(self._name, error) from None
        self._own_history = encodable(own) if isinstance(own, str) else ""
        self.say(incoming, turns[-1].text)
        return turns

    def say(self, incoming: Incoming, text: str) -> None:
        self._history.add_turn(incoming, text)

    async def _advised(self, seen: Observation) -> str:
        """Give the experiences to a doctor that has `recall`; for any other, they are text among its notes."""
        if seen.recalled and callable(getattr(self._doctor, "recall", None)):
            await _called(partial(self._doctor.recall, seen.recalled))
            return ""
        return seen.advice

    def _inference(self, heard: str, advice: str, notes: str) -> Callable[[], Any]:
        infer = self._doctor.inference_doctor
        given: dict[str, Any] = {}
        if _accepts(infer, "image_requested"):
            given["image_requested"] = self._view.image_url is not None
        if _accepts(infer, "memory_context"):  # as the original's script calls it
            given["memory_context"], advice = advice, ""
        return partial(infer, joined(heard, advice, notes), **given)

    def _turns(self, said: object, turn: int) -> tuple[Turn, ...]:
        """What the doctor returned, as turns: text is its utterance."""
        earlier = self._history.said_by("Doctor")
        if isinstance(said, Utterance) or (isinstance(said, str) and said.strip()):
            # Requests made through us are counted when they are made; others are unknown.
            return (spoken(said, turn=turn, earlier=earlier, dialogue=self._dialogue),)
        turns = tuple(map(_written, said if isinstance(said, tuple) else (said,)))
        roles = [each.role for each in turns if isinstance(each, Turn) and each.turn == turn]
        if len(roles) == len(turns) and roles[-1:] == ["doctor"] and not _DIALOGUE.intersection(roles[:-1]):
            heard = utterance(Reply(turns[-1].text), turn=turn, earlier=earlier, dialogue=self._dialogue)
            words = {name: getattr(heard, name) for name in ("text", "raw", "action", "slips")}
            return (*turns[:-1], turns[-1].model_copy(update=words))
        if hasattr(self._doctor, "act"):
            raise CustomDoctorError(
                f"{self._name}: act must return text, an Utterance, or turns numbered {turn}: side work, then the "
                "doctor's own"
            )
        what = "an empty text" if isinstance(said, str) else f"{type(said).__name__}, not text"
        raise CustomDoctorError(f"{self._name}: inference_doctor returned {what}")


def _written(turn: Any) -> Any:
    """A turn as it will be recorded; `ValueError` if it cannot be written."""
    return Turn.model_validate(loads(json.dumps(turn.model_dump(mode="json")))) if isinstance(turn, Turn) else turn


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _described(error: BaseException) -> str:
    """An exception in a user's program: its name, and its message if it has one."""
    try:
        words = encodable(str(error))
    except Exception:  # noqa: BLE001 - its own `__str__` may raise anything
        words = "(it cannot be printed)"
    return f"{type(error).__name__}: {privacy.quotation(words)}"


def _crash(name: str, error: BaseException) -> CustomDoctorError:
    """The error for an exception in a user's program, with its place, message and traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_OURS)]
    # The last place in the program itself, not in a library that it called.
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    place = f"{Path(own[-1].filename).name} line {own[-1].lineno}: " if own else ""
    crash = CustomDoctorError(f"{name}: {place}{_described(error)}")
    if frames or isinstance(error, SyntaxError):
        crash.traceback = encodable(privacy.crash(error, _OURS, _FRAMES))
    return crash


async def _called(function: Callable[[], Any]) -> Any:
    """Call a user's function, in a thread unless it is async."""
    said = function() if inspect.iscoroutinefunction(function) else await sync_bridge.in_thread(function)
    return await said if inspect.isawaitable(said) else said


def is_custom(name: str) -> bool:
    """Whether a doctor's name refers to a user's class rather than to one of our doctors."""
    return ".py:" in name or name.startswith(_PYTHON)


class DoctorFactory:
    """Makes a custom doctor for each encounter from `FILE.py:Class`, a class, or an instance.

    An instance is copied for each encounter, and its `start(scenario)` is called first if it has one. `admit` is called
    with the path and the code of a file before anything in it runs, and may raise an error.
    """

    def __init__(self, source: str | object, admit: Callable[[Path, bytes], None] = lambda *_: None) -> None:
        if isinstance(source, str):
            self.name, (path, name, code) = source, _from_file(source)
            admit(path, code)
            self._source = _load(path, name, code)
        else:
            self.name, self._source, code = _from_object(source)
        self.digest = _digest(code)

    def make(self, case: Case, assignment: Assignment, backend: str) -> CustomDoctor:
        """A new doctor for one encounter, given those of the original's arguments that it accepts."""
        make = self._copied
        if inspect.isclass(self._source):
            offered = {
                "backend_str": backend,
                "max_infs": assignment.limit,
                "bias_present": assignment.bias,
                "img_request": assignment.images,
            }
            accepted = {name: value for name, value in offered.items() if _accepts(self._source, name)}
            make = partial(self._source, **accepted)
        return CustomDoctor(make, DoctorView(case), self.name, assignment.dialogue)

    def _copied(self, view: DoctorView) -> Any:
        doctor = copy.deepcopy(self._source)
        if callable(getattr(doctor, "start", None)):
            doctor.start(view)
        return doctor


_PYTHON = "python:"


def doctor_names() -> tuple[str, ...]:
    return ("plain", "uncertainty", *REFERENCES)


def _from_file(spec: str) -> tuple[Path, str, bytes]:
    """File, class and code of FILE.py:Class."""
    file, colon, name = spec.rpartition(":")
    if spec.startswith(_PYTHON):
        raise ConfigError(f"doctor: {spec} was passed to evaluate(), not read from a file; call evaluate() again")
    if not colon or not file.endswith(".py"):
        near = nearest(spec, doctor_names())
        known = f"did you mean {near!r}?" if near else f"write {', '.join(doctor_names())}, or FILE.py:Class"
        raise ConfigError(f"doctor: {spec!r} is not a doctor; {known}")
    path = expanded(file)
    return path, name, read_program(path)


def program_digest(spec: str) -> str | None:
    """The hash of a custom doctor's file, as in the record; nothing in it runs. None for our own doctors."""
    return _digest(_from_file(spec)[2]) if spec not in doctor_names() else None


def _digest(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()[:16]


def _from_object(doctor: object) -> tuple[str, Any, bytes]:
    """Name, source and code of a class or an instance. A top-level class of a file gets a name that can be resumed."""
    kind = doctor if inspect.isclass(doctor) else type(doctor)
    _check_interface(kind, f"doctor: {kind.__name__}")
    try:
        file = inspect.getsourcefile(kind)
        code = Path(file).read_bytes() if file else b""
    except (OSError, TypeError):  # typed at a prompt or in a notebook
        file, code = None, kind.__qualname__.encode()
    resumable = inspect.isclass(doctor) and file and kind.__qualname__ == kind.__name__
    name = f"{Path(file).absolute()}:{kind.__name__}" if resumable and file else f"{_PYTHON}{kind.__qualname__}"
    return name, doctor, code


def _accepts(function: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _load(path: Path, name: str, code: bytes) -> Any:
    module_name = f"agentclinic_doctor_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    module = ModuleType(module_name)
    module.__file__ = str(path)
    # The names that the original's loader puts into the module of a doctor.
    module.__dict__.update(
        DoctorAgentBase=agentclinic.DoctorAgent,
        query_model=agentclinic.query_model,
        CODE_DIR=path.resolve().parent,
        DATA_DIR=path.resolve().parent / "data",
    )
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        # What was read and hashed, not what Python may have cached beside it.
        exec(compile(code, str(path), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's file may raise anything
        del sys.modules[module_name]
        where = _crash(str(path), error).traceback or _described(error)
        raise ConfigError(f"doctor: {path} cannot be imported\n{where}".rstrip()) from None
    finally:
        sys.path.remove(str(path.resolve().parent))
    found = getattr(module, name, None)
    if found is None:
        raise ConfigError(f"doctor: {path} has no class {name!r}")
    _check_interface(found, f"doctor: {name} in {path}")
    return found


def _check_interface(kind: Any, where: str) -> None:
    if not any(callable(getattr(kind, method, None)) for method in ("inference_doctor", "act")):
        raise ConfigError(f"{where} has no method inference_doctor(question) or act")
