"""Playing many units at once and writing each down as soon as it is over."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.lowlevel

from agentclinic.config import read_json
from agentclinic.doctors.uncertainty.store import FOLDER, SessionError, SessionStore
from agentclinic.errors import InputError
from agentclinic.files import is_private
from agentclinic.jsonl import JsonLines, repair
from agentclinic.models.base import FATAL, Leave
from agentclinic.models.gate import Gate, in_force
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import drop_records, read_records
from agentclinic.runs.build import Models, current
from agentclinic.runs.plan import Plan, Unit
from agentclinic.runs.play import play
from agentclinic.scoring.outcome import MISSING, Summary, Tally
from agentclinic.version import __version__

GRACE = 30.0
"""Seconds that encounters under way have to finish after Ctrl-C: a turn of a slow model takes about ten."""


class Observer(Protocol):
    """Is told how a run goes."""

    def start(self, total: int, done: Tally) -> None:
        """The run begins; `done` counts what an earlier process already finished."""
        ...

    def finished(self, tally: Tally) -> None:
        """A unit is over and on disk."""
        ...

    def say(self, message: str) -> None:
        """Something the user should know now."""
        ...

    def stop(self) -> None:
        """The run is over."""
        ...


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


async def execute(plan: Plan, observer: Observer) -> Finished:
    """Make the run's folder and play every unit of the plan."""
    async with Models(plan.settings, plan.data_class) as models:
        models.prepare()
        output, private = Path(plan.settings.run.output_dir), models.gate.closed
        folder = folders.create(output, plan.dataset, datetime.now(), private=private)
        folders.write_json(folder / folders.CONFIG, used_config(plan, models.gate))
        return await play_missing(plan, folder, models, observer)


async def resume(plan: Plan, folder: Path, observer: Observer, *, retry_failed: bool = False) -> Finished:
    """Play what is missing in a run's folder; with `retry_failed` also what failed without a verdict."""
    async with Models(plan.settings, plan.data_class) as models:
        models.prepare()
        note_attestations(folder, models.gate)
        return await play_missing(plan, folder, models, observer, retry_failed=retry_failed)


def note_attestations(folder: Path, gate: Gate) -> None:
    """Before credentialed data of a run is sent again: close its folder, write down who answers for which host now."""
    if not gate.closed:
        return
    folders.make_private(folder)
    path = folder / folders.CONFIG
    if gate.attested and path.is_file():
        used = read_json(path)
        ours = used.setdefault("agentclinic", {}) if isinstance(used, dict) else None
        if not isinstance(ours, dict):
            raise InputError(f"{path}: cannot take down who answers for a host; it was not written by this program")
        known = ours.get("attestations", [])
        ours["attestations"] = known + [entry for entry in in_force(gate) if entry not in known]
        if ours["attestations"] != known:
            folders.write_json(path, used)


def used_config(plan: Plan, gate: Gate) -> dict[str, Any]:
    """`config.used.json`: the settings without secrets, what guards resuming, who answers for which host."""
    return {
        **plan.settings.public(),
        "agentclinic": {
            "version": __version__,
            "dataset": plan.dataset,
            "units": len(plan.units),
            "digest": dict(plan.digest),
            "data_class": plan.data_class.value,
            **({"attestations": in_force(gate)} if gate.attested else {}),
        },
    }


async def play_missing(
    plan: Plan, folder: Path, models: Models, observer: Observer, *, retry_failed: bool = False
) -> Finished:
    """Play the units that have no record in the folder yet, then write the summary."""
    began = time.perf_counter()
    records = folder / folders.RECORDS
    with folders.Lock(folder):
        if repair(records):
            observer.say(f"{records}: the last line was torn and was cut off; its scenario is played again")
        if retry_failed:
            drop_records(records, lambda record: record.status in MISSING)
        tally, done = Tally(), set()
        for record in read_records(records) if records.exists() else ():
            tally.add(record)
            done.add(record.unit)
        with JsonLines(records, private=is_private(folder)) as journal:
            pool = Pool(plan, models, journal, tally, observer, SessionStore(folder / FOLDER))
            observer.start(len(plan.units), tally)
            outer = current.set(models)
            try:
                await pool.work_off(unit for unit in plan.units if unit.key not in done)
            finally:
                current.reset(outer)
                observer.stop()
        seconds = round(time.perf_counter() - began, 3)
        summary = tally.summary()
        folders.write_json(
            folder / folders.SUMMARY, {**summary.model_dump(mode="json"), "timing": {"seconds": seconds}}
        )
    missing = len(plan.units) - tally.presented
    return Finished(folder, summary, seconds, missing, pool.reason, pool.interrupted)


class Pool:
    """Tasks that take units from one queue until it is empty or somebody says stop."""

    def __init__(
        self,
        plan: Plan,
        models: Models,
        journal: JsonLines,
        tally: Tally,
        observer: Observer,
        sessions: SessionStore,
    ) -> None:
        self.reason: str | None = None
        """Why no further unit is taken; None while all is well."""
        self.interrupted = False
        self._plan = plan
        self._models = models
        self._journal = journal
        self._tally = tally
        self._observer = observer
        self._sessions = sessions
        self._check_limit()

    async def work_off(self, units: Iterable[Unit]) -> None:
        """Play the units, `workers` at a time."""
        queue = iter(units)

        async def worker() -> None:
            while self.reason is None and (unit := next(queue, None)) is not None:
                await self._play(unit)
                await anyio.lowlevel.checkpoint()

        try:
            async with anyio.create_task_group() as watch:
                watch.start_soon(self._listen, watch.cancel_scope)
                async with anyio.create_task_group() as group:
                    for _ in range(self._plan.settings.run.workers):
                        group.start_soon(worker)
                watch.cancel_scope.cancel()
        except BaseExceptionGroup as several:
            raise _first(several) from None

    async def _play(self, unit: Unit) -> None:
        try:
            record = await play(self._plan, unit, self._models, self._sessions)
        except Leave:
            self.reason, self.interrupted = "you left", True
            return
        # A case whose image is not there, a session that cannot be written: to be mended before this unit is played.
        except (InputError, SessionError) as error:
            self._stop(str(error))
            return
        if record.fault and record.fault.error in FATAL:
            self._stop(f"{record.fault.role}: {record.fault.message}")
            return
        self._journal.append(record.model_dump(mode="json"))
        self._tally.add(record)
        self._observer.finished(self._tally)
        self._check_limit()

    def _check_limit(self) -> None:
        limit = self._plan.settings.llm.runtime.token_limit
        if limit is not None and self._tally.tokens >= limit:
            self._stop(
                f"the token limit of {limit:,} is reached with {self._tally.tokens:,} used; "
                "raise it with --token-limit N"
            )

    def _stop(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason

    async def _listen(self, scope: anyio.CancelScope) -> None:
        """First Ctrl-C: take no new unit and let those under way finish; second one, or too long: stop now."""
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            return  # there a loop cannot hear signals, and Ctrl-C stops at once
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                if self.interrupted or self._plan.people:
                    self.reason = self.reason or "interrupted"
                    self.interrupted = True
                    scope.cancel()
                    return
                self.interrupted = True
                self._stop("interrupted")
                self._observer.say(
                    f"stopping: encounters under way have {GRACE:g} s to finish; press Ctrl-C again to stop now"
                )
                scope.deadline = anyio.current_time() + GRACE


def _first(error: BaseException) -> BaseException:
    """The first failure of several: the others are its cancelled neighbours or say the same."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
