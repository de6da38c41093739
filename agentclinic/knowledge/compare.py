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
    "idiopathic primary stage grade confirmed consistent with most due to secondary of the a an in and mellitus "
    "by from".split()
)
# One of these in place of another makes a sibling: either may be left out, none may be swapped.
_ALTERNATIVES = tuple(
    frozenset(line.split())
    for line in (
        "acute chronic subacute", "primary secondary", "left right", "upper lower", "anterior posterior",
        "proximal distal", "benign malignant", "obstructive restrictive", "ischemic hemorrhagic",
        "systolic diastolic", "stable unstable", "active latent", "viral bacterial fungal", "central nephrogenic",
        "a b c d e", "1 2 3 4", "i ii iii iv", "hodgkin nonhodgkin", "small nonsmall",
        "complicated uncomplicated", "open closed", "internal external", "mellitus insipidus",
    )
)  # fmt: skip
_GENERIC = frozenset("disease syndrome disorder condition infection illness".split())
# With one of these a text speaks of the disease without saying that the patient has it now.
_NOT_IT = frozenset("history risk screening prophylaxis vaccination mimic exposure post status".split())
_HEDGE = re.compile(
    r"^[^,;.\n]*?(?:,?\s+(?:or|versus|vs\.?)\s|\beither\b|\bdifferential\b|(?<=[a-z])\s*/\s*(?=[a-z]))",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s*(?:,|;|\.\s|\n|\s[-–—]\s|:\s|\bwith\b|\bwithout\b|\bdue to\b|\bsecondary to\b|\bcaused by\b"
    r"|\bcomplicated by\b|\bassociated with\b|\bin the setting of\b|\bbecause\b|\bpresenting\b|\bbased on\b"
    r"|\bgiven\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_LEAD = re.compile(
    r"^(?:diagnosis ready\W+)?(?:\d{1,2}[.)]\s+)?"
    r"(?:the |my |a |an |final |principal |most likely |likely |probable |suspected |presumed |working "
    r"|primary (?=diagnosis))*(?:diagnosis(?: is| of)?[:\s]+)?(?:\d{1,2}[.)]\s+)?",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[*`#]+|(?<!\w)_+|_+(?!\w)")


def compare(
    diagnosis: str,
    truth: str,
    accept: tuple[str, ...] = (),
    partial: tuple[str, ...] = (),
    reject: tuple[tuple[str, str], ...] = (),
) -> Compared:
    """The relation of a diagnosis to the truth; a case's answer key decides where it speaks."""
    said = _LEAD.sub("", _MARKUP.sub("", diagnosis).strip(" \n\"'."))
    principal = principal_diagnosis(diagnosis)
    if not words(principal):
        return Compared(Relation.DIFFERENT, "no diagnosis was named")
    for name, reason in reject:
        if _same(said, name) or _same(principal, name):
            return Compared(Relation.DIFFERENT, f"rejected by the answer key: {reason}")
    if any(_same(said, name) for name in (truth, *accept)):
        return Compared(Relation.SAME, "the same name")
    if _HEDGE.search(_outside(said)):
        return Compared(Relation.HEDGED, "names alternatives instead of one diagnosis")
    if _denied(principal):
        return Compared(Relation.DIFFERENT, "denies rather than names")
    for name in partial:
        if _same(principal, name):
            return Compared(Relation.BROADER, f"partly right by the answer key: {name!r}", allowed=True)
    return min((_related(said, principal, name) for name in (truth, *accept)), key=lambda c: _CLOSEST.index(c.relation))


_CLOSEST = list(Relation)


def principal_diagnosis(text: str) -> str:
    """The first-named diagnosis, without lead-in and without what is said about it."""
    text = _LEAD.sub("", _MARKUP.sub("", text).strip(" \n\"'."))
    return (_TAIL.sub("", text) or text).strip(" .")


def _outside(name: str) -> str:
    return re.sub(r"\s*\([^)]*\)", " ", name).strip()


def _denied(text: str) -> bool:
    return any(
        any(clause.negated) or any(clause.denied_after(end) for end in range(1, len(clause.words)))
        for clause in clauses(text)
    )


def _forms(name: str) -> set[tuple[str, ...]]:
    """A name's sorted words: as it stands, without brackets, and what the brackets hold."""
    variants = [name, _outside(name), *re.findall(r"\(([^)]{2,})\)", name)]
    return {tuple(sorted(_spelled(variant))) for variant in variants if words(variant)}


def _spelled(text: str) -> tuple[str, ...]:
    """Words in one spelling: British and American are the same disease."""
    return tuple(word.replace("ae", "e").replace("oe", "e").replace("our", "or") for word in words(text))


def _same(left: str, right: str) -> bool:
    if _forms(left) & _forms(right):
        return True
    one, other = knowledge().disease_named(_outside(left)), knowledge().disease_named(_outside(right))
    return one is not None and one is other


def _canonical(text: str) -> tuple[str, ...]:
    """The words of a name in order, a known disease's synonym replaced by its name ("severe DKA")."""
    spelled = " ".join(_spelled(_outside(text)))
    for mention in knowledge().disease_names.find(_outside(text)):
        synonym = " ".join(_spelled(" ".join(mention.words)))
        name = " ".join(_spelled(knowledge().diseases[mention.key].name))
        spelled = re.sub(rf"\b{re.escape(synonym)}\b", name, spelled, count=1)
    return tuple(spelled.split())


def _related(said: str, principal: str, truth: str) -> Compared:
    """By the principal diagnosis; by all that was said only where that makes it the very same."""
    whole = _by_words(_canonical(said), _canonical(truth))
    return whole if whole.relation is Relation.SAME else _by_words(_canonical(principal), _canonical(truth))


def _by_words(diagnosis: tuple[str, ...], truth: tuple[str, ...]) -> Compared:
    said, meant = set(diagnosis), set(truth)
    swapped = _swapped(said, meant)
    if swapped:
        return Compared(Relation.SIBLING, swapped)
    if (said - meant) & _NOT_IT:
        return Compared(Relation.DIFFERENT, "does not say that the patient has it now")
    specific_said = [word for word in diagnosis if word not in _QUALIFIERS | _GENERIC]
    specific = meant - _QUALIFIERS - _GENERIC
    if not specific or not specific_said:
        return Compared(Relation.DIFFERENT, "names another disease")
    if set(specific_said) == specific:
        missing = (meant - said) & {"acute", "chronic"}
        if missing:
            return Compared(Relation.BROADER, f"leaves open whether it is {' '.join(sorted(missing))}")
        return Compared(Relation.SAME, "the same but for qualifiers")
    # One word alone names the disease only as the last: viral pneumonia is pneumonia, diabetes insipidus no diabetes.
    if specific < set(specific_said) and (len(specific) > 1 or specific_said[-1] in specific):
        return Compared(Relation.NARROWER_CONSISTENT, "names the disease and more precisely")
    if set(specific_said) < specific:
        return Compared(Relation.BROADER, "leaves out what makes the diagnosis specific")
    return Compared(Relation.DIFFERENT, "names another disease")


def _swapped(said: set[str], meant: set[str]) -> str:
    """Which word stands in place of its alternative where the names otherwise speak of one thing."""
    shared = (said & meant) - _GENERIC - _QUALIFIERS
    for one in sorted(said - meant):
        for other in sorted(meant - said):
            if (shared and any({one, other} <= group for group in _ALTERNATIVES)) or _too_much_or_too_little(
                one, other
            ):
                return f"{one} is not {other}"
    return ""


def _too_much_or_too_little(one: str, other: str) -> bool:
    return one.replace("hyper", "hypo") == other.replace("hyper", "hypo")
