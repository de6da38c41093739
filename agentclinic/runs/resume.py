"""Going back to a run's folder: resuming it, or judging its records anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from agentclinic.cases.facts import chart_text
from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.registry import default_class, load_cases
from agentclinic.clinic.prompts import Prompt, load_prompt
from agentclinic.clinic.roles import Moderator
from agentclinic.config import RunSettings, Settings, parse_settings, read_json, without_credentials
from agentclinic.doctors.uncertainty.store import FOLDER, Session, SessionError, SessionStore, read_session
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.doctors.uncertainty.tools import top_of
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.files import make_folder, write_whole
from agentclinic.jsonl import JsonLines, repair
from agentclinic.models.base import FATAL, Model, ModelError
from agentclinic.models.recording import enter_unit
from agentclinic.privacy import DataClass, strictest
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of, unit_of
from agentclinic.runs.build import Models, variable
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.pool import note_attestations

_SECTIONS = ("run", "datasets", "endpoints", "openai", "llm")


def settings_of(folder: Path, overrides: Mapping[str, Any] | None = None) -> tuple[Settings, dict[str, Any]]:
    """The settings a run was made with, and the digest that guards it."""
    path = folder / folders.CONFIG
    if not path.is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.CONFIG}")
    used = read_json(path)
    ours = used.get("agentclinic") if isinstance(used, dict) else None
    if not isinstance(ours, dict) or not isinstance(ours.get("digest"), dict):
        raise InputError(f"{path} was not written by this program; such a run can be regraded but not resumed")
    data = {name: used[name] for name in _SECTIONS if name in used}
    data["run"] = {**data.get("run", {}), **(overrides or {})}
    return parse_settings(Settings, data, str(path)), ours["digest"]


def plan_again(
    folder: Path,
    overrides: Mapping[str, Any] | None = None,
    key: Settings | None = None,
    token_limit: int | None = None,
) -> Plan:
    """The plan of a run to be resumed; refused, naming the keys, when what decides results has changed."""
    settings, before = settings_of(folder, overrides)
    if key is not None:
        settings = _with_secrets(settings, key)
    if token_limit is not None:
        runtime = settings.llm.runtime.model_copy(update={"token_limit": token_limit})
        settings = settings.model_copy(update={"llm": settings.llm.model_copy(update={"runtime": runtime})})
    plan = make_plan(settings)
    plan = replace(plan, data_class=strictest((plan.data_class, _class_used(folder))))
    changed = sorted(k for k in {*before, *plan.digest} if before.get(k) != plan.digest.get(k))
    if changed:
        details = "; ".join(f"{k} was {_short(before.get(k))}, is {_short(plan.digest.get(k))}" for k in changed)
        raise InputError(
            f"{folder} cannot be resumed: what decides its results has changed ({details}). "
            "Undo the change, or start a new run"
        )
    return plan


def _with_secrets(settings: Settings, given: Settings) -> Settings:
    """Put back what is never written down: the key, and what an address held beside itself."""

    def whole(address: str | None, known: str | None) -> str | None:
        return known if known and without_credentials(known) == address else address

    known = given.openai.base_url or variable("OPENAI_BASE_URL")
    base_url = whole(settings.openai.base_url, known)
    openai = settings.openai.model_copy(update={"api_key": given.openai.api_key, "base_url": base_url})
    endpoints = {
        name: endpoint.model_copy(update={"base_url": whole(endpoint.base_url, given.endpoints[name].base_url)})
        if name in given.endpoints
        else endpoint
        for name, endpoint in settings.endpoints.items()
    }
    # Who answers for a host must do so now: what an earlier run was told is not asked.
    now = {"privacy": given.privacy, "allow_hosts": given.allow_hosts}
    return settings.model_copy(update={"openai": openai, "endpoints": endpoints, **now})


def _class_used(folder: Path) -> DataClass:
    """The class of data a run's `config.used.json` names; a run that was credentialed stays so."""
    path = folder / folders.CONFIG
    used = read_json(path) if path.is_file() else {}
    ours = used.get("agentclinic") if isinstance(used, dict) else None
    said = ours.get("data_class", DataClass.PUBLIC) if isinstance(ours, dict) else DataClass.PUBLIC
    try:
        return DataClass(said)
    except ValueError:
        known = ", ".join(DataClass)
        raise InputError(f"{path}: agentclinic.data_class must be one of {known}, as it was written") from None


def class_of_run(folder: Path, records: Iterable[Record]) -> DataClass:
    """The class of data in a run's folder; where records do not say, their data set's default."""
    said = {_class_used(folder)}
    for record in records:
        name = record.dataset or ""
        said.add(record.data_class or default_class(name, Path(f"{name}.jsonl")))
        if (record.annotations or {}).get("data_class") == DataClass.CREDENTIALED:
            said.add(DataClass.CREDENTIALED)
    return strictest(said)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class Regraded:
    """The outcome of judging a run anew."""

    path: Path
    judged: int
    failed: int
    changed: tuple[tuple[int, bool | None, bool], ...]
    """Scenario, the recorded verdict, the new one: where they differ."""
    not_tried: int = 0
    reason: str | None = None
    """What the judge's first failure was, or why the rest was not tried."""
    new_diagnoses: int | None = None
    """How many diagnoses differ from the recorded ones; None when those were judged."""


class _Recorded:
    """The diagnoses as they are in the records."""

    made_by: Mapping[str, Any] = {}

    def among(self, records: list[Record]) -> list[Record]:
        """Those with a diagnosis to judge."""
        return [record for record in records if diagnosis_of(record) is not None]

    async def of(self, record: Record) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it."""
        return diagnosis_of(record) or "", None


class _Resynthesized:
    """Diagnoses made anew from the facts in the run's sessions."""

    def __init__(self, folder: Path, model: Model, prompt: Prompt) -> None:
        self._store = SessionStore(folder / FOLDER)
        self._sessions: dict[str, Session] = {}
        self._model = model
        self._prompt = prompt
        self.made_by = {"synthesis": {"model": model.name, "prompt": prompt.digest}}

    def among(self, records: list[Record]) -> list[Record]:
        """Those of encounters that came to a conclusion and kept their facts."""
        concluded = [record for record in records if record.session_id and diagnosis_of(record) is not None]
        if not concluded:
            raise InputError("this run has no sessions to make diagnoses from; they are kept by --doctor uncertainty")
        for record in concluded:  # all of them before the first request: a missing one is told while it costs nothing
            path = self._store.path(record.session_id or "")
            try:
                self._sessions[record.session_id or ""] = read_session(path)
            except FileNotFoundError:
                raise InputError(f"{path}: missing; scenario {record.scenario_id} cannot be synthesised anew") from None
            except SessionError as error:
                raise InputError(f"{error}; scenario {record.scenario_id} cannot be synthesised anew") from None
        return concluded

    async def of(self, record: Record) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it."""
        session = self._sessions[record.session_id or ""]
        found = await synthesise(self._model, self._prompt, session.facts, top_of(session))
        return found.diagnosis, found.error


async def regrade(folder: Path, settings: Settings, name: str | None = None, *, resynthesize: bool = False) -> Regraded:
    """Judge every diagnosis in a run with another moderator; `scenarios.jsonl` is not touched.

    Writes `judgements/<name>.jsonl`, goes on where an earlier call stopped, tries again what failed. With
    `resynthesize` the diagnoses are first made anew from the facts in the run's sessions.
    """
    prompts = _prompts_folder(settings.run)
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings)
    failures: list[str] = []
    stop = False
    every = list(read_records(folder / folders.RECORDS))
    async with Models(_unrecorded(settings), class_of_run(folder, every)) as models:
        diagnoses: _Recorded | _Resynthesized = _Recorded()
        usual = settings.run.moderator_llm
        if resynthesize:
            prompt = load_prompt("synthesis", prompts)
            diagnoses = _Resynthesized(folder, models.for_role("synthesis"), prompt)
            usual = f"resynthesized_{diagnoses.made_by['synthesis']['model']}_{prompt.digest[:8]}"
        path = _judgements(folder, name, usual)
        records = diagnoses.among([record for record in every if record.ground_truth is not None])
        moderator = Moderator(
            models.for_role("moderator"), load_prompt("moderator", prompts), relation=settings.run.judge_relation
        )
        charts = _charts(records, settings)
        made_by = {"moderator_llm": moderator.model.name, **diagnoses.made_by}
        note_attestations(folder, models.gate)
        make_folder(path.parent)
        with folders.Lock(path.parent):
            verdicts = _kept(path, records, made_by)
            queue = iter([record for record in records if record.unit not in verdicts])
            tried = len(verdicts)
            with JsonLines(path, private=models.gate.closed) as sink:

                async def worker() -> None:
                    nonlocal stop, tried
                    while not stop and (record := next(queue, None)) is not None:
                        entry = await _judge(record, moderator, diagnoses, charts.get(record.case_hash or "", ""))
                        if entry["correct"] is None:
                            failures.append(entry["fault"]["message"])
                            stop = entry["fault"]["error"] in FATAL
                        else:
                            verdicts[record.unit] = entry
                        tried += 1
                        sink.append(entry)

                async with anyio.create_task_group() as group:
                    for _ in range(settings.run.workers):
                        group.start_soon(worker)
    changed = tuple(
        (r.scenario_id, r.correct, bool(verdicts[r.unit]["correct"]))
        for r in records
        if r.unit in verdicts and r.correct is not bool(verdicts[r.unit]["correct"])
    )
    new = sum(verdicts[r.unit]["diagnosis"] != diagnosis_of(r) for r in records if r.unit in verdicts)
    return Regraded(
        path,
        len(verdicts),
        len(failures),
        changed,
        len(records) - tried,
        failures[0] if failures else None,
        new if resynthesize else None,
    )


def _prompts_folder(run: RunSettings) -> Path | None:
    """The user's prompts, as for a run: those named, else `prompts` where that exists."""
    named = Path(run.prompts_dir) if run.prompts_dir else Path("prompts")
    return named if run.prompts_dir or named.is_dir() else None


def _with_the_runs_synthesis(folder: Path, settings: Settings) -> Settings:
    """Where no synthesis model is named, the one the run used."""
    if settings.run.synthesis_llm:
        return settings
    used, _ = settings_of(folder)
    before = used.run
    named = (before.synthesis_llm or before.doctor_llm, before.synthesis_endpoint or before.doctor_endpoint)
    changes = dict(zip(("synthesis_llm", "synthesis_endpoint"), named, strict=True))
    return settings.model_copy(
        update={
            "run": settings.run.model_copy(update=changes),
            "endpoints": {**used.endpoints, **settings.endpoints},
        }
    )


def _judgements(folder: Path, name: str | None, usual: str) -> Path:
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "_", usual)
    if name == "recorded":
        raise InputError("name: 'recorded' stands for the verdicts in scenarios.jsonl; choose another")
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"name: {name!r} cannot name a file in {folder / 'judgements'}; leave out slashes and dots")
    if not (folder / folders.RECORDS).is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.RECORDS}")
    return folder / "judgements" / f"{name}.jsonl"


def _unrecorded(settings: Settings) -> Settings:
    """A recording belongs to a run; judging anew is none."""
    return settings.model_copy(update={"run": settings.run.model_copy(update={"record": None})})


def _kept(path: Path, records: list[Record], made_by: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The verdicts of an earlier call that still hold; lines without a verdict, or on something else, go."""
    repair(path)
    diagnoses = {record.unit: diagnosis_of(record) for record in records}
    made_anew = "synthesis" in made_by
    kept: dict[str, dict[str, Any]] = {}
    lines = []
    for entry in _lines(path):
        for key in ("moderator_llm", "synthesis"):
            if entry.get(key) != made_by.get(key):
                raise InputError(
                    f"{path} holds the verdicts of {entry.get(key)!r}, not of {made_by.get(key)!r}; "
                    "choose another file with --name"
                )
        unit = unit_of(entry)
        same = made_anew or entry.get("diagnosis") == diagnoses.get(unit)
        if entry.get("correct") is not None and unit in diagnoses and same:
            kept[unit] = entry
            lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")
    write_whole(path, "".join(lines))
    return kept


def _charts(records: list[Record], settings: Settings) -> dict[str, str]:
    """The charts of the records' cases by hash, where their data set is still there: the judge may look into them."""
    charts: dict[str, str] = {}
    for dataset in {record.dataset for record in records if record.dataset}:
        try:
            cases = load_cases(dataset, settings.datasets)
        except AgentClinicError:
            continue  # judged by names alone, as before there were charts
        charts.update((case.id, chart_text(case.facts)) for case in cases)
    return charts


async def _judge(
    record: Record, moderator: Moderator, diagnoses: _Recorded | _Resynthesized, chart: str
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "scenario_id": record.scenario_id,
        "case_hash": record.case_hash,
        "repeat": record.repeat,
        "moderator_llm": moderator.model.name,
        **diagnoses.made_by,
    }
    enter_unit(f"{record.case_hash}:{record.repeat}")
    key = answer_key_of((record.annotations or {}).get("Answer_Key"))
    try:
        diagnosis, problem = await diagnoses.of(record)
        entry |= {"diagnosis": diagnosis} | ({"synthesis_failed": problem} if problem else {})
        verdict = await moderator.judge(diagnosis, record.ground_truth or "", key, chart)
    except ModelError as error:
        return {**entry, "correct": None, "fault": {"error": error.kind, "message": str(error)}}
    return {
        **entry,
        "correct": verdict.yes,
        "correct_lenient": verdict.lenient,
        "relation": verdict.relation,
        "reason": verdict.reason,
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), start=1):
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError
            lines.append(entry)
        except ValueError:
            raise InputError(f"{path} line {number}: not a judgement; move the file away to judge anew") from None
    return lines
