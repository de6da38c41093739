"""`agentclinic judge compare` and `agentclinic judge majority`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from agentclinic.scoring.estimates import Estimate, Proportion
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
"""More do not help who reads on a screen; --json has them all."""


def names_in(judges: str | None) -> list[str] | None:
    """The judges named on the command line, separated by commas; None for all."""
    return None if judges is None else [name.strip() for name in judges.split(",") if name.strip()]


def compare_command(run: Path, judges: str | None, labels: Path | None, seed: int, *, as_json: bool) -> None:
    """Compare a run's judges and print the result."""
    comparison = compare_judges(run, names_in(judges), labels, seed)
    if as_json:
        print(json.dumps(comparison.model_dump(mode="json"), indent=2, ensure_ascii=False))
    else:
        show_comparison(comparison)


def majority_command(run: Path, judges: str, name: str | None, *, as_json: bool) -> None:
    """Write the majority of some judges and say what came of it."""
    written = write_majority(run, names_in(judges) or [], name)
    if as_json:
        result = {"path": str(written.path), "decided": written.decided, "undecided": written.undecided}
        print(json.dumps(result, indent=2))
        return
    print(f"{written.decided} diagnoses decided, {written.undecided} without a majority")
    print(f"written to {written.path}; its name as a judge is {written.path.stem}")


def show_comparison(comparison: JudgeComparison) -> None:
    """Print a comparison for people."""
    print(
        f"{comparison.run}: {comparison.diagnoses} diagnoses to judge; {comparison.wrong_unjudged} units wrong "
        f"without a judge, {comparison.failed} failed before a diagnosis (missing)"
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
        print(f"Fleiss' kappa of {', '.join(comparison.fleiss_judges)}: {_number(comparison.fleiss)}\n")
    if comparison.labels:
        _show_labels(comparison.labels)
    if len(comparison.judges) > 1:
        _show_disputes(comparison.disputed, {judge.name for judge in comparison.judges if judge.majority_of})


def _show_judge(judge: JudgeSummary) -> None:
    who = f"majority of {', '.join(judge.majority_of)}" if judge.majority_of else ", ".join(judge.models)
    missing = f"; {judge.not_judged} not judged" if judge.not_judged else ""
    stale = f", {judge.stale} of them because the diagnosis has changed since" if judge.stale else ""
    print(f"{judge.name}{f' ({who})' if who else ''}: right {_share(judge.right)}{missing}{stale}")


def _show_pair(pair: Agreement) -> None:
    first, second, cells = pair.first, pair.second, pair.confusion
    print(f"{first} and {second}")
    print(f"  agreement      {_share(pair.agreement)}")
    print(f"  Cohen's kappa  {_number(pair.kappa)}")
    print(f"  both right {cells.both_yes}, both wrong {cells.both_no}")
    print(f"  only {first} right {cells.only_first_yes}, only {second} right {cells.only_second_yes}")
    if pair.only_first_judged or pair.only_second_judged or pair.neither_judged:
        print(
            f"  judged only by {first} {pair.only_first_judged}, only by {second} {pair.only_second_judged}, "
            f"by neither {pair.neither_judged}"
        )
    if pair.same_relation:
        print(f"  same relation  {_share(pair.same_relation)}")
    for one, row in (pair.relations or {}).items():
        for other, count in row.items():
            print(f"    {count:>5}  {one}" + ("" if one == other else f" by {first}, {other} by {second}"))
    print()


def _show_labels(labels: LabelReport) -> None:
    unused = f"; {labels.unused} more are not about a diagnosis of this run" if labels.unused else ""
    print(f"Against {labels.used} labels of {labels.file}{unused}")
    for judge in labels.judges:
        print(f"  {judge.judge}, which judged {judge.labelled} of them")
        print(f"    sensitivity         {_share(judge.sensitivity)}")
        print(f"    specificity         {_share(judge.specificity)}")
        print(f"    accuracy it sees    {_share(judge.accuracy)}")
        print(f"    accuracy corrected  {_percent(judge.corrected)}")
        for note in (judge.corrected.note if judge.corrected.value is not None else None, judge.note):
            if note:
                print(f"    note: {note}")
    print()


def _show_disputes(disputes: list[Dispute], majorities: set[str]) -> None:
    print(f"{len(disputes)} disputed" + (":" if disputes else ""))
    for dispute in disputes[:_DISPUTES_SHOWN]:
        repeat = f", repeat {dispute.repeat}" if dispute.repeat else ""
        label = {True: ", labelled right", False: ", labelled wrong", None: ""}[dispute.label]
        print(f"  scenario {dispute.scenario_id}{repeat}{label}: {dispute.diagnosis!r}, truth {dispute.truth!r}")
        for name, opinion in dispute.opinions.items():
            # A majority's reason is its members' votes, which mostly stand beside it.
            print(f"    {name}: {in_words(replace(opinion, reason=None) if name in majorities else opinion)}")
    if len(disputes) > _DISPUTES_SHOWN:
        print(f"  and {len(disputes) - _DISPUTES_SHOWN} more; --json lists them all")


def _share(share: Proportion) -> str:
    if share.value is None:
        return "none"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}; {share.count} of {share.of})"


def _number(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"unknown ({estimate.note})"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f} (n = {estimate.n}; {estimate.note})"
    return f"{estimate.value:.2f} (95 % interval {estimate.low:.2f} to {estimate.high:.2f}; n = {estimate.n})"


def _percent(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"unknown ({estimate.note})"
    return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"
