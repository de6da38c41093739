"""Read a question as the things it asks, and say which of a chart's facts answers each.

A small network, trained on the questions of charts' authors and on marked questions that language models wrote, marks
the words of each thing asked and gives it a vector that takes the rest of the question into account: "or the neck?"
after "any pain in the back" asks for pain.
Each fact has the vectors of its author's questions and of its own words, and each thing asked says how near a fact must
be to answer it. `benchmarks/fit_reader.py` trains the network and prints how often it is right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.matcher.vectors import stem_of
from agentclinic.cases.model import Facts

Floats = NDArray[np.float32]
TABLE = Path(__file__).parents[1] / "data" / "reader.npz"
_TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[?.,;:!/()-]")
_NO_PART = re.compile(r"[?.,;:!/()-]|or|and|but|so|then")
"""Trimmed from both ends of a part."""
_LONE = re.compile(r"how|what|which|when|where|who")
_WH = re.compile(r"how|what|which|when|where|who|why")
_AUXILIARY = re.compile(r"is|are|was|were|do|does|did|has|have|had|can|could")
_SUBJECT = re.compile(r"it|you|he|she|they|there|this|that|your|his|her|any|anyone|anybody|anything")
_JOINTS = frozenset(("or", ",", "/"))
_EMPTY = frozenset(
    "a an the is are was were be been do does did have has had having you your yours he his she her it its they their "
    "i me my of to in on at for with and or any some that this these those there as by from about if so just than then "
    "also ever get got can could would will please tell like especially including say such even particularly "
    "anything else well now noticed notice own words".split()
)
"""Words that ask for nothing by themselves."""
REACH = 8
"""Words this far apart or farther count as equally distant."""
LONGEST = 160
"""Words that are read at once; a longer question is read in pieces. Our longest labeled question has 61."""
MOST_WORDS = 640
"""Words of a question that are read."""
OUTSIDE, BEGINS, INSIDE = range(3)
KINDS = ("told", "no", "?", "worry", "idea", "hope", "feel", "talk")
"""What a thing asked is: `told` if a fact answers it; otherwise something that can be denied, something that cannot, a
worry, an idea, a hope, a feeling, or small talk."""
OF_WORDS = 0.02
"""Subtracted from the likeness to a fact's own words, which are not questions."""


@dataclass(frozen=True, eq=False)
class Asks:
    """One thing that a question asks."""

    text: str
    """The words that ask for it."""
    start: int
    """Where they begin in the question."""
    vector: Floats
    needed: float
    """How near a fact must be to answer it."""
    kind: str
    """What it is if no fact answers it."""
    pieces: tuple[Asks, ...] = ()
    """Its words on both sides of an "or", each read by itself: "is it painful or stiff?"."""


@dataclass(frozen=True, eq=False)
class _Layer:
    qkv: Floats
    qkv_bias: Floats
    out: Floats
    out_bias: Floats
    distance: Floats
    """What the distance of two words adds to how much one attends to the other, for each head."""
    up: Floats
    up_bias: Floats
    down: Floats
    down_bias: Floats


@dataclass(frozen=True, eq=False)
class _Network:
    """The learned tables and weights.

    Vectors of words are kept centered, and the rest of each normalization is in the weights it is multiplied with.
    """

    places: dict[str, int]
    by_stem: dict[str, int]
    words: Floats
    """What each word brings to a question."""
    keys: Floats
    """What each word brings to the vector of a fact, times its weight; the last row, of an end, is 0."""
    weights: Floats
    """How much each word counts there; the last, of an end, is 0."""
    layers: tuple[_Layer, ...]
    heads: Floats
    """From the vector of a word to its mark (3), and its weight in a part (1)."""
    heads_bias: Floats
    part: Floats
    """From the vector of a part to what it asks, its kind and what it needs."""
    part_bias: Floats
    bias: Floats
    sections: Floats
    section_rows: dict[str, int]
    beta: float
    scale: float


def _dequantized(table: Any, name: str) -> Floats:
    scaled: Floats = table[name].astype(np.float32) * table[f"{name}_scale"].astype(np.float32)[:, None]
    return scaled


@lru_cache(maxsize=1)
def network() -> _Network:
    """The network that ships with the package."""
    with np.load(TABLE) as table:
        names = bytes(table["names"]).decode().split("\n")
        by_stem: dict[str, int] = {}
        for place, name in enumerate(names):
            by_stem.setdefault(stem_of(name), place)

        def weights(name: str) -> Floats:
            return np.ascontiguousarray(table[name], dtype=np.float32)

        def centered(name: str) -> tuple[Floats, Floats]:
            """Weights and biases whose products have a mean of 0."""
            kernel, bias = weights(name), weights(f"{name}_bias")
            return kernel - kernel.mean(axis=1, keepdims=True), bias - bias.mean()

        def normalizing(norm: str, name: str) -> tuple[Floats, Floats]:
            """Weights and biases that also scale and shift what a normalization gives them."""
            kernel = weights(name)
            return weights(norm)[:, None] * kernel, weights(f"{norm}_bias") @ kernel + weights(f"{name}_bias")

        def layer(at: int) -> _Layer:
            of = f"layer{at}_"
            qkv, qkv_bias = normalizing(f"{of}first", f"{of}qkv")
            distance = weights(f"{of}distance")
            width = len(qkv)
            for one in (qkv[:, :width], qkv_bias[:width]):  # of the queries
                one /= math.sqrt(width // len(distance))
            by_places = np.ascontiguousarray(distance[:, _distances(LONGEST)])
            up, down = normalizing(f"{of}second", f"{of}up"), centered(f"{of}down")
            return _Layer(qkv, qkv_bias, *centered(f"{of}out"), by_places, *up, *down)

        words = _dequantized(table, "words")
        return _Network(
            {name: place for place, name in enumerate(names)},
            by_stem,
            words - words.mean(axis=1, keepdims=True),
            np.pad(_dequantized(table, "keys"), ((0, 1), (0, 0))),
            np.pad(weights("weights"), (0, 1)),
            tuple(layer(at) for at in range(int(table["layers"]))),
            *normalizing("norm", "heads"),
            *normalizing("norm", "part"),
            weights("bias"),
            weights("sections"),
            {name: row for row, name in enumerate(bytes(table["section_names"]).decode().split("\n"))},
            float(table["beta"]),
            float(table["scale"]),
        )


UNKNOWN = 1
"""The place of a word that was not learned."""


@lru_cache(maxsize=65536)
def _place(word: str) -> int:
    """The place of a word, or of one with the same stem; that of the unknown word if there is none."""
    known = network()
    place = known.places.get(word)
    if place is None:
        place = known.by_stem.get(stem_of(word.split("'")[0]), UNKNOWN)
    return place


@lru_cache(maxsize=65536)  # charts are in much the same words
def _places(run: str) -> tuple[int, ...]:
    """The places of the words and signs in a run of text without spaces, as in "pain,"."""
    return (_AT_END,) if run == _END else tuple([_place(word) for word in _TOKEN.findall(run)])


_END, _AT_END = "\0", -1
"""A run that ends each of several texts that are read at once, and its place."""


def _plain(text: str) -> str:
    return text.lower().replace("’", "'")


def knows(text: str) -> bool:
    """Whether every word of a text was learned."""
    return all(_place(word) != UNKNOWN for word in _TOKEN.findall(_plain(text)))


def _normed(x: Floats) -> Floats:
    """Centered vectors with a variance of 1."""
    variance = np.vecdot(x, x)
    variance *= np.float32(1 / x.shape[1])
    variance += np.float32(1e-5)
    normed: Floats = x / np.sqrt(variance, out=variance)[:, None]
    return normed


_SMALL = 800_000
"""Multiplications below which a product of matrices stays in one thread. Above about a million, the library behind
NumPy starts several, which on busy cores wait for each other a hundred times as long as the product takes."""


def _times(x: Floats, weights: Floats) -> Floats:
    """The product of two matrices, a few rows at a time."""
    inner, columns = weights.shape
    step = max(1, _SMALL // (inner * columns))
    if len(x) <= step:
        return x @ weights
    product = np.empty((len(x), columns), dtype=np.float32)
    for row in range(0, len(x), step):
        np.matmul(x[row : row + step], weights, out=product[row : row + step])
    return product


def _distances(count: int) -> NDArray[np.intp]:
    places = np.arange(count)
    apart: NDArray[np.intp] = np.clip(places[None] - places[:, None], -REACH, REACH) + REACH
    return apart


def _through(layer: _Layer, x: Floats) -> Floats:
    count, width = x.shape
    heads = len(layer.distance)
    mixed = _times(_normed(x), layer.qkv)
    mixed += layer.qkv_bias
    query, key, value = mixed.reshape(count, 3, heads, width // heads).transpose(1, 2, 0, 3)
    towards: Floats = query @ key.transpose(0, 2, 1)
    towards += layer.distance[:, :count, :count]
    towards -= np.maximum.reduce(towards, axis=2, keepdims=True)
    np.exp(towards, out=towards)
    towards /= np.add.reduce(towards, axis=2, keepdims=True)
    gathered: Floats = (towards @ value).transpose(1, 0, 2).reshape(count, width)
    attended = _times(gathered, layer.out)
    attended += x
    attended += layer.out_bias
    inner = _times(_normed(attended), layer.up)
    inner += layer.up_bias
    np.maximum(inner, 0, out=inner)
    attended += _times(inner, layer.down)
    attended += layer.down_bias
    return attended


def _marked(marks: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last word, exclusive, of each part."""
    found: list[tuple[int, int]] = []
    begun: int | None = None
    for at, mark in enumerate((*marks, OUTSIDE)):
        if begun is not None and mark != INSIDE:
            found.append((begun, at))
            begun = None
        if mark != OUTSIDE and begun is None:
            begun = at
    return found


def _whole(spans: Sequence[tuple[int, int]], tokens: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    """Parts, where a lone "how" or "when" belongs to what follows: "how many times"."""
    found: list[tuple[int, int]] = []
    for start, end in spans:
        begun = found[-1][0] if found else None
        if begun is not None and found[-1][1] == begun + 1 and start <= begun + 2 and _LONE.fullmatch(tokens[begun][0]):
            found.pop()
            start = begun
        found.append((start, end))
    return found


@lru_cache(maxsize=4096)
def read(question: str) -> tuple[Asks, ...]:
    """The things that a question asks, in order."""
    tokens = list(_TOKEN.finditer(_plain(question)))[:MOST_WORDS]
    with np.errstate(invalid="ignore"):  # which products of finite matrices can raise wrongly
        return tuple(one for piece in _pieces(tokens) for one in _asked(question, piece))


def _pieces(tokens: Sequence[re.Match[str]]) -> Iterator[Sequence[re.Match[str]]]:
    """A question whole, or, if it is too long, in pieces that end with a sentence where they can."""
    while len(tokens) > LONGEST:
        ends = [at for at in range(LONGEST) if tokens[at][0] in "?.!"]
        cut = ends[-1] + 1 if ends else LONGEST
        yield tokens[:cut]
        tokens = tokens[cut:]
    if tokens:
        yield tokens


def _asked(question: str, tokens: Sequence[re.Match[str]]) -> Iterator[Asks]:
    known = network()
    places = [_place(token[0]) for token in tokens]
    x = known.words.take(places, axis=0)
    for layer in known.layers:
        x = _through(layer, x)
    x = _normed(x)
    said = x @ known.heads + known.heads_bias
    parts = list(_parts(tokens, said[:, :3].argmax(axis=1).tolist()))
    if not parts:
        return
    pieces = [list(_between_joints(tokens, start, end)) for start, end in parts]
    spans = [*parts, *chain.from_iterable(pieces)]
    within = np.zeros((len(spans), len(tokens)), dtype=np.float32)
    for row, (start, end) in enumerate(spans):
        within[row, start:end] = 1
    weight = np.exp(said[:, 3])  # of a vector of bounded length: it cannot overflow
    out = (within * weight @ x) / (within @ weight)[:, None] @ known.part + known.part_bias
    keys = (within @ known.keys.take(places, axis=0)) / (within @ known.weights.take(places))[:, None] + known.bias
    size = known.bias.shape[0]
    vectors = np.float32(known.scale) * (_of_length_1(out[:, :size]) + np.float32(known.beta) * _of_length_1(keys))
    kinds = out[:, size + 1 : size + len(KINDS)].argmax(axis=1).tolist()
    found: list[Asks] = []
    for (start, end), vector, needed, kind in zip(spans, vectors, out[:, -1].tolist(), kinds, strict=True):
        first, last = tokens[start].start(), tokens[end - 1].end()
        found.append(Asks(question[first:last], first, vector, 4 * needed, KINDS[1 + kind]))
    at = len(parts)
    for one, own in zip(found, pieces, strict=False):
        yield replace(one, pieces=tuple(found[at : at + len(own)])) if own else one
        at += len(own)


def _parts(tokens: Sequence[re.Match[str]], marks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last word, exclusive, of each part that asks for something."""
    whole = _whole(_marked(marks), tokens)
    for start, end in chain.from_iterable(_clauses(tokens, start, end) for start, end in whole):
        while end > start and _NO_PART.fullmatch(tokens[end - 1][0]):
            end -= 1
        while end > start and _NO_PART.fullmatch(tokens[start][0]):
            start += 1
        if not all(token[0] in _EMPTY for token in tokens[start:end]):
            yield start, end


def _clauses(tokens: Sequence[re.Match[str]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """A part, cut where another question begins in it: "did it come on suddenly, where is it"."""
    for at in range(start + 1, end - 2):
        if tokens[at][0] not in (",", ";", "and"):
            continue
        after = tokens[at + 1][0]
        if _WH.fullmatch(after) or (_AUXILIARY.fullmatch(after) and _SUBJECT.fullmatch(tokens[at + 2][0])):
            yield start, at
            yield from _clauses(tokens, at + 1, end)
            return
    yield start, end


def _between_joints(tokens: Sequence[re.Match[str]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The pieces of a part that are joined by "or"; none if it has no such joint."""
    joints = [at for at in range(start, end) if tokens[at][0] in _JOINTS]
    if not joints:
        return
    begun = start
    for at in (*joints, end):
        if not all(token[0] in _EMPTY or token[0] in _JOINTS for token in tokens[begun:at]):
            yield begun, at
        begun = at + 1


def _of_length_1(vectors: Floats) -> Floats:
    lengths: Floats = np.maximum(np.sqrt(np.vecdot(vectors, vectors)), np.float32(1e-6))
    return vectors / lengths[:, None]


@dataclass(frozen=True, eq=False)
class Index:
    """The vectors of a chart's facts."""

    vectors: Floats
    less: Floats
    """Subtracted from the likeness to each."""
    starts: NDArray[np.intp]
    """The first vector of each fact."""

    def nearness(self, asks: Asks) -> Floats:
        """How near each fact is; from `asks.needed` on, it answers."""
        return np.maximum.reduceat(self.vectors @ asks.vector - self.less, self.starts)


@lru_cache(maxsize=512)
def index_of(facts: Facts) -> Index:
    """The index of a chart, which must have facts."""
    known = network()
    texts: list[str] = []
    own: list[bool] = []
    counts: list[int] = []
    for fact in facts:
        said = [fact.matched_as] if fact.matched_as else [text for text in (fact.text, fact.says) if text] or [""]
        texts += (*fact.asked, *said)
        own += [False] * len(fact.asked) + [True] * len(said)
        counts.append(len(fact.asked) + len(said))
    sums, weights = _summed(texts)
    sums /= weights[:, None]
    others = len(known.section_rows)
    extra = known.sections.take([known.section_rows.get(fact.section, others) for fact in facts], axis=0)
    extra += known.sections.take([others + int(fact.denied) for fact in facts], axis=0)
    extra += known.bias
    sums += extra.repeat(counts, axis=0)
    less = np.array(own, dtype=np.float32) * np.float32(OF_WORDS * known.scale)
    return Index(_of_length_1(sums), less, np.array(list(accumulate(counts[:-1], initial=0)), dtype=np.intp))


_FEW = 60
"""Texts below which their words are summed text by text."""


def _summed(texts: Sequence[str]) -> tuple[Floats, Floats]:
    """The sums of the vectors of each text's words, and of their weights."""
    known = network()
    runs = _plain(f" {_END} ".join((*texts, ""))).split()
    places = np.fromiter(chain.from_iterable(map(_places, runs)), dtype=np.intp)
    ends = np.flatnonzero(places == _AT_END)
    if len(ends) > len(texts):
        return _summed([text.replace(_END, " ") for text in texts])
    counts = np.diff(ends, prepend=-1) - 1
    begins = ends - counts
    places[ends[counts == 0]] = UNKNOWN  # where there are no words
    counts = np.maximum(counts, 1)
    weights = np.add.reduceat(known.weights.take(places), begins)
    if len(texts) < _FEW:
        return np.add.reduceat(known.keys.take(places, axis=0), begins), weights
    # The first words of all texts, then the second, and so on: four times as fast as text by text if there are many.
    longest_first = np.argsort(-counts, kind="stable")
    next_word = begins[longest_first]
    longer = len(texts) - np.cumsum(np.bincount(counts))
    summed = known.keys.take(places.take(next_word), axis=0)
    for several in longer[1:-1].tolist():
        next_word = next_word[:several] + 1
        summed[:several] += known.keys.take(places.take(next_word), axis=0)
    sums = np.empty_like(summed)
    sums[longest_first] = summed
    return sums, weights
