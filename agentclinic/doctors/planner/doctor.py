"""A doctor with a planner beside it: notes before it speaks, an early finish where the plan is sure enough."""

from __future__ import annotations

from dataclasses import replace

from agentclinic.clinic.payloads import Exchange
from agentclinic.clinic.prompts import joined
from agentclinic.doctors.plain import Doctor, Heard
from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine
from agentclinic.doctors.planner.rules import check_order
from agentclinic.models.base import Aside, Reply, Usage
from agentclinic.results.actions import DIAGNOSIS_READY, parse_action


class PolicyDoctor:
    """Puts the engine's notes before any doctor, and holds what it orders against the planning rules."""

    def __init__(self, doctor: Doctor, engine: DifferentialDiagnosisEngine) -> None:
        self.doctor = doctor
        self._engine = engine
        self._broken: tuple[str, ...] = ()

    @property
    def history(self) -> str:
        """The dialogue as the doctor heard it."""
        return self.doctor.history

    def say(self, heard: Heard, text: str) -> None:
        """Take words said in the doctor's name into its memory."""
        self.doctor.say(heard, text)

    def state(self) -> object | None:
        """What `restore` needs to come back to this moment; None where the doctor cannot go back."""
        inner = self.doctor.state()
        return None if inner is None else (inner, self._engine.state(), self._broken)

    def restore(self, state: object | None) -> None:
        """Come back to an earlier moment."""
        inner = None
        if isinstance(state, tuple):
            inner, planner, self._broken = state
            self._engine.restore(planner)
        self.doctor.restore(inner)

    async def act(
        self, heard: Heard, exchanges: tuple[Exchange, ...], *, turn: int, last: bool, notes: str = ""
    ) -> Reply:
        """Plan, then finish or let the doctor speak with the plan before it."""
        decision = await self._engine.decide(heard, exchanges, turn=turn, broken=self._broken)
        planned = Reply(
            decision.notes,
            usage=decision.usage,
            differential=decision.differential,
            notes=decision.remarks,
            details=decision.details,
        )
        asides = (Aside("planner", planned),)
        if decision.diagnosis:
            text = f"{DIAGNOSIS_READY}: {decision.diagnosis}"
            self.say(heard, text)
            return Reply(
                text, usage=Usage(0, 0, 0, 0, requests=0), notes=("early finish by the planner",), asides=asides
            )
        said = await self.doctor.act(heard, exchanges, turn=turn, last=last, notes=joined(notes, decision.notes))
        action = parse_action(said.text)
        self._broken = ()
        remarks: tuple[str, ...] = ()
        if action.kind == "test":
            ruling = check_order(self._engine.policy, self._engine.door, action.content, exchanges)
            self._broken = ruling.broken
            remarks = ruling.lines
        return replace(said, notes=(*said.notes, *remarks), asides=(*asides, *said.asides))
