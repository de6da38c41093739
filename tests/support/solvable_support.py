"""Encounters in solvable worlds, played in this process by the ordinary program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.doctor import Incoming, Utterance
from agentclinic.config import Given, Settings
from agentclinic.doctors.uncertainty.store import SessionStore
from agentclinic.results.record import Record
from agentclinic.results.turn import Exchange
from agentclinic.runs.build import Models
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.play import play

CHEST_PAIN = "Solvable:chest-pain"


class Saying:
    """A custom doctor that says the given lines, then the last one again and again; an exception is raised."""

    def __init__(self, *lines: str | Utterance | Exception) -> None:
        self._lines = lines
        self.heard: list[str] = []

    def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> str | Utterance:
        self.heard.append(incoming.text)
        said = self._lines[min(len(self.heard), len(self._lines)) - 1]
        if isinstance(said, Exception):
            raise said
        return said


def plan_in(
    dataset: str = CHEST_PAIN,
    doctor: str | object = "plain",
    cases: Sequence[Case] = (),
    base_url: str | None = None,
    **run: Any,
) -> Plan:
    """The plan of a run in a world; a doctor is given by name, or as a class or an instance."""
    named = {"doctor": doctor} if isinstance(doctor, str) else {}
    settings = Settings.model_validate(
        {
            "run": {"dataset": dataset, **named, **run},
            "openai": {"base_url": base_url},
            "llm": {"runtime": {"timeout": 0, "tries": 2}},
            "given": Given(flags={"dataset": dataset, **named, **run}),
        }
    )
    return make_plan(settings, cases, None if isinstance(doctor, str) else doctor)


async def played(
    dataset: str = CHEST_PAIN,
    doctor: str | object = "plain",
    cases: Sequence[Case] = (),
    base_url: str | None = None,
    **run: Any,
) -> list[Record]:
    """The records of a run; without a number, of one case."""
    given = {} if {"num_scenarios", "scenarios"} & run.keys() else {"num_scenarios": 1}
    plan = plan_in(dataset, doctor, cases, base_url, **given, **run)
    with TemporaryDirectory(prefix="agentclinic-test-") as folder:
        sessions = SessionStore(Path(folder), of_run=True)
        async with Models(plan.settings) as models:
            return [await play(plan, unit, models, sessions) for unit in plan.units]


def case_with(truth: str, findings: Mapping[str, bool] | None = None, dataset: str = CHEST_PAIN) -> Case:
    """A case of this disease in which these findings are present or absent; all others are absent."""
    (case,) = load_cases(dataset, count=1)
    assert case.drawn is not None
    assert truth in case.drawn.world.diseases
    assert set(findings or {}) <= set(case.drawn.world.findings)
    found = dict.fromkeys(case.drawn.world.findings, False) | dict(findings or {})
    return replace(case, diagnosis=truth, drawn=replace(case.drawn, findings=found))


async def said_to(case: Case, *lines: str | Utterance | Exception, **run: Any) -> Record:
    """The record of an encounter in which the doctor says these lines."""
    (record,) = await played(case.dataset, Saying(*lines), [case], **run)
    return record


def words(record: Record, role: str) -> list[str]:
    """What a role said, in order."""
    return [turn.text for turn in record.transcript or () if turn.role == role]
