"""Running a plan: every unit is played once and recorded as soon as its encounter is over."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from agentclinic import privacy
from agentclinic.config import ROLES, Settings, read_json
from agentclinic.doctors.uncertainty.store import FOLDER, SessionStore
from agentclinic.errors import ConfigError, InputError
from agentclinic.files import Lock, is_private, write_whole
from agentclinic.jsonl import JsonLines
from agentclinic.models.base import FATAL
from agentclinic.models.endpoint import Share
from agentclinic.models.gate import Gate, in_force
from agentclinic.privacy import DataClass
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import drop_records, read_records
from agentclinic.results.record import MISSING, Fault, Record
from agentclinic.results.run_cases import read_cases, write_cases
from agentclinic.runs.ahead import loading_ahead
from agentclinic.runs.budget import Budget, Spent, spent_on
from agentclinic.runs.build import Models, current
from agentclinic.runs.campaign import Campaign, check_first
from agentclinic.runs.plan import Plan, Unit, make_plan
from agentclinic.runs.play import play
from agentclinic.runs.progress import Progress, run_line
from agentclinic.runs.shards import Work
from agentclinic.scoring.outcome import RunningSummary, Summary
from agentclinic.version import __version__

AUTO = "auto"
"""The part of `config.used.json` with what `simulator: auto` decided, by role."""


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
    spent: Spent = field(default_factory=Spent)
    """What all its records used."""
    played: int = 0
    """Units that were played now, not earlier."""


async def execute(plan: Plan, progress: Progress) -> Finished:
    """Make the run's folder and play every unit of the plan."""
    async with Models(plan.settings, plan.data_class) as models:
        plan = await make_ready(plan, models, progress)
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


async def make_ready(plan: Plan, models: Models, progress: Progress, *, check: bool = True) -> Plan:
    """Before anything is written: refuse what cannot be used or priced, check the models, then open them.

    Returns the plan with what `simulator: auto` decided.
    """
    models.admit()
    await check_first(plan.settings, models, models.in_use(), progress.say, left=check)
    if check and plan.undecided:
        from agentclinic.runs.auto import decide

        plan = await decide(plan, models, progress)
    models.prepare()
    return plan


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
        write_whole(folder / folders.MEMORY, plan.memory.store.path.read_bytes())
    if plan.split:
        from agentclinic.memory.split import write_split

        write_split(folder / folders.SPLIT, plan.split)
    chosen = plan.settings.simulators
    ours = {
        "version": __version__,
        "dataset": plan.dataset,
        "units": len(plan.units),
        "digest": dict(plan.digest),
        "data_class": plan.data_class.value,
        **({"unsupported_bias": dict(plan.unsupported_bias)} if plan.unsupported_bias else {}),
        **({AUTO: {role: choice.model_dump(mode="json") for role, choice in chosen.items()}} if chosen else {}),
        **({"attestations": in_force(gate)} if gate.attested else {}),
    }
    folders.write_used(folder, {**plan.settings.public(), "agentclinic": ours})


def note_attestations(folder: Path, gate: Gate) -> None:
    """Before credentialed data of a run is sent again: make its folder private and record the host attestations."""
    if not gate.closed:
        return
    folders.make_private(folder)
    path = folder / folders.CONFIG
    if gate.attested and path.is_file():
        used = folders.read_used(folder)
        ours = used.setdefault("agentclinic", {})
        if not isinstance(ours, dict):
            raise InputError(f"{path}: cannot record the host attestation; the file was not written by this program")
        known = ours.get("attestations", [])
        ours["attestations"] = known + [entry for entry in in_force(gate) if entry not in known]
        if ours["attestations"] != known:
            folders.write_used(folder, used)


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
        run = plan.settings.run
        running = RunningSummary(judge_elsewhere=run.doctor_endpoint != run.moderator_endpoint)
        spent = spent_on(plan.settings)
        done: set[str] = set()
        with JsonLines(records, private=private, journal=True) as journal:
            for record in read_records(records):
                running.add(record)
                spent.add_record(record, models)
                done.add(record.unit)
            before = len(done)
            sessions = SessionStore(folder / FOLDER, of_run=True)
            crashes: set[tuple[str, ...]] = set()

            async def play_here(unit: Unit) -> Record:
                return await play(plan, unit, models, sessions)

            def write(_: str, record: Record) -> None:
                journal.append(record.model_dump(mode="json"))
                running.add(record)

            def show(unit: Unit, record: Record) -> None:
                progress.played(record, unit.case)
                _show_crash(record, crashes, progress.say)

            campaign = Campaign(
                settings=plan.settings,
                models=models,
                progress=progress,
                what="encounters",
                title="scenarios",
                job=_job(plan, folder),
                here=play_here,
                record=write,
                count=lambda record: spent.add_record(record, models),
                line=lambda: run_line(running),
                budget=budget or Budget.of(plan.settings),
                spent=spent,
                done=done,
                show=show,
                again=lambda record: retry_failed and record.status in MISSING,
                at_once=plan.people,
            )
            outer = current.set(models)
            try:
                with loading_ahead(plan, models):
                    await campaign.run(plan.units)
            finally:
                current.reset(outer)
        summary, earlier = running.summary(), _seconds_before(folder)
        # A run that was already complete keeps its time; one that was resumed took both parts of it.
        now = time.perf_counter() - began if earlier is None or running.presented > before else 0.0
        seconds = round((earlier or 0.0) + now, 3)
        write_summary(plan, folder, summary, seconds)
    missing, pool = len(plan.units) - running.presented, campaign.pool
    return Finished(folder, summary, seconds, missing, pool.reason, pool.interrupted, spent, running.presented - before)


def _seconds_before(folder: Path) -> float | None:
    """How long the run has taken so far, by its `summary.json`; None if that does not say."""
    path = folder / folders.SUMMARY
    try:
        written = read_json(path) if path.is_file() else None
    except ConfigError:
        return None  # it is written again
    timing = written.get("timing") if isinstance(written, dict) else None
    seconds = timing.get("seconds") if isinstance(timing, dict) else None
    same = isinstance(written, dict) and seconds == written.get("duration_seconds", seconds)
    return float(seconds) if same and isinstance(seconds, int | float) else None


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
        **run.model_dump(include={"doctor_test_policy_enabled", "doctor_test_policy"}),
        **summary.model_dump(mode="json"),
        "timing": {"seconds": seconds},
    }
    folders.write_json(folder / folders.SUMMARY, content)


def _job(plan: Plan, folder: Path) -> PlayJob:
    return PlayJob(folder.absolute(), plan.data_class, plan.digest)


def _show_crash(record: Record, shown: set[tuple[str, ...]], say: Callable[[str], None]) -> None:
    """Show where a custom doctor's program failed, once for each place; every record has its own traceback."""
    trace = (record.fault.traceback if record.fault else None) or ""
    place = tuple(line for line in trace.splitlines() if line.startswith("  File "))
    if trace and place not in shown:
        shown.add(place)
        safe = "".join(  # an exception may quote a model, whose words must not act on the terminal
            character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
            for character in trace.rstrip()
        )
        say(f"{record.unit_name}: the doctor's program failed\n{safe}")


@dataclass(frozen=True)
class PlayJob:
    """Play units of the run in this folder."""

    folder: Path
    data_class: DataClass
    digest: Mapping[str, Any]
    """What decides the results; a worker that finds a difference is refused."""
    final: ClassVar[bool] = True

    @property
    def journal(self) -> Path:
        return self.folder / folders.RECORDS

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[str, Record]]:
        """Rebuild the run's plan from its folder, and play its units by their keys."""
        privacy.raise_data_class(self.data_class)
        plan = make_plan(with_own_files(settings, self.folder), read_cases(self.folder))
        changed = changed_keys(self.digest, plan.digest)
        if changed:
            raise ConfigError(
                f"what decides the results is not the same there ({', '.join(changed)}); "
                "the same files must be on all machines"
            )
        plan = replace(plan, data_class=self.data_class)
        units = {unit.key: unit for unit in plan.units}
        sessions = SessionStore(self.folder / FOLDER, of_run=True)
        async with Models(plan.settings, plan.data_class, share=share) as models:
            models.prepare()
            current.set(models)
            with loading_ahead(plan, models):
                yield lambda key: play(plan, units[key], models, sessions)

    def key(self, item: Unit) -> str:
        return item.key

    def sent(self, item: Unit) -> str:
        """The unit's key: the worker has the cases."""
        return item.key

    def fault(self, result: Record) -> Fault | None:
        """Why there is no verdict; a doctor's own failure is a result, unless every further request would fail too."""
        fault = result.fault
        return fault if fault and (result.status in MISSING or fault.error in FATAL) else None

    def encode(self, result: Record) -> str:
        return result.model_dump_json()

    def decode(self, text: str) -> Record:
        return Record.model_validate_json(text)


def with_own_files(settings: Settings, folder: Path) -> Settings:
    """The settings with the run's own copies of the experiences and the split, if it has them."""
    own = {key: str(folder / name) for key, name in (("memory", folders.MEMORY), ("split", folders.SPLIT))}
    used = {key: path for key, path in own.items() if getattr(settings.run, key) and Path(path).exists()}
    return settings.changed(**used)


def changed_keys(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between the digests of two plans."""
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
