"""What a test costs by its name: our table of tests, and an estimate for what the table lacks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from statistics import median

from agentclinic.cases.matcher.order_kinds import EXAM, MEASURED
from agentclinic.cases.matcher.order_words import reading, vocabulary
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.settings import bedside
from agentclinic.vocabulary.tests import Test
from agentclinic.vocabulary.text import fold


@lru_cache(maxsize=4096)
def priced_test(name: str) -> Test | None:
    """The test of this name, or the first test named in it; None if the knowledge base does not know it."""
    if exact := _by_name().get(fold(name)):
        return exact
    found = knowledge().test_names.find(name)
    return knowledge().tests[found[0].key] if found else None


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Test]:
    return {fold(test.name): test for test in knowledge().tests.values()}


@lru_cache(maxsize=4096)
def estimate(name: str) -> float:
    """The price of a test that our table lacks: the middle of those of its kind; nothing for an examination.

    An image is compared with images made in the same way, a panel costs as much as its values, a value as much as the
    cheapest panel that has it, and anything else is compared with the tests of its category.
    """
    read = reading(name)
    if not any(read.of(kind) for kind in MEASURED):
        examined = read.by_kind or EXAM.search(name)
        return 0.0 if examined else _middle("laboratory")
    if read.of("tests") and read.of("tests") <= bedside():
        return 0.0
    if read.of("modalities"):
        tests = knowledge().tests.values()
        alike = [test.price.usd for test in tests if reading(test.name).of("modalities") & read.of("modalities")]
        return round(median(alike)) if alike else _middle("imaging")
    for category, named in _CATEGORIES.items():
        if read.of("tests") & named:
            return _middle(category)
    panels = vocabulary().panels
    within = [
        test.price.usd
        for panel, one in panels.items()
        if read.of("values") and read.of("values") <= one.values and {one.specimen} <= {None, *read.of("specimens")}
        if (test := priced_test(panel))
    ]
    if within:
        return min(within)
    if read.of("panels"):
        values = sorted(frozenset().union(*(panels[panel].values for panel in read.of("panels"))))
        parts = {test.id if (test := priced_test(value)) else value: test for value in values}
        together = sum(test.price.usd if test else _middle("laboratory") for test in parts.values())
        return max(together, _middle("laboratory"))
    return _middle("laboratory")


@lru_cache(maxsize=16)
def _middle(category: str) -> float:
    return round(median(test.price.usd for test in knowledge().tests.values() if test.category == category))


_CATEGORIES: Mapping[str, frozenset[str]] = {
    "endoscopy": frozenset(
        ("upper endoscopy", "colonoscopy", "sigmoidoscopy", "anoscopy", "endoscopy", "capsule endoscopy",
         "endoscopic ultrasound", "ercp", "bronchoscopy", "cystoscopy", "hysteroscopy", "colposcopy", "laparoscopy",
         "arthroscopy", "mediastinoscopy", "thoracoscopy", "laryngoscopy")
    ),
    "pathology": frozenset(
        ("biopsy", "fine needle aspiration", "histopathology", "cytology", "immunofluorescence",
         "immunohistochemistry", "bone marrow", "genetic", "karyotype", "fish", "microarray")
    ),
    "microbiology": frozenset(
        ("culture", "swab", "smear", "gram stain", "acid fast", "mycobacterial culture", "fungal culture",
         "viral culture", "pcr", "serology", "microscopy")
    ),
    "neurophysiology": frozenset(
        ("eeg", "emg", "nerve conduction", "electrodiagnostic", "evoked potentials", "polysomnography")
    ),
    "cardiac": frozenset(("holter", "stress test", "tilt table", "cardiac catheterization", "electrophysiology study")),
}  # fmt: skip
"""Tests of the table by the category that their price is taken from; all others are priced like laboratory tests."""
