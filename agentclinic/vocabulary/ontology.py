"""Disease names of public vocabularies, for names that our own tables do not have.

`data/ontology.txt.gz` holds the human diseases of the Mondo Disease Ontology with their exact synonyms, and the
inclusion terms of ICD-10-CM as kinds of the titles they are listed under. `benchmarks/convert_vocabularies.py` writes
it; NOTICE says where it comes from. It is read when the first unknown name is met.
"""

from __future__ import annotations

import gzip
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agentclinic.vocabulary.names import GENERIC, Name, name

FILE = Path(__file__).parent / "data" / "ontology.txt.gz"
SHORT = "="
"""Marks an abbreviation in the table: it counts alone, never as part of a longer name."""
_FAMILY = 200
"""A class with more kinds than this says only where a disease is or what causes it; its kinds are not siblings."""
_SHORT = 5
"""Names with at most this many letters mean too many things in charts: COLD, a lung disease."""
_HEADS = ((), ("disease",), ("syndrome",), ("disorder",))


@dataclass(frozen=True, eq=False)
class Ontology:
    """The names, and the diseases they stand for."""

    source: str
    """Where the data comes from, with versions."""
    diseases: Sequence[str]
    """One line each: id, the places of its parents, how many diseases are kinds of it, its names."""
    keys: list[str]
    """One line for each name: its words in alphabetical order and the place of the disease. Sorted, so that nothing
    needs to be built to look a name up; a name of several diseases is left out."""

    def whole(self, said: Name) -> int | None:
        """The place of the disease a name stands for; "Marfan" is Marfan syndrome."""
        return _whole(self, said.words, said.spelled)

    def exactly(self, said: Name) -> int | None:
        """The place of the disease that has exactly this name, in any spelling."""
        tried = dict.fromkeys((said.spelled, said.words))
        found = (self.place(text) for tokens in tried for text in (SHORT + "".join(tokens), key(tokens)))
        return next((place for place in found if place is not None), None)

    def place(self, wanted: str) -> int | None:
        at = bisect_left(self.keys, f"{wanted}\t")
        found, _, place = self.keys[at].partition("\t") if at < len(self.keys) else ("", "", "")
        return int(place) if found == wanted else None

    def is_mondo(self, disease: int) -> bool:
        """Whether it comes from Mondo; the terms of ICD-10-CM are also complaints, such as leg pain."""
        return self.diseases[disease].startswith("MONDO")

    def kinds(self, disease: int) -> int:
        """How many diseases are kinds of it."""
        return int(self.diseases[disease].split("\t")[2])

    def names(self, disease: int) -> tuple[str, ...]:
        return tuple(self.diseases[disease].split("\t")[3].split("|"))

    def above(self, disease: int, steps: int | None = None) -> Mapping[int, int]:
        """Everything a disease is a kind of, with the number of steps to it, up to a limit."""
        return _above(self, disease, steps)

    def are_siblings(self, one: int, other: int) -> bool:
        """Whether two diseases are kinds of the same one, each at most two steps below it."""
        shared = self.above(one, 2).keys() & self.above(other, 2).keys()
        return any(self.kinds(each) <= _FAMILY for each in shared)

    @property
    def version(self) -> str:
        return self.source.splitlines()[0]


@lru_cache(maxsize=8192)  # a verdict asks for the same few names again and again
def _whole(known: Ontology, words: tuple[str, ...], spelled: tuple[str, ...]) -> int | None:
    # Names are equal whatever their spelling, which counts here.
    found = known.exactly(Name(words, spelled))
    bare = tuple(token for token in spelled if token not in GENERIC)
    if found is not None or not bare:
        return found
    # "Cushing" may be a disease or a syndrome.
    near = {known.place(key((*bare, *head))) for head in _HEADS} - {None}
    return near.pop() if len(near) == 1 else None


@lru_cache(maxsize=8192)  # and for the classes of the same few diseases
def _above(known: Ontology, disease: int, steps: int | None) -> Mapping[int, int]:
    found: dict[int, int] = {}
    level, distance = _parents(known, disease), 1
    while level and (steps is None or distance <= steps):
        found |= dict.fromkeys(level, distance)
        level, distance = [up for one in level for up in _parents(known, one) if up not in found], distance + 1
    return found


@lru_cache(maxsize=8192)
def _parents(known: Ontology, disease: int) -> Sequence[int]:
    return [int(place) for place in known.diseases[disease].split("\t", 2)[1].split()]


def key(tokens: Iterable[str]) -> str:
    """The words of a name in alphabetical order: "anemia, iron deficiency" is "iron deficiency anemia"."""
    return " ".join(sorted(set(tokens)))


@lru_cache(maxsize=1)
def ontology() -> Ontology:
    source, diseases, names = gzip.decompress(FILE.read_bytes()).decode().split("\n\n")
    return Ontology(source, diseases.split("\n"), names.split("\n"))


def synonyms(text: str) -> list[str]:
    """The other names of the disease that a whole text names; none if it is unknown.

    Short words are left out, and so are names that mean another disease first.
    """
    known = ontology()
    found = known.whole(name(text))
    others = () if found is None else known.names(found)
    return [other for other in others if len(other) > _SHORT and known.whole(name(other)) == found]


def usual_name(text: str) -> str | None:
    found = ontology().whole(name(text))
    return None if found is None else ontology().names(found)[0]
