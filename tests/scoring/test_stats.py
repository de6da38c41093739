"""Statistics against hand-worked values, independent implementations and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests

from agentclinic.scoring.stats import (
    Clusters,
    Estimate,
    bootstrap_interval,
    bootstrap_means,
    case_draws,
    detectable_difference,
    holm,
    mcnemar_p,
    permutation_p,
    stretch_for,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def limits(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_clusters_add_up_their_values() -> None:
    clusters = Clusters.of([1, 0, 1, 1], ["a", "a", "b", "c"])
    assert clusters.number == 3
    assert clusters.mean == pytest.approx(3 / 4)
    assert sorted(zip(clusters.sums, clusters.sizes, clusters.counts, strict=True)) == [(1, 1, 2), (1, 2, 1)]


def test_the_standard_error_of_single_values_is_that_of_a_mean() -> None:
    values = [0.0, 1.0, 1.0, 0.0, 1.0, -1.0]
    clusters = Clusters.of(values, list(range(6)))
    assert clusters.standard_error == pytest.approx(scipy_stats.sem(values))


def test_mcnemar_by_hand() -> None:
    # 3 gained, 9 lost: 2 * (C(12,0) + C(12,1) + C(12,2) + C(12,3)) / 2^12 = 2 * 299 / 4096
    assert mcnemar_p(3, 9) == pytest.approx(2 * 299 / 4096)
    assert mcnemar_p(0, 0) == 1.0


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_exact_binomial_test(gained: int, lost: int) -> None:
    expected = scipy_stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar_p(gained, lost) == pytest.approx(expected, rel=1e-9)


def test_permutation_agrees_with_counting_all_swaps() -> None:
    sums = np.array([1.0, 1.0, 1.0, -1.0, 2.0, 1.0, 0.5])
    observed = abs(sums.sum())
    swaps = [abs(float(np.dot(signs, sums))) for signs in itertools.product((1, -1), repeat=len(sums))]
    exact = np.mean([total >= observed - 1e-9 for total in swaps])
    found = permutation_p(Clusters.of(sums, list(range(len(sums)))), rng(1), 40_000)
    assert found == pytest.approx(exact, abs=0.01)


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), min_size=1, max_size=8))
def test_holm_agrees_with_statsmodels(p_values: dict[str, float]) -> None:
    expected = multipletests(list(p_values.values()), method="holm")[1]
    assert list(holm(p_values).values()) == pytest.approx(list(np.minimum(expected, 1.0)))


def test_holm_by_hand() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})


def test_the_interval_agrees_with_scipy_for_many_single_cases() -> None:
    values = rng(3).choice([-1.0, 0.0, 1.0], p=[0.1, 0.7, 0.2], size=400)
    ours = bootstrap_interval(Clusters.of(values, list(range(400))), rng(4))
    theirs = scipy_stats.bootstrap((values,), np.mean, method="percentile", rng=rng(5)).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)
    assert ours.value == pytest.approx(values.mean())


def test_copies_of_a_case_do_not_narrow_the_interval() -> None:
    values = rng(6).choice([-1.0, 0.0, 1.0], p=[0.1, 0.7, 0.2], size=200)
    single = bootstrap_interval(Clusters.of(values, list(range(200))), rng(7))
    copied = bootstrap_interval(Clusters.of(np.repeat(values, 5), list(np.repeat(range(200), 5))), rng(7))
    widths = [high - low for low, high in (limits(single), limits(copied))]
    assert widths[1] == pytest.approx(widths[0], rel=0.05)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=3, max_size=40), st.randoms())
def test_results_do_not_depend_on_the_order_of_cases(values: list[float], random: object) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    straight = Clusters.of(values, list(range(len(values))))
    mixed = Clusters.of([values[i] for i in order], order)
    assert bootstrap_interval(straight, rng(8), 500) == bootstrap_interval(mixed, rng(8), 500)
    assert permutation_p(straight, rng(9), 500) == permutation_p(mixed, rng(9), 500)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=30))
def test_p_values_and_intervals_stay_within_bounds(values: list[float]) -> None:
    clusters = Clusters.of(values, list(range(len(values))))
    assert 0 < permutation_p(clusters, rng(), 200) <= 1
    if len(values) > 2:
        low, high = limits(bootstrap_interval(clusters, rng(), 200))
        assert low <= clusters.mean <= high


def test_detectable_difference_by_hand() -> None:
    assert detectable_difference(0.02) == pytest.approx(0.02 * 2.8016, abs=1e-4)


def _simulated(n: int, repeats: int, difference: float, seed: int) -> tuple[Clusters, int, int]:
    """Differences of two arms over n cases of varying difficulty, the second better by `difference` on average."""
    draw = rng(seed)
    base = 0.15 + 0.6 * draw.random(n)
    first = (draw.random((n, repeats)) < base[:, None]).mean(axis=1)
    second = (draw.random((n, repeats)) < base[:, None] + difference).mean(axis=1)
    gaps = second - first
    return Clusters.of(gaps, list(range(n))), int((gaps > 0).sum()), int((gaps < 0).sum())


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [1, 3])
def test_identical_arms_are_rarely_called_different(repeats: int) -> None:
    bootstrap = permutation = mcnemar = 0
    for seed in range(1000):
        clusters, gained, lost = _simulated(200, repeats, 0.0, seed)
        low, high = limits(bootstrap_interval(clusters, rng(seed), 1000))
        bootstrap += low > 0 or high < 0
        permutation += permutation_p(clusters, rng(seed), 1000) < 0.05
        mcnemar += mcnemar_p(gained, lost) < 0.05
    assert 30 <= bootstrap <= 70
    assert permutation <= 70
    if repeats == 1:
        assert mcnemar <= 70


@pytest.mark.parametrize(
    ("difference", "repeats"),
    [(0.12, 1), pytest.param(0.05, 1, marks=pytest.mark.slow), pytest.param(0.08, 3, marks=pytest.mark.slow)],
)
def test_intervals_cover_planted_differences(difference: float, repeats: int) -> None:
    covered = 0
    for seed in range(1000):
        clusters, _, _ = _simulated(250, repeats, difference, 10_000 + seed)
        low, high = limits(bootstrap_interval(clusters, rng(seed), 1000))
        covered += low <= difference <= high
    assert 930 <= covered <= 970


def test_clustered_copies_keep_the_false_positive_rate() -> None:
    """Every case occurs three times with the same outcome: treating them as independent would mislead."""
    naive = clustered = 0
    for seed in range(400):
        draw = rng(seed)
        gaps = draw.choice([-1.0, 0.0, 1.0], p=[0.2, 0.6, 0.2], size=80)
        copies, groups = np.repeat(gaps, 3), list(np.repeat(range(80), 3))
        clustered += permutation_p(Clusters.of(copies, groups), rng(seed), 1000) < 0.05
        naive += permutation_p(Clusters.of(copies, list(range(240))), rng(seed), 1000) < 0.05
    assert clustered <= 0.08 * 400
    assert naive >= 0.15 * 400


@pytest.mark.parametrize(
    ("k", "by_hand"),
    [
        (10, 1.2166),  # t(9) = 2.2622: 2.2622 / 1.9600 · sqrt(10/9); without the root 1.1542
        (50, 1.0357),  # t(49) = 2.0096: 2.0096 / 1.9600 · sqrt(50/49); without the root 1.0253
    ],
)
def test_the_stretch_is_the_t_quantile_and_the_small_sample_factor(k: int, by_hand: float) -> None:
    assert stretch_for(k) == pytest.approx(by_hand, rel=0.003)


def test_the_interval_from_ten_cases_is_stretched_by_both_factors() -> None:
    clusters = Clusters.of([1.0, 0.0, 1.0, 0.0, 1.0] * 2, range(10))
    low, high = np.quantile(bootstrap_means(clusters, rng(), 2000), [0.025, 0.975])
    wide_low, wide_high = limits(bootstrap_interval(clusters, rng(), 2000))
    assert wide_high - wide_low == pytest.approx((high - low) * 1.2166, rel=0.003)


def test_few_clusters_have_wide_or_no_intervals() -> None:
    assert math.isinf(limits(bootstrap_interval(Clusters.of([1.0, 0.0], [0, 1]), rng()))[1])


def test_redrawn_cases_have_the_moments_of_the_bayesian_bootstrap() -> None:
    # A share of 6 of 10 with half a unit on either side is Beta(6.5, 4.5).
    totals = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 4)
    draws = case_draws(totals, np.full(2, 0.5), np.random.default_rng(0), 20_000)
    shares = draws[:, 0] / draws.sum(axis=1)
    assert shares.mean() == pytest.approx(6.5 / 11, abs=0.004)
    assert np.quantile(shares, [0.025, 0.975]) == pytest.approx(
        scipy_stats.beta.ppf([0.025, 0.975], 6.5, 4.5), abs=0.01
    )
