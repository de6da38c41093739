"""The knowledge base was frozen before the cases were written, and has not changed since."""

from __future__ import annotations

from dataclasses import replace

from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.freeze import FROZEN, digest


def test_diseases_priors_and_likelihoods_are_what_was_frozen() -> None:
    assert digest(knowledge()) == FROZEN


def test_a_changed_likelihood_changes_the_hash_and_a_new_synonym_does_not() -> None:
    known = knowledge()
    disease = known.diseases["gout"]
    link = replace(disease.links[0], p=disease.links[0].p / 2)
    moved = replace(known, diseases={**known.diseases, "gout": replace(disease, links=(link, *disease.links[1:]))})
    named = replace(known, diseases={**known.diseases, "gout": replace(disease, synonyms=("podagra!",))})
    assert digest(moved) != FROZEN
    assert digest(named) == FROZEN
