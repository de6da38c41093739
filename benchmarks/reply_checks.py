"""How well code checks what a grounded patient says: planted errors caught, and faultless replies rejected.

`python benchmarks/reply_checks.py [FILE ...]` reads labeled answers (`labels/patient_replies*.jsonl`), lets a patient
of the bundled case give each of them twice, and prints how many with an error were kept from the doctor, by kind of
error, and how many without one were. `--missed` lists those that were judged wrongly. An error counts as caught
whatever kind of slip it was taken for.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic import Case, load_cases
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import load_prompt
from agentclinic.models.base import Reply, Request
from agentclinic.models.structured import parse
from agentclinic.results.turn import Exchange, Turn

LABELS = sorted((ROOT / "benchmarks" / "labels").glob("patient_replies*.jsonl"))


@dataclass(frozen=True)
class Row:
    """An answer as a capable model might give it, and what is wrong with it; nothing if `error` is None."""

    case: Case
    question: str
    answer: dict[str, Any]
    error: str | None
    earlier: tuple[str, ...] = ()


class _Repeating:
    """A model that gives the same answer whatever it is told."""

    name = "repeating/model"

    def __init__(self, answer: dict[str, Any]) -> None:
        self._text = json.dumps(answer)

    async def reply(self, request: Request) -> Reply:
        assert request.schema is not None
        return Reply(self._text, parsed=parse(self._text, request.schema))


def read_rows(*files: Path) -> list[Row]:
    """The labeled answers, with the facts' texts replaced by the ids that the model is shown."""
    cases = {str(case.annotations["case_id"]): case for case in load_cases("OpenOSCE")}
    rows = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            case = cases[entry["case"]]
            ids = {fact.text: f"f{place}" for place, fact in enumerate(case.patient_facts, start=1)}
            parts = [{**part, "facts": [ids[text] for text in part["facts"]]} for part in entry["parts"]]
            answer = {"parts": parts, "reply": entry["reply"]}
            rows.append(Row(case, entry["question"], answer, entry["error"], tuple(entry.get("earlier", ()))))
    return rows


async def played(row: Row) -> Turn:
    """What the doctor hears if the patient's model gives this answer, also when it is sent back."""
    patient = Patient(row.case, _Repeating(row.answer), load_prompt("patient"), simulator="grounded")
    earlier = tuple(Exchange("question", said, "That's fine.") for said in row.earlier)
    return await patient.answer(row.question, earlier)


def rejected(turn: Turn) -> bool:
    return turn.details is not None and bool(turn.details["worded_by"] == "code")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=LABELS)
    parser.add_argument("--missed", action="store_true", help="list the answers that were judged wrongly")
    given = parser.parse_args()
    rows = read_rows(*given.files)
    turns = [asyncio.run(played(row)) for row in rows]
    planted, caught = Counter[str](), Counter[str]()
    for row, turn in zip(rows, turns, strict=True):
        kind = row.error or "faultless"
        planted[kind] += 1
        caught[kind] += rejected(turn)
        if given.missed and rejected(turn) != (row.error is not None):
            print(f"{kind}: {row.question} | {row.answer['reply']} | {', '.join(turn.notes) or 'let through'}")
    for kind in sorted(planted.keys() - {"faultless"}):
        print(f"{kind:10} caught {caught[kind]:3} of {planted[kind]:3}")
    errors = sum(planted.values()) - planted["faultless"]
    print(f"{'all errors':10} caught {sum(caught.values()) - caught['faultless']:3} of {errors:3}")
    print(f"{'faultless':10} rejected {caught['faultless']:3} of {planted['faultless']:3}")


if __name__ == "__main__":
    main()
