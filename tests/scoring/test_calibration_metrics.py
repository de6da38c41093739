"""Metrics of forecasts: against hand-worked values, other implementations, and invariants."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from agentclinic.scoring import calibration as m
from agentclinic.scoring.calibration import Forecasts, estimates
from agentclinic.scoring.stats import Floats

METRICS: list[Callable[[Floats, Floats, Floats], Floats]] = [
    m.brier,
    m.log_score,
    m.auroc,
    m.aurc,
    lambda p, y, w: m.brier_parts(p, y, w)["reliability"],
    lambda p, y, w: m.brier_parts(p, y, w)["resolution"],
    lambda p, y, w: m.ece(p, y, w, m.equal_width(p)),
]


def ones(p: Floats) -> Floats:
    return np.ones(p.size)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


@st.composite
def forecasts(draw: st.DrawFn, least: int = 1) -> tuple[Floats, Floats, Floats]:
    """Forecasts with many ties, as people state them, or few; outcomes; weights that are not all 0."""
    n = draw(st.integers(least, 40))
    whole = st.integers(0, 20).map(lambda k: k / 20)
    fine = st.integers(0, 10_000).map(lambda k: k / 10_000)
    p = draw(st.lists(whole | fine, min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    w = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    return np.array(p), np.array(y, dtype=np.float64), np.array(w, dtype=np.float64)


def random_forecasts(n: int, seed: int = 1, digits: int | None = None) -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 1.5, n) if digits is None else rng.beta(2, 1.5, n).round(digits)
    y = (rng.random(n) < p**1.5).astype(np.float64)
    return p, y, rng.integers(0, 4, n).astype(np.float64)


# By hand

P, Y = floats(0.9, 0.8, 0.6, 0.3), floats(1, 0, 1, 0)


def test_brier_by_hand() -> None:
    assert m.brier(P, Y, ones(P)) == pytest.approx((0.01 + 0.64 + 0.16 + 0.09) / 4)
    assert m.brier(P, Y, floats(1, 0, 2, 1)) == pytest.approx((0.01 + 2 * 0.16 + 0.09) / 4)


def test_log_score_by_hand() -> None:
    assert m.log_score(P, Y, ones(P)) == pytest.approx(-math.log(0.9 * 0.2 * 0.6 * 0.7) / 4)


def test_certainty_that_was_wrong_is_clipped_and_counted() -> None:
    p = floats(1, 0, 0.5)
    assert m.log_score(p, floats(0, 0, 1), ones(p)) == pytest.approx((-math.log(1e-6) + math.log(2)) / 3, rel=1e-5)
    assert m.count_clipped(p) == 2


def test_murphy_decomposition_by_hand() -> None:
    p, y = floats(0.2, 0.2, 0.2, 0.2, 0.8, 0.8), floats(0, 0, 1, 0, 1, 1)
    parts = m.brier_parts(p, y, ones(p))
    assert parts["reliability"] == pytest.approx((4 * 0.05**2 + 2 * 0.2**2) / 6)
    assert parts["resolution"] == pytest.approx((4 * 0.25**2 + 2 * 0.5**2) / 6)
    assert parts["uncertainty"] == pytest.approx(0.25)
    assert parts["within"] == pytest.approx(0, abs=1e-15)


def test_terms_within_bins_by_hand() -> None:
    p, y = floats(0.12, 0.18), floats(0, 1)
    # One bin: mean forecast 0.15, half right; deviations ∓0.03 and ∓½ go together.
    assert m.brier_parts(p, y, ones(p))["within"] == pytest.approx((2 * 0.03**2 - 2 * (2 * 0.03 * 0.5)) / 2)


def test_auroc_by_hand_counts_ties_half() -> None:
    # Pairs right-wrong: 0.9 beats 0.8 and 0.3, 0.6 beats only 0.3.
    assert m.auroc(P, Y, ones(P)) == 3 / 4
    assert m.auroc(floats(0.5, 0.5, 0.7), floats(1, 0, 1), np.ones(3)) == 1.5 / 2


def test_area_under_risk_and_coverage_by_hand() -> None:
    # Falling confidence: right, wrong, right, wrong: risks 0, 1/2, 1/3, 2/4.
    assert m.aurc(P, Y, ones(P)) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    # All tied: any order is as likely, every prefix expects half to be wrong.
    assert m.aurc(np.full(4, 0.5), Y, ones(P)) == pytest.approx(0.5)


def test_risk_at_coverage_by_hand() -> None:
    risk, threshold = m.risk_coverage(P, Y, ones(P), floats(0.25, 0.5, 0.75, 1))
    assert risk.tolist() == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert threshold.tolist() == [0.9, 0.8, 0.6, 0.3]


def test_ece_by_hand() -> None:
    p, y = floats(0.11, 0.19, 0.95, 0.99), floats(0, 1, 1, 0)
    gaps = abs(1 - 0.30) + abs(1 - 1.94)
    assert m.ece(p, y, ones(p), m.equal_width(p)) == pytest.approx(gaps / 4)


def test_bins_hold_their_lower_edge_and_ones_fall_into_the_last() -> None:
    assert m.equal_width(floats(0, 0.1, 0.3, 0.6, 0.7, 0.9999, 1)).tolist() == [0, 1, 3, 6, 7, 9, 9]


def test_bins_of_equal_mass_keep_ties_together() -> None:
    assert m.equal_mass(np.linspace(0, 1, 20)).tolist() == [k // 2 for k in range(20)]
    assert m.equal_mass(np.full(7, 0.4)).tolist() == [5] * 7


def test_expected_ece_by_hand() -> None:
    # One forecast of 0.5: the error is 0.5 whatever happens. Two in a bin: 0 or 0.5, each with chance ½.
    rng = np.random.default_rng(0)
    one, two = floats(0.5), floats(0.5, 0.5)
    assert m.ece_expected(one, m.equal_width(one), rng, 100).tolist() == [0.5] * 100
    assert m.ece_expected(two, m.equal_width(two), rng, 20_000).mean() == pytest.approx(0.25, abs=0.01)


# Against others


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("seed", range(5))
def test_scores_agree_with_scikit_learn(seed: int, digits: int | None) -> None:
    p, y, w = random_forecasts(300, seed, digits)
    assert m.brier(p, y, w) == pytest.approx(brier_score_loss(y, p, sample_weight=w))
    assert m.auroc(p, y, w) == pytest.approx(roc_auc_score(y, p, sample_weight=w))
    assert m.log_score(p, y, w) == pytest.approx(log_loss(y, m.clipped(p), sample_weight=w))


def brute_aurc(p: Floats, y: Floats, rng: np.random.Generator, shuffles: int) -> float:
    areas = []
    for _ in range(shuffles):
        order = np.lexsort((rng.random(p.size), -p))
        areas.append((np.cumsum(1 - y[order]) / np.arange(1, p.size + 1)).mean())
    return float(np.mean(areas))


def test_area_with_ties_is_the_mean_over_their_orders() -> None:
    p, y, _ = random_forecasts(30, 4, digits=1)
    assert m.aurc(p, y, ones(p)) == pytest.approx(brute_aurc(p, y, np.random.default_rng(0), 4000), abs=0.003)


# Laws


@settings(max_examples=60)
@given(forecasts())
def test_bounds(data: tuple[Floats, Floats, Floats]) -> None:
    p, y, w = data
    for value in (m.brier(p, y, w), m.aurc(p, y, w), m.ece(p, y, w, m.equal_width(p)), m.auroc(p, y, w)):
        assert np.isnan(value) or -1e-12 <= value <= 1 + 1e-12
    assert m.log_score(p, y, w) >= 0
    parts = m.brier_parts(p, y, w)
    assert all(-1e-12 <= parts[name] <= 1 for name in ("reliability", "resolution", "uncertainty"))
    assert m.aurc(y, y, w) <= m.aurc(p, y, w) + 1e-12, "no ranking beats the perfect one"


@settings(max_examples=60)
@given(forecasts())
def test_the_decomposition_adds_up(data: tuple[Floats, Floats, Floats]) -> None:
    parts = m.brier_parts(*data)
    total = parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["within"]
    assert total == pytest.approx(float(m.brier(*data)), abs=1e-12)


@settings(max_examples=60)
@given(forecasts())
def test_order_does_not_matter(data: tuple[Floats, Floats, Floats]) -> None:
    p, y, w = data
    order = np.random.default_rng(p.size).permutation(p.size)
    for metric in METRICS:
        assert metric(p[order], y[order], w[order]) == pytest.approx(
            float(metric(p, y, w)), rel=1e-6, abs=1e-9, nan_ok=True
        )


@settings(max_examples=60)
@given(forecasts())
def test_a_weight_is_a_repetition(data: tuple[Floats, Floats, Floats]) -> None:
    p, y, w = data
    times = w.astype(int)
    long_p, long_y = np.repeat(p, times), np.repeat(y, times)
    for metric in METRICS:
        assert metric(long_p, long_y, ones(long_p)) == pytest.approx(
            float(metric(p, y, w)), rel=1e-6, abs=1e-9, nan_ok=True
        )


@settings(max_examples=60)
@given(forecasts())
def test_many_resamples_at_once_are_each_one_alone(data: tuple[Floats, Floats, Floats]) -> None:
    p, y, w = data
    rows = np.stack([w, ones(p), w[::-1]])
    for metric in METRICS:
        together = metric(p, y, rows)
        assert together.shape == (3,)
        alone = [float(metric(p, y, row)) for row in rows]
        assert together.tolist() == pytest.approx(alone, rel=1e-6, abs=1e-9, nan_ok=True)


@settings(max_examples=60)
@given(forecasts())
def test_ranking_depends_only_on_the_order(data: tuple[Floats, Floats, Floats]) -> None:
    p, y, w = data
    distinct, place = np.unique(p, return_inverse=True)
    stretched = np.cumsum(1.0 + np.arange(distinct.size) ** 2)[place] - 50
    assert m.auroc(stretched, y, w) == pytest.approx(float(m.auroc(p, y, w)), nan_ok=True)
    assert m.aurc(stretched, y, w) == pytest.approx(float(m.aurc(p, y, w)), nan_ok=True)
    assert m.auroc(-stretched, y, w) == pytest.approx(1 - float(m.auroc(p, y, w)), nan_ok=True)


@settings(max_examples=25)
@given(forecasts())
def test_expected_ece_is_the_mean_of_simulated_eces(data: tuple[Floats, Floats, Floats]) -> None:
    p = data[0]
    bins = m.equal_mass(p)
    rng = np.random.default_rng(5)
    simulated = [float(m.ece(p, (rng.random(p.size) < p).astype(np.float64), ones(p), bins)) for _ in range(400)]
    expected = m.ece_expected(p, bins, np.random.default_rng(6), 400)
    spread = float(np.std(simulated))
    assert expected.mean() == pytest.approx(np.mean(simulated), abs=1e-9 + 6 * spread / math.sqrt(200))


# Data with nothing to tell


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("forecast", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("right", [0.0, 1.0])
def test_degenerate_forecasts_give_nan_and_never_raise(n: int, forecast: float, right: float) -> None:
    p, y, w = np.full(n, forecast), np.full(n, right), np.ones(n)
    assert np.isnan(m.auroc(p, y, w))
    assert np.isnan(m.brier(p, y, w)) == (n == 0)
    assert np.isnan(m.aurc(p, y, w)) == (n == 0)
    assert np.isnan(m.risk_coverage(p, y, w, floats(0.5, 1))[0]).all() == (n == 0)
    m.log_score(p, y, w)
    m.brier_parts(p, y, w)
    m.ece(p, y, w, m.equal_mass(p))


# Perfect forecasts


def test_the_reliability_of_perfect_forecasts_is_almost_zero() -> None:
    rng = np.random.default_rng(7)
    p = rng.beta(1, 1, 100_000)
    y = (rng.random(p.size) < p).astype(np.float64)
    assert m.brier_parts(p, y, ones(p))["reliability"] < 1e-3


def test_the_ece_of_perfect_forecasts_lies_in_its_band_19_times_of_20() -> None:
    rng = np.random.default_rng(8)
    within = 0
    for _ in range(400):
        p = rng.beta(2, 1, 150)
        bins = m.equal_width(p)
        low, high = np.quantile(m.ece_expected(p, bins, rng, 400), [0.025, 0.975])
        within += bool(low <= m.ece(p, (rng.random(p.size) < p).astype(np.float64), ones(p), bins) <= high)
    assert 0.92 <= within / 400 <= 0.98


# Intervals


def measure(p: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    return {"brier": m.brier(p, y, w), "auroc": m.auroc(p, y, w), **m.brier_parts(p, y, w)}


@pytest.mark.slow
def test_intervals_cover_the_truth_when_cases_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 cases, three repeats that always agree: as 180 independent ones their intervals would be far too narrow."""
    monkeypatch.setattr(m, "resamples", lambda n: 200)
    p = np.tile([0.2, 0.5, 0.8], 20)  # the Brier score of calibrated forecasts is the mean of p(1 - p)
    truth = float((p * (1 - p)).mean())
    rng = np.random.default_rng(9)
    cases = [f"case {i:02}" for i in range(60)] * 3
    covered = clearly_reliable = 0
    for _ in range(300):
        y = np.tile((rng.random(60) < p).astype(np.float64), 3)
        found = estimates(Forecasts.of(np.tile(p, 3), y, cases), measure, rng)
        brier, reliability = found["brier"], found["reliability"]
        assert brier.low is not None
        assert brier.high is not None
        assert reliability.low is not None
        covered += brier.low <= truth <= brier.high
        clearly_reliable += reliability.low > 0
    assert 0.90 <= covered / 300 <= 0.98
    assert clearly_reliable / 300 <= 0.06, "perfect forecasts have a reliability of 0"


def test_what_cannot_have_an_interval_says_why() -> None:
    rng = np.random.default_rng(0)
    two = estimates(Forecasts.of([0.2, 0.8], [0, 1], ["a", "b"]), measure, rng)["brier"]
    assert (two.low, two.note) == (None, "no interval: fewer than three cases")
    same = estimates(Forecasts.of([0.8] * 5, [1] * 5, list("abcde")), measure, rng)
    assert same["brier"].value == pytest.approx(0.04)
    assert "all cases agree" in str(same["brier"].note)
    assert (same["auroc"].value, same["auroc"].note) == (None, "needs right and wrong diagnoses")
    rare = estimates(Forecasts.of(np.linspace(0, 1, 9), [0] + [1] * 8, list("abcdefghi")), measure, rng)["auroc"]
    assert rare.value == 1
    assert rare.low is None
    assert "resamples" in str(rare.note)
    nothing = estimates(Forecasts.of([], [], []), measure, rng)["brier"]
    assert (nothing.value, nothing.n, nothing.note) == (None, 0, "no forecasts")


def test_intervals_from_few_cases_are_widened() -> None:
    """Five cases: the percentiles of the resamples, stretched around the value by t(4) / 1.96 and sqrt(5/4)."""
    data = Forecasts.of([0.1, 0.3, 0.5, 0.7, 0.9], [0, 1, 0, 1, 1], list("abcde"))
    found = estimates(data, measure, np.random.default_rng(1))["brier"]
    drawn = np.concatenate(
        [
            m.brier(data.p, data.y, weights)
            for weights in m.bootstrap_weights(data.case, 5, np.random.default_rng(1), m.resamples(5))
        ]
    )
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.value is not None
    wider = 2.776 / 1.96 * math.sqrt(5 / 4)
    assert found.low == pytest.approx(max(0, found.value + (low - found.value) * wider), abs=0.01)
    assert found.high == pytest.approx(found.value + (high - found.value) * wider, abs=0.01)
    assert found.high > high + 0.05, "wider than the plain percentiles"


def test_resamples_become_fewer_for_many_forecasts() -> None:
    assert [m.resamples(n) for n in (1, 5_000, 10_000, 100_000)] == [1000, 1000, 500, 200]


def test_a_resample_takes_whole_cases() -> None:
    case = np.array([0, 1, 1, 2, 2, 2])
    for weights in m.bootstrap_weights(case, 3, np.random.default_rng(0), 50):
        assert (weights[:, 1] == weights[:, 2]).all()
        assert (weights[:, 3] == weights[:, 5]).all()
        assert (weights[:, [0, 1, 3]].sum(axis=1) == 3).all()
