"""A share of the attack on every file of a run."""

from __future__ import annotations

from pathlib import Path

from attacks.bits import attack


def test_a_damaged_file_of_a_run_is_noticed_or_changes_nothing_that_is_shown(tmp_path: Path) -> None:
    fell = list(attack(20, 1, tmp_path))
    assert fell == [None] * 20
