"""`agentclinic play`: the consulting room in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import finish, progress
from agentclinic.errors import InputError

if TYPE_CHECKING:
    from agentclinic.runs.plan import Plan


PORT = 8642
"""Always the same, so that pages that are open find the server again after a restart."""


@opt.with_settings(
    *("dataset", "scenarios", "offset", "sample", "num_scenarios", "lockbox", "seed", "total_inferences"),
    *("patient_llm", "patient_endpoint", "doctor_llm", "doctor_endpoint", "doctor", "measurement_llm"),
    *("measurement_endpoint", *opt.JUDGE, "simulator", "doctor_image_request", "missing_test"),
    *("pending_results", "silent_symptom", "resource_level", "prompts_dir", "output_dir", "check"),
    limits=False,
)
def play_command(
    *,
    read: opt.Read,
    panel: Annotated[
        bool,
        typer.Option(
            "--panel",
            help="Every player meets every case once, in an order of their own, and is asked about their experience; "
            "everyone is a doctor.",
        ),
    ] = False,
    host: opt.Host = "127.0.0.1",
    port: opt.Port = PORT,
    browser: opt.Browser = True,
) -> None:
    """Play cases in the browser, as the doctor or the patient.

    The other roles are models. Serves this machine only, on port 8642 unless you choose another, until Ctrl-C. Games
    are saved as runs with the model name human:PLAYER, which `agentclinic compare` can compare with those of models.
    """
    from agentclinic.privacy import DataClass
    from agentclinic.viewer.game import seat_plans
    from agentclinic.viewer.moves import SEATS
    from agentclinic.viewer.room import room_app
    from agentclinic.viewer.server import is_loopback, password_for, serve

    settings = read()
    password = password_for(host)
    plans = seat_plans(settings, ("doctor",) if panel else SEATS)
    for seat, plan in plans.items():
        if plan.data_class is DataClass.CREDENTIALED and not is_loopback(host):
            raise InputError(f"--host {host}: the cases are credentialed data, which is shown on this machine only")
        plans[seat] = finish(_check, plan)
    app = room_app(plans, panel=panel, host=host, password=password)
    serve(app, host=host, port=port, browser=browser, say=lambda line: print(line, flush=True))


async def _check(plan: Plan) -> Plan:
    from agentclinic.runs.build import Models
    from agentclinic.runs.execute import make_ready

    async with Models(plan.settings, plan.data_class) as models:
        return await make_ready(plan, models, progress(quiet=True))
