"""How accurate the audit is: the exact checks and, given a model, a reviewer.

`python benchmarks/audit.py` prints the figures of the exact checks on planted replies, on replies that two readers
labelled, on all recorded replies and on a builtin run. `--write` writes the first two to
`agentclinic/audit/data/exact.json`, which `agentclinic audit` prints. `--reviewer MODEL --base-url URL` measures a
reviewer instead; its reviews are kept in the folder given with `--keep`. Labelled and recorded replies need the public
data in `../shared/data` and are skipped without it. Prints figures only, no text of the data.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import anyio

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from agentclinic.audit import accuracy
from agentclinic.audit.accuracy import Counts, Measured, measure
from agentclinic.audit.exact import exact_audit
from agentclinic.audit.model import BY_REVIEWER, JUDGED_BY_CODE, ROLES, AuditedReply, Kind, Role, facts_of
from agentclinic.audit.planted import EACH, Planted, planted
from agentclinic.audit.reviewer import Reviewer, review_path
from agentclinic.audit.run import audit_run
from agentclinic.cases.leaks import names_of
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.prompts import load_prompt
from agentclinic.config import Settings, parse_settings
from agentclinic.files import write_whole
from agentclinic.jsonl import read_json_lines
from agentclinic.runs.build import Models
from agentclinic.runs.execute import execute
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import progress_for

LABELS = ROOT / "benchmarks" / "labels"
DATA = ROOT.parent / "shared" / "data"
CASES = DATA / "agentclinic" / "agentclinic_medqa_extended.jsonl"
FILES: dict[Role, tuple[str, str, str]] = {
    "patient": ("patient_questions.jsonl", "question", "questions2"),
    "measurement": ("test_requests.jsonl", "request", "requests2"),
}
"""For each role: the file of recorded replies, its key for what was asked, and the stem of the label files."""
MARKS: dict[Kind, frozenset[str]] = {
    # A value that is not the chart's is marked as a contradiction if the chart has another, as invented otherwise.
    Kind.INVENTED_NUMBER: frozenset({"invented_material", "invented_benign", "contradicted"}),
    Kind.DISEASE_NAMED: frozenset({"invented_material", "diagnosis_revealed"}),
    Kind.DIAGNOSIS_REVEALED: frozenset({"diagnosis_revealed"}),
    Kind.UNASKED: frozenset({"overshared"}),
    Kind.INVENTED: frozenset({"invented_material", "invented_benign"}),
    Kind.CONTRADICTED: frozenset({"contradicted"}),
    Kind.OMITTED: frozenset({"omitted_when_asked"}),
}
"""The readers' marks that a kind of ours should find. They did not look for contradictions between replies."""
RULES = (
    "audit/exact.py",
    "audit/literal.py",
    "audit/planted.py",
    "vocabulary/numbers.py",
    "vocabulary/disease_names.py",
)
Found = frozenset[Kind]
Judged = dict[Kind, bool]


@dataclass(frozen=True)
class Labelled:
    """A recorded reply, with the marks of two readers if they read it."""

    case: Case
    reply: AuditedReply
    readers: tuple[frozenset[str], ...] = ()


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines."""
    return [entry for _, entry in read_json_lines(path)]


@lru_cache(maxsize=2)
def recorded(role: Role) -> list[Labelled]:
    """The recorded replies of a role, each with its readers' marks. "Normal" for an uncharted test is invented."""
    file, key, stem = FILES[role]
    cases = load_cases("MedQA_Ext", {"MedQA_Ext": str(CASES)})
    marks = [
        {entry["row"]: frozenset(mark["kind"] for mark in entry["audit"]) for entry in lines(path)}
        for path in (LABELS / f"{stem}_reader_{reader}.jsonl" for reader in "ab")
    ]
    rows = []
    for number, entry in enumerate(lines(DATA / "judge" / file)):
        reply = AuditedReply(role, entry[key].split("REQUEST TEST:")[-1].strip(), entry["reply"])
        readers = tuple(reader[number] for reader in marks if number in reader)
        rows.append(Labelled(cases[entry["scenario_id"]], reply, readers))
    return rows


def halves(role: Role) -> dict[str, list[Labelled]]:
    """The 1st, 3rd, ... labelled row is for development, the others are for testing."""
    rows = [row for row in recorded(role) if row.readers]
    return {"development": rows[::2], "test": rows[1::2]}


def against_readers(rows: Iterable[Labelled], judged: Iterable[Judged], kinds: Sequence[Kind]) -> dict[Kind, Counts]:
    """An auditor compared with the readers, each with half the weight.

    A reply without the fault counts only if the auditor could judge it.
    """
    counts = {kind: Counts() for kind in kinds if kind in MARKS}
    for row, kinds_here in zip(rows, judged, strict=True):
        for kind, held in counts.items():
            for marks in row.readers:
                faulty = marked(row, kind, marks)
                if faulty or kind in kinds_here:
                    held.add(found=kinds_here.get(kind, False), faulty=faulty, weight=1 / len(row.readers))
    return counts


def marked(row: Labelled, kind: Kind, marks: frozenset[str]) -> bool:
    """Whether a reader saw what our kind stands for. A diagnosis that the chart names is the chart's fault."""
    if kind is Kind.DIAGNOSIS_REVEALED and any(
        any(names_of(row.case).find(fact.text, fact.heads)) for fact in facts_of(row.case, row.reply.role)
    ):
        return False
    return bool(MARKS[kind] & marks)


def show(title: str, counts: dict[Kind, Counts]) -> None:
    """Sensitivity, specificity and precision of each kind."""
    print(f"{title}\n  {'':20}{'sensitivity':26}{'specificity':26}precision")
    for kind, held in counts.items():
        shares = (held.sensitivity, held.specificity)
        shown = (
            "none" if s.value is None else f"{s.value:.2f} ({s.low:.2f}-{s.high:.2f}; {s.count}/{s.of})" for s in shares
        )
        named = held.found + held.false_alarm
        precision = f"{held.found / named:.2f} ({held.found:g}/{named:g})" if named else "nothing found"
        print(f"  {kind.value:20}{next(shown):26}{next(shown):26}{precision}")
    print()


def code(rows: Iterable[Labelled | Planted]) -> list[Judged]:
    """Each kind that the exact checks can judge in a reply, and whether they find it there."""
    return [{kind: bool(found) for kind, found in exact_audit(row.reply, row.case).items()} for row in rows]


def measure_code(rows: Iterable[Planted]) -> Measured:
    """The errors of the exact checks on planted replies; a faithful reply counts where they could judge it."""
    judged = list(zip(rows, code(rows), strict=True))
    measured: Measured = {}
    for role, kinds in JUDGED_BY_CODE.items():
        measured[role] = {}
        for kind in kinds:
            counted = ((r.reply.role, r.kinds, found_in(j)) for r, j in judged if kind in r.kinds or kind in j)
            measured[role] |= measure(counted, (kind,))[role]
    return measured


def found_in(judged: Judged) -> Found:
    return frozenset(kind for kind, found in judged.items() if found)


def exact(rows: list[Planted], *, readers: bool) -> dict[str, Measured]:
    """Print the figures of the exact checks; what ships with the package is returned."""
    measured = {"planted": measure_code(rows)}
    for role in ROLES:
        show(f"Exact checks, planted, {role}", measured["planted"][role])
    if readers:
        measured["labelled"] = {}
        for role in ROLES:
            for half, part in halves(role).items():
                counts = against_readers(part, code(part), JUDGED_BY_CODE[role])
                show(f"Exact checks, labelled, {role}, {half} half ({len(part)} replies)", counts)
            # The readers' replies may have nothing that code can judge for a kind.
            measured["labelled"][role] = {k: held for k, held in counts.items() if held.specificity.value is not None}
            every = code(recorded(role))
            shares = (
                f"{kind.value} {sum(judged.get(kind, False) for judged in every)}" for kind in JUDGED_BY_CODE[role]
            )
            print(f"Exact checks, all {len(every)} recorded {role} replies: {', '.join(shares)}\n")
    return measured


async def reviewed(rows: list[Planted], model: str, settings: Settings, keep: Path, *, readers: bool) -> None:
    """Print the figures of a reviewer."""
    async with Models(settings) as models:
        reviewer = Reviewer(models.get(model), load_prompt("reviewer"))
        labelled = [row for role in ROLES for part in halves(role).values() for row in part] if readers else []
        progress = progress_for(quiet=False, stream=sys.stderr)
        reviews = await reviewer.review_all(
            [*rows, *labelled], review_path(keep, model), settings.run.workers, progress
        )

    def kinds(row: Labelled | Planted) -> Judged | None:
        listed = reviewer.findings(row, reviews)
        return None if listed is None else {kind: any(f.kind is kind for f in listed) for kind in BY_REVIEWER}

    usage = reviews.usage
    print(f"{model}: {reviews.reviewed} reviewed, {reviews.failed} failed, {reviews.not_tried} not tried; "
          f"{usage.input_tokens} tokens in, {usage.output_tokens} out\n")  # fmt: skip
    read = [(row, judged) for row in rows if (judged := kinds(row)) is not None]
    measured = measure(((row.reply.role, row.kinds, found_in(judged)) for row, judged in read), BY_REVIEWER)
    for role in ROLES:
        show(f"Reviewer, planted, {role}", measured[role])
        for half, part in halves(role).items() if readers else ():
            pairs = [(row, judged) for row in part if (judged := kinds(row)) is not None]
            counts = against_readers([row for row, _ in pairs], [judged for _, judged in pairs], BY_REVIEWER)
            show(f"Reviewer, labelled, {role}, {half} half ({len(pairs)} of {len(part)} replies)", counts)


def builtin_run() -> None:
    """What the exact checks find in builtin replies. These copy the chart: each finding is a bug."""
    run = {
        "dataset": "OpenOSCE",
        **{f"{role}_llm": "builtin" for role in ("doctor", "patient", "measurement", "moderator")},
    }
    with tempfile.TemporaryDirectory() as folder:
        settings = parse_settings(Settings, {"run": {**run, "output_dir": folder}}, "benchmark")
        done = anyio.run(execute, make_plan(settings), progress_for(quiet=True, stream=sys.stderr))
        report = audit_run(done.folder)
    print(f"Builtin run on OpenOSCE: {report.encounters} encounters, {report.replies}; replies with a finding:")
    for rate in report.rates:
        share = "not audited" if rate.found is None else f"{rate.found} of {rate.per_reply.n}"
        print(f"  {rate.role} {rate.kind.value}: {share}")


def rules_hash() -> str:
    """Hash of the checks and the planted replies: the figures are valid only for these."""
    texts = ((ROOT / "agentclinic" / name).read_text(encoding="utf-8") for name in RULES)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


async def _planted(each: int, for_code: bool) -> list[Planted]:
    async with Models(Settings()) as models:
        free = await planted(models.get("builtin"), each, 3 * each)
        return [*free, *(await planted(models.get("builtin"), each, 3 * each, recorded=True) if for_code else ())]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print everything there is data for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {accuracy.DATA.relative_to(ROOT)}")
    parser.add_argument("--no-builtin", action="store_true", help="skip the builtin run")
    parser.add_argument("--reviewer", help="measure this model instead")
    parser.add_argument("--base-url", help="address of its server")
    parser.add_argument("--keep", type=Path, default=Path("runs"), help="folder for its reviews")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--each", type=int, default=EACH, help=f"planted replies of each kind; default: {EACH}")
    parser.add_argument("--planted", action="store_true", help="planted replies only, without the labelled ones")
    options = parser.parse_args(arguments)
    there = CASES.exists() and (DATA / "judge").exists()
    readers = there and not options.planted
    if not there:
        print(f"The public data is not in {DATA}: labelled and recorded replies are skipped.\n")
    rows = anyio.run(_planted, options.each, not options.reviewer)
    if options.reviewer:
        given = {"run": {"workers": options.workers}, "openai": {"base_url": options.base_url}}
        settings = parse_settings(Settings, given, "benchmark")
        anyio.run(partial(reviewed, rows, options.reviewer, settings, options.keep, readers=readers))
        return
    measured = exact(rows, readers=readers)
    if not options.no_builtin:
        builtin_run()
    if options.write:
        if not readers:
            parser.error(f"--write needs the public data at {DATA}")
        dumped = {
            name: {r: {k: c.model_dump() for k, c in kinds.items()} for r, kinds in m.items()}
            for name, m in measured.items()
        }
        shipped = {"made_by": "benchmarks/audit.py --write", "rules": rules_hash(), "measured": dumped}
        write_whole(accuracy.DATA, json.dumps(shipped, indent=1) + "\n")
        print(f"written to {accuracy.DATA.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
