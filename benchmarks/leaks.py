"""How often the leak checker finds a diagnosis in MedQA_Ext, and how often it is wrong.

python benchmarks/leaks.py          look for every case's diagnosis in that case and in every other case
python benchmarks/leaks.py --list   also print each place, for a person to read

A case may rightly name another case's diagnosis (a father's lung cancer), so a person has to read every place before it
counts as a mistake. The result is in docs/generate.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agentclinic.cases.leaks import leaks, names_of
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.vocabulary.names import name

PUBLIC = Path(__file__).parents[2] / "shared" / "data" / "agentclinic" / "agentclinic_medqa_extended.jsonl"


class Hit(NamedTuple):
    """A diagnosis found in a case."""

    row: int
    diagnosis: str
    path: str
    phrase: str
    text: str


def own(cases: list[Case]) -> Iterator[Hit]:
    """Where cases name their own diagnosis."""
    for case in cases:
        texts = {fact.path: fact.text for fact in case.facts}
        for leak in leaks(case):
            yield Hit(case.scenario_id, case.diagnosis, leak.path, leak.phrase, texts.get(leak.path, ""))


def foreign(cases: list[Case]) -> tuple[int, list[Hit]]:
    """How many pairs of a case and another's diagnosis there are, and where a case names such a diagnosis."""
    known = {case.diagnosis: names_of(case) for case in cases}
    pairs = 0
    hits: list[Hit] = []
    for case in cases:
        texts = {fact.path: fact.text for fact in case.facts} | {"Objective_for_Doctor": case.door.objective}
        for diagnosis, names in known.items():
            if name(diagnosis).key == name(case.diagnosis).key:
                continue
            pairs += 1
            hits += [
                Hit(case.scenario_id, diagnosis, leak.path, leak.phrase, texts.get(leak.path, ""))
                for leak in leaks(case, names)
            ]
    return pairs, hits


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print each place")
    listing = parser.parse_args().list
    if not PUBLIC.is_file():
        raise SystemExit(f"{PUBLIC}: no such file")
    cases = load_cases("MedQA_Ext", {"MedQA_Ext": str(PUBLIC)})
    found = list(own(cases))
    pairs, others = foreign(cases)
    for title, hits, of in (
        ("own diagnosis", found, f"{len(cases)} cases"),
        ("another's diagnosis", others, f"{pairs} pairs of a case and another's diagnosis"),
    ):
        places = len({(hit.row, hit.diagnosis) for hit in hits})
        print(f"{title}: found in {places} of {of}, at {len(hits)} places")
        for hit in hits if listing else ():
            print(f"  row {hit.row} | {hit.diagnosis} | {hit.phrase} | {hit.path} | {hit.text[:200]}")


if __name__ == "__main__":
    main()
