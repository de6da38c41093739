"""How we use the original's files in a folder, file by file; each is read as a run would read it.

Also the file of results that the original's script appends to: one JSON object per scenario.
"""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, suppress
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import agentclinic
from agentclinic.cases.registry import load_cases, resolve
from agentclinic.cases.solvable import is_world
from agentclinic.clinic.prompts import SHIPPED, load_prompt
from agentclinic.compat.init import original_files
from agentclinic.config import (
    PRESETS,
    USED,
    LLMFile,
    has_llm_sections,
    load_llm_file,
    load_settings,
    read_json,
    variables_in,
    without_credentials,
)
from agentclinic.doctors.planner.settings import is_original, load_policy
from agentclinic.doctors.uncertainty.agent_config import agents_in, load_agent
from agentclinic.doctors.uncertainty.store import FOLDER, read_session
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import is_private
from agentclinic.generate.medqa import select_questions
from agentclinic.generate.mimic.tables import READ
from agentclinic.generate.settings import SECTIONS, GenFile, MissingInputError
from agentclinic.generate.settings import load as load_generation
from agentclinic.jsonl import JsonLines
from agentclinic.memory.foreign import read_entries
from agentclinic.memory.store import load_store
from agentclinic.models.wire import local_image
from agentclinic.results.journal import read_records
from agentclinic.results.original import SPEAKERS
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import RECORDS, SUMMARY
from agentclinic.runs.plan import make_plan
from agentclinic.runs.sweep import read_sweep
from agentclinic.scoring.costs import FILE as COSTS
from agentclinic.scoring.costs import load_costs
from agentclinic.scoring.format import plural
from agentclinic.trust import UntrustedError

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
    used = record.usage or {}
    tokens = {role: _tokens([used.get(each) or {} for each in (role, *_FOR.get(role, ()))]) for role in _SPEAKERS}
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
_FOR = {"doctor": ("planner", "synthesis", "memory")}
"""What is asked for the doctor counts as the doctor's."""


def _tokens(used: Sequence[Mapping[str, int | None]]) -> dict[str, int]:
    sent, received = (sum(each.get(key) or 0 for each in used) for key in ("input_tokens", "output_tokens"))
    return dict(zip(_TOKENS, (sent + received, sent, received), strict=True))


class Verdict(StrEnum):
    """How a file is used."""

    WORKS = "works as it is"
    TRANSLATED = "translated"
    TO_DO = "to do"
    NONE = "no counterpart"
    BROKEN = "cannot be used"


class FileUse(NamedTuple):
    """One file, or a folder that is not looked into, and how it is used."""

    path: Path
    """Relative to the folder."""
    what: str
    verdict: Verdict
    note: str = ""


class _Answer(NamedTuple):
    verdict: Verdict = Verdict.WORKS
    note: str = ""


_Kind = tuple[str, Callable[[Path], _Answer]]
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
_POLICY = frozenset({"constraints", "differential_settings", "transitions"})
_QUESTION = frozenset({"question", "options", "answer"})
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
_UNREAD = "no command reads it"


def check_folder(folder: Path) -> list[FileUse]:
    """Every file in a folder and below it, and how a run or a command that is started in the folder uses it."""
    folder = folder.absolute()
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    found = [_read(folder, *place) for place in _places(folder)]
    if not found:
        raise InputError(f"{folder}: has no files")
    return found


def _places(folder: Path) -> Iterator[tuple[Path, str, Callable[[Path], _Answer]]]:
    """Every file, what it is, and its reader; also folders that are not looked into."""
    images: set[Path] = set()
    """Local images of the cases that were read."""
    later: list[Path] = []
    for where, folders, names in os.walk(folder):
        here = Path(where)
        closed = [name for name in folders if name.startswith(".") or name in _SKIPPED or (here / name).is_symlink()]
        folders[:] = sorted(set(folders) - set(closed))
        yield from ((here / name, "folder", _closed) for name in sorted(closed))
        for path in (here / name for name in sorted(names)):
            if path.suffix.lower() in _IMAGES and path.is_file():
                later.append(path)
            else:
                yield path, *_kind(path, images)
    for path in later:
        yield path, "image", partial(_image, images)


def _closed(path: Path) -> _Answer:
    what = "a link to a folder" if path.is_symlink() else "files of other programs"
    return _Answer(Verdict.NONE, f"{what}; not looked into")


def _kind(path: Path, images: set[Path]) -> _Kind:
    """What a file is, by its name and content, and how to read it."""
    if not path.is_file():  # for example a pipe or a broken link
        return "other", _no_file
    if path.name == ".env":
        return "variables", _variables
    if path.suffix == ".py":
        return "program", _program
    if table := _table(path):
        return table
    if path.name == "agent_config.yaml":
        return "agents", _agents
    if path.suffix not in (".json", ".jsonl"):
        return "other", _other
    if path.parent.name == FOLDER and path.suffix == ".json":
        return "session", _session
    if path.name == RECORDS:
        return "run", _run
    if path.name == SUMMARY:
        return "summary", _summary
    keys = _first_keys(path)
    if path.parent.name == "prompts" and path.suffix == ".json":
        return ("test policy", _policy) if keys & _POLICY else ("prompt", _prompt)
    if "OSCE_Examination" in keys or {"question", "answers", "patient_info"} <= keys:
        return "cases", partial(_cases, images)
    if "scenario_id" in keys and keys & {"status", "model_diagnosis"}:
        return "records", _run
    if keys >= _QUESTION:
        return "questions", _questions
    if {"source", "experiences"} <= keys:
        return "experiences", _experiences
    if path.suffix == ".jsonl":
        return ("cases", partial(_cases, images)) if not os.access(path, os.R_OK) else ("other", _other)
    if "matrix" in keys:
        return "sweep", _sweep
    if "run" in keys:
        return "settings", _settings
    if keys & set(LLMFile.model_fields):
        return "endpoint", _endpoint
    if keys & set(GenFile.model_fields):
        return "generation", _generation
    # Broken JSON has no keys; a file whose name says that it is a config is still reported, unless another program has
    # files of that name (tokenizer_config.json).
    return ("settings", _settings) if path.name.endswith(".config.json") else ("other", _other)


def _first_keys(path: Path) -> set[str]:
    """The keys of a JSON file, of the first object in its list, or of the first line; none if it cannot be read."""
    try:
        if path.suffix == ".jsonl":
            with path.open("rb") as file:
                data = json.loads(next((line for line in file if line.strip()), b"{}"))
        else:
            data = read_json(path)
    except (AgentClinicError, OSError, ValueError, RecursionError):
        return set()
    data = data[0] if isinstance(data, list) and data else data
    return set(data) if isinstance(data, dict) else set()


def _read(folder: Path, path: Path, what: str, read: Callable[[Path], _Answer]) -> FileUse:
    with chdir(folder), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            verdict, note = read(path)
        except (MissingInputError, UntrustedError) as error:
            verdict, note = Verdict.TO_DO, str(error)
        except AgentClinicError as error:
            verdict, note = Verdict.BROKEN, str(error)
    told = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    if told and verdict is Verdict.WORKS:
        verdict = Verdict.TRANSLATED
    return FileUse(path.relative_to(folder), what, verdict, "; ".join(filter(None, (told, note))))


def _settings(path: Path) -> _Answer:
    """Planned, as a run started next to the file would be; the file that a run keeps is used from the folder above."""
    if path.name != USED:
        os.chdir(path.parent)
    if not has_llm_sections(path) and (beside := path.parent / "llm.config.json").is_file():
        settings = load_settings(path, beside)
    else:
        settings = load_settings(path)
    if not is_world(settings.run.dataset):
        file = path.parent / resolve(settings.run.dataset, settings.datasets)[1]
        if not file.is_file():
            return _Answer(Verdict.TO_DO, f"put the cases of {settings.run.dataset} at {file}, or change the path")
    make_plan(settings)
    ours = {"preset", *PRESETS["original"]} & settings.run.model_fields_set
    return _Answer(note="" if ours else "add --preset original to play as the original did (docs/runs.md)")


def _endpoint(path: Path) -> _Answer:
    openai = load_llm_file(path).openai
    key = "" if openai.api_key or openai.base_url else "; set OPENAI_API_KEY"
    return _Answer(note=f"models at {without_credentials(openai.base_url) or 'OpenAI'}{key}")


def _variables(path: Path) -> _Answer:
    """Names only, and only known ones: a line that lacks its name would be shown as one."""
    names = [name for name in _VARIABLES if name in variables_in(path)]
    if names:
        return _Answer(note=f"a run started in its folder reads {' and '.join(names)}")
    return _Answer(Verdict.NONE, f"has no {' or '.join(_VARIABLES)}; others are read only if api_key_env names them")


def _generation(path: Path) -> _Answer:
    unset = [source for source in SECTIONS if not load_generation(path, source, {})[1].base_dataset_dir]
    return _Answer(note="; ".join(f"`agentclinic generate {source}` needs --base-dir" for source in unset))


def _prompt(path: Path) -> _Answer:
    if path.name == COSTS:
        priced = load_costs(path.parent)
        return _Answer(note="prices and times of tests (docs/scoring.md)") if priced else _Answer(Verdict.NONE)
    if not (SHIPPED / path.name).is_file():
        return _Answer(Verdict.NONE, "no role reads this file")
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


def _session(path: Path) -> _Answer:
    read_session(path)
    return _Answer(note="see `agentclinic sessions`")


def _run(place: Path) -> _Answer:
    count = sum(1 for _ in load_run(place).records())
    return _Answer(note=f"{plural(count, 'scenario')}; see `agentclinic score` and `report`")


def _summary(_path: Path) -> _Answer:
    return _Answer(Verdict.NONE, "not read: `agentclinic score` computes the numbers from the records")


def _cases(images: set[Path], path: Path) -> _Answer:
    cases = load_cases(str(path), lockbox=True)
    images |= {file.resolve() for case in cases if case.image and (file := local_image(case.image))}
    return _Answer(note=f"{plural(len(cases), 'case')}; see `agentclinic data check`")


def _image(images: set[Path], path: Path) -> _Answer:
    if path.resolve() in images:
        return _Answer(note="the image of a case; shown with --doctor-image-request")
    return _Answer(Verdict.NONE, "not the image of a case")


def _questions(path: Path) -> _Answer:
    count = len(select_questions(path).keys)
    return _Answer(note=f"{plural(count, 'case')} for `agentclinic generate medqa`")


def _experiences(path: Path) -> _Answer:
    return _Answer(note=f"{plural(len(load_store(path).experiences), 'experience')} for --memory")


def _sweep(path: Path) -> _Answer:
    read_sweep(path, load_settings())
    return _Answer(note="for `agentclinic sweep`")


def _table(path: Path) -> _Kind | None:
    """A table of MIMIC-IV by its name and folder; tables are not opened, as they may be very large."""
    name = path.name.removesuffix(".gz")
    if path.parent.name not in {table.path.partition("/")[0] for table in READ} | {"icu"} or not name.endswith(".csv"):
        return None
    read = any(table.path == f"{path.parent.name}/{name.removesuffix('.csv')}" for table in READ)
    answer = _Answer(note="for `agentclinic generate mimic`") if read else _Answer(Verdict.NONE, _UNREAD)
    return "table", lambda _path: answer


def _other(path: Path) -> _Answer:
    if _is_ours(path):
        return _Answer(note="written by `agentclinic init`")
    if path.suffix in (".json", ".jsonl"):
        with suppress(AgentClinicError):
            lessons, entries = read_entries([path])
            if lessons or entries:
                return _Answer(Verdict.TRANSLATED, "experiences for `agentclinic memory import`")
    notes = {
        "requirements.txt": "lists the packages of the original's programs; this program has its own",
        ".ipynb": f"{_UNREAD}; in a notebook, import the agents from agentclinic (docs/python.md)",
    }
    return _Answer(Verdict.NONE, notes.get(path.name) or notes.get(path.suffix) or _UNREAD)


def _no_file(path: Path) -> _Answer:
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: a link to a file that does not exist")
    return _Answer(Verdict.NONE, "not a file")


_INSTEAD = {
    "agentclinic.py": "`agentclinic run` with the same flags",
    "agentclinic_api_only.py": "`agentclinic run` with the same flags",
    "gen_mimic_tutorial.py": "`agentclinic generate mimic`",
    "gen_medqa_tutorial.py": "`agentclinic generate medqa`",
}
"""The original's own programs, and what to use in their place."""


def _program(path: Path) -> _Answer:
    """A program is parsed, never run: it may define a doctor, or use the agents of a module that `init` writes."""
    if _is_ours(path):
        return _Answer(note="written by `agentclinic init`")
    if path.name in _INSTEAD:
        return _Answer(Verdict.NONE, f"the original's own program; use {_INSTEAD[path.name]}")
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, OSError):
        return _Answer(Verdict.NONE, "Python cannot parse it")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not {"act", "inference_doctor"}.isdisjoint(_bound(node)):
            return _Answer(note=f"for --doctor {path.name}:{node.name}")
    used = [
        (node.module, name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and _offered(node.module)
        for name in node.names
    ]
    if not used:
        return _Answer(Verdict.NONE, _UNREAD)
    for module in dict.fromkeys(module for module, _ in used):
        own = next((file for file in Path().rglob(f"{module}.py") if not _is_ours(file)), None)
        if own:
            return _Answer(Verdict.NONE, f"uses the original's own {own}, not this program")
    missing = [f"{module}.{name}" for module, name in used if name != "*" and name not in _offered(module)]
    if missing:
        raise InputError(f"{path}: imports {', '.join(missing)}, which this program does not have")
    names = ", ".join(name for _, name in used)
    return _Answer(note=f"imports {names}; run it as before, after `agentclinic init --original`")


@cache
def _offered(module: str) -> frozenset[str]:
    """The names that a module of the original has here: the package, or a file that `agentclinic init` writes."""
    if module == "agentclinic":
        rooms = (each.name for each in pkgutil.iter_modules(agentclinic.__path__))
        return frozenset((*dir(agentclinic), *rooms))
    place = f"/{module.replace('.', '/')}"
    ends = (f"{place}.py", f"{place}/__init__.py")
    texts = [text for name, text in original_files().items() if f"/{name}".endswith(ends)]
    return frozenset(name for text in texts for name in _bound(ast.parse(text)))


def _bound(tree: ast.AST) -> set[str]:
    """The names that are defined or imported in a program or a class."""
    nodes = list(ast.walk(tree))
    imported = {name.asname or name.name for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return imported | {node.name for node in nodes if isinstance(node, defined)}


def _is_ours(path: Path) -> bool:
    """Whether `agentclinic init` wrote the file, and it was not changed."""
    texts = {text for name, text in original_files().items() if name.rpartition("/")[2] == path.name}
    try:
        return bool(texts) and path.read_text(encoding="utf-8") in texts
    except (OSError, ValueError):
        return False
