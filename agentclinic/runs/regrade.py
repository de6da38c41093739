"""Judging a run's diagnoses again, with another judge or from a new synthesis."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
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
from agentclinic.files import Lock, make_folder, write_whole
from agentclinic.jsonl import JsonLines, repair, sealed
from agentclinic.models.base import FATAL, Model, ModelError
from agentclinic.models.recording import enter_unit
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.results.outcome import Fault
from agentclinic.results.record import Record
from agentclinic.results.run_cases import read_cases
from agentclinic.results.run_data import diagnosis_of, judgement_lines, unit_of
from agentclinic.results.turn import Usage
from agentclinic.runs.budget import Budget, Spent, refuse_unpriced
from agentclinic.runs.build import Models
from agentclinic.runs.check import check_models, gone
from agentclinic.runs.estimate import CHARACTERS, COMMON, QUESTION, Amount, Estimate, judging, rows, tokens_in
from agentclinic.runs.execute import note_attestations
from agentclinic.runs.outage import OUTAGE, Outage
from agentclinic.runs.play import Metered
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import class_of_run, settings_of


@dataclass(frozen=True)
class Regraded:
    """The outcome of judging a run again."""

    path: Path
    judged: int
    failed: int
    changed: tuple[tuple[int, bool | None, bool], ...]
    """Scenario, recorded verdict and new verdict, for those that differ."""
    not_tried: int = 0
    reason: str | None = None
    """Why the rest was not tried, or the judge's first failure."""
    interrupted: bool = False
    new_diagnoses: int | None = None
    """How many diagnoses differ from the recorded ones; None if those were judged."""
    without_chart: int = 0
    """Diagnoses judged by names alone: the run does not contain their cases."""
    spent: Spent = field(default_factory=Spent)
    """What all verdicts in the file used, those of earlier calls included."""


class _Recorded:
    """The diagnoses as they are in the records."""

    made_by: Mapping[str, Any] = {}

    def among(self, records: list[Record]) -> list[Record]:
        """Those with a diagnosis to judge."""
        return [record for record in records if diagnosis_of(record) is not None]

    async def of(self, record: Record, usage: dict[str, Usage]) -> tuple[str, str | None]:
        """The diagnosis, and what went wrong in making it."""
        del usage
        return diagnosis_of(record) or "", None


class _Resynthesized:
    """Diagnoses made again from the facts in the run's sessions."""

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
        """About what one synthesis uses."""
        facts = self._sessions[record.session_id or ""].facts
        texts = (self._prompt.text("system_base"), self._prompt.text("user_prompt_template"), *facts)
        return Amount(1, tokens_in(*texts), QUESTION)


async def regrade(
    folder: Path,
    settings: Settings,
    name: str | None = None,
    *,
    progress: Progress | None = None,
    resynthesize: bool = False,
    before: Spent | None = None,
) -> Regraded:
    """Judge every diagnosis in a run with another judge; `scenarios.jsonl` is not touched.

    Writes `judgements/<name>.jsonl`, continues where an earlier call stopped, and retries what failed. With
    `resynthesize` the diagnoses are first synthesized again from the facts in the run's sessions. `before` is what
    the other judges of a jury have used of the budget.
    """
    progress = progress or Progress()
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings)
    every = list(read_records(folder / folders.RECORDS))
    async with Models(_unrecorded(settings), class_of_run(folder, every)) as models:
        task = _open(folder, settings, name, models, every, resynthesize=resynthesize)
        path, records, judge, diagnoses = task.path, task.records, task.judge, task.diagnoses
        made_by, roles = task.made_by, task.roles
        charts = {case.id: chart_text(case.facts) for case in read_cases(folder)}
        refuse_unpriced(models, settings, roles)
        if settings.run.check and len(_kept(path, records, made_by)) < len(records):
            await check_models(models, settings.llm, progress.say, roles)
        note_attestations(folder, models.gate)
        make_folder(path.parent)
        pool = Pool(settings.run.workers, progress.say, what="verdicts")
        with Lock(path.parent, what="run's judgements"):
            repair(path)
            spent = _spent(path)
            verdicts = _kept(path, records, made_by)
            _write_lines(path, verdicts.values())
            failures: list[Fault] = []
            budget = Budget.of(settings, before)

            async def gone_again(_: Collection[str]) -> str | None:
                return await gone(models.in_use(roles), settings.llm, models.gate)

            outage = Outage(settings.run.workers, gone_again if settings.run.check else None)

            def stop_if_used_up() -> None:
                if (reason := budget.used_up(spent)) is not None:
                    pool.stop(reason)

            stop_if_used_up()
            with JsonLines(path, private=models.gate.closed, journal=True) as sink:

                async def judge_one(record: Record) -> None:
                    entry = await _judge(record, judge, diagnoses, charts.get(record.case_hash or "", ""))
                    sink.append(entry)
                    _add(spent, entry)
                    if entry["correct"] is None:
                        failures.append(fault := Fault("moderator", **entry["fault"]))
                        if fault.error in FATAL:
                            pool.stop(fault.message)
                        if fault.error in OUTAGE:
                            reason = await outage.failed(fault.role, fault.message)
                            if reason is not None:
                                pool.stop(reason)
                        else:
                            outage.answered()
                    else:
                        outage.answered()
                        verdicts[record.unit] = entry
                    progress.advance(f"{len(failures)} failed" if failures else "")
                    stop_if_used_up()

                progress.start(len(records), len(verdicts), "diagnoses to judge")
                try:
                    await pool.work_off(one_by_one([r for r in records if r.unit not in verdicts]), judge_one)
                finally:
                    progress.stop()
    new = sum(verdicts[r.unit]["diagnosis"] != diagnosis_of(r) for r in records if r.unit in verdicts)
    return Regraded(
        path,
        len(verdicts),
        len(failures),
        tuple(
            (r.scenario_id, r.correct, verdicts[r.unit]["correct"])
            for r in records
            if r.unit in verdicts and r.correct is not verdicts[r.unit]["correct"]
        ),
        len(records) - len(verdicts) - len(failures),
        pool.reason or (failures[0].message if failures else None),
        pool.interrupted,
        new if resynthesize else None,
        sum(r.case_hash not in charts for r in records),
        spent,
    )


@dataclass(frozen=True)
class _Task:
    """What is to be judged, by whom, and where the verdicts go."""

    path: Path
    records: list[Record]
    judge: _Bench
    diagnoses: _Recorded | _Resynthesized
    roles: tuple[str, ...]
    """The roles whose models are asked."""

    @property
    def made_by(self) -> dict[str, Any]:
        """What a verdict depends on."""
        return {"moderator_llm": self.judge.model.name, **self.diagnoses.made_by}


def _open(
    folder: Path, settings: Settings, name: str | None, models: Models, every: list[Record], *, resynthesize: bool
) -> _Task:
    """Read what is to be judged and choose the models; writes nothing."""
    prompts = user_prompts(settings.run.prompts_dir)
    diagnoses: _Recorded | _Resynthesized = _Recorded()
    usual = settings.run.moderator_llm
    if resynthesize:
        prompt = load_prompt("synthesis", prompts)
        diagnoses = _Resynthesized(folder, models.for_role("synthesis"), prompt)
        usual = f"resynthesized_{diagnoses.made_by['synthesis']['model']}_{prompt.digest[:8]}"
    path = _judgements(folder, name, usual)
    records = diagnoses.among([record for record in every if record.ground_truth is not None])
    moderator = models.for_role("moderator")
    judge = _Bench(models, moderator, load_prompt("moderator", prompts), settings.run.judge_relation)
    return _Task(path, records, judge, diagnoses, ("moderator", "synthesis") if resynthesize else ("moderator",))


async def estimate_regrade(
    folder: Path, settings: Settings, name: str | None = None, *, resynthesize: bool = False
) -> Estimate:
    """What judging the run again would use; nothing is sent or written."""
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings)
    every = list(read_records(folder / folders.RECORDS))
    async with Models(_unrecorded(settings), class_of_run(folder, every)) as models:
        task = _open(folder, settings, name, models, every, resynthesize=resynthesize)
        done = _kept(task.path, task.records, task.made_by)
        amounts = {role: Amount() for role in task.roles}
        left = [record for record in task.records if record.unit not in done]
        for record in left:
            diagnosis, truth = diagnosis_of(record) or "", record.ground_truth or ""
            amounts["moderator"] += judging(task.judge.prompt, diagnosis, truth, relation=task.judge.relation)
            if isinstance(task.diagnoses, _Resynthesized):
                amounts["synthesis"] += task.diagnoses.amount(record)
        found = rows(models, amounts, task.roles)
    basis = f"input: the prompts and the recorded diagnoses, {CHARACTERS} characters per token"
    return Estimate(len(left), "diagnoses to judge", found, found, (basis, *COMMON))


def _with_the_runs_synthesis(folder: Path, settings: Settings) -> Settings:
    """Use the run's own synthesis model unless another is named."""
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
        raise InputError("name: 'recorded' means the verdicts in scenarios.jsonl; choose another name")
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"name: {name!r} cannot name a file in {folder / 'judgements'}; leave out slashes and dots")
    if not (folder / folders.RECORDS).is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.RECORDS}")
    return folder / "judgements" / f"{name}.jsonl"


def _unrecorded(settings: Settings) -> Settings:
    """A recording belongs to a run; judging again is not recorded."""
    return settings.model_copy(update={"run": settings.run.model_copy(update={"record": None})})


def _kept(path: Path, records: list[Record], made_by: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
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


def _write_lines(path: Path, entries: Iterable[dict[str, Any]]) -> None:
    write_whole(path, "".join(f"{sealed(entry).decode()}\n" for entry in entries))


def _spent(path: Path) -> Spent:
    """What the lines of a judgements file cost, those of failed tries included."""
    spent = Spent()
    for entry in judgement_lines(path):
        _add(spent, entry)
    return spent


def _add(spent: Spent, entry: Mapping[str, Any]) -> None:
    costs = entry.get("cost_usd") or {}
    for role, used in (entry.get("usage") or {}).items():
        spent.add(role, used, costs.get(role), answered=entry.get("correct") is not None)


@dataclass(frozen=True)
class _Bench:
    """The judge, and what each verdict costs."""

    models: Models
    model: Model
    prompt: Prompt
    relation: bool

    def judge(self, usage: dict[str, Usage]) -> Judge:
        """The judge of one diagnosis; what it uses is added to `usage`."""
        return Judge(Metered(self.model, "moderator", usage), self.prompt, relation=self.relation)

    def account(self, usage: Mapping[str, Usage]) -> dict[str, Any]:
        """Tokens and cost by role, as in a record."""
        used = {role: asdict(counted) for role, counted in usage.items()}
        return {"usage": used, "cost_usd": {role: self.models.cost_usd(role, tokens) for role, tokens in used.items()}}


async def _judge(record: Record, judge: _Bench, diagnoses: _Recorded | _Resynthesized, chart: str) -> dict[str, Any]:
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
