"""A share of the attack on seats."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_support import load_benchmark


@pytest.mark.slow
def test_no_player_gets_two_seats(tmp_path: Path) -> None:
    outcomes = list(load_benchmark("attacks/seats").attack(14, 3, tmp_path))
    assert (len(outcomes), [line for line in outcomes if line]) == (14, [])
