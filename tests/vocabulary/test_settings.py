"""The settings: horizons, and what the limited ones offer, in the words of the table of tests."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary.settings import Offer, setting_of, settings
from agentclinic.vocabulary.tests import table

OFFERS = [
    pytest.param(offer, id=f"{setting.name}: {offer.name}")
    for setting in settings().values()
    for offer in setting.offers or ()
]


def test_horizons_and_which_settings_are_limited() -> None:
    assert {name: setting.hours for name, setting in settings().items()} == {
        "emergency department": 6,
        "primary care": 72,
        "outpatient clinic": 72,
        "hospital ward": 72,
        "telephone": 0,
        "rural clinic": 24,
        "district hospital": 48,
    }
    limited = [name for name, setting in settings().items() if setting.limited]
    assert limited == ["telephone", "rural clinic", "district hospital"]


def test_a_district_hospital_has_all_that_a_rural_clinic_has() -> None:
    rural, district = (
        {offer.name for offer in settings()[n].offers or ()} for n in ("rural clinic", "district hospital")
    )
    assert rural < district


@pytest.mark.parametrize("offer", OFFERS)
def test_an_offer_is_described_by_names_that_the_table_of_tests_has(offer: Offer) -> None:
    assert offer.patterns
    for pattern in offer.patterns:
        for kind, names in pattern.of.items():
            assert names
            assert names <= table()[kind].keys()
    assert offer.usd > 0, "no test is free"
    assert offer.minutes > 0


@pytest.mark.parametrize("named", [None, "", "spaceship", 7])
def test_a_setting_that_we_do_not_know_is_none(named: object) -> None:
    assert setting_of({"setting": named}) is None
    assert setting_of({"setting": "Rural Clinic"}) is settings()["rural clinic"]
