"""Learn the vectors by which the builtin patient compares a question with what a chart's statements tell.

`python benchmarks/fit_statement_vectors.py [--write]` reads the bundled charts without the lockbox: of each fact the
text, the patient's words for it and the author's questions. The vectors of questions stay as they are
(`benchmarks/fit_vectors.py` learns them first). It leaves out a fifth of the charts, learns from the others and prints
how many questions of those left out are most like the statement of their own fact; with `--write` it learns from all of
them and writes `agentclinic/cases/data/statement_vectors.npz`. About two minutes on one core. Then fit the trees again
(`benchmarks/fit_patient.py`).
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from fit_vectors import CONCEPTS, DROPPED, FOLDS, SETS, SHARPNESS, Learner, charts, save, shares, wordings

from agentclinic.cases.matcher.vectors import DIMENSIONS, STATEMENTS, TABLE, features, learned
from agentclinic.cases.registry import load_cases

Floats = NDArray[np.float32]
Texts = Sequence[Sequence[str]]
"""The features of each text."""
EPOCHS = 6
"""More than 8 gained nothing on the charts left out, and less than 1 point after 4."""
FEWEST, FEWEST_PAIRS = 2, 5
"""Statements that have a word, or a pair of words, that gets a vector."""
RATE = 0.02


@dataclass(frozen=True)
class Chart:
    """The facts of a chart and what asks for them, as features."""

    questions: Texts
    rows: NDArray[np.intp]
    """The fact that each question asks for."""
    statements: Texts
    spoken: Texts
    """The patient's words for each fact."""


def told() -> dict[str, Chart]:
    """Each chart with authored questions, the lockbox left out."""
    found: dict[str, Chart] = {}
    for name in SETS:
        for case in load_cases(name, {}):
            facts = [fact for fact in case.patient_facts if fact.asked]
            if facts:
                asked = [(row, text) for row, fact in enumerate(facts) for text in fact.asked]
                found[f"{name}/{case.name}"] = Chart(
                    [features(text) for _, text in asked],
                    np.array([row for row, _ in asked]),
                    [features(fact.text) for fact in facts],
                    [features(fact.says or fact.text) for fact in facts],
                )
    return found


class Vectors:
    """Vectors of words and pairs, whose sums are the vectors of texts."""

    def __init__(self, names: Sequence[str], vectors: Floats) -> None:
        self.names, self.vectors = names, vectors
        self.places = {name: place for place, name in enumerate(names)}
        self.mean, self.square = np.zeros_like(vectors), np.zeros_like(vectors)

    def units(
        self, texts: Texts, random: np.random.Generator | None = None
    ) -> tuple[Floats, Floats, Floats, list[int]]:
        """Texts as vectors of length 1, and what `learn` needs; with `random`, some words are left out."""
        known = [[self.places[one] for one in text if one in self.places] for text in texts]
        used, at = np.unique(np.array([place for places in known for place in places], np.intp), return_inverse=True)
        having = np.zeros((len(texts), len(used)), np.float32)
        having[np.repeat(np.arange(len(texts)), [len(places) for places in known]), at] = 1
        if random is not None:
            having *= random.random(having.shape) > DROPPED
        summed = having @ self.vectors[used]
        length = np.linalg.norm(summed, axis=1, keepdims=True) + 1e-6
        return summed / length, length, having, list(used)

    def learn(self, texts: tuple[Floats, Floats, Floats, list[int]], of_unit: Floats, rate: float) -> None:
        """A step of Adam, given the slope of the loss at each text's vector."""
        unit, length, having, used = texts
        slope = having.T @ ((of_unit - (of_unit * unit).sum(axis=1, keepdims=True) * unit) / length)
        slope += 2e-5 * self.vectors[used]
        self.mean[used] = 0.9 * self.mean[used] + 0.1 * slope
        self.square[used] = 0.99 * self.square[used] + 0.01 * slope**2
        self.vectors[used] -= rate * self.mean[used] / (np.sqrt(self.square[used]) + 1e-8)


def _wanted(like: Floats, same: NDArray[np.bool_]) -> Floats:
    """Which columns a row should be near to: half to the nearest of its own, half to all of them."""
    nearest = shares(np.where(same, like, -1e9)) * same
    return np.asarray(0.5 * nearest + 0.5 * same / np.maximum(1, same.sum(axis=1, keepdims=True)), np.float32)


def _pull(questions: Floats, rows: NDArray[np.intp], statements: Floats) -> Floats:
    """The slope at each statement: it should be near its questions, and these nearer to it than to any other."""
    like = SHARPNESS * (questions @ statements.T)
    same = rows[:, None] == np.arange(len(statements))
    slope = (shares(like) - _wanted(like, same)) / len(questions)
    slope += ((shares(like.T) - _wanted(like.T, same.T)) * same.any(axis=0)[:, None]).T / len(statements)
    return np.asarray(SHARPNESS * slope.T @ questions, np.float32)


def learn(learned_from: Sequence[Chart], questions: Vectors, concepts: Sequence[Texts]) -> Vectors:
    """The vectors of statements; they begin as those of questions."""
    random = np.random.default_rng(0)
    counts = Counter(one for chart in learned_from for text in (*chart.statements, *chart.spoken) for one in text)
    names = [one for one, count in counts.items() if count >= (FEWEST_PAIRS if " " in one else FEWEST)]
    first = random.normal(size=(len(names), DIMENSIONS)).astype(np.float32) * 0.04
    for place, name in enumerate(names):
        if name in questions.places:
            first[place] = questions.vectors[questions.places[name]]
    found = Vectors(names, first)
    every = np.arange(CONCEPTS)
    for epoch in range(EPOCHS):
        rate = RATE * (1 - epoch / EPOCHS) + 1e-4
        for at in random.permutation(len(learned_from)):
            chart = learned_from[int(at)]
            asked = questions.units(chart.questions, random)[0]
            for texts in (chart.statements, chart.spoken):
                units = found.units(texts, random)
                found.learn(units, _pull(asked, chart.rows, units[0]), rate)
            picked = random.choice(len(concepts), CONCEPTS, replace=False)
            one, other = (
                [concepts[place][int(random.integers(len(concepts[place])))] for place in picked.tolist()] for _ in "ab"
            )
            units = found.units(one, random)
            found.learn(units, _pull(questions.units(other, random)[0], every, units[0]), rate)
    return found


def right(left_out: Sequence[Chart], questions: Vectors, statements: Vectors) -> float:
    """The part of the questions that are most like the statement of their own fact, as the patient compares them."""
    known = statements.places.keys()
    names = [*statements.names, *(name for name in questions.names if name not in known)]
    rest = [place for name, place in questions.places.items() if name not in known]
    both = Vectors(names, np.concatenate((statements.vectors, questions.vectors[rest])))
    found = 0
    for chart in left_out:
        like = questions.units(chart.questions)[0] @ both.units(chart.statements)[0].T
        found += int((like.argmax(axis=1) == chart.rows).sum())
    return found / sum(len(chart.rows) for chart in left_out)


def fingerprint(path: Path = TABLE) -> int:
    """Which vectors of questions those of statements were learned for."""
    with np.load(path) as table:
        return zlib.crc32(table["vectors"].tobytes())


def _apart(every: Mapping[str, Chart]) -> tuple[list[str], list[str]]:
    """The charts that are left out, and the others."""
    out = [name for name in every if not zlib.crc32(name.partition("/")[2].encode()) % FOLDS]
    return out, [name for name in every if name not in out]


def main() -> None:
    """Measure on charts left out and, if asked to, learn from all and write the vectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {STATEMENTS.relative_to(ROOT)}")
    given = parser.parse_args()
    every, concepts = told(), wordings()
    out, rest = _apart(every)
    asked = charts()
    learner = Learner([asked[name] for name in rest], concepts)
    learner.learn([asked[name] for name in rest])
    questions = Vectors(learner.names, learner.vectors.astype(np.float32))
    statements = learn([every[name] for name in rest], questions, list(concepts.values()))
    left_out = [every[name] for name in out]
    share, before = (right(left_out, questions, one) for one in (statements, Vectors([], questions.vectors[:0])))
    print(
        f"{share:.1%} of the questions of {len(out)} charts left out are most like the statement of their own fact; "
        f"{before:.1%} by the vectors of questions alone"
    )
    if given.write:
        places, vectors = learned()
        statements = learn(list(every.values()), Vectors(list(places), vectors), list(concepts.values()))
        save(STATEMENTS, statements.names, statements.vectors, questions=fingerprint())


if __name__ == "__main__":
    main()
