"""A share of the attack: no poisoned store reaches a prompt as anything but quoted lines."""

from __future__ import annotations

from pathlib import Path

from benchmark_support import load_benchmark


def test_nothing_falls(tmp_path: Path) -> None:
    outcomes = list(load_benchmark("attacks/memories").attack(28, 1, tmp_path))
    assert outcomes == [None] * 28
