"""How much the builtin judge decides, and how often it errs, by the labels of readers and of our own pairs.

python benchmarks/judge.py                          every part except verdicts4, which is held out; 10 seconds
python benchmarks/judge.py --rows second pairs      only these parts
python benchmarks/judge.py --checkout DIR           beside the package in another checkout
python benchmarks/judge.py --list                   also the rows that are wrong or not readable, by number
python benchmarks/judge.py --show                   also their text, as far as it is our own

The judge reads the case's answer key and chart, as in a run. Parts with public cases need `../shared/data` and are
skipped without it. No text of that data is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get("BENCHMARK_CHECKOUT", str(ROOT)))

from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import AnswerKey
from agentclinic.cases.registry import load_cases
from agentclinic.scoring.judges.agreement import kappa_estimate
from agentclinic.scoring.stats import Estimate, Proportion, proportion
from agentclinic.vocabulary.compare import STRICT, Comparison, compare

PAIRS = ROOT / "benchmarks" / "judge_pairs.jsonl"
LABELS = ROOT / "benchmarks" / "labels"
DATA = ROOT.parent / "shared" / "data"
FILES = {"MedQA_Ext": "agentclinic_medqa_extended.jsonl", "NEJM_Ext": "agentclinic_nejm_extended.jsonl"}
RECORDED = {"recorded_1": 0, "recorded_2": 1}
"""The halves of the recorded rows: even and odd row numbers."""
OPEN = (*RECORDED, "development", "second", "test", "test_medqa", "test_nejm", "pairs")
HELD_OUT = ("verdicts4_test", "verdicts4_honest")
"""Opened only by name, once, when the judge's code is finished."""
RIGHT = frozenset(map(str, STRICT))
SEED = 0


class Row(NamedTuple):
    """A diagnosis with what the judge is given and what the readers say."""

    number: Any
    case: str
    says: str
    truth: str
    relations: tuple[str, ...]
    """By reader A and, where there is one, reader B; our own pairs and honest answers have their writer's alone."""
    key: AnswerKey = AnswerKey()
    chart: str = ""
    own: str = ""
    """What `--show` may print: text that we wrote."""

    def judged(self) -> Comparison:
        """What the builtin judge says."""
        return compare(self.says, self.truth, self.key.accept, self.key.partial, self.key.reject, self.chart)

    def right(self, standard: str) -> bool | None:
        """The verdict of a standard; None if this row has none."""
        said = [relation in RIGHT for relation in self.relations]
        if standard == BOTH:
            return said[0] if len(said) == 2 and said[0] == said[1] else None
        return dict(zip(READERS, said, strict=False)).get(standard)


READERS = ("reader A, or the writer", "reader B")
BOTH = "both readers where they agree"


def main(argv: Sequence[str] = ()) -> None:
    """Print the tables of the requested parts for which there is data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=[*OPEN, *HELD_OUT], default=OPEN, metavar="PART", help="parts")
    parser.add_argument("--checkout", type=checkout, help="another checkout, measured as 'before'")
    parser.add_argument("--list", action="store_true", help="list the rows that are wrong or not readable")
    parser.add_argument("--show", action="store_true", help="list them with our own text")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    given = parser.parse_args(argv)
    rows = {part: found for part in given.rows if (found := read_rows(part))}
    judged = {part: [row.judged() for row in found] for part, found in rows.items()}
    verdicts = {part: [_verdict(one) for one in found] for part, found in judged.items()}
    if given.json:
        print(json.dumps(verdicts))
        return
    for part in given.rows:
        if part not in rows:
            print(f"{part}: skipped, because its cases are not in {DATA}")
    times = {"now": verdicts}
    if given.checkout:
        times = {"before": json.loads(in_checkout(given.checkout, __file__, ["--rows", *rows])), **times}
    for standard in (*READERS, BOTH):
        print_table(standard, rows, times)
    if given.list or given.show:
        for part, found in rows.items():
            print_errors(part, found, judged[part], show=given.show)


def checkout(text: str) -> Path:
    """The folder of another checkout."""
    if not (folder := Path(text).resolve()).joinpath("agentclinic", "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"{text}: no package agentclinic there; name the root of a checkout")
    return folder


def in_checkout(folder: Path, script: str, asked: Sequence[str]) -> str:
    """What a benchmark prints with `--json` if it runs with the package of another checkout."""
    env = {**os.environ, "BENCHMARK_CHECKOUT": str(folder)}
    return subprocess.run(
        [sys.executable, script, "--json", *asked], env=env, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_rows(part: str) -> list[Row] | None:
    """All rows of a part; None without the public data that it needs."""
    if part == "pairs":
        return [
            Row(n, pair["truth"], pair["diagnosis"], pair["truth"], (pair["relation"],), chart=pair.get("chart", ""),
                own=f"{pair['diagnosis']!r} for {pair['truth']!r}")
            for n, pair in enumerate(lines(PAIRS))
        ]  # fmt: skip
    if part in HELD_OUT:
        readers = _readers(part) if part == "verdicts4_test" else ()
        return [
            Row(row["id"], row["truth"], row["diagnosis"], row["truth"],
                tuple(reader[row["id"]] for reader in readers) or ("same",),
                own=f"{row['diagnosis']!r} for {row['truth']!r}")
            for row in lines(LABELS / f"{part}.jsonl")
        ]  # fmt: skip
    source = DATA / "judge" / "verdicts.jsonl" if part in RECORDED else LABELS / f"verdicts3_{part}.jsonl"
    entries = lines(source) if source.exists() else []
    dataset = entries[0].get("dataset", "MedQA_Ext") if entries else "MedQA_Ext"
    if not entries or not (file := DATA / "agentclinic" / FILES[dataset]).exists():
        return None
    cases = load_cases(dataset, {dataset: str(file)})
    readers = _readers("verdicts" if part in RECORDED else f"verdicts3_{part}")
    rows = []
    for n, entry in enumerate(entries):
        number, case = entry.get("row", n), cases[entry["case" if "case" in entry else "scenario_id"]]
        says = entry.get("says") or entry["doctor_says"]
        truth = entry.get("correct_diagnosis", case.diagnosis)
        relations = tuple(reader[number] for reader in readers)
        chart, own = chart_text(case.facts), repr(entry["says"]) if "says" in entry else ""
        rows.append(Row(number, str(case.scenario_id), says, truth, relations, case.answer_key, chart, own))
    return rows[RECORDED[part] :: 2] if part in RECORDED else rows


def _readers(labels: str) -> list[dict[Any, str]]:
    """The relations that readers A and B give, by row."""
    files = [lines(LABELS / f"{labels}_reader_{reader}.jsonl") for reader in "ab"]
    return [{label.get("row", label.get("id")): label["relation"] for label in file} for file in files]


def _verdict(found: Comparison) -> bool | None:
    return None if found.relation is None else found.relation in STRICT


# --- the tables -----------------------------------------------------------------------------------------------------


class Tally(NamedTuple):
    """What a judge's verdicts on some rows come to by one standard."""

    decided: Proportion
    wrong: Proportion
    """Of the decided."""
    false_yes: int
    false_no: int
    sensitivity: Proportion
    specificity: Proportion
    accuracy: Proportion
    """With what was not readable counted as wrong."""
    kappa: Estimate


def tally(rows: Sequence[Row], verdicts: Sequence[bool | None], standard: str) -> Tally | None:
    """Compare verdicts with a standard; None if it says nothing about these rows."""
    meant = [(said, row.right(standard), row.case) for row, said in zip(rows, verdicts, strict=True)]
    meant = [one for one in meant if one[1] is not None]
    if not meant:
        return None
    decided = [one for one in meant if one[0] is not None]
    kinds = ((True, True), (True, False), (False, True), (False, False))
    both, false_yes, false_no, neither = (sum(one[:2] == kind for one in decided) for kind in kinds)
    cells = [[float(one[:2] == kind) for kind in kinds] for one in decided]
    return Tally(
        proportion(len(decided), len(meant)),
        proportion(false_yes + false_no, len(decided)),
        false_yes,
        false_no,
        proportion(both, both + false_no),
        proportion(neither, neither + false_yes),
        proportion(both + neither, len(meant)),
        kappa_estimate(cells, [one[2] for one in decided], SEED),
    )


def print_table(standard: str, rows: dict[str, list[Row]], times: dict[str, dict[str, list[bool | None]]]) -> None:
    """One line per part and time, and one for all rows that readers have marked."""
    print(f"\nBy {standard}: percent with 95 % intervals; accuracy counts what is not readable as wrong")
    print(f"{'':24}{'rows':>5}{'decided':>22}{'wrong of decided':>22}{'false Yes':>11}{'false No':>10}"
          f"{'sensitivity':>13}{'specificity':>13}{'accuracy':>10}{'kappa of decided':>22}")  # fmt: skip
    read = [part for part, found in rows.items() if len(found[0].relations) > 1]
    for parts in (*([part] for part in rows), *([read] if len(read) > 1 else [])):
        found = [row for part in parts for row in rows[part]]
        for when, verdicts in times.items():
            said = [verdict for part in parts for verdict in verdicts[part]]
            if result := tally(found, said, standard):
                label = f"{parts[0] if len(parts) == 1 else 'all with readers'}{'' if len(times) == 1 else f', {when}'}"
                print(f"{label:24}{result.decided.of:>5}{_share(result.decided):>22}{_share(result.wrong):>22}"
                      f"{result.false_yes:>11}{result.false_no:>10}{_percent(result.sensitivity.value):>13}"
                      f"{_percent(result.specificity.value):>13}{_percent(result.accuracy.value):>10}"
                      f"{_kappa(result.kappa):>22}")  # fmt: skip


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _share(found: Proportion) -> str:
    return f"{_percent(found.value)} ({_percent(found.low)} - {_percent(found.high)})"


def _kappa(found: Estimate) -> str:
    return "-" if found.low is None else f"{found.value:.2f} ({found.low:.2f} - {found.high:.2f})"


def print_errors(part: str, rows: Sequence[Row], judged: Sequence[Comparison], *, show: bool) -> None:
    """The rows that are not readable or that reader A judges otherwise."""
    print(f"\n{part}")
    for row, found in zip(rows, judged, strict=True):
        said, meant = _verdict(found), row.right(READERS[0])
        if said is not meant:
            kind = "not readable" if said is None else "false Yes" if said else "false No"
            relations = " / ".join((found.relation or "-", *row.relations))
            # The reason for a relation may quote the truth, which is our own text only where there is no case.
            reason = f" ({found.reason})" if said is None or row.case == row.truth else ""
            print(f"  row {row.number} {kind}: {relations}{f' {row.own}{reason}' if show and row.own else ''}")


if __name__ == "__main__":
    main(sys.argv[1:])
