"""Reference doctors: what any model scores with less, or with more, than a consultation gives it.

| name | what the model has |
|---|---|
| `prior_only` | nothing at all: it commits to what it takes for most common |
| `door_only` | what stands on the door: it commits at once |
| `random_questions` | answers to questions and tests drawn at random |
| `history_only` | the patient, but no tests and no examination |
| `full_information` | the whole chart (never the truth): it commits at once |
"""

from __future__ import annotations

import random
from dataclasses import replace

from agentclinic.cases.model import PATIENT_SECTIONS, Case, Door, Fact, as_text
from agentclinic.clinic.doctor import Doctor, Incoming, utterance
from agentclinic.clinic.prompts import Prompt
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.models.base import Model, Reply
from agentclinic.results.turn import NOTHING_ASKED, Exchange, Turn
from agentclinic.vocabulary.base import knowledge

NAMES = ("prior_only", "door_only", "random_questions", "history_only", "full_information")
_NOBODY = Door("Nothing is known about this patient. Name the diagnosis you take for most likely.", "")


def reference_doctor(
    name: str, case: Case, model: Model, prompt: Prompt, *, limit: int, bias: str | None, images: bool, seed: int
) -> Doctor:
    """The reference doctor of that name for one encounter."""
    if name == "history_only":
        return PlainDoctor(case.door, model, prompt, limit=limit, bias=bias, images=images, tests=False)
    if name == "random_questions":
        return RandomDoctor(
            PlainDoctor(case.door, model, prompt, limit=limit, bias=bias, images=images), limit, random.Random(seed)
        )
    door = _NOBODY if name == "prior_only" else case.door
    committed = PlainDoctor(door, model, prompt, limit=1, bias=bias, images=images)
    return AtOnce(committed, case if name == "full_information" else None)


def without_tests(case: Case) -> Case:
    """The case as a laboratory sees it that has nothing to report."""
    return replace(case, exam={}, facts=case.patient_facts)


class AtOnce:
    """Commits on its first turn, on the door or on the whole chart."""

    def __init__(self, doctor: PlainDoctor, chart: Case | None) -> None:
        self._doctor = doctor
        self._exchanges = chart_exchanges(chart) if chart else ()
        self._told = (
            "The whole chart is open to you.\n\n"
            f"What the patient tells:\n{as_text(chart.patient)}\n\nExamination and tests:\n{as_text(chart.exam)}"
            if chart
            else ""
        )

    @property
    def history(self) -> str:
        """The dialogue as the doctor incoming it."""
        return self._doctor.history

    async def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> tuple[Turn, ...]:
        """Commit, whatever turn it is."""
        del exchanges, last, notes
        shown = Incoming("Clinic", self._told) if self._told else incoming
        return await self._doctor.act(shown, self._exchanges, turn=turn, last=True)

    def say(self, incoming: Incoming, text: str) -> None:
        """Take words said in the doctor's name into its memory."""
        self._doctor.say(incoming, text)


class RandomDoctor:
    """Asks what chance says, then has the model commit on the last turn."""

    def __init__(self, doctor: PlainDoctor, limit: int, chance: random.Random) -> None:
        self._doctor = doctor
        self._steps = chance.sample(every_step(), min(limit, len(every_step())))

    @property
    def history(self) -> str:
        """The dialogue as the doctor incoming it."""
        return self._doctor.history

    async def act(
        self, incoming: Incoming, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> tuple[Turn, ...]:
        """Say the next thing drawn; the model only speaks at the end."""
        del notes
        if last or turn > len(self._steps):
            return await self._doctor.act(incoming, exchanges, turn=turn, last=True)
        step = self._steps[turn - 1]
        self.say(incoming, step)
        return (utterance(Reply(step, usage=NOTHING_ASKED), turn=turn),)

    def say(self, incoming: Incoming, text: str) -> None:
        """Take words said in the doctor's name into its memory."""
        self._doctor.say(incoming, text)


def every_step() -> list[str]:
    """Every question and every order the knowledge base knows."""
    known = knowledge()
    asked = [finding.ask for finding in known.findings.values() if finding.ask]
    ordered = {f"REQUEST TEST: {known.tests[f.order].name}": None for f in known.findings.values() if f.order}
    return [*asked, *ordered]


def chart_exchanges(case: Case) -> tuple[Exchange, ...]:
    """The chart as if everything had been asked and ordered, statement by statement."""
    return tuple(
        Exchange("question" if fact.section in PATIENT_SECTIONS else "test", " ".join(fact.heads), _said(fact))
        for fact in case.facts
    )


def _said(fact: Fact) -> str:
    return fact.text if fact.section in PATIENT_SECTIONS else f"{': '.join(fact.heads)}: {fact.text}"
