"""What an order asks for is found through an index of the chart, and nothing that answers it is missed."""

from __future__ import annotations

from itertools import islice

import pytest
from helpers import FEW, bundled_cases

from agentclinic.cases.completion import completion
from agentclinic.cases.matcher import orders
from agentclinic.cases.matcher.order_index import ReadChart
from agentclinic.cases.matcher.order_items import items
from agentclinic.cases.model import Facts
from agentclinic.vocabulary.normals import normals

ORDERS = (
    "CBC, CMP and lipase", "urinalysis with microscopy", "chest X-ray", "CT abdomen and pelvis", "blood cultures x2",
    "ANA, anti-dsDNA and complement", "throat swab PCR for influenza", "lumbar puncture", "liver function tests",
    "vital signs", "blood pressure and heart rate", "echocardiogram", "biopsy of the lesion", "serum porcelain level",
    "abdominal examination", "full physical examination", "arterial blood gas", "thyroid ultrasound", "mental status",
)  # fmt: skip


def read(facts: Facts) -> ReadChart:
    return ReadChart((fact, orders.charted_as(fact)) for fact in facts)


def test_everything_that_an_order_asks_for_has_one_of_its_signs() -> None:
    case = bundled_cases()[0]
    every = completion(case).everything.shared
    assert every
    chart = read(every)
    asked = (*ORDERS, *(" ".join(reversed(entry.heading.split(" / "))) for entry in islice(normals(), 0, None, 6)))
    seen = 0
    for item in (item for order in asked for item in items(order.lower())):
        for phrase, signs, matches in orders._targets(item):
            found = [pair for pair in chart if matches(*pair)]
            assert [pair for pair in chart.naming(signs) if matches(*pair)] == found, (item.text, phrase)
            seen += len(found)
    assert seen > 500


@pytest.mark.parametrize("every", FEW)
def test_a_chart_is_searched_alike_whether_it_shares_facts_with_others(every: int) -> None:
    for case in bundled_cases()[::every]:
        facts = completion(case).everything
        shared = [orders._asked_of_measurement.__wrapped__(order, facts) for order in ORDERS]
        plain = Facts(facts)
        orders._charted.cache_clear()  # it takes charts with the same facts for the same
        assert [orders._asked_of_measurement.__wrapped__(order, plain) for order in ORDERS] == shared
        orders._charted.cache_clear()


def test_facts_are_found_in_the_order_of_the_chart() -> None:
    case = bundled_cases()[0]
    facts = completion(case).everything
    chart = orders._charted(facts)
    assert chart.shared
    assert 0 < len(chart.own) == sum(fact.path not in chart.shared.by_path for fact in facts)
    found = chart.naming([("values", "sodium"), ("modalities", "")])
    assert found == [pair for pair in chart if "sodium" in pair[1].of("values") or pair[1].of("modalities")]
