"""The knowledge base is consistent: all references exist, all numbers are possible, each name is one disease."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest

from agentclinic.vocabulary.base import Disease, Finding, knowledge
from agentclinic.vocabulary.text import words

KNOWN = knowledge()
DISEASES, FINDINGS = list(KNOWN.diseases.values()), list(KNOWN.findings.values())


@pytest.mark.parametrize("disease", DISEASES, ids=lambda disease: disease.id)
def test_a_disease_has_known_findings_and_possible_numbers(disease: Disease) -> None:
    assert disease.prior > 0
    assert re.fullmatch(r"[A-Z]\d[\dA-Z](?:\.[\dA-Z]{1,4})?", disease.icd10)
    assert disease.links
    assert len({link.finding for link in disease.links}) == len(disease.links), "a finding is listed twice"
    for link in disease.links:
        assert link.finding in KNOWN.findings
        assert 0 < link.low <= link.p <= link.high < 1
    for band in disease.age:
        assert band.min < band.max
        assert band.factor >= 0
    assert set(disease.sex) <= {"female", "male"}
    assert all(factor >= 0 for factor in disease.sex.values())
    assert any(factor > 0 for factor in disease.sex.values()) or not disease.sex


@pytest.mark.parametrize("disease", DISEASES, ids=lambda disease: disease.id)
def test_a_diseases_age_bands_do_not_overlap(disease: Disease) -> None:
    bands = sorted(disease.age, key=lambda band: band.min)
    assert all(left.max <= right.min for left, right in pairwise(bands))


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.id)
def test_a_finding_can_be_asked_for_or_ordered_and_recognized(finding: Finding) -> None:
    assert 0 < finding.leak < 1
    assert finding.ask or finding.order, "neither asked for nor shown by a test"
    assert finding.order is None or finding.order in KNOWN.tests
    assert finding.terms or finding.measure
    assert all(words(term) for term in (*finding.terms, *finding.absent_terms))
    for rule in finding.measure.rules if finding.measure else ():
        assert (rule.above is None) != (rule.below is None)
        assert rule.min is None or rule.max is None or rule.min < rule.max


def test_no_two_diseases_share_a_name() -> None:
    owners = Counter(name for d in DISEASES for name in {tuple(sorted(words(n))) for n in (d.name, *d.synonyms)})
    assert [name for name, count in owners.items() if count > 1] == []


def test_every_finding_belongs_to_some_disease() -> None:
    linked = {link.finding for disease in DISEASES for link in disease.links}
    assert set(KNOWN.findings) - linked == set()


def test_no_phrase_means_that_a_finding_is_both_present_and_absent() -> None:
    for finding in FINDINGS:
        both = {words(term) for term in finding.terms} & {words(term) for term in finding.absent_terms}
        assert not both, finding.id


@pytest.mark.parametrize(
    ("name", "disease"),
    [
        ("MI", "acute_myocardial_infarction"),
        ("heart ATTACK", "acute_myocardial_infarction"),
        ("Infarction, myocardial", "acute_myocardial_infarction"),
        ("Crohn's disease", "crohn_disease"),
    ],
)
def test_a_disease_is_found_by_its_names_in_any_order(name: str, disease: str) -> None:
    found = KNOWN.disease_named(name)
    assert found is not None
    assert found.id == disease


def test_an_unknown_name_is_not_a_disease() -> None:
    assert KNOWN.disease_named("Frobisher fever") is None
