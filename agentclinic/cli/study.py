"""`agentclinic study learn`: whether memory helps."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from agentclinic.cli import options as opt
from agentclinic.cli.format import counted, end_incomplete, finish, print_json, progress
from agentclinic.config import STUDY_DECIDES, RunSettings
from agentclinic.files import write_whole
from agentclinic.scoring.format import as_percent, as_points, number, percent, plural

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agentclinic.learn.study import Changed, StudyReport
    from agentclinic.runs.progress import Progress
    from agentclinic.scoring.compare import Comparison


Study = TypeVar("Study")
T = TypeVar("T")


@opt.with_settings(*(name for name in RunSettings.model_fields if name not in STUDY_DECIDES))
def learn_command(
    *,
    read: opt.Read,
    learner_llm: opt.Learner = "builtin",
    learner_endpoint: opt.LearnerEndpoint = None,
    all_: opt.All = False,
    output: Annotated[
        Path | None,
        opt.output("--output", "-o", help="Folder of the study. [default: studies/learn_DATASET_DOCTOR_SEED]"),
    ] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Find out whether a doctor learns from experience.

    Splits the cases, plays the training half, learns from its failed encounters, and plays the test half three times:
    with memory, without it, and with shuffled memory as a control. Prints paired differences with intervals, by
    similarity to the nearest training case, and what memory broke. If the study stops early, the same command continues
    it; limits on tokens and cost are for all of it together.
    """
    from agentclinic.learn.study import SHUFFLED, WITH, WITHOUT, plan_study, play_study, study_report
    from agentclinic.report.files import write_report

    settings = read()
    folder = output or study_folder("learn", settings.run)
    study = plan_study(folder, settings, (learner_llm, learner_endpoint), every=all_)

    learned = played(play_study, study, quiet=quiet)
    report = study_report(study, learned)
    write_report([study.arm(each).folder for each in (WITHOUT, WITH, SHUFFLED)], folder / "report.html")
    write_study(folder, report, study_text(report), "report.html", json=json, quiet=quiet)


def study_folder(kind: str, run: RunSettings) -> Path:
    """Where a study goes if no folder is named."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{Path(run.dataset).stem}_{run.doctor}_{run.doctor_llm}")
    return Path("studies") / f"{kind}_{name}_{run.seed}"


def say_to(*, quiet: bool) -> Callable[[str], None]:
    """Says something to the person at the terminal, unless they asked for quiet."""

    def say(text: str) -> None:
        if not quiet:
            sys.stderr.write(f"{text}\n")

    return say


def played(
    play: Callable[[Study, Callable[[], Progress], Callable[[str], None]], Awaitable[T]], study: Study, *, quiet: bool
) -> T:
    """Play what a study still lacks; ends the command if something is left."""
    from agentclinic.learn.study import Stopped

    try:
        return finish(play, study, partial(progress, quiet=quiet), say_to(quiet=quiet))
    except Stopped as stopped:
        end_incomplete(f"{stopped}\nRun the same command again to continue.", interrupted=stopped.interrupted)


def write_study(folder: Path, report: BaseModel, text: str, *others: str, json: bool, quiet: bool) -> None:
    """Write a study's results to its folder, print them, and name these and the other files."""
    from agentclinic.results.run_folder import write_json

    write_json(folder / "study.json", report.model_dump(mode="json"))
    write_whole(folder / "study.md", text)
    if json:
        print_json(report)
    else:
        sys.stdout.write(text)
    files = ", ".join(("study.md", "study.json", *others))
    say_to(quiet=quiet)(f"Written to {shlex.quote(str(folder))}: {files}")


def study_text(report: StudyReport) -> str:
    lines = [
        f"# Does {report.doctor} ({report.doctor_llm}) learn? {report.dataset}",
        "",
        f"{_answer(report)} A research benchmark, not medical advice.",
        "",
        f"{report.train} training and {report.test} test cases (seed {report.seed}, repeats {report.repeats}); "
        f"{plural(report.experiences, 'experience')} from {plural(report.encounters, 'encounter')}, written by "
        + report.learner
        + (f"; not kept: {counted(report.removed)}" if report.removed else "")
        + ".",
        "",
        "| arm | accuracy (strict, 95%) | cases |",
        "|---|---|---|",
    ]
    lines += [f"| {a.arm} | {as_percent(a.accuracy)} | {a.cases} |" for a in report.accuracies if a.rule == "strict"]
    lines += ["", "| against | measure | before | after | difference (95%) |", "|---|---|---|---|---|"]
    for comparison in report.comparisons:
        lines += _rows(comparison)
    lines += ["", "| similarity to the nearest training case | cases | difference in accuracy (95%) |", "|---|---|---|"]
    lines += [
        f"| {number(each.least)} to {number(each.most)} | {each.cases} | {as_points(each.difference)} |"
        for each in report.by_similarity
    ]
    columns = ("turns", "with_offer", "offered", "followed", "failed")
    lines += ["", "| arm | turns | with an offer | offered | followed | failed |", "|---|---|---|---|---|---|"]
    lines += [f"| {arm} | {' | '.join(str(use.get(c, 0)) for c in columns)} |" for arm, use in report.use.items()]
    lines += _changes("Fixed by memory", report.fixed) + _changes("Broken by memory", report.broken)
    lines += ["", "What this can and cannot show:", "", *(f"- {limit}" for limit in report.limits)]
    return "\n".join(lines) + "\n"


def _answer(report: StudyReport) -> str:
    comparison = report.comparisons[0]
    verdict = next(v for v in comparison.verdicts if v.rule == "strict")
    return f"{verdict.conclusion[:1].upper()}{verdict.conclusion[1:]}."


def _rows(comparison: Comparison) -> list[str]:
    from agentclinic.cli.compare import measure_cells

    label = f"{comparison.arm} against {comparison.baseline}"
    strict, *others = comparison.verdicts
    told = [strict, *(other for other in others if (other.before, other.after) != (strict.before, strict.after))]
    rows = [
        f"| {label} | accuracy ({v.rule}) | {percent(v.before)} | {percent(v.after)} | {as_points(v.difference)} |"
        for v in told
    ]
    return rows + [f"| {label} | {m.measure} | {' | '.join(measure_cells(m))} |" for m in comparison.beside]


def _changes(title: str, changes: list[Changed]) -> list[str]:
    lines = ["", f"{title}: {len(changes)}", ""]
    for each in changes:
        followed = f"; followed {', '.join(each.followed)}" if each.followed else ""
        lines.append(
            f"- {each.name} ({each.truth}): {each.before or 'no diagnosis'} -> {each.after or 'no diagnosis'}{followed}"
        )
    return lines
