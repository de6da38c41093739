"""The knowledge base was frozen before the cases were written, and has not changed since.

Diseases, priors, modifiers, likelihoods with their ranges, and leak probabilities are frozen by hash; names, terms, lay
words and equivalents may change.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from agentclinic.vocabulary.base import Knowledge, knowledge

FROZEN = "c2626b2d69c0ec6d2a401832779f16cd64f373daf792d117360bee2eabfecc77"
"""Frozen on 2026-11-15, before the first OpenOSCE case was written."""


def digest(known: Knowledge) -> str:
    """Hash of everything that determines a posterior; names and order do not change it."""
    diseases = {
        d.id: [
            d.prior,
            [[band.min, band.max, band.factor] for band in d.age],
            sorted(d.sex.items()),
            sorted([link.finding, link.p, link.low, link.high, link.group or ""] for link in d.links),
        ]
        for d in known.diseases.values()
    }
    content = {"diseases": diseases, "leaks": {f.id: f.leak for f in known.findings.values()}}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
