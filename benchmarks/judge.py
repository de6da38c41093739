"""How well the builtin judge agrees with two readers, with a language-model judge, and with our adversarial pairs.

`python benchmarks/judge.py` prints the recorded rows, the fresh development rows and the pairs; `--rows test` prints
only the held-out part. Rows labelled by readers need the public data in `../shared/data` and are skipped without it.
Disputes are listed by row number, without any text of the data.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agentclinic.cases.facts import chart_text
from agentclinic.cases.registry import load_cases
from agentclinic.scoring.judges.agreement import kappa_estimate
from agentclinic.scoring.stats import Clusters, bootstrap_interval, case_draws, mcnemar_p, proportion, totals_by_case
from agentclinic.vocabulary.compare import STRICT, Relation, compare

# Fresh parts: `verdicts3_<part>.jsonl` with `verdicts3_<part>_reader_a.jsonl` and `_reader_b.jsonl`.
FRESH = "verdicts3_"
FILES = {"MedQA_Ext": "agentclinic_medqa_extended.jsonl", "NEJM_Ext": "agentclinic_nejm_extended.jsonl"}
"""The files of the cases, by the `dataset` of a part's rows."""
DEFAULT = ("recorded", "development", "second", "pairs")
PAIRS = ROOT / "benchmarks" / "judge_pairs.jsonl"
LABELS = ROOT / "benchmarks" / "labels"
DATA = ROOT.parent / "shared" / "data"
RELATIONS = [str(relation) for relation in Relation]
RIGHT = frozenset(str(relation) for relation in STRICT)
NAIVE = 70
"""Token-set ratio from which the naive baseline says yes."""
SEED = 0


def main(argv: Sequence[str] = ()) -> None:
    """Print the requested parts for which there is data."""
    fresh = fresh_parts()
    parser = argparse.ArgumentParser(description="How well the builtin judge agrees with readers and with our pairs.")
    parser.add_argument(
        "--rows",
        nargs="+",
        choices=["recorded", *fresh, "pairs"],
        default=[part for part in DEFAULT if part in ("recorded", "pairs", *fresh)],
        help="parts to print (default: all except test, the held-out part)",
    )
    for part in parser.parse_args(argv).rows:
        if part == "pairs":
            print_pairs()
        elif (rows := read_rows(part)) is None:
            print(f"{part}: the public data is not in {DATA}, so these rows are skipped\n")
        else:
            print_readers(part, rows)


def fresh_parts() -> list[str]:
    """The names of the fresh parts that have rows."""
    found = (path.stem.removeprefix(FRESH) for path in sorted(LABELS.glob(f"{FRESH}*.jsonl")))
    return [part for part in found if "_reader_" not in part]


# --- the naive baseline ---------------------------------------------------------------------------------------------


def token_set_ratio(one: str, other: str) -> float:
    """The highest similarity, 0 to 100, among the shared words and the shared words with the rest of either side."""
    left, right = set(one.lower().split()), set(other.lower().split())
    shared = " ".join(sorted(left & right))
    first = f"{shared} {' '.join(sorted(left - right))}".strip()
    second = f"{shared} {' '.join(sorted(right - left))}".strip()
    if shared and (shared in (first, second)):
        return 100.0
    return max(_similarity(shared, first), _similarity(shared, second), _similarity(first, second))


def _similarity(one: str, other: str) -> float:
    """2 · longest common subsequence ÷ both lengths, in per cent."""
    row = [0] * (len(other) + 1)
    for a in one:
        before = row[:]
        for j, b in enumerate(other, start=1):
            row[j] = before[j - 1] + 1 if a == b else max(before[j], row[j - 1])
    return 200 * row[-1] / max(1, len(one) + len(other))


def naive(diagnosis: str, truth: str) -> bool:
    """Whether the baseline says yes."""
    said = diagnosis.split("DIAGNOSIS READY:")[-1]
    return token_set_ratio(_bare(said), _bare(truth)) >= NAIVE


def _bare(text: str) -> str:
    return "".join(char if char.isalnum() else " " for char in text)


# --- the readers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A diagnosis with the verdicts of readers and judges."""

    number: int
    case: str
    a: str
    b: str
    recorded: bool | None
    """The language model's verdict; fresh rows have none."""
    ours: str
    with_chart: str
    """Ours, with the case's chart as evidence for what a diagnosis says beyond the truth."""
    naive: bool


def read_rows(part: str = "recorded") -> list[Row] | None:
    """All rows of a part, judged now; None without the public data."""
    source = DATA / "judge" / "verdicts.jsonl"
    entries = (
        _lines(LABELS / f"{FRESH}{part}.jsonl") if part != "recorded" else _lines(source) if source.exists() else []
    )
    dataset = entries[0].get("dataset", "MedQA_Ext") if entries else "MedQA_Ext"
    cases = DATA / "agentclinic" / FILES[dataset]
    if not entries or not cases.exists():
        return None
    loaded = load_cases(dataset, {dataset: str(cases)})
    if part == "recorded":
        labels = "verdicts"
        stated = [(entry["scenario_id"], entry["doctor_says"], entry["correct_diagnosis"]) for entry in entries]
    else:
        labels = f"{FRESH}{part}"
        stated = [(entry["case"], entry["says"], loaded[entry["case"]].diagnosis) for entry in entries]
    a, b = (
        {label["row"]: label["relation"] for label in _lines(LABELS / f"{labels}_reader_{reader}.jsonl")}
        for reader in "ab"
    )
    rows = []
    for place, (entry, (case, says, truth)) in enumerate(zip(entries, stated, strict=True)):
        number = entry.get("row", place)
        rows.append(
            Row(
                number,
                str(case),
                a[number],
                b[number],
                entry["verdict"] == "Yes" if part == "recorded" else None,
                compare(says, truth).relation.value,
                compare(says, truth, chart=chart_text(loaded[case].facts)).relation.value,
                naive(says, truth),
            )
        )
    return rows


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


Verdict = Callable[[Row], bool]
JUDGES: dict[str, Verdict] = {
    "reader A": lambda row: row.a in RIGHT,
    "reader B": lambda row: row.b in RIGHT,
    "recorded": lambda row: bool(row.recorded),
    "ours": lambda row: row.ours in RIGHT,
    "ours+chart": lambda row: row.with_chart in RIGHT,
    "naive": lambda row: row.naive,
}
READERS = ("reader A", "reader B")


def print_readers(part: str, rows: list[Row]) -> None:
    """Agreement among readers and judges on one part, and every dispute by row."""
    recorded = all(row.recorded is not None for row in rows)
    halves = {"development": rows[::2], "test": rows[1::2], "all": rows} if recorded else {part: rows}
    standards = (*READERS, "recorded") if recorded else READERS
    print(f"{part.capitalize()} rows: {len(rows)} of {len({row.case for row in rows})} cases")
    print(f"  readers A and B name the same relation in {sum(row.a == row.b for row in rows)}\n")
    print("Strict yes/no, Cohen's kappa with 95 % interval (cases redrawn)")
    print(f"  {'':26}" + "".join(f"{f'{half} ({len(chosen)})':>26}" for half, chosen in halves.items()))
    for first, second in (
        READERS,
        *((judge, other) for other in standards for judge in ("ours", "ours+chart", "naive")),
        *(("recorded", reader) for reader in READERS if recorded),
    ):
        shown = "".join(f"{_kappa(chosen, JUDGES[first], JUDGES[second]):>26}" for chosen in halves.values())
        print(f"  {f'{first} / {second}':26}" + shown)
    print("\nThe eight relations, kappa with 95 % interval, all rows")
    for label, one, other in (
        ("reader A / reader B", "a", "b"),
        ("ours / reader A", "ours", "a"),
        ("ours / reader B", "ours", "b"),
        ("ours+chart / reader A", "with_chart", "a"),
        ("ours+chart / reader B", "with_chart", "b"),
    ):
        print(f"  {label:26}{relation_kappa(rows, one, other):>26}")
    print("\nWrong by the readers, all rows")
    for judge in ("ours", "ours+chart", "naive"):
        print(f"  {judge:12}" + "; ".join(_wrong(rows, judge, reader) for reader in READERS))
    print("\nPaired: difference of agreement with the standard, 95 % interval, McNemar's p")
    for better, worse, standard in (
        *((judge, "naive", other) for other in standards for judge in ("ours", "ours+chart")),
        *((judge, "reader B", "reader A") for judge in ("ours", "ours+chart")),
        *((judge, "reader A", "reader B") for judge in ("ours", "ours+chart")),
    ):
        for half in ("test", "all") if recorded else (part,):
            difference = _paired(halves[half], JUDGES[better], JUDGES[worse], JUDGES[standard])
            print(f"  {f'{better} - {worse}, by {standard}, {half}':54}{difference}")
    print("\nDisputes: rows where ours and a reader, or the readers, differ in yes or no")
    for row in rows:
        if len({row.ours in RIGHT, row.with_chart in RIGHT, row.a in RIGHT, row.b in RIGHT}) > 1:
            print(_dispute(row))
    print()


def _wrong(rows: Sequence[Row], judge: str, reader: str) -> str:
    said, meant = JUDGES[judge], JUDGES[reader]
    yes = sum(said(row) and not meant(row) for row in rows)
    no = sum(meant(row) and not said(row) for row in rows)
    return f"by {reader} {yes} Yes and {no} No"


def _dispute(row: Row) -> str:
    half, recorded = "", ""
    if row.recorded is not None:
        half = "test " if row.number % 2 else "dev  "
        recorded = f"; recorded {'Yes' if row.recorded else 'No'}"
    chart = f" (with chart {row.with_chart})" if row.with_chart != row.ours else ""
    return f"  row {row.number:2} {half}ours {row.ours}{chart}; A {row.a}; B {row.b}{recorded}"


def _kappa(rows: Sequence[Row], one: Verdict, other: Verdict) -> str:
    kinds = ((True, True), (True, False), (False, True), (False, False))
    cells = [[float((one(row), other(row)) == kind) for kind in kinds] for row in rows]
    found = kappa_estimate(cells, [row.case for row in rows], SEED)
    return found.note or "" if found.value is None else f"{found.value:.2f} ({found.low:.2f} - {found.high:.2f})"


def relation_kappa(rows: Sequence[Row], one: str, other: str) -> str:
    """Cohen's kappa over the eight relations, cases redrawn."""
    size = len(RELATIONS)
    cells = np.zeros((len(rows), size * size))
    for place, row in enumerate(rows):
        cells[place, RELATIONS.index(getattr(row, one)) * size + RELATIONS.index(getattr(row, other))] = 1
    totals = totals_by_case(cells, [row.case for row in rows])

    def kappa(tables: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        square = tables.reshape(-1, size, size)
        total = square.sum(axis=(1, 2))
        agreed = np.trace(square, axis1=1, axis2=2) / total
        expected = (square.sum(axis=1) * square.sum(axis=2)).sum(axis=1) / total**2
        return np.asarray((agreed - expected) / (1 - expected))

    draws = kappa(case_draws(totals, np.full(size * size, 2 / size**2), np.random.default_rng(SEED)))
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{float(kappa(totals.sum(axis=0))[0]):.2f} ({low:.2f} - {high:.2f})"


def _paired(rows: Sequence[Row], better: Verdict, worse: Verdict, standard: Verdict) -> str:
    one = [better(row) == standard(row) for row in rows]
    other = [worse(row) == standard(row) for row in rows]
    differences = Clusters.of([float(x) - float(y) for x, y in zip(one, other, strict=True)], [r.case for r in rows])
    found = bootstrap_interval(differences, np.random.default_rng(SEED))
    gained = sum(x and not y for x, y in zip(one, other, strict=True))
    lost = sum(y and not x for x, y in zip(one, other, strict=True))
    p = mcnemar_p(gained, lost)
    return f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f}), {gained} gained, {lost} lost, p = {p:.3g}"


# --- our pairs ------------------------------------------------------------------------------------------------------


def print_pairs() -> None:
    """Accuracy on the adversarial pairs, all of which have been read by now: none is held out any more."""
    pairs = _lines(PAIRS)
    print(f"Our own adversarial pairs ({len(pairs)}): agreement with their label, 95 % interval")
    for part, held, fresh in (
        ("tuned", False, False),
        ("holdout", True, False),
        ("holdout, written later", True, True),
    ):
        chosen = [p for p in pairs if bool(p.get("holdout")) is held and bool(p.get("fresh")) is fresh]
        judged = [
            compare(pair["diagnosis"], pair["truth"], chart=pair.get("chart", "")).relation.value for pair in chosen
        ]
        strict = sum((mine in RIGHT) == (pair["relation"] in RIGHT) for mine, pair in zip(judged, chosen, strict=True))
        base = sum(naive(pair["diagnosis"], pair["truth"]) == (pair["relation"] in RIGHT) for pair in chosen)
        same = sum(mine == pair["relation"] for mine, pair in zip(judged, chosen, strict=True))
        print(f"  {part} ({len(chosen)})")
        for label, count in (("yes/no", strict), ("yes/no, naive", base), ("relation", same)):
            share = proportion(count, len(chosen))
            print(f"    {label:32}{count:4} {share.value:.3f} ({share.low:.3f} - {share.high:.3f})")
        total = Counter(pair["relation"] for pair in chosen)
        hits = Counter(p["relation"] for mine, p in zip(judged, chosen, strict=True) if mine == p["relation"])
        for relation in RELATIONS:
            print(f"      {relation:30}{hits[relation]:4} of {total[relation]}")


if __name__ == "__main__":
    main(sys.argv[1:])
