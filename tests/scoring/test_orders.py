from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from prices_support import price_list, priced

from agentclinic.report.numbers import tests_line as line_about_tests
from agentclinic.results.record import Record
from agentclinic.results.turn import Disclosure, Provenance, Turn
from agentclinic.scoring.breakdown import tests_used as list_of_tests
from agentclinic.scoring.information import NOT_RECORDED
from agentclinic.scoring.metrics import Orders, orders
from agentclinic.scoring.orders import Item, bill, stratum, unanswerable_rate
from agentclinic.scoring.rows import row_of
from agentclinic.vocabulary.tests import Test

Answer = list[tuple[str, str]] | None
"""What the laboratory disclosed as (test, provenance); None for a language model, which discloses nothing."""


def ordering(case: int, *asked: tuple[str, Answer], right: bool = True, status: str = "diagnosed") -> Record:
    transcript = []
    for turn, (order, answer) in enumerate(asked, start=1):
        parts = [Disclosure(topic=name, provenance=Provenance(how)) for name, how in answer or ()]
        transcript.append(Turn(turn=turn, role="doctor", text=f"REQUEST TEST: {order}"))
        transcript.append(Turn(turn=turn, role="measurement", text="RESULTS: ...", disclosures=parts))
    transcript.append(Turn(turn=9, role="doctor", text="DIAGNOSIS READY: Gout"))
    return Record(scenario_id=case, dataset="x", status=status, correct=right, transcript=transcript)


def score(records: list[Record], tests: Mapping[str, Test] | None = None) -> Orders:
    with price_list(tests or {}):
        return orders([row_of(record) for record in records])


CHART, EQUIVALENT, NORMAL, GONE = "chart", "chart_equivalent", "default_normal", "unavailable"


def test_orders_and_their_answers_are_counted_by_hand() -> None:
    found = score(
        [
            ordering(
                0, ("CBC, CT head", [("Complete blood count", CHART), ("CT head", GONE)]), ("CBC", [("CBC", CHART)])
            ),
            ordering(1, ("Lipase", [("Lipase", EQUIVALENT)]), ("lipase.", [("Lipase", NORMAL)])),
            ordering(2),
        ]
    )
    assert found.orders.value == pytest.approx(4 / 3)
    assert found.items.value == pytest.approx(5 / 3)
    assert {how: p.count for how, p in found.answered_by.items() if p.count} == {
        CHART: 2,
        EQUIVALENT: 1,
        NORMAL: 1,
        GONE: 1,
    }
    assert (found.tests, found.messages, found.done) == (5, 4, 4)
    assert (found.unanswered.count, found.unanswered.of) == (1, 5)
    # Without prices of its own, a test is known by its name: "CBC" is not "Complete blood count" here.
    assert (found.repeated.count, found.repeated.of) == (1, 5)


def test_what_is_repeated_is_what_the_list_of_tests_shows() -> None:
    records = [
        ordering(0, ("CT head, CBC", [("CT head", GONE), ("CBC", CHART)]), ("CT of the head", [("CT head", CHART)])),
        ordering(1, ("CBC", [("CBC", CHART)]), ("Please repeat the CBC now", [("CBC", CHART)])),
    ]
    rows = [row_of(record) for record in records]
    found, listed = orders(rows), list_of_tests(rows)
    assert (found.repeated.count, found.repeated.of) == (2, 5)
    assert (sum(use.again for use in listed), sum(use.ordered for use in listed)) == (2, 5)
    assert sum(use.unanswered for use in listed) == found.unanswered.count == found.tests - found.done == 1
    assert line_about_tests(found) == (
        "5 tests in 4 orders: 4 done, 1 not available; 2 were ordered before in the same encounter."
    )


def test_a_laboratory_that_does_not_disclose_is_unknown() -> None:
    found = score([ordering(0, ("CBC", None))])
    assert found.answered_by["unknown"].count == 1
    assert list(found.accuracy_by_unanswerable) == ["unknown"]


def test_an_order_that_the_limit_left_without_answer_is_unanswered() -> None:
    record = ordering(0, ("CBC", [("CBC", CHART)]))
    assert record.transcript is not None
    record.transcript = record.transcript[:1]
    found = score([record])
    assert found.answered_by["unanswered"].count == 1
    assert (found.unpriced, list(found.accuracy_by_unanswerable)) == (0, ["no tests"])


def test_without_prices_every_item_is_unpriced_and_no_total_is_given() -> None:
    found = score([ordering(0, ("CBC", [("CBC", CHART)]), ("MRI", [("MRI", GONE)])), ordering(1)])
    assert (found.unpriced, found.priced) == (1, 0)
    assert (found.price_usd.value, found.priced_usd, found.waiting_hours.value) == (None, None, None)


PRICES = {
    "sodium": priced("metabolic panel", 20, 2),
    "potassium": priced("metabolic panel", 20, 2),
    "CT head": priced("CT head", 300, 5),
    "troponin": priced("troponin", 40, 1),
}


def test_a_test_is_charged_once_and_what_was_not_done_is_free() -> None:
    with price_list(PRICES):
        due = bill(
            [
                [Item("sodium", CHART), Item("CT head", CHART)],
                [Item("potassium", CHART), Item("troponin", CHART)],
                [Item("troponin", "unknown"), Item("CT head", GONE)],
            ]
        )
    assert due.usd == 20 + 300 + 40
    # Items of an order run side by side: the longest of each.
    assert due.hours == 5 + 2 + 1
    assert (due.priced, due.unpriced) == (3, 0)


def test_one_unpriced_item_makes_the_mean_unknown_but_not_the_lower_bound() -> None:
    records = [ordering(0, ("CT head", [("CT head", CHART)])), ordering(1, ("biopsy", [("biopsy", CHART)]))]
    found = score(records, PRICES)
    assert found.price_usd.value is None
    assert (found.priced_usd, found.priced, found.unpriced) == (300, 1, 1)
    assert score(records[:1], PRICES).price_usd.value == 300


def test_the_price_per_right_diagnosis_counts_what_the_wrong_ones_cost() -> None:
    cheap, dear = ("troponin", [("troponin", CHART)]), ("CT head", [("CT head", CHART)])
    records = [ordering(0, cheap), ordering(1, dear, right=False), ordering(2, cheap), ordering(3)]
    found = score(records, PRICES).price_per_right_usd
    value = (40 + 300 + 40) / 3
    assert found.value == pytest.approx(value)
    assert found.low
    assert found.high
    # On the log scale the limits are equally many times less and more.
    assert value / found.low == pytest.approx(found.high / value)
    assert score(records[3:], PRICES).price_per_right_usd.value == 0


def test_there_is_no_price_per_right_diagnosis_without_a_right_one_or_a_price() -> None:
    dear, unknown = ("CT head", [("CT head", CHART)]), ("biopsy", [("biopsy", CHART)])
    none = score([ordering(0, dear, right=False)], PRICES).price_per_right_usd
    assert (none.value, none.note) == (None, "no diagnosis is right")
    part = score([ordering(0, dear), ordering(1, dear, unknown, right=False)], PRICES).price_per_right_usd
    assert (part.value, part.note) == (None, "at least 600: 1 of 3 tests done have no price")


def test_repeats_of_a_case_are_one_cluster_of_the_price_per_right_diagnosis() -> None:
    rng = random.Random(3)
    once = [
        ordering(i, ("CT head", [("CT head", CHART)]), right=i % 2 == 0)
        if rng.random() < 0.5
        else ordering(i, right=i % 3 == 0)
        for i in range(12)
    ]
    single, three = (score(records, PRICES).price_per_right_usd for records in (once, once * 3))
    assert single.value == pytest.approx(three.value)
    assert single.low == pytest.approx(three.low)


@pytest.mark.parametrize(
    ("answers", "rate", "name"),
    [
        ([CHART, EQUIVALENT], 0.0, "0"),
        ([CHART, CHART, CHART, GONE], 0.25, "(0, 0.25]"),
        ([CHART, NORMAL], 0.5, "(0.25, 0.5]"),
        ([GONE, NORMAL, CHART], 2 / 3, "> 0.5"),
        ([GONE, "unanswered"], 1.0, "> 0.5"),
        ([], None, "no tests"),
        ([GONE, "unknown"], None, "unknown"),
    ],
)
def test_encounters_are_classed_by_unanswerable_rate(answers: list[str], rate: float | None, name: str) -> None:
    ordered = [Item("x", how) for how in answers]
    assert unanswerable_rate(ordered) == (None if rate is None else pytest.approx(rate))
    assert stratum(ordered) == name


def test_accuracy_is_given_by_unanswerable_rate() -> None:
    found = score(
        [
            ordering(0, ("CBC", [("CBC", CHART)]), right=True),
            ordering(1, ("CBC", [("CBC", CHART)]), right=False),
            ordering(2, ("MRI", [("MRI", GONE)]), right=False),
            ordering(3, ("MRI", [("MRI", GONE)]), status="judge_failed"),
            ordering(4, ("MRI", [("MRI", GONE)]), status="model_failed"),
        ]
    )
    counts = {name: (p.count, p.of) for name, p in found.accuracy_by_unanswerable.items()}
    assert counts == {"0": (1, 2), "> 0.5": (0, 1)}
    assert found.missing == 1


def test_the_resource_level_is_carried() -> None:
    records = [ordering(0), ordering(1)]
    records[0].resource_level = "rural"
    assert score(records).resource_level == {NOT_RECORDED: 1, "rural": 1}


def test_a_record_of_the_original_gives_null() -> None:
    found = score([Record(scenario_id=0, status="diagnosed", correct=True, num_turns=5, resource_level="low")])
    assert (found.not_recorded, found.note) == (1, NOT_RECORDED)
    assert (found.orders.value, found.price_usd.value, found.repeated.value) == (None, None, None)
    assert (found.answered_by, found.accuracy_by_unanswerable) == ({}, {})
    assert found.resource_level == {"low": 1}


def test_the_order_of_records_changes_nothing() -> None:
    rng = random.Random(2)
    records = [ordering(i // 2, *[("CBC", [("CBC", rng.choice([CHART, GONE]))])] * rng.randrange(4)) for i in range(20)]
    before = score(records)
    rng.shuffle(records)
    assert score(records) == before
