"""A case, and a model that chooses from it, for the tests of patient and laboratory."""

from __future__ import annotations

from fakes import Scripted
from helpers import case_of, osce

from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.models.base import Reply, Request
from agentclinic.models.structured import parse

CASE = case_of(
    osce(
        patient={
            "Demographics": "40-year-old woman",
            "History": "The patient has had a burning pain in the stomach for 3 weeks. It wakes her at night.",
            "Symptoms": {"Primary_Symptom": "Burning stomach pain", "Secondary_Symptoms": ["Nausea"]},
            "Past_Medical_History": "Asthma since childhood.",
            "Review_of_Systems": "Denies fever.",
        },
        exam={"Vital_Signs": {"Temperature": "36.8 °C", "Heart_Rate": "78/min"}},
        tests={"Complete_Blood_Count": {"Hemoglobin": "13.2 g/dL", "White_Cells": "7.4 x10^9/L"}, "Lipase": "30 U/L"},
        truth="Duodenal ulcer",
    )
)


class Choosing(Scripted):
    """Answers with JSON that is parsed as an endpoint would do it."""

    async def reply(self, request: Request) -> Reply:
        reply = await super().reply(request)
        return Reply(reply.text, parsed=parse(reply.text, request.schema)) if request.schema else reply


def ids(role: Patient | Laboratory, words: str) -> list[str]:
    """The ids of the facts with these words, as the model is shown them."""
    lines = role.system_prompt.splitlines()
    return [line.split(":")[0] for line in lines if words in line and line[1:2].isdigit()]
