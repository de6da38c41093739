"""The part of the knowledge base that was frozen before the cases were written.

Diseases, priors, modifiers, likelihoods with their ranges, and leak probabilities are frozen by hash; names, terms, lay
words and equivalents may change. `python -m agentclinic.vocabulary.freeze` prints the current hash.
"""

from __future__ import annotations

import hashlib
import json

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


if __name__ == "__main__":
    import sys

    sys.stdout.write(digest(knowledge()) + "\n")
