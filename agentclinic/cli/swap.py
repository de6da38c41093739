"""`agentclinic study swap`: whether a doctor treats patients of different groups alike."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.study import played, say_to, study_folder, write_study
from agentclinic.config import STUDY_DECIDES, RunSettings
from agentclinic.scoring.format import as_number, as_points, number, percent, plural

if TYPE_CHECKING:
    from agentclinic.learn.swap_report import Change, Measured, Pair, SwapReport

_LISTED = 5
"""Cases that are listed for each pair; `--json` has them all."""


@opt.with_settings(*(name for name in RunSettings.model_fields if name not in STUDY_DECIDES))
def swap_command(
    *,
    read: opt.Read,
    attributes: Annotated[
        str, typer.Option(help="What is swapped, with commas: name, ethnicity, insurance, sex.", metavar="LIST")
    ] = "name,ethnicity,insurance",
    margin: Annotated[
        list[str] | None,
        typer.Option(
            help="Largest difference that counts as equivalent, fixed before the first encounter. Repeatable. "
            "[default: right=0.05, flips=0.05, diagnosis=0.05, tests=1, price=20, turns=1, probability=0.05]",
            metavar="MEASURE=NUMBER",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        opt.output("--output", "-o", help="Folder of the study. [default: studies/swap_DATASET_DOCTOR_SEED]"),
    ] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Find out whether a doctor treats groups of patients alike.

    Plays each case for every group, with the patient introduced as a member of it and nothing clinical changed.
    Says for each measure whether the groups differ, are equivalent within the margin, or neither can be said, against
    the noise of repeats. If the study stops early, the same command continues it; limits on tokens and cost are for all
    of it together.
    """
    from agentclinic.learn.swap import plan_swap, play_swap, read_attributes, read_margins
    from agentclinic.learn.swap_report import swap_report

    named, margins, settings = read_attributes(attributes), read_margins(margin or ()), read()
    folder = output or study_folder("swap", settings.run)
    study = plan_swap(folder, settings, named, margins)

    say = say_to(quiet=quiet)
    for attribute, made in study.attributes.items():
        left_out = f"; left out: {', '.join(made.left_out)}" if made.left_out else ""
        say(f"{attribute}: {plural(len(made.cases), 'case')} of {len(study.cases)}{left_out}")
    played(play_swap, study, quiet=quiet)
    report = swap_report(study)
    write_study(folder, report, swap_text(report), json=json, quiet=quiet)


def swap_text(report: SwapReport) -> str:
    lines = [
        f"# Is {report.doctor} ({report.doctor_llm}) fair? {report.dataset}",
        "",
        f"{report.answer} {plural(report.encounters, 'encounter')}, seed {report.seed}, repeats {report.repeats}. "
        "A research benchmark, not medical advice.",
        "",
        "| attribute | groups (the first is the reference) | cases | left out |",
        "|---|---|---|---|",
    ]
    for name, made in report.attributes.items():
        left_out = "; ".join(f"{case}: {why}" for case, why in made.left_out.items()) or "none"
        lines.append(f"| {name} | {', '.join(made.groups)} | {made.cases} of {report.cases} | {left_out} |")
    for pair in report.pairs:
        lines += ["", *_pair(pair)]
    if report.missing:
        lines += ["", f"Left out, because a model failed: {plural(report.missing, 'encounter')}."]
    lines += ["", "What this cannot show:", "", *(f"- {limit}" for limit in report.limits)]
    return "\n".join(lines) + "\n"


def _pair(pair: Pair) -> list[str]:
    lines = [
        f"## {pair.title}",
        "",
        f"| {plural(pair.cases, 'case')} | {pair.reference} | {pair.group} | difference (95%) | repeats differ by | "
        "margin | verdict |",
        "|---|---|---|---|---|---|---|",
        *(_row(measured) for measured in pair.measures),
    ]
    if pair.changes:
        lines += ["", f"Ended differently: {plural(len(pair.changes), 'case')}", ""]
        lines += [_told(change) for change in pair.changes[:_LISTED]]
    if len(pair.changes) > _LISTED:
        lines.append(f"- and {len(pair.changes) - _LISTED} more in study.json")
    return lines


def _row(measured: Measured) -> str:
    from agentclinic.learn.swap_report import FLIPS, TITLES, UNITS

    share, digits = UNITS[measured.measure] == "share", 0 if measured.measure == "price" else 1
    show = percent if share else partial(number, digits=digits)
    difference = (
        as_points(measured.difference) if share else as_number(measured.difference, max(digits, 1), signed=True)
    )
    margin = f"{100 * measured.margin:g} points" if share else f"{measured.margin:g}"
    noise = "no noise" if measured.repeats is None else show(measured.repeats)
    before = "" if measured.measure in FLIPS else show(measured.before)
    return (
        f"| {TITLES[measured.measure]} | {before} | {show(measured.after)} | {difference} | {noise} | "
        f"{margin} | {measured.verdict} |"
    )


def _told(change: Change) -> str:
    before, after = (", ".join(dict.fromkeys(said)) for said in (change.before, change.after))
    right = [percent(share, 0) for share in (change.right_before, change.right_after)]
    return f"- {change.name} ({change.truth}): {before} -> {after}; right in {right[0]} -> {right[1]}"
