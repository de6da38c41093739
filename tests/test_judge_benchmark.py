"""The benchmark of the judge: its baseline, and that it runs with and without the public data."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import judge as benchmark  # noqa: E402


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("gout", "gout", 100),
        ("acute gout", "gout", 100),  # all words of one are in the other
        ("gout", "xyz", 0),
        ("type 1", "type 2", 2 * 5 / 12 * 100),  # "type " is common, 5 of 6 letters on either side
    ],
)
def test_the_baseline_is_the_token_set_ratio(one: str, other: str, ratio: float) -> None:
    assert benchmark.token_set_ratio(one, other) == pytest.approx(ratio, abs=8)


@pytest.mark.parametrize(
    ("said", "truth"), [("Hepatitis B", "Hepatitis C"), ("Type 1 diabetes mellitus", "Type 2 diabetes mellitus")]
)
def test_the_baseline_takes_near_misses_for_the_same(said: str, truth: str) -> None:
    assert benchmark.naive(said, truth)


def test_without_the_public_data_the_pairs_still_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(benchmark, "DATA", tmp_path)
    benchmark.main()
    printed = capsys.readouterr().out
    assert "skipped" in printed
    assert "holdout" in printed


@pytest.mark.skipif(not (benchmark.DATA / "judge").exists(), reason="needs ../shared/data")
def test_with_the_public_data_disputes_are_listed_by_row_and_no_text_of_it_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    benchmark.main()
    printed = capsys.readouterr().out
    assert "reader A / reader B" in printed
    assert "row 16" in printed
    for line in (benchmark.DATA / "judge" / "verdicts.jsonl").read_text("utf-8").splitlines():
        assert json.loads(line)["correct_diagnosis"] not in printed
