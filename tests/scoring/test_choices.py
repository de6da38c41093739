"""Precision, recall and F1 of chosen facts, and when two choosers differ by more than chance."""

from __future__ import annotations

import pytest

from agentclinic.scoring.choices import Counts, Marked, added, count, f1_difference


def test_facts_are_right_wrong_or_missed() -> None:
    marked = Marked(frozenset({"a", "b", "c"}))

    assert count(["a", "b", "x"], marked) == Counts(right=2, wrong=1, missed=1)


def test_an_equivalent_is_right_if_told_and_no_miss_if_left_out() -> None:
    marked = Marked(frozenset(), frozenset({"e"}))

    assert count(["e"], marked) == Counts(right=1)
    assert count([], marked) == Counts()


def test_the_figures_are_as_worked_by_hand() -> None:
    whole = added([Counts(2, 1, 1), Counts(1, 0, 2)])

    assert whole == Counts(3, 1, 3)
    assert whole.precision == 3 / 4
    assert whole.recall == 3 / 6
    assert whole.f1 == pytest.approx(2 * (3 / 4) * (1 / 2) / (3 / 4 + 1 / 2))


def test_nothing_told_and_nothing_asked_for_has_no_figures() -> None:
    assert (Counts().precision, Counts().recall, Counts().f1) == (None, None, None)
    assert f1_difference([Counts()] * 5, [Counts()] * 5).value is None
    assert f1_difference([], []).value is None


def test_equal_choosers_differ_by_nothing() -> None:
    rows = [Counts(2, 1, 1), Counts(1, 0, 2), Counts(0, 1, 0)] * 10

    difference = f1_difference(rows, rows)

    assert (difference.value, difference.low, difference.high, difference.n) == (0, 0, 0, 30)


def test_a_clear_difference_has_an_interval_on_one_side_of_0_and_a_chance_one_has_not() -> None:
    right, half = Counts(2, 0, 0), Counts(1, 1, 1)

    clear = f1_difference([right] * 20 + [half] * 20, [half] * 40)
    chance = f1_difference([right] * 3 + [half] * 37, [half] * 38 + [right] * 2)

    assert clear.value == pytest.approx(0.25)
    assert clear.low is not None
    assert clear.low > 0
    assert chance.low is not None
    assert chance.high is not None
    assert chance.low < 0 < chance.high


def test_three_rows_are_needed_for_an_interval() -> None:
    assert f1_difference([Counts(1)] * 2, [Counts(0, 1, 1)] * 2).low is None
