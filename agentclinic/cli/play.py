"""`agentclinic play`: the consulting room in the browser."""

from __future__ import annotations

import sys

import anyio

from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.privacy import DataClass
from agentclinic.runs.build import Models
from agentclinic.runs.execute import make_ready
from agentclinic.runs.plan import Plan
from agentclinic.runs.progress import progress_for
from agentclinic.viewer.game import seat_plans
from agentclinic.viewer.moves import SEATS
from agentclinic.viewer.room import room_app
from agentclinic.viewer.server import is_loopback, password_for, serve


def play_command(settings: Settings, *, panel: bool, host: str, port: int, browser: bool) -> None:
    """Check the models, then serve until Ctrl-C."""
    password = password_for(host)
    plans = seat_plans(settings, ("doctor",) if panel else SEATS)
    for plan in plans.values():
        if plan.data_class is DataClass.CREDENTIALED and not is_loopback(host):
            raise InputError(f"--host {host}: the cases are credentialed data, which is shown on this machine only")
        anyio.run(_check, plan)
    app = room_app(plans, panel=panel, host=host, password=password)
    serve(app, host=host, port=port, browser=browser, say=lambda line: print(line, flush=True))


async def _check(plan: Plan) -> None:
    async with Models(plan.settings, plan.data_class) as models:
        await make_ready(plan, models, progress_for(quiet=True, stream=sys.stderr))
