from __future__ import annotations

import pytest

from agentclinic.cases.matcher.order_conditions import conditions, without
from agentclinic.cases.model import Fact, Section


@pytest.mark.parametrize(
    ("order", "untold"),
    [
        ("peak flow before and after salbutamol, FeNO", "peak flow after salbutamol: no result under this condition."),
        ("BP and ECG during an attack", "BP and ECG during an attack: no result apart from that of this visit."),
        ("ECG, repeat ECG tomorrow", "repeat ECG tomorrow: not done yet."),
        ("VBG with lactate, then repeat in 1 h; FBC", "repeat in 1 h: not done yet."),
        ("serum tryptase now, at 2 hours; FBC", "serum tryptase at 2 hours: not done yet."),
        (
            "heart sounds, 5 min after IM adrenaline repeat the obs",
            "5 min after IM adrenaline repeat the obs: not done yet.",
        ),
        ("Epley manoeuvre, then repeat Dix-Hallpike", "repeat Dix-Hallpike: not done yet."),
        ("skin prick testing in 4-6 weeks, C4", "skin prick testing in 4-6 weeks: not done yet."),
    ],
)
def test_what_is_wanted_under_a_condition_is_told_from_what_is_wanted_now(order: str, untold: str) -> None:
    assert [condition.untold for condition in conditions(order)] == [untold]


@pytest.mark.parametrize(
    "order",
    [
        "CT abdomen before and after contrast",
        "residual volume after voiding",
        "cortisol 30 minutes after Synacthen",
        "JVP during inspiration",
        "repeat troponin, D-dimer",
        "BP and HR supine then after 1, 3 and 5 min standing",
        "troponin now and at 3 hours",
        "vital signs, ECG, chest X-ray",
    ],
)
def test_a_condition_that_belongs_to_the_test_is_left_in_the_order(order: str) -> None:
    assert not conditions(order)


def test_the_rest_of_an_order_keeps_what_can_be_done_now() -> None:
    order = "finger clubbing, peak flow before and after salbutamol, repeat sats after a nebuliser"
    rest = without(order, conditions(order))
    assert "peak flow" in rest
    assert "sats" not in rest
    assert "salbutamol" not in rest


def test_a_result_answers_only_the_condition_that_it_names() -> None:
    [condition] = conditions("gait before and after the tap")
    tests = Section.TESTS
    after = Fact("a", tests, ("Gait After Removal of 40 mL Spinal Fluid", "Findings"), "10 m in 12 seconds")
    before = Fact("b", Section.EXAMINATION, ("Neurological Examination", "Gait"), "Wide base, short steps")
    other = Fact("c", tests, ("Spirometry", "Bronchodilator Response"), "+2%")
    assert condition.told_by([before, after, other]) == [after]


def test_a_response_to_a_bronchodilator_answers_whatever_is_blown_after_it() -> None:
    [condition] = conditions("peak flow before and after salbutamol")
    response = Fact("a", Section.TESTS, ("Spirometry", "Bronchodilator Response"), "+2%")
    assert condition.told_by([response]) == [response]


def test_what_is_measured_every_hour_is_measured_now_too() -> None:
    assert not conditions("MSU for culture, hourly urine output via catheter")
    assert [condition.untold for condition in conditions("VBG; repeat glucose hourly")] == [
        "repeat glucose hourly: not done yet."
    ]
