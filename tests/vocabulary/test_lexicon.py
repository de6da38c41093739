"""The lexicon is consistent, and finds concepts and basic complaints in a text."""

from __future__ import annotations

import pytest

from agentclinic.audit.planted import COMPLAINTS
from agentclinic.cases.registry import load_cases
from agentclinic.vocabulary import lexicon

CONCEPTS = lexicon._lexicon().concepts


def test_every_parent_in_the_lexicon_is_a_concept_of_it() -> None:
    assert len(CONCEPTS) > 2000
    assert {parent for concept in CONCEPTS.values() for parent in concept.parents} <= CONCEPTS.keys()
    assert set(lexicon._ROOTS.values()) <= CONCEPTS.keys()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Do you black out?", "loss of consciousness"),
        ("Blood in your stools", "blood in stool"),
        ("cold sweats", "cold sweat"),
    ],
)
def test_the_longest_wording_names_the_concept(text: str, named: str) -> None:
    assert named in {hit.concept.name for hit in lexicon.found(text)}


def test_a_wording_does_not_run_across_a_comma() -> None:
    assert "weight loss" not in {hit.concept.name for hit in lexicon.found("Any weight, loss of appetite")}


def test_a_long_repetitive_text_is_read() -> None:
    assert [hit.concept.name for hit in lexicon.found("fever " * 3000)].count("fever") == 3000


def test_only_symptoms_are_basic_complaints() -> None:
    basic = {concept.name: concept.type for concept in CONCEPTS.values() if concept.basic}
    assert len(basic) > 150
    assert set(basic.values()) == {"symptom"}


def test_the_audit_refers_to_basic_complaints() -> None:
    assert all(CONCEPTS[name].basic for name in COMPLAINTS)


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("a low-grade fever", {"fever"}),
        ("rigors and drenching night sweats", {"chills", "night sweats"}),
        ("pain in the chest", {"pain"}),
        ("nosebleeds, and other bleeding", {"nosebleed"}),
        ("there is a history of anxiety", {"anxiety"}),
        ("ulcerative colitis", set()),
        ("I bought new curtains, and the room is nicely painted", set()),
        ("no complaints", set()),
    ],
)
def test_a_finer_complaint_counts_as_the_basic_one(text: str, complaints: set[str]) -> None:
    assert lexicon.complaints(text) == complaints


def test_the_wordings_are_listed_with_what_they_name() -> None:
    listed = lexicon.wordings()
    assert any("headache" in names for names in listed.values())
    assert any(" " in wording for wording in listed)


def test_a_text_that_names_a_place_may_name_one() -> None:
    place = lexicon.of_types("place")
    for case in load_cases("OpenOSCE", {}, lockbox=True)[::4]:
        for fact in case.facts:
            assert lexicon.may_name("place", fact.text) or not lexicon.named(fact.text).closed & place
    assert not lexicon.may_name("place", "No fever")
