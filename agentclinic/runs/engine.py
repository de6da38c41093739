"""Playing many units at once and writing each down as soon as it is over."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import anyio

from agentclinic.jsonl import JsonLines
from agentclinic.models.select import Models, current
from agentclinic.record import Record
from agentclinic.runs import folder as folders
from agentclinic.runs.journal import read_records
from agentclinic.runs.plan import Plan, Unit
from agentclinic.runs.play import play
from agentclinic.scoring.outcome import Summary, Tally
from agentclinic.version import __version__


class Observer(Protocol):
    """Is told how a run goes."""

    def start(self, total: int, done: Tally) -> None:
        """The run begins; `done` counts what an earlier process already finished."""
        ...

    def finished(self, tally: Tally) -> None:
        """A unit is over and on disk."""
        ...

    def stop(self) -> None:
        """The run is over."""
        ...


@dataclass(frozen=True)
class Finished:
    """A run that ended."""

    folder: Path
    summary: Summary
    seconds: float


async def execute(plan: Plan, observer: Observer) -> Finished:
    """Make the run's folder and play every unit of the plan."""
    output = Path(plan.settings.run.output_dir)
    folder = folders.create(output, plan.dataset, datetime.now())
    folders.write_json(folder / folders.CONFIG, used_config(plan))
    return await play_missing(plan, folder, observer)


def used_config(plan: Plan) -> dict[str, Any]:
    """`config.used.json`: the settings without secrets, and what guards resuming."""
    return {
        **plan.settings.public(),
        "agentclinic": {
            "version": __version__,
            "dataset": plan.dataset,
            "units": len(plan.units),
            "prompts": {name: str(plan.prompts[name].path.name) for name in plan.prompts.files},
            "digest": dict(plan.digest),
        },
    }


async def play_missing(plan: Plan, folder: Path, observer: Observer) -> Finished:
    """Play the units that have no record in the folder yet, then write the summary."""
    began = time.perf_counter()
    with folders.Lock(folder), JsonLines(folder / folders.RECORDS) as journal:
        tally = Tally()
        done = set()
        for record in read_records(journal.path):
            tally.add(record)
            done.add(record.unit)
        observer.start(len(plan.units), tally)

        def keep(record: Record) -> None:
            journal.append(record.model_dump(mode="json"))
            tally.add(record)
            observer.finished(tally)

        async with Models(plan.settings) as models:
            current.set(models)
            missing = (unit for unit in plan.units if unit.key not in done)
            try:
                await _in_parallel(
                    missing,
                    lambda unit: play(plan, unit, models),
                    keep,
                    workers=plan.settings.run.workers,
                )
            finally:
                observer.stop()
        seconds = round(time.perf_counter() - began, 3)
        summary = tally.summary()
        folders.write_json(
            folder / folders.SUMMARY, {**summary.model_dump(mode="json"), "timing": {"seconds": seconds}}
        )
    return Finished(folder, summary, seconds)


async def _in_parallel(
    units: Iterable[Unit],
    work: Callable[[Unit], Awaitable[Record]],
    keep: Callable[[Record], None],
    *,
    workers: int,
) -> None:
    """Let `workers` tasks take units from one queue until it is empty."""
    queue = iter(units)

    async def worker() -> None:
        for unit in queue:
            keep(await work(unit))
            await anyio.lowlevel.checkpoint()

    try:
        async with anyio.create_task_group() as group:
            for _ in range(workers):
                group.start_soon(worker)
    except BaseExceptionGroup as several:
        raise _first(several) from None


def _first(error: BaseException) -> BaseException:
    """The first failure of several: the others are its cancelled neighbours or say the same."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
