"""Vectors of what questions ask, learned from questions that authors wrote for the same fact.

A question is the sum of the vectors of its words and pairs of words. They were learned so that the questions of one
fact are near each other and far from the other questions of the chart, and so that the wordings of one concept of the
lexicon are near each other (`benchmarks/fit_vectors.py`). Of 31 charts that were not learned from, 83 % of the
questions are nearest to another question of their own fact; 61 % by shared words and concepts.
"""

from __future__ import annotations

import math
import re
import zlib
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.matcher.asking import stem
from agentclinic.cases.model import Facts
from agentclinic.vocabulary.text import singular

Floats = NDArray[np.float32]
TABLE = Path(__file__).parents[1] / "data" / "question_vectors.npz"
DIMENSIONS = 64
_WORD = re.compile(r"[a-z0-9]+")
_LEAD = re.compile(r"\bhow (long|many|much|often|bad|old|far|severe)\b")
"""Words that together ask for something different than they do apart."""
_SMALL = frozenset(
    "a an the is are was were be been being am do does did have has had having you your yours he his she her hers it "
    "its they them their theirs i me my of to in on at for with and or any some that this these those there here as by "
    "from about if so just than then also ever get got getting would could can will shall please tell him himself "
    "herself yourself sir madam thank thanks well okay ok hello hi child anything something s t re ve d ll m".split()
)
_FORMS = (
    "eat ate eaten, drink drank drunk, sting stung, bite bit bitten, break broke broken, fall fell fallen, feel felt, "
    "sleep slept, wake woke woken awake, swell swollen, lose lost loss, bleed bled, throw threw thrown, catch caught, "
    "give gave given, take took taken, go went gone, begin began begun, come came, keep kept, see saw seen, "
    "hear heard, run ran, sit sat, stand stood, speak spoke spoken speech, grow grew grown, shake shook shaken, "
    "fly flew flown flight, choke choking, lie lay lain lying, weigh weight, die died dead death, sick ill, "
    "partner husband wife spouse boyfriend girlfriend"
)
_IRREGULAR = {form: first for first, *others in map(str.split, _FORMS.split(",")) for form in others}


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    return stem(singular(_IRREGULAR.get(word, word)))


def features(text: str) -> list[str]:
    """The stems of a text's words, and each pair of neighbors."""
    plain = _LEAD.sub(r"how\1", text.lower().replace("’", "'").replace("'", " "))
    words = [_stem(word) for word in _WORD.findall(plain) if word not in _SMALL]
    pairs = (f"{one} {other}" for one, other in pairwise(words))
    return list(dict.fromkeys((*words, *pairs)))


@lru_cache(maxsize=1)
def _table() -> tuple[dict[str, int], Floats]:
    with np.load(TABLE) as table:
        names = bytes(table["names"]).decode().split("\n")
        vectors = table["vectors"].astype(np.float32) * table["scales"].astype(np.float32)[:, None]
    return {name: place for place, name in enumerate(names)}, vectors


def knows(text: str) -> bool:
    """Whether every word of a text has a learned vector."""
    places, _ = _table()
    return all(one in places for one in features(text) if " " not in one)


_NEW = 4096


@lru_cache(maxsize=1)
def _all_vectors() -> Floats:
    """The learned vectors, and after them others for words that were not learned: near to nothing but themselves."""
    others = np.random.default_rng(0).standard_normal((_NEW, DIMENSIONS)).astype(np.float32)
    return np.concatenate((_table()[1], others / np.linalg.norm(others, axis=1, keepdims=True)))


@lru_cache(maxsize=65536)
def _place(feature: str) -> int:
    """The vector of a word or pair; -1 for a pair that was not learned."""
    places, vectors = _table()
    if (place := places.get(feature)) is not None:
        return place
    return -1 if " " in feature else len(vectors) + zlib.crc32(feature.encode()) % _NEW


def _places(text: str) -> list[int]:
    return [place for one in features(text) if (place := _place(one)) >= 0]


@lru_cache(maxsize=4096)
def vector(text: str) -> Floats:
    """What a text asks, as a vector of length 1 (0 if it has no words)."""
    places = _places(text)
    if not places:
        return np.zeros(DIMENSIONS, dtype=np.float32)
    total = np.add.reduce(_all_vectors()[places], axis=0)
    return np.asarray(total / (math.sqrt(float(total @ total)) or 1.0), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Index:
    """The vectors of a chart's authored questions."""

    vectors: Floats
    rows: NDArray[np.intp]
    """The facts with questions."""
    starts: NDArray[np.intp]
    """The first question of each."""
    facts: int

    def likeness(self, asked: Floats) -> Floats:
        """How like a question is to the question of each fact that is most like it."""
        found = np.zeros(self.facts, dtype=np.float32)
        if len(self.rows):
            found[self.rows] = np.maximum.reduceat(self.vectors @ asked, self.starts)
        return found


@lru_cache(maxsize=512)
def index_of(facts: Facts) -> Index | None:
    """The index of a chart; None if its author gives no questions."""
    asking = [row for row, fact in enumerate(facts) if fact.asked]
    if not asking:
        return None
    counts = [len(facts[row].asked) for row in asking]
    texts = [_places(text) or [0] for row in asking for text in facts[row].asked]
    starts = np.cumsum([0, *(len(places) for places in texts[:-1])])
    vectors = np.add.reduceat(_all_vectors()[[place for places in texts for place in places]], starts, axis=0)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return Index(vectors, np.array(asking), np.cumsum([0, *counts[:-1]]), len(facts))
