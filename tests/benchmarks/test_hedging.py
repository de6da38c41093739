"""The hedging benchmark: its templates, its other diseases, and the shares it finds on truths of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_support import load_benchmark

benchmark = load_benchmark("hedging")


def test_the_other_diseases_are_of_other_organs_and_the_same_for_the_same_truth() -> None:
    others = sum(benchmark.OTHERS.values(), ())
    assert benchmark.unrelated("Septic arthritis", others) == benchmark.unrelated("septic arthritis", others)
    for other in benchmark.unrelated("Septic arthritis", others):
        assert "joint" not in benchmark.organs(other)


@pytest.mark.slow
def test_little_credit_is_given_without_a_commitment_and_honest_answers_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(benchmark, "DATA", tmp_path)  # OpenOSCE alone, which is part of the package
    counted = benchmark.count()
    false, honest = counted["OpenOSCE|False"], counted["OpenOSCE|True"]
    assert false.right <= 0.02 * false.of
    assert honest.right >= 0.98 * honest.of
    benchmark.print_table(counted, {})
    assert "63 templates" in capsys.readouterr().out
