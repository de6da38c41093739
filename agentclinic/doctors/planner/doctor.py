"""A doctor with a planner: a plan before it speaks, and an early finish if the plan is sure enough."""

from __future__ import annotations

from dataclasses import replace

from agentclinic.clinic.doctor import Observation, Speaker, utterance
from agentclinic.clinic.prompts import joined
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine
from agentclinic.doctors.planner.prompting import Speak
from agentclinic.doctors.planner.rules import check_order
from agentclinic.models.base import Reply
from agentclinic.results.actions import DIAGNOSIS_READY, parse_action
from agentclinic.results.turn import NOTHING_ASKED, Turn


class PolicyDoctor:
    """Gives the engine's notes to any doctor, and checks what it orders against the planning rules.

    With `inline`, which is the same doctor, plan and utterance come in one reply of its model. The doctor is then asked
    on its own, with the notes, only if no utterance came, or no diagnosis on the last turn or after it has repeated
    itself too often.
    """

    def __init__(
        self, doctor: Speaker, engine: DifferentialDiagnosisEngine, *, inline: PlainDoctor | None = None
    ) -> None:
        self.doctor = doctor
        self._inline = inline
        self._engine = engine
        self._broken: tuple[str, ...] = ()

    async def act(self, seen: Observation) -> tuple[Turn, ...]:
        """Plan, then finish or let the doctor speak, with the plan's notes if it has not spoken yet."""
        turn = seen.turn
        decision = await self._engine.decide(seen, broken=self._broken, speak=self._speak(seen))
        planned = Turn(
            turn=turn,
            role="planner",
            text=decision.notes,
            usage=decision.usage,
            differential=decision.differential,
            notes=decision.remarks,
            details=decision.details,
        )
        spoken = decision.spoken
        must_commit = seen.last or (self._inline is not None and self._inline.stuck)
        if spoken and must_commit and parse_action(spoken.text).kind != "diagnosis":
            spoken = None  # ask for the utterance alone: with a plan to fill in as well, small models forget to commit
        if decision.diagnosis:
            text = f"{DIAGNOSIS_READY}: {decision.diagnosis}"
            spoken = Reply(text, usage=NOTHING_ASKED, notes=("early finish by the planner",))
        if spoken:
            aside = list[Turn]()
            if self._inline:
                said = self._inline.speak(seen, spoken)
            else:
                said = utterance(spoken, turn=turn)
                self.doctor.say(seen.incoming, said.text)
        else:
            *aside, said = await self.doctor.act(replace(seen, notes=joined(seen.notes, decision.notes)))
        self._broken = ()
        if said.action and said.action.kind == "test":
            ruling = check_order(self._engine.policy, self._engine.door, said.action.content, seen.exchanges)
            self._broken = ruling.broken
            said = said.model_copy(update={"notes": (*said.notes, *ruling.lines)})
        return planned, *aside, said

    def _speak(self, seen: Observation) -> Speak | None:
        doctor = self._inline
        if doctor is None:
            return None
        return lambda task: doctor.request(replace(seen, notes=joined(seen.notes, task)))
