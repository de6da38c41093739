"""The table of disease names: every name once, and every reference leads somewhere."""

from __future__ import annotations

from collections import Counter

import pytest

from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.name_table import name_table, relations, siblings
from agentclinic.vocabulary.text import words

TABLE = name_table()


def repeated(names: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [name for name, count in Counter(names).items() if count > 1]


def test_every_name_is_in_one_entry() -> None:
    assert repeated([words(name) for entry in TABLE.diseases for name in entry.names]) == []


def test_an_abbreviation_has_one_meaning() -> None:
    assert repeated([(short,) for entry in TABLE.diseases for short in entry.short]) == []


def test_what_only_the_leak_checker_uses_is_not_also_a_name() -> None:
    names = {words(name) for entry in TABLE.diseases for name in entry.names}
    assert [leak for entry in TABLE.diseases for leak in entry.leaks if words(leak) in names] == []


def test_entries_refer_to_each_other_by_their_usual_name() -> None:
    usual = {entry.names[0] for entry in TABLE.diseases}
    assert [other for entry in TABLE.diseases for other in entry.leaks_with if other not in usual] == []


def test_the_table_names_exactly_the_diseases_of_the_knowledge_base() -> None:
    assert list(TABLE.by_id) == list(knowledge().diseases)
    infarction = knowledge().diseases["acute_myocardial_infarction"]
    assert infarction.name == "Acute myocardial infarction"
    assert {"heart attack", "MI"} <= set(infarction.synonyms)
    assert "coronary thrombosis" not in infarction.synonyms


@pytest.mark.parametrize("table", ["broader", "narrower", "manifestations"])
def test_a_related_disease_is_given_by_its_name(table: str) -> None:
    entries = relations(table)  # type: ignore[arg-type]
    assert entries
    assert not [of for entry in entries for of in entry.of if of in TABLE.by_id and "_" in of]


def test_a_family_has_at_least_two_members() -> None:
    assert all(len(set(family)) > 1 for family in siblings())
