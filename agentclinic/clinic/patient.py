"""The patient: answers the doctor from the patient's part of the chart."""

from __future__ import annotations

from agentclinic.cases.demographics import speaks_for_self
from agentclinic.cases.model import Case, as_text
from agentclinic.clinic.doctor import History
from agentclinic.clinic.payloads import PatientPayload, SilentSymptom
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.models.base import Message, Model, Purpose, Reply, Request
from agentclinic.results.turn import Exchange


class Patient:
    """Answers the doctor from the patient's script."""

    def __init__(
        self,
        case: Case,
        model: Model,
        prompt: Prompt,
        *,
        bias: str | None = None,
        silent_symptom: SilentSymptom = "deny",
    ) -> None:
        self.model = model
        self.history = History()
        self._case = case
        self._prompt = prompt
        self._silent: SilentSymptom = silent_symptom
        self._caregiver = not speaks_for_self(case.door.demographics)
        self.system_prompt = joined(
            fill(prompt.text("system_base"), patient=as_text(case.patient)),
            prompt.text(f"silent_{silent_symptom}"),
            prompt.text("caregiver") if self._caregiver else "",
            prompt.bias(bias),
        )

    async def answer(self, words: str, asked: tuple[Exchange, ...] = ()) -> Reply:
        """Answer what the doctor just said."""
        user = fill(self._prompt.text("user_prompt_template"), history=self.history.shown(), reply=words)
        payload = PatientPayload(self._case.door, self._case.patient_facts, words, asked, self._silent, self._caregiver)
        messages = (Message("system", self.system_prompt), Message("user", user))
        reply = await self.model.reply(Request(Purpose.PATIENT, messages, payload=payload))
        self.history.add(f"Doctor: {words}", f"Patient: {reply.text}")
        return reply

    def overhear(self, *entries: str) -> None:
        """Add what was said to and by someone else."""
        self.history.add(*entries)
