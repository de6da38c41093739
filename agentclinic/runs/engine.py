"""Where work is done: in this process, or by the workers of a Ray cluster.

A command describes its work as a `Job`. On either engine, the command itself takes the items, counts what they cost,
decides when to stop and writes the journal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agentclinic.config import Settings
from agentclinic.models.gate import Gate
from agentclinic.runs.job import Item, Job, Result, Work


def check_engine(settings: Settings, gate: Gate) -> None:
    """Refuse a cluster that cannot be used, or that this data may not go to, before anything is written."""
    if settings.ray:
        from agentclinic.runs import ray_cluster as cluster

        cluster.processes(settings, cluster.nodes(cluster.connect(settings), gate))


@asynccontextmanager
async def engine(
    settings: Settings,
    gate: Gate,
    job: Job[Item, Result],
    here: Work[Item, Result],
    *,
    say: Callable[[str], None],
    idle: bool = False,
) -> AsyncIterator[Work[Item, Result]]:
    """Yield the function that does the items of a job: `here`, or the workers of a cluster on Ray unless `idle`."""
    if settings.ray is None or idle:
        yield here
        return
    from agentclinic.runs.ray_engine import Crew

    async with Crew(settings, gate, job, say) as crew:
        yield crew.work
