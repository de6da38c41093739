"""Reference doctors: what a model scores with less, or with more, than a consultation gives it.

They bound the doctor under test: `door_only` commits at once on what stands on the door, `full_information` is shown
the whole chart (never the truth) and commits.
"""

from __future__ import annotations

from agentclinic.agents.doctor import Heard, PlainDoctor
from agentclinic.agents.prompts import Prompt
from agentclinic.agents.roles import as_text
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact
from agentclinic.models.base import Model, Reply
from agentclinic.models.payloads import Exchange

NAMES = ("door_only", "full_information")


class ReferenceDoctor:
    """Commits on its first turn."""

    def __init__(self, name: str, case: Case, model: Model, prompt: Prompt, *, bias: str | None, images: bool) -> None:
        self._doctor = PlainDoctor(case.door, model, prompt, limit=1, bias=bias, images=images)
        self._chart = chart_exchanges(case) if name == "full_information" else ()
        self._told = (
            "The whole chart is open to you.\n\n"
            f"What the patient tells:\n{as_text(case.patient)}\n\nExamination and tests:\n{as_text(case.exam)}"
            if name == "full_information"
            else ""
        )

    @property
    def history(self) -> str:
        """The dialogue as the doctor heard it."""
        return self._doctor.history

    async def act(self, heard: Heard, exchanges: tuple[Exchange, ...], *, turn: int, last: bool) -> Reply:
        """Commit, whatever turn it is."""
        del exchanges, last
        shown = Heard("Clinic", self._told) if self._told else heard
        return await self._doctor.act(shown, self._chart, turn=turn, last=True)

    def state(self) -> object | None:
        """There is nothing to come back to."""
        return None

    def restore(self, state: object | None) -> None:
        """There is nothing to come back to."""


def chart_exchanges(case: Case) -> tuple[Exchange, ...]:
    """The chart as if everything had been asked and ordered, statement by statement."""
    return tuple(
        Exchange("question" if fact.section in PATIENT_SECTIONS else "test", _asked(fact), _said(fact))
        for fact in case.facts
    )


def _asked(fact: Fact) -> str:
    return " ".join(fact.heads)


def _said(fact: Fact) -> str:
    return fact.text if fact.section in PATIENT_SECTIONS else f"{': '.join(fact.heads)}: {fact.text}"
