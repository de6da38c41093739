"""Count how readers marked replies of the builtin patient and laboratory.

Three language models, as doctors, played 21 OpenOSCE cases with the builtin clinic before (`old`) and after (`new`) the
changes of OpenOSCE 2. Readers, also language models, marked the replies without knowing the version
(`labels/replies.jsonl`): two in each round. In round 2 and 3 the changed clinic answered the same questions and orders
again. In round 4 three doctors played 21 other cases with complete histories (`newest`), and in round 5 the same
questions and orders were answered again after corrections. In round 6 five doctors played 21 further cases after more
changes (`newest`; `before` is the version before, asked the same). In round 7 six doctors played 21 cases never played
before, and were asked to put two or three things into most questions and to order as doctors write; `before` is a
sample of the replies of the version before that differ. In round 8 six doctors played 21 cases never played before with
the network that reads questions (`newest`; `before` as in round 7); the replies are those of a slightly later version
that was asked the same, since two orders had crashed the laboratory in play. In round 9, after corrections, five
doctors played the 14 cases of OpenOSCE_Demo, which no one had played (`newest` and `before` as in round 8). In rounds
10 and 11, after more corrections each time, six and seven doctors who had seen no case played 21 cases that others had
played in earlier rounds; in both, `before` is a sample of the replies of the version of round 9 that differ. In
rounds 12 and 13, again after corrections each time, seven doctors who had seen no case played 21 cases that others
had played in earlier rounds (except three cases of round 12); in both, `before` is a sample of the replies of the
version of round 11 that differ. The readers of round 13 were also told which charted results cannot be back in time.
In rounds 14 to 16, after all development cases had been reviewed and again after corrections each time, seven doctors
who had seen no case played 21 cases that rounds 12 and 13 had left out, drawn at random; `before` is a sample of the
replies of the version of round 13 that differ. In rounds 17 and 18, again after corrections each time, seven doctors
who had seen no case played 21 cases and then 21 further ones, drawn at random from all 112 development cases;
`before` is every reply of the version of round 16 that differs.

`python benchmarks/replies.py [--list MARK]` prints, for each round, version and role, how many replies each reader
called fine or faulty and in what way. `--list` prints the newest replies to which both readers gave a mark.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

LABELS = Path(__file__).parent / "labels" / "replies.jsonl"
MARKS = ("fine", "not_answered", "false_denial", "ignorant", "unnatural", "wrong")


def read() -> list[dict[str, Any]]:
    """The marked replies."""
    return [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Print the counts of each reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=MARKS, metavar="MARK", help=f"one of {', '.join(MARKS)}")
    given = parser.parse_args()
    rows = read()
    groups = dict.fromkeys((row["round"], row["role"], row["version"]) for row in rows)
    print(f"{'round, role, version':34}{'replies':>8}" + "".join(f"{mark:>14}" for mark in (*MARKS, "ungrammatical")))
    for group in sorted(groups):
        found = [row for row in rows if (row["round"], row["role"], row["version"]) == group]
        by_reader = [Counter(row["marks"][reader] for row in found) for reader in range(2)]
        for reader, counts in enumerate(by_reader):
            counts["ungrammatical"] = sum(row["ungrammatical"][reader] for row in found)
        shown = (" and ".join(str(counts[mark]) for counts in by_reader) for mark in (*MARKS, "ungrammatical"))
        print(f"{', '.join(map(str, group)):34}{len(found):>8}" + "".join(f"{text:>14}" for text in shown))
    newest = max(row["round"] for row in rows if row["role"] == "patient")
    for row in rows:
        if given.list and row["version"] != "old" and row["round"] >= newest and set(row["marks"]) == {given.list}:
            print(f"\n{row['case']} {row['role']}\n  doctor: {row['doctor']}\n  reply: {row['reply']}")


if __name__ == "__main__":
    main()
