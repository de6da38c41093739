"""What the mere presence of a test gives away.

`python benchmarks/availability.py` plays a doctor that sees neither patient nor values, only which tests have a result,
and looks the diagnosis up in a table. Two language-model writers who had read which charts hold which tests wrote the
best tables they could (`benchmarks/labels/availability.json`). The last line of each version is what no table can beat:
for each pattern of presence over all these tests and all chart headings, one right case.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agentclinic.cases.completion import completion
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.laboratory import matched, results_line
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.pending import hours_for
from agentclinic.config import RunSettings
from agentclinic.results.turn import Provenance
from agentclinic.runs.limits import limits_of

TABLES = Path(__file__).parent / "labels" / "availability.json"
GIVEN = frozenset({Provenance.CHART, Provenance.DEFAULT_NORMAL})
ANSWERED = GIVEN | {Provenance.CHART_EQUIVALENT}
VERSIONS = ("OpenOSCE_1", "OpenOSCE")


@cache
def cases_of(dataset: str) -> tuple[Case, ...]:
    """All cases of a version, including the lockbox: only counts are printed."""
    return tuple(load_cases(dataset, lockbox=True))


@cache
def provenances(dataset: str, row: int, test: str) -> frozenset[Provenance]:
    """Where the answer to an order of one test comes from, with the default settings of the version."""
    case = cases_of(dataset)[row]
    payload = LaboratoryPayload(case.exam_facts, test, "unavailable")
    if dataset == "OpenOSCE":
        limits = limits_of(RunSettings(), case, None)
        payload = LaboratoryPayload(case.exam_facts, test, "completed", completion(case), hours_for(case), limits)
    _, disclosures = results_line(matched(payload), payload)
    return frozenset(disclosure.provenance for disclosure in disclosures)


def available(dataset: str, row: int, test: str) -> bool:
    """Whether the laboratory gives the result of this very test."""
    return bool(GIVEN & provenances(dataset, row, test))


def guess(dataset: str, row: int, table: Mapping[str, Any]) -> str:
    """The diagnosis of the first rule whose tests all have a result."""
    for tests, diagnosis in table["rules"]:
        if all(available(dataset, row, test) for test in ([tests] if isinstance(tests, str) else tests)):
            return str(diagnosis)
    return str(table["default"])


def most(dataset: str, tests: Sequence[str], given: frozenset[Provenance]) -> int:
    """How many cases the best possible table gets right: one for each pattern of presence."""
    rows = range(len(cases_of(dataset)))
    return len({tuple(bool(given & provenances(dataset, row, test)) for test in tests) for row in rows})


def main() -> None:
    """Print the share right for each version and writer."""
    tables = json.loads(TABLES.read_text(encoding="utf-8"))
    for dataset in VERSIONS:
        cases = cases_of(dataset)
        tests: dict[str, None] = {}
        for writer, by_version in tables.items():
            table = by_version[dataset]
            right = sum(guess(dataset, row, table) == case.diagnosis for row, case in enumerate(cases))
            print(f"{dataset}, writer {writer}: {right} of {len(cases)} right ({100 * right / len(cases):.1f} %)")
            named = [rule[0] for rule in table["rules"]]
            tests.update(dict.fromkeys(t for one in named for t in ([one] if isinstance(one, str) else one)))
        tests.update(dict.fromkeys(fact.heads[0] for case in cases for fact in case.exam_facts if fact.heads))
        names = list(tests)
        print(f"{dataset}, any table over {len(tests)} tests: at most {most(dataset, names, ANSWERED)} of {len(cases)}")
        print(f"  if substitutes (X was not done; Y: ...) count as missing: {most(dataset, names, GIVEN)}")


if __name__ == "__main__":
    main()
