"""Echoed keys: a share of the attack in `benchmarks/attacks/echoes.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_support import load_benchmark

attacks = load_benchmark("attacks/echoes")


def test_no_echoed_key_is_shown_or_written(tmp_path: Path) -> None:
    tries = list(attacks.attack(60, 1, tmp_path))
    assert len(tries) == 60
    assert not any(tries), [fell for fell in tries if fell]


def test_a_client_that_removes_nothing_falls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the attack would show nothing. Short quotations cut off some keys in any case."""
    monkeypatch.setattr("agentclinic.models.faults.Host.scrub", lambda _, content: content)
    fell = [fell for fell in attacks.attack(60, 1, tmp_path) if fell]
    assert len(fell) > 30
