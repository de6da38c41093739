"""The questions that were marked part by part, for the programs that learn from them and measure with them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.cases.matcher import reader
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases

Key = tuple[str, str]
"""A data set and the name of a case in it."""

LABELS = ROOT / "benchmarks" / "labels" / "reader_questions.jsonl"
SETS = ("OpenOSCE", "OpenOSCE_Demo")
LEFT_OUT = frozenset(
    f"osce-{name}"
    for name in "a17 a23 b12 b18 c01 c06 c07 c10 c11 c20 c23 d09 d14 d19 d20 t03 t04 t08 t10 t11 t15".split()
)
"""Charts to measure with, from all stations of OpenOSCE."""

MARK = re.compile(r"\{([^{}|]+)\|([^{}|]*)\}")
"""A part of a labeled question: `{words|F21,F28}`."""


def parsed(marked: str) -> tuple[str, list[tuple[int, int, list[str]]]]:
    """A question without its marks; where each part begins and ends, and its labels."""
    text, at = "", 0
    spans: list[tuple[int, int, list[str]]] = []
    for match in MARK.finditer(marked):
        text += marked[at : match.start()]
        spans.append((len(text), len(text) + len(match[1]), [label.strip() for label in match[2].split(",")]))
        text += match[1]
        at = match.end()
    return text + marked[at:], spans


def bundled() -> dict[Key, Case]:
    """The bundled charts without the lockbox."""
    return {(name, case.name): case for name in SETS for case in load_cases(name, {})}


def labeled(cases: Mapping[Key, Case], path: Path = LABELS) -> dict[Key, list[str]]:
    """The labeled questions of each chart."""
    found: dict[Key, list[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        key = (row["set"], row["case"])
        if key not in cases:
            raise SystemExit(f"{path.name}, line {number}: there is no case {row['case']} in {row['set']}.")
        for _, _, labels in parsed(row["marked"])[1]:
            for label in labels:
                fact = re.fullmatch(r"F(\d+)", label)
                known = int(fact[1]) < len(cases[key].patient_facts) if fact else label in reader.KINDS[1:]
                if not known:
                    raise SystemExit(f"{path.name}, line {number}: {row['case']} has no {label!r}.")
        found.setdefault(key, []).append(row["marked"])
    return found
