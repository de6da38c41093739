"""A custom doctor: `agentclinic run --doctor my_doctor.py:MyDoctor`, with the path to this file.

It asks fixed questions, orders two tests, and has a model name the diagnosis and say how sure it is.
"""

from __future__ import annotations

import re
from typing import Any

import agentclinic

QUESTIONS = (
    "What brings you in today?",
    "When did it start, and has it changed since?",
    "Do you have any other medical conditions?",
)
TESTS = ("REQUEST TEST: Vital signs", "REQUEST TEST: Complete blood count")


class MyDoctor:
    """Asks every patient the same questions, then asks a model for the diagnosis."""

    def __init__(self, scenario: Any, backend_str: str = "builtin", max_infs: int = 20) -> None:
        self.objective = scenario.examiner_information()
        self.backend = backend_str
        self.plan = [*QUESTIONS, *TESTS][: max_infs - 1]
        self.agent_hist = ""

    def inference_doctor(self, question: str) -> str | agentclinic.Utterance:
        """Say the next thing in reply to `question`."""
        if question:
            self.agent_hist += question + "\n\n"
        if not self.plan:
            return self.conclude()
        said = self.plan.pop(0)
        self.agent_hist += said + "\n\n"
        return said

    def conclude(self) -> agentclinic.Utterance:
        """Ask the model for the most likely diagnosis and how sure it is."""
        if self.backend == "builtin":  # no language model to ask: the example still runs from end to end
            return agentclinic.Utterance("DIAGNOSIS READY: Viral infection", confidence=0.05)
        told = f"Objective: {self.objective}\n\nConsultation:\n{self.agent_hist}"
        prompt = f"{told}\nName the most likely diagnosis and how sure you are, nothing else. Example: Gout, 70 %"
        answer = str(agentclinic.query_model(self.backend, prompt, "You are an experienced physician."))
        sure = re.search(r"[,:(\s]+(\d{1,2}|100)\s*%", answer)
        if not sure:
            return agentclinic.Utterance(f"DIAGNOSIS READY: {answer}")
        return agentclinic.Utterance(f"DIAGNOSIS READY: {answer[: sure.start()]}", confidence=int(sure[1]) / 100)
