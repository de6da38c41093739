"""Loads the tables for reading replies while the first replies are awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from agentclinic.cases.completion import completion
from agentclinic.cases.matcher import asked_of_measurement
from agentclinic.cases.model import Case
from agentclinic.clinic.answers import matched
from agentclinic.clinic.laboratory import matched as matched_results
from agentclinic.clinic.payloads import LaboratoryPayload, MissingTest, PatientPayload
from agentclinic.clinic.reply_checks import Told, problems
from agentclinic.runs.build import Models
from agentclinic.runs.plan import Plan
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.compare import commits, compare

_PAUSE = 0.01
_BUSY = 0.2
"""If more than this share of a pause of `_PAUSE` seconds was CPU time, there are replies to read first."""
_SAID = "Since when have you had this pain?"


@contextmanager
def loading_ahead(plan: Plan, models: Models) -> Iterator[None]:
    """Load what this run needs, piece by piece, whenever there is nothing else to do.

    Otherwise all encounters would wait for the first one that needs a table; together they take two seconds.
    """
    task = asyncio.ensure_future(_load(_pieces(plan, models)))
    try:
        yield
    finally:
        task.cancel()


async def _load(pieces: Iterable[Callable[[], object]]) -> None:
    for piece in pieces:
        used = time.thread_time() - _PAUSE
        while time.thread_time() - used > _BUSY * _PAUSE:
            used = time.thread_time()
            await asyncio.sleep(_PAUSE)
        piece()


def _pieces(plan: Plan, models: Models) -> Iterator[Callable[[], object]]:
    """In the order in which they are needed; builtin roles need theirs at once and load them themselves."""
    cases = {unit.case.id: unit.case for unit in plan.units[: plan.settings.run.workers] if not unit.case.drawn}
    if not cases or not models.simulates("doctor"):
        return
    if models.simulates("patient") and plan.roles.patient != "free":
        yield partial(lexicon.named, _SAID)
        for case in cases.values():
            yield partial(matched, PatientPayload(case.door, case.patient_facts, _SAID, (), "deny", False))
        yield partial(problems, _SAID, Told(), "")
    if models.simulates("measurement") and plan.roles.laboratory != "free":
        for case in cases.values():
            yield partial(_report, case, plan.roles.missing_test or plan.settings.run.missing_test or "unavailable")
    yield partial(asked_of_measurement, "blood count", ())
    yield partial(commits, "migraine")
    if plan.roles.judge in ("builtin", "cascade"):
        yield partial(compare, "migraine", "tension headache")
    for used in models.in_use():
        yield partial(models.price, used.name, used.endpoint, {"input_tokens": 1, "output_tokens": 1})


def _report(case: Case, missing: MissingTest) -> None:
    """Look for a result in a chart, so that it is read, and what completes it is known."""
    added = completion(case) if missing == "completed" else None
    matched_results(LaboratoryPayload(case.exam_facts, "blood count", missing, added))
