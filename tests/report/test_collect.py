"""A report reads each run's records once, and holds what `score` and `compare` print."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_support import gathered, record, write_run, wrong
from scipy.stats import binom

from agentclinic.report.files import write_report
from agentclinic.results.run_data import load_run
from agentclinic.scoring.compare import compare_arms, load_arm
from agentclinic.scoring.score import score
from agentclinic.scoring.stats import binomial_band


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs of the same six cases."""
    return [
        write_run(tmp_path / "first", [record(number) for number in range(6)]),
        write_run(tmp_path / "second", [(wrong if number < 3 else record)(number) for number in range(6)]),
    ]


@pytest.fixture
def opened() -> Iterator[Counter[Path]]:
    """Counts how often each file is opened, in whatever way."""
    counts: Counter[Path] = Counter()
    counting = True

    def count(event: str, arguments: tuple[object, ...]) -> None:
        if counting and event == "open" and isinstance(arguments[0], str):
            counts[Path(arguments[0])] += 1

    sys.addaudithook(count)  # cannot be removed, so it is switched off
    yield counts
    counting = False


@pytest.mark.parametrize("format_", ["html", "md", "json", "csv"])
def test_a_report_reads_the_records_of_each_run_once(
    format_: str, runs: list[Path], opened: Counter[Path], tmp_path: Path
) -> None:
    write_report(runs, tmp_path / f"report.{format_}")

    assert [opened[folder / "scenarios.jsonl"] for folder in runs] == [1, 1]


def test_one_pass_gives_the_numbers_of_score_and_compare(runs: list[Path]) -> None:
    report = gathered(*runs).report
    data = [load_run(folder) for folder in runs]

    assert [run.score for run in report.runs] == [score(run) for run in data]
    assert report.comparison == compare_arms([load_arm(run) for run in data])


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (7, 0.04), (38, 0.98), (400, 0.31), (5000, 0.62)])
def test_the_band_of_a_reliability_point_is_the_binomials(n: int, p: float) -> None:
    low, high = binomial_band(n, p)
    assert (low * n, high * n) == pytest.approx((binom.ppf(0.025, n, p), binom.ppf(0.975, n, p)))


def test_a_certain_forecast_has_no_band() -> None:
    assert binomial_band(9, 1.0) == (1.0, 1.0)
    assert binomial_band(0, 0.3) == (0.3, 0.3)
