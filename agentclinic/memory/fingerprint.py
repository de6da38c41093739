"""A sketch of a chart that recognizes near copies, and nothing else.

The 64 smallest hashes of its runs of three words: the share that two sketches have in common estimates the share that
the charts have in common (bottom-k MinHash), and the words cannot be read back.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import Case
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.names import name
from agentclinic.vocabulary.ontology import usual_name
from agentclinic.vocabulary.taxonomy import taxonomy
from agentclinic.vocabulary.text import words

_SIZE = 64
_RUN = 3
NEAR_COPY = 0.25
SAME_STORY = 0.1
"""Charts that share more than the first are near copies; with the same diagnosis, the second is enough. In the public
files, rewrites of one question share 0.11 to 0.39, all with the same diagnosis, and other cases with the same one at
most 0.06; cases with different diagnoses share at most 0.17 there, and at most 0.22 in OpenOSCE apart from its twins,
which share 0.80 or more (`python benchmarks/memory.py copies`)."""


def fingerprint(case: Case) -> str:
    """The sketch, in hexadecimal."""
    tokens = words(chart_text(case.facts))
    runs = {tokens[start : start + _RUN] for start in range(max(1, len(tokens) - _RUN + 1))}
    hashes = sorted(hashlib.blake2b(" ".join(run).encode(), digest_size=4).hexdigest() for run in runs)
    return "".join(hashes[:_SIZE])


def overlap(left: str, right: str) -> float:
    """About the share of all runs of words in two charts that both have."""
    first, second = hashes(left), hashes(right)
    both = first & second
    smallest = sorted(first | second)[:_SIZE]
    return sum(each in both for each in smallest) / len(smallest) if both else 0.0


def diagnosis_mark(diagnosis: str) -> str:
    """A hash of a diagnosis, the same for its synonyms: it shows whether two are the same, without naming them."""
    known = knowledge().disease_named(diagnosis)
    # A name that our tables lack counts as the usual public one, whose mark stays what it was.
    usual = None if known or taxonomy().has(name(diagnosis)) else usual_name(diagnosis)
    key = known.id if known else " ".join(sorted(name(usual or diagnosis).key))
    return hashlib.sha256(f"diagnosis:{key}".encode()).hexdigest()[:12]


def hashes(sketch: str) -> set[int]:
    return set(numbers(sketch).tolist())


def numbers(sketch: str) -> NDArray[np.uint32]:
    """The same hashes as an array."""
    return np.frombuffer(bytes.fromhex(sketch), dtype=">u4").astype(np.uint32)
