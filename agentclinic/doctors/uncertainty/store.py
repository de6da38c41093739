"""Session files, one per encounter, and which session the code that runs now belongs to.

The functions at the end have the seed's names. The current session is a context variable: each thread and each task
has its own. A file is always written whole, so that whoever is killed leaves the last complete step behind.
"""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentclinic.errors import AgentClinicError
from agentclinic.files import make_folder, write_whole

FOLDER = "diagnosis_sessions"
_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
# Steps of one session must not overtake each other; 64 locks for all sessions, as one each would never be freed.
_LOCKS = [threading.RLock() for _ in range(64)]


class SessionError(AgentClinicError):
    """A session that cannot be named, read or written."""


class DamagedSessionError(SessionError):
    """A file that is no session, and was put aside."""


class Step(BaseModel):
    """One step; keys beyond the seed's four are ours."""

    model_config = ConfigDict(extra="allow")

    step_number: int
    new_information: str
    current_uncertainties: list[str]
    next_step_action: str


class Session(BaseModel):
    """A session in the seed's format; keys beyond it are ours, and what others add is kept."""

    model_config = ConfigDict(extra="allow")

    session_id: str
    steps: list[Step] = Field(default_factory=list)
    accumulated_notes: str = ""
    current_uncertainties: list[str] = Field(default_factory=list)

    @property
    def facts(self) -> list[str]:
        """Everything learned, step by step."""
        return [step.new_information for step in self.steps if step.new_information.strip()]

    def add(self, new_information: str, uncertainties: Sequence[str], action: str, **ours: Any) -> Step:
        """Add a step with the next number."""
        step = Step.model_validate(
            {
                "step_number": len(self.steps) + 1,
                "new_information": new_information,
                "current_uncertainties": list(uncertainties),
                "next_step_action": action,
                **ours,
            }
        )
        self.steps.append(step)
        self.current_uncertainties = list(uncertainties)
        self.accumulated_notes = "\n\n".join(map(_note, self.steps))
        return step


def _note(step: Step) -> str:
    doubts = ", ".join(step.current_uncertainties)
    return f"[Step {step.step_number}]\nNew Info: {step.new_information}\nDifferential: {doubts}"


class SessionStore:
    """The sessions of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, session_id: str) -> Path:
        """Where a session is kept; an id that could lead out of the folder is refused."""
        if not isinstance(session_id, str) or not _ID.fullmatch(session_id):
            raise SessionError(
                f"session id {str(session_id)[:60]!r} is not allowed: letters, digits, dot, dash and underscore only, "
                "at most 200, and no dot at the start"
            )
        return self.folder / f"{session_id}.json"

    def load(self, session_id: str) -> Session:
        """The session, new and empty where there is none; a damaged file is put aside, never overwritten."""
        path = self.path(session_id)
        with _lock(session_id):
            try:
                return read_session(path)
            except FileNotFoundError:
                return Session(session_id=session_id)
            except DamagedSessionError as error:
                aside = _put_aside(path)
                raise DamagedSessionError(
                    f"{error}; it was moved to {aside.name}, and the session can begin anew"
                ) from None

    def save(self, session: Session) -> None:
        """Write a session whole."""
        path = self.path(session.session_id)
        with _lock(session.session_id):
            data = session.model_dump()
            # Not durable: what must survive a power cut is the run's journal, and waiting for the disk at every step
            # of every encounter would hold up all the others.
            try:
                make_folder(path.parent)
                write_whole(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n", durable=False)
            except AgentClinicError as error:
                raise SessionError(str(error)) from None

    def begin(self, session_id: str) -> None:
        """Start a session anew: what an encounter that was broken off left behind goes, a damaged file is kept."""
        try:
            self.load(session_id)
        except DamagedSessionError as error:
            warnings.warn(str(error), stacklevel=2)
        self.save(Session(session_id=session_id))

    def clear(self, session_id: str) -> None:
        """Forget a session; a damaged file is put aside instead."""
        with _lock(session_id):
            try:
                self.load(session_id)
            except DamagedSessionError as error:
                warnings.warn(str(error), stacklevel=2)
            self.path(session_id).unlink(missing_ok=True)

    @contextmanager
    def change(self, session_id: str) -> Iterator[Session]:
        """Load a session, let it be changed and write it, with nobody in between."""
        with _lock(session_id):
            session = self.load(session_id)
            yield session
            self.save(session)


def read_session(path: Path) -> Session:
    """Read one session file; what is wrong with it is said by file and place."""
    try:
        data = json.loads(path.read_bytes())
        session = Session.model_validate(data)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SessionError(f"{path}: cannot be read ({error.strerror})") from None
    except json.JSONDecodeError as error:
        raise DamagedSessionError(f"{path} line {error.lineno}: not a session ({error.msg})") from None
    except UnicodeDecodeError:
        raise DamagedSessionError(f"{path}: not a session (not UTF-8 text)") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise DamagedSessionError(f"{path}: not a session ({place}: {first['msg'].lower()})") from None
    except (ValueError, RecursionError):  # a number or a nesting beyond all measure
        raise DamagedSessionError(f"{path}: not a session (not JSON that can be read)") from None
    if session.session_id != path.stem:
        raise DamagedSessionError(f"{path}: not this session (session_id is {session.session_id[:60]!r})")
    return session


def _put_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged{'' if number == 1 else f'-{number}'}")).exists():
        number += 1
    try:
        path.rename(aside)
    except OSError as error:
        raise SessionError(f"{path}: damaged, and cannot be put aside ({error.strerror})") from None
    return aside


def _lock(session_id: str) -> threading.RLock:
    return _LOCKS[hash(session_id) % len(_LOCKS)]


_session: ContextVar[str | None] = ContextVar("agentclinic_session", default=None)
_store: ContextVar[SessionStore | None] = ContextVar("agentclinic_session_store", default=None)
_default = SessionStore(Path("agent") / FOLDER)


def current_store() -> SessionStore:
    """Where the code that runs now keeps its sessions: the run's folder, else `agent/diagnosis_sessions`."""
    return _store.get() or _default


def use_store(store: SessionStore) -> None:
    """Keep the sessions of this thread or task there."""
    _store.set(store)


def use_folder(folder: Path) -> None:
    """Keep sessions outside runs in this folder, in every thread."""
    global _default
    _default = SessionStore(folder)


def set_current_session(session_id: str) -> None:
    """Let the tools called from this thread or task write to this session."""
    current_store().path(session_id)
    _session.set(session_id)


def get_current_session() -> str:
    """The session that this thread or task works in."""
    session_id = _session.get()
    if session_id is None:
        raise SessionError("no session is set; call set_current_session(session_id) before using the tools")
    return session_id


def append_step(
    session_id: str, new_information: str, current_uncertainties: str | Sequence[str], next_step_action: str
) -> dict[str, Any]:
    """Add a step to a session and return it."""
    from agentclinic.doctors.uncertainty.steps import read_uncertainties

    said = read_uncertainties(current_uncertainties).said
    with current_store().change(session_id) as session:
        return session.add(new_information, said, next_step_action).model_dump(mode="json")


def get_accumulated_notes(session_id: str) -> str:
    """All notes of a session so far, as text."""
    return current_store().load(session_id).accumulated_notes


def get_all_new_information(session_id: str) -> list[str]:
    """Everything learned in a session, step by step."""
    return current_store().load(session_id).facts


def load_session(session_id: str) -> dict[str, Any]:
    """A session in the seed's format; an empty one where there is none yet."""
    return current_store().load(session_id).model_dump(mode="json")


def save_session(session_id: str, session: Mapping[str, Any]) -> None:
    """Write a whole session."""
    try:
        parsed = Session.model_validate({**session, "session_id": session_id})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SessionError(f"session {session_id}: {place}: {first['msg'].lower()}") from None
    current_store().save(parsed)


def clear_session(session_id: str) -> None:
    """Forget a session."""
    current_store().clear(session_id)
