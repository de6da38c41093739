"""The builtin doctor."""

from __future__ import annotations

import pytest

from agentclinic.builtin.doctor import act
from agentclinic.cases.model import Door
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.results.turn import Exchange

DOOR = Door("Find out what is wrong.", "40-year-old woman")


def test_the_doctor_opens_asks_and_commits_on_the_last_turn() -> None:
    opening = act(DoctorPayload(DOOR, (), 1, 20, last=False))
    assert opening.text.startswith("What brings you in")
    asked = Exchange("question", opening.text, "I have a cough.")
    following = act(DoctorPayload(DOOR, (asked,), 2, 20, last=False))
    assert following.text != opening.text
    last = act(DoctorPayload(DOOR, (asked,), 20, 20, last=True))
    assert last.text.startswith("DIAGNOSIS READY: ")
    assert last.differential is not None
    assert sum(h.probability or 0 for h in last.differential.hypotheses) + (
        last.differential.other or 0
    ) == pytest.approx(1, abs=1e-4)
