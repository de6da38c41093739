"""The memory benchmark: its labels, recall beside chance, and the two jobs that need no time to measure anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmark_support import load_benchmark

benchmark = load_benchmark("memory")


def test_every_row_of_the_labels_names_experiences_and_situations_that_exist() -> None:
    experiences = benchmark.labelled_experiences()
    situations = benchmark.labelled_situations()
    assert len({each.id for each in experiences.values()}) == len(experiences) == 120
    assert len({each.id for each in situations}) == len(situations) == 72
    assert sum(not each.fits for each in situations) == 12
    for reader in ("reader_a", "reader_b"):
        rows = benchmark.labelled(reader)
        assert [row["situation"] for row in rows] == [each.id for each in situations]
        assert {label for row in rows for label in row["fits"]} <= set(experiences)
    assert {exchange.kind for each in situations for exchange in each.exchanges} == {"question", "test"}


def test_bm25_finds_what_fits_more_often_than_chance(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["retrieval"])
    printed = capsys.readouterr().out
    two, ten = (float(share) for share in re.findall(r"\| BM25.* = (\S+) \(", printed))
    by_chance = float(re.findall(r"2 drawn by chance \(expected\) \| (\S+)", printed)[0])
    assert by_chance < two < ten


@pytest.mark.parametrize(("fits", "count", "of", "expected"), [(1, 2, 120, 1 / 60), (2, 2, 4, 5 / 6), (0, 2, 5, 0)])
def test_chance_is_the_share_of_draws_that_hold_one_that_fits(fits: int, count: int, of: int, expected: float) -> None:
    assert benchmark.chance(fits, count, of) == pytest.approx(expected)


def test_killed_writers_lose_no_acknowledged_lesson(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark.main(["append", "--processes", "4", "--appends", "200", "--folder", str(tmp_path)])
    printed = re.sub(" +", " ", capsys.readouterr().out)
    assert int(re.findall(r"appended \(acknowledged\) (\d+)", printed)[0]) >= 200
    assert "\nlost 0\n" in printed
    assert "\nunreadable lines 0\n" in printed
