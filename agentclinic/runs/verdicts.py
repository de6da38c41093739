"""Judging the diagnoses of a finished run: what is judged, by which judge, and the line written for each verdict."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agentclinic.cases.facts import chart_text
from agentclinic.cases.formats import answer_key_of
from agentclinic.clinic.judge import Judge
from agentclinic.clinic.prompts import Prompt, load_prompt, user_prompts
from agentclinic.config import Settings
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
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import diagnosis_of, judgement_lines, unit_of
from agentclinic.results.turn import Usage
from agentclinic.runs.budget import Spent
from agentclinic.runs.build import Models
from agentclinic.runs.estimate import QUESTION, Amount, Row, judging, rows, tokens_in
from agentclinic.runs.job import Work
from agentclinic.runs.metering import Metered


@dataclass(frozen=True)
class Task:
    """What to judge, with which judge, and where the verdicts go."""

    path: Path
    records: list[Record]
    judge: Bench
    diagnoses: Recorded | Resynthesized
    roles: tuple[str, ...]
    """The roles whose models are asked."""

    @property
    def note(self) -> Path:
        """Where the batches of the judge's requests are noted."""
        return self.path.with_suffix(".batch.json")

    @property
    def made_by(self) -> dict[str, Any]:
        """What a verdict depends on."""
        return {"moderator_llm": self.judge.model.name, **self.diagnoses.made_by}


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
    prompts = user_prompts(settings.run.prompts_dir)
    diagnoses: Recorded | Resynthesized = Recorded()
    usual = settings.judge.model
    if resynthesize:
        prompt = load_prompt("synthesis", prompts)
        diagnoses = Resynthesized(folder, models.for_role("synthesis"), prompt)
        usual = f"resynthesized_{diagnoses.made_by['synthesis']['model']}_{prompt.digest[:8]}"
    path = judgements_path(folder, name, usual)
    records = diagnoses.among([record for record in every if record.ground_truth is not None])
    moderator = models.for_role("moderator")
    judge = Bench(models, moderator, load_prompt("moderator", prompts), settings.judge.relation)
    return Task(path, records, judge, diagnoses, ("moderator", "synthesis") if resynthesize else ("moderator",))


class Recorded:
    """The diagnoses as they are in the records."""

    made_by: Mapping[str, Any] = {}

    def among(self, records: list[Record]) -> list[Record]:
        """Those with a diagnosis to judge."""
        return [record for record in records if diagnosis_of(record) is not None]

    async def of(self, record: Record, usage: dict[str, Usage]) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it."""
        del usage
        return diagnosis_of(record) or "", None


class Resynthesized:
    """Diagnoses made again from the facts in the run's sessions."""

    def __init__(self, folder: Path, model: Model, prompt: Prompt) -> None:
        self._store = SessionStore(folder / FOLDER)
        self._sessions: dict[str, Session] = {}
        self._model = model
        self._prompt = prompt
        self.made_by = {"synthesis": {"model": model.name, "prompt": prompt.digest}}

    def among(self, records: list[Record]) -> list[Record]:
        """Those of encounters that ended with a diagnosis and kept their facts."""
        concluded = [record for record in records if record.session_id and diagnosis_of(record) is not None]
        if not concluded:
            raise InputError("this run has no sessions to make diagnoses from; they are kept by --doctor uncertainty")
        for record in concluded:  # check all before the first request costs anything
            path = self._store.path(record.session_id or "")
            try:
                self._sessions[record.session_id or ""] = read_session(path)
            except FileNotFoundError:
                raise InputError(
                    f"{path}: missing; scenario {record.scenario_id} cannot be synthesized again"
                ) from None
            except SessionError as error:
                raise InputError(f"{error}; scenario {record.scenario_id} cannot be synthesized again") from None
        return concluded

    async def of(self, record: Record, usage: dict[str, Usage]) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it; `usage` is added to."""
        session = self._sessions[record.session_id or ""]
        found = await synthesise(Metered(self._model, "synthesis", usage), self._prompt, session.facts, top_of(session))
        return found.diagnosis, found.error

    def amount(self, record: Record) -> Amount:
        """Estimate of what one synthesis uses."""
        facts = self._sessions[record.session_id or ""].facts
        texts = (self._prompt.text("system_base"), self._prompt.text("user_prompt_template"), *facts)
        return Amount(1, tokens_in(*texts), QUESTION)


@dataclass(frozen=True)
class Bench:
    """The judge, and what each verdict costs."""

    models: Models
    model: Model
    prompt: Prompt
    relation: bool
    batched: FromBatch | None = None
    """Set where the first request was answered in a batch, for half the price."""

    def judge(self, usage: dict[str, Usage]) -> Judge:
        """The judge of one diagnosis; what it uses is added to `usage`."""
        return Judge(Metered(self.model, "moderator", usage), self.prompt, relation=self.relation)

    def account(self, usage: Mapping[str, Usage]) -> dict[str, Any]:
        """Tokens and cost by role, as in a record."""
        used = {role: asdict(counted) for role, counted in usage.items()}
        costs = {role: self.models.cost_usd(role, tokens) for role, tokens in used.items()}
        whole = costs.get("moderator")
        if self.batched and whole is not None:
            full = self.models.cost_usd("moderator", asdict(self.batched.usage)) or 0.0
            costs["moderator"] = whole - (1 - BATCH_SHARE) * full
        return {"usage": used, "cost_usd": costs}


async def judge_record(record: Record, judge: Bench, diagnoses: Recorded | Resynthesized, chart: str) -> dict[str, Any]:
    """The line of a judgements file for one diagnosis: the verdict, or why there is none, and what it cost."""
    entry: dict[str, Any] = {
        "scenario_id": record.scenario_id,
        "case_hash": record.case_hash,
        "repeat": record.repeat,
        "moderator_llm": judge.model.name,
        **diagnoses.made_by,
    }
    enter_unit(f"{record.case_hash}:{record.repeat}")
    key = answer_key_of((record.annotations or {}).get("Answer_Key"))
    usage: dict[str, Usage] = {}
    try:
        diagnosis, problem = await diagnoses.of(record, usage)
        entry |= {"diagnosis": diagnosis} | ({"synthesis_failed": problem} if problem else {})
        verdict = await judge.judge(usage).judge(diagnosis, record.ground_truth or "", key, chart)
    except ModelError as error:
        fault = {"error": error.kind, "message": str(error)}
        return {**entry, "correct": None, "fault": fault, **judge.account(usage)}
    return {
        **entry,
        "correct": verdict.correct,
        "correct_lenient": verdict.correct_lenient,
        "relation": verdict.relation,
        "reason": verdict.reason,
        **judge.account(usage),
    }


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
        for key in ("moderator_llm", "synthesis"):
            if entry.get(key) != made_by.get(key):
                raise InputError(
                    f"{path} holds the verdicts of {entry.get(key)!r}, not of {made_by.get(key)!r}; "
                    "choose another file with --name"
                )
        unit = unit_of(entry)
        same = resynthesized or entry.get("diagnosis") == diagnoses.get(unit)
        if entry.get("correct") is not None and unit in diagnoses and same:
            kept[unit] = entry
    return kept


def lines_to_keep(path: Path, verdicts: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The lines with these verdicts, and those of failed tries that cost something, which must be counted."""

    def counts(entry: Mapping[str, Any]) -> bool:
        if entry.get("correct") is not None:
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
    """Count what a line cost."""
    costs = entry.get("cost_usd") or {}
    for role, used in (entry.get("usage") or {}).items():
        spent.add(role, used, costs.get(role), answered=entry.get("correct") is not None)


def expected_rows(task: Task, records: Iterable[Record], share: float) -> tuple[Row, ...]:
    """Estimate of what judging these records uses, at a share of the price."""
    amounts = {role: Amount() for role in task.roles}
    for record in records:
        diagnosis, truth = diagnosis_of(record) or "", record.ground_truth or ""
        amounts["moderator"] += judging(task.judge.prompt, diagnosis, truth, relation=task.judge.relation)
        if isinstance(task.diagnoses, Resynthesized):
            amounts["synthesis"] += task.diagnoses.amount(record)
    found = rows(task.judge.models, amounts, task.roles)
    return tuple(replace(row, cost_usd=None if row.cost_usd is None else row.cost_usd * share) for row in found)


def charts_of(folder: Path) -> dict[str, str]:
    """The text of each case's chart in a run, by the case's id."""
    return {case.id: chart_text(case.facts) for case in read_cases(folder)}


@dataclass(frozen=True)
class JudgeJob:
    """Judge diagnoses of a run, as a job for any process that can see its folder."""

    journal: Path
    """The judgements file."""
    folder: Path
    data_class: DataClass
    resynthesize: bool

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[str, dict[str, Any]]]:
        """Read the run's records, and judge them by their units."""
        every, charts = list(read_records(self.folder / folders.RECORDS)), charts_of(self.folder)
        async with Models(settings, self.data_class, share=share) as models:
            task = open_task(self.folder, settings, self.journal.stem, models, every, resynthesize=self.resynthesize)
            records = {record.unit: record for record in task.records}

            async def judge(unit: str) -> dict[str, Any]:
                record = records[unit]
                return await judge_record(record, task.judge, task.diagnoses, charts.get(record.case_hash or "", ""))

            yield judge

    def key(self, item: Record) -> str:
        """The record's unit."""
        return item.unit

    def sent(self, item: Record) -> str:
        """The unit: the worker has the records."""
        return item.unit

    def is_settled(self, result: dict[str, Any]) -> bool:
        """Whether there is a verdict; what failed is tried again by the next call."""
        return result["correct"] is not None

    def encode(self, result: dict[str, Any]) -> str:
        """The line as JSON."""
        return json.dumps(result, ensure_ascii=False)

    def decode(self, text: str) -> dict[str, Any]:
        """The line from its JSON."""
        entry: dict[str, Any] = loads(text)
        return entry
