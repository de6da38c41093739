"""A share of the attack: no hostile file of answers leads to a wrong verdict."""

from __future__ import annotations

from pathlib import Path

from benchmark_support import load_benchmark


def test_nothing_falls(tmp_path: Path) -> None:
    outcomes = list(load_benchmark("attacks/batches").attack(12, 1, tmp_path))
    assert outcomes == [None] * 12
