"""Words that doctors use and patients may not know, what to say instead, and what some are taken for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Term:
    """A word of the trade, or a common word that is easily misunderstood."""

    names: tuple[str, ...]
    """Its forms."""
    plain: tuple[str, ...]
    """The same in everyday words: the first can take its place, and any of them explains it."""
    level: int
    """From which level of `literacy` on a patient does not know it: 1 technical, 2 common in clinics, 3 everyday."""
    taken_for: str | None = None
    """What a patient takes it to mean; None if it means nothing to them."""

    def explained_in(self, text: str) -> bool:
        """Whether a text says in everyday words what the term means."""
        return any(re.search(rf"\b{re.escape(words)}\b", text, re.IGNORECASE) for words in self.plain)


@dataclass(frozen=True)
class Mention:
    """A term in a text."""

    term: Term
    word: str
    """As it is written there."""


@lru_cache(maxsize=1)
def terms() -> tuple[Term, ...]:
    entries = json.loads((Path(__file__).parent / "data" / "jargon.json").read_text(encoding="utf-8"))
    return tuple(
        Term(tuple(entry["names"]), tuple(entry["plain"]), entry["level"], entry.get("taken_for")) for entry in entries
    )


@lru_cache(maxsize=1)
def _by_name() -> tuple[re.Pattern[str], dict[str, Term]]:
    named = {name.lower(): term for term in terms() for name in term.names}
    # The longest name first. Abbreviations only in capitals: "mi" and "pnd" in other words mean nothing.
    names = sorted((name for term in terms() for name in term.names), key=len, reverse=True)
    patterns = (re.escape(name) if name.isupper() else f"(?i:{re.escape(name)})" for name in names)
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b"), named


@lru_cache(maxsize=4096)
def mentions(text: str) -> tuple[Mention, ...]:
    """The terms in a text."""
    pattern, named = _by_name()
    return tuple(Mention(named[match[0].lower()], match[0]) for match in pattern.finditer(text))
