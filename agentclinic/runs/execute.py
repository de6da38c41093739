"""Running a plan: every unit is played once and recorded as soon as its encounter is over."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from agentclinic.config import ROLES, read_json
from agentclinic.doctors.uncertainty.store import FOLDER, SessionError, SessionStore
from agentclinic.errors import ConfigError, InputError
from agentclinic.files import Lock, is_private, write_whole
from agentclinic.jsonl import JsonLines
from agentclinic.memory.split import write_split
from agentclinic.models.base import FATAL
from agentclinic.models.gate import Gate, in_force
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import drop_records, read_records
from agentclinic.results.record import MISSING, Record
from agentclinic.results.run_cases import write_cases
from agentclinic.runs.budget import Budget, Spent, refuse_unpriced
from agentclinic.runs.build import Models, current
from agentclinic.runs.check import check_models, gone
from agentclinic.runs.engine import check_engine, engine
from agentclinic.runs.human import Leave
from agentclinic.runs.job import EngineError, Work
from agentclinic.runs.outage import OUTAGE, Outage
from agentclinic.runs.plan import Plan, Unit
from agentclinic.runs.play import play
from agentclinic.runs.play_job import PlayJob
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress, run_line
from agentclinic.runs.shards import left_over, remove
from agentclinic.scoring.outcome import RunningSummary, Summary
from agentclinic.version import __version__


@dataclass(frozen=True)
class Finished:
    """A run that ended, complete or not."""

    folder: Path
    summary: Summary
    seconds: float
    missing: int
    """Units that were not played."""
    reason: str | None = None
    """Why units are missing."""
    interrupted: bool = False


async def execute(plan: Plan, progress: Progress) -> Finished:
    """Make the run's folder and play every unit of the plan."""
    async with Models(plan.settings, plan.data_class) as models:
        await make_ready(plan, models, progress)
        output, private = Path(plan.settings.run.output_dir), models.gate.closed
        name = plan.settings.run.name
        folder = folders.create(output, plan.dataset, datetime.now(), name=name, private=private)
        begin_folder(plan, folder, models.gate)
        try:
            return await play_missing(plan, folder, models, progress)
        except ConfigError:
            if plan.settings.ray and not (folder / folders.RECORDS).stat().st_size:
                shutil.rmtree(folder)  # the cluster cannot be used: nothing was played
            raise


async def make_ready(plan: Plan, models: Models, progress: Progress, *, check: bool = True) -> None:
    """Before anything is written: refuse what cannot be used or priced, check the models, then open them."""
    models.admit()
    refuse_unpriced(models, plan.settings)
    if check and plan.settings.run.check:
        await check_models(models, plan.settings.llm, progress.say)
    if check:
        check_engine(plan.settings, models.gate)
    models.prepare()


def units_left(plan: Plan, folder: Path, *, retry_failed: bool = False) -> list[Unit]:
    """The units that have no record in the folder yet; changes nothing."""
    path = folder / folders.RECORDS
    failed = MISSING if retry_failed else frozenset()
    done = {record.unit for record in read_records(path) if record.status not in failed} if path.exists() else set()
    return [unit for unit in plan.units if unit.key not in done]


def begin_folder(plan: Plan, folder: Path, gate: Gate) -> None:
    """Write what a run starts with, its settings last, so that a folder with settings is complete."""
    write_cases(folder, plan.cases)
    if plan.memory:
        write_whole(folder / folders.MEMORY, plan.memory.store.path.read_text(encoding="utf-8"))
    if plan.split:
        write_split(folder / folders.SPLIT, plan.split)
    folders.write_json(folder / folders.CONFIG, used_config(plan, gate))


def note_attestations(folder: Path, gate: Gate) -> None:
    """Before credentialed data of a run is sent again: make its folder private and record the host attestations."""
    if not gate.closed:
        return
    folders.make_private(folder)
    path = folder / folders.CONFIG
    if gate.attested and path.is_file():
        used = read_json(path)
        ours = used.setdefault("agentclinic", {}) if isinstance(used, dict) else None
        if not isinstance(ours, dict):
            raise InputError(f"{path}: cannot record the host attestation; the file was not written by this program")
        known = ours.get("attestations", [])
        ours["attestations"] = known + [entry for entry in in_force(gate) if entry not in known]
        if ours["attestations"] != known:
            folders.write_json(path, used)


def used_config(plan: Plan, gate: Gate) -> dict[str, Any]:
    """`config.used.json`: the settings without secrets, the digest that guards resume, and the host attestations."""
    return {
        **plan.settings.public(),
        "agentclinic": {
            "version": __version__,
            "dataset": plan.dataset,
            "units": len(plan.units),
            "digest": dict(plan.digest),
            "data_class": plan.data_class.value,
            **({"unsupported_bias": dict(plan.unsupported_bias)} if plan.unsupported_bias else {}),
            **({"attestations": in_force(gate)} if gate.attested else {}),
        },
    }


async def play_missing(
    plan: Plan,
    folder: Path,
    models: Models,
    progress: Progress,
    *,
    retry_failed: bool = False,
    budget: Budget | None = None,
) -> Finished:
    """Play the units that have no record in the folder yet, then write the summary.

    `budget` is that of the settings unless another is given: that of a sweep, with what its other arms have used.
    """
    began = time.perf_counter()
    records = folder / folders.RECORDS
    private = is_private(folder)
    with Lock(folder):
        with JsonLines(records, private=private, journal=True) as journal:  # no one else may write to it meanwhile
            if journal.removed:
                progress.say(f"{records}: removed an incomplete last line; its scenario is played again")
            if retry_failed:
                drop_records(records, lambda record: record.status in MISSING)
        running, spent, done = RunningSummary(), Spent(), set()
        with JsonLines(records, private=private, journal=True) as journal:
            for record in read_records(records):
                running.add(record)
                spent.add_record(record, models)
                done.add(record.unit)
            player = _Player(plan, models, journal, running, progress, budget or Budget.of(plan.settings), spent)
            job = _job(plan, folder)
            done |= player.take_over(job, done, failed=not retry_failed)
            left = [unit for unit in plan.units if unit.key not in done]
            here = partial(_play_here, plan, models, SessionStore(folder / FOLDER, of_run=True))
            outer = current.set(models)
            try:
                async with engine(plan.settings, models.gate, job, here, say=progress.say, idle=not left) as work:
                    progress.start(len(plan.units), running.presented)
                    try:
                        await player.pool.work_off(one_by_one(left), partial(player.play, work))
                        await player.settle()
                    finally:
                        progress.stop()
                player.take_over(job, player.recorded | done)
            finally:
                current.reset(outer)
        summary, before = running.summary(), _seconds_before(folder)
        # A run that was already complete keeps its time; one that was resumed took both parts of it.
        now = time.perf_counter() - began if before is None or running.presented > len(done) else 0.0
        seconds = round((before or 0.0) + now, 3)
        write_summary(plan, folder, summary, seconds)
    missing = len(plan.units) - running.presented
    return Finished(folder, summary, seconds, missing, player.pool.reason, player.pool.interrupted)


def _seconds_before(folder: Path) -> float | None:
    """How long the run has taken so far, by its `summary.json`; None if that does not say."""
    path = folder / folders.SUMMARY
    try:
        written = read_json(path) if path.is_file() else None
    except ConfigError:
        return None  # it is written again
    timing = written.get("timing") if isinstance(written, dict) else None
    seconds = timing.get("seconds") if isinstance(timing, dict) else None
    return float(seconds) if isinstance(seconds, int | float) else None


def write_summary(plan: Plan, folder: Path, summary: Summary, seconds: float) -> None:
    """Write `summary.json`: the original's keys, which other programs read, then ours."""
    run, started = plan.settings.run, re.search(r"\d{8}_\d{6}", folder.name)
    content = {
        "dataset": plan.dataset,
        **{f"{role}_llm": plan.settings.models[role].name for role in ROLES},
        "num_scenarios": len(plan.units),
        "total_presented": summary.presented,
        "total_correct": summary.correct,
        "accuracy": summary.accuracy,
        "total_inferences": run.total_inferences,
        "duration_seconds": seconds,
        "timestamp": started[0] if started else f"{datetime.now():%Y%m%d_%H%M%S}",
        "output_dir": str(folder),
        "scenario_file": folders.RECORDS,
        "llm_responses_config": plan.settings.llm.responses,
        "llm_runtime_config": plan.settings.llm.runtime.model_dump(mode="json"),
        "resource_level": run.resource_level,
        **summary.model_dump(mode="json"),
        "timing": {"seconds": seconds},
    }
    folders.write_json(folder / folders.SUMMARY, content)


def _job(plan: Plan, folder: Path) -> PlayJob:
    return PlayJob(folder.absolute(), plan.data_class, plan.digest)


async def _play_here(plan: Plan, models: Models, sessions: SessionStore, unit: Unit) -> Record:
    return await play(plan, unit, models, sessions)


class _Player:
    """Plays units and writes each record as soon as its encounter is over."""

    def __init__(
        self,
        plan: Plan,
        models: Models,
        journal: JsonLines,
        running: RunningSummary,
        progress: Progress,
        budget: Budget,
        spent: Spent,
    ) -> None:
        self.pool = Pool(plan.settings.run.workers, progress.say, at_once=plan.people)
        self._plan = plan
        self._models = models
        self._journal = journal
        self._running = running
        self._progress = progress
        self._budget = budget
        self._spent = spent
        self._outage = Outage(plan.settings.run.workers, self._ask if plan.settings.run.check else None)
        self._held: list[Record] = []
        """Failures in a row that may mean the server is gone: recorded once it turns out that it is not."""
        self._gone = False
        self._crashes: set[tuple[str, ...]] = set()
        self.recorded: set[str] = set()
        """Units recorded by this process."""
        self._check_limit()

    def take_over(self, job: PlayJob, known: Collection[str], *, failed: bool = True) -> set[str]:
        """Record what workers of a cluster had finished when they, or the main process, were stopped.

        With `failed` false, what failed without a verdict is left out, to be played again.
        """
        missing = {unit.key for unit in self._plan.units}.difference(known)
        found: set[str] = set()
        for key, record in left_over(job, missing):
            if record.status in MISSING and not failed:
                continue
            self._spent.add_record(record, self._models)
            self._journal.append(record.model_dump(mode="json"))
            self._running.add(record)
            found.add(key)
        remove(job.journal)
        self._check_limit()
        return found

    async def play(self, work: Work[Unit, Record], unit: Unit) -> None:
        """Play one unit; an encounter that was stopped is not recorded."""
        try:
            record = await work(unit)
        except Leave:
            self.pool.interrupt("you left")
            return
        # A missing image or a session that cannot be written: the user must fix it before this unit is played.
        except (InputError, SessionError, EngineError) as error:
            self.pool.stop(str(error))
            return
        if record.fault and record.fault.error in FATAL:
            self.pool.stop(f"{record.fault.role}: {record.fault.message}")
            return
        self._spent.add_record(record, self._models)
        self._progress.played(record, unit.case)
        self._show_crash(record)
        if record.fault and record.status in MISSING and record.fault.error in OUTAGE:
            if self._gone:
                return  # it was under way when the server was found to be gone
            self._held.append(record)
            await self._stop_if_hopeless(self._outage.failed(record.fault.role, record.fault.message))
        else:
            self._outage.answered()
            self._record_held()
            self._record(record)
        self._check_limit()

    async def settle(self) -> None:
        """At the end: record the last failures, unless the server is still gone; then they are played on resume."""
        if self.pool.interrupted:
            return  # the user does not want to wait for an answer; what failed last is played on resume
        if self._held and not self._gone:
            await self._stop_if_hopeless(self._outage.confirmed())
        self._record_held()

    async def _stop_if_hopeless(self, verdict: Awaitable[str | None]) -> None:
        reason = await verdict
        if reason is not None:
            self._gone = True
            self.pool.stop(f"{reason}. Encounters that failed for this reason were not recorded")
        if self._gone:
            self._held.clear()
        elif not self._outage.suspects:
            self._record_held()

    def _show_crash(self, record: Record) -> None:
        """Show where a custom doctor's program failed, once for each place; every record has its own traceback."""
        trace = (record.fault.traceback if record.fault else None) or ""
        place = tuple(line for line in trace.splitlines() if line.startswith("  File "))
        if trace and place not in self._crashes:
            self._crashes.add(place)
            shown = "".join(  # an exception may quote a model, whose words must not act on the terminal
                character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
                for character in trace.rstrip()
            )
            self._progress.say(f"scenario {record.scenario_id}: the doctor's program failed\n{shown}")

    def _record_held(self) -> None:
        for record in self._held:
            self._record(record)
        self._held.clear()

    def _record(self, record: Record) -> None:
        self._journal.append(record.model_dump(mode="json"))
        self.recorded.add(record.unit)
        self._running.add(record)
        self._progress.advance(run_line(self._running))

    async def _ask(self, roles: Collection[str]) -> str | None:
        return await gone(self._models.in_use(roles), self._plan.settings.llm, self._models.gate)

    def _check_limit(self) -> None:
        reason = self._budget.used_up(self._spent)
        if reason is not None:
            self.pool.stop(reason)
