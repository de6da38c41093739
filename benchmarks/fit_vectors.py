"""Learn the vectors by which the builtin patient compares a question with statements of charts without questions.

`python benchmarks/fit_vectors.py [--write]` reads the questions of the bundled charts without the lockbox (`asked`) and
the wordings of the lexicon. It leaves out a fifth of the charts, learns from the others and prints how many questions
of those left out are most like another question of the same fact; with `--write` it learns from all of them and writes
`agentclinic/cases/data/question_vectors.npz`. About two minutes on one core. Then the vectors of statements, which are
compared with these, must be learned again (`benchmarks/fit_statement_vectors.py`).
"""

from __future__ import annotations

import argparse
import math
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.cases.matcher.vectors import DIMENSIONS, TABLE, features
from agentclinic.cases.registry import load_cases
from agentclinic.vocabulary import lexicon

Chart = tuple[list[list[str]], list[int]]
"""The features of each question, and the fact that it asks for."""
SETS = ("OpenOSCE", "OpenOSCE_Demo")
FOLDS = 5
EPOCHS = 25
FEWEST, FEWEST_PAIRS = 3, 6
"""Questions that have a word, or a pair of words, that gets a vector."""
PAIRS = 0.4
"""How much a pair counts at first, beside a word."""
SHARPNESS = 14.0
RATE = 0.02
DROPPED = 0.1
CONCEPTS = 100
"""Concepts of the lexicon of which two wordings each are learned after a chart."""


def charts() -> dict[str, Chart]:
    """The authored questions of each chart, the lockbox left out."""
    found: dict[str, Chart] = {}
    for name in SETS:
        for case in load_cases(name, {}):
            asked = [(row, text) for row, fact in enumerate(case.patient_facts) for text in fact.asked]
            if asked:
                found[f"{name}/{case.name}"] = ([features(text) for _, text in asked], [row for row, _ in asked])
    return found


def wordings() -> dict[str, list[list[str]]]:
    """The wordings of each concept of the lexicon."""
    found: dict[str, list[list[str]]] = {}
    for wording, names in lexicon.wordings().items():
        if "*" not in wording:
            for name in names:
                found.setdefault(name, []).append(features(wording))
    return found


class Learner:
    """Vectors of words and pairs, learned a chart at a time (Adam)."""

    def __init__(self, learned: Sequence[Chart], concepts: dict[str, list[list[str]]], seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        counts = Counter(one for questions, _ in learned for question in questions for one in question)
        names = [one for one, count in counts.items() if count >= (FEWEST_PAIRS if " " in one else FEWEST)]
        others = (one for texts in concepts.values() for text in texts for one in text if " " not in one)
        self.names = list(dict.fromkeys((*names, *others)))
        self.places = {name: place for place, name in enumerate(self.names)}
        total = sum(len(rows) for _, rows in learned)
        rarity = np.array([math.log((total + 1) / (counts[name] + 1.5)) for name in self.names])
        rarity *= np.array([PAIRS if " " in name else 1.0 for name in self.names]) / rarity.max()
        self.vectors = self.random.normal(size=(len(self.names), DIMENSIONS)) / math.sqrt(DIMENSIONS) * rarity[:, None]
        self.mean, self.square = np.zeros_like(self.vectors), np.zeros_like(self.vectors)
        self.concepts = [texts for texts in concepts.values() if len(texts) > 1]

    def learn(self, learned: Sequence[Chart]) -> None:
        """All epochs."""
        for epoch in range(EPOCHS):
            rate = RATE * (1 - epoch / EPOCHS) + 1e-4
            for at in self.random.permutation(len(learned)):
                questions, rows = learned[at]
                self._step(questions, rows, rate)
                picked = self.random.choice(len(self.concepts), CONCEPTS, replace=False)
                texts = [
                    (place, self.concepts[place][one])
                    for place in picked
                    for one in self.random.choice(len(self.concepts[place]), 2, replace=False)
                ]
                self._step([text for _, text in texts], [int(place) for place, _ in texts], rate)

    def _step(self, questions: Sequence[Sequence[str]], rows: Sequence[int], rate: float) -> None:
        """Bring the questions of a fact nearer to each other than to the others of their chart."""
        known = [[self.places[one] for one in question if one in self.places] for question in questions]
        facts = np.array([row for row, places in zip(rows, known, strict=True) if places])
        known = [places for places in known if places]
        used, at = np.unique(np.concatenate(known), return_inverse=True)
        having = np.zeros((len(known), len(used)))
        having[np.repeat(np.arange(len(known)), [len(places) for places in known]), at] = 1
        having *= self.random.random(having.shape) > DROPPED
        summed = having @ self.vectors[used]
        length = np.linalg.norm(summed, axis=1, keepdims=True) + 1e-6
        unit = summed / length
        like = SHARPNESS * (unit @ unit.T)
        np.fill_diagonal(like, -1e9)
        same = facts[:, None] == facts[None, :]
        np.fill_diagonal(same, False)
        nearest = shares(np.where(same, like, -1e9)) * same
        wanted = 0.5 * nearest + 0.5 * same / np.maximum(1, same.sum(axis=1, keepdims=True))
        pull = (shares(like) - wanted) * same.any(axis=1)[:, None] * SHARPNESS / len(known)
        np.fill_diagonal(pull, 0)
        of_unit = pull @ unit + pull.T @ unit
        slope = having.T @ ((of_unit - (of_unit * unit).sum(axis=1, keepdims=True) * unit) / length)
        slope += 2e-5 * self.vectors[used]
        self.mean[used] = 0.9 * self.mean[used] + 0.1 * slope
        self.square[used] = 0.99 * self.square[used] + 0.01 * slope**2
        self.vectors[used] -= rate * self.mean[used] / (np.sqrt(self.square[used]) + 1e-8)

    def right(self, left_out: Sequence[Chart]) -> float:
        """The part of the questions that are most like another question of the same fact."""
        right = asked = 0
        for questions, rows in left_out:
            summed = np.zeros((len(questions), DIMENSIONS))
            for row, question in enumerate(questions):
                summed[row] = self.vectors[[self.places[one] for one in question if one in self.places]].sum(axis=0)
            unit = summed / (np.linalg.norm(summed, axis=1, keepdims=True) + 1e-9)
            like = unit @ unit.T
            np.fill_diagonal(like, -1)
            facts = np.array(rows)
            several = (facts[:, None] == facts).sum(axis=1) > 1
            right += int((facts[like.argmax(axis=1)] == facts)[several].sum())
            asked += int(several.sum())
        return right / asked


def shares(like: NDArray[Any]) -> NDArray[Any]:
    """Parts of 1 for each row."""
    shares = np.exp(like - like.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def save(path: Path, names: Sequence[str], vectors: NDArray[Any], **others: Any) -> None:
    """Write vectors as bytes, with a scale for each, and what else belongs in the file."""
    scales = np.abs(vectors).max(axis=1) / 127
    np.savez_compressed(
        path,
        names=np.frombuffer("\n".join(names).encode(), dtype=np.uint8),
        vectors=np.round(vectors / scales[:, None]).astype(np.int8),
        scales=scales.astype(np.float32),
        **others,
    )


def main() -> None:
    """Measure on charts left out and, if asked to, learn from all and write the vectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.relative_to(ROOT)}")
    given = parser.parse_args()
    every, concepts = charts(), wordings()
    out = [chart for name, chart in every.items() if not zlib.crc32(name.partition("/")[2].encode()) % FOLDS]
    rest = [chart for name, chart in every.items() if zlib.crc32(name.partition("/")[2].encode()) % FOLDS]
    learner = Learner(rest, concepts)
    learner.learn(rest)
    print(
        f"{learner.right(out):.1%} of the questions of {len(out)} charts left out are most like one of their own fact"
    )
    if given.write:
        learner = Learner(list(every.values()), concepts)
        learner.learn(list(every.values()))
        save(TABLE, learner.names, learner.vectors)


if __name__ == "__main__":
    main()
