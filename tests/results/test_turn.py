"""Turns and their action, records of older versions, and usage that adds up."""

from __future__ import annotations

import json

import pytest

from agentclinic.results.record import Record
from agentclinic.results.turn import NO_TOKENS, NOTHING_ASKED, Turn, Usage
from agentclinic.results.utterance import Action, ActionKind


@pytest.mark.parametrize(
    ("text", "kind", "content"),
    [
        ("Where does it hurt?", "question", "Where does it hurt?"),
        ("Let us see. REQUEST TEST: CBC", "test", "CBC"),
        ("REQUEST IMAGES", "images", "REQUEST IMAGES"),
        ("DIAGNOSIS READY: Gout", "diagnosis", "Gout"),
    ],
)
def test_a_doctors_turn_carries_its_action_with_kind_and_content(text: str, kind: ActionKind, content: str) -> None:
    turn = Turn(turn=1, role="doctor", text=text)
    assert turn.action == Action(kind, content)
    stored = json.loads(turn.model_dump_json())
    assert stored["action"] == {"kind": kind, "content": content}
    assert Turn.model_validate(stored) == turn


@pytest.mark.parametrize("role", ["patient", "measurement", "clinic", "planner", "confidence"])
def test_only_a_doctors_turn_has_an_action(role: str) -> None:
    assert Turn(turn=1, role=role, text="DIAGNOSIS READY: Gout").action is None


def test_a_recorded_action_is_kept_and_not_parsed_again() -> None:
    stored = {"turn": 1, "role": "doctor", "text": "Hello", "action": {"kind": "test", "content": "CBC"}}
    assert Turn.model_validate(stored).action == Action("test", "CBC")


def test_records_of_version_0_2_which_name_only_the_kind_of_action_are_read() -> None:
    old = {
        "scenario_id": 0,
        "status": "diagnosed",
        "transcript": [
            {"turn": 1, "role": "doctor", "text": "REQUEST TEST: CBC", "action": "test"},
            {"turn": 1, "role": "measurement", "text": "RESULTS: normal", "action": None},
            {"turn": 2, "role": "doctor", "text": "DIAGNOSIS READY: Gout", "action": "diagnosis"},
        ],
    }
    record = Record.model_validate_json(json.dumps(old))
    actions = [turn.action for turn in record.transcript or ()]
    assert actions == [Action("test", "CBC"), None, Action("diagnosis", "Gout")]


def test_usage_adds_up_field_by_field() -> None:
    assert Usage(1, 2, 3, 4, requests=1, retries=5) + Usage(10, 20, 30, 40, requests=2) == Usage(
        11, 22, 33, 44, requests=3, retries=5
    )
    assert NO_TOKENS + NOTHING_ASKED == NO_TOKENS


def test_a_sum_with_an_unknown_part_is_unknown_and_not_zero() -> None:
    total = Usage(10, None, 0, 0) + Usage(5, 5, None, 0)
    assert total == Usage(15, None, None, 0, requests=2)
