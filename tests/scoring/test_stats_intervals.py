"""Shares, means and ratios with their intervals."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

from agentclinic.scoring.stats import mean, proportion, ratio


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        # Worked by hand from Wilson's formula with z = 1.959964 (z² = 3.841459):
        (8, 10, 0.490162, 0.943318),  # (0.8 + 0.192073 ± 0.313696) / 1.384146
        (0, 10, 0.0, 0.277533),  # z² / (n + z²)
        (10, 10, 0.722467, 1.0),  # n / (n + z²)
        (0, 1, 0.0, 0.793450),
        (50, 100, 0.403832, 0.596168),
    ],
)
def test_the_wilson_interval_agrees_with_hand_worked_values(count: int, of: int, low: float, high: float) -> None:
    share = proportion(count, of)

    assert share.value == count / of
    assert share.low == pytest.approx(low, abs=2e-6)
    assert share.high == pytest.approx(high, abs=2e-6)


def test_nothing_to_count_has_no_share_and_no_interval() -> None:
    share = proportion(0, 0)

    assert (share.value, share.low, share.high) == (None, None, None)


@given(st.integers(1, 10**6).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_the_interval_holds_the_share_and_stays_between_0_and_1(pair: tuple[int, int]) -> None:
    count, of = pair
    share = proportion(count, of)

    assert share.value is not None
    assert share.low is not None
    assert share.high is not None
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert share.high - share.low > 0
    mirror = proportion(of - count, of)
    assert mirror.low == pytest.approx(1 - share.high)


def test_a_ratio_divides_sums_and_not_cases() -> None:
    # (1 + 2 + 3) ÷ (2 + 3 + 5), not the mean of 1/2, 2/3 and 3/5.
    assert ratio([("a", 1, 2), ("b", 2, 3), ("c", 3, 5)]).value == pytest.approx(0.6)


def test_rows_without_weight_do_not_count() -> None:
    found = ratio([("a", 1, 1), ("b", 2, 1), ("c", 3, 1), ("d", 9, 0)])
    assert (found.value, found.n) == (2, 3)


def test_two_cases_have_no_interval() -> None:
    found = mean([("a", 1), ("b", 2)])
    assert (found.value, found.low, found.high) == (1.5, None, None)
    assert found.note == "no interval: fewer than 3 cases"


def test_no_rows_have_no_mean() -> None:
    assert mean([]).value is None


def test_an_interval_stays_within_the_bounds_of_what_is_measured() -> None:
    found = mean([("a", 0), ("b", 0), ("c", 0), ("d", 1)], low=0, high=1)
    assert (found.value, found.low) == (0.25, 0)
    assert mean([("a", 0), ("b", 0), ("c", 0), ("d", 1)]).low != 0


def test_copies_of_a_case_do_not_narrow_the_interval() -> None:
    values = list(enumerate([0.0, 1.0, 1.0, 0.0, 1.0, 0.5]))
    once, thrice = mean(values), mean(values * 3)
    assert (once.low, once.high) == (thrice.low, thrice.high)
    assert thrice.n == 18


@pytest.mark.parametrize("n", [300, 900])
def test_intervals_agree_with_an_independent_bootstrap_for_few_and_for_many_distinct_cases(n: int) -> None:
    values = np.random.default_rng(5).exponential(size=n)
    found = mean(enumerate(values.tolist()))
    other = bootstrap(
        (values,), np.mean, method="percentile", n_resamples=4000, rng=np.random.default_rng(6)
    ).confidence_interval
    assert found.low is not None
    assert found.high is not None
    half = (other.high - other.low) / 2
    assert math.isclose(found.low, other.low, abs_tol=0.12 * half)
    assert math.isclose(found.high, other.high, abs_tol=0.12 * half)


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e4)), min_size=1, max_size=30), st.randoms())
@settings(max_examples=30)
def test_sums_do_not_depend_on_order(values: list[tuple[int, float]], rng: random.Random) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert mean(values) == mean(shuffled)
