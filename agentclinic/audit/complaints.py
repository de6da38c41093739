"""What patients complain of and are asked for: each complaint with its words and what it is a kind of.

A line of `data/complaints.txt` reads `name < kinds : words | words`. The words are beginnings of words unless they end
in `$`. A name belongs to everything it is a kind of: who asks for bleeding hears of a
nosebleed, who asks for a nosebleed does not hear of other bleeding, but hears that there is none at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_TABLE = Path(__file__).parent / "data" / "complaints.txt"


_WORD = re.compile(r"\w+")
_BOUNDARY = r"\b"
_DASHES = str.maketrans("-‑–—_", "     ")


@dataclass(frozen=True)
class _Complaint:
    name: str
    pattern: re.Pattern[str]
    begins: frozenset[str] | None
    """How words begin with which it can begin: most complaints need not be looked for. None: any word."""


def _alternative(words: str) -> str:
    whole = words.strip().endswith("$")
    return rf"\b{words.strip().replace('$', _BOUNDARY)}" + ("" if whole else r"\w*")


def _read_table() -> tuple[tuple[_Complaint, ...], dict[str, frozenset[str]]]:
    complaints, parents = [], {}
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        head, _, listed = line.partition(" : ")
        name, _, kinds = (part.strip() for part in head.partition("<"))
        parents[name] = kinds
        # The longest first: of "sun" and "sun exposure" the second is meant.
        words = sorted(re.split(r" \| ", listed), key=len, reverse=True)
        alternatives = "|".join(_alternative(one) for one in words)
        complaints.append(_Complaint(name, re.compile(alternatives, re.IGNORECASE), _begins(words)))
    return tuple(complaints), {name: _kinds(kinds, parents) for name, kinds in parents.items()}


_LOOK = re.compile(r"^\(\?<[!=][^)]*\)")
_LETTERS = re.compile(r"([a-z]+)([?*]?)")
_GROUP = re.compile(r"\(\?:([a-z |]+)\)(?!\?)")
_BEGINNING = 3


def _begins(listed: list[str]) -> frozenset[str] | None:
    """The first letters of everything listed, as far as they can be read off the patterns."""
    found: set[str] = set()
    for words in listed:
        plain = _LOOK.sub("", words.strip())
        if letters := _LETTERS.match(plain):
            options = [letters[1][:-1] if letters[2] else letters[1]]
        elif group := _GROUP.match(plain):
            options = group[1].split("|")
        else:
            return None
        found |= {option.split(" ")[0][:_BEGINNING] for option in options}
    return frozenset(found) if all(found) else None


def _kinds(listed: str, names: dict[str, str]) -> frozenset[str]:
    """The kinds a line lists: names of one or two words, the longest that the table knows."""
    found, left = set(), listed.split()
    while left:
        for length in (3, 2, 1):
            if " ".join(left[:length]) in names or length == 1:
                found.add(" ".join(left[:length]))
                left = left[length:]
                break
    return frozenset(found)


@lru_cache(maxsize=1)
def _ontology() -> tuple[tuple[_Complaint, ...], dict[str, frozenset[str]]]:
    complaints, parents = _read_table()
    closed: dict[str, frozenset[str]] = {}

    def close(name: str) -> frozenset[str]:
        if name not in closed:
            closed[name] = frozenset({name}).union(*(close(kind) for kind in parents.get(name, ())))
        return closed[name]

    return complaints, {complaint.name: close(complaint.name) for complaint in complaints}


@dataclass(frozen=True)
class Span:
    """A complaint named in a text, and where."""

    name: str
    start: int
    end: int


@lru_cache(maxsize=32768)
def spans(text: str) -> tuple[Span, ...]:
    """The complaints a text names, in order; one that is part of another's name is left out."""
    text = text.translate(_DASHES)
    words = _WORD.findall(text.lower())
    beginnings = {word[:length] for word in words for length in range(1, _BEGINNING + 1)}
    found = [
        Span(complaint.name, match.start(), match.end())
        for complaint in _ontology()[0]
        if complaint.begins is None or complaint.begins & beginnings
        for match in complaint.pattern.finditer(text)
        if match.end() > match.start()
    ]
    kept = [
        span
        for span in found
        if not any(
            other.start <= span.start and span.end <= other.end and other.end - other.start > span.end - span.start
            for other in found
        )
    ]
    return tuple(sorted(kept, key=lambda span: (span.start, span.end)))


@lru_cache(maxsize=32768)
def named(text: str) -> frozenset[str]:
    """The complaints a text names, by the most special name."""
    names = {span.name for span in spans(text)}
    return frozenset(name for name in names if not any(name != other and name in kinds(other) for other in names))


def kinds(name: str) -> frozenset[str]:
    """A complaint and everything it is a kind of."""
    return _ontology()[1].get(name, frozenset({name}))


@lru_cache(maxsize=512)
def special(name: str) -> frozenset[str]:
    """The complaints that are kinds of this one, itself left out."""
    return frozenset(other for other, general in _ontology()[1].items() if name in general and other != name)


@lru_cache(maxsize=32768)
def told(text: str) -> frozenset[str]:
    """Everything a statement tells of: the complaints it names and what they are kinds of."""
    return frozenset().union(*(kinds(span.name) for span in spans(text)))
