"""Planned power against what it should be: every outcome enumerated, and plays simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agentclinic.errors import InputError
from agentclinic.scoring.power import most_flips, needed, needed_repeats, power
from agentclinic.scoring.stats import Z95, paired_difference


def clear(gained: float, lost: float) -> bool:
    return (gained - lost) ** 2 > Z95**2 * (gained + lost)


def enumerated(cases: int, difference: float, discordance: float) -> float:
    """Sum the chances of all outcomes (gained, lost, unchanged) that are clear."""
    up, down = (discordance + difference) / 2, (discordance - difference) / 2
    return math.fsum(
        math.comb(cases, gained)
        * math.comb(cases - gained, lost)
        * up**gained
        * down**lost
        * (1 - discordance) ** (cases - gained - lost)
        for gained in range(cases + 1)
        for lost in range(cases - gained + 1)
        if clear(gained, lost)
    )


@pytest.mark.parametrize("cases", [1, 3, 4, 5, 8, 14, 20, 32, 45, 64])
def test_the_power_is_that_of_all_outcomes_enumerated(cases: int) -> None:
    for difference in (0.01, 0.05, 0.1, 0.2, 0.4, 1.0):
        for discordance in (difference, difference + 0.03, difference + 0.1, difference + 0.3, 1.0):
            if discordance <= 1:
                exact = enumerated(cases, difference, discordance)
                assert power(cases, difference, discordance) == pytest.approx(exact, abs=1e-9)
                assert power(cases, -difference, discordance) == pytest.approx(exact, abs=1e-9)


def test_the_power_of_many_cases_is_that_of_the_normal_approximation() -> None:
    root = (0.02 * 100 - Z95 * math.sqrt(0.3)) / math.sqrt(0.3 - 0.02**2)
    assert power(10_000, 0.02, 0.3) == pytest.approx((1 + math.erf(root / math.sqrt(2))) / 2, abs=0.002)


POPULATIONS: dict[str, tuple[list[float], list[float], list[float]]] = {
    "the cases that change are sure, others are not": (
        [0, 1, 0, 1, 0.5],
        [0, 1, 1, 0, 0.5],
        [0.35, 0.3, 0.2, 0.05, 0.1],
    ),
    "the cases that change are not sure": ([0, 1, 0.5, 0.3, 0], [0, 1, 0.8, 0.5, 1], [0.35, 0.35, 0.15, 0.1, 0.05]),
    "only some change, and only for the better": ([0, 1, 0.1], [0, 1, 0.5], [0.4, 0.4, 0.2]),
    "all change a little": ([0.2, 0.8, 0.1], [0.4, 0.9, 0.3], [0.4, 0.4, 0.2]),
    "all are alike": ([0.4], [0.55], [1]),
}
"""Chances of being right with either doctor, and how many cases have them."""


def simulated(
    cases: int, repeats: int, before: list[float], after: list[float], weights: list[float], seed: int = 1
) -> float:
    """Play every case with both doctors and test the difference as `compare` does."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(weights), p=weights, size=(2_000, cases))
    first, second = (rng.binomial(repeats, np.array(chances)[kind]) / repeats for chances in (before, after))
    rows = zip((second * (1 - first)).tolist(), (first * (1 - second)).tolist(), strict=True)
    tested = [paired_difference(zip(range(cases), *changes, strict=True), repeats).p for changes in rows]
    return float(np.mean(np.array(tested) < 0.05))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (place < 4)) for place, name in enumerate(POPULATIONS)]
)
@pytest.mark.parametrize("repeats", [1, 3, 5])
def test_the_power_with_repeats_is_that_of_simulated_plays(name: str, repeats: int) -> None:
    before, after, weights = map(np.array, POPULATIONS[name])
    difference = float(weights @ (after - before))
    discordance = float(weights @ (before + after - 2 * before * after))
    flip_rate = float(weights @ (before * (1 - before) + after * (1 - after)))
    for cases in (32, 64):
        planned = power(cases, difference, discordance, repeats=repeats, flip_rate=flip_rate)
        found = simulated(cases, repeats, *POPULATIONS[name])
        # Three numbers do not say what the cases are like; the standard error of the simulation is a point.
        assert planned == pytest.approx(found, abs=0.06)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_the_cases_needed_are_the_last_step_of_the_saw(level: float) -> None:
    for difference, discordance in ((0.1, 0.1), (0.1, 0.2), (0.2, 0.5), (0.35, 1.0), (0.6, 0.7), (1.0, 1.0)):
        fewest = needed(difference, discordance, level=level)
        assert fewest
        short = [cases for cases in range(1, 3 * fewest + 100) if power(cases, difference, discordance) < level]
        assert max(short, default=0) == fewest - 1


def test_one_more_case_can_lower_the_power_and_is_not_called_enough() -> None:
    fewest = needed(0.35, 1.0)
    assert fewest
    assert any(power(cases, 0.35, 1.0) >= 0.8 for cases in range(1, fewest - 1))


def test_no_number_of_cases_is_given_if_it_is_beyond_all_data_sets() -> None:
    assert needed(0.004, 0.3) is None
    assert needed(0.01, 0.3) == pytest.approx((Z95 + 0.8416) ** 2 * 0.3 / 0.01**2, rel=0.005)


def test_repeats_help_as_far_as_repeats_differ() -> None:
    assert power(64, 0.1, 0.2, repeats=5) == power(64, 0.1, 0.2)
    few, some, many = (power(64, 0.1, 0.2, repeats=3, flip_rate=rate) for rate in (0.0, 0.05, 0.15))
    assert few + 0.05 < some < many - 0.05
    once, thrice = (needed(0.1, 0.2, repeats=repeats, flip_rate=0.1) for repeats in (1, 3))
    assert once == needed(0.1, 0.2)
    assert thrice
    assert power(thrice, 0.1, 0.2, repeats=3, flip_rate=0.1) >= 0.8
    assert once
    assert thrice < once


def test_repeats_that_are_enough_are_found_or_there_are_none() -> None:
    enough = needed_repeats(64, 0.1, 0.2, 0.15)
    assert enough
    by_repeats = [power(64, 0.1, 0.2, repeats=repeats, flip_rate=0.15) for repeats in (enough - 1, enough)]
    assert by_repeats[0] < 0.8 <= by_repeats[1]
    assert needed_repeats(64, 0.1, 0.3, 0.1) is None


@pytest.mark.parametrize(
    ("difference", "discordance", "flip_rate", "said"),
    [
        (0.0, 0.2, 0.0, "difference: must be more than 0"),
        (1.1, 1.1, 0.0, "difference: must be more than 0"),
        (0.1, 0.05, 0.0, "at least the difference, 10.0%"),
        (0.1, 1.2, 0.0, "at most 100%"),
        (0.1, math.nan, 0.0, "at most 100%"),
        (0.1, 0.2, 0.2, "from 0 to 19.0%"),
        (0.1, 0.9, 0.2, "from 0 to 10.0%"),
        (0.1, 0.2, -0.1, "from 0 to 19.0%"),
    ],
)
def test_what_no_cases_can_show_is_refused(difference: float, discordance: float, flip_rate: float, said: str) -> None:
    for plan in (
        lambda: power(64, difference, discordance, flip_rate=flip_rate),
        lambda: needed(difference, discordance, flip_rate=flip_rate),
    ):
        with pytest.raises(InputError, match=said):
            plan()


def test_the_most_flips_possible_can_be_planned_for() -> None:
    for difference, discordance in ((0.1, 0.1), (0.1, 0.2), (0.1, 0.7), (0.3, 0.3), (0.02, 0.5)):
        most = most_flips(difference, discordance)
        planned = power(64, difference, discordance, repeats=3, flip_rate=most)
        assert power(64, difference, discordance) < planned <= 1
