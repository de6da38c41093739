"""`agentclinic study contamination`: whether a model has seen the cases before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from agentclinic.cli import options as opt
from agentclinic.cli.study import played, study_folder, write_study
from agentclinic.config import STUDY_DECIDES, RunSettings
from agentclinic.scoring.format import as_number, as_percent, as_points, percent, plural

if TYPE_CHECKING:
    from agentclinic.learn.contamination import ContaminationReport


@opt.with_settings(*(name for name in RunSettings.model_fields if name not in STUDY_DECIDES))
def contamination_command(
    *,
    read: opt.Read,
    output: Annotated[
        Path | None,
        opt.output("--output", "-o", help="Folder of the study. [default: studies/contamination_DATASET_DOCTOR_SEED]"),
    ] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Look for signs that a model has seen the cases before.

    Plays the cases at the door alone, with their charts, and with the charts of other patients, and has the doctor's
    model continue lines of the charts from their beginnings. Says what that shows and what it cannot show. If the study
    stops early, the same command continues it; limits on tokens and cost are for all of it together.
    """
    from agentclinic.learn.contamination import contamination_report, plan_contamination, play_contamination

    settings = read()
    folder = output or study_folder("contamination", settings.run)
    study = plan_contamination(folder, settings)

    done = played(play_contamination, study, quiet=quiet)
    report = contamination_report(study, done)
    write_study(folder, report, contamination_text(report), json=json, quiet=quiet)


def contamination_text(report: ContaminationReport) -> str:
    lines = [
        f"# Has {report.doctor_llm} seen these cases? {report.dataset}",
        "",
        f"{'There are signs that it may have.' if report.sign else 'No clear sign of it; that is no proof.'} "
        f"{plural(report.cases, 'case')}, doctor {report.doctor}, seed {report.seed}, repeats {report.repeats}. "
        "A research benchmark, not medical advice.",
        "",
        *(f"- {finding}" for finding in report.findings),
        "",
        "| arm | right (strict, 95%) | cases |",
        "|---|---|---|",
        *(f"| {a.arm} | {as_percent(a.accuracy)} | {a.cases} |" for a in report.accuracies if a.rule == "strict"),
        "",
        "| against | before | after | difference (95%) |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {c.arm} against {c.baseline} | {percent(v.before)} | {percent(v.after)} | {as_points(v.difference)} |"
        for c in report.comparisons
        for v in c.verdicts[:1]
    ]
    followed = f"{report.followed} of {plural(report.encounters, 'encounter')}"
    lines += ["", f"With a shuffled chart, the doctor named the disease of that chart in {followed}."]
    if found := report.completions:
        lines += [
            "",
            f"| continuation of {plural(found.lines, 'chart line')} | against the true one | against another patient's "
            "| difference (95%) |",
            "|---|---|---|---|",
            f"| similarity, 0 to 1 | {as_number(found.similarity)} | {as_number(found.control)} | "
            f"{as_number(found.difference, signed=True)} |",
            f"| cases with a line nearly word for word | {as_percent(found.verbatim)} | "
            f"{as_percent(found.verbatim_control)} | |",
            *(["", f"No usable answer: {found.refused}."] if found.refused else []),
            *(["", f"Nearly word for word: {'; '.join(found.recited)}"] if found.recited else []),
        ]
    lines += ["", "What this cannot show:", "", *(f"- {limit}" for limit in report.limits)]
    return "\n".join(lines) + "\n"
