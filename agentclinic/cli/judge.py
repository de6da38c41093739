"""`agentclinic judge compare` and `agentclinic judge majority`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agentclinic.cli.format import print_json
from agentclinic.report.text import plural
from agentclinic.scoring.format import as_number, as_percent
from agentclinic.scoring.judges.comparison import (
    Agreement,
    Dispute,
    JudgeComparison,
    JudgeSummary,
    LabelReport,
    compare_judges,
)
from agentclinic.scoring.judges.majority import in_words, write_majority

_DISPUTES_SHOWN = 50
"""More do not help someone reading on a screen; --json lists all."""


def _names_in(judges: str) -> list[str]:
    return [name.strip() for name in judges.split(",") if name.strip()]


def compare_command(run: Path, judges: str | None, labels: Path | None, seed: int, *, as_json: bool) -> None:
    """Compare a run's judges (all of them if `judges` is None) and print the result."""
    comparison = compare_judges(run, None if judges is None else _names_in(judges), labels, seed)
    if as_json:
        print_json(comparison)
    else:
        _show_comparison(comparison)


def majority_command(run: Path, judges: str, name: str | None, *, as_json: bool) -> None:
    """Write the majority of several judges and say how it went."""
    written = write_majority(run, _names_in(judges), name)
    if as_json:
        print_json({"path": str(written.path), "decided": written.decided, "undecided": written.undecided})
        return
    print(f"{plural(written.decided, 'diagnosis', 'diagnoses')} decided, {written.undecided} without a majority")
    print(f"Written to {written.path}; use it with --judge {written.path.stem}")


def _show_comparison(comparison: JudgeComparison) -> None:
    print(
        f"{comparison.run}: {plural(comparison.diagnoses, 'diagnosis', 'diagnoses')} to judge; encounters without a "
        f"diagnosis: {comparison.wrong_unjudged} counted as wrong, {comparison.failed} as missing"
    )
    if comparison.note:
        print(f"note: {comparison.note}")
    print()
    for judge in comparison.judges:
        _show_judge(judge)
    print()
    for pair in comparison.pairs:
        _show_pair(pair)
    if comparison.fleiss:
        print(f"Fleiss' kappa of {', '.join(comparison.fleiss_judges)}: {as_number(comparison.fleiss, n=True)}\n")
    if comparison.labels:
        _show_labels(comparison.labels)
    if len(comparison.judges) > 1:
        _show_disputes(comparison.disputed, {judge.name for judge in comparison.judges if judge.majority_of})
    print("Intervals are 95%.")


def _show_judge(judge: JudgeSummary) -> None:
    who = f"majority of {', '.join(judge.majority_of)}" if judge.majority_of else ", ".join(judge.models)
    missing = f"; {judge.not_judged} not judged" if judge.not_judged else ""
    stale = f", {judge.stale} of them because the diagnosis has changed since" if judge.stale else ""
    print(f"{judge.name}{f' ({who})' if who else ''}: right {as_percent(judge.right)}{missing}{stale}")


def _show_pair(pair: Agreement) -> None:
    first, second, cells = pair.first, pair.second, pair.confusion
    print(f"{first} and {second}")
    print(f"  agreement      {as_percent(pair.agreement)}")
    print(f"  Cohen's kappa  {as_number(pair.kappa, n=True)}")
    print(f"  both right {cells.both_yes}, both wrong {cells.both_no}")
    print(f"  only {first} right {cells.only_first_yes}, only {second} right {cells.only_second_yes}")
    if pair.only_first_judged or pair.only_second_judged or pair.neither_judged:
        print(
            f"  judged only by {first} {pair.only_first_judged}, only by {second} {pair.only_second_judged}, "
            f"by neither {pair.neither_judged}"
        )
    if pair.same_relation:
        print(f"  same relation  {as_percent(pair.same_relation)}")
    for one, row in (pair.relations or {}).items():
        for other, count in row.items():
            print(f"    {count:>5}  {one}" + ("" if one == other else f" by {first}, {other} by {second}"))
    print()


def _show_labels(labels: LabelReport) -> None:
    unused = f"; {labels.unused} more match no diagnosis of this run" if labels.unused else ""
    print(f"Against {labels.used} labels in {labels.file}{unused}")
    for judge in labels.judges:
        print(f"  {judge.judge}, which judged {judge.labelled} of them")
        print(f"    sensitivity         {as_percent(judge.sensitivity)}")
        print(f"    specificity         {as_percent(judge.specificity)}")
        print(f"    accuracy it sees    {as_percent(judge.accuracy)}")
        print(f"    accuracy corrected  {as_percent(judge.corrected)}")
        for note in (judge.corrected.note if judge.corrected.value is not None else None, judge.note):
            if note:
                print(f"    note: {note}")
    print()


def _show_disputes(disputes: list[Dispute], majorities: set[str]) -> None:
    print(f"{len(disputes)} disputed" + (":" if disputes else ""))
    for dispute in disputes[:_DISPUTES_SHOWN]:
        repeat = f", repeat {dispute.repeat}" if dispute.repeat else ""
        label = {True: ", labeled right", False: ", labeled wrong", None: ""}[dispute.label]
        print(f"  scenario {dispute.scenario_id}{repeat}{label}: {dispute.diagnosis!r}, truth {dispute.truth!r}")
        for name, opinion in dispute.opinions.items():
            # A majority's reason lists its members' votes, most of which are shown here anyway.
            print(f"    {name}: {in_words(replace(opinion, reason=None) if name in majorities else opinion)}")
    if len(disputes) > _DISPUTES_SHOWN:
        print(f"  and {len(disputes) - _DISPUTES_SHOWN} more; --json lists them all")
