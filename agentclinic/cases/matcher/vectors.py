"""Vectors of what questions ask and statements tell, for charts whose author gives no questions.

A question is the sum of the vectors of its words and pairs of words. They were learned from questions
that authors of other charts wrote for each fact, so that the questions of one fact are near each other and far from the
other questions of the chart, and so that the wordings of one concept of the lexicon are near each other
(`benchmarks/fit_vectors.py`).

Words and pairs of a statement have vectors of their own, learned so that a statement is near the questions it answers
(`benchmarks/fit_statement_vectors.py`); those that charts do not use have the same as in questions. Both
benchmarks print how many questions of charts that were left out are nearest to their own fact.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentclinic import lazy
from agentclinic.cases.matcher.asking import stem
from agentclinic.vocabulary.text import singular

Floats = NDArray[np.float32]
TABLE = Path(__file__).parents[1] / "data" / "question_vectors.npz"
STATEMENTS = TABLE.with_name("statement_vectors.npz")
DIMENSIONS = 64
_WORD = lazy.regex(r"[a-z0-9]+")
_LEAD = lazy.regex(r"\bhow (long|many|much|often|bad|old|far|severe)\b")
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
def stem_of(word: str) -> str:
    return stem(singular(_IRREGULAR.get(word, word)))


def features(text: str) -> list[str]:
    """The stems of a text's words, and each pair of neighbors."""
    words, pairs = _words_and_pairs(text)
    return [*words, *pairs]


def _words_and_pairs(text: str) -> tuple[dict[str, None], dict[str, None]]:
    plain = text.lower().replace("’", " ").replace("'", " ")
    if "how " in plain:
        plain = _LEAD.sub(r"how\1", plain)
    words = [stem_of(word) for word in _WORD.findall(plain) if word not in _SMALL]
    return dict.fromkeys(words), dict.fromkeys([f"{one} {other}" for one, other in pairwise(words)])


@lru_cache(maxsize=2)
def learned(path: Path = TABLE) -> tuple[dict[str, int], Floats]:
    """The place of each word or pair, and the vectors."""
    with np.load(path) as table:
        names = bytes(table["names"]).decode().split("\n")
        vectors = table["vectors"].astype(np.float32) * table["scales"].astype(np.float32)[:, None]
    return {name: place for place, name in enumerate(names)}, vectors


_NEW = 4096


@lru_cache(maxsize=1)
def _all_vectors() -> Floats:
    """The vectors learned for questions, others for words that were not learned, those learned for statements, and 0.

    A word that was not learned is near to nothing but itself.
    """
    others = np.random.default_rng(0).standard_normal((_NEW, DIMENSIONS)).astype(np.float32)
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    return np.concatenate((learned()[1], others, learned(STATEMENTS)[1], np.zeros((1, DIMENSIONS), np.float32)))


@lru_cache(maxsize=65536)
def _place(word: str) -> int:
    """The vector of a word."""
    places, vectors = learned()
    place = places.get(word)
    return len(vectors) + zlib.crc32(word.encode()) % _NEW if place is None else place


@lru_cache(maxsize=65536)
def _place_told(word: str) -> int:
    """The same in a statement."""
    place = learned(STATEMENTS)[0].get(word)
    return _place(word) if place is None else len(learned()[1]) + _NEW + place


@lru_cache(maxsize=4096)
def _places(text: str) -> list[int]:
    """The vectors of a question's words, and of its pairs that were learned."""
    words, pairs = _words_and_pairs(text)
    known = learned()[0]
    return [*map(_place, words), *[known[pair] for pair in pairs if pair in known]]


def _places_told(text: str) -> list[int]:
    """The same for a statement."""
    words, pairs = _words_and_pairs(text)
    known, told = learned()[0], learned(STATEMENTS)[0]
    before = len(learned()[1]) + _NEW
    found = [told[pair] + before if pair in told else known.get(pair, -1) for pair in pairs]
    return [*map(_place_told, words), *[place for place in found if place >= 0]]


def vector(text: str) -> Floats:
    """What a text asks, as a vector of length 1 (0 if it has no words)."""
    one: Floats = question_vectors([text])[0]
    return one


def question_vectors(texts: Sequence[str]) -> Floats:
    """What each text asks, as rows of length 1 (0 if it has no words)."""
    return _sums([_places(text) or [-1] for text in texts])


def statement_vectors(texts: Sequence[str]) -> Floats:
    """What each statement tells, as rows of length 1."""
    return _sums([_places_told(text) or [0] for text in texts])


def _sums(texts: Sequence[list[int]]) -> Floats:
    """The sums of some vectors, as rows of length 1."""
    if not texts:
        return np.zeros((0, DIMENSIONS), dtype=np.float32)
    starts = list(accumulate(map(len, texts[:-1]), initial=0))
    sums: Floats = np.add.reduceat(_all_vectors().take(list(chain.from_iterable(texts)), axis=0), starts, axis=0)
    lengths: Floats = np.maximum(np.sqrt(np.vecdot(sums, sums)), np.float32(1e-6))
    return sums / lengths[:, None]
