"""A share of the attack on every file of a run, and whether it can find anything."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark_support import load_benchmark

BITS = load_benchmark("attacks/bits")


def test_a_damaged_file_of_a_run_is_noticed_or_changes_nothing_that_is_shown(tmp_path: Path) -> None:
    assert [fell for fell in BITS.attack(20, 1, tmp_path) if fell] == []


def test_another_number_that_is_shown_without_a_word_is_found(tmp_path: Path) -> None:
    run = BITS.real_run(tmp_path)
    read = BITS.READERS["runs"]
    before = BITS.shown(run, read)
    config = json.loads((run / "config.used.json").read_text())
    del config["_checksum"]
    config["agentclinic"]["units"] = 3
    (run / "config.used.json").write_text(json.dumps(config))
    assert "3" in BITS.difference(run, read, before)
