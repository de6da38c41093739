"""Names of the public vocabularies: what they say is the same, broader, narrower, a sibling or unknown."""

from __future__ import annotations

import random

import pytest
from helpers import EVERY, bundled_cases

from agentclinic.cases.model import AnswerKey
from agentclinic.memory.experience import diagnosis_mark
from agentclinic.vocabulary.compare import STRICT, Relation, compare
from agentclinic.vocabulary.disease_names import Names, disease_mentions
from agentclinic.vocabulary.names import name
from agentclinic.vocabulary.ontology import SHORT, ontology, synonyms


@pytest.mark.parametrize(
    ("said", "truth"),
    [
        ("Osler-Weber-Rendu disease", "Hereditary haemorrhagic telangiectasia"),  # an eponym, British spelling
        ("Kikuchi's disease", "Histiocytic necrotising lymphadenitis"),  # a possessive, -ise
        ("Histiocytosis, polyostotic sclerosing", "Erdheim-Chester disease"),  # inverted
        ("β-thalassaemia", "beta thalassemia"),
        ("Factor IX deficiency", "Christmas disease"),
        ("Glycogen storage disease type 2", "Pompe disease"),  # Roman and Arabic numerals
        ("Henoch-Schonlein purpura", "IgA vasculitis"),  # an umlaut without its dots
        ("Severe Kikuchi disease", "Histiocytic necrotizing lymphadenitis"),  # a grade makes no other disease
        ("Erdheim-Chester disease (ECD)", "Polyostotic sclerosing histiocytosis"),
        ("Straddling or overriding tricuspid valve", "Straddling and/or overriding tricuspid valve"),  # no hedge
    ],
)
def test_names_of_one_disease_are_the_same(said: str, truth: str) -> None:
    assert compare(said, truth).relation is Relation.SAME


@pytest.mark.parametrize(
    ("said", "truth", "relation"),
    [
        ("Bardet-Biedl syndrome 5", "Bardet-Biedl syndrome 12", Relation.SIBLING),
        ("Non-Langerhans cell histiocytosis", "Erdheim-Chester disease", Relation.BROADER),
        ("Erdheim-Chester disease", "Histiocytosis", Relation.NARROWER_CONSISTENT),
        ("Regional ileitis", "Crohn's disease of small intestine", Relation.NARROWER_CONSISTENT),  # ICD-10-CM
        ("Kikuchi disease", "Erdheim-Chester disease", Relation.DIFFERENT),
        ("Kikuchi disease or Erdheim-Chester disease", "Erdheim-Chester disease", Relation.HEDGED),
        ("History of Erdheim-Chester disease", "Polyostotic sclerosing histiocytosis", None),
    ],
)
def test_names_of_other_diseases_are_not(said: str, truth: str, relation: Relation | None) -> None:
    assert compare(said, truth).relation is relation


def test_a_name_of_several_diseases_has_no_answer() -> None:
    # TMD is a muscular dystrophy, a joint disorder and a myeloproliferative disease; Cushing a disease and a syndrome.
    assert ontology().whole(name("TMD")) is None
    assert ontology().whole(name("Cushing")) is None
    assert compare("TMD", "Tibial muscular dystrophy").relation is not Relation.NARROWER_CONSISTENT


def test_an_abbreviation_counts_alone_and_not_as_part_of_a_name() -> None:
    assert ontology().place(f"{SHORT}dipnech") is not None
    assert ontology().place("dipnech") is None


def test_the_answer_key_is_read_with_the_public_names() -> None:
    rejected = (("Kikuchi-Fujimoto disease", "no necrosis"),)
    told = compare("Histiocytic necrotizing lymphadenitis", "Lymphadenitis", reject=rejected)
    assert (told.relation, told.reason) == (Relation.DIFFERENT, "rejected by the answer key: no necrosis")


@pytest.mark.parametrize("every", EVERY)
def test_every_shipped_diagnosis_is_right_even_if_the_vocabularies_take_a_rejected_name_for_it(every: int) -> None:
    for case in bundled_cases(lockbox=True)[::every]:
        key = case.answer_key or AnswerKey()
        assert compare(case.diagnosis, case.diagnosis, key.accept, key.partial, key.reject).relation in STRICT
        for other, _ in key.reject:
            assert compare(other, case.diagnosis, key.accept, key.partial, key.reject).relation not in STRICT


def test_the_keys_in_the_table_are_those_the_names_have_now() -> None:
    """If this fails: python benchmarks/convert_vocabularies.py --keys."""
    table = ontology()
    usual = [table.names(place)[0] for place in random.Random(0).sample(range(len(table.diseases)), 400)]
    unknown = [one for one in usual if table.whole(name(one)) is None]
    assert len(unknown) <= 4, unknown  # an abbreviation may have several meanings
    assert "Mondo Disease Ontology" in table.version
    assert "CC BY 4.0" in table.source


def test_leak_checks_know_the_public_names() -> None:
    found = Names("Erdheim-Chester disease").find("The biopsy showed polyostotic sclerosing histiocytosis.")
    assert {each.phrase for each in found} == {"polyostotic sclerosing histiocytosis"}
    assert not list(Names("Erdheim-Chester disease").find("No polyostotic sclerosing histiocytosis."))
    assert "HHT" not in synonyms("Osler-Weber-Rendu disease")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("I think it is Osler-Weber-Rendu disease.", ["hereditary hemorrhagic telangiectasia"]),
        ("My left leg pain and my sore throat are worse.", []),
        ("I know an Erdheim, Chester disease is new to me.", []),
    ],
)
def test_public_names_in_speech_are_diseases_and_complaints_are_not(text: str, named: list[str]) -> None:
    assert [mention.key for mention in disease_mentions(text)] == named


def test_synonyms_have_one_mark_in_the_memory() -> None:
    assert diagnosis_mark("Osler-Weber-Rendu disease") == diagnosis_mark("Hereditary hemorrhagic telangiectasia")
    assert diagnosis_mark("Mild hemophilia B") != diagnosis_mark("Severe hemophilia B")
