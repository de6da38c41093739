"""Judging the diagnoses of a finished run: what is judged, by which judge, and the line written for each verdict."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from agentclinic.cases.facts import chart_text
from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.solvable import is_world
from agentclinic.clinic.judge import Judge, by_code, mode_of
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.clinic.prompts import Prompt, load_prompt, user_prompts
from agentclinic.config import JudgeMode, Settings
from agentclinic.doctors.uncertainty.store import FOLDER, Session, SessionError, SessionStore, read_session
from agentclinic.doctors.uncertainty.synthesis import synthesise
from agentclinic.doctors.uncertainty.tools import top_of
from agentclinic.errors import InputError
from agentclinic.jsonl import loads
from agentclinic.models.base import BATCH_SHARE, Model, ModelError
from agentclinic.models.batch import FromBatch
from agentclinic.models.endpoint import Share
from agentclinic.models.recording import enter_unit
from agentclinic.privacy import DataClass
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.results.record import Fault, Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import diagnosis_of, judgement_lines, unit_of
from agentclinic.results.turn import Usage
from agentclinic.runs.budget import Spent
from agentclinic.runs.build import Models
from agentclinic.runs.estimate import QUESTION, Amount, Row, judging, rows, tokens_in
from agentclinic.runs.play import Metered
from agentclinic.runs.shards import Work


@dataclass(frozen=True)
class Task:
    """What to judge, with which judge, and where the verdicts go."""

    folder: Path
    path: Path
    records: list[Record]
    charts: Callable[[], Mapping[str, str]]
    """Gives the text of each case's chart in the run, by the case's id."""
    models: Models
    model: Model
    """The judge."""
    prompt: Prompt
    mode: JudgeMode
    synthesis: Synthesis | None = None
    """Makes the diagnoses again; None if the recorded ones are judged."""
    batched: FromBatch | None = None
    """Set where the first request was answered in a batch, for half the price."""

    @property
    def roles(self) -> tuple[str, ...]:
        return ("moderator", "synthesis") if self.synthesis else ("moderator",)

    @property
    def note(self) -> Path:
        """Where the batches of the judge's requests are noted."""
        return self.path.with_suffix(".batch.json")

    @cached_property
    def made_by(self) -> dict[str, Any]:
        """What a verdict depends on."""
        synthesis = {"synthesis": self.synthesis.made_by} if self.synthesis else {}
        said = {used.roles[0]: used.explicit for used in self.models.in_use(self.roles) if used.explicit}
        generation = {"generation": said} if said else {}
        return {"moderator_llm": self.model.name, "judge": self.mode, **generation, **synthesis}

    def kept(self) -> dict[str, dict[str, Any]]:
        return kept_verdicts(self.path, self.records, self.made_by)

    def decided(self, record: Record) -> bool:
        """Whether code decides on the recorded diagnosis, so that the model is not asked."""
        return self.mode == "cascade" and not self.synthesis and by_code(self._asked(record)).correct is not None

    def _asked(self, record: Record) -> JudgePayload:
        key = answer_key_of((record.annotations or {}).get("Answer_Key"))
        chart = self.charts().get(record.case_hash or "", "")
        whole = record.final_doctor_dialogue or record.diagnosis_text or ""
        return JudgePayload(diagnosis_of(record) or "", record.ground_truth or "", key, chart, whole)

    async def judgement(self, record: Record) -> dict[str, Any]:
        """The line for one diagnosis: the verdict, or why there is none, and what it cost."""
        entry: dict[str, Any] = {
            "scenario_id": record.scenario_id,
            "case_hash": record.case_hash,
            "repeat": record.repeat,
            **self.made_by,
        }
        enter_unit(f"{record.case_hash}:{record.repeat}")
        asked = self._asked(record)
        usage: dict[str, Usage] = {}
        judge = Judge(Metered(self.model, "moderator", usage), self.prompt, self.mode)
        try:
            if self.synthesis:
                diagnosis, problem = await self.synthesis.of(record, usage)
                asked = replace(asked, diagnosis=diagnosis, utterance=diagnosis)
                entry |= {"synthesis_failed": problem} if problem else {}
            entry["diagnosis"] = asked.diagnosis
            verdict = await judge.judge(asked)
        except ModelError as error:
            fault = {"error": error.kind, "message": str(error)}
            return {**entry, "correct": None, "fault": fault, **self._account(usage)}
        return {
            **entry,
            "correct": verdict.correct,
            "correct_lenient": verdict.correct_lenient,
            "relation": verdict.relation,
            "reason": verdict.reason,
            "decided_by": verdict.decided_by,
            **self._account(usage),
        }

    def _account(self, usage: Mapping[str, Usage]) -> dict[str, Any]:
        """Tokens and cost by role, as in a record."""
        used = {role: asdict(counted) for role, counted in usage.items()}
        costs = {role: self.models.cost_usd(role, tokens) for role, tokens in used.items()}
        whole = costs.get("moderator")
        if self.batched and whole is not None:
            full = self.models.cost_usd("moderator", asdict(self.batched.usage)) or 0.0
            costs["moderator"] = whole - (1 - BATCH_SHARE) * full
        return {"usage": used, "cost_usd": costs}


def open_task(
    folder: Path,
    settings: Settings,
    name: str | None,
    models: Models,
    every: list[Record],
    *,
    resynthesize: bool,
) -> Task:
    """Read what to judge and choose the models; writes nothing."""
    if every and is_world(every[0].dataset):
        raise InputError(f"{folder}: a solvable world is judged by name; there is nothing to judge again")
    prompts = user_prompts(settings.run.prompts_dir)
    records = [record for record in every if record.ground_truth is not None and diagnosis_of(record) is not None]
    prompt, model = load_prompt("moderator", prompts), models.for_role("moderator")
    mode, synthesis = mode_of(settings.run, prompt), None
    usual = f"{model.name}_{mode}" if mode in ("model", "original") else model.name
    if resynthesize:
        synthesis = Synthesis(folder, models.for_role("synthesis"), load_prompt("synthesis", prompts), records)
        records = [record for record in records if record in synthesis]
        usual = f"resynthesized_{synthesis.made_by['model']}_{synthesis.made_by['prompt'][:8]}"
    path, charts = judgements_path(folder, name, usual), cache(partial(_charts, folder))
    return Task(folder, path, records, charts, models, model, prompt, mode, synthesis)


def _charts(folder: Path) -> dict[str, str]:
    return {case.id: chart_text(case.facts) for case in read_cases(folder)}


class Synthesis:
    """Diagnoses made again from the facts in the run's sessions."""

    def __init__(self, folder: Path, model: Model, prompt: Prompt, diagnosed: Iterable[Record]) -> None:
        """Read the sessions of encounters that ended with a diagnosis: all before the first request costs anything."""
        self.made_by = {"model": model.name, "prompt": prompt.digest}
        self._model = model
        self._prompt = prompt
        self._sessions: dict[str, Session] = {}
        store = SessionStore(folder / FOLDER)
        for record in diagnosed:
            if not record.session_id:
                continue
            path = store.path(record.session_id)
            try:
                self._sessions[record.unit] = read_session(path)
            except FileNotFoundError:
                raise InputError(f"{path}: missing; {record.unit_name} cannot be synthesized again") from None
            except SessionError as error:
                raise InputError(f"{error}; {record.unit_name} cannot be synthesized again") from None
        if not self._sessions:
            raise InputError("this run has no sessions to make diagnoses from; they are kept by --doctor uncertainty")

    def __contains__(self, record: Record) -> bool:
        return record.unit in self._sessions

    async def of(self, record: Record, usage: dict[str, Usage]) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it; `usage` is added to."""
        session = self._sessions[record.unit]
        model, clarify = Metered(self._model, "synthesis", usage), record.dialogue == "chat"
        found = await synthesise(model, self._prompt, session.facts, top_of(session), clarify=clarify)
        return found.diagnosis, found.error

    def amount(self, record: Record) -> Amount:
        texts = (self._prompt.text("system_base"), self._prompt.text("user_prompt_template"))
        return Amount(1, tokens_in(*texts, *self._sessions[record.unit].facts), QUESTION)


def judgements_path(folder: Path, name: str | None, usual: str) -> Path:
    """The file for the verdicts of a judge; refused if the name cannot be used."""
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "_", usual)
    if name == "recorded":
        raise InputError("name: 'recorded' means the verdicts in scenarios.jsonl; choose another name")
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"name: {name!r} cannot name a file in {folder / 'judgements'}; leave out slashes and dots")
    if not (folder / folders.RECORDS).is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.RECORDS}")
    return folder / "judgements" / f"{name}.jsonl"


def kept_verdicts(path: Path, records: list[Record], made_by: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The verdicts of an earlier call that still hold."""
    diagnoses = {record.unit: diagnosis_of(record) for record in records}
    resynthesized = "synthesis" in made_by
    kept: dict[str, dict[str, Any]] = {}
    for entry in judgement_lines(path):
        # Lines of older versions do not say how they were judged; the builtin judge has only one way.
        before = {"judge": "builtin"} | entry if entry.get("moderator_llm") == "builtin" else entry
        for key in ("moderator_llm", "judge", "generation", "synthesis"):
            if before.get(key) != made_by.get(key):
                raise InputError(
                    f"{path} holds verdicts with {key} {before.get(key) or 'none'}, not {made_by.get(key) or 'none'}; "
                    "choose another file with --name"
                )
        unit = unit_of(entry)
        same = resynthesized or entry.get("diagnosis") == diagnoses.get(unit)
        if not entry.get("fault") and unit in diagnoses and same:
            kept[unit] = entry
    return kept


def lines_to_keep(path: Path, verdicts: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The lines with these verdicts, and those of failed tries that cost something, which must be counted."""

    def counts(entry: Mapping[str, Any]) -> bool:
        if not entry.get("fault"):
            return entry == verdicts.get(unit_of(entry))
        add_entry(spent := Spent(), entry)
        return spent.tokens > 0

    return [entry for entry in judgement_lines(path) if counts(entry)]


def spent_on(path: Path) -> Spent:
    """What the lines of a judgements file cost, including failed tries."""
    spent = Spent()
    for entry in judgement_lines(path):
        add_entry(spent, entry)
    return spent


def add_entry(spent: Spent, entry: Mapping[str, Any]) -> None:
    costs = entry.get("cost_usd") or {}
    for role, used in (entry.get("usage") or {}).items():
        spent.add(role, used, costs.get(role), answered=not entry.get("fault"))


def expected_rows(task: Task, records: Iterable[Record], share: float) -> tuple[Row, ...]:
    """Estimate of what judging these records uses, at a share of the price."""
    amounts = {role: Amount() for role in task.roles}
    for record in records:
        if not task.decided(record):
            diagnosis, truth = diagnosis_of(record) or "", record.ground_truth or ""
            amounts["moderator"] += judging(task.prompt, task.mode, diagnosis, truth)
        if task.synthesis:
            amounts["synthesis"] += task.synthesis.amount(record)
    found = rows(task.models, amounts, task.roles)
    return tuple(replace(row, cost_usd=None if row.cost_usd is None else row.cost_usd * share) for row in found)


@dataclass(frozen=True)
class JudgeJob:
    """Judge diagnoses of a run, as a job for any process that can see its folder."""

    journal: Path
    """The judgements file."""
    folder: Path
    data_class: DataClass
    resynthesize: bool
    final: ClassVar[bool] = False

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[str, dict[str, Any]]]:
        """Read the run's records, and judge them by their units."""
        every = list(read_records(self.folder / folders.RECORDS))
        async with Models(settings, self.data_class, share=share) as models:
            task = open_task(self.folder, settings, self.journal.stem, models, every, resynthesize=self.resynthesize)
            records = {record.unit: record for record in task.records}
            yield lambda unit: task.judgement(records[unit])

    def key(self, item: Record) -> str:
        return item.unit

    def sent(self, item: Record) -> str:
        """The unit: the worker has the records."""
        return item.unit

    def fault(self, result: dict[str, Any]) -> Fault | None:
        return Fault("moderator", **result["fault"]) if "fault" in result else None

    def encode(self, result: dict[str, Any]) -> str:
        return json.dumps(result, ensure_ascii=False)

    def decode(self, text: str) -> dict[str, Any]:
        entry: dict[str, Any] = loads(text)
        return entry
