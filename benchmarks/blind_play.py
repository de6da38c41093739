"""How blind players did on OpenOSCE, by tier, with and without the frugal preset.

Eight language models that had seen no case played 80 encounters through `ClinicEnv`, with the builtin patient and
laboratory, and gave one diagnosis each. Two readers, also language models, marked the answers without knowing the
encounters (`labels/blind_play.jsonl`). Dollars are what the clinic charges for the tests that were ordered; in play
without a budget, the orders were priced afterwards.

`python benchmarks/blind_play.py` prints, for each group, how many answers both readers call right, the medians of turns
and dollars, and how many were right with tests for at most $100, $300 and $1,000.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from agentclinic.report.tables import text_table

LABELS = Path(__file__).parent / "labels" / "blind_play.jsonl"
BUDGETS = (100, 300, 1000)
Row = dict[str, Any]


def read() -> list[Row]:
    """The encounters, with the readers' marks."""
    return [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]


def groups(rows: list[Row]) -> Mapping[str, list[Row]]:
    """Encounters by tier, and the cases that were played with and without the frugal preset."""
    both = {row["case_id"] for row in rows if row["frugal"]}
    chosen: Mapping[str, Callable[[Row], bool]] = {
        "core": lambda row: row["tier"] == "core",
        "hard": lambda row: row["tier"] == "hard" and not row["frugal"],
        "resource-limited": lambda row: row["tier"] == "resource-limited",
        "played both ways, no limits": lambda row: row["case_id"] in both and not row["frugal"],
        "played both ways, frugal": lambda row: row["frugal"],
    }
    return {name: [row for row in rows if keep(row)] for name, keep in chosen.items()}


def is_right(row: Row) -> bool:
    """Whether both readers call the answer right."""
    return all(mark == "right" for mark in row["marks"])


def main() -> None:
    """Print the table."""
    rows = read()
    lines = [
        (
            name,
            str(len(some)),
            str(sum(map(is_right, some))),
            f"{median(row['turns'] for row in some):g}",
            f"{median(row['usd'] for row in some):g}",
            *(str(sum(is_right(row) and row["usd"] <= budget for row in some)) for budget in BUDGETS),
        )
        for name, some in groups(rows).items()
    ]
    heads = ("cases", "played", "right", "turns", "dollars", *(f"within ${budget:,}" for budget in BUDGETS))
    print("\n".join(text_table(heads, lines, numbers=range(1, len(heads)))))
    agreed = sum(len(set(row["marks"])) == 1 for row in rows)
    print(f"\nThe readers agree on {agreed} of {len(rows)} answers. Wrong or partial:")
    for row in rows:
        if not is_right(row):
            print(f"  {row['case_id']}: {row['answer']} ({', '.join(row['marks'])})")


if __name__ == "__main__":
    main()
