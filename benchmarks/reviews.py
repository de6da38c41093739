"""What reviewers found in the new cases of OpenOSCE, and what became of it (`labels/openosce_reviews.jsonl`).

`python benchmarks/reviews.py` prints, for each item of the checklist, how many problems two language-model reviewers of
each case found, how many were major, where they were unsure, and how the editors settled these remarks. Remarks without
a verdict are about the patient's words. Then it lets the builtin rules judge the diagnoses of the readers who solved
each case blind from its chart. Agreement between reviewers is counted by `agentclinic data review import`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentclinic.cases.registry import load_cases
from agentclinic.clinic.judge import by_code
from agentclinic.clinic.payloads import JudgePayload
from agentclinic.report.tables import text_table

LABELS = Path(__file__).parent / "labels" / "openosce_reviews.jsonl"
HEADS = ("item", "problems", "major", "unsure", "fixed", "partly", "declined", "major declined")
BLIND = ("blind_answer", "blind_sure")


def main() -> None:
    """Print what was found, then what the rules say of the blind answers."""
    rows = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        if row["item"] in BLIND or row.get("verdict") == "ok":
            continue
        found = counts.setdefault(row["item"], Counter())
        decision = row.get("settled", "").partition(":")[0]
        major = row.get("severity") == "major"
        found.update({"unsure" if row.get("verdict") == "unsure" else "problems": 1, "major": major, decision: 1})
        found["major declined"] += major and decision == "declined"
    counts["all"] = sum(counts.values(), Counter())
    lines = [(item, *(str(found[head]) for head in HEADS[1:])) for item, found in counts.items()]
    print("\n".join(text_table(HEADS, lines, numbers=range(1, len(HEADS)))))
    print(f"\n{blind_line([row for row in rows if row['item'] == 'blind_answer'])}")


def blind_line(rows: Sequence[Mapping[str, str]]) -> str:
    """How many of the blind readers' diagnoses the builtin rules accept, refuse or cannot read."""
    cases = {case.name: case for case in load_cases("OpenOSCE", lockbox=True)}
    verdicts: Counter[bool | None] = Counter()
    for row in rows:
        case = cases[row["case_id"]]
        verdicts[by_code(JudgePayload(row["remark"], case.diagnosis, case.answer_key)).correct] += 1
    said = f"{verdicts[True]} accepted by the rules, {verdicts[False]} not, {verdicts[None]} they cannot read"
    return f"{len(rows)} blind answers: {said}"


if __name__ == "__main__":
    main()
