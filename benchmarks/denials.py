"""How often the builtin patient denies what the chart says, and how often it asks back.

`python benchmarks/denials.py [--part development|second|recorded|test|...] [--folds DIR]` prints, for the questions
whose answer is in the chart, how many are
- denied wholly (a denial, and no fact told) or in part (a denial, and a marked fact not told), and how many denials
  beside an answer are right (no marked fact is left untold),
- contradicted (the same, and the fact that was not told affirms something that no told fact says: most denials in part
  leave out a repetition or another denial),
- answered with "I don't know" alone, and answered by asking back;
for the questions that no reader found an answer to, how many are denied, by default or with the words of a charted
denial, and what happens to the others; and precision and recall of the facts.

The trees were fitted to `development`, `second` and the recorded questions (`recorded`, marked by two readers, and
`developer`, by one): `--folds DIR` uses, for each case, trees that were not fitted to it
(`python benchmarks/fit_patient.py --folds DIR`). `--list KIND` prints the questions and replies of a kind in these
parts, which may be read. It needs the public data at `../shared/data`.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.builtin.roles import answer
from agentclinic.cases.matcher import questions, relevance
from agentclinic.cases.matcher.statements import statement
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.answers import payload_of
from agentclinic.models.base import Reply
from agentclinic.results.turn import Provenance

LABELS = ROOT / "benchmarks" / "labels"
DATA = ROOT.parent / "shared" / "data"
PARTS = {part: f"questions3_{part}" for part in ("development", "second", "third", "test")} | {
    "fifth_development": "questions5_development",
    "fifth": "questions5_test",
    "sixth_development": "questions6_development",
    "sixth": "questions6_test",
}
RECORDED = {"recorded": ("questions", "questions2"), "developer": ("questions_developer",)}
"""Parts of the recorded questions: two readers marked the first, one the second."""
READABLE = ("development", "second", "fifth_development", "sixth_development", *RECORDED)
FOLDS = 5


@dataclass(frozen=True)
class Row:
    """A labelled question: what all readers say answers it, and what any does."""

    case: Case
    question: str
    agreed: frozenset[str]
    any_reader: frozenset[str]

    @property
    def fold(self) -> int:
        """The fold in which fit_patient.py leaves its case out."""
        return zlib.crc32(self.case.id.encode()) % FOLDS


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def rows_of(part: str) -> list[Row]:
    """The labelled questions of a part."""
    public = {"MedQA_Ext": str(DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl")}
    if part in RECORDED:
        said = enumerate(_lines(DATA / "judge" / "patient_questions.jsonl"))
        asked = {row: {"dataset": "MedQA_Ext", "case": line["scenario_id"], **line} for row, line in said}
        return [row for name in RECORDED[part] for row in _marked(asked, name, public)]
    return _marked({line["row"]: line for line in _lines(LABELS / f"{PARTS[part]}.jsonl")}, PARTS[part], public)


def _marked(asked: Mapping[int, dict[str, Any]], labels: str, public: Mapping[str, str]) -> list[Row]:
    """The questions that all readers of a file of labels marked, or else those that the file itself marks."""
    names = {line["dataset"] for line in asked.values()}
    cases = {(name, case.scenario_id): case for name in names for case in load_cases(name, public)}
    marks = sorted(LABELS.glob(f"{labels}_reader_*.jsonl")) or [LABELS / f"{labels}.jsonl"]
    readers = [{line["row"]: frozenset(line["paths"]) for line in _lines(path)} for path in marks]
    return [
        Row(
            cases[line["dataset"], line["case"]],
            line["question"],
            frozenset.intersection(*(reader[row] for reader in readers)),
            frozenset.union(*(reader[row] for reader in readers)),
        )
        for row, line in asked.items()
        if all(row in reader for reader in readers)
    ]


def replies(rows: Sequence[Row], folds: Path | None) -> Iterator[tuple[Row, Reply]]:
    """The builtin patient's reply to each; with folds, by trees that were not fitted to the case."""
    for fold in range(FOLDS) if folds else (None,):
        if folds:
            relevance._TREES = folds / f"fold{fold}.json"
            relevance._trees.cache_clear()
            questions._asked_of_patient.cache_clear()
        for row in rows:
            if fold is None or row.fold == fold:
                yield row, answer(payload_of(row.case, row.question))


def kinds(row: Row, reply: Reply) -> set[str]:
    """What can be said about a reply."""
    by = Counter(disclosure.provenance.value for disclosure in reply.disclosures)
    told = {path for disclosure in reply.disclosures for path in disclosure.paths}
    facts = {fact.path: statement(fact) for fact in row.case.patient_facts}
    denies, asks = by[Provenance.DEFAULT_NEGATIVE], by["not_understood"]
    found = set[str]()
    if row.agreed:
        found.add("answerable")
        if denies and not told:
            found.add("denied wholly")
        if denies and told:
            found.add("denied in part" if row.agreed - told else "denied beside, rightly")
        said = reduce(or_, (facts[path].main for path in told), 0)
        untold = [facts[path] for path in row.agreed - told]
        if denies and any(not one.negative and not (one.main and one.main & said == one.main) for one in untold):
            found.add("contradicted wholly" if not told else "contradicted in part")
        if not told and not denies and not asks:
            found.add("not known")
        if asks and not told:
            found.add("asked back wholly")
        if asks:
            found.add("asked back")
    elif not row.any_reader:
        found.add("silent")
        if (told and all(facts[path].negative for path in told)) or (denies and not told):
            found.add("denied by chart or default")
        found.add("told something" if told else "denied" if denies else "asked back instead" if asks else "not known")
    return found


LINES = (
    (
        "answerable",
        (
            "denied wholly",
            "denied in part",
            "contradicted wholly",
            "contradicted in part",
            "denied beside, rightly",
            "not known",
            "asked back wholly",
            "asked back",
        ),
    ),
    ("silent", ("denied", "denied by chart or default", "not known", "told something", "asked back instead")),
)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=(*PARTS, *RECORDED), default="development")
    parser.add_argument("--folds", type=Path, help="trees of each fold, written by fit_patient.py --folds")
    parser.add_argument("--list", metavar="KIND", help="also print questions and replies of this kind")
    given = parser.parse_args()
    if not (DATA / "agentclinic").exists():
        print(f"Skipped: the public data is not there ({DATA}).")
        return
    counts: Counter[tuple[str, str]] = Counter()
    right = said = marked = 0
    for row, reply in replies(rows_of(given.part), given.folds):
        found = kinds(row, reply)
        base = "answerable" if "answerable" in found else "silent"
        counts.update((base, kind) for kind in found)
        told = {path for disclosure in reply.disclosures for path in disclosure.paths}
        told -= row.any_reader - row.agreed
        right, said, marked = right + len(told & row.agreed), said + len(told), marked + len(row.agreed)
        if given.list in found and given.part in READABLE:
            facts = {fact.path: fact.text for fact in row.case.patient_facts}
            print(f"{row.case.name}: {row.question}\n  -> {reply.text}")
            print("".join(f"  {'told' if path in told else 'NOT TOLD'}: {facts[path]}\n" for path in row.agreed))
    for base, rest in LINES:
        total = counts[base, base]
        print(
            f"{given.part}: {total} questions {'answered by the chart' if base == 'answerable' else 'it is silent on'}"
        )
        for kind in rest:
            print(f"  {kind:<28} {counts[base, kind]:>5}  {counts[base, kind] / max(1, total):.1%}")
    print(f"facts: precision {right / max(1, said):.3f}, recall {right / max(1, marked):.3f}")


if __name__ == "__main__":
    main()
