"""Every fault of an endpoint, in every role: what the record says of it, and that it is never a wrong answer."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import aiohttp  # noqa: F401 - its import takes a while, which no time limit below should count
import pytest
from runs_support import asked, own_cases, run_here, settings_for, summary
from scripted_server import ScriptedServer

pytestmark = pytest.mark.anyio

ROLES = ("doctor", "patient", "measurement", "moderator")


class Expected(NamedTuple):
    error: str
    own: bool = False
    """Of the doctor it is a failure of the doctor itself."""
    retried: bool = True


FAULTS = {
    "429": Expected("rate_limit"),
    "429_retry_after": Expected("rate_limit"),
    "500": Expected("server"),
    "503": Expected("server"),
    "reset": Expected("connection"),
    "hang": Expected("timeout"),
    "200_error": Expected("server"),
    "html": Expected("server"),
    "truncated_json": Expected("server"),
    "empty": Expected("malformed", own=True),
    "refusal": Expected("refused", own=True, retried=False),
    "context": Expected("context_too_long", own=True, retried=False),
}


def outcome(role: str, fault: str) -> str:
    if role == "moderator":
        return "judge_failed"
    return "doctor_failed" if role == "doctor" and FAULTS[fault].own else "model_failed"


def time_limit(fault: str) -> dict[str, float]:
    # Two seconds are far more than the scripted server needs for an answer and little to wait for none.
    return {"request_timeout": 2.0} if fault == "hang" else {}


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_lasting_fault_ends_the_encounter_with_the_right_outcome_and_culprit(
    role: str, fault: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": role}, "fault": fault, "seconds": 0}])
    tries = 1 if fault == "hang" else 2
    settings = settings_for(server, tmp_path, num_scenarios=1, runtime={"tries": tries, **time_limit(fault)})

    finished, (record,) = await run_here(settings)

    assert record["status"] == outcome(role, fault)
    assert (record["fault"]["role"], record["fault"]["error"]) == (role, FAULTS[fault].error)
    assert record["fault"]["message"]
    assert record["correct"] is (False if record["status"] == "doctor_failed" else None)
    assert summary(finished.folder)["faults"] == {f"{role}.{FAULTS[fault].error}": 1}
    assert asked(server, role) == (tries if FAULTS[fault].retried else 1)
    assert record["usage"][role]["retries"] == asked(server, role) - 1


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("fault", [name for name, expected in FAULTS.items() if expected.retried])
async def test_a_passing_fault_is_tried_again_and_only_leaves_a_count(
    role: str, fault: str, server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[{"match": {"purpose": role}, "fault": fault, "seconds": 0, "times": 1}])
    settings = settings_for(server, tmp_path, num_scenarios=1, runtime={"tries": 3, **time_limit(fault)})

    _, (record,) = await run_here(settings)

    assert (record["status"], record["correct"], record["fault"]) == ("diagnosed", True, None)
    assert {name: used["retries"] for name, used in record["usage"].items()} == {
        name: int(name == role) for name in ROLES
    }


async def test_what_a_failing_doctor_used_up_is_counted(server: ScriptedServer, tmp_path: Path) -> None:
    """Empty answers are paid for like good ones."""
    server.control(rules=[{"match": {"purpose": "doctor"}, "fault": "empty"}])

    finished, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1, runtime={"tries": 3}))

    assert record["status"] == "doctor_failed"
    used = record["usage"]["doctor"]
    assert (used["requests"], used["retries"], used["output_tokens"]) == (3, 2, 3 * 8)
    assert summary(finished.folder)["usage"]["doctor"] == used


@pytest.mark.parametrize("tries", [1, pytest.param(6, marks=pytest.mark.slow)])
async def test_with_a_fifth_of_requests_failing_every_unit_has_a_record_and_none_is_wrong_for_it(
    tries: int, server: ScriptedServer, tmp_path: Path
) -> None:
    share = 1 - 0.8**0.25  # four rules, each drawing for itself, together fail one request in five
    faults = ("500", "reset", "429", "html")
    server.control(
        doctor=["What is it?", "DIAGNOSIS READY: Migraine"],
        rules=[{"match": {"probability": share}, "fault": fault} for fault in faults],
        seed=tries,
    )
    path = own_cases(tmp_path / "cases", 100)
    settings = settings_for(
        server, tmp_path / "out", dataset=str(path), num_scenarios=100, workers=16, runtime={"tries": tries}
    )

    finished, entries = await run_here(settings)

    assert sorted(entry["scenario_id"] for entry in entries) == list(range(100))
    assert {entry["correct"] for entry in entries} <= {True, None}, "the scripted judge always says Yes"
    assert all((entry["correct"] is None) == (entry["fault"] is not None) for entry in entries)
    result = summary(finished.folder)
    lost = sum(result["faults"].values())
    if tries == 1:
        # Four requests an encounter: 1 - 0.8^4 = 59 % of encounters meet a fault. Four deviations: 39 to 79.
        assert 39 <= lost <= 79
    else:
        assert lost <= 2, "six tries: 0.2^6 of requests fail for good"
        retries = sum(used["retries"] for used in result["usage"].values())
        assert 0.12 < retries / (retries + 4 * 100) < 0.28
    assert result["accuracy_strict"]["value"] == 1.0
    assert result["if_missing_wrong"] == result["accuracy"] == (100 - lost) / 100
    assert result["if_missing_right"] == 1.0


async def test_a_judge_that_says_neither_yes_nor_no_has_failed_and_the_doctor_is_not_wrong(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(moderator="That is hard to say.")

    _, (record,) = await run_here(settings_for(server, tmp_path, num_scenarios=1))

    assert (record["status"], record["correct"]) == ("judge_failed", None)
    assert (record["fault"]["role"], record["fault"]["error"]) == ("moderator", "malformed")
    assert record["usage"]["moderator"]["input_tokens"] > 0


@pytest.mark.slow
async def test_an_encounter_that_takes_too_long_is_missing_not_wrong(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "patient"}, "fault": "hang"}])

    _, (record,) = await run_here(
        settings_for(server, tmp_path, num_scenarios=1, runtime={"encounter_timeout": 3.0, "request_timeout": 60})
    )

    assert (record["status"], record["correct"]) == ("model_failed", None)
    assert (record["fault"]["role"], record["fault"]["error"]) == ("patient", "encounter_timeout")
    assert [turn["role"] for turn in record["transcript"]] == ["doctor"], "what was said before is kept"
