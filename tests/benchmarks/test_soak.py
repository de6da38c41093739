"""A small share of the soak, and whether its accounting can find anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from benchmark_support import load_benchmark

pytestmark = pytest.mark.slow
K = load_benchmark("soak")
CASES = 6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Twelve encounters at a server that spoils a fifth of its answers, killed once."""
    server = K.Servant(seed=2)
    server.come()
    try:
        run = K.Soak("plain", CASES, 2, tmp_path_factory.mktemp("soak"), server)
        run.play(["kill"], away=0)
    finally:
        server.go()
    assert sum(server.injected.values()) > server.injected["requests"]
    return run


def test_a_run_that_meets_faults_and_is_killed_has_every_unit_once_with_the_right_outcome(run: Any) -> None:
    found = K.account(run.records(), CASES, "plain")
    assert (run.problems, found.lost, found.duplicated, found.wrong) == ([], [], [], [])
    assert run.counts["kills"] == 1
    assert found.outcomes == {
        "diagnosed, right": 4,  # 0 and 4, twice each
        "diagnosed, wrong": 2,  # 5
        "doctor_failed, wrong": 4,  # 1 refuses, 2 has too long a prompt
        "max_infs_reached, wrong": 2,  # 3
    }


def test_the_accounting_notices_what_is_lost_duplicated_and_scored_wrong(run: Any) -> None:
    records: list[dict[str, Any]] = run.records()
    first, rest = records[0], records[1:]
    unit = f"plain {first['scenario_id'], first['repeat']}"
    failed = {"status": "doctor_failed", "correct": False, "fault": {"role": "doctor", "error": "timeout"}}

    def account(*changed: dict[str, Any]) -> Any:
        return K.account([*changed, *rest], CASES, "plain")

    assert account().lost == [unit]
    assert account(first, first).duplicated == [unit]
    for change in ({"correct": not first["correct"]}, failed, {"diagnosis_text": "Gout"}, {"scenario_id": CASES}):
        (wrong,) = account(first | change).wrong
        assert wrong.startswith("plain (")
    missing = first | {"status": "model_failed", "correct": None}
    assert account(missing).wrong == [], "what failed without a verdict is not wrong"
    assert len(account(missing | {"correct": False}).wrong) == 1, "unless it counts"


def test_the_clock_of_a_run_is_wrong_by_days(run: Any) -> None:
    now = datetime.now(UTC)
    began = [datetime.fromisoformat(record["timing"]["started_at"]) for record in run.records()]
    assert all(abs(now - moment) > timedelta(hours=20) for moment in began)
