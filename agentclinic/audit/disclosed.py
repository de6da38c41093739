"""Which facts of the chart a reply tells, by its words, its numbers and its denials."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from agentclinic.audit.statements import plain, statements, stems
from agentclinic.cases.model import PATIENT_SECTIONS, Fact
from agentclinic.vocabulary.denial import has_denying_word
from agentclinic.vocabulary.text import fold, sentences

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}
SHARE = 0.5
"""Replies paraphrase; with less than half of a fact's words they speak of something else."""
SURE = 0.7
"""To say that a reply gives away what nobody asked for takes more than to say that it answers."""
_FRAME = frozenset(
    stem
    for word in "deny denies denied recent significant history additional note mention relevant known prior condition "
    "medical past presents presenting complain states family".split()
    for stem in stems(word)
)
"""Words with which a chart says a thing, and a patient does not."""


class Said(NamedTuple):
    """A sentence, or a whole reply, as far as it is compared with a fact."""

    text: str
    stems: frozenset[str]
    numbers: frozenset[str]
    denies: bool


@lru_cache(maxsize=8192)
def said(reply: str) -> tuple[Said, ...]:
    """The sentences of a reply, its statements, and the whole."""
    parts = [s for line in plain(reply).split("\n") for s in sentences(line)]
    parts += [s.text for s in statements(reply)]
    return tuple(whole(part) for part in dict.fromkeys([*parts, reply]))


@lru_cache(maxsize=16384)
def whole(text: str) -> Said:
    """A text as one thing said."""
    return Said(text, stems(text), numbers(text), has_denying_word(text))


@lru_cache(maxsize=16384)
def numbers(text: str) -> frozenset[str]:
    """The numbers of a text, as digits."""
    digits = {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}
    return frozenset(digits | {_NUMBER_WORDS[word] for word in fold(text).split() if word in _NUMBER_WORDS})


def tells(parts: Sequence[Said], fact: Fact, share: float = SHARE) -> str | None:
    """The words of a reply that tell a fact; None where none do.

    One sentence, or the whole reply, holds at least `share` of the fact's meaningful words and half of its numbers.
    A result of one word needs a word of its heading as well; a denial needs one in the reply.
    """
    wanted, figures = stems(fact.text) - _FRAME, numbers(fact.text)
    if not wanted and not figures:
        wanted = stems(fact.text)
    head = stems(" ".join(fact.heads[-2:])) if fact.section not in PATIENT_SECTIONS else frozenset()
    short = len(wanted) + len(figures) < 3
    for part in parts:
        if fact.denied and not part.denies:
            continue
        if short and head and not head & part.stems:
            continue
        enough = len(wanted & part.stems) >= share * len(wanted)
        if (wanted or figures) and enough and len(figures & part.numbers) >= len(figures) / 2:
            return part.text
    return None
