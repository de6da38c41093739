"""Accuracy corrected for the judge's errors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.stats import beta

from agentclinic.scoring.judges.correction import (
    JudgedUnit,
    correct,
    corrected_difference,
    labels_to_halve,
)
from agentclinic.scoring.judges.panel import UNREAD
from agentclinic.scoring.stats import Estimate


def simulated(
    rng: np.random.Generator, cases: int, labeled: int, share: float, sensitivity: float, specificity: float
) -> list[JudgedUnit]:
    truths = rng.random(cases) < share
    verdicts = rng.random(cases) < np.where(truths, sensitivity, 1 - specificity)
    return [
        JudgedUnit(str(case), bool(verdict), float(truth) if case < labeled else None)
        for case, (truth, verdict) in enumerate(zip(truths, verdicts, strict=True))
    ]


class TestCorrectedAccuracy:
    def test_by_hand(self) -> None:
        # Of 100 judged 55 are called right. Labeled: 9 of 11 called right are, 1 of 9 called wrong is.
        # 55 · 9/11 + 45 · 1/9 = 50 of 125: 25 more units had no diagnosis.
        units = [
            *[(True, 1.0)] * 9, (False, 1.0), *[(False, 0.0)] * 8, *[(True, 0.0)] * 2,
            *[(True, None)] * 44, *[(False, None)] * 36, *[(None, None)] * 25,
        ]  # fmt: skip
        estimate = correct([JudgedUnit(str(i), *unit) for i, unit in enumerate(units)]).powered
        assert estimate.value == pytest.approx(0.4)
        assert estimate.n == 125
        assert estimate.low is not None
        assert estimate.high is not None
        assert 0 < estimate.low < 0.3
        assert 0.45 < estimate.high < 0.8

    def test_is_the_labels_own_share_when_all_is_labeled(self) -> None:
        units = simulated(np.random.default_rng(2), 60, 60, 0.6, 0.8, 0.7)
        share = sum(u.label == 1 for u in units) / 60
        assert correct(units).powered.value == pytest.approx(share)

    def test_interval_of_a_perfect_judge_on_a_labeled_run_is_that_of_the_share(self) -> None:
        units = [JudgedUnit(str(i), i < 180, float(i < 180)) for i in range(300)]
        found = correct(units)
        low, high = beta.ppf([0.025, 0.975], 180.5, 120.5)
        assert found.powered.value == pytest.approx(0.6)
        assert (found.powered.low, found.powered.high) == pytest.approx((low, high), abs=0.012)
        assert "no error among the labels: up to 1% of the verdicts may still be wrong" in (found.powered.note or "")
        assert found.kappa.value == 1

    def test_with_a_judge_no_better_than_a_coin_the_labels_alone_count(self) -> None:
        coin = correct([JudgedUnit(str(i), i % 2 == 0, float(i % 4 < 2)) for i in range(40)])
        assert coin.powered.value == pytest.approx(0.5)

    def test_what_cannot_be_estimated_is_null_and_says_why(self) -> None:
        few = correct([JudgedUnit(str(i), i < 30, float(i < 30) if i < 34 else None) for i in range(60)])
        assert few.powered.value is None
        assert "too few labels: 4 of the 30 cases that the judge calls wrong, 5 are needed" in (few.powered.note or "")
        one_kind = correct([JudgedUnit(str(i), i < 30, 1.0 if i % 2 else None) for i in range(60)])
        assert one_kind.credited.note == "nothing is labeled wrong"
        assert one_kind.powered.low is not None
        assert 0.7 < one_kind.powered.low < 0.97, "all labels right: still not certain"
        gap = correct([JudgedUnit(str(i), True, 1.0 if i < 30 else None, "a" if i < 50 else "b") for i in range(60)])
        assert gap.powered.note == "no label yet in b (10 cases)"
        assert correct([JudgedUnit("a", None)]).powered.note == "nothing was judged"
        rough = correct(simulated(np.random.default_rng(0), 100, 20, 0.5, 0.9, 0.9)).powered.note or ""
        assert "20 labeled cases: below 40 the interval is rough" in rough

    def test_labels_of_a_stratum_stand_for_all_of_it(self) -> None:
        # 90 in one stratum, 3 of 10 labels right; 10 in the other, 8 of 10 right: 0.9 · 0.3 + 0.1 · 0.8 = 0.35.
        big = [JudgedUnit(f"a{i}", False, float(i < 3) if i < 10 else None, "agreed") for i in range(90)]
        small = [JudgedUnit(f"b{i}", False, float(i < 8), "split") for i in range(10)]
        found = correct([*big, *small])
        assert found.powered.value == pytest.approx(0.35)
        assert correct([unit._replace(stratum="the run") for unit in (*big, *small)]).powered.value == 11 / 20

    def test_what_the_judge_could_not_read_is_a_class_of_its_own(self) -> None:
        # 60 yes, 8 of 10 labels right; 20 no, 1 of 10; 20 unread, 3 of 5: (60 · 0.8 + 20 · 0.1 + 20 · 0.6) / 100.
        yes = [JudgedUnit(f"y{i}", True, float(i < 8) if i < 10 else None, "judged right") for i in range(60)]
        no = [JudgedUnit(f"n{i}", False, float(i < 1) if i < 10 else None, "judged wrong") for i in range(20)]
        unread = [JudgedUnit(f"u{i}", UNREAD, float(i < 3) if i < 5 else None, "not readable") for i in range(20)]
        found = correct([*yes, *no, *unread])
        assert found.powered.value == pytest.approx(0.62)
        assert "25 labeled cases" in (found.powered.note or "")
        alone = correct([*yes, *no])
        for name in ("missed", "credited", "kappa"):
            ours, theirs = getattr(found, name), getattr(alone, name)
            assert ours.value == pytest.approx(theirs.value), "of what it decided"
        bare = correct([*yes, *no, *(unit._replace(label=None) for unit in unread)])
        assert bare.powered.value is None
        assert bare.powered.note == "no label yet in not readable (20 cases)"
        assert bare.missed.value == pytest.approx(alone.missed.value), "known without labels of the unread"
        few = correct([*(unit._replace(stratum="the run") for unit in (*yes, *no, *unread[1:]))])
        assert few.powered.note == "too few labels: 4 of the 19 cases that the judge could not read, 5 are needed"
        assert correct([*unread]).powered.value == pytest.approx(0.6)
        assert corrected_difference([*yes, *no], [*yes, *no, *unread]).estimate.value is not None
        short = corrected_difference([*yes, *no], [*yes, *no, *(unit._replace(label=None) for unit in unread)])
        assert short.estimate.note == "the other run: no label yet in not readable (20 cases)"

    def test_without_unread_diagnoses_nothing_is_drawn_for_them(self) -> None:
        found = correct(simulated(np.random.default_rng(3), 80, 50, 0.6, 0.9, 0.8)).powered
        before = (0.5660098522167487, 0.44101682122591135, 0.6866355129708908)
        assert (found.value, found.low, found.high) == pytest.approx(before, rel=1e-12), "as with two classes"

    def test_labels_of_the_unread_do_not_lower_what_may_still_be_wrong(self) -> None:
        units = [JudgedUnit(str(i), i < 10, float(i < 10)) for i in range(20)]
        unread = [JudgedUnit(f"u{i}", UNREAD, 1.0) for i in range(60)]
        note = "no error among the labels: up to 17% of the verdicts may still be wrong"
        assert all(note in (correct(each).powered.note or "") for each in (units, [*units, *unread]))

    def test_repeats_of_a_case_do_not_count_as_cases(self) -> None:
        units = simulated(np.random.default_rng(3), 80, 50, 0.6, 0.9, 0.8)
        once, thrice = correct(units).powered, correct(units * 3).powered
        assert thrice.value == pytest.approx(once.value)
        assert width(thrice) == pytest.approx(width(once), rel=0.1)

    @pytest.mark.slow
    def test_interval_covers_the_truth_in_about_95_of_100_runs(self) -> None:
        rng = np.random.default_rng(20261115)
        covered = 0
        for repetition in range(150):
            found = correct(simulated(rng, 200, 80, 0.6, 0.9, 0.85), repetition).powered
            covered += (found.low or 0) <= 0.6 <= (found.high or 0)
        assert 0.91 * 150 <= covered < 150, "benchmarks/correction.py has more"


class TestLabelsToHalve:
    def test_as_many_labels_as_are_said_to_halve_the_interval_do(self) -> None:
        def labeled(number: int) -> list[JudgedUnit]:
            return simulated(np.random.default_rng(5), 2000, number, 0.5, 0.8, 0.8)

        before = correct(labeled(100)).powered
        needed = labels_to_halve(labeled(100), before)
        assert needed is not None
        assert needed.more is not None
        after = correct(labeled(100 + needed.more)).powered
        assert width(after) == pytest.approx(width(before) / 2, rel=0.12)
        assert needed.half_width == pytest.approx(1.96 * math.sqrt(0.25 / 2000), rel=0.2)

    def test_the_number_of_cases_limits_what_labels_can_do(self) -> None:
        units = simulated(np.random.default_rng(5), 100, 60, 0.5, 0.9, 0.9)
        needed = labels_to_halve(units, correct(units).powered)
        assert needed is not None
        assert needed.more is None
        assert needed.half_width == pytest.approx(1.96 * math.sqrt(0.25 / 100), rel=0.2)


class TestCorrectedDifference:
    def test_is_the_difference_of_the_corrected_accuracies_and_narrower_if_paired(self) -> None:
        rng = np.random.default_rng(1)
        before = simulated(rng, 200, 200, 0.5, 0.8, 0.9)
        after = [unit._replace(label=1.0) if i % 5 == 0 else unit for i, unit in enumerate(before)]
        shares = [correct(units).powered.value or 0 for units in (before, after)]
        found = corrected_difference(before, after)
        assert found.estimate.value == pytest.approx(shares[1] - shares[0])
        apart = corrected_difference(before, [unit._replace(case=f"other{unit.case}") for unit in after])
        assert width(found.estimate) < 0.7 * width(apart.estimate)
        assert found.p is not None
        assert found.p < 0.01 < corrected_difference(before, before).p  # type: ignore[operator]

    def test_a_run_without_enough_labels_is_named(self) -> None:
        units = simulated(np.random.default_rng(1), 100, 50, 0.5, 0.8, 0.9)
        bare = [unit._replace(label=None) for unit in units]
        assert (corrected_difference(units, bare).estimate.note or "").startswith("the other run: no label yet")
        assert (corrected_difference(bare, units).estimate.note or "").startswith("the baseline: no label yet")


@pytest.mark.slow  # importing the library takes seconds: it compiles
def test_agrees_with_ppi_python_where_that_applies() -> None:
    with warnings.catch_warnings():  # it silences all warnings when it is imported
        from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    units = simulated(np.random.default_rng(7), 3000, 400, 0.6, 0.8, 0.9)
    said = np.array([float(unit.verdict is True) for unit in units])
    truth = np.array([unit.label for unit in units[:400]], dtype=float)
    ours = correct(units).powered
    data = (truth, said[:400], said[400:])
    assert ours.value == pytest.approx(float(ppi_mean_pointestimate(*data)[0]), abs=0.002)
    low, high = (float(limit[0]) for limit in ppi_mean_ci(*data, alpha=0.05))
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.006)
    # With the tuning that is best for the labeled sample, the estimates are the same number.
    slope = np.cov(truth, said[:400])[0, 1] / said[:400].var(ddof=1)
    best = float(ppi_mean_pointestimate(*data, lam=slope * 2600 / 3000)[0])
    assert ours.value == pytest.approx(best, abs=1e-9)


def width(estimate: Estimate) -> float:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.high - estimate.low
