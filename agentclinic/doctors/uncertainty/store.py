"""Session files, one per encounter, and the session that the running code belongs to.

The functions at the end have the original's names. The current session is a context variable: each thread and each
task has its own. Files are written completely or not at all, so a killed process leaves the last complete step.
A file that is not a session is never renamed, changed or removed; only a run replaces files in its own folder. The
formats of all versions of the original are read.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agentclinic.doctors.uncertainty.steps import NO_DOUBTS, Doubts, read_uncertainties
from agentclinic.errors import AgentClinicError
from agentclinic.files import folders_up, make_folder, read_limited, write_whole
from agentclinic.jsonl import CHANGED, checksum_of, loads

FOLDER = "diagnosis_sessions"
_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
# Steps of one session must not overtake each other. 64 locks for all sessions: one per session would never be freed.
_LOCKS = [threading.RLock() for _ in range(64)]


class SessionError(AgentClinicError):
    """A session cannot be named, read or written."""


class Step(BaseModel):
    """One step; keys besides the original's four are ours."""

    model_config = ConfigDict(extra="allow")

    step_number: int
    new_information: str
    current_uncertainties: list[str]
    next_step_action: str

    @model_validator(mode="before")
    @classmethod
    def _of_any_version(cls, data: Any) -> Any:
        """Later versions of the original have `uncertainties`, reasons by name, and `action`."""
        if not isinstance(data, Mapping):
            return data
        renamed = dict(data)
        for theirs, ours in _RENAMED.items():
            if theirs in renamed and ours not in renamed:
                renamed[ours] = renamed.pop(theirs)
        given = renamed.get("current_uncertainties")
        if isinstance(given, Mapping):
            doubts = read_uncertainties(given)
            kept = [item.model_dump(mode="json") for item in doubts.items]
            renamed |= {"current_uncertainties": list(doubts.said), "differential": kept}
        return renamed

    @property
    def doubts(self) -> Doubts:
        """The differential of the step, with probabilities if it has them."""
        return read_uncertainties(getattr(self, "differential", None) or self.current_uncertainties)


_RENAMED = {"uncertainties": "current_uncertainties", "action": "next_step_action"}


_CONCLUSION = ("final_diagnosis", "reason_ready", "synthesis_prompt", "synthesis_answer", "synthesis_model",
               "synthesis_error")  # fmt: skip
"""Keys that a session gets when it is concluded."""


class Session(BaseModel):
    """A session in the original's format; other keys are ours or the user's and are kept."""

    model_config = ConfigDict(extra="allow")

    session_id: str
    steps: list[Step] = Field(default_factory=list)
    accumulated_notes: str = ""
    current_uncertainties: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _of_any_version(cls, data: Any) -> Any:
        """The original writes its conclusion as a last step; here it belongs to the session and is not a fact."""
        if not isinstance(data, Mapping):
            return data
        session, given = dict(data), data.get("current_uncertainties")
        if isinstance(given, Mapping):
            session["current_uncertainties"] = list(read_uncertainties(given).said)
        steps = session.get("steps")
        if isinstance(steps, list) and steps and isinstance(steps[-1], Mapping) and "synthesis_prompt" in steps[-1]:
            last = steps[-1]
            reason = last.get("reason_ready") or last.get("action_reason")
            concluded = {key: last.get(key) for key in ("final_diagnosis", "synthesis_prompt")}
            session = {**session, **concluded, "reason_ready": reason, "steps": steps[:-1]}
        return session

    @model_validator(mode="after")
    def _with_notes(self) -> Session:
        """Later versions of the original keep no notes. The other keys that we read must be text."""
        for key in _CONCLUSION:
            if not isinstance(getattr(self, key, None), str | None):
                raise ValueError(f"{key} must be text or null")
        self.accumulated_notes = self.accumulated_notes or _notes(self.steps)
        return self

    @property
    def facts(self) -> list[str]:
        """Everything learned, step by step."""
        return [step.new_information for step in self.steps if step.new_information.strip()]

    @property
    def doubts(self) -> Doubts:
        """The newest differential that the doctor stated: a planner that speaks in its name repeats only the names."""
        own = (step.doubts for step in reversed(self.steps) if getattr(step, "recorded_by", None) != "planner")
        return next((doubts for doubts in own if doubts.items), NO_DOUBTS)

    def add(self, new_information: str, uncertainties: Sequence[str], action: str, **ours: Any) -> Step:
        """Add a step with the next number."""
        step = Step(
            step_number=len(self.steps) + 1,
            new_information=new_information,
            current_uncertainties=list(uncertainties),
            next_step_action=action,
            **ours,
        )
        self.steps.append(step)
        self.current_uncertainties = list(uncertainties)
        self.accumulated_notes = _notes(self.steps)
        return step


def _notes(steps: Sequence[Step]) -> str:
    return "\n\n".join(map(_note, steps))


def _note(step: Step) -> str:
    doubts = ", ".join(step.current_uncertainties)
    return f"[Step {step.step_number}]\nNew Info: {step.new_information}\nDifferential: {doubts}"


class SessionStore:
    """The sessions in one folder; `of_run`: a run's own folder, where any session may be started again."""

    def __init__(self, folder: Path, *, of_run: bool = False) -> None:
        self.folder = folder
        self._of_run = of_run

    def path(self, session_id: str) -> Path:
        """The file of a session; an id that could lead out of the folder is refused."""
        if not isinstance(session_id, str) or not _ID.fullmatch(session_id):
            raise SessionError(
                f"session id {str(session_id)[:60]!r} is not allowed: use at most 200 letters, digits, dots, dashes "
                "and underscores, and no dot at the start"
            )
        return self.folder / f"{session_id}.json"

    def load(self, session_id: str) -> Session:
        """The session; a new, empty one if there is none yet."""
        path = self.path(session_id)
        with _lock(session_id):
            try:
                return read_session(path)
            except FileNotFoundError:
                return Session(session_id=session_id)
            except SessionError as error:
                raise SessionError(f"{error}; it was left as it is: repair or remove it, then try again") from None

    def save(self, session: Session) -> None:
        """Write a session, completely or not at all."""
        path = self.path(session.session_id)
        with _lock(session.session_id):
            # Not durable: what must survive a power cut is the run's journal, and waiting for the disk at every step
            # would hold up all other encounters.
            data = session.model_dump()
            if self._of_run:
                data["checksum"] = checksum_of(data)
            try:
                make_folder(path.parent)
                write_whole(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n", durable=False)
            except AgentClinicError as error:
                raise SessionError(str(error)) from None

    def begin(self, session_id: str) -> None:
        """Start a session; steps of an encounter that was cut short are dropped."""
        if not self._of_run:
            self.load(session_id)
        self.save(Session(session_id=session_id))

    def clear(self, session_id: str) -> bool:
        """Remove a session; False if there was none."""
        path = self.path(session_id)
        with _lock(session_id):
            self.load(session_id)
            there = path.exists()
            path.unlink(missing_ok=True)
            return there

    @contextmanager
    def change(self, session_id: str) -> Iterator[Session]:
        """Load a session, let the caller change it, and save it; other threads wait."""
        with _lock(session_id):
            session = self.load(session_id)
            yield session
            self.save(session)


def read_session(path: Path) -> Session:
    """Read one session file, and verify its checksum if it has one; errors name the file and the place in it."""
    try:
        data = loads(read_limited(path))
        checksum = data.pop("checksum", None) if isinstance(data, dict) else None
        if checksum is not None and checksum != checksum_of(data):
            raise ValueError(CHANGED)
        session = Session.model_validate(data)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SessionError(f"{path}: cannot be read ({error.strerror})") from None
    except json.JSONDecodeError as error:
        raise SessionError(f"{path} line {error.lineno}: not a session ({error.msg})") from None
    except UnicodeDecodeError:
        raise SessionError(f"{path}: not a session (not UTF-8 text)") from None
    except ValidationError as error:
        raise SessionError(f"{path}: not a session ({_first_problem(error)})") from None
    except ValueError as error:
        raise SessionError(f"{path}: not a session ({error})") from None
    if session.session_id != path.stem:
        raise SessionError(f"{path}: not this session (its session_id is {session.session_id[:60]!r})")
    return session


def _first_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg'].lower()}"


def _lock(session_id: str) -> threading.RLock:
    return _LOCKS[hash(session_id) % len(_LOCKS)]


_session: ContextVar[str | None] = ContextVar("agentclinic_session", default=None)
_store: ContextVar[SessionStore | None] = ContextVar("agentclinic_session_store", default=None)
_default: SessionStore | None = None
_AGENT = Path("agent")


def current_store() -> SessionStore:
    """The store of this thread or task: the run's folder, else `agent/diagnosis_sessions`."""
    return _store.get() or _default or SessionStore(_usual_folder())


def _usual_folder() -> Path:
    """Where the original keeps sessions: in the nearest `agent` with an agent's files, else in the working folder."""
    ours = (folder for folder in folders_up() if any((folder / _AGENT / name).exists() for name in _AGENTS_FILES))
    return next(ours, Path()) / _AGENT / FOLDER


_AGENTS_FILES = (FOLDER, "agent_config.yaml")


def use_store(store: SessionStore) -> None:
    _store.set(store)


def use_folder(folder: Path) -> None:
    """Set the folder for sessions outside runs, in every thread."""
    global _default
    _default = SessionStore(folder)


def set_current_session(session_id: str) -> None:
    """Set the session that the tools called in this thread or task write to."""
    current_store().path(session_id)
    _session.set(session_id)


def get_current_session() -> str | None:
    """The session that the tools called in this thread or task write to; None if none is set."""
    return _session.get()


def needed_session() -> str:
    """The same; an error if none is set."""
    session_id = _session.get()
    if session_id is None:
        raise SessionError("no session is set; call set_current_session(session_id) before using the tools")
    return session_id


def append_step(
    session_id: str,
    new_information: str,
    uncertainties: str | Sequence[str | Mapping[str, Any]] | Mapping[str, str],
    next_step_action: str,
) -> dict[str, Any]:
    """Add a step to a session, and return the whole session."""
    said = read_uncertainties(uncertainties).said
    with current_store().change(session_id) as session:
        session.add(new_information, said, next_step_action)
        return session.model_dump(mode="json")


def get_accumulated_notes(session_id: str) -> str:
    """All notes of a session so far, as text."""
    return current_store().load(session_id).accumulated_notes


def get_all_new_information(session_id: str) -> list[str]:
    """Everything learned in a session, step by step."""
    return current_store().load(session_id).facts


def load_session(session_id: str) -> dict[str, Any]:
    """A session in the original's format; an empty one if there is none yet."""
    return current_store().load(session_id).model_dump(mode="json")


def save_session(session_id: str, session: Mapping[str, Any]) -> None:
    try:
        parsed = Session.model_validate({**session, "session_id": session_id})
    except ValidationError as error:
        raise SessionError(f"session {session_id}: {_first_problem(error)}") from None
    store = current_store()
    store.load(session_id)  # an unreadable file is not replaced
    store.save(parsed)


def clear_session(session_id: str) -> bool:
    """Remove a session; False if there was none."""
    return current_store().clear(session_id)
