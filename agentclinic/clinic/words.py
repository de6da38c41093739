"""Checking a patient model's words against the facts it may use.

Code decides exactly these things: whose words they are, which numbers and diseases they name, and whether they affirm
what the facts deny. Nothing here depends on the true diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import answers_yes, has_denying_word
from agentclinic.vocabulary.name_table import name_table
from agentclinic.vocabulary.phrases import Phrasebook
from agentclinic.vocabulary.text import words

NUMBER = "number"
DISEASE = "disease"
POLARITY = "polarity"
SPEAKER = "other_speaker"
EMPTY = "empty"
MALFORMED = "malformed"
REFUSED = "refused"


@dataclass(frozen=True)
class Problem:
    """One thing that a patient's words must not do."""

    kind: str
    told: str
    """What the model is told about it."""


_LABEL = r"[\s*_#>\[(`\"]*(?:{})[*_\])`\"]*\s*:"
_OWN = re.compile(rf"^{_LABEL.format('patient|caregiver|mother|father|parent|me|assistant|answer|reply')}\s*", re.I)
_OTHERS = "doctor|physician|dr\\.?|measurement|laboratory|results|nurse|patient|system|user"
_OTHER = re.compile(rf"(?:^|\n){_LABEL.format(_OTHERS)}", re.IGNORECASE)


def own_words(raw: str) -> tuple[str, bool]:
    """A patient's own words, without a label and up to the first line of another speaker; whether anything was cut."""
    text = raw.strip()
    text = _OWN.sub("", text, count=1)
    other = _OTHER.search(text)
    return (text[: other.start()].strip(), True) if other else (text.strip().strip('"').strip(), False)


def problems(said: str, facts: Iterable[str], question: str, *, silent: bool = False) -> list[Problem]:
    """What is wrong with the words, given the facts they may use; `silent` if the answer is no or not known."""
    if not said:
        return [Problem(EMPTY, "you said nothing")]
    allowed = [*facts, question]
    found = []
    invented = sorted(numbers(said) - numbers(" ; ".join(allowed)))
    if invented:
        found.append(Problem(NUMBER, f"you named a number that you do not know ({', '.join(invented)})"))
    named = diseases_beyond(said, allowed)
    if named:
        found.append(Problem(DISEASE, f"you named an illness that you do not know of ({', '.join(sorted(named))})"))
    if (silent and not (has_denying_word(said) or _UNSURE.search(said))) or (silent and answers_yes(said)):
        found.append(Problem(POLARITY, "you said yes where the answer is no or not known"))
    return found


_TOO_WIDE = frozenset({"medical condition", "diagnosed illness", "childhood illness", "infectious disease"})
"""Not the name of any one disease."""
_UNSURE = re.compile(
    r"\b(?:unsure|uncertain|unaware|haven't|havent|hasn't|don't|dont|doesn't|didn't|isn't|can't|cannot|couldn't|wasn't"
    r"|never|none|nothing|neither|nobody|without|examine|test that|what do you mean|another way|rephrase)\b",
    re.IGNORECASE,
)
_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_ONES)} | {
    "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30", "forty": "40",
    "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90", "hundred": "100", "dozen": "12",
    "twice": "2", "once": "1", "couple": "2", "half": "0.5",
}  # fmt: skip
_IDIOMS = frozenset({"0", "1", "0.5"})
"""Numbers that English uses without counting: "no one", "one of those", "half the time"."""
_COMPOUND = re.compile(r"\b(twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[\s-]+(\w+)\b")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


def numbers(text: str) -> frozenset[str]:
    """The numbers in a text, written in digits or words, without those that need not count anything."""
    spelled = _COMPOUND.sub(_compound, text.lower())
    found = {_plain(match[0]) for match in _DIGITS.finditer(spelled)}
    found |= {_NUMBER_WORDS[word] for word in re.findall(r"[a-z]+", spelled) if word in _NUMBER_WORDS}
    return frozenset(found - _IDIOMS)


def _plain(digits: str) -> str:
    plain = digits.replace(",", "")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain.lstrip("0") or "0"


def _compound(match: re.Match[str]) -> str:
    ones = _NUMBER_WORDS.get(match[2], "")
    return str(int(_NUMBER_WORDS[match[1]]) + int(ones)) if ones.isdigit() and int(ones) < 10 else match[0]


def diseases_beyond(said: str, allowed: Sequence[str]) -> frozenset[str]:
    """The diseases that a text names and the allowed texts do not, even by a narrower name.

    Names that are also complaints, such as migraine, do not count.
    """
    known = {kind for text in allowed for name in _concepts(text) for kind in lexicon.kinds(name)} | _TOO_WIDE
    keys = {mention.key for text in allowed for mention in _names().find(text)}
    there = {word for text in allowed for word in words(text)}
    by_name = {
        mention.key
        for mention in _names().find(said)
        if mention.key not in keys
        and not there.issuperset(mention.words)
        and not (_concepts(" ".join(mention.words)) & known)
    }
    return frozenset(by_name or _concepts(said) - known)


def _concepts(text: str) -> frozenset[str]:
    """Diseases as our lexicon names them."""
    named = (hit.concept for hit in lexicon.found(text) if hit.concept.type == "disease")
    return frozenset(concept.name for concept in named if not lexicon.complaints(concept.name))


@lru_cache(maxsize=1)
def _names() -> Phrasebook:
    groups = [(disease.name, *disease.synonyms) for disease in knowledge().diseases.values()]
    groups += [tuple(group) for group in name_table().synonyms]
    return Phrasebook({group[0].lower(): [name for name in group if not _everyday(name)] for group in groups})


def _everyday(name: str) -> bool:
    """Whether a patient may say the name of a disease as a complaint, or it is an abbreviation that may mean a word."""
    return len(name) < 4 or bool(lexicon.complaints(name)) or words(name) in _symptoms()


@lru_cache(maxsize=1)
def _symptoms() -> frozenset[tuple[str, ...]]:
    symptoms = (finding for finding in knowledge().findings.values() if finding.kind == "symptom")
    return frozenset(words(name) for finding in symptoms for name in (finding.name, *finding.terms, *finding.lay))
