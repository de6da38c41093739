"""The breakdown of a run: kinds of case, twins, key facts, tests and prices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from prices_support import price_list, priced
from report_support import Json, in_the_originals_format, ordering, record, twin, wrong

from agentclinic.results.record import Record
from agentclinic.scoring.breakdown import breakdown
from agentclinic.scoring.information import KeyFinding
from agentclinic.scoring.rows import row_of, section_of


def broken_down(*entries: Json) -> Any:
    return breakdown([row_of(Record.model_validate(entry)) for entry in entries])


def noted(number: int, right: bool, **annotations: Any) -> Json:
    return (record if right else wrong)(number, annotations=annotations)


# --- by kind of case ------------------------------------------------------------------------------------------------


def test_accuracy_by_kind_leaves_out_missing_encounters_and_groups_unstated_kinds_separately() -> None:
    found = broken_down(
        noted(0, True, Specialty="Neurology", Difficulty="hard", Harm_If_Missed=4),
        noted(1, False, Specialty="Neurology", Difficulty="easy", Harm_If_Missed=4),
        noted(2, True, Specialty=" Urology ", Difficulty="medium"),
        {**noted(3, True, Specialty="Neurology"), "status": "judge_failed", "correct": None},
        noted(4, True, Specialty=["not", "a", "word"], Harm_If_Missed=9),
    ).groups

    assert [(g.name, g.accuracy.count, g.accuracy.of, g.missing) for g in found["specialty"]] == [
        ("Neurology", 1, 2, 1),
        ("Urology", 1, 1, 0),
        ("not stated", 1, 1, 0),
    ]
    assert [g.name for g in found["difficulty"]] == ["easy", "medium", "hard", "not stated"]
    assert [g.name for g in found["harm"]] == ["4", "not stated"]


def test_a_kind_that_no_case_states_is_left_out() -> None:
    assert broken_down(noted(0, True, Specialty="Neurology")).groups.keys() == {"specialty"}
    assert broken_down(in_the_originals_format(record())).groups == {}


def test_repeats_of_a_case_are_one_case() -> None:
    (group,) = broken_down(*(record(0, repeat=repeat) for repeat in range(3))).groups["specialty"]
    assert (group.cases, group.accuracy.of) == (1, 3)
    assert group.accuracy.clustered


# --- twins ----------------------------------------------------------------------------------------------------------


def test_the_list_of_twins_begins_with_the_pairs_that_are_not_both_right_and_leaves_out_missing_ones() -> None:
    lost: Json = {"status": "judge_failed", "correct": None}
    found = broken_down(
        *(twin(0), twin(1, said="Septic arthritis")),
        *(twin(2), twin(3, right=False)),
        *(twin(4), twin(5, **lost)),
    ).twins
    assert [(pair.first.case_id, pair.right, pair.same_answer) for pair in found] == [("c2", 1, True), ("c0", 2, False)]


# --- key facts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "section"),
    [
        ("Patient_Actor/History#2", "history"),
        ("Patient_Actor/Symptoms/Primary_Symptom", "symptoms"),
        ("Patient_Actor/Past_Medical_History", "past_history"),
        ("Physical_Examination_Findings/Vital_Signs/Temperature", "vital_signs"),
        ("Physical_Examination_Findings/Skin_Examination", "examination"),
        ("Test_Results/Chest_X-ray/Findings", "tests"),
        ("physical_exams#3", "examination"),
        ("patient_info#0", "history"),
    ],
)
def test_a_key_finding_belongs_to_the_section_of_its_first_path(path: str, section: str) -> None:
    assert section_of(KeyFinding((path, "Test_Results/Other"), (), "", 1.0)) == section
    assert section_of(KeyFinding((), ("a phrase",), "", 1.0)) == "not stated"


def test_key_facts_are_counted_by_section_and_by_how_they_were_found() -> None:
    key = [
        {"any_of": ["Patient_Actor/History#0"], "role": "supporting", "weight": 1},
        {"any_of": ["Test_Results/Uric_Acid"], "role": "discriminating", "weight": 2},
        {"any_of": ["Test_Results/Joint_Fluid"], "role": "discriminating", "weight": 2},
    ]
    told, tests = broken_down(record(annotations={"Key_Findings": key})).fact_sections

    assert (told.section, told.by_way["volunteered"], told.not_found) == ("history", 1, 0)
    assert (tests.section, tests.total, tests.by_way["ordered"], tests.not_found) == ("tests", 2, 1, 1)


# --- tests and prices -----------------------------------------------------------------------------------------------


@pytest.fixture
def prices() -> Iterator[None]:
    with price_list({"a": priced("a", 10.0, 1.0), "b": priced("b", 100.0, 1.0)}):
        yield


@pytest.mark.usefixtures("prices")
def test_tests_are_counted_by_name_with_their_price_and_repeats() -> None:
    uses = broken_down(
        ordering(0, ("a", "chart"), ("a", "chart"), ("b", "unavailable")),
        ordering(1, ("a", "chart"), ("C", "chart"), ("c", "chart"), ("c", "unavailable")),
    ).tests
    by_name = {use.name: use for use in uses}

    assert (by_name["a"].ordered, by_name["a"].encounters, by_name["a"].again) == (3, 2, 1)
    assert by_name["a"].total_usd == 20.0, "charged once per encounter"
    assert (by_name["b"].total_usd, by_name["b"].unanswered) == (0.0, 1), "a test that was not available costs nothing"
    assert (by_name["C"].again, by_name["C"].usd, by_name["C"].total_usd) == (2, None, None), "unknown, not 0"


@pytest.mark.usefixtures("prices")
def test_price_groups_are_about_equal_in_size_and_keep_equal_prices_together() -> None:
    cheap = [ordering(n, ("a", "chart"), right=n % 2 == 0) for n in range(6)]
    dear = [ordering(n, ("b", "chart")) for n in range(6, 8)]
    price = broken_down(*cheap, *dear).price

    assert [(g.n, g.mean_usd, g.accuracy.count) for g in price.groups] == [(6, 10.0, 3), (2, 100.0, 2)]
    assert price.mean_usd == pytest.approx((6 * 10 + 2 * 100) / 8)


@pytest.mark.usefixtures("prices")
def test_with_more_than_a_tenth_unpriced_there_are_bounds_instead_of_groups() -> None:
    priced = [ordering(n, ("a", "chart")) for n in range(8)]
    few = broken_down(*priced, ordering(8, ("b", "chart")), ordering(9, ("what", "chart"))).price
    many = broken_down(*priced[:4], ordering(9, ("what", "chart"))).price

    assert (few.unpriced.value, bool(few.groups)) == (0.1, True), "a tenth is still allowed"
    assert (many.unpriced.value, many.groups) == (0.2, [])
    assert many.note == "1 of 5 tests done have no price"
    assert many.mean_usd == 8.0
    assert many.mean_usd_most is not None
    assert many.mean_usd_most > 100, "if it cost as much as the most expensive test in the price list"


def test_ordering_nothing_costs_nothing_and_unrecorded_orders_have_no_price() -> None:
    assert broken_down(ordering(0)).price.mean_usd == 0.0
    assert broken_down(in_the_originals_format(record())).price.mean_usd is None
