"""Statistics against hand-worked values, independent implementations and simulation."""

from __future__ import annotations

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
    holm,
    mcnemar_p,
    mean_against_zero,
    paired_difference,
    share,
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


def flips(gained: int, lost: int, cases: int) -> list[tuple[int, bool, bool]]:
    return [(case, case < gained, gained <= case < gained + lost) for case in range(cases)]


@pytest.mark.parametrize(
    ("gained", "lost", "cases", "low", "high"),
    [
        (0, 1, 14, -0.315, 0.159),  # the bootstrap gave -23.5 to +1.0
        (0, 1, 64, -0.083, 0.042),  # the bootstrap gave -4.8 to 0.0: one flip narrowed the interval
        (4, 0, 4, 0.020, 1.0),
    ],
)
def test_tangos_interval_agrees_with_values_worked_elsewhere(
    gained: int, lost: int, cases: int, low: float, high: float
) -> None:
    found = paired_difference(flips(gained, lost, cases)).estimate
    assert limits(found) == pytest.approx((low, high), abs=6e-4)


def score_by_search(gained: int, lost: int, cases: int, difference: float) -> float:
    """Tango's statistic with the likeliest share lost found on a grid instead of by his formula."""
    q = np.linspace(max(0.0, -difference), min(1.0, (1 - difference) / 2), 200_001)[1:-1]
    same = 1 - 2 * q - difference
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [(gained, q + difference), (lost, q), (cases - gained - lost, same)]
        likelihood = sum(np.where(count == 0, 0.0, count * np.log(share)) for count, share in terms)
    best = q[np.nanargmax(likelihood)]
    return abs(gained - lost - cases * difference) / math.sqrt(cases * (2 * best + difference * (1 - difference)))


@pytest.mark.parametrize(("gained", "lost", "cases"), [(5, 2, 30), (1, 0, 20), (12, 11, 40), (3, 9, 16)])
def test_the_score_test_just_accepts_the_limits_of_the_interval(gained: int, lost: int, cases: int) -> None:
    for limit in limits(paired_difference(flips(gained, lost, cases)).estimate):
        assert score_by_search(gained, lost, cases, limit) == pytest.approx(1.959964, abs=0.002)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 30), st.sampled_from([1, 2, 3]))
def test_the_interval_leaves_out_0_if_and_only_if_p_is_below_5_percent(
    gained: int, lost: int, same: int, size: int
) -> None:
    cases = gained + lost + same
    if not cases:
        return
    estimate, p = paired_difference([(case // size, up, down) for case, up, down in flips(gained, lost, cases)])
    low, high = limits(estimate)
    assert (low > 0 or high < 0) == (p < 0.05)
    assert -1 <= low <= estimate.value <= high <= 1  # type: ignore[operator]


def test_without_clusters_the_test_is_mcnemars_without_a_correction() -> None:
    # (9 - 3)² / 12 = 3, one degree of freedom
    assert paired_difference(flips(9, 3, 64)).p == pytest.approx(scipy_stats.chi2.sf(3, 1))


def test_more_flips_never_narrow_the_interval() -> None:
    widths = [np.ptp(limits(paired_difference(flips(n, n, 64)).estimate)) for n in range(10)]
    assert widths == sorted(widths)


def test_repeats_that_never_differ_add_nothing() -> None:
    once, thrice = (paired_difference(flips(5, 2, 40), plays) for plays in (1, 3))
    assert limits(once.estimate) == pytest.approx(limits(thrice.estimate), abs=0.01)
    assert once.p == pytest.approx(thrice.p, abs=0.01)


def test_repeats_that_differ_narrow_the_interval() -> None:
    draw = rng(1)
    chances = [(case, float(up), float(down)) for case, (up, down) in enumerate(draw.random((40, 2)) * 0.3)]
    once = paired_difference([(case, up > 0.15, up <= 0.15 and down > 0.15) for case, up, down in chances])
    often = paired_difference(chances, 10)
    assert np.ptp(limits(often.estimate)) < 0.5 * np.ptp(limits(once.estimate))


def test_a_share_of_repeats_counts_its_cases_and_not_its_records() -> None:
    """14 cases, three times each: Wilson on 42 gave 49.2 to 77.0%."""
    alike = share((case, case < 9, 1) for case in range(14) for _ in range(3))
    assert alike.clustered
    assert (alike.count, alike.of) == (27, 42)
    assert (alike.low, alike.high) == pytest.approx((0.388, 0.837), abs=1e-3)  # Wilson on 9 of 14
    single = share((case, case < 9, 1) for case in range(14))
    assert not single.clustered
    assert (single.low, single.high) == pytest.approx((0.388, 0.837), abs=1e-3)


def test_twins_of_which_always_one_is_right_make_a_share_surer_and_alike_ones_less_sure() -> None:
    widths = {
        kind: (found.high or 0) - (found.low or 0)
        for kind, found in {
            "one of two": share((pair, twin, 1) for pair in range(30) for twin in (0, 1)),
            "independent": share((case, case % 2, 1) for case in range(60)),
            "alike": share((pair, pair % 2, 1) for pair in range(30) for _ in (0, 1)),
        }.items()
    }
    assert widths["one of two"] < 0.5 * widths["independent"]
    assert widths["alike"] > 1.3 * widths["independent"]


def covered(gain: float, loss: float, clusters: int, size: int, alike: float, seed: int) -> float:
    """How often 1,000 simulated runs' intervals hold the true difference; with chance `alike`, a cluster is all one."""
    draw = rng(seed)
    hits = 0
    for _ in range(1000):
        u = np.where(draw.random((clusters, 1)) < alike, draw.random((clusters, 1)), draw.random((clusters, size)))
        rows = [(c, x < gain, x > 1 - loss) for c in range(clusters) for x in u[c]]
        low, high = limits(paired_difference(rows).estimate)
        hits += low <= gain - loss <= high
    return hits / 1000


@pytest.mark.parametrize(
    ("gain", "loss", "clusters", "size", "alike"),
    [(0.1, 0.05, 32, 1, 0.0), (0.1, 0.05, 32, 2, 0.5), (0.05, 0.02, 64, 3, 0.33), (0.2, 0.1, 14, 3, 0.5)],
)
def test_intervals_of_differences_hold_the_truth(
    gain: float, loss: float, clusters: int, size: int, alike: float
) -> None:
    # Three standard errors of 1,000 draws are 0.02; the whole grid is in benchmarks/intervals.py.
    assert 0.93 <= covered(gain, loss, clusters, size, alike, 7) <= 0.985


def test_mcnemar_by_hand() -> None:
    # 3 gained, 9 lost: 2 * (C(12,0) + C(12,1) + C(12,2) + C(12,3)) / 2^12 = 2 * 299 / 4096
    assert mcnemar_p(3, 9) == pytest.approx(2 * 299 / 4096)
    assert mcnemar_p(0, 0) == 1.0


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_exact_binomial_test(gained: int, lost: int) -> None:
    expected = scipy_stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar_p(gained, lost) == pytest.approx(expected, rel=1e-9)


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


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=30))
def test_the_interval_of_a_mean_holds_the_mean(values: list[float]) -> None:
    clusters = Clusters.of(values, list(range(len(values))))
    if len(values) > 2:
        low, high = limits(bootstrap_interval(clusters, rng(), 200))
        assert low <= clusters.mean <= high


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


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=30), st.integers(0, 5))
def test_a_mean_is_called_different_from_zero_where_its_interval_leaves_out_zero(values: list[int], seed: int) -> None:
    found, p = mean_against_zero(enumerate(map(float, values)), seed)
    assert found.low is not None
    assert found.high is not None
    if len(set(values)) > 1 and abs(p - 0.05) > 0.001:
        assert (p < 0.05) == (found.low > 0 or found.high < 0)
    assert found.low <= sum(values) / len(values) + 1e-9
    assert 0 < p <= 1


def test_values_that_are_all_the_same_are_tested_by_their_signs() -> None:
    assert mean_against_zero([(case, 2.0) for case in range(6)]).p == pytest.approx(2 / 2**6)
    assert mean_against_zero([(case, 0.0) for case in range(6)]).p == 1.0
    assert mean_against_zero([(case % 2, 2.0) for case in range(6)]).p == 1.0, "two clusters"


def test_no_effect_is_called_clear_about_once_in_twenty() -> None:
    draws = np.random.default_rng(5).choice([-1.0, 0.0, 0.0, 1.0], size=(400, 40))
    wrong = sum(mean_against_zero(enumerate(row)).p < 0.05 for row in draws)
    assert 6 <= wrong <= 34, "400 at 5%: 20, give or take three standard errors"
