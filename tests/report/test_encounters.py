"""Why an encounter is not right, read from its record."""

from __future__ import annotations

from report_support import Json, differential, record, unread, wrong

from agentclinic.report.encounters import encounter_of, reasons, where_wrong
from agentclinic.results.record import Record


def why(entry: Json, sure: float | None = None) -> list[str]:
    return [reason.text for reason in reasons(Record.model_validate(entry), sure)]


def test_reasons_say_what_happened_to_the_truth() -> None:
    never = differential(Influenza=0.9)
    turns = [{"turn": 1, "role": "doctor", "text": "DIAGNOSIS READY: Influenza", "differential": never}]
    wild = wrong(0, "Influenza", transcript=turns, differential=never)
    assert why(wild, 0.9) == ["another disease", "90% sure", "true diagnosis never listed"]

    led = [
        {"turn": 1, "role": "doctor", "text": "Fever?", "differential": differential(Gout=0.6, Influenza=0.3)},
        {"turn": 2, "role": "doctor", "text": "DIAGNOSIS READY: Influenza", "differential": never},
    ]
    assert "true diagnosis first at turn 1, then dropped" in why(
        wrong(0, "Influenza", transcript=led, differential=never)
    )


def test_reasons_name_the_fault_the_turn_limit_and_the_danger() -> None:
    fault = {"role": "patient", "error": "rate_limited", "message": "slow down"}
    assert why(record(status="model_failed", correct=None, fault=fault)) == ["patient failed: rate limited"]
    assert why(record(status="max_infs_reached", correct=False, annotations={})) == ["no diagnosis within 20 turns"]
    assert why(record(status="judge_failed", correct=None)) == ["the diagnosis was not judged"]
    assert why(unread(0)) == ["cannot read 'zzyzx'"]
    open_to = [{"name": "Sepsis", "excluded_by": ["Test_Results/Culture"]}, {"name": "Gout", "excluded_by": "In words"}]
    danger = {"Harm_If_Missed": 4, "Must_Not_Miss": open_to}
    assert why(wrong(0, annotations=danger, measurement_llm="builtin"))[-2:] == [
        "harm if missed 4 of 4 (death or lasting damage)",
        "not excluded: Sepsis",
    ]


def test_reasons_name_the_decisive_finding_and_whether_there_was_time_for_it() -> None:
    paths = ["Test_Results/Joint_Fluid/Crystals", "Test_Results/Joint_Fluid/WBC", "Patient_Actor/History#1"]
    findings = {"Key_Findings": [{"any_of": [path], "role": "discriminating"} for path in paths]}
    said = [{"turn": 1, "role": "doctor", "text": "DIAGNOSIS READY: Influenza"}]
    played = {"measurement_llm": "builtin", "patient_llm": "builtin", "transcript": said, "annotations": findings}
    early = why(wrong(0, "Influenza", num_turns=1, max_infs=20, **played))
    assert "stopped with 19 turns left; not asked: history; not ordered: joint fluid (crystals, WBC)" in early
    late = why(wrong(0, "Influenza", num_turns=20, max_infs=20, **played))
    assert late[-1].startswith("used all its turns; not asked: history; ")
    kinds = [
        reasons(Record.model_validate(wrong(0, "Influenza", num_turns=turns, **played)), None)[-1].kind
        for turns in (1, 20)
    ]
    assert kinds == ["premature closure", "decisive finding missed"]


def test_every_encounter_that_is_not_right_is_in_one_row_of_the_table() -> None:
    never, led = differential(Influenza=0.9), differential(Gout=0.6, Influenza=0.3)
    said = {"turn": 1, "role": "doctor", "text": "DIAGNOSIS READY: Influenza"}
    dangerous = {"annotations": {"Harm_If_Missed": 3}}
    entries = [
        record(0),
        wrong(1, "Influenza", transcript=[said | {"differential": never}], differential=never, **dangerous),
        wrong(2, "Influenza", transcript=[said | {"differential": never}], differential=never, annotations={}),
        wrong(3, "Influenza", transcript=[said | {"differential": led}], differential=led, annotations={}),
        record(4, status="max_infs_reached", correct=False, **dangerous),
        record(5, status="judge_failed", correct=None),
        unread(6, **dangerous),
    ]
    found = where_wrong([encounter_of(Record.model_validate(entry), None) for entry in entries])
    assert found.head == ("", "encounters", "at least 80% sure", "harm if missed 3 or 4")
    assert found.rows == [
        ["true diagnosis never listed", 2, 2, 1],
        ["another disease", 1, 0, 0],
        ["no diagnosis within the turn limit", 1, 0, 1],
    ]
    assert "4 death or lasting damage" in found.notes[1], "the scale is explained"
