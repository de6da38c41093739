"""`agentclinic play`: the consulting room in the browser, and what people at the terminal are told about a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cases.model import Case
from agentclinic.cli import options as opt
from agentclinic.cli.format import finish, progress
from agentclinic.config import RunSettings, is_person
from agentclinic.errors import InputError
from agentclinic.report.debriefing import debriefing
from agentclinic.results.record import Record
from agentclinic.runs.human import Screen
from agentclinic.runs.progress import Progress

if TYPE_CHECKING:
    from agentclinic.runs.plan import Plan


class People(Progress):
    """No bar, which would be drawn over the prompt: a heading before each case and a debriefing after it."""

    def __init__(self, run: RunSettings) -> None:
        self._doctor = "You" if is_person(run.doctor_llm) else "The doctor"
        self._screen = Screen()
        self._total = self._done = 0

    def start(self, total: int, done: int, what: str = "scenarios") -> None:
        del what
        self._total, self._done = total, done
        self._announce()

    def advance(self, line: str) -> None:
        del line
        self._done += 1
        self._announce()

    def played(self, record: Record, case: Case) -> None:
        """Say how the encounter ended and what the chart held."""
        self._screen.show("", *_debriefing_lines(record, case, self._doctor))

    def _announce(self) -> None:
        if self._total > 1 and self._done < self._total:
            self._screen.show("", f"=== Case {self._done + 1} of {self._total} ===", "")


def _debriefing_lines(record: Record, case: Case, doctor: str) -> Iterator[str]:
    end = debriefing(record, case)
    yield f"=== The verdict: {end.verdict} ==="
    yield f"{doctor} said: {end.said or '(no diagnosis)'}"
    yield f"The truth: {end.truth}"
    if end.why:
        yield f"Why: {end.why}."
    if record.fault:
        yield record.fault.message
    if end.ordered and is_person(record.patient_llm):
        yield f"{doctor} ordered: {'; '.join(end.ordered)}"
    if end.against:
        yield end.against
    if end.found or end.missed:
        yield from ("", f"Key findings: {len(end.found)} of {len(end.found) + len(end.missed)} found")
        yield from (f"  - {way}: {words}" for way, words in (*end.found, *(("MISSED", words) for words in end.missed)))
    if end.untold:
        yield from ("", "The patient was not asked, and so did not say:", *(f"  - {fact}" for fact in end.untold))
    if end.unordered:
        yield from ("", f"In the chart and never ordered: {', '.join(end.unordered)}")


PORT = 8642
"""Always the same, so that pages that are open find the server again after a restart."""


@opt.with_settings(
    *("dataset", "scenarios", "offset", "sample", "num_scenarios", "lockbox", "seed", "total_inferences"),
    *("patient_llm", "patient_endpoint", "doctor_llm", "doctor_endpoint", "doctor", "measurement_llm"),
    *("measurement_endpoint", *opt.JUDGE, "simulator", "doctor_image_request", "missing_test"),
    *("silent_symptom", "resource_level", "prompts_dir", "output_dir", "check"),
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
    for plan in plans.values():
        if plan.data_class is DataClass.CREDENTIALED and not is_loopback(host):
            raise InputError(f"--host {host}: the cases are credentialed data, which is shown on this machine only")
        finish(_check, plan)
    app = room_app(plans, panel=panel, host=host, password=password)
    serve(app, host=host, port=port, browser=browser, say=lambda line: print(line, flush=True))


async def _check(plan: Plan) -> None:
    from agentclinic.runs.build import Models
    from agentclinic.runs.execute import make_ready

    async with Models(plan.settings, plan.data_class) as models:
        await make_ready(plan, models, progress(quiet=True))
