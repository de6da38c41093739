"""Words and sentences of medical prose, folded so that spellings of one word compare equal."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from agentclinic import lazy

# Apostrophes are dropped (Crohn's = Crohns); dashes and underscores become spaces (X-ray = X_ray = X ray).
_SPLITTERS = str.maketrans(
    {"_": " ", "-": " ", "‑": " ", "–": " ", "—": " ", "/": " ", "'": None, "’": None, "`": None}
)
# The same for text in ASCII, as bytes, which is several times faster: what is dropped, and the table for the rest.
_DROPPED = b"'`"
_FOLDED = bytes.maketrans(b"_-/", b"   ")
# What is no letter and no digit is not part of a word.
_APART = bytes(code if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)
# "Non" belongs to its word: a non-productive cough is not productive.
_WORD = lazy.regex(r"(?:non )?[^\W_]+(?:\.\d+)?")
_ABBREVIATIONS = r"(?<!\b(?:Dr|St|vs|Mr)\.)(?<!\bMrs\.)(?<!\b(?:e\.g|i\.e)\.)"
_SENTENCE_END = lazy.regex(rf"{_ABBREVIATIONS}(?<=[.!?])\s+(?=[A-Z0-9\"“(])|\n+")


LONGEST_NAME = 2000
"""Characters of a diagnosis or an order that are read. The longest diagnosis we have labeled has 253; anything longer
than this is an essay or a loop, and the name comes first."""
_RUN = lazy.regex(r"\s{2,}")


def tidy(text: str) -> str:
    """Each run of whitespace as one space, or as one line break if it has any.

    Patterns that allow whitespace in several places take quadratic time on a long run of it.
    """
    return _RUN.sub(lambda run: "\n" if "\n" in run[0] else " ", text)


@lru_cache(maxsize=65536)
def fold(text: str) -> str:
    """Lower the case, strip accents, and turn separators and runs of whitespace into single spaces."""
    if text.isascii():
        return " ".join(text.encode().lower().translate(_FOLDED, _DROPPED).decode().split())
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return " ".join(plain.lower().translate(_SPLITTERS).split())


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """A crude stem: plural endings removed, so that "chills" equals "chill"."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")) and not word.endswith("aches"):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    if text.isascii() and "." not in text:  # as most clauses are: no pattern is needed
        found = text.encode().lower().translate(_APART, _DROPPED).decode().split()
        if "non" not in found:
            return tuple(map(singular, found))
    folded = fold(text)
    found = _WORD.findall(folded)
    if "non " in folded:
        found = [word.replace(" ", "") for word in found]
    return tuple(map(singular, found))


def says(text: str, phrase: str) -> bool:
    return f" {' '.join(words(phrase))} " in f" {' '.join(words(text))} "


def sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


STOP_WORDS = frozenset(
    "a an and any are as at be been by did do does for from had has have having her his how i if in into is it "
    "its me my of on or our over she he so some than that the their them then there these they this those to up "
    "us was we were what when where which who why will with would you your about also am can could ever get may "
    "more most much not no other out recent recently like please tell describe experienced experiencing "
    "experience notice noticed feel feeling felt patient symptom symptoms report reports reported".split()
)


def content_words(text: str) -> frozenset[str]:
    return frozenset(word for word in words(text) if word not in STOP_WORDS and singular(word) not in STOP_WORDS)
