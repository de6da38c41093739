"""The auditor against planted replies and two readers, and what it finds in recorded and builtin replies.

`python benchmarks/audit.py` prints; `--write` also writes the measured sensitivity and specificity to
`agentclinic/audit/data/accuracy.json`, from which `agentclinic audit` corrects its rates. The readers' part and the
recorded replies need the public data at `../shared/data` and are skipped without it. Aggregates only, no text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from audit_planted import PARTS, Part, Planted, planted

from agentclinic.audit.accuracy import (
    DATA as WRITTEN,
)
from agentclinic.audit.accuracy import (
    Accuracy,
    Counts,
    Reference,
    apparent_rate,
    corrected,
    usable,
)
from agentclinic.audit.chart import Chart
from agentclinic.audit.model import ROLES, Exchange, Kind, Role
from agentclinic.audit.reply import audit_reply
from agentclinic.audit.run import AuditReport, audit_run
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.config import Settings, parse_settings
from agentclinic.files import write_whole
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import progress_for
from agentclinic.scoring.estimates import Estimate, Proportion
from agentclinic.scoring.judges.agreement import kappa_estimate
from agentclinic.version import __version__

LABELS = ROOT / "benchmarks" / "labels"
DATA = ROOT.parent / "shared" / "data"
CASES = DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl"
FILES: dict[Role, tuple[str, str, str]] = {
    "patient": ("patient_questions.jsonl", "question", "questions2"),
    "measurement": ("test_requests.jsonl", "request", "requests2"),
}
"""By role: the file of recorded replies, the key of what was asked, and the stem of the label files."""
Kinds = frozenset[Kind]


@dataclass(frozen=True)
class Row:
    """A recorded reply."""

    number: int
    case: Case
    exchange: Exchange


@dataclass(frozen=True)
class Labelled:
    """A recorded reply with what two readers say of it."""

    row: Row
    readers: tuple[Kinds, Kinds]


_charts: dict[str, Chart] = {}


def kinds_of(case: Case, exchange: Exchange) -> Kinds:
    """What the auditor finds."""
    if case.id not in _charts:
        _charts[case.id] = Chart(case)
    return frozenset(finding.kind for finding in audit_reply(exchange, _charts[case.id]))


def lines(path: Path) -> list[dict[str, Any]]:
    """A file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@lru_cache(maxsize=1)
def _cases() -> list[Case]:
    return load_cases("MedQA_Ext", {"MedQA_Ext": str(CASES)})


def recorded(role: Role) -> list[Row]:
    """The recorded replies of a role. Readers labelled a normal reading of an uncharted test as invented."""
    file, key, _ = FILES[role]
    rows = []
    for number, entry in enumerate(lines(DATA / "judge" / file)):
        asked = entry[key].split("REQUEST TEST:")[-1].strip()
        rows.append(Row(number, _cases()[entry["scenario_id"]], Exchange(role, asked, entry["reply"])))
    return rows


def labelled(role: Role) -> list[Labelled]:
    """The rows both readers labelled, in order."""
    rows = recorded(role)
    first, second = (
        {entry["row"]: frozenset(Kind(verdict["kind"]) for verdict in entry["audit"]) for entry in lines(path)}
        for path in (LABELS / f"{FILES[role][2]}_reader_{reader}.jsonl" for reader in "ab")
    )
    if first.keys() != second.keys():
        raise ValueError(f"{LABELS}: the readers of the {role}'s replies did not label the same rows")
    return [Labelled(rows[number], (first[number], second[number])) for number in sorted(first)]


def halves(rows: Sequence[Labelled]) -> dict[str, Sequence[Labelled]]:
    """The 1st, 3rd, ... labelled row is for development, the others for the test."""
    return {"development": rows[::2], "test": rows[1::2]}


# --- counting --------------------------------------------------------------------------------------------------------


def against_readers(rows: Sequence[Labelled], kind: Kind, weights: tuple[float, float] = (0.5, 0.5)) -> Counts:
    """The auditor against the readers, each with a weight."""
    counts = Counts()
    for item in rows:
        found = kind in kinds_of(item.row.case, item.row.exchange)
        for kinds, weight in zip(item.readers, weights, strict=True):
            _count(counts, found, kind in kinds, weight)
    return counts


def against_planted(rows: Iterable[Planted], role: Role, kind: Kind) -> Counts:
    """The auditor against what was planted: replies with this fault, and faithful ones."""
    counts = Counts()
    for item in rows:
        if item.exchange.role == role and item.kind in (kind, None):
            _count(counts, kind in kinds_of(item.case, item.exchange), item.kind is kind, 1.0)
    return counts


def _count(counts: Counts, found: bool, there: bool, weight: float) -> None:
    name = ("found" if found else "missed") if there else ("false_alarm" if found else "clean")
    setattr(counts, name, getattr(counts, name) + weight)


def shown(share: Proportion) -> str:
    """A share with its interval."""
    if share.value is None or share.low is None or share.high is None:
        return "none"
    return f"{share.value:.2f} ({share.low:.2f} - {share.high:.2f}; {share.count}/{share.of})"


def estimate(value: Estimate) -> str:
    """An estimate with its interval, or why there is none."""
    if value.value is None:
        return value.note or "unknown"
    return f"{value.value:.3f}" + (f" ({value.low:.3f} - {value.high:.3f})" if value.low is not None else "")


# --- parts -----------------------------------------------------------------------------------------------------------


def print_planted() -> dict[Part, list[Planted]]:
    """Sensitivity and specificity on planted replies."""
    rows = {part: planted(part) for part in PARTS}
    for part, made in rows.items():
        clean = sum(item.kind is None for item in made)
        print(f"Planted, {part}: {len(made) - clean} replies with one fault, {clean} faithful")
        print(f"  {'':34}{'sensitivity':30}{'specificity (faithful replies)':30}")
        for role in ROLES:
            for kind in Kind:
                found, spared = against_planted(made, role, kind).shares()
                print(f"  {role:12}{kind.value:22}{shown(found):30}{shown(spared):30}")
        print()
    return rows


def print_readers(role: Role) -> None:
    """How far the readers agree, and the auditor with them."""
    rows = labelled(role)
    print(f"Readers, {role}: {len(rows)} replies; Cohen's kappa with 95 % interval (cases redrawn)")
    for kind in Kind:
        cells = [_cell(kind in item.readers[0], kind in item.readers[1]) for item in rows]
        a, b = (sum(kind in item.readers[i] for item in rows) for i in (0, 1))
        kappa = kappa_estimate(cells, [item.row.case.id for item in rows])
        print(f"  {kind.value:22}a {a:3}, b {b:3}   {estimate(kappa)}")
    for half, part in halves(rows).items():
        print(f"Auditor against readers, {role}, {half} half ({len(part)} replies)")
        print(f"  {'':22}{'sensitivity':30}{'specificity':30}{'a: sens, spec':16}{'b: sens, spec':16}{'both agree':30}")
        for kind in Kind:
            found, spared = against_readers(part, kind).shares()
            one, other = (against_readers(part, kind, weights) for weights in ((1.0, 0.0), (0.0, 1.0)))
            agreed = against_readers([i for i in part if (kind in i.readers[0]) == (kind in i.readers[1])], kind)
            print(
                f"  {kind.value:22}{shown(found):30}{shown(spared):30}{_pair(one):16}{_pair(other):16}{_pair(agreed)}"
            )
    print()


def _cell(one: bool, other: bool) -> list[float]:
    return [float((one, other) == kind) for kind in ((True, True), (True, False), (False, True), (False, False))]


def _pair(counts: Counts) -> str:
    return ", ".join("-" if s is None else f"{s:.2f}" for s in (counts.sensitivity, counts.specificity))


def measured(rows: dict[Part, list[Planted]], *, readers: bool) -> Accuracy:
    """What the package ships: the readers' test half first, the held-out planted replies second."""
    references = {}
    if readers:
        tests = {role: halves(labelled(role))["test"] for role in ROLES}
        references["labelled"] = Reference(
            what="recorded language-model replies labelled by two readers, test half; each reader counts half",
            replies={role: len(part) for role, part in tests.items()},
            counts={role: {kind: against_readers(part, kind) for kind in Kind} for role, part in tests.items()},
        )
    made = rows["held_out"]
    references["planted"] = Reference(
        what="replies with one planted fault, and faithful ones, from OpenOSCE development cases, held-out wordings",
        replies={role: sum(item.exchange.role == role for item in made) for role in ROLES},
        counts={role: {kind: against_planted(made, role, kind) for kind in Kind} for role in ROLES},
    )
    return Accuracy(
        made_by="benchmarks/audit.py --write", version=__version__, rules=rules_hash(), references=references
    )


def rules_hash() -> str:
    """Hash of the auditor's rules: figures of other rules do not hold."""
    folder = ROOT / "agentclinic" / "audit"
    names = ("statements", "amounts", "chart", "disclosed", "patient", "laboratory", "revealed", "reply")
    # Line ends may differ between check-outs.
    texts = ((folder / f"{name}.py").read_text(encoding="utf-8") for name in names)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def print_recorded(known: Accuracy) -> None:
    """What the auditor finds in all recorded replies, corrected for its errors."""
    for role in ROLES:
        rows = recorded(role)
        cases = [row.case.id for row in rows]
        found = [kinds_of(row.case, row.exchange) for row in rows]
        print(
            f"Recorded language-model replies, {role}: {len(rows)} replies, {len(set(cases))} cases; "
            f"share with a finding"
        )
        print(f"  {'':22}{'apparent':26}{'corrected':34}")
        for kind in Kind:
            yes = [kind in kinds for kinds in found]
            basis = usable(known, role, kind)
            print(
                f"  {kind.value:22}{estimate(apparent_rate(yes, cases)):26}{estimate(corrected(yes, cases, basis)):34}"
                f"{'by ' + basis.reference if basis and not basis.refused else ''}"
            )
        print()


def print_builtin() -> None:
    """What the auditor finds where builtin roles copy the chart: all of it is a bug, here or there."""
    for name, path in (("OpenOSCE", None), ("MedQA_Ext", CASES)):
        if path is not None and not path.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            report = audit_run(_play(name, path, Path(folder)))
        replies = ", ".join(f"{count} {role}" for role, count in report.replies.items())
        print(f"Builtin run on {name}: {report.encounters} encounters, {replies} replies; replies with a finding")
        print("  " + "; ".join(_found(report)) + "\n")


def _found(report: AuditReport) -> list[str]:
    return [f"{rate.role} {rate.kind.value} {rate.found}" for rate in report.rates if rate.found] or ["none"]


def _play(name: str, path: Path | None, output: Path) -> Path:
    run = {"dataset": name, "output_dir": str(output), **{f"{r}_llm": "builtin" for r in _PLAYERS}}
    settings = parse_settings(Settings, {"run": run, "datasets": {name: str(path)} if path else {}}, "benchmark")
    plan = make_plan(settings)
    return anyio.run(execute, plan, progress_for(quiet=True, stream=sys.stderr)).folder


_PLAYERS = ("doctor", "patient", "measurement", "moderator")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all there is data for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {WRITTEN.relative_to(ROOT)}")
    parser.add_argument("--no-builtin", action="store_true", help="leave out the builtin runs")
    options = parser.parse_args(arguments)
    readers = CASES.exists() and (DATA / "judge").exists()
    rows = print_planted()
    if readers:
        for role in ROLES:
            print_readers(role)
    else:
        print(f"The public data is not there ({DATA}): readers and recorded replies are skipped.\n")
    known = measured(rows, readers=readers)
    if readers:
        print_recorded(known)
    if not options.no_builtin:
        print_builtin()
    if options.write:
        if not readers:
            parser.error(f"--write needs the public data at {DATA}")
        write_whole(WRITTEN, known.model_dump_json(indent=1) + "\n")
        print(f"written to {WRITTEN.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
