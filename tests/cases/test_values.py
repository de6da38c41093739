"""Numbers are read under the names of the table of tests, with the fluid and the exceptions it states."""

from __future__ import annotations

import pytest

from agentclinic.cases.model import Section
from agentclinic.cases.values import analyte_of


@pytest.mark.parametrize(
    ("heads", "analyte"),
    [
        (("BUN",), "urea_nitrogen"),
        (("Urea",), "urea"),
        (("Serum sodium",), "sodium"),
        (("Urinalysis", "Sodium"), "urine_sodium"),
        (("CSF analysis", "Glucose"), "csf_glucose"),
        (("Fasting blood glucose",), "glucose"),
        (("BMP", "CO2"), "bicarbonate"),
        (("Free T4",), "free_t4"),
        (("Total T4",), None),
        (("Pregnancy test",), None),
        (("Pleural fluid", "LDH"), None),
    ],
)
def test_a_heading_names_an_analyte(heads: tuple[str, ...], analyte: str | None) -> None:
    found = analyte_of(heads, Section.TESTS)
    assert (found.name if found else None) == analyte


def test_a_vital_sign_is_not_a_test_result() -> None:
    pulse = analyte_of(("Pulse",), Section.VITALS)
    assert pulse is not None
    assert pulse.name == "heart_rate"
    assert analyte_of(("Pulse",), Section.TESTS) is None
