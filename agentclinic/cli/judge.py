"""`agentclinic judge compare` and `agentclinic judge majority`, and how labels are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import print_json, print_lines
from agentclinic.report.tables import plural
from agentclinic.scoring.format import as_number, as_percent

if TYPE_CHECKING:
    from agentclinic.scoring.judges.against_labels import AgainstLabels
    from agentclinic.scoring.judges.comparison import Agreement, Dispute, JudgeComparison, JudgeSummary, LabelReport
    from agentclinic.scoring.judges.panel import MajorityWritten

_LABELED: dict[float | None, str] = {1: ", labeled right", 0: ", labeled wrong", None: ""}
_DISPUTES_SHOWN = 50
"""More do not help someone reading on a screen; --json lists all."""


def names_in(judges: str) -> list[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in judges.split(",") if name.strip()]


@opt.with_output
def compare_command(
    folder: opt.RunArgument,
    judges: Annotated[
        str | None,
        typer.Option(help="Names in RUN/judgements/, or `recorded`, separated by commas. [default: all of them]"),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help='JSON lines {"scenario_id": 3, "correct": true}, with case_hash and repeat if needed. '
            "[default: those in RUN/labels/]"
        ),
    ] = None,
    seed: opt.Seed = 0,
    json: opt.Json = False,
) -> None:
    """Show how far a run's judges agree, and where they disagree.

    With labels (a person's verdicts on a random sample of the diagnoses, from `judge label`), also shows each judge's
    errors, and the run's accuracy corrected for them. `recorded` is the judge in scenarios.jsonl.
    """
    from agentclinic.scoring.judges.comparison import compare_judges

    comparison = compare_judges(folder, None if judges is None else names_in(judges), labels, seed)
    if json:
        print_json(comparison)
    else:
        show_comparison(comparison)


def majority_command(
    folder: opt.RunArgument,
    judges: Annotated[str, typer.Option(help="Two or more names, separated by commas; `recorded` may be one.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the new file in RUN/judgements/. [default: majority_A_B_C]")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Combine several judges into one by majority vote.

    More than half of them must agree; a judge that could not read a diagnosis has no vote on it. After a tie, or with
    too many verdicts missing, a diagnosis stays unjudged.
    """
    from agentclinic.scoring.judges.panel import write_majority

    written = write_majority(folder, names_in(judges), name)
    if json:
        print_json({**written._asdict(), "path": str(written.path)})
    else:
        show_majority(written)


def show_majority(written: MajorityWritten) -> None:
    """Say how a vote went: what was decided, ties, and how to use the result."""
    undecided = f"{written.undecided} without a majority"
    if written.undecided:
        undecided += f" ({plural(written.ties, 'tie')}, the rest for lack of verdicts), which count as missing"
    unread = f", {written.unread} that no judge could read" if written.unread else ""
    print(f"{plural(written.decided, 'diagnosis', 'diagnoses')} decided, {undecided}{unread}")
    print(f"Written to {written.path}; use it with --judge {written.path.stem}")


def show_comparison(comparison: JudgeComparison) -> None:
    """Print how judges agree with each other and with labels, and what they split on."""
    print(
        f"{comparison.run}: {plural(comparison.diagnoses, 'diagnosis', 'diagnoses')} to judge; encounters without a "
        f"diagnosis: {comparison.wrong_unjudged} counted as wrong, {comparison.failed} as missing"
    )
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
    unread = f", {judge.unread} of them not readable" if judge.unread else ""
    stale = f", {judge.stale} of them because the diagnosis has changed since" if judge.stale else ""
    print(f"{judge.name}{f' ({who})' if who else ''}: right {as_percent(judge.right)}{missing}{unread}{stale}")


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
    print(f"Against {plural(labels.used, 'label')} in {labels.file}{unused}")
    for judge in labels.judges:
        print_lines(*(f"  {line}" for line in agreement_lines(judge)))
        print(f"    uncorrected       {as_percent(judge.accuracy)}")
        print(f"    corrected, PPI++  {as_percent(judge.corrected)}")
        for note in label_notes(judge):
            print(f"    note: {note}")
    if labels.judges:
        print_lines(*next_lines(labels.judges[0]))
    print()


def agreement_lines(judge: AgainstLabels) -> list[str]:
    """How a judge agrees with the labels: counts as they were given, shares and kappa for the whole run."""
    counts = (judge.both_right, judge.both_wrong, judge.only_judge_right, judge.only_label_right)
    both, neither, only_judge, only_label = (f"{count:g}" for count in counts)
    unread = f" and could not read {judge.unread}" if judge.unread else ""
    decided = [f"  decided           {as_percent(judge.decided)}; the figures below are of these"]
    return [
        f"{judge.judge}, which judged {judge.labeled - judge.unread} of them{unread}",
        *(decided if judge.decided.count < judge.decided.of else ()),
        f"  both right {both}, both wrong {neither}, only {judge.judge} right {only_judge}, only labeled right "
        f"{only_label}",
        f"  Cohen's kappa     {as_number(judge.kappa)}",
        f"  calls wrong       {as_percent(judge.missed)} of right diagnoses",
        f"  calls right       {as_percent(judge.credited)} of wrong diagnoses",
    ]


def label_notes(judge: AgainstLabels) -> list[str]:
    """What to bear in mind about a judge's figures."""
    unsure = f"{judge.unsure} labeled as unsure and left out" if judge.unsure else None
    noted = judge.corrected.note if judge.corrected.value is not None else None
    return [note for note in (noted, unsure, judge.note) if note]


def next_lines(judge: AgainstLabels) -> list[str]:
    """How many more labels would help, and which."""
    lines = []
    if judge.labels_to_halve:
        lines.append(f"About {plural(judge.labels_to_halve, 'more label')} would halve the interval.")
    elif judge.half_width_if_all_labeled is not None:
        half = f"{100 * judge.half_width_if_all_labeled:.1f} points"
        lines.append(
            f"Labels alone cannot halve the interval: with every diagnosis labeled, about ± {half} would remain."
        )
    if judge.label_next:
        shown = "; ".join(one.name for one in judge.label_next)
        lines.append(f"Label next: {shown} (agentclinic judge label).")
    return lines


def _show_disputes(disputes: list[Dispute], majorities: set[str]) -> None:
    from agentclinic.scoring.judges.panel import in_words

    print(f"{len(disputes)} disputed" + (":" if disputes else ""))
    for dispute in disputes[:_DISPUTES_SHOWN]:
        label = _LABELED.get(dispute.label, ", labelers disagree")
        print(f"  {dispute.name}{label}: {dispute.diagnosis!r}, truth {dispute.truth!r}")
        for name, opinion in dispute.opinions.items():
            # A majority's reason lists its members' votes, most of which are shown here anyway.
            print(f"    {name}: {in_words(replace(opinion, reason=None) if name in majorities else opinion)}")
    if len(disputes) > _DISPUTES_SHOWN:
        print(f"  and {len(disputes) - _DISPUTES_SHOWN} more; --json lists them all")
