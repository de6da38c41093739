"""The probabilities of the builtin doctor."""

from __future__ import annotations

import random
from math import log

import pytest
from benchmark_support import load_benchmark

from agentclinic.builtin.beliefs import beliefs
from agentclinic.cases.model import Door
from agentclinic.clinic.findings import Evidence
from agentclinic.vocabulary.base import in_place, knowledge

DOOR = Door("Find out what is wrong.", "40-year-old woman")


def update(door: Door, evidence: Evidence) -> dict[str, float]:
    mind = beliefs(knowledge())
    return dict(zip(mind.hypotheses, mind.posterior(door.demographics, evidence), strict=True))


def test_probabilities_sum_to_one_and_follow_the_evidence() -> None:
    before = update(DOOR, {})
    after = update(DOOR, {"urate_crystals": True})
    assert sum(before.values()) == pytest.approx(1)
    assert sum(after.values()) == pytest.approx(1)
    assert after["gout"] > 10 * before["gout"]
    mind = beliefs(knowledge())
    assert (mind.expected_information(mind.posterior(DOOR.demographics, {})) >= 0).all()


def test_correlated_findings_count_less_than_independent_ones() -> None:
    mind = beliefs(knowledge())
    disease = knowledge().diseases["community_acquired_pneumonia"]
    grouped = [link for link in disease.links if link.group == "inflammation" and link.p > 0.5][:2]
    assert len(grouped) == 2, "the knowledge base groups signs of inflammation"
    row = mind.hypotheses.index(disease.id)

    def weight(*findings: str) -> float:
        told = dict.fromkeys(findings, True)
        leak = sum(log(knowledge().findings[name].leak) for name in findings)
        return float(mind._log_likelihood(told)[row] - leak)

    one, other = (weight(link.finding) for link in grouped)
    assert weight(*(link.finding for link in grouped)) == pytest.approx((one + other) / 2**0.5)


def test_a_disease_of_the_other_sex_is_impossible() -> None:
    assert update(Door("", "40-year-old man"), {"missed_period": True})["ectopic_pregnancy"] < 1e-9


def test_redrawn_likelihoods_stay_within_their_ranges_and_are_put_back() -> None:
    before = update(DOOR, {"cough": True})
    with in_place(load_benchmark("clinic").redrawn(knowledge(), random.Random(1))):
        links = [link for disease in knowledge().diseases.values() for link in disease.links]
        assert all(link.low <= link.p <= link.high for link in links)
        assert update(DOOR, {"cough": True}) != before
    assert update(DOOR, {"cough": True}) == before
