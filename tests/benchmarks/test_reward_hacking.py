"""No policy that does not try to find out earns as much as a doctor that does."""

from __future__ import annotations

import pytest
from benchmark_support import load_benchmark

from agentclinic.envs.rewards import REWARDS

benchmark = load_benchmark("reward_hacking")
FEW = {"OpenOSCE": 8, "Solvable:chest-pain": 12}


@pytest.mark.parametrize("dataset", FEW)
def test_no_policy_beats_an_honest_doctor_on_a_few_cases(dataset: str) -> None:
    honest, rows = benchmark.table(dataset, FEW[dataset])
    assert len(rows) > 20
    assert benchmark.beaten(honest, rows) == []


@pytest.mark.slow
def test_no_policy_beats_an_honest_doctor_in_any_shipped_reward(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main([]) == 0
    printed = capsys.readouterr().out
    assert "None beats an honest doctor." in printed
    assert {name for dataset in ("OpenOSCE", *benchmark.names()) for name in benchmark.rewards_in(dataset)} == set(
        REWARDS
    )


def test_a_policy_that_earns_as_much_is_named() -> None:
    honest = {"builtin doctor": {"right": 0.5, "frugal": 0.4}, "greedy doctor": {"right": 0.6, "frugal": 0.3}}
    rows = {"a list": {"right": 0.49, "frugal": 0.29}, "tokens": {"right": 0.5, "frugal": 0.31}}
    assert benchmark.beaten(honest, rows) == ["tokens: right 0.500", "tokens: frugal 0.310"]
