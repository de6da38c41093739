"""The table of tests is consistent: everything it refers to exists, and every name means one thing."""

from __future__ import annotations

from collections import Counter

import pytest

from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.tests import KINDS, Test, names_of, priced_tests, split_list, table
from agentclinic.vocabulary.text import words

TABLE = table()
TESTS = priced_tests()


@pytest.mark.parametrize("test", TESTS.values(), ids=lambda test: test.id)
def test_a_priced_test_refers_to_known_tests_and_has_possible_numbers(test: Test) -> None:
    assert set(test.equivalents) | set(test.panel_of) <= set(TESTS) - {test.id}
    assert test.cost_level in ("low", "medium", "high")
    assert test.price.status in ("estimate", "included", "verified")
    assert 0 <= test.invasiveness <= 3


def test_no_two_priced_tests_share_a_name() -> None:
    owners = Counter(name for test in TESTS.values() for name in {words(n) for n in (test.name, *test.synonyms)})
    assert [name for name, count in owners.items() if count > 1] == []


def test_what_is_ordered_is_priced_as_a_known_test() -> None:
    for kind in KINDS:
        for concept, entry in TABLE[kind].items():
            assert {*entry.get("priced", {}), entry.get("is", "vital_signs")} <= set(TESTS), concept


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_written_once(kind: str) -> None:
    """A key may be listed again, to say that it names a priced test too."""
    priced = {words(name) for entry in TABLE["priced"].values() for name in split_list(entry.get("names", ""))}
    for concept, entry in TABLE[kind].items():
        unpriced = [words(name) for name in split_list(entry.get("names", ""))]
        shared = [words(name) for names in entry.get("priced", {}).values() for name in split_list(names)]
        assert len(set(unpriced + shared)) == len(unpriced + shared), concept
        assert not priced & {words(name) for name in names_of(kind, concept)}, concept


def test_panels_are_made_of_known_values_and_panels() -> None:
    for name, panel in TABLE["panels"].items():
        assert set(split_list(panel.get("values", ""))) <= set(TABLE["values"]), name
        assert {*split_list(panel.get("panels", "")), *split_list(panel.get("headings", ""))} <= set(TABLE["panels"]), (
            name
        )
        assert panel.get("specimen", "urine") in TABLE["specimens"], name


def test_sites_systems_and_parts_refer_to_each_other() -> None:
    sites, systems = set(TABLE["sites"]), set(TABLE["systems"])
    for name, site in TABLE["sites"].items():
        assert set(split_list(site.get("of", ""))) <= sites - {name}, name
    for name, system in TABLE["systems"].items():
        assert set(split_list(system["sites"])) <= sites, name
        assert set(split_list(system.get("covers", ""))) <= systems, name
    for name, part in TABLE["parts"].items():
        assert set(split_list(part["of"])) <= sites | systems, name
        assert set(split_list(part.get("in", ""))) <= set(TABLE["parts"]), name
        assert part.get("by", "palpation") in TABLE["methods"], name


def test_kinds_and_alikes_are_of_known_tests() -> None:
    known = {*TABLE["values"], *TABLE["tests"], *TABLE["parts"]}
    for relation in ("kinds", "alike"):
        for name, others in TABLE[relation].items():
            assert {name, *split_list(others)} <= known, name
    for name, sites in TABLE["reached"].items():
        assert name in TABLE["tests"]
        assert set(split_list(sites)) <= set(TABLE["sites"]), name


def test_a_measurement_excepts_only_names_of_its_value() -> None:
    for kind in ("values", "vitals"):
        for concept, entry in TABLE[kind].items():
            for name, read in entry.get("measured", {}).items():
                chosen = split_list(", ".join((read.get("except", ""), read.get("only", ""))))
                assert set(chosen) <= set(names_of(kind, concept)), name
                assert next(iter(read["units"].values())) == 1, name


def test_a_test_has_the_names_of_what_it_is() -> None:
    blood_count = knowledge().tests["complete_blood_count"]
    assert {"cbc", "fbc", "cbc with differential"} <= set(blood_count.synonyms)
    assert blood_count.name.lower() in names_of("panels", "cbc")
    assert "hematology" in names_of("panels", "cbc")
    assert "hematology" not in blood_count.synonyms
