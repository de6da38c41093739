"""Age and sex, from the line that introduces a patient."""

from __future__ import annotations

import pytest

from agentclinic.cases.model import age_in_years, sex, speaks_for_self


@pytest.mark.parametrize(
    ("line", "age", "gender", "speaks"),
    [
        ("35-year-old woman", 35, "female", True),
        ("6-month-old boy", 0.5, "male", False),
        ("Newborn male", 0, "male", False),
        ("3 week old girl", 21 / 365, "female", False),
        ("6-year-old female", 6, "female", False),
        ("7-year-old female", 7, "female", True),
        ("45-year-old unresponsive man", 45, "male", False),
        ("a patient", None, None, True),
    ],
)
def test_age_sex_and_who_speaks_are_read(line: str, age: float | None, gender: str | None, speaks: bool) -> None:
    assert age_in_years(line) == (pytest.approx(age) if age is not None else None)
    assert sex(line) == gender
    assert speaks_for_self(line) is speaks
