"""Fit the trees that the builtin patient uses to choose what to tell, and measure them on unseen cases.

`python benchmarks/fit_patient.py [--write]` needs LightGBM (`pip install -e '.[fit]'`) and the public data at
`../shared/data`. It reads the questions marked for development (`benchmarks/labels`), prints precision and recall in
five folds, whole cases left out in each, and with `--write` fits to all of them and writes
`agentclinic/cases/data/answers.json`. The rows marked for the test are not read.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.cases.matcher.asking import clauses
from agentclinic.cases.matcher.relevance import FEATURES, features
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases

LABELS = ROOT / "benchmarks" / "labels"
DATA = ROOT.parent / "shared" / "data"
MODEL = ROOT / "agentclinic" / "cases" / "data" / "answers.json"
FOLDS = 5
TREES = 300
# Shallow trees did as well as deep ones in the folds, and are read through faster.
SETTINGS = {
    "objective": "binary", "num_leaves": 8, "max_depth": 4, "learning_rate": 0.08, "min_data_in_leaf": 30,
    "feature_fraction": 0.3, "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l2": 5, "seed": 1, "verbose": -1,
    "num_threads": 1, "deterministic": True, "force_row_wise": True,
}  # fmt: skip
FOLD_THRESHOLD = json.loads(MODEL.read_text(encoding="utf-8"))["threshold"]
"""The threshold of the trees in use."""
CAUTION = 0.07
"""Added to the threshold with the best F1: near statements are told as well where nothing reaches it. So the threshold
stays where the margins in `questions.py` were chosen."""
RECORDED_WEIGHT = 2.0
"""Recorded questions are few compared with those written for this purpose, so they count more."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """A question with the paths of the facts that answer it."""

    source: str
    case: Case
    question: str
    paths: frozenset[str]
    disputed: frozenset[str] = frozenset()
    """Marked by only one reader: left out."""


@dataclass(frozen=True)
class Pair:
    """A question and a statement, with the features of each part of the question."""

    labelled: Labelled
    answers: bool
    features: Floats

    @property
    def fold(self) -> int:
        """The fold of its case."""
        return zlib.crc32(self.labelled.case.id.encode()) % FOLDS

    @property
    def weight(self) -> float:
        """Its weight."""
        return RECORDED_WEIGHT if self.labelled.source == "recorded" else 1.0


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def development() -> list[Labelled]:
    """Every question marked for development."""
    public = {"MedQA_Ext": str(DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl")}
    names = ("MedQA_Ext", "OpenOSCE_1")
    cases = {(name, case.scenario_id): case for name in names for case in load_cases(name, public)}
    said = _lines(DATA / "judge" / "patient_questions.jsonl")
    recorded = {row: (cases["MedQA_Ext", line["scenario_id"]], line["question"]) for row, line in enumerate(said)}
    second = {
        line["row"]: (cases[line["dataset"], line["case"]], line["question"])
        for line in _lines(LABELS / "questions3_second.jsonl")
    }
    found = [
        *_read_twice("recorded", recorded, "questions"),
        *_read_twice("recorded", recorded, "questions2"),
        *_read_twice("MedQA_Ext", second, "questions3_second"),
    ]
    found += [
        Labelled("recorded", *recorded[line["row"]], frozenset(line["paths"]))
        for line in _lines(LABELS / "questions_developer.jsonl")
    ]
    for line in _lines(LABELS / "questions3_development.jsonl"):
        case = cases[line["dataset"], line["case"]]
        found.append(Labelled(line["dataset"], case, line["question"], frozenset(line["paths"])))
    return found


def _read_twice(source: str, asked: Mapping[int, tuple[Case, str]], labels: str) -> Iterator[Labelled]:
    """Questions marked by two readers; what only one marked is left out."""
    first, second = (
        {line["row"]: frozenset(line["paths"]) for line in _lines(LABELS / f"{labels}_reader_{reader}.jsonl")}
        for reader in "ab"
    )
    for row, paths in first.items():
        yield Labelled(source, *asked[row], paths & second[row], paths ^ second[row])


def pairs_of(questions: Sequence[Labelled]) -> list[Pair]:
    """Each question with each statement of its case."""
    made = []
    for one in questions:
        facts = one.case.patient_facts
        table = features(clauses(one.question), facts)
        made += [
            Pair(one, fact.path in one.paths, table[row])
            for row, fact in enumerate(facts)
            if fact.path not in one.disputed
        ]
    return made


def fit(pairs: Sequence[Pair]) -> Any:
    """Fit trees to parts of questions, though the marks are of whole questions.

    A statement that answers is counted with the part it answers best: by the concepts at first, then by the trees
    fitted so. One that does not answer is counted with every part.
    """
    right = [pair for pair in pairs if pair.answers]
    by_concepts = [FEATURES.index(name) for name in ("exact", "child", "word_share", "link_share")]
    weights = np.array([2.0, 1.5, 1.0, 0.01])
    best = [int((np.minimum(pair.features[:, by_concepts], 1) @ weights).argmax()) for pair in right]
    booster = _train(pairs, right, best)
    best = [int(booster.predict(pair.features, num_threads=1).argmax()) for pair in right]
    return _train(pairs, right, best)


def _train(pairs: Sequence[Pair], right: Sequence[Pair], best: Sequence[int]) -> Any:
    import lightgbm

    rows = [pair.features[at] for pair, at in zip(right, best, strict=True)]
    weights = [pair.weight for pair in right]
    wrong = [pair for pair in pairs if not pair.answers]
    rows += [row for pair in wrong for row in pair.features]
    weights += [pair.weight / len(pair.features) ** 0.5 for pair in wrong for _ in pair.features]
    marks = np.arange(len(rows)) < len(right)
    data = lightgbm.Dataset(np.array(rows), marks.astype(float), weight=np.array(weights))
    return lightgbm.train(SETTINGS, data, TREES)


def probabilities(booster: Any, pairs: Sequence[Pair]) -> Floats:
    """The best part of each pair."""
    table = np.vstack([pair.features for pair in pairs])
    parts = booster.predict(table, num_threads=1)
    ends = np.cumsum([len(pair.features) for pair in pairs])
    return np.array([part.max() for part in np.split(parts, ends[:-1])])


def in_folds(pairs: Sequence[Pair], folder: Path | None = None) -> Floats:
    """The predictions of trees that were not fitted to the case; the trees of each fold are written to a folder."""
    found = np.zeros(len(pairs))
    for fold in range(FOLDS):
        inside = [at for at, pair in enumerate(pairs) if pair.fold == fold]
        booster = fit([pair for pair in pairs if pair.fold != fold])
        found[inside] = probabilities(booster, [pairs[at] for at in inside])
        if folder:
            write(booster, FOLD_THRESHOLD, folder / f"fold{fold}.json")
        print(f"  fold {fold + 1} of {FOLDS}", file=sys.stderr)
    return found


def best_threshold(found: Floats, answers: NDArray[np.bool_]) -> float:
    """The threshold with the best F1 in the folds."""
    steps = np.arange(0.2, 0.71, 0.01)
    scores = [2 * (told & answers).sum() / (told.sum() + answers.sum()) for step in steps for told in [found >= step]]
    return float(round(steps[int(np.argmax(scores))], 2))


def print_figures(pairs: Sequence[Pair], found: Floats, threshold: float) -> None:
    """Precision and recall by source of the questions."""
    answers = np.array([pair.answers for pair in pairs])
    sources = np.array([pair.labelled.source for pair in pairs])
    print(
        f"{len({id(pair.labelled) for pair in pairs})} questions, {len(pairs)} decisions, told from {threshold:.2f} on"
    )
    for source in sorted(set(sources)):
        told, marked = found[sources == source] >= threshold, answers[sources == source]
        right = (told & marked).sum()
        print(f"  {source:<10} precision {right / told.sum():.3f}  recall {right / marked.sum():.3f}")


def write(booster: Any, threshold: float, path: Path = MODEL) -> None:
    """Write the trees as lists of numbers of equal length."""
    trees = [_flat(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]
    longest = max(len(nodes) for nodes in trees)
    columns: dict[str, list[list[float]]] = {key: [] for key in ("feature", "bound", "left", "right", "value")}
    for nodes in trees:
        padded = nodes + [(0, 0.0, at, at, 0.0) for at in range(len(nodes), longest)]
        for key, values in zip(columns, zip(*padded, strict=True), strict=True):
            columns[key].append(list(values))
    data = {"features": FEATURES, "threshold": threshold, "depth": SETTINGS["max_depth"], **columns}
    path.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"wrote {path}: {len(trees)} trees of up to {longest} nodes")


def _flat(tree: dict[str, Any]) -> list[tuple[int, float, int, int, float]]:
    """The nodes of a tree: feature, bound, next node up to and beyond the bound, value; a leaf points to itself."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def add(node: dict[str, Any]) -> int:
        at = len(nodes)
        nodes.append((0, 0.0, at, at, round(float(node.get("leaf_value", 0.0)), 6)))
        if "split_feature" in node:
            left, right = add(node["left_child"]), add(node["right_child"])
            nodes[at] = (node["split_feature"], float(node["threshold"]), left, right, 0.0)
        return at

    add(tree)
    return nodes


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures in folds; with --write, fit to everything and write the trees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="fit to everything and write the package's trees")
    parser.add_argument("--folds", type=Path, help="write the trees of each fold here, for benchmarks/denials.py")
    given = parser.parse_args(arguments)
    if not (DATA / "judge").exists():
        print(f"Skipped: the public data is not there ({DATA}).")
        return
    pairs = pairs_of(development())
    found = in_folds(pairs, given.folds)
    threshold = round(best_threshold(found, np.array([pair.answers for pair in pairs])) + CAUTION, 2)
    print_figures(pairs, found, threshold)
    if given.write:
        write(fit(pairs), threshold)


if __name__ == "__main__":
    main()
