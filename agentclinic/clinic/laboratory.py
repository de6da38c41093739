"""The laboratory: reports examination findings and test results from the chart."""

from __future__ import annotations

from dataclasses import replace

from agentclinic.cases.model import Case, as_text
from agentclinic.clinic.doctor import History
from agentclinic.clinic.payloads import LaboratoryPayload, MissingTest
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.models.base import Message, Model, Purpose, Reply, Request
from agentclinic.results.actions import as_results


class Laboratory:
    """Reads examination findings and test results out of the chart."""

    def __init__(self, case: Case, model: Model, prompt: Prompt, *, missing_test: MissingTest = "unavailable") -> None:
        self.model = model
        self.history = History()
        self._case = case
        self._prompt = prompt
        self._missing: MissingTest = missing_test
        self.system_prompt = joined(
            fill(prompt.text("system_base"), exam=as_text(case.exam)), prompt.text(f"missing_{missing_test}")
        )

    async def report(self, request: str, words: str) -> Reply:
        """Report what was requested; `words` is the doctor's whole utterance."""
        user = fill(self._prompt.text("user_prompt_template"), history=self.history.shown(), request=words)
        messages = (Message("system", self.system_prompt), Message("user", user))
        payload = LaboratoryPayload(self._case.exam_facts, request, self._missing)
        reply = await self.model.reply(Request(Purpose.MEASUREMENT, messages, payload=payload))
        reply = replace(reply, text=as_results(reply.text))
        self.history.add(f"Doctor: {words}", f"Measurement: {reply.text}")
        return reply

    def overhear(self, *entries: str) -> None:
        """Add what was said to and by someone else."""
        self.history.add(*entries)
