"""Where work is done: in this process, or by the workers of a Ray cluster.

A command says as a `Job` what is to be done with an item. It takes the items itself, counts what they cost, decides
when to stop and writes the journal, on either engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from agentclinic.config import Settings
from agentclinic.models.gate import Gate
from agentclinic.runs.job import Item, Job, Result, Work


def check_engine(settings: Settings, gate: Gate) -> None:
    """Before anything is written: refuse a cluster that cannot be used, or to which this data may not go."""
    if settings.run.engine == "ray":
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
    """What does the items of a job: `here`, or on Ray the workers of a cluster, which is not needed if `idle`."""
    if settings.run.engine == "local" or idle:
        yield here
        return
    from agentclinic.runs.ray_engine import Crew

    async with Crew(settings, gate, job, say) as crew:
        yield crew.work
