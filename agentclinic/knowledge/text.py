"""Reading medical prose: words, sentences, phrases as whole words, and what is negated."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

# Apostrophes vanish (Crohn's = Crohns), dashes and underscores become spaces (X-ray = X_ray = X ray).
_SPLITTERS = str.maketrans(
    {"_": " ", "-": " ", "‑": " ", "–": " ", "—": " ", "/": " ", "'": None, "’": None, "`": None}
)
_WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
_ABBREVIATIONS = r"(?<!\b[A-Za-z])(?<!\b(?:Dr|St|vs|no|Mr))(?<!\b(?:Mrs|e\.g|i\.e|etc))"
_SENTENCE_END = re.compile(rf"{_ABBREVIATIONS}(?<=[.!?])\s+(?=[A-Z0-9\"“(])|\n+")


@lru_cache(maxsize=65536)
def fold(text: str) -> str:
    """Lower case, compatibility forms and accents folded, separators made spaces, blanks collapsed."""
    plain = text
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text)
        plain = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(plain.lower().translate(_SPLITTERS).split())


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """A crude stem: plural and possessive endings removed, so that 'chills' meets 'chill'."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, folded and in the singular."""
    return tuple(singular(word) for word in _WORD.findall(fold(text)))


def sentences(text: str) -> list[str]:
    """Split prose into sentences."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


STOP_WORDS = frozenset(
    "a an and any are as at be been by did do does for from had has have having her his how i if in into is it "
    "its me my of on or our over she he so some than that the their them then there these they this those to up "
    "us was we were what when where which who why will with would you your about also am can could ever get may "
    "more most much not no other out recent recently like please tell describe experienced experiencing "
    "experience notice noticed feel feeling felt patient symptom symptoms report reports reported".split()
)


def content_words(text: str) -> frozenset[str]:
    """The words of a text that carry meaning."""
    return frozenset(word for word in words(text) if word not in STOP_WORDS and singular(word) not in STOP_WORDS)


_NEGATIONS = frozenset({"no", "deny", "denie", "denied", "denying", "without", "neither", "nor", "absent"})
"""Negate all that follows in the clause: "no fever, chills or sweats"."""
_PHRASE_NEGATIONS = (
    ("negative", "for"),
    ("absence", "of"),
    ("free", "of"),
    ("ruled", "out"),
    ("rule", "out"),
)
_SHORT_NEGATIONS = frozenset(
    "not never havent hasnt hadnt dont doesnt didnt isnt arent wasnt werent cannot cant".split()
)
"""Negate what follows at once: "I have not noticed any swelling, and it hurts"."""
_SHORT_REACH = 6
_NEGATED_AFTER = frozenset({"absent", "none", "negative", "denied", "no"})
"""Right after a phrase they negate it: "rebound tenderness absent", "Murmurs: none"."""
# Where a negation cannot reach across: the end of a sentence, or a word that turns to what is there.
_CLAUSE_END = re.compile(
    r"(?<!\d)\.(?!\d)|[;!?\n]|\.(?=\s)"
    r"|\b(?:but|however|though|although|except|reports?|endorses?|admits?|positive for|notable for)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Clause:
    """A stretch of text with which of its words are negated."""

    words: tuple[str, ...]
    negated: tuple[bool, ...]


@lru_cache(maxsize=16384)
def clauses(text: str) -> tuple[Clause, ...]:
    """Cut a text where a negation cannot reach across, and mark what is negated in each part."""
    parts = (words(part) for part in _CLAUSE_END.split(text))
    return tuple(Clause(tokens, _negated(tokens)) for tokens in parts if tokens)


def _negated(tokens: tuple[str, ...]) -> tuple[bool, ...]:
    marks: list[bool] = []
    reach = 0
    for index, token in enumerate(tokens):
        marks.append(reach > 0)
        reach -= 1
        if token in _NEGATIONS or tokens[index : index + 2] in _PHRASE_NEGATIONS:
            reach = len(tokens)
        elif token in _SHORT_NEGATIONS:
            reach = max(reach, _SHORT_REACH)
    return tuple(marks)


@dataclass(frozen=True)
class Mention:
    """A phrase found in a text."""

    key: str
    words: tuple[str, ...]
    negated: bool


class Phrasebook:
    """Finds many phrases in a text at once, as whole words, longest first."""

    def __init__(self, phrases: Mapping[str, Iterable[str]]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for key, variants in phrases.items():
            for variant in variants:
                tokens = words(variant)
                if tokens:
                    self._by_first.setdefault(tokens[0], []).append((tokens, key))
        for entries in self._by_first.values():
            entries.sort(key=lambda entry: -len(entry[0]))

    def find(self, text: str, *, longest_only: bool = True) -> list[Mention]:
        """Every phrase that stands in the text, with whether it is negated.

        With `longest_only`, a phrase inside a longer one found at the same place is left out.
        """
        found: list[Mention] = []
        for clause in clauses(text):
            index = 0
            while index < len(clause.words):
                step = 1
                taken = 0
                for tokens, key in self._by_first.get(clause.words[index], ()):
                    if len(tokens) < taken and longest_only:
                        break
                    end = index + len(tokens)
                    if clause.words[index:end] == tokens:
                        after = clause.words[end : end + 1]
                        negated = clause.negated[index] or bool(after and after[0] in _NEGATED_AFTER)
                        found.append(Mention(key, tokens, negated))
                        taken = len(tokens)
                        step = max(step, len(tokens)) if longest_only else 1
                index += step
        return found
