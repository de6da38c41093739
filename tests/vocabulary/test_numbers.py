"""Numbers in digits and words, durations and amounts."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.numbers import KnownNumbers, numbers, rough_durations


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("seventy-two", [72]),
        ("four hundred milligrams", [400]),
        ("a hundred point four", [100.4]),
        ("one hundred and forty over ninety", [140, 90]),
        ("a dozen kilos", [12]),
        ("twenty of them", [20]),
        ("two to three weeks", [2, 3]),
        ("half a pack a day", [0.5]),
    ],
)
def test_numbers_of_several_words_are_one_number(text: str, values: list[float]) -> None:
    assert [number.value for number in numbers(text)] == values


@pytest.mark.parametrize(
    ("known", "said", "same"),
    [
        ("5 kg", "11 pounds", True),
        ("5 kg", "5 pounds", False),
        ("1 g", "1000 mg", True),
        ("400 mg", "400 grams", False),
        ("ten cigarettes a day", "half a pack", True),
        ("ten cigarettes a day", "a pack", False),
        ("220 mg", "220", True),
        ("a couple of days", "two days", True),
        ("a few days", "four days", False),
    ],
)
def test_amounts_and_durations_are_the_same_in_any_words_and_units(known: str, said: str, same: bool) -> None:
    (number,) = numbers(said)
    assert KnownNumbers([known]).has(number) is same


@pytest.mark.parametrize(
    ("known", "said", "same"),
    [
        ("for ten days", "a week and a half ago", True),
        ("for ten days", "a month ago", False),
        ("for two days", "a couple of days", True),
        ("for two days", "a couple of weeks", False),
        ("a few weeks", "several weeks", True),
        ("six months", "for half a year", True),
    ],
)
def test_durations_without_a_number_are_about_as_long(known: str, said: str, same: bool) -> None:
    (rough,) = rough_durations(said)
    assert KnownNumbers([known]).has_about(rough) is same


def test_letters_that_only_look_alike_are_read_too() -> None:
    """A pattern that ignores the case matches them."""
    assert [number.value for number in numbers("twenty-ſix or ſix dayſ")] == [26, 6]
    assert len(rough_durations("a couple of ſeconds, ſeveral dayſ ago")) == 1


def test_how_often_is_no_duration() -> None:
    assert rough_durations("twice a day, three times a week, and one day it stopped") == ()
