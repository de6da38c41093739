"""Reading a run from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_support import record, write_run

from agentclinic.errors import InputError
from agentclinic.results.record import Fault, Record, Verdict
from agentclinic.results.run_data import diagnosis_of, load_run, read_judgements


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("Gout", None, "Gout"),
        ("DIAGNOSIS READY: Gout", None, "Gout"),
        ("", "DIAGNOSIS READY: Gout", ""),
        (None, "So it is. DIAGNOSIS READY: **Gout**", "Gout"),
        (None, "", None),
        (None, None, None),
    ],
)
def test_the_diagnosis_to_judge_is_what_was_said_after_the_token(
    text: str | None, said: str | None, expected: str | None
) -> None:
    record = Record(scenario_id=1, status="diagnosed", diagnosis_text=text, final_doctor_dialogue=said)
    assert diagnosis_of(record) == expected
    unfinished = record.model_copy(update={"status": "max_infs_reached"})
    assert diagnosis_of(unfinished) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"usage": {"judge": {"input_tokens": {}}}},
        {"usage": {"judge": {"input_tokens": "5"}}},
        {"usage": {"judge": 3}},
        {"cost_usd": {"judge": "much"}},
        {"cost_usd": {"judge": float("nan")}},
        {"relation": ["same"]},
        {"diagnosis": 3},
    ],
)
def test_a_judgement_with_a_field_of_another_type_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"scenario_id": 0, "correct": True, **changes}) + "\n")
    with pytest.raises(InputError, match=rf"x\.jsonl line 1: not a judgement \({next(iter(changes))} must be "):
        read_judgements(tmp_path / "x.jsonl")


def test_a_judge_that_could_not_read_an_answer_is_not_one_that_failed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [record(number) for number in range(3)])
    (folder / "judgements").mkdir()
    fault = {"error": "timeout", "message": "too slow"}
    entries: list[dict[str, Any]] = [
        {"scenario_id": 0, "correct": None, "fault": fault},
        {"scenario_id": 0, "correct": None, "reason": "cannot read 'zzyzx'", "moderator_llm": "large"},
        {"scenario_id": 1, "correct": False, "decided_by": "person"},
        {"scenario_id": 1, "correct": None, "fault": fault},
        {"scenario_id": 2, "correct": None, "fault": fault},
    ]
    lines = [json.dumps({**entry, "case_hash": f"{entry['scenario_id']:016x}", "repeat": 0}) for entry in entries]
    (folder / "judgements" / "other.jsonl").write_text("\n".join(lines) + "\n")
    first, second, third = load_run(folder, "other").records()
    assert (first.status, first.correct, first.moderator_llm) == ("not_readable", None, "large")
    assert first.judgement == Verdict(reason="cannot read 'zzyzx'")
    assert (second.status, second.judgement) == ("diagnosed", Verdict(False, decided_by="person"))
    assert (third.status, third.fault) == ("judge_failed", Fault("moderator", "timeout", "too slow"))
