"""Which diseases are kinds, manifestations or siblings of others, by name."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from agentclinic.vocabulary.name_table import name_table, relations, siblings
from agentclinic.vocabulary.names import GRADE, Name, name

Key = frozenset[str]


class Taxonomy:
    """The tables of related names, indexed by the words of the names."""

    def __init__(self) -> None:
        self._parents: dict[Key, set[Key]] = defaultdict(set)
        self._shows_as: dict[Key, set[Key]] = defaultdict(set)
        self._families: dict[Key, set[int]] = defaultdict(set)
        for entry in relations("broader"):
            for child in entry.of:
                self._parents[_key(child)].add(_key(entry.name))
        for entry in relations("narrower"):
            for parent in entry.of:
                self._parents[_key(entry.name)].add(_key(parent))
        for entry in relations("manifestations"):
            for disease in entry.of:
                self._shows_as[_key(disease)].add(_key(entry.name))
        for number, family in enumerate(siblings()):
            for member in family:
                self._families[_key(member)].add(number)
        related = {key for table in (self._parents, self._shows_as) for key in set(table).union(*table.values())}
        usual = {_key(text) for entry in name_table().diseases for text in entry.names[:1]}
        self._ours = related | usual | self._families.keys()
        self._above = lru_cache(maxsize=4096)(self._classes_of)

    def has(self, said: Name) -> bool:
        return said.key - GRADE in self._ours

    def is_kind_of(self, child: Key, parent: Key) -> bool:
        return parent in self._above(child)

    def _classes_of(self, child: Key) -> set[Key]:
        seen: set[Key] = set()
        todo = [child]
        while todo:
            new = self._parents.get(todo.pop(), set()) - seen
            seen |= new
            todo.extend(new)
        return seen

    def shows_as(self, disease: Key, shown: Key) -> bool:
        return shown in self._shows_as.get(disease, ())

    def one_family(self, one: Key, other: Key) -> bool:
        """Whether two diseases, or what one of them is a kind of, are siblings: pneumococcal and viral meningitis."""
        return any(
            mine != theirs and self._families.get(mine, set()) & self._families.get(theirs, set())
            for mine, theirs in (
                (one, other),
                *((above, other) for above in self._above(one)),
                *((one, above) for above in self._above(other)),
            )
        )


def _key(text: str) -> Key:
    return name(text).key - GRADE


@lru_cache(maxsize=1)
def taxonomy() -> Taxonomy:
    return Taxonomy()
