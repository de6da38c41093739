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
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for key, variants in phrases.items():
            for variant in variants:
                tokens = words(variant)
                if tokens:
                    self._by_first.setdefault(tokens[0], []).append((tokens, key))
        for entries in self._by_first.values():
            entries.sort(key=lambda entry: -len(entry[0]))

    def find(self, text: str, *, longest_only: bool = True) -> list[Mention]:
        """Every phrase in the text, and whether it is negated.

        With `longest_only`, a phrase inside a longer one is left out.
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
