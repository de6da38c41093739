"""Experiences that other programs wrote, such as the original's memory agents, as lessons of ours.

Three kinds of entry are known: an observation with a suggestion; a situation, what was in doubt, an action and its
rationale; a context with the same. They come as a list, as an object by case or id, or line by line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentclinic.cases.model import Case
from agentclinic.config import read_json
from agentclinic.errors import ConfigError, InputError
from agentclinic.jsonl import read_json_lines
from agentclinic.memory.experience import LONGEST_PART, MOST, Experience, Lesson, Source, WrittenExperience, source_of
from agentclinic.memory.store import read_lessons
from agentclinic.privacy import DataClass, strictest

IMPORTED = "imported"
"""The model of a lesson whose experiences were written elsewhere."""
UNKNOWN = "unknown"
"""The case of experiences from a case that was not found."""
_PATTERN = ("observation", "situation", "context")
_ADVICE = ("suggestion", "advice", "recommendation")
_ACTION = ("action", "next_step_action")
_REASON = ("rationale", "action_reason", "reason")
_DOUBTS = ("uncertainties", "uncertainty", "current_uncertainties")
_CASE = ("case_id", "case")
_IDS = "experience_ids"
EXPECTED = (
    "expected experiences with observation and suggestion, or with situation (or context), action and rationale: a "
    "JSON list, an object by case or id, or JSON Lines (docs/memory.md)"
)


@dataclass(frozen=True)
class Entry:
    """One experience of a file, and the case it comes from as the file names it."""

    experience: Experience
    case: str
    id: str
    shortened: bool


def read_entries(paths: Sequence[Path]) -> tuple[list[Lesson], list[tuple[Path, Entry]]]:
    """The lessons in files of ours, and the experiences in others; a file may say which case an id belongs to."""
    lessons: list[Lesson] = []
    entries: list[tuple[Path, Entry]] = []
    case_of: dict[str, str] = {}
    for path in paths:
        data = _content(path)
        lines = data if isinstance(data, list) else [data]
        if lines and all(isinstance(each, dict) and {"source", "experiences"} <= each.keys() for each in lines):
            lessons += read_lessons(path)
        elif isinstance(data, dict) and data and all(isinstance(e, dict) and _IDS in e for e in data.values()):
            case_of |= {str(number): case for case, entry in data.items() for number in entry[_IDS]}
        else:
            entries += [(path, entry) for entry in _entries(data, path)]
    if not lessons and not entries:
        named = ", ".join(map(str, paths))
        raise InputError(f"{named}: no experiences, only cases and their ids; name the file of experiences, too")
    known = [(p, Entry(e.experience, e.case or case_of.get(e.id, ""), e.id, e.shortened)) for p, e in entries]
    return lessons, known


def _content(path: Path) -> Any:
    try:
        return read_json(path)
    except ConfigError as error:
        if "not valid JSON" not in str(error):
            raise InputError(str(error)) from None
    try:
        return [entry for _, entry in read_json_lines(path, "an experience")]
    except InputError as error:
        raise InputError(f"{error}; {EXPECTED}") from None


def _entries(data: Any, path: Path) -> Iterator[Entry]:
    found = list(_objects(data, ""))
    if not found:
        raise InputError(f"{path}: {EXPECTED}")
    for place, (case, entry) in enumerate(found, start=1):
        written = _written(entry) if isinstance(entry, dict) else None
        if written is None:
            keys = f" (it has {', '.join(map(str, list(entry)[:8]))})" if isinstance(entry, dict) else ""
            raise InputError(f"{path}: entry {place} is not an experience{keys}; {EXPECTED}")
        own = _text(entry, _CASE)
        if not own and "scenario_id" in entry:
            own = f"{entry.get('dataset') or case}_{entry['scenario_id']}"
        cut = len(written.suggestion) > LONGEST_PART or _text(entry, _PATTERN) not in written.observation
        yield Entry(written.kept(), own or case, str(entry.get("id", "")), cut)


def _objects(data: Any, case: str) -> Iterator[tuple[str, Any]]:
    """The entries of a file, each with the case that its key names."""
    if isinstance(data, list):
        for each in data:
            yield from _objects(each, case)
    elif not isinstance(data, dict) or any(key in data for key in _PATTERN):
        yield case, data
    elif isinstance(data.get("experiences"), list):
        yield from _objects(data["experiences"], _text(data, _CASE) or case)
    else:
        nested = {key: value for key, value in data.items() if isinstance(value, dict | list)}
        if not nested:
            yield case, data
        for key, value in nested.items():
            yield from _objects(value, key)


def _written(entry: Mapping[str, Any]) -> WrittenExperience | None:
    """An entry in our words; None if it is not an experience."""
    pattern, advice, action = _text(entry, _PATTERN), _text(entry, _ADVICE), _text(entry, _ACTION)
    if not pattern or not (advice or action):
        return None
    kind, what, said = _step(action)
    doubts = next((entry[key] for key in _DOUBTS if entry.get(key)), ())
    names = [doubts] if isinstance(doubts, str) else [str(name) for name in doubts]
    asked = f" In question: {'; '.join(names)}."[: LONGEST_PART // 2] if names else ""
    room = LONGEST_PART - len(asked)
    shown = pattern if len(pattern) < room else f"{pattern[: room - 1]}…"
    shown += "." if asked and shown[-1].isalnum() else ""
    suggestion = advice or " ".join(filter(None, (said, _text(entry, _REASON))))
    return WrittenExperience(observation=f"{shown}{asked}", suggestion=suggestion, kind=kind, what=what)


def _text(entry: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((str(entry[key]).strip() for key in keys if entry.get(key) not in (None, "")), "")


_ACTIONS = re.compile(r"\s*(ASK PATIENT|REQUEST TEST|PHYSICAL EXAM(?:INATION)?|REQUEST IMAGES?)\s*:?\s*(.*)", re.DOTALL)


def _step(action: str) -> tuple[Literal["question", "test"], str, str]:
    """An action as kind and content of a step, and as a sentence."""
    found = _ACTIONS.fullmatch(action)
    if not found:
        return "question", "", action
    kind: Literal["question", "test"] = "question" if found[1] == "ASK PATIENT" else "test"
    what = found[2].strip()
    if not what:
        return kind, "", "Ask for the images." if found[1].startswith("REQUEST IMAGE") else ""
    end = "" if what.endswith((".", "?", "!")) else "."
    return kind, what, f"{'Ask' if kind == 'question' else 'Order'}: {what}{end}"


def as_lessons(
    entries: Sequence[tuple[Path, Entry]], find: Callable[[str], Case | None], least: DataClass
) -> Iterator[Lesson]:
    """The experiences as lessons, by file and case; `find` finds a case by the name that the file gives it."""
    groups: dict[tuple[Path, str], list[Experience]] = {}
    for path, entry in entries:
        groups.setdefault((path, entry.case), []).append(entry.experience)
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in {path for path, _ in groups}}
    for (path, name), experiences in groups.items():
        case = find(name) if name else None
        for start in range(0, len(experiences), MOST):
            part, unit = tuple(experiences[start : start + MOST]), f"{name or UNKNOWN}:{start // MOST}"
            source = (
                source_of(case, path.name, unit)
                if case
                else Source(case=UNKNOWN, fingerprint="", diagnosis="", run=path.name, unit=unit)
            )
            data_class = strictest((least, *((case.data_class,) if case else ())))
            yield Lesson(source=source, model=IMPORTED, prompt=digests[path], experiences=part, data_class=data_class)
