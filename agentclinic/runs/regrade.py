"""Judging a run's diagnoses again, with another judge or from a new synthesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agentclinic.config import Settings, is_person
from agentclinic.errors import InputError
from agentclinic.files import Lock, make_folder, write_whole
from agentclinic.jsonl import JsonLines, repair, sealed
from agentclinic.models.base import BATCH_SHARE
from agentclinic.models.batch import keys_noted
from agentclinic.models.retry import Clock
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of
from agentclinic.runs.budget import Budget, Spent
from agentclinic.runs.build import Models
from agentclinic.runs.campaign import Campaign, check_first
from agentclinic.runs.estimate import CHARACTERS, COMMON, Estimate
from agentclinic.runs.execute import note_attestations
from agentclinic.runs.plan import refuse_on_cluster, refuse_unsent
from agentclinic.runs.progress import Progress
from agentclinic.runs.regrade_batch import Batched, refuse_batch
from agentclinic.runs.resume import class_of_run, settings_of
from agentclinic.runs.verdicts import (
    JudgeJob,
    Task,
    add_entry,
    expected_rows,
    lines_to_keep,
    open_task,
    spent_on,
)


@dataclass(frozen=True)
class Regraded:
    path: Path
    judged: int
    failed: int
    changed: tuple[tuple[Record, bool | None], ...]
    """Records whose new verdict differs from theirs, with the new one; None: not readable."""
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
    decided_by: Counter[str] = field(default_factory=Counter)
    """How many of those judged were decided by code, by the model or by a person; the rest could not be read."""
    saved: int = 0
    """Requests that the judge's model was spared, because code decided."""

    @property
    def not_readable(self) -> int:
        return self.judged - self.decided_by.total()


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
    async with _opened(folder, settings, name, resynthesize=resynthesize, batch=batch) as (task, settings):
        path, records, models = task.path, task.records, task.models
        left = not task.note.exists() and len(task.kept()) < len(records)
        await check_first(settings, models, models.in_use(task.roles), progress.say, left=left)
        note_attestations(folder, models.gate)
        make_folder(path.parent)
        budget = Budget.of(settings, before)
        batched: Batched | None = None
        with ExitStack() as locks:
            if batch:  # it may wait for hours, in which other judges can judge
                locks.enter_context(Lock(path.parent, f".{path.stem}.batch.lock", what="judge's batch"))
                batched = Batched(task, progress, clock)
                await batched.ask(budget, wait=wait)
            locks.enter_context(Lock(path.parent, what="run's judgements"))
            repair(path)
            spent, verdicts = spent_on(path), task.kept()
            if path.exists():
                kept = lines_to_keep(path, verdicts)
                write_whole(path, "".join(f"{sealed(entry).decode()}\n" for entry in kept))
            campaign = await _judge(task, settings, batched, verdicts, budget, spent, progress)
            pool, failures = campaign.pool, campaign.failures
            if batched and pool.reason is None:
                await batched.finish()
            if batched and batched.pending:
                spent.add("moderator", batched.expected.amount.tokens, batched.expected.cost_usd)
    judged = [(record, verdicts[record.unit]) for record in records if record.unit in verdicts]
    new = sum(entry["diagnosis"] != diagnosis_of(record) for record, entry in judged)
    # Lines of older versions do not say who decided; all of these come from the builtin judge.
    deciders = Counter(e.get("decided_by") or "code" for _, e in judged if e["correct"] is not None)
    return Regraded(
        path,
        len(verdicts),
        len(failures),
        tuple((r, e["correct"]) for r, e in judged if r.correct is not e["correct"]),
        len(records) - len(verdicts) - len(failures),
        pool.reason or (batched and batched.reason) or (failures[0].message if failures else None),
        pool.interrupted or (batched is not None and batched.interrupted),
        new if resynthesize else None,
        sum(record.case_hash not in task.charts() for record in records),
        spent,
        batched.ids if batched else (),
        batched.pending if batched else 0,
        deciders,
        deciders["code"] if task.mode == "cascade" else 0,
    )


@asynccontextmanager
async def _opened(
    folder: Path, settings: Settings, name: str | None, *, resynthesize: bool, batch: bool
) -> AsyncIterator[tuple[Task, Settings]]:
    """What is to be judged, and the settings to judge it with; refused if that is impossible."""
    if resynthesize:
        settings = _with_the_runs_synthesis(folder, settings, batch=batch)
    # A recording belongs to a run; judging again is not recorded.
    settings = settings.changed(record=None, **({"workers": 1} if is_person(settings.run.moderator_llm) else {}))
    every = list(read_records(folder / folders.RECORDS))
    async with Models(settings, class_of_run(folder, every)) as models:
        task = open_task(folder, settings, name, models, every, resynthesize=resynthesize)
        _refuse(task, settings, batch=batch)
        yield task, settings


async def _judge(
    task: Task,
    settings: Settings,
    batched: Batched | None,
    verdicts: dict[str, dict[str, Any]],
    budget: Budget,
    spent: Spent,
    progress: Progress,
) -> Campaign[Record, dict[str, Any]]:
    """Judge what has no verdict yet; of a batch, what was answered. `verdicts` and `spent` are added to."""

    async def judge_here(record: Record) -> dict[str, Any]:
        asked = batched is not None and record.unit in batched.answers
        answered = batched.answered(record, lambda: budget.used_up(spent)) if batched and asked else task
        return await answered.judgement(record)

    def write(unit: str, entry: dict[str, Any]) -> None:
        sink.append(entry)
        if "fault" not in entry:
            verdicts[unit] = entry

    gate = task.models.gate
    campaign = Campaign(
        settings=settings,
        models=task.models,
        progress=progress,
        what="verdicts",
        title="diagnoses to judge",
        job=JudgeJob(task.path.absolute(), task.folder.absolute(), gate.data_class, task.synthesis is not None),
        here=judge_here,
        record=write,
        count=partial(add_entry, spent),
        asked=task.models.in_use(task.roles),
        budget=budget,
        spent=spent,
        done=set(verdicts),
        paid=batched is not None,
    )
    left = [
        record
        for record in task.records
        if batched is None or record.unit in batched.answers or record.unit in batched.decided
    ]
    if batched is None or any(record.unit not in verdicts for record in left):
        with JsonLines(task.path, private=gate.closed, journal=True) as sink:
            await campaign.run(left, [record.unit for record in task.records])
    return campaign


def _refuse(task: Task, settings: Settings, *, batch: bool) -> None:
    """Refuse a batch where there can be none, and to judge directly what a batch was submitted for."""
    refuse_on_cluster(settings)
    refuse_unsent(settings, task.roles, only_flags=True)
    if batch:
        if settings.ray:
            raise InputError("--batch needs no cluster: the provider does the work; leave out --engine")
        refuse_batch(task)
    elif task.note.exists():
        raise InputError(
            f"{task.note}: a batch was submitted to this judge; fetch its verdicts with --batch, or delete this file "
            "to forget it"
        )


async def estimate_regrade(
    folder: Path, settings: Settings, name: str | None = None, *, resynthesize: bool = False, batch: bool = False
) -> Estimate:
    """What judging the run again would use; nothing is sent or written."""
    async with _opened(folder, settings, name, resynthesize=resynthesize, batch=batch) as (task, _):
        done = {*task.kept(), *keys_noted(task.note)}
        left = [record for record in task.records if record.unit not in done]
        found = expected_rows(task, left, BATCH_SHARE if batch else 1.0)
        decided = sum(map(task.decided, left))
    basis = [f"input: the prompts and the recorded diagnoses, {CHARACTERS} characters per token", *COMMON]
    if task.mode == "cascade":
        basis.append(
            "judge: an upper limit; new diagnoses that code can read need no request"
            if resynthesize
            else f"judge: code decides {decided} of {len(left)}, without a request"
        )
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
