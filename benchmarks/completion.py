"""Whether a reader can tell charted from completed normal results.

    python benchmarks/completion.py

Every charted normal result is set against completed results of the same heading in patients of the same sex and age
group: children's charts have fewer routine tests, and men no pregnancy test, which says nothing about the result. A
logistic regression sees the wording (words and character triples) and the value, and then also the patient's age, sex
and setting and which of the other charted results are abnormal. It is tested on whole cases, with their twins, that it
was not trained on. The figure is the share of pairs (one charted, one completed, of the same heading and group) that it
puts in the right order: 0.5 is chance.
"""

from __future__ import annotations

import argparse
import random
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.completion import completed, in_normal_range
from agentclinic.cases.model import Case, Fact, age_in_years, sex
from agentclinic.cases.registry import load_cases
from agentclinic.vocabulary.normals import Normal, normal_of

FOLDS = 5
SIZE = 2**15
"""Places of the hashed features."""
CHILD = 16
"""Age below which charts have fewer routine tests."""
FEWEST = 2
"""Charted and completed results that a heading needs, twins counted once: of one alone nothing can be learned."""
MOST = 25
"""Completed results for each heading, so that one heading does not outweigh the rest."""


PENALTY = 0.001


@dataclass(frozen=True)
class Row:
    heading: str
    case: str
    charted: bool
    features: tuple[tuple[str, float], ...]


def rows(datasets: list[str], *, rest: bool, seed: int = 0) -> list[Row]:
    cases = [case for name in datasets for case in load_cases(name, {}, lockbox=True)]
    found: dict[str, list[Row]] = defaultdict(list)
    for case in cases:
        about = tuple(_about(case)) if rest else ()
        age = "child" if (age_in_years(case.door.demographics) or 40) < CHILD else "adult"
        group = f"{age}, {sex(case.door.demographics)}"
        # Twins have most of their chart in common: they are left out together.
        pair = min(case.name, str(case.annotations.get("twin_of") or case.name))
        for facts, charted in ((case.exam_facts, True), (completed(case), False)):
            for fact in facts:
                entry = normal_of(fact.heads)
                if entry and (not charted or in_normal_range(case, fact)):
                    name = f"{entry.heading} ({group})"
                    found[name].append(Row(name, pair, charted, _features(fact, entry, about)))
    draw = random.Random(seed)
    kept = []
    for given in found.values():
        ours, theirs = ([row for row in given if row.charted is how] for how in (True, False))
        if all(len({row.case for row in some}) >= FEWEST for some in (ours, theirs)):
            kept += [*ours, *draw.sample(theirs, min(MOST, len(theirs)))]
    return kept


def _about(case: Case) -> Iterator[tuple[str, float]]:
    """Features of the rest of the chart."""
    yield f"sex {sex(case.door.demographics)}", 1.0
    yield "age", (age_in_years(case.door.demographics) or 40) / 50
    yield f"setting {case.annotations.get('setting')}", 1.0
    for fact in case.exam_facts:
        entry = normal_of(fact.heads)
        if entry and not in_normal_range(case, fact):
            yield f"abnormal {entry.system}", 1.0
    yield "charted results", len(case.exam_facts) / 50


def _features(fact: Fact, entry: Normal, about: tuple[tuple[str, float], ...]) -> tuple[tuple[str, float], ...]:
    text = fact.text.lower()
    plain = re.sub(r"\d+(?:\.\d+)?", "#", text)
    found: dict[str, float] = {f"heading {' / '.join(fact.heads)}": 1.0}
    for word in re.findall(r"[a-z#%<]+", plain):
        found[f"word {word}"] = 1.0
        found[f"word {entry.heading} {word}"] = 1.0
    for place in range(len(plain) - 2):
        found[f"letters {plain[place : place + 3]}"] = 1.0
    found[f"whole {entry.heading} {plain}"] = 1.0
    found["length"] = len(text) / 50
    number = re.match(r"\s*<?(\d+(?:\.\d+)?)", text)
    spread = entry.spread(())
    if number and spread:
        scaled = max(-4.0, min(4.0, (float(number[1]) - spread.mean) / (spread.deviation or 1)))
        found |= {"value": scaled, "value squared": scaled**2, f"value {entry.heading}": scaled}
        found[f"value {entry.heading} is {number[1]}"] = 1.0
    system = entry.system
    return (*found.items(), *about, *((f"{name} for {system}", value) for name, value in about))


Matrix = NDArray[np.float64]


def _index(row: Row) -> tuple[NDArray[np.int64], Matrix]:
    places = np.array([zlib.crc32(name.encode()) % SIZE for name, _ in row.features], dtype=np.int64)
    return places, np.array([value for _, value in row.features])


def scores(given: list[Row], penalty: float) -> Matrix:
    """Each row's log odds of being charted, by a model that has not seen its case."""
    index = [_index(row) for row in given]
    truth = np.array([row.charted for row in given], dtype=float)
    names = sorted({row.case for row in given})
    random.Random(0).shuffle(names)
    fold_of = {name: place % FOLDS for place, name in enumerate(names)}
    folds = np.array([fold_of[row.case] for row in given])
    out = np.zeros(len(given))
    for fold in range(FOLDS):
        seen = [i for i in range(len(given)) if folds[i] != fold]
        coefficients = _fit(seen, index, truth, _weights(given, seen), penalty)
        for i in np.flatnonzero(folds == fold):
            places, values = index[i]
            out[i] = coefficients[places] @ values
    return out


def _weights(given: list[Row], seen: list[int]) -> Matrix:
    """Charted and completed rows of a heading weigh the same in training: how often it is charted is no clue."""
    count = Counter((given[i].heading, given[i].charted) for i in seen)
    weights = np.zeros(len(given))
    for i in seen:
        row = given[i]
        both = min(count[row.heading, True], count[row.heading, False])
        weights[i] = min(5, both) / count[row.heading, row.charted]
    return weights


def _fit(
    rows_: list[int], index: list[tuple[NDArray[np.int64], Matrix]], truth: Matrix, weights: Matrix, penalty: float
) -> Matrix:
    """Logistic regression with a quadratic penalty, by AdaGrad."""
    coefficients, squares = np.zeros(SIZE), np.full(SIZE, 1e-6)
    draw = random.Random(1)
    for _ in range(4):
        draw.shuffle(rows_)
        for i in rows_:
            places, values = index[i]
            chance = 1 / (1 + np.exp(-float(np.clip(coefficients[places] @ values, -30, 30))))
            slope = weights[i] * (chance - truth[i]) * values + penalty * coefficients[places]
            squares[places] += slope**2
            coefficients[places] -= 0.1 * slope / np.sqrt(squares[places])
    return coefficients


def within_headings(given: list[Row], found: Matrix) -> tuple[float, int]:
    """AUROC over pairs of the same heading, ties counting half, each heading by its charted results."""
    total = weight = 0.0
    headings = 0
    for heading in sorted({row.heading for row in given}):
        ours, theirs = (
            found[[i for i, row in enumerate(given) if row.heading == heading and row.charted is how]]
            for how in (True, False)
        )
        right = (ours[:, None] > theirs).mean() + (ours[:, None] == theirs).mean() / 2
        total, weight, headings = total + len(ours) * right, weight + len(ours), headings + 1
    return total / weight, headings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", action="append", help="data sets (default: OpenOSCE and OpenOSCE_Demo)")
    parser.add_argument("--worst", type=int, default=0, help="also list this many headings, worst first")
    options = parser.parse_args()
    for rest in (False, True):
        given = rows(options.dataset or ["OpenOSCE", "OpenOSCE_Demo"], rest=rest)
        found = scores(given, PENALTY)
        value, headings = within_headings(given, found)
        charted = sum(row.charted for row in given)
        seen = "wording, value and the rest of the chart" if rest else "wording and value"
        print(f"{seen}: AUROC {value:.3f} ({headings} headings, {charted} charted, {len(given) - charted} completed)")
        for one, name, count in _each(given, found)[: options.worst]:
            print(f"  {one:.2f} {count:4d} {name}")


def _each(given: list[Row], found: Matrix) -> list[tuple[float, str, int]]:
    """Each heading's figure and number of charted results, those that add most to the whole first."""
    by_heading: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(given):
        by_heading[row.heading].append(i)
    each = [
        (within_headings([given[i] for i in own], found[own])[0], name, sum(given[i].charted for i in own))
        for name, own in by_heading.items()
    ]
    return sorted(each, key=lambda one: (0.5 - one[0]) * one[2])


if __name__ == "__main__":
    main()
