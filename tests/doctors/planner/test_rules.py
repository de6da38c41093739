"""The planning rules that can be checked, applied to orders and what came before them."""

from __future__ import annotations

from typing import Any

import pytest
from policy_support import policy

from agentclinic.cases.model import Door
from agentclinic.doctors.planner.rules import (
    Ruling,
    as_advised,
    check_order,
    expense,
    just_asked,
    named_tests,
    red_flag,
)
from agentclinic.doctors.planner.settings import PolicyFile, load_policy
from agentclinic.results.turn import Exchange

DOOR = Door("Assess a patient with belly pain.", "50-year-old man")
SHIPPED = load_policy().file
CHEAP = Exchange("test", "Complete blood count", "RESULTS: Hemoglobin 14 g/dL")
ASKED = Exchange("question", "Where does it hurt?", "In my belly.")
FAINTED = Exchange("question", "Did you pass out?", "Yes, I fainted this morning.")
XRAY = Exchange("test", "Chest X-ray", "RESULTS: clear lungs")


def ruled(order: str, *before: Exchange, file: PolicyFile = SHIPPED, door: Door = DOOR) -> Ruling:
    return check_order(file, door, order, before)


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("CBC", ["Complete blood count"]),
        ("CBC with differential", ["Complete blood count"]),
        ("CT abdomen and pelvis", ["CT abdomen and pelvis"]),
        ("Chest X-ray and ECG", ["Chest X-ray", "Electrocardiogram"]),
        ("plain film of the chest", ["Chest X-ray"]),
        ("Plain-film of the chest, please", ["Chest X-ray"]),
        ("Complete blood count including hemoglobin", ["Complete blood count"]),
        ("CT, with contrast", ["CT, with contrast"]),
        ("frobnication assay", []),
        ("", []),
    ],
)
def test_an_order_is_read_by_name_synonym_panel_and_kind(order: str, names: list[str]) -> None:
    assert [test.name for test in named_tests(SHIPPED, order)] == names


@pytest.mark.parametrize(
    ("order", "kind", "cost"),
    [
        ("MRI of the left elbow", "imaging", "high"),
        ("Anti-frobnase antibodies", "laboratory", "low"),
        ("Frobnoid gland biopsy", "pathology", "high"),
        ("inspection of the scalp", "examination", "low"),
    ],
)
def test_an_unlisted_test_is_recognized_by_its_kind(order: str, kind: str, cost: str) -> None:
    (test,) = named_tests(SHIPPED, order)
    assert (test.kind, test.cost_level) == (kind, cost)


def test_one_test_per_turn() -> None:
    both = ruled("Troponin and ECG", CHEAP)
    assert both.broken == ("one test per turn (Cardiac troponin, Electrocardiogram at once)",)
    assert ruled("Comprehensive metabolic panel", CHEAP).broken == ()
    assert ruled("Troponin and ECG", CHEAP, file=policy(one_test_per_turn=False)).broken == ()


@pytest.mark.parametrize(
    "before", [(), (ASKED,), (Exchange("test", "CT abdomen and pelvis", "RESULTS: normal"), ASKED)]
)
def test_an_expensive_test_before_any_cheaper_one_breaks_low_cost_first(before: tuple[Exchange, ...]) -> None:
    ruling = ruled("MRI brain", *before)
    assert ruling.broken == ("low cost first (MRI brain before any cheaper test or examination)",)
    assert ruled("MRI brain", *before, file=policy(low_cost_first=False)).broken == ()


def test_after_a_cheaper_test_an_expensive_one_is_fine() -> None:
    assert ruled("MRI brain", CHEAP, ASKED) == Ruling()
    assert ruled("Vital signs") == Ruling()


def test_no_back_to_back_imaging() -> None:
    ruling = ruled("CT abdomen and pelvis", CHEAP, XRAY)
    assert ruling.broken == ("no back-to-back imaging (CT abdomen and pelvis right after Chest X-ray)",)
    assert ruled("CT abdomen and pelvis", CHEAP, XRAY, file=policy(no_back_to_back_imaging=False)).broken == ()
    assert ruled("CT abdomen and pelvis", CHEAP, XRAY, ASKED).broken == (), "something came between"
    assert ruled("Complete blood count", CHEAP, XRAY).broken == ()


def test_transitions_of_the_file_are_checked() -> None:
    file = SHIPPED.model_copy(update={"transitions": {"laboratory": ("laboratory", "examination")}})
    assert ruled("Chest X-ray", CHEAP, file=file).broken == (
        "transitions (Chest X-ray, imaging, right after Complete blood count, laboratory)",
    )
    assert ruled("Troponin", CHEAP, file=file).broken == ()
    assert ruled("Chest X-ray", CHEAP, ASKED, file=file).broken == ()


def test_a_red_flag_sets_aside_all_rules_but_one_test_per_turn() -> None:
    ruling = ruled("MRI brain", FAINTED)
    assert ruling.broken == ()
    assert ruling.lines == (
        "rule set aside: low cost first (MRI brain before any cheaper test or examination), "
        "for a red flag: Syncope or near-syncope",
    )
    assert ruled("MRI brain", FAINTED, file=policy(red_flag_override=False)).broken != ()
    many = ruled("MRI brain and CT chest", FAINTED)
    assert many.broken
    assert many.broken[0].startswith("one test per turn")
    assert many.excused


@pytest.mark.parametrize(
    ("exchange", "flag"),
    [
        (FAINTED, "Syncope or near-syncope"),
        (Exchange("question", "Did you faint?", "No, I never fainted."), None),
        (Exchange("test", "Vital signs", "RESULTS: Blood pressure: 82/50 mmHg"), "Systolic pressure below 95"),
        (Exchange("test", "Vital signs", "RESULTS: Blood pressure: 122/80 mmHg"), None),
    ],
)
def test_red_flags_are_read_from_the_dialogue(exchange: Exchange, flag: str | None) -> None:
    assert red_flag(SHIPPED, DOOR, (exchange,)) == flag


def test_a_red_flag_may_be_known_at_the_door() -> None:
    assert red_flag(SHIPPED, Door("Assess a man who fainted.", ""), ()) == "Syncope or near-syncope"


def test_an_unknown_test_is_reported_as_unchecked() -> None:
    assert ruled("frobnication assay").lines == ("rules not checked: the test is not known",)


@pytest.mark.parametrize("settings", [{"red_flag_override": True}, {"red_flag_override": False}])
def test_an_order_within_the_rules_gets_no_remark(settings: dict[str, Any]) -> None:
    assert ruled("Chest X-ray", CHEAP, FAINTED, file=policy(**settings)).lines == ()


@pytest.mark.parametrize(
    ("order", "step", "broken"),
    [
        ("Troponin and ECG", "REQUEST TEST: ECG and cardiac troponin", False),
        ("Troponin and ECG", "REQUEST TEST: ECG", True),
        ("Troponin and ECG", "Does your chest hurt?", True),
        ("Troponin and ECG", "", True),
        ("MRI brain", "REQUEST TEST: MRI of the brain", False),
    ],
)
def test_an_order_that_follows_the_notes_breaks_no_rule(order: str, step: str, broken: bool) -> None:
    ruling = as_advised(SHIPPED, ruled(order), order, step)
    assert bool(ruling.broken) is broken
    assert any("as the notes advised" in line for line in ruling.lines) is not broken


def test_requests_compare_by_what_they_cost() -> None:
    requests = (
        "Does it hurt?",
        "REQUEST TEST: Vital signs and abdominal examination",
        "REQUEST TEST: Serum lipase",
        "REQUEST TEST: Anti-frobnase antibodies",
        "REQUEST TEST: CT abdomen and pelvis",
        "REQUEST TEST: frobnication assay",
    )
    costs = [expense(SHIPPED, request) for request in requests]
    assert costs == sorted(set(costs))


@pytest.mark.parametrize(
    ("request_", "asked"),
    [
        ("What does the cough sound like: barking like a seal, wet, or dry?", True),
        ("Is the cough worse at night?", False),
        ("Did it start suddenly?", True),
        ("REQUEST TEST: cough sound", False),
        ("", False),
    ],
)
def test_a_question_has_just_been_asked_if_one_of_its_clauses_was(request_: str, asked: bool) -> None:
    said = "How did this start - suddenly, or slowly after a cold - and what does the cough sound like?"
    assert just_asked(request_, (Exchange("question", said, "He gagged."),)) is asked
    assert not just_asked(request_, (Exchange("question", said, "He gagged."), CHEAP)), "not the last thing"
    assert not just_asked(request_, ())
