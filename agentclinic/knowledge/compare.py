"""How one diagnosis stands to another, by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import clauses, words


class Relation(StrEnum):
    """What a doctor's diagnosis is to the truth."""

    SAME = "same"
    NARROWER_CONSISTENT = "narrower_consistent"
    NARROWER_UNSUPPORTED = "narrower_unsupported"
    BROADER = "broader"
    MANIFESTATION = "manifestation_or_complication"
    SIBLING = "sibling"
    DIFFERENT = "different"
    HEDGED = "hedged"


STRICT = frozenset({Relation.SAME, Relation.NARROWER_CONSISTENT})
"""Relations that count as right."""


@dataclass(frozen=True)
class Compared:
    """A relation and why."""

    relation: Relation
    reason: str
    allowed: bool = False
    """The case's answer key accepts it in part: right by the lenient rule."""


# Words that place or grade a disease without making it another one.
_QUALIFIERS = frozenset(
    "acute chronic subacute active severe mild moderate left right bilateral unilateral upper lower anterior "
    "posterior recurrent uncomplicated complicated classic typical likely probable suspected presumed new onset "
    "idiopathic primary stage grade confirmed consistent with most due to secondary of the a an in and".split()
)
# Acute and chronic are different diseases where both exist; they only may be left out, not swapped.
_OPPOSITES = (
    ("acute", "chronic"), ("primary", "secondary"), ("type 1", "type 2"), ("left", "right"),
    ("hyper", "hypo"), ("benign", "malignant"), ("obstructive", "restrictive"), ("ischemic", "hemorrhagic"),
)  # fmt: skip
_GENERIC = frozenset("disease syndrome disorder condition infection illness".split())
_HEDGE = re.compile(r"\b(?:or|versus|vs\.?|either)\b|\bdifferential\b|(?<=[a-z])\s*/\s*(?=[a-z])", re.IGNORECASE)
_TAIL = re.compile(
    r"\s*(?:,|;|\.\s|\s[-–—]\s|:\s|\bwith\b|\bdue to\b|\bsecondary to\b|\bcaused by\b|\bcomplicated by\b"
    r"|\bassociated with\b|\bin the setting of\b|\bbecause\b|\bpresenting\b|\bbased on\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_LEAD = re.compile(
    r"^(?:the |my |a |an |final |primary |principal |most likely |likely |probable |suspected |presumed |working )*"
    r"(?:diagnosis(?: is| of)?[:\s]+)?",
    re.IGNORECASE,
)


def compare(
    diagnosis: str,
    truth: str,
    accept: tuple[str, ...] = (),
    partial: tuple[str, ...] = (),
    reject: tuple[tuple[str, str], ...] = (),
) -> Compared:
    """The relation of a diagnosis to the truth; a case's answer key decides where it speaks."""
    principal = principal_diagnosis(diagnosis)
    if not words(principal):
        return Compared(Relation.DIFFERENT, "no diagnosis was named")
    for name, reason in reject:
        if _same(principal, name):
            return Compared(Relation.DIFFERENT, f"rejected by the answer key: {reason}")
    for name in (truth, *accept):
        if _same(diagnosis, name) or _same(principal, name):
            return Compared(Relation.SAME, f"the same as {name!r}")
    if _HEDGE.search(re.sub(r"\([^)]*\)", "", principal)):
        return Compared(Relation.HEDGED, "names alternatives instead of one diagnosis")
    if any(any(clause.negated) for clause in clauses(principal)) or re.search(r"\bnon-?\s?\w", principal, re.I):
        return Compared(Relation.DIFFERENT, "denies rather than names")
    for name in partial:
        if _same(principal, name):
            return Compared(Relation.BROADER, f"partly right by the answer key: {name!r}", allowed=True)
    return _by_words(principal, truth)


def principal_diagnosis(text: str) -> str:
    """The first-named diagnosis, without lead-in and without what is said about it."""
    text = _LEAD.sub("", text.strip().strip("*_`\"'."))
    return (_TAIL.sub("", text) or text).strip(" .*_")


def _forms(name: str) -> set[tuple[str, ...]]:
    """A name's sorted words: as it stands, without brackets, and what the brackets hold."""
    outside = re.sub(r"\s*\([^)]*\)", " ", name)
    variants = [name, outside, *re.findall(r"\(([^)]{2,})\)", name)]
    return {tuple(sorted(words(variant))) for variant in variants if words(variant)}


def _same(left: str, right: str) -> bool:
    if _forms(left) & _forms(right):
        return True
    one = knowledge().disease_named(re.sub(r"\s*\([^)]*\)", "", left))
    other = knowledge().disease_named(re.sub(r"\s*\([^)]*\)", "", right))
    return one is not None and one is other


def _by_words(diagnosis: str, truth: str) -> Compared:
    said, meant = set(words(diagnosis)), set(words(truth))
    for one, other in _OPPOSITES:
        left, right = set(one.split()), set(other.split())
        if (left <= said and right <= meant and not left <= meant) or (
            right <= said and left <= meant and not right <= meant
        ):
            return Compared(Relation.SIBLING, f"{one} is not {other}")
    core_said, core_meant = said - _QUALIFIERS, meant - _QUALIFIERS
    specific = core_meant - _GENERIC
    if core_said - _GENERIC == specific and specific:
        missing = (meant - said) & {"acute", "chronic"}
        if missing:
            return Compared(Relation.BROADER, f"leaves open whether it is {' '.join(sorted(missing))}")
        return Compared(Relation.SAME, "the same but for qualifiers")
    if len(specific) > 1 and specific < core_said:
        return Compared(Relation.NARROWER_CONSISTENT, "names the disease and more precisely")
    if core_said - _GENERIC and core_said - _GENERIC < specific:
        return Compared(Relation.BROADER, "leaves out what makes the diagnosis specific")
    return Compared(Relation.DIFFERENT, "names another disease")
