"""Reference doctors: how a model scores with less, or more, information than a consultation gives.

| name | what the model knows |
|---|---|
| `prior_only` | nothing: it commits to what it considers most common |
| `door_only` | what is known at the door: it commits at once |
| `random_questions` | the answers to questions and tests drawn at random |
| `history_only` | what the patient says, but no tests and no examination |
| `full_information` | the whole chart (never the truth): it commits at once |

Those of solvable worlds ask no model: `agentclinic.doctors.solvable`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from agentclinic.cases.model import PATIENT_SECTIONS, Case, Door, Fact, as_text
from agentclinic.clinic.doctor import Assignment, Incoming, Observation, Speaker, utterance
from agentclinic.clinic.payloads import can_take
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.doctors.solvable import CHOICES, Choice, WorldDoctor
from agentclinic.models.base import Reply
from agentclinic.results.turn import NOTHING_ASKED, Exchange, Turn
from agentclinic.vocabulary.base import knowledge

_UNKNOWN_PATIENT = Door("Nothing is known about this patient. Name the diagnosis you take for most likely.", "")


class Reference(NamedTuple):
    """A reference doctor. To add one, add it to `REFERENCES` below."""

    make: Callable[[Case, Assignment, int], Speaker]
    """Its doctor for a case, by assignment and seed."""
    turns: bool = False
    """Whether it takes more than one turn."""
    own_words: bool = False
    """Whether the model chooses what is asked: only then can a planner or a memory help."""
    tests: bool = True
    """Whether the laboratory reports anything to it."""
    world: bool = False
    """Whether it plays in solvable worlds, and only there."""


def _at_once(assignment: Assignment, door: Door, chart: Case | None = None) -> Speaker:
    return CommittingDoctor(PlainDoctor(replace(assignment, door=door, limit=1)), chart=chart)


def _drawn(_case: Case, assignment: Assignment, seed: int) -> Speaker:
    steps = every_step()
    drawn = random.Random(seed).sample(steps, min(assignment.limit, len(steps)))
    return CommittingDoctor(PlainDoctor(assignment), drawn)


def _in_world(choose: Choice) -> Callable[[Case, Assignment, int], Speaker]:
    return lambda case, _given, seed: WorldDoctor(case, choose, seed)


REFERENCES: dict[str, Reference] = {
    "prior_only": Reference(lambda _case, given, _seed: _at_once(given, _UNKNOWN_PATIENT)),
    "door_only": Reference(lambda _case, given, _seed: _at_once(given, given.door)),
    "random_questions": Reference(_drawn, turns=True),
    "history_only": Reference(
        lambda _case, given, _seed: PlainDoctor(given, tests=False), turns=True, own_words=True, tests=False
    ),
    "full_information": Reference(lambda case, given, _seed: _at_once(given, given.door, case)),
    **{name: Reference(_in_world(choose), turns=True, world=True) for name, choose in CHOICES.items()},
}


def without_tests(case: Case) -> Case:
    """The case as seen by a laboratory that has nothing to report."""
    return replace(case, exam={}, facts=case.patient_facts)


class CommittingDoctor:
    """Says the given steps, if any, then has the model commit to a diagnosis, on the whole chart if given one."""

    def __init__(self, doctor: PlainDoctor, steps: Sequence[str] = (), chart: Case | None = None) -> None:
        self._doctor = doctor
        self._steps = list(steps)
        self._chart = chart

    @property
    def history(self) -> str:
        return self._doctor.history

    async def act(self, seen: Observation) -> tuple[Turn, ...]:
        """Say the next step that can be taken; after the steps, and on the last turn, commit."""
        while self._steps and not can_take(self._steps[0], seen.may_order):
            del self._steps[0]
        if self._steps and not seen.last:
            step = self._steps.pop(0)
            self.say(seen.incoming, step)
            return (utterance(Reply(step, usage=NOTHING_ASKED), turn=seen.turn),)
        if self._chart:
            chart = Incoming("Clinic", _chart_text(self._chart))
            return await self._doctor.act(Observation(chart, chart_exchanges(self._chart), seen.turn, last=True))
        return await self._doctor.act(replace(seen, last=True, notes=""))

    def say(self, incoming: Incoming, text: str) -> None:
        self._doctor.say(incoming, text)

    async def clarified(self, said: Turn) -> Turn:
        """The diagnosis, asked for once more if it cannot be read as one disease."""
        return await self._doctor.clarified(said)


def every_step() -> list[str]:
    known = knowledge()
    asked = [finding.ask for finding in known.findings.values() if finding.ask]
    ordered = {f"REQUEST TEST: {known.tests[f.order].name}": None for f in known.findings.values() if f.order}
    return [*asked, *ordered]


def chart_exchanges(case: Case) -> tuple[Exchange, ...]:
    """The chart as if everything had been asked and ordered, statement by statement."""
    return tuple(
        Exchange("question" if fact.section in PATIENT_SECTIONS else "test", " ".join(fact.heads), _reply(fact))
        for fact in case.facts
    )


def _reply(fact: Fact) -> str:
    return fact.text if fact.section in PATIENT_SECTIONS else f"{': '.join(fact.heads)}: {fact.text}"


def _chart_text(case: Case) -> str:
    return (
        "The whole chart is open to you.\n\n"
        f"What the patient tells:\n{as_text(case.patient)}\n\nExamination and tests:\n{as_text(case.exam)}"
    )
