"""Prompts are not built for the builtin roles, which never read them."""

from __future__ import annotations

import pytest
from fakes import OSCE, case_of

from agentclinic.builtin import Builtin
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import load_prompt
from agentclinic.models.base import Reply, Request, reads_prompts


class Noting(Builtin):
    """Remembers how many messages it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[int] = []

    async def reply(self, request: Request) -> Reply:
        self.messages.append(len(request.messages))
        return await super().reply(request)


class Recording(Noting):
    """Needs the messages, as a recorder does."""

    reads_prompts = True


@pytest.mark.anyio
@pytest.mark.parametrize(("model", "sent"), [(Noting(), [0, 0]), (Recording(), [2, 2])])
async def test_only_a_model_that_reads_prompts_is_sent_them(model: Noting, sent: list[int]) -> None:
    case = case_of(OSCE)
    await Patient(case, model, load_prompt("patient")).answer("What brings you in?")
    await Laboratory(case, model, load_prompt("measurement")).report("CBC", "REQUEST TEST: CBC")
    assert model.messages == sent
    assert reads_prompts(model) is bool(sent[0])
