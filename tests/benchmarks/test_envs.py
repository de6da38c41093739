"""The benchmark of environments measures rollouts and memory."""

from __future__ import annotations

import pytest
from benchmark_support import load_benchmark

from agentclinic.envs import ClinicEnv

benchmark = load_benchmark("envs")


def test_no_question_is_asked_twice_within_a_measurement() -> None:
    asked = [
        words for seed in range(151) for tool, words in benchmark.lines_of("OpenOSCE", seed) if tool == "ask_patient"
    ]
    assert len(asked) == len(set(asked)) == 151 * benchmark.QUESTIONS


def test_a_rollout_ends_with_a_reward() -> None:
    for dataset in benchmark.DATASETS:
        env = ClinicEnv(dataset)
        assert benchmark.rollout(env, dataset, 3) == benchmark.rollout(env, dataset, 3)
        assert env._begun().record().status in ("diagnosed", "not_readable")


@pytest.mark.slow
def test_a_small_measurement_prints_speed_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["--rollouts", "2", "--environments", "3"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("| OpenOSCE |", "| Solvable:chest-pain |")) for line in lines) == 4
    assert sum("KB each" in line for line in lines) == 2
