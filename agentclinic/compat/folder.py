"""How we use the original's files in a folder, file by file; each is read as a run would read it.

Also the file of results that the original's script appends to: one JSON object per scenario.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from agentclinic.cases.registry import load_cases, resolve
from agentclinic.clinic.prompts import SHIPPED, load_prompt
from agentclinic.config import PRESETS, LLMFile, load_llm_file, load_settings, read_json, without_credentials
from agentclinic.doctors.planner.settings import is_original, load_policy
from agentclinic.doctors.uncertainty.agent_config import agents_in, load_agent
from agentclinic.doctors.uncertainty.store import FOLDER, read_session
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import is_private
from agentclinic.generate.settings import GenFile, MissingInputError
from agentclinic.generate.settings import load as load_generation
from agentclinic.jsonl import JsonLines
from agentclinic.results.journal import read_records
from agentclinic.results.original import SPEAKERS
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import RECORDS
from agentclinic.scoring.format import plural

_SPEAKERS = {role: speaker for speaker, role in SPEAKERS.items()}


def append_results(folder: Path, file: Path) -> None:
    """Append a run's records to a file in row order; the file is private if the run's folder is."""
    rows = {case.id: case.row for case in read_cases(folder)}
    with JsonLines(file, private=is_private(folder)) as lines:
        for record in sorted(read_records(folder / RECORDS), key=lambda record: (record.repeat, record.scenario_id)):
            lines.append({**record.model_dump(mode="json"), **result(record, rows[record.case_hash or ""])})


def result(record: Record, row: Mapping[str, Any]) -> dict[str, Any]:
    """A record under the keys of the original's script, where a token count that is not known is 0.

    `row` is the case as it is in its file.
    """
    tokens = {role: _tokens((record.usage or {}).get(role) or {}) for role in _SPEAKERS}
    return {
        "problem_info": row,
        "correct_diagnosis": record.ground_truth,
        "model_diagnosis": record.final_doctor_dialogue,
        "dialogue_history": [
            f"{_SPEAKERS[turn.role]}: {turn.text}" for turn in record.transcript or () if turn.role in _SPEAKERS
        ],
        "token_usage": {**tokens, "total": {key: sum(used[key] for used in tokens.values()) for key in _TOKENS}},
    }


_TOKENS = ("total_tokens", "prompt_tokens", "completion_tokens")


def _tokens(used: dict[str, int | None]) -> dict[str, int]:
    sent, received = used.get("input_tokens") or 0, used.get("output_tokens") or 0
    return dict(zip(_TOKENS, (sent + received, sent, received), strict=True))


class Verdict(StrEnum):
    """How a file is used."""

    WORKS = "works as it is"
    TRANSLATED = "translated"
    TO_DO = "to do"
    NONE = "no counterpart"
    BROKEN = "cannot be used"


class FileUse(NamedTuple):
    """One file, or one folder of a run or of sessions, and how it is used."""

    path: Path
    """Relative to the folder."""
    what: str
    verdict: Verdict
    note: str = ""


class _Answer(NamedTuple):
    verdict: Verdict = Verdict.WORKS
    note: str = ""


_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
_POLICY = frozenset({"constraints", "differential_settings"})
_COST_NOTE = "the prices of tests come from a table, not from a model (docs/scoring.md)"


def check_folder(folder: Path) -> list[FileUse]:
    """Every file in a folder and below it that the original's programs read or write, and how it is used here."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    found = [_read(folder, *place) for place in _places(folder)]
    if not found:
        raise InputError(f"{folder}: has no file of the original (config, prompt, agent, session, run or cases)")
    return found


def _places(folder: Path) -> Iterator[tuple[Path, str, Callable[[Path], _Answer]]]:
    """The files to read, what each is, and its reader; the folders of runs and sessions are read as a whole."""
    for where, folders, names in os.walk(folder):
        here = Path(where)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        if RECORDS in names:
            folders.clear()
            yield here, "run", _run
        elif here.name == FOLDER:
            folders.clear()
            if any(name.endswith(".json") for name in names):
                yield here, "sessions", _sessions
        else:
            for path in (here / name for name in sorted(names)):
                kind = _kind(path)
                if kind:
                    yield path, *kind


def _kind(path: Path) -> tuple[str, Callable[[Path], _Answer]] | None:
    """What a file is, by its content, and how to read it; None if the original does not use it."""
    if not path.is_file():  # for example a pipe or a broken link
        return None
    if path.name == "agent_config.yaml":
        return "agents", _agents
    if path.suffix == ".jsonl":
        return _lines_kind(path)
    if path.suffix != ".json":
        return None
    keys = _keys(path)
    if path.parent.name == "prompts":
        if keys & _POLICY:
            return "test policy", _policy
        return "prompt", _prompt
    if "matrix" in keys:
        return None  # a sweep, which the original does not have
    if "run" in keys:
        return "settings", _settings
    if keys & set(LLMFile.model_fields):
        return "endpoint", _endpoint
    if keys & set(GenFile.model_fields):
        return "generation", _generation
    # Broken JSON has no keys; a file whose name says that it is a config is still reported, unless another program has
    # files of that name (tokenizer_config.json).
    return ("settings", _settings) if path.name.endswith(".config.json") else None


def _keys(path: Path) -> set[str]:
    try:
        data = read_json(path)
    except AgentClinicError:
        return set()
    return set(data) if isinstance(data, dict) else set()


def _lines_kind(path: Path) -> tuple[str, Callable[[Path], _Answer]] | None:
    try:
        with path.open("rb") as file:
            keys = set(json.loads(next((line for line in file if line.strip()), b"{}")))
    except OSError:
        return "cases", _cases  # _cases says why it cannot be read
    except (ValueError, TypeError, RecursionError):
        return None
    if "OSCE_Examination" in keys or {"question", "answers", "patient_info"} <= keys:
        return "cases", _cases
    return ("records", _run) if "scenario_id" in keys and keys & {"status", "model_diagnosis"} else None


def _read(folder: Path, path: Path, what: str, read: Callable[[Path], _Answer]) -> FileUse:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            verdict, note = read(path)
        except AgentClinicError as error:
            verdict, note = Verdict.BROKEN, str(error)
    told = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    if told and verdict is Verdict.WORKS:
        verdict = Verdict.TRANSLATED
    return FileUse(path.relative_to(folder), what, verdict, "; ".join(filter(None, (told, note))))


def _settings(path: Path) -> _Answer:
    settings = load_settings(path)
    file = path.parent / resolve(settings.run.dataset, settings.datasets)[1]
    if not file.is_file():
        return _Answer(Verdict.TO_DO, f"put the cases of {settings.run.dataset} at {file}, or change the path")
    ours = {"preset", *PRESETS["original"]} & settings.run.model_fields_set
    return _Answer(note="" if ours else "add --preset original to play as the original did (docs/runs.md)")


def _endpoint(path: Path) -> _Answer:
    return _Answer(note=f"models at {without_credentials(load_llm_file(path).openai.base_url) or 'OpenAI'}")


def _generation(path: Path) -> _Answer:
    try:
        for source in ("mimic", "medqa"):
            load_generation(path, source, {})
    except MissingInputError as error:
        return _Answer(Verdict.TO_DO, str(error))
    return _Answer()


def _prompt(path: Path) -> _Answer:
    if not (SHIPPED / path.name).is_file():
        return _Answer(Verdict.NONE, _COST_NOTE if path.stem == "measurement_cost" else "no role reads this file")
    texts = load_prompt(path.stem, path.parent).texts
    written = {key: text for key, text in read_json(path).items() if isinstance(text, str)}
    return _translated(key for key, text in written.items() if texts.get(key) != text)


def _policy(path: Path) -> _Answer:
    load_policy(path.stem, path.parent)
    data = read_json(path)
    return _translated(key for key in data if is_original(data) and key != "differential_settings")


def _translated(keys: Iterator[str]) -> _Answer:
    names = ", ".join(keys)
    return _Answer(Verdict.TRANSLATED, names) if names else _Answer()


def _agents(path: Path) -> _Answer:
    """Each agent in the file is tried as the uncertainty doctor; the original's other agents have other tasks."""
    usable, others = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they say that the other agents are not used, and so does the note below
        for name in agents_in(path):
            try:
                load_agent(path, name)
                usable.append(name)
            except AgentClinicError:
                others.append(name)
    if not usable:
        load_agent(path)  # raises, with the reason
    chosen = f"for --uncertainty-agent-type: {', '.join(usable)}"
    if others:
        return _Answer(Verdict.TRANSLATED, f"{chosen}; no counterpart: {', '.join(others)}")
    return _Answer(note=chosen)


def _sessions(folder: Path) -> _Answer:
    problems, read = [], 0
    for path in sorted(folder.glob("*.json")):
        try:
            read_session(path)
            read += 1
        except AgentClinicError as error:
            problems.append(str(error))
    if problems:
        raise InputError(f"{len(problems)} of {read + len(problems)} sessions: {'; '.join(problems)}")
    return _Answer(note=f"{plural(read, 'session')}; see `agentclinic sessions`")


def _run(place: Path) -> _Answer:
    count = sum(1 for _ in load_run(place).records())
    return _Answer(note=f"{plural(count, 'scenario')}; see `agentclinic score` and `report`")


def _cases(path: Path) -> _Answer:
    return _Answer(note=f"{plural(len(load_cases(str(path))), 'case')}; see `agentclinic data check`")
