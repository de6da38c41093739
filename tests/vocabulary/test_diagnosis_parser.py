"""Parsing a doctor's diagnosis."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.diagnosis_parser import parse


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("Gout, then septic arthritis", "Gout"),
        ("The most likely diagnosis is acute gout due to diuretics", "acute gout"),
        ("Gout with tophi", "Gout"),
        ("Gout - flare", "Gout"),
        ("`Gout`", "Gout"),
        ("Primary biliary cholangitis", "Primary biliary cholangitis"),
    ],
)
def test_the_principal_diagnosis_is_the_first_one_named(text: str, principal: str) -> None:
    assert parse(text).principal == principal


def test_causes_kinds_and_guesses_are_read_separately() -> None:
    parsed = parse("Hyponatremia due to SIADH from lung cancer, likely severe, likely from thiazides, possibly chronic")
    assert parsed.principal == "Hyponatremia"
    assert parsed.causes == ("SIADH", "lung cancer", "thiazides")
    assert parsed.guesses == ("severe",)
    assert parsed.likely_causes == ("thiazides",)
    assert parsed.possible == ("possibly chronic",)
    assert not parsed.hedged


@pytest.mark.parametrize(
    ("text", "principal"),
    [("No embolism; chest wall pain", "chest wall pain"), ("Not gout but septic arthritis", "septic arthritis")],
)
def test_a_denied_diagnosis_is_skipped(text: str, principal: str) -> None:
    assert parse(text).principal == principal
    assert not parse(text).denied
