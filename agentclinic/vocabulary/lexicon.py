"""The lexicon: the one table of complaints and of everything else patients are asked about.

Each line under `data/lexicon` is a concept, `name < parents : wording | wording`, under a heading `[type]`. A wording
is matched word by word, ignoring plurals and small words; `vomit*` matches every word with that beginning. A question
about a parent also asks about its children, and a denial of a parent denies them. `name!` marks a basic complaint: the
audit counts the finer ones below it as the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from agentclinic import lazy
from agentclinic.vocabulary.text import fold, singular

_FOLDER = Path(__file__).parent / "data" / "lexicon"
SMALL = frozenset(
    "a an the of in on to your my his her their you i is are was were be been any some have has had do does with he "
    "she it they we me".split()
)
"""Words to skip, so that "blood in your stool" matches "blood stool"."""
_STOP = ","
_STOPS = frozenset(",;:.?!()[]")
"""Characters that end a wording: "fever, chills" names two things."""
_TOKEN = lazy.regex(rf"[^\W_]+|[{re.escape(''.join(sorted(_STOPS)))}]")
_WITHIN = frozenset({"place", "quality"})
"""Types that also count inside a longer wording: "pain after meals" mentions meals."""
_ROOTS = {"symptom": "complaint", "disease": "medical condition"}
"""The parent of all concepts of a type: "no significant medical history" denies every disease."""


@dataclass(frozen=True, eq=False)
class Concept:
    """Something that can be asked about or told."""

    name: str
    type: str
    parents: tuple[str, ...]
    basic: bool = False
    """Whether it is a basic complaint."""


class Found(NamedTuple):
    """A concept named in a text, with the range of its words."""

    concept: Concept
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class _Reached:
    """What the first words of some wordings lead to: a node of the tree of all wordings, word by word."""

    concepts: list[Concept]
    """What the words so far name."""
    longer: dict[str, _Reached]


@dataclass(frozen=True)
class _Lexicon:
    concepts: dict[str, Concept]
    wordings: _Reached
    begun: frozenset[str]
    """The beginnings of words in the wordings: `vomit*`."""
    closed: dict[str, frozenset[str]]


@lru_cache(maxsize=65536)
def tokens(text: str) -> tuple[str, ...]:
    """The words of a text in the singular, without small words."""
    return tuple(filter(None, map(_token, _TOKEN.findall(fold(text)))))


@lru_cache(maxsize=65536)
def _token(word: str) -> str:
    return "" if word in SMALL else _STOP if word in _STOPS else singular(word)


def _lines() -> Iterator[tuple[str, str]]:
    for path in sorted(_FOLDER.glob("*.txt")):
        kind = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            line = line.strip()
            if line.startswith("["):
                kind = line.strip("[]")
            elif line and not line.startswith("#"):
                yield kind, line


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    concepts: dict[str, Concept] = {}
    wordings: list[tuple[str, list[str]]] = []
    for kind, line in _lines():
        head, _, listed = line.partition(":")
        name, _, parents = (part.strip() for part in head.partition("<"))
        above = tuple(part.strip() for part in parents.split(",") if part.strip())
        basic = name.endswith("!")
        name = name.removesuffix("!")
        if name in concepts:  # in two files: one concept
            known = concepts[name]
            kind, above, basic = known.type, tuple(dict.fromkeys(known.parents + above)), known.basic or basic
        concepts[name] = Concept(name, kind, above, basic)
        for wording in listed.split("|"):
            words = [word if word.endswith("*") else singular(word) for word in wording.split()]
            if words:
                wordings.append((name, words))
    tree = _Reached([], {})
    for name, words in wordings:
        reached = tree
        for word in words:
            reached = reached.longer.setdefault(word, _Reached([], {}))
        reached.concepts.append(concepts[name])
    begun = frozenset(word for _, words in wordings for word in words if word.endswith("*"))
    return _Lexicon(concepts, tree, begun, {name: _closed(name, concepts, frozenset()) for name in concepts})


def _closed(name: str, concepts: dict[str, Concept], seen: frozenset[str]) -> frozenset[str]:
    if name in seen or name not in concepts:
        return frozenset({name})
    above = (_closed(parent, concepts, seen | {name}) for parent in concepts[name].parents)
    root = _ROOTS.get(concepts[name].type)
    return frozenset({name, root} if root else {name}).union(*above)


@lru_cache(maxsize=32768)
def found(text: str) -> tuple[Found, ...]:
    """The concepts a text names, in order; a wording inside a longer one is left out."""
    return tuple(map(Found._make, _found(tokens(text))))


_Hit = tuple[Concept, int, int]
"""The fields of `Found`: many are made, and few are looked at."""


@lru_cache(maxsize=32768)  # texts that differ in small words only are read once
def _found(words: tuple[str, ...]) -> tuple[_Hit, ...]:
    return _outermost(_hits(words))


@lru_cache(maxsize=65536)
def _forms(word: str) -> tuple[str, ...]:
    """How a wording may have a word: in full, or by its beginning."""
    if word == _STOP:
        return (word,)
    begun = _beginnings()
    starts = [word[:end] for end in range(min(len(word), _START) + 1)]
    return (word, *[one for start in starts for one in begun.get(start, ()) if word.startswith(one[:-1])])


_START = 3
"""Letters by which the beginnings of words are looked up."""


@lru_cache(maxsize=1)
def _beginnings() -> dict[str, list[str]]:
    """The beginnings of words in the wordings, by their first letters, the shortest first."""
    beginnings: dict[str, list[str]] = {}
    for one in sorted(_lexicon().begun, key=len):
        beginnings.setdefault(one[:-1][:_START], []).append(one)
    return beginnings


@lru_cache(maxsize=65536)
def _begun(word: str) -> tuple[Sequence[Concept], Sequence[dict[str, _Reached]]]:
    """What a word names alone, and what the wordings that begin with it lead to."""
    longer = _lexicon().wordings.longer
    reached = [longer[form] for form in _forms(word) if form in longer]
    return tuple(chain.from_iterable(one.concepts for one in reached)), [one.longer for one in reached if one.longer]


def _hits(words: tuple[str, ...]) -> list[_Hit]:
    """The concepts whose wordings are among some words, by where these begin."""
    hits: list[_Hit] = []
    count, forms = len(words), list(map(_forms, words))
    for start, (concepts, longer) in enumerate(map(_begun, words)):
        if not (concepts or longer):
            continue
        end = start + 1
        named = [(concept, start, end) for concept in concepts]
        while longer and end < count:
            reached = [further[form] for further in longer for form in forms[end] if form in further]
            if not reached:
                break
            end += 1
            for one in reached:
                if one.concepts:
                    named += [(concept, start, end) for concept in one.concepts]
            longer = [one.longer for one in reached if one.longer]
        hits += named if len(named) < 2 else dict.fromkeys(named)
    return hits


def _outermost(hits: Sequence[_Hit]) -> tuple[_Hit, ...]:
    # Only wordings of several words can have others inside.
    around: dict[int, list[_Hit]] = {}
    for hit in hits:
        if hit[2] > hit[1] + 1:
            for place in range(hit[1], hit[2]):
                around.setdefault(place, []).append(hit)
    if not around:
        return tuple(hits)
    return tuple([hit for hit in hits if hit[1] not in around or not _is_inside(hit, around[hit[1]])])


def _is_inside(one: _Hit, others: Sequence[_Hit]) -> bool:
    concept, start, end = one
    for other, begins, ends in others:
        longer = ends - begins > end - start and end <= ends
        if longer and (concept.type == other.type or concept.type not in _WITHIN):
            return True
    return False


def wordings() -> dict[str, tuple[str, ...]]:
    """The concepts that each wording names."""
    return dict(_wordings_from((), _lexicon().wordings))


def _wordings_from(words: tuple[str, ...], reached: _Reached) -> Iterator[tuple[str, tuple[str, ...]]]:
    if reached.concepts:
        yield " ".join(words), tuple(concept.name for concept in reached.concepts)
    for word, longer in reached.longer.items():
        yield from _wordings_from((*words, word), longer)


def kinds(name: str) -> frozenset[str]:
    return _lexicon().closed.get(name, frozenset({name}))


@dataclass(frozen=True)
class Named:
    """The concepts a text names, as sets of bits, which are fast to compare."""

    names: int
    closed: int
    """With everything they are kinds of."""

    @property
    def above(self) -> int:
        return self.closed & ~self.names


@lru_cache(maxsize=1)
def _bits() -> dict[str, int]:
    return {name: 1 << place for place, name in enumerate(_lexicon().concepts)}


def bit(name: str) -> int:
    """A concept as a set of one."""
    return _bits()[name]


@lru_cache(maxsize=4096)
def closed(name: str) -> int:
    """A concept and everything it is a kind of."""
    bits = _bits()
    return sum(bits[kind] for kind in kinds(name) if kind in bits)


@lru_cache(maxsize=32768)
def named(text: str) -> Named:
    return _named(tokens(text))


@lru_cache(maxsize=32768)
def _named(words: tuple[str, ...]) -> Named:
    bits, names, above = _bits(), 0, 0
    for concept, _, _ in _found(words):
        names |= bits[concept.name]
        above |= closed(concept.name)
    return Named(names, above)


def may_name(kind: str, text: str) -> bool:
    """Whether a text has a word that a wording of this type, or of a kind of it, begins with: quick to find out."""
    return not _first_words(kind).isdisjoint(chain.from_iterable(map(_forms, tokens(text))))


@lru_cache(maxsize=16)
def _first_words(kind: str) -> frozenset[str]:
    wanted, longer = of_types(kind), _lexicon().wordings.longer
    return frozenset(word for word, reached in longer.items() if any(_leads_to(wanted, reached)))


def _leads_to(wanted: int, reached: _Reached) -> Iterator[bool]:
    yield any(closed(concept.name) & wanted for concept in reached.concepts)
    for longer in reached.longer.values():
        yield from _leads_to(wanted, longer)


@lru_cache(maxsize=1)
def roots() -> int:
    return sum(_bits()[root] for root in _ROOTS.values())


@lru_cache(maxsize=1)
def everything() -> int:
    return sum(_bits().values())


@lru_cache(maxsize=32)
def of_types(*types: str) -> int:
    bits = _bits()
    return sum(bits[name] for name, concept in _lexicon().concepts.items() if concept.type in types)


def _symptoms(text: str) -> set[str]:
    """The symptoms a text names.

    Unlike in `found`, the name of a disease does not hide the symptom in it: "a history of anxiety" names anxiety.
    """
    hits = [hit for hit in _hits(tokens(text)) if hit[0].type == "symptom"]
    return {concept.name for concept, _, _ in _outermost(hits)} - set(_ROOTS.values())


@lru_cache(maxsize=4096)
def _basic(name: str) -> str | None:
    """The basic complaint that a symptom counts as: itself or the nearest above it, the first parent first."""
    concepts = _lexicon().concepts
    level, seen = [name], set[str]()
    while level:
        for one in level:
            if concepts[one].basic:
                return one
        seen |= set(level)
        level = [up for one in level for up in concepts[one].parents if up in concepts and up not in seen]
    return None


def _most_special(names: set[str]) -> frozenset[str]:
    return frozenset(name for name in names if not any(name != other and name in kinds(other) for other in names))


@lru_cache(maxsize=32768)
def complaints(text: str) -> frozenset[str]:
    """The basic complaints a text names, without those that another one is a kind of."""
    return _most_special({basic for name in _symptoms(text) if (basic := _basic(name))})


def names_symptom(text: str) -> bool:
    return bool(_symptoms(text))


def is_symptom(text: str) -> bool:
    """Whether a text as a whole is a wording of a symptom."""
    return _is("symptom", text)


def is_disease(text: str) -> bool:
    """Whether a text as a whole is a wording of a disease."""
    return _is("disease", text)


def _is(kind: str, text: str) -> bool:
    reached = [_lexicon().wordings]
    for word in tokens(text):
        reached = [one.longer[form] for one in reached for form in _forms(word) if form in one.longer]
    return any(concept.type == kind for one in reached for concept in one.concepts)
