"""How the builtin patient replies to marked questions about charts that the network has not learned.

`python benchmarks/fit_reader.py --left-out FILE` writes a network that has not learned 21 charts.
`python benchmarks/reader_replies.py --network FILE` asks the builtin patient the marked questions about these
(`labels/reader_questions.jsonl`), each by itself, and prints the shares of the replies that

- tell something for everything asked that the chart answers,
- tell nothing but what answers a part,
- do both,
- deny something though an answer is left out,
- leave out an answer without denying anything,
- tell something that answers no part.

Without `--network`, the network that ships answers; it has learned these questions. `--set NAME=VALUE` tries another
value of a constant of `agentclinic/cases/matcher/spoken.py`; `--list KIND` prints the replies of a kind.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from marked_questions import LEFT_OUT, bundled, labeled, parsed

from agentclinic.cases.matcher import reader, spoken
from agentclinic.cases.model import Case
from agentclinic.clinic.answers import matched, payload_of, worded
from agentclinic.results.turn import Provenance

KINDS = ("complete", "to the point", "both", "false denial", "dropped", "off the point")


def kinds_of(case: Case, marked: str) -> tuple[frozenset[str], str]:
    """What the reply to a marked question is, and the reply."""
    question, spans = parsed(marked)
    parts = matched(payload_of(case, question))
    told = {path for part in parts for path in part.disclosure.paths}
    answers = [{case.patient_facts[int(label[1:])].path for label in labels if label[0] == "F"} for *_, labels in spans]
    complete = all(told & paths for paths in answers if paths)
    to_the_point = told <= set().union(*answers)
    denies = any(part.disclosure.provenance is Provenance.DEFAULT_NEGATIVE for part in parts)
    found = {
        "complete": complete,
        "to the point": to_the_point,
        "both": complete and to_the_point,
        "false denial": denies and not complete,
        "dropped": not complete and not denies,
        "off the point": not to_the_point,
    }
    return frozenset(kind for kind, is_so in found.items() if is_so), worded(parts)


def main() -> None:
    """Ask, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", type=Path, metavar="FILE", help="a network that has not learned these charts")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another value of a constant")
    parser.add_argument("--list", choices=KINDS, metavar="KIND", help=f"one of: {', '.join(KINDS)}")
    given = parser.parse_args()
    if given.network:
        reader.TABLE = given.network
    for change in given.set:
        name, _, value = change.partition("=")
        if not isinstance(getattr(spoken, name, None), int | float):
            parser.error(f"--set {change}: spoken.py has no number called {name}")
        setattr(spoken, name, type(getattr(spoken, name))(value))
    cases = bundled()
    counts: Counter[str] = Counter()
    for key, lines in labeled(cases).items():
        if key[1] not in LEFT_OUT:
            continue
        for marked in lines:
            kinds, reply = kinds_of(cases[key], marked)
            counts.update(("questions", *kinds))
            if given.list in kinds:
                print(f"{key[1]}: {marked}\n    {reply}")
    print(f"{counts['questions']} questions about {len(LEFT_OUT)} charts: ", end="")
    print(", ".join(f"{kind} {counts[kind] / counts['questions']:.1%}" for kind in KINDS))


if __name__ == "__main__":
    main()
