"""A share of the attack by run folders."""

from __future__ import annotations

from pathlib import Path

from benchmark_support import load_benchmark


def test_no_folder_of_someone_else_gets_a_key_or_runs_a_program(tmp_path: Path) -> None:
    outcomes = list(load_benchmark("attacks/folders").attack(15, 3, tmp_path))
    assert (len(outcomes), [line for line in outcomes if line]) == (15, [])
