"""Why an encounter is not right, read from its record."""

from __future__ import annotations

from report_support import Json, differential, record, wrong

from agentclinic.report.encounters import reasons
from agentclinic.results.record import Record


def why(entry: Json, sure: float | None = None) -> list[str]:
    return [reason.text for reason in reasons(Record.model_validate(entry), sure)]


def test_reasons_say_what_happened_to_the_truth() -> None:
    never = differential(Influenza=0.9)
    turns = [{"turn": 1, "role": "doctor", "text": "DIAGNOSIS READY: Influenza", "differential": never}]
    wild = wrong(0, "Influenza", transcript=turns, differential=never)
    assert why(wild, 0.9) == ["another disease", "90% sure", "truth never considered"]

    led = [
        {"turn": 1, "role": "doctor", "text": "Fever?", "differential": differential(Gout=0.6, Influenza=0.3)},
        {"turn": 2, "role": "doctor", "text": "DIAGNOSIS READY: Influenza", "differential": never},
    ]
    assert "truth was first at turn 1, then dropped" in why(wrong(0, "Influenza", transcript=led, differential=never))


def test_reasons_name_the_fault_the_turn_limit_and_the_danger() -> None:
    fault = {"role": "patient", "error": "rate_limited", "message": "slow down"}
    assert why(record(status="model_failed", correct=None, fault=fault)) == ["patient failed: rate limited"]
    assert why(record(status="max_infs_reached", correct=False, annotations={})) == ["no diagnosis within 20 turns"]
    assert why(record(status="judge_failed", correct=None)) == ["the diagnosis was not judged"]
    danger = {"Harm_If_Missed": 4, "Must_Not_Miss": [{"name": "Sepsis"}]}
    assert why(wrong(0, annotations=danger))[-2:] == ["harm 4 of 4", "never considered: Sepsis"]


def test_reasons_name_the_decisive_finding_and_whether_there_was_time_for_it() -> None:
    findings = {"Key_Findings": [{"any_of": ["Test_Results/Synovial_Fluid/Findings"], "role": "discriminating"}]}
    said = [{"turn": 1, "role": "doctor", "text": "DIAGNOSIS READY: Influenza"}]
    played = {"measurement_llm": "builtin", "transcript": said, "annotations": findings}
    early = why(wrong(0, "Influenza", num_turns=1, max_infs=20, **played))
    assert "stopped with 19 turns left and never asked for Synovial Fluid" in early
    late = why(wrong(0, "Influenza", num_turns=20, max_infs=20, **played))
    assert "used all its turns and never asked for Synovial Fluid" in late
