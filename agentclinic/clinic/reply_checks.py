"""Checking a patient model's words against the facts it may use.

Code decides exactly whose words they are, which numbers and diseases they name, and whether they affirm what the facts
deny. Nothing here depends on the true diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentclinic.results import utterance
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.denial import answers_yes, has_denying_word
from agentclinic.vocabulary.disease_names import disease_mentions
from agentclinic.vocabulary.numbers import KnownNumbers, numbers
from agentclinic.vocabulary.text import words

NUMBER = "number"
DISEASE = "disease"
POLARITY = "polarity"
WITHHELD = "withheld"


@dataclass(frozen=True)
class Problem:
    """One thing that a patient's words must not do."""

    kind: str
    message: str
    """For the model."""


KEPT_BACK = Problem(WITHHELD, "you told something that you tell only in private, or only when asked about it directly")
_PATIENT = "patient|caregiver|mother|father|parent|me|assistant|answer|reply"
_NOT_THE_PATIENT = "doctor|physician|dr|measurement|laboratory|results|nurse|system|user"


def own_words(raw: str) -> tuple[str, list[str]]:
    """A patient's own words, without a label, other speakers' lines or quotation marks, and what slips were in them."""
    text, slips = utterance.own_words(raw, _PATIENT, _NOT_THE_PATIENT)
    return text.strip('"').strip(), slips


def problems(said: str, facts: Iterable[str], question: str, *, silent: bool = False) -> list[Problem]:
    """What is wrong with the words, given the facts they may use; `silent` if the answer is no or not known."""
    if not said:
        return [Problem(utterance.EMPTY, "you said nothing")]
    allowed = [*facts, question]
    found = []
    known = KnownNumbers(allowed)
    invented = dict.fromkeys(number.text for number in numbers(said) if not known.has(number))
    if invented:
        found.append(Problem(NUMBER, f"you named a number that you do not know ({', '.join(invented)})"))
    named = diseases_beyond(said, allowed)
    if named:
        found.append(Problem(DISEASE, f"you named an illness that you do not know of ({', '.join(sorted(named))})"))
    if silent and (answers_yes(said) or not (has_denying_word(said) or _UNSURE.search(said))):
        found.append(Problem(POLARITY, "you said yes where the answer is no or not known"))
    return found


_TOO_WIDE = frozenset({"medical condition", "diagnosed illness", "childhood illness", "infectious disease"})
"""Not the names of particular diseases."""
_UNSURE = re.compile(
    r"\b(?:unsure|uncertain|unaware|cannot|nothing|nobody|no one|examine|what do you mean|another way|rephrase"
    r"|couldn|rather|everything|all right|that['’]?s all|much to (?:tell|say))\b",
    re.IGNORECASE,
)
"""Other ways to avoid a yes, besides the words that deny (`vocabulary.denial`)."""


def diseases_beyond(said: str, allowed: Sequence[str]) -> frozenset[str]:
    """The diseases that a text names and the allowed texts do not, even by a narrower name.

    Names that are also complaints, such as migraine, do not count.
    """
    known = {kind for text in allowed for name in _concepts(text) for kind in lexicon.kinds(name)} | _TOO_WIDE
    keys = {mention.key for text in allowed for mention in disease_mentions(text)}
    there = {word for text in allowed for word in words(text)}
    by_name = {
        mention.key
        for mention in disease_mentions(said)
        if mention.key not in keys
        and not there.issuperset(mention.words)
        and not (_concepts(" ".join(mention.words)) & known)
    }
    return frozenset(by_name or _concepts(said) - known)


def _concepts(text: str) -> frozenset[str]:
    named = (hit.concept for hit in lexicon.found(text) if hit.concept.type == "disease")
    return frozenset(concept.name for concept in named if not lexicon.complaints(concept.name))
