"""One estimate reads the same everywhere, whatever is missing from it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from agentclinic.scoring.format import as_number, as_percent, as_points, interval, number, percent, points
from agentclinic.scoring.stats import Estimate, proportion

WHOLE = Estimate(value=0.5, low=0.4, high=0.625, n=20)
BARE = Estimate(value=0.5, n=2)
NOTED = Estimate(value=0.5, n=2, note="no interval: fewer than three cases")
NOTHING = Estimate(value=None)
WHY = Estimate(value=None, note="no forecasts")


def test_bare_numbers() -> None:
    assert percent(0.5) == "50.0%"
    assert percent(0.256, 0) == "26%"
    assert points(0.05) == "+5.0"
    assert points(-0.125, 2) == "-12.50"
    assert number(1234.5) == "1,234.50"
    assert number(0.5, 3, signed=True) == "+0.500"


@pytest.mark.parametrize("show", [percent, points, number])
def test_a_number_that_is_not_known_is_not_zero(show: Callable[..., str]) -> None:
    assert show(None) == "unknown"
    assert show(None, unknown="–") == "–"


def test_a_rounded_zero_has_no_minus_sign() -> None:
    assert percent(-0.0001) == "0.0%"
    assert points(-0.0001) == "+0.0"
    assert number(-0.001) == "0.00"


def test_an_estimate_with_its_interval() -> None:
    assert as_percent(WHOLE) == "50.0% (40.0% to 62.5%)"
    assert as_number(WHOLE, 1, n=True) == "0.5 (0.4 to 0.6; n = 20)"
    assert as_percent(WHOLE, label="95% interval") == "50.0% (95% interval 40.0% to 62.5%)"
    assert as_number(WHOLE) == "0.50 (0.40 to 0.62)"
    assert interval(WHOLE) == "40.0% to 62.5%"


def test_a_difference_shows_its_sign_everywhere() -> None:
    gap = Estimate(value=0.05, low=-0.012, high=0.112, n=40)
    assert as_points(gap) == "+5.0 points (-1.2 to +11.2)"
    assert as_number(gap, 3, signed=True) == "+0.050 (-0.012 to +0.112)"


def test_a_proportion_with_its_interval_and_counts() -> None:
    # Wilson for 50 of 100: (0.5 + 0.0192 ± 0.0980·1.0190) / 1.0384
    assert as_percent(proportion(50, 100)) == "50.0% (40.4% to 59.6%; 50 of 100)"
    assert as_percent(proportion(1500, 3000), label="95% interval").endswith("; 1,500 of 3,000)")
    assert as_percent(proportion(0, 0)) == "unknown"
    assert interval(proportion(0, 0)) == ""


def test_a_missing_interval_is_left_out_and_its_note_given() -> None:
    assert as_percent(BARE) == "50.0%"
    assert as_percent(BARE, label="95% interval") == "50.0%"
    assert as_points(BARE) == "+50.0 points"
    assert as_number(BARE, n=True) == "0.50 (n = 2)"
    assert as_number(NOTED) == "0.50 (no interval: fewer than three cases)"
    assert as_number(NOTED, n=True) == "0.50 (no interval: fewer than three cases; n = 2)"
    assert interval(BARE) == ""


@pytest.mark.parametrize("limits", [(0.1, None), (None, 0.9), (-math.inf, math.inf), (math.nan, math.nan)])
def test_half_an_interval_or_an_infinite_one_is_none(limits: tuple[float | None, float | None]) -> None:
    low, high = limits
    assert as_percent(Estimate(value=0.5, low=low, high=high)) == "50.0%"


@pytest.mark.parametrize("show", [as_percent, as_points, as_number])
def test_what_is_not_known_says_so_and_why(show: Callable[..., str]) -> None:
    assert show(None) == "unknown"
    assert show(NOTHING) == "unknown"
    assert show(WHY) == "unknown (no forecasts)"


def test_a_note_is_not_repeated_next_to_a_full_interval() -> None:
    assert as_percent(WHOLE.model_copy(update={"note": "no case differs"})) == "50.0% (40.0% to 62.5%)"
