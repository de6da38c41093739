"""Find phrases in a text as whole words, and see which are negated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentclinic.vocabulary.denial import clauses
from agentclinic.vocabulary.text import words


@dataclass(frozen=True)
class Mention:
    """A phrase found in a text."""

    key: str
    words: tuple[str, ...]
    negated: bool


class Phrasebook:
    """Finds many phrases in a text, as whole words, longest first."""

    def __init__(self, phrases: Mapping[str, Iterable[str]]) -> None:
        self._keys: dict[tuple[str, ...], list[str]] = {}
        for key, variants in phrases.items():
            for variant in variants:
                if tokens := words(variant):
                    self._keys.setdefault(tokens, []).append(key)
        lengths: dict[str, set[int]] = {}
        for tokens in self._keys:
            lengths.setdefault(tokens[0], set()).add(len(tokens))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}
        """How many words the phrases with a given first word have."""

    def find(self, text: str, *, longest_only: bool = True) -> list[Mention]:
        """Every phrase in the text, and whether it is negated.

        With `longest_only`, a phrase inside a longer one is left out.
        """
        found: list[Mention] = []
        for clause in clauses(text):
            index, count = 0, len(clause.words)
            while index < count:
                step = 1
                for length in self._lengths.get(clause.words[index], ()):
                    end = index + length
                    keys = self._keys.get(clause.words[index:end], ()) if end <= count else ()
                    if keys:
                        negated = clause.negated[index] or clause.denied_after(end)
                        found += [Mention(key, clause.words[index:end], negated) for key in keys]
                    if keys and longest_only:
                        step = length
                        break
                index += step
        return found
