"""Whether two runs have the same records.

python benchmarks/same_records.py BEFORE AFTER

BEFORE and AFTER are run folders, or folders that contain run folders at any depth. Runs are matched by their path
without the time stamp, records by scenario and repeat. Each field that differs is printed with its value before and
after. Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines

# `timing` holds everything that varies between identical runs; `judgement.correct` is newer than version 0.2.
IGNORED = frozenset({"timing", "judgement.correct"})
# Up to version 0.2 a turn named only the kind of its action; since then it has `kind` and `content`.
ACTION = re.compile(r"transcript\[\d+\]\.action")
STAMP = re.compile(r"_\d{8}_\d{6}(?=_|$)")
ABSENT = "(absent)"
SHOWN = 60
"""Characters shown of a long value, from shortly before its first difference."""

Unit = tuple[int, int]
"""Scenario and repeat."""


class Difference(NamedTuple):
    """A field that two records of one unit do not share."""

    field: str
    before: Any
    after: Any

    def __str__(self) -> str:
        before, after = (json.dumps(v, ensure_ascii=False) if v is not ABSENT else v for v in self[1:])
        same = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
        return f"{self.field}: {_excerpt(before, same)} -> {_excerpt(after, same)}"


def _excerpt(text: str, first_difference: int) -> str:
    start = max(0, first_difference - SHOWN // 3) if len(text) > SHOWN else 0
    return f"{'…' if start else ''}{text[start : start + SHOWN]}{'…' if len(text) > start + SHOWN else ''}"


def differences(before: Any, after: Any, field: str = "") -> Iterator[Difference]:
    """The leaves in which two values differ, depth first."""
    if field in IGNORED:
        return
    if ACTION.fullmatch(field):
        before, after = (value.get("kind") if isinstance(value, dict) else value for value in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            path = f"{field}.{key}" if field else key
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), path)
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            one, other = (side[place] if place < len(side) else ABSENT for side in (before, after))
            yield from differences(one, other, f"{field}[{place}]")
    elif before != after or type(before) is not type(after):
        yield Difference(field, before, after)


def runs_in(folder: Path) -> dict[str, Path]:
    """The run folders at or below a folder, by their path without the time stamp."""
    found: dict[str, Path] = {}
    for journal in sorted(folder.rglob("scenarios.jsonl")):
        run = journal.parent
        name = STAMP.sub("", str(run.relative_to(folder)))
        if name in found:
            raise InputError(f"{run} and {found[name]} differ only in their time stamp; name one of them")
        found[name] = run
    if not found:
        raise InputError(f"{folder}: there is no run in this folder (a folder with scenarios.jsonl)")
    return found


def records(run: Path) -> dict[Unit, dict[str, Any]]:
    """The records of a run by unit. The last record of a unit counts, as in a run that retried it."""
    return {
        (entry.get("scenario_id", number), entry.get("repeat", 0)): entry
        for number, entry in read_json_lines(run / "scenarios.jsonl", journal=True)
    }


def compare_runs(before: Path, after: Path) -> tuple[int, dict[Unit, list[Difference]]]:
    """How many units there are in either run, and the differences of those that differ."""
    old, new = records(before), records(after)
    units = sorted(old.keys() | new.keys())
    found = {}
    for unit in units:
        if unit in old and unit in new:
            found[unit] = list(differences(old[unit], new[unit]))
        else:
            found[unit] = [Difference("record", *("present" if unit in side else ABSENT for side in (old, new)))]
    return len(units), {unit: several for unit, several in found.items() if several}


def main(argv: list[str]) -> int:
    """Print every difference and, in the last line, their number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER")
    arguments = parser.parse_args(argv)
    old, new = runs_in(arguments.before), runs_in(arguments.after)
    if len(old) == len(new) == 1:  # nothing to mix up, whatever their names
        old, new = {"run": next(iter(old.values()))}, {"run": next(iter(new.values()))}
    units = changed = fields = 0
    unmatched = sorted(old.keys() ^ new.keys())
    for name in unmatched:
        print(f"{name}: only in {arguments.before if name in old else arguments.after}")
    for name in sorted(old.keys() & new.keys()):
        of, found = compare_runs(old[name], new[name])
        units, changed = units + of, changed + len(found)
        for (scenario, repeat), several in found.items():
            fields += len(several)
            for difference in several:
                print(f"{name}, scenario {scenario}, repeat {repeat}: {difference}")
    print(
        f"{len(old.keys() & new.keys())} runs compared, {len(unmatched)} without a counterpart; "
        f"{units} units, {changed} differ in {fields} fields"
    )
    return int(bool(changed or unmatched))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        sys.exit(str(error))
