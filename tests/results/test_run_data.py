"""Reading a run from disk."""

from __future__ import annotations

import pytest

from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of


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
