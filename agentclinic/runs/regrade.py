"""Judging a run's diagnoses again, with another judge or from a new synthesis."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.files import Lock, make_folder, write_whole
from agentclinic.jsonl import JsonLines, repair, sealed
from agentclinic.models.base import BATCH_SHARE, FATAL
from agentclinic.models.batch import keys_noted
from agentclinic.models.retry import Clock
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.results.record import Fault, Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.runs import shards
from agentclinic.runs.budget import Budget, Spent, refuse_unpriced
from agentclinic.runs.build import Models
from agentclinic.runs.check import check_models, gone
from agentclinic.runs.engine import check_engine, engine
from agentclinic.runs.estimate import CHARACTERS, COMMON, Estimate
from agentclinic.runs.execute import note_attestations
from agentclinic.runs.job import EngineError, Work
from agentclinic.runs.outage import OUTAGE, Outage
from agentclinic.runs.plan import refuse_on_cluster
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade_batch import Batched, refuse_batch
from agentclinic.runs.resume import class_of_run, settings_of
from agentclinic.runs.verdicts import (
    JudgeJob,
    Task,
    add_entry,
    charts_of,
    expected_rows,
    judge_record,
    kept_verdicts,
    lines_to_keep,
    open_task,
    spent_on,
)


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
    """What all verdicts in the file used, those of earlier calls included; also about what a pending batch will."""
    batches: tuple[str, ...] = ()
    """The batches at the provider in which verdicts were asked for."""
    pending: int = 0
    """Requests in batches that are not over yet, if they were not waited for."""


async def regrade(
    folder: Path,
    settings: Settings,
    name: str | None = None,
    *,
    progress: Progress | None = None,
    resynthesize: bool = False,
    before: Spent | None = None,
    batch: bool = False,
    wait: bool = True,
    clock: Clock | None = None,
) -> Regraded:
    """Judge every diagnosis in a run with another judge; `scenarios.jsonl` is not touched.

    Writes `judgements/<name>.jsonl`, continues where an earlier call stopped, and retries what failed. With
    `resynthesize` the diagnoses are first synthesized again from the facts in the run's sessions. `before` is what
    the other judges of a jury have used of the budget. With `batch`, the judge is asked through its provider's batch
    endpoint; unless `wait`, answers that are not there yet are left for a later call.
    """
    progress = progress or Progress()
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings, batch=batch)
    every = list(read_records(folder / folders.RECORDS))
    async with Models(_unrecorded(settings), class_of_run(folder, every)) as models:
        task = open_task(folder, settings, name, models, every, resynthesize=resynthesize)
        _refuse(task, settings, batch=batch)
        path, records, made_by, roles = task.path, task.records, task.made_by, task.roles
        charts = charts_of(folder)
        refuse_unpriced(models, settings, roles)
        if settings.run.check and not task.note.exists() and len(kept_verdicts(path, records, made_by)) < len(records):
            await check_models(models, settings.llm, progress.say, roles)
        check_engine(settings, models.gate)
        note_attestations(folder, models.gate)
        make_folder(path.parent)
        pool = Pool(settings.run.workers, progress.say, what="verdicts")
        budget = Budget.of(settings, before)
        batched: Batched | None = None
        with ExitStack() as locks:
            if batch:  # it may wait for hours, in which other judges can judge
                locks.enter_context(Lock(path.parent, f".{path.stem}.batch.lock", what="judge's batch"))
                batched = Batched(task, charts, progress, clock)
                await batched.ask(budget, wait=wait)
            locks.enter_context(Lock(path.parent, what="run's judgements"))
            repair(path)
            spent = spent_on(path)
            verdicts = kept_verdicts(path, records, made_by)
            if path.exists():
                _write_lines(path, lines_to_keep(path, verdicts))
            failures: list[Fault] = []
            left = [record for record in records if record.unit not in verdicts]
            if batched:
                left = [record for record in left if record.unit in batched.answers]
            # The answers of a batch are there, and paid for: all of them are read.
            stopping = None if batched else _Stopping(pool, budget, models, settings, roles)

            async def here(record: Record) -> dict[str, Any]:
                bench = batched.bench(record, lambda: budget.used_up(spent)) if batched else task.judge
                return await judge_record(record, bench, task.diagnoses, charts.get(record.case_hash or "", ""))

            async def judge_one(work: Work[Record, dict[str, Any]], record: Record) -> None:
                try:
                    entry = await work(record)
                except (InputError, EngineError) as error:
                    pool.stop(str(error))
                    return
                sink.append(entry)
                add_entry(spent, entry)
                fault = None
                if entry["correct"] is None:
                    failures.append(fault := Fault("moderator", **entry["fault"]))
                else:
                    verdicts[record.unit] = entry
                progress.advance(f"{len(failures)} failed" if failures else "")
                if stopping:
                    await stopping.after(fault, spent)

            if stopping:
                stopping.if_used_up(spent)
            if left or not batched:
                job = _job(path, folder, models, resynthesize=resynthesize)
                with JsonLines(path, private=models.gate.closed, journal=True) as sink:
                    _take_over(job, sink, left, verdicts, spent)
                    left = [record for record in left if record.unit not in verdicts]
                    ours = _unrecorded(settings)
                    async with engine(ours, models.gate, job, here, say=progress.say, idle=not left) as work:
                        progress.start(len(records), len(verdicts), "diagnoses to judge")
                        try:
                            await pool.work_off(one_by_one(left), partial(judge_one, work))
                        finally:
                            progress.stop()
                    _take_over(job, sink, left, verdicts, spent)
            if batched and pool.reason is None:
                await batched.finish()
            if batched and batched.pending:
                spent.add("moderator", batched.expected.amount.tokens, batched.expected.cost_usd)
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
        pool.reason or (batched and batched.reason) or (failures[0].message if failures else None),
        pool.interrupted or (batched is not None and batched.interrupted),
        new if resynthesize else None,
        sum(r.case_hash not in charts for r in records),
        spent,
        batched.ids if batched else (),
        batched.pending if batched else 0,
    )


def _refuse(task: Task, settings: Settings, *, batch: bool) -> None:
    """Refuse a batch where there can be none, and to judge directly what a batch was submitted for."""
    refuse_on_cluster(_unrecorded(settings))
    if batch:
        if settings.ray:
            raise InputError("--batch needs no cluster: the provider does the work; leave out --engine")
        refuse_batch(task)
    elif task.note.exists():
        raise InputError(
            f"{task.note}: a batch was submitted to this judge; fetch its verdicts with --batch, or delete this file "
            "to forget it"
        )


def _job(path: Path, folder: Path, models: Models, *, resynthesize: bool) -> JudgeJob:
    return JudgeJob(path.absolute(), folder.absolute(), models.gate.data_class, resynthesize)


def _take_over(
    job: JudgeJob, sink: JsonLines, left: Iterable[Record], verdicts: dict[str, dict[str, Any]], spent: Spent
) -> None:
    """Write down the verdicts that workers of a cluster had finished when they, or the main process, were stopped."""
    wanted = {record.unit for record in left if record.unit not in verdicts}
    for unit, entry in shards.left_over(job, wanted):
        verdicts[unit] = entry
        sink.append(entry)
        add_entry(spent, entry)
    shards.remove(job.journal)


class _Stopping:
    """Ends the judging early: at a limit, at an error that every request would meet, or if the server is gone."""

    def __init__(self, pool: Pool, budget: Budget, models: Models, settings: Settings, roles: Collection[str]) -> None:
        async def gone_again(_: Collection[str]) -> str | None:
            return await gone(models.in_use(roles), settings.llm, models.gate)

        self._pool = pool
        self._budget = budget
        self._outage = Outage(settings.run.workers, gone_again if settings.run.check else None)

    def if_used_up(self, spent: Spent) -> None:
        """Stop if a limit is reached."""
        if (reason := self._budget.used_up(spent)) is not None:
            self._pool.stop(reason)

    async def after(self, fault: Fault | None, spent: Spent) -> None:
        """Stop, if need be, after a verdict or the judge's failure."""
        if fault and fault.error in FATAL:
            self._pool.stop(fault.message)
        if fault and fault.error in OUTAGE:
            reason = await self._outage.failed(fault.role, fault.message)
            if reason is not None:
                self._pool.stop(reason)
        else:
            self._outage.answered()
        self.if_used_up(spent)


async def estimate_regrade(
    folder: Path, settings: Settings, name: str | None = None, *, resynthesize: bool = False, batch: bool = False
) -> Estimate:
    """What judging the run again would use; nothing is sent or written."""
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings, batch=batch)
    every = list(read_records(folder / folders.RECORDS))
    async with Models(_unrecorded(settings), class_of_run(folder, every)) as models:
        task = open_task(folder, settings, name, models, every, resynthesize=resynthesize)
        _refuse(task, settings, batch=batch)
        done = {*kept_verdicts(task.path, task.records, task.made_by), *keys_noted(task.note)}
        left = [record for record in task.records if record.unit not in done]
        found = expected_rows(task, left, BATCH_SHARE if batch else 1.0)
    basis = [f"input: the prompts and the recorded diagnoses, {CHARACTERS} characters per token", *COMMON]
    if batch:
        basis.append("a batch costs half the price; follow-ups to replies that cannot be read are not counted")
    return Estimate(len(left), "diagnoses to judge", found, found, tuple(basis))


def _with_the_runs_synthesis(folder: Path, settings: Settings, *, batch: bool) -> Settings:
    """Use the run's own synthesis model unless another is named."""
    if batch:
        raise InputError("--batch judges the recorded diagnoses; leave it out with --resynthesize")
    if settings.run.synthesis_llm:
        return settings
    used, _ = settings_of(folder)
    before = used.run
    named = (before.synthesis_llm or before.doctor_llm, before.synthesis_endpoint or before.doctor_endpoint)
    settings = settings.model_copy(update={"endpoints": {**used.endpoints, **settings.endpoints}})
    return settings.changed(synthesis_llm=named[0], synthesis_endpoint=named[1])


def _unrecorded(settings: Settings) -> Settings:
    """A recording belongs to a run; judging again is not recorded."""
    return settings.changed(record=None)


def _write_lines(path: Path, entries: Iterable[dict[str, Any]]) -> None:
    write_whole(path, "".join(f"{sealed(entry).decode()}\n" for entry in entries))
