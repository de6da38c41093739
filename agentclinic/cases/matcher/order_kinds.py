"""What kind of thing a part of an order names: something measured, a place, a fluid."""

from __future__ import annotations

from dataclasses import replace

from agentclinic import lazy
from agentclinic.cases.matcher.order_words import Reading, american, sets, vocabulary
from agentclinic.vocabulary.text import words

TAKEN = frozenset(
    ("culture", "biopsy", "histopathology", "cytology", "microscopy", "pcr", "serology", "gram stain", "acid fast",
     "smear", "mycobacterial culture", "fungal culture", "viral culture",
     "fine needle aspiration", "immunofluorescence", "immunohistochemistry")
)  # fmt: skip
"""Tests of a specimen; the rest of the order says where it was taken from."""
METHODS = frozenset({"serology", "pcr"})
"""How germs are looked for."""
PUNCTURED = frozenset({"csf", "pleural", "synovial", "ascitic", "pericardial", "bronchial"})
"""Fluids that are taken once for everything that follows in an order."""
NOTHING: frozenset[str] = frozenset()
GERMS = sets().germs
"""Germs that are looked for together, by the same method in the same specimen."""
CLASSES = frozenset({"igg", "iga", "igm", "ige"})
"""Classes of immunoglobulins."""
SEEN_ANYWHERE = frozenset({"wound", "lesion", "vesicle", "soft tissue"})
"""Findings that are read as places, and may be at any place."""
EXAM = lazy.regex(r"\b(?:exam\w*|otoscop\w*|rhinoscop\w*|physical|palpat\w*|inspect\w*|auscultat\w*|percuss\w*)\b")
EXAM_OF = lazy.regex(r"\w exam\w*$")
EXAM_OF_PLACE = lazy.regex(r"\bexam\w* of\b")
LABORATORY = lazy.regex(r"\b(?:labs?|laborator(?:y|ies)|blood ?works?|bloods|blood (?:tests?|stud(?:y|ies)))\b")
"""An order that names nothing else asks for everything measured in blood."""
ALL_OF_IT = lazy.regex(r"\b(?:full|complete|comprehensive|thorough|detailed|entire|whole)\b")
MEASURED = ("values", "panels", "tests", "modalities")
"""Kinds of concept that a test is read as; the others are examined."""


def is_measured(read: Reading) -> bool:
    """Whether something read is a test rather than an examination."""
    return any(read.of(kind) for kind in MEASURED)


def only_sites(read: Reading) -> bool:
    """Whether nothing but places was read."""
    return set(read.by_kind) == {"sites"} and not read.words


def is_sign(text: str) -> bool:
    """Whether the words of a text are one name of a part of an examination."""
    return any(kind == "parts" for kind, _ in vocabulary().named.get(words(american(text)), ()))


def systems_of(read: Reading) -> frozenset[str]:
    """The systems that are named, and those whose examination covers the places that are named."""
    return read.of("systems").union(*(vocabulary().examined[site] for site in read.of("sites")))


def is_taken(read: Reading) -> bool:
    """Whether a specimen, or the place that it is taken from, is named."""
    return bool(read.of("sites") or read.of("specimens"))


def is_fluid(read: Reading) -> bool:
    """Whether an item only names a fluid: "fecal" is also the name of everything about the stool."""
    taken = read.of("specimens") - PUNCTURED
    return bool(taken) and all(name in vocabulary().fluids for name, _ in read.phrases) and not read.words


_OF_ONE_VALUE = frozenset({"surface antigen", "core antibody", "surface antibody", "e antigen"})
"""Qualifiers that say nothing about the items that follow: "HBsAg, creatinine"."""


def only_of(read: Reading | None, *kinds: str) -> Reading | None:
    """What was read of some kinds of concept, without what qualifies one value alone."""
    if read is None:
        return None
    named = {kind: read.of(kind) - (_OF_ONE_VALUE if kind == "qualifiers" else frozenset()) for kind in kinds}
    return Reading(
        {kind: concepts for kind, concepts in named.items() if concepts},
        tuple((name, concepts) for name, concepts in read.phrases if {kind for kind, _ in concepts} <= set(kinds)),
    )


def without_kind(read: Reading, kind: str) -> Reading:
    """What was read of all other kinds of concept."""
    return replace(read, by_kind={other: named for other, named in read.by_kind.items() if other != kind})
