"""Accuracy corrected for the judge's errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from agentclinic.scoring.judges.correction import JudgedUnit, corrected_accuracy, rogan_gladen


class TestRoganGladen:
    def test_by_hand(self) -> None:
        # (0.55 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.35 / 0.7 = 0.5
        assert rogan(0.55, 0.9, 0.8) == pytest.approx(0.5)

    @given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
    def test_undoes_what_a_judge_does_to_a_share(self, true: float, sensitivity: float, specificity: float) -> None:
        apparent = true * sensitivity + (1 - true) * (1 - specificity)
        corrected = rogan(apparent, sensitivity, specificity)
        if sensitivity + specificity > 1.01:
            assert corrected == pytest.approx(true, abs=1e-9)
        if sensitivity + specificity <= 1:
            assert math.isnan(corrected)

    def test_stays_a_share(self) -> None:
        assert rogan(0.05, 0.9, 0.9) == 0
        assert rogan(0.99, 0.9, 0.9) == 1

    def test_a_perfect_judge_needs_no_correction(self) -> None:
        assert rogan(0.37, 1, 1) == pytest.approx(0.37)


def rogan(apparent: float, sensitivity: float, specificity: float) -> float:
    return float(rogan_gladen(np.array(apparent), np.array(sensitivity), np.array(specificity)))


def simulated(
    rng: np.random.Generator, cases: int, labelled: int, share: float, sensitivity: float, specificity: float
) -> list[JudgedUnit]:
    truths = rng.random(cases) < share
    verdicts = rng.random(cases) < np.where(truths, sensitivity, 1 - specificity)
    return [
        JudgedUnit(str(case), bool(verdict), bool(truth) if case < labelled else None)
        for case, (truth, verdict) in enumerate(zip(truths, verdicts, strict=True))
    ]


class TestCorrectedAccuracy:
    def test_by_hand(self) -> None:
        # Labelled: 9 of 10 right ones called right, 8 of 10 wrong ones called wrong. Of 100 judged 55 are called right:
        # (0.55 + 0.8 - 1) / 0.7 = 0.5 of the judged; 25 more units had no diagnosis: 100/125 · 0.5 = 0.4.
        units = [
            *[(True, True)] * 9, (False, True), *[(False, False)] * 8, *[(True, False)] * 2,
            *[(True, None)] * 44, *[(False, None)] * 36, *[(None, None)] * 25,
        ]  # fmt: skip
        estimate = corrected_accuracy([JudgedUnit(str(i), *unit) for i, unit in enumerate(units)])
        assert estimate.value == pytest.approx(0.4)
        assert estimate.n == 125
        assert estimate.note is None
        assert estimate.low is not None
        assert estimate.high is not None
        assert 0 < estimate.low < 0.3
        assert 0.45 < estimate.high < 0.8

    def test_is_the_labels_own_share_when_all_is_labelled(self) -> None:
        units = simulated(np.random.default_rng(2), 60, 60, 0.6, 0.8, 0.7)
        assert corrected_accuracy(units).value == pytest.approx(sum(u.label is True for u in units) / 60)

    def test_interval_of_a_perfect_judge_on_a_labelled_run_is_that_of_the_share(self) -> None:
        units = [JudgedUnit(str(i), i < 180, i < 180) for i in range(300)]
        estimate = corrected_accuracy(units)
        low, high = beta.ppf([0.025, 0.975], 180.5, 120.5)
        assert estimate.value == pytest.approx(0.6)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.012)

    def test_a_judge_no_better_than_a_coin_gives_null_and_says_why(self) -> None:
        units = [JudgedUnit(str(i), i % 2 == 0, i % 4 < 2) for i in range(40)]
        estimate = corrected_accuracy(units)
        assert estimate.value is estimate.low is None
        assert "1.00, no better than a coin" in (estimate.note or "")

    def test_a_judge_hardly_better_than_a_coin_leaves_the_accuracy_open(self) -> None:
        units = simulated(np.random.default_rng(0), 100, 30, 0.5, 0.6, 0.55)
        estimate = corrected_accuracy(units)
        assert estimate.value is not None
        assert (estimate.high or 0) - (estimate.low or 0) > 0.9

    def test_too_few_labels_give_null_and_say_how_many(self) -> None:
        units = [JudgedUnit(str(i), i < 30, i < 30 if i < 34 else None) for i in range(60)]
        estimate = corrected_accuracy(units)
        assert estimate.value is None
        assert "30 cases with one labeled right, 4 with one labeled wrong" in (estimate.note or "")

    def test_many_labels_of_few_cases_are_too_few(self) -> None:
        units = [JudgedUnit(str(i % 4), i % 2 == 0, i % 2 == 0) for i in range(80)]
        assert corrected_accuracy(units).value is None

    def test_nothing_judged_gives_null(self) -> None:
        assert corrected_accuracy([JudgedUnit("a", None)]).value is None

    def test_says_when_it_was_clipped(self) -> None:
        labelled = [(True, True)] * 10 + [(True, False)] * 4 + [(False, False)] * 6
        units = [*labelled, *[(False, None)] * 100]
        estimate = corrected_accuracy([JudgedUnit(str(i), *unit) for i, unit in enumerate(units)])
        assert estimate.value == 0
        assert "clipped" in (estimate.note or "")

    @pytest.mark.parametrize(
        ("cases", "labelled", "share", "sensitivity", "specificity"),
        [(200, 80, 0.6, 0.9, 0.85), (200, 100, 0.5, 1.0, 1.0)],
    )
    def test_interval_covers_the_truth_in_about_95_of_100_runs(
        self, cases: int, labelled: int, share: float, sensitivity: float, specificity: float
    ) -> None:
        rng = np.random.default_rng(20261115)
        covered = 0
        for repetition in range(300):
            estimate = corrected_accuracy(simulated(rng, cases, labelled, share, sensitivity, specificity), repetition)
            assert estimate.low is not None
            assert estimate.high is not None
            covered += estimate.low <= share <= estimate.high
        assert 0.92 <= covered / 300 <= 0.985
