"""Cohen's and Fleiss' kappa, against hand-worked values and other implementations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from agentclinic.scoring.judges.agreement import cohen_kappa, fleiss_estimate, fleiss_kappa, kappa_estimate
from agentclinic.scoring.stats import Estimate

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def cells_of(pairs: Sequence[tuple[bool, bool]]) -> list[list[float]]:
    order = [(True, True), (True, False), (False, True), (False, False)]
    return [[float(pair == kind) for kind in order] for pair in pairs]


def kappa_of(pairs: Sequence[tuple[bool, bool]]) -> float:
    return float(cohen_kappa(np.sum(cells_of(pairs), axis=0)))


def estimate_of(pairs: Sequence[tuple[bool, bool]], seed: int = 0) -> Estimate:
    return kappa_estimate(cells_of(pairs), [str(place) for place in range(len(pairs))], seed)


class TestCohenKappa:
    def test_by_hand(self) -> None:
        # po = 35/50 = 0.7; yes 25/50 and 30/50: pe = 0.5·0.6 + 0.5·0.4 = 0.5; (0.7 - 0.5)/(1 - 0.5) = 0.4.
        assert float(cohen_kappa(np.array([20.0, 5.0, 10.0, 15.0]))) == pytest.approx(0.4)

    def test_of_judges_who_always_differ_is_minus_one(self) -> None:
        assert float(cohen_kappa(np.array([0.0, 5.0, 5.0, 0.0]))) == pytest.approx(-1)

    def test_is_zero_if_one_judge_always_says_the_same(self) -> None:
        assert float(cohen_kappa(np.array([8.0, 4.0, 0.0, 0.0]))) == pytest.approx(0)

    @given(PAIRS)
    def test_agrees_with_scikit_learn(self, pairs: list[tuple[bool, bool]]) -> None:
        ours = kappa_of(pairs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cohen_kappa_score([a for a, _ in pairs], [b for _, b in pairs], labels=[True, False])
        if math.isnan(ours):
            assert len(set(pairs)) == 1
            assert pairs[0][0] is pairs[0][1]
        else:
            assert ours == pytest.approx(theirs)

    @given(PAIRS, st.randoms())
    def test_is_symmetric_bounded_and_blind_to_order_and_naming(self, pairs: list[tuple[bool, bool]], rng: Any) -> None:
        kappa = kappa_of(pairs)
        mixed = pairs[:]
        rng.shuffle(mixed)
        others = [
            kappa_of(mixed),
            kappa_of([(b, a) for a, b in pairs]),
            kappa_of([(not a, not b) for a, b in pairs]),
        ]
        assert others == pytest.approx([kappa] * 3, nan_ok=True)
        assert math.isnan(kappa) or -1 - 1e-9 <= kappa <= 1 + 1e-9

    @given(st.lists(st.booleans(), min_size=2, max_size=40).filter(lambda v: len(set(v)) == 2))
    def test_of_identical_judges_is_one(self, verdicts: list[bool]) -> None:
        assert kappa_of([(v, v) for v in verdicts]) == pytest.approx(1)

    def test_of_one_class_only_is_null_with_a_note(self) -> None:
        estimate = estimate_of([(True, True)] * 10)
        assert estimate.value is None
        assert estimate.n == 10
        assert "same verdict throughout" in (estimate.note or "")

    def test_of_nothing_is_null_with_a_note(self) -> None:
        assert estimate_of([]) == Estimate(value=None, note="no unit was judged by both")

    def test_of_very_few_cases_has_no_interval(self) -> None:
        estimate = estimate_of([(True, True), (False, False), (True, False)])
        assert estimate.value == pytest.approx(0.4)
        assert estimate.low is None
        assert "fewer than 5" in (estimate.note or "")

    def test_of_judges_who_never_differed_is_not_certainly_one(self) -> None:
        estimate = estimate_of([(True, True)] * 10 + [(False, False)] * 10)
        assert estimate.value == estimate.high == 1
        assert estimate.low is not None
        assert 0.6 < estimate.low < 0.9

    def test_interval_is_that_of_scipys_bootstrap_in_a_large_sample(self) -> None:
        rng = np.random.default_rng(5)
        pairs = [(True, True)] * 200 + [(True, False)] * 30 + [(False, True)] * 20 + [(False, False)] * 150
        table = np.array(cells_of(pairs))
        theirs = bootstrap(
            (np.arange(len(pairs)),),
            lambda drawn: float(cohen_kappa(table[drawn].sum(axis=0))),
            vectorized=False,
            n_resamples=2000,
            method="percentile",
            rng=rng,
        ).confidence_interval
        ours = estimate_of(pairs)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.012)

    def test_interval_is_the_same_for_the_same_seed_and_any_order(self) -> None:
        pairs = [(True, True)] * 30 + [(True, False)] * 5 + [(False, False)] * 20
        assert estimate_of(pairs, seed=3) == estimate_of(pairs[::-1], seed=3)
        assert estimate_of(pairs, seed=3) != estimate_of(pairs, seed=4)

    def test_repeats_of_a_case_do_not_count_as_cases(self) -> None:
        pairs = [(True, True)] * 20 + [(True, False)] * 6 + [(False, False)] * 14
        once = estimate_of(pairs)
        cases = [str(place) for place in range(len(pairs))]
        thrice = kappa_estimate(cells_of(pairs * 3), cases * 3)
        apart = estimate_of(pairs * 3)
        assert once.low is not None
        assert once.high is not None
        assert thrice.value == pytest.approx(once.value)
        # The prior weighs a third; else the width is that of the cases, not of three times as many.
        assert width(thrice) == pytest.approx(width(once), rel=0.15)
        assert width(apart) < 0.7 * width(thrice)


def width(estimate: Estimate) -> float:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.high - estimate.low


class TestFleissKappa:
    def test_by_hand(self) -> None:
        # Three judges; 4 units with 3 yes, 2 with 2, 1 with 1, 3 with none. Pairs that agree: 1, ⅓, ⅓, 1:
        # po = (4 + ⅔ + ⅓ + 3)/10 = 0.8. Yes 12 + 4 + 1 = 17 of 30: pe = (289 + 169)/900.
        expected = (0.8 - 458 / 900) / (1 - 458 / 900)
        assert float(fleiss_kappa(np.array([3.0, 1.0, 2.0, 4.0]))) == pytest.approx(expected)

    @given(
        st.integers(2, 6).flatmap(lambda k: st.lists(st.integers(0, k), min_size=2, max_size=50).map(lambda y: (k, y)))
    )
    def test_agrees_with_statsmodels_and_is_bounded(self, given_: tuple[int, list[int]]) -> None:
        k, yes = given_
        ours = float(fleiss_kappa(np.bincount(yes, minlength=k + 1).astype(float)))
        if sum(yes) in (0, k * len(yes)):
            assert math.isnan(ours)
        else:
            assert ours == pytest.approx(statsmodels_fleiss(np.array([[r, k - r] for r in yes])))
            assert -1 - 1e-9 <= ours <= 1 + 1e-9

    def test_of_identical_judges_is_one_and_of_one_class_null(self) -> None:
        cases = [str(place) for place in range(12)]
        same = fleiss_estimate([3, 0] * 6, 3, cases)
        assert same.value == same.high == 1
        assert same.low is not None
        assert 0.4 < same.low < 1
        assert fleiss_estimate([3] * 12, 3, cases).value is None
        assert "chance" in (fleiss_estimate([3] * 12, 3, cases).note or "")
        assert fleiss_estimate([], 3, []).value is None
        assert fleiss_estimate([3, 2], 3, ["a", "b"]).low is None
