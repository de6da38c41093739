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
# "Non" belongs to the word it denies: a non-productive cough is not a productive one.
_WORD = re.compile(r"(?:non )?[^\W_]+(?:\.\d+)?")
_ABBREVIATIONS = r"(?<!\b(?:Dr|St|vs|Mr)\.)(?<!\bMrs\.)(?<!\b(?:e\.g|i\.e)\.)"
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
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")) and not word.endswith("aches"):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, folded and in the singular."""
    return tuple(singular(word.replace(" ", "")) for word in _WORD.findall(fold(text)))


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


_NEGATIONS = frozenset({"no", "deny", "denied", "denying", "without", "neither", "nor"})
"""Negate all that follows in the clause: "no fever, chills or sweats"."""
_PHRASE_NEGATIONS = (("negative", "for"), ("absence", "of"), ("free", "of"))
_NEAR_NEGATIONS = (("ruled", "out"), ("rule", "out"))
"""Negate what follows up to the next comma, as "absent" does at the beginning of a part: "absent reflexes"."""
_SHORT_NEGATIONS = frozenset(
    "not never havent hasnt hadnt dont doesnt didnt isnt arent wasnt werent cannot cant".split()
)
"""Negate what follows at once: "I have not noticed any swelling, and it hurts"."""
_SHORT_REACH = 6
_DENIED_AFTER = frozenset({"absent", "none", "negative", "denied", "excluded", "unlikely"})
"""Right after a phrase they negate it: "rebound tenderness absent", "Murmurs: none"."""
_NOT_THERE = frozenset("seen present noted detected found identified observed demonstrated evident appreciated".split())
_LINKING = frozenset({"is", "are", "was", "were", "has", "have", "been"})
_RESUMES = frozenset(
    "has have had he she i it they there is was are with patient present presented presenting now complain "
    "consistent compatible suggestive suggesting indicative indicating concerning".split()
)
"""After a comma they begin a statement that an earlier negation does not reach: "no fever, has chills"."""
# Where a negation cannot reach across: the end of a sentence, or a word that turns to what is there.
_CLAUSE_END = re.compile(
    r"(?<!\d)\.(?!\d)|[;!?\n]|\.(?=\s)"
    r"|\b(?:but|however|though|although|except|(?<!\bno )(?<!without )reports?|endorses?|admits?"
    r"|positive for|notable for)\b",
    re.IGNORECASE,
)
_COMMA = re.compile(r",(?!\d)")


@dataclass(frozen=True)
class Clause:
    """A stretch of text with which of its words are negated."""

    words: tuple[str, ...]
    negated: tuple[bool, ...]
    breaks: frozenset[int]
    """Places of the words that follow a comma."""

    def denied_after(self, end: int) -> bool:
        """Whether what follows the phrase that ends here denies it: "was ruled out", "not seen", ": none"."""
        while end < len(self.words) and end not in self.breaks and self.words[end] in _LINKING:
            end += 1
        if end >= len(self.words) or end in self.breaks:
            return False
        first, second = self.words[end], self.words[end + 1] if end + 1 < len(self.words) else ""
        closes = end + 1 == len(self.words) or end + 1 in self.breaks
        return (
            (first in _DENIED_AFTER and second not in ("for", "of"))
            or (first == "no" and closes)
            or (first, second) == ("ruled", "out")
            or (first == "not" and second in _NOT_THERE)
        )


@lru_cache(maxsize=16384)
def clauses(text: str) -> tuple[Clause, ...]:
    """Cut a text where a negation cannot reach across, and mark what is negated in each part."""
    return tuple(clause for part in _CLAUSE_END.split(text) if (clause := _clause(part)).words)


def _clause(part: str) -> Clause:
    tokens: tuple[str, ...] = ()
    breaks = set()
    for piece in _COMMA.split(part):
        breaks.add(len(tokens))
        tokens += words(piece)
    places = frozenset(breaks - {0})
    return Clause(tokens, _negated(tokens, places), places)


def _negated(tokens: tuple[str, ...], breaks: frozenset[int]) -> tuple[bool, ...]:
    marks: list[bool] = []
    reach = near = 0
    for index, token in enumerate(tokens):
        if index in breaks:
            near = 0
            if _resumes(tokens[index : index + 2]):
                reach = 0
        marks.append(reach > 0 or near > 0)
        reach -= 1
        pair = tokens[index : index + 2]
        if token in _NEGATIONS or pair in _PHRASE_NEGATIONS:
            # "No, a cough" answers a question; it does not deny the cough.
            reach = 0 if token == "no" and index + 1 in breaks else len(tokens)
        elif pair in _NEAR_NEGATIONS or (token == "absent" and (index == 0 or index in breaks)):
            near = 1
        elif token in _SHORT_NEGATIONS:
            reach = max(reach, _SHORT_REACH)
    return tuple(marks)


def _resumes(pair: tuple[str, ...]) -> bool:
    return pair[0] in _RESUMES or (pair[0] == "and" and pair[-1] in _RESUMES)


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
                        found.append(Mention(key, tokens, clause.negated[index] or clause.denied_after(end)))
                        taken = len(tokens)
                        step = max(step, len(tokens)) if longest_only else 1
                index += step
        return found
