"""A share of the attack by slow clients."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_support import load_benchmark


@pytest.mark.slow
def test_no_slow_client_shuts_others_out(tmp_path: Path) -> None:
    outcomes = list(load_benchmark("attacks/clients").attack(30, 3, tmp_path))
    assert (len(outcomes), [line for line in outcomes if line]) == (30, [])
