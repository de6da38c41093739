"""Slips of language models are counted by role and kind, once per utterance, and shown as rates."""

from __future__ import annotations

from agentclinic.results.record import Record
from agentclinic.results.turn import Turn
from agentclinic.scoring.outcome import slip_lines, slip_rows, summarise

TURNS = [
    Turn(turn=1, role="doctor", text="Since when?", slips=("other_speaker", "own_label")),
    Turn(turn=1, role="patient", text="Since Monday.", slips=("number", "number"), notes=("worded by code: a number",)),
    Turn(turn=2, role="doctor", text="Since when?", slips=("repeated",)),
    Turn(turn=2, role="patient", text="Since Monday."),
    Turn(turn=3, role="doctor", text="DIAGNOSIS READY: Flu"),
]
SUMMARY = summarise([Record(scenario_id=0, status="diagnosed", correct=False, transcript=TURNS)])


def test_slips_are_counted_once_per_utterance_by_role_and_kind() -> None:
    assert SUMMARY.utterances == {"doctor": 3, "patient": 2}
    assert SUMMARY.slips == {
        "doctor": {"other_speaker": 1, "own_label": 1, "repeated": 1},
        "patient": {"number": 1},
    }
    assert SUMMARY.by_code == {"patient": 1}


def test_rates_are_per_hundred_utterances_of_the_role() -> None:
    rows = {(role, kind): (count, rate) for role, kind, _, count, rate in slip_rows(SUMMARY)}
    assert rows["patient", "number"] == (1, 50.0)
    assert rows["doctor", "repeated"] == (1, 100 / 3)
    assert all(did for _, _, did, _, _ in slip_rows(SUMMARY)), "every kind says what the model did"
    assert slip_lines(SUMMARY) == [
        "doctor's slips per 100 utterances: other_speaker 33.3, own_label 33.3, repeated 33.3",
        "patient's slips per 100 utterances: number 50.0",
        "patient's replies given by code: 1 (50.0%)",
    ]


def test_a_run_without_slips_says_nothing_about_them() -> None:
    clean = summarise([Record(scenario_id=0, status="diagnosed", correct=True, transcript=TURNS[-1:])])
    assert (slip_rows(clean), slip_lines(clean)) == ([], [])
