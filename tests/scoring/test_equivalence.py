"""Differences and equivalence of paired means and shares."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from agentclinic.scoring.equivalence import PairedCase, of_means, of_shares, t_inside, t_quantile


@pytest.mark.parametrize("df", [1, 2, 3, 4, 9, 64, 501])
def test_students_t_is_exact(df: int) -> None:
    for t in (0.1, 1.0, 2.5, 8.0):
        assert t_inside(t, df) == pytest.approx(1 - 2 * stats.t.sf(t, df), abs=1e-12)
    assert t_quantile(0.95, df) == pytest.approx(stats.t.ppf(0.95, df), rel=1e-9)


def test_a_paired_mean_by_hand() -> None:
    """Differences -1, -2, -3, 0 and a mean of -1.5: Σr² = 5. No r is above 1.5, but cases differ by √5: 3 · 5 more."""
    cases = [PairedCase(str(i), before, after) for i, (before, after) in enumerate([(2, 1), (4, 2), (6, 3), (8, 8)])]
    found = of_means(cases)
    error = math.sqrt(4 / 3 * (5 + 3 * 5)) / 4
    assert found.difference.value == -1.5
    assert found.difference.high == pytest.approx(-1.5 + stats.t.ppf(0.975, 3) * error)
    assert found.low == pytest.approx(-1.5 - stats.t.ppf(0.95, 3) * error)
    assert found.p == pytest.approx(2 * stats.t.sf(1.5 / error, 3))


def test_cases_that_agree_entirely_show_equivalence_only_if_there_are_enough() -> None:
    few, many = ([PairedCase(str(i), 4 + i % 3, 4 + i % 3) for i in range(n)] for n in (3, 60))
    assert not of_means(few).within(1.0)
    assert of_means(many).within(1.0)
    assert of_means(many).p == 1.0
    assert not of_shares([PairedCase(str(i), 1, 1) for i in range(14)]).within(0.05)
    assert of_shares([PairedCase(str(i), 1, 1) for i in range(60)]).within(0.05)


def test_without_variation_a_case_may_lose_all_it_has() -> None:
    """All cases at 4 tests in both versions: the three unseen clusters are off by 4."""
    found = of_means([PairedCase(str(i), 4, 4) for i in range(16)])
    assert found.high == pytest.approx(stats.t.ppf(0.95, 15) * math.sqrt(16 / 15 * 3 * 16) / 16)
    nothing = of_means([PairedCase(str(i), 0, 0) for i in range(16)])
    assert not nothing.within(1.0)
    assert nothing.p == 1.0


def test_cases_that_belong_together_count_as_one_and_two_are_too_few() -> None:
    alone = of_means([PairedCase(str(i), i % 5, i % 5 + i % 2) for i in range(20)])
    twins = of_means([PairedCase(str(i // 2), i % 5, i % 5 + (i // 2) % 2) for i in range(20)])
    assert twins.high - twins.low > alone.high - alone.low
    two = of_means([PairedCase("a", 1, 2), PairedCase("b", 1, 2)])
    assert (two.p, two.difference.low) == (None, None)
    assert "fewer than 3" in (two.difference.note or "")
    assert not two.within(100)


def test_the_intervals_of_shares_are_tangos() -> None:
    """8 of 40 lost, 2 gained: the 90% interval is inside the 95% one, and p is that of McNemar without correction."""
    cases = [PairedCase(str(i), float(i < 8), float(i >= 38)) for i in range(40)]
    found = of_shares(cases)
    assert found.difference.low is not None
    assert found.difference.high is not None
    assert found.difference.low < found.low < -0.15 < found.high < found.difference.high
    assert found.p == pytest.approx(2 * stats.norm.sf(6 / math.sqrt(10)))
