"""What the tests of the consulting room share: cases in which every word can be traced, and moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers import osce, write_rows

from agentclinic.viewer.game import Game
from agentclinic.viewer.moves import Move

TRUTH = "Frobisher fever"
ALIAS = "Marsh ague"
"""A name that the answer key accepts."""
PATIENT = {
    "Demographics": "40-year-old woman",
    "History": "She has had toe pain for pastword days.",
    "Symptoms": {"Primary_Symptom": "Toe pain", "Secondary_Symptoms": ["Fever of feverword"]},
    "Past_Medical_History": "Asthma since asthmaword",
    "Social_History": "Smokes smokeword",
}
EXAM = {"Vital_Signs": {"Temperature": "38.5 C vitalword"}, "Abdominal_Examination": "Soft examword"}
TESTS = {"Blood_Tests": {"Hemoglobin": "13 g/dL bloodword"}, "Urinalysis": "Clear urineword"}
SECRETS = (TRUTH, ALIAS, "keyword", "vitalword", "examword", "bloodword", "urineword")
"""What a patient never knows: the truth, what the case's author says about it, examination and tests."""
CHART = (*SECRETS, "pastword", "feverword", "asthmaword", "smokeword")
"""What a doctor does not know before asking."""


def traced_cases(path: Path, count: int = 1) -> Path:
    """A file of cases that differ in a number; each has one word of its own in every part of the chart."""
    key = {"accept": [ALIAS], "partial": [], "reject": [{"text": "Gout", "reason": "keyword"}]}
    rows = [
        osce(
            patient={**PATIENT, "Demographics": f"{40 + number}-year-old woman"},
            exam=EXAM,
            tests=TESTS,
            truth=TRUTH,
            Answer_Key=key,
        )
        for number in range(count)
    ]
    return write_rows(path, *rows)


def move(game: Game, kind: str, text: str = "", sure: float | None = None, **odds: float) -> Move:
    """A move in the turn that a game is in."""
    assert game.view is not None
    beliefs = [{"diagnosis": name.replace("_", " "), "probability": share} for name, share in odds.items()]
    data: dict[str, Any] = {"turn": game.view["turn"], "kind": kind, "text": text, "differential": beliefs}
    return Move.model_validate({**data, "confidence": sure})


async def turn_of(game: Game) -> None:
    """Wait until the person is asked, or the game has stopped."""
    while game.phase == "theirs":
        await game.changed(game.version, 30)
