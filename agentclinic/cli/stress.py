"""`agentclinic study stress`: what difficult patients cost a doctor, dose by dose."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.study import played, say_to, study_folder, write_study
from agentclinic.config import STRONGEST, STUDY_DECIDES, TRAITS, RunSettings
from agentclinic.files import write_whole
from agentclinic.scoring.format import as_percent, as_points, interval, number, percent, plural, points

if TYPE_CHECKING:
    from agentclinic.learn.stress import AtLevel, Response, StressReport
    from agentclinic.report.charts import DosePanel
    from agentclinic.report.tables import Section
    from agentclinic.scoring.stats import Proportion

_LEVELS = ",".join(map(str, range(STRONGEST + 1)))


@opt.with_settings(*(name for name in RunSettings.model_fields if name not in STUDY_DECIDES))
def stress_command(
    *,
    read: opt.Read,
    traits: Annotated[
        str, typer.Option(help="Traits of the patient, separated by commas.", metavar="NAME,...")
    ] = ",".join(TRAITS),
    levels: Annotated[
        str,
        typer.Option(
            help="Levels of each trait; 0, what the others are compared with, is always played.", metavar="N,..."
        ),
    ] = _LEVELS,
    together: Annotated[
        bool, typer.Option("--together", help="Also give the patient all these traits at once, at each level.")
    ] = False,
    output: Annotated[
        Path | None,
        opt.output("--output", "-o", help="Folder of the study. [default: studies/stress_DATASET_DOCTOR_SEED]"),
    ] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Find out what difficult patients cost a doctor.

    Plays the same cases with the same seeds at every level of each trait, and prints how accuracy, turns, key findings,
    price and stated probabilities change per level, with intervals, and how often the doctor asked again. The picture
    has the level on its x-axis. If the study stops early, the same command continues it; limits on tokens and cost are
    for all of it together.
    """
    from agentclinic.learn.stress import plan_stress, play_stress, read_levels, read_traits, stress_report
    from agentclinic.report.charts import dose_file, dose_panel
    from agentclinic.report.study_page import study_page

    settings = read()
    folder = output or study_folder("stress", settings.run)
    study = plan_stress(folder, settings, read_traits(traits), read_levels(levels), together=together)

    if "0" not in (word.strip() for word in levels.split(",")):
        say_to(quiet=quiet)("level 0 is added: the other levels are compared with it")
    played(play_stress, study, quiet=quiet)
    report = stress_report(study)
    panels, title = _panels(report), _title(report)
    drawings = [dose_panel(f"dose{place}", panel, report.levels) for place, panel in enumerate(panels)]
    note = f"Mean change from level 0 of the same {plural(report.cases, 'case')}; vertical lines are 95% intervals."
    page = study_page(title, _about(report), report.findings, drawings, note, _tables(report), report.limits)
    write_whole(folder / "stress.svg", dose_file(title, note, panels, report.levels))
    write_whole(folder / "stress.html", page)
    write_study(folder, report, stress_text(report), "stress.html", "stress.svg", json=json, quiet=quiet)


def stress_text(report: StressReport) -> str:
    lines = [
        f"# {_title(report)}",
        _about(report),
        "\n".join(f"- {finding}" for finding in report.findings),
        *(table.markdown() for table in _tables(report)),
        "What this cannot show:",
        "\n".join(f"- {limit}" for limit in report.limits),
    ]
    return "\n\n".join(lines) + "\n"


def _title(report: StressReport) -> str:
    from agentclinic.scoring.labels import played_by

    builtin = (report.doctor, report.doctor_llm) == ("plain", "builtin")
    who = "the builtin doctor" if builtin else played_by(report.doctor, report.doctor_llm)
    return f"What do difficult patients cost {who}? {report.dataset}"


def _about(report: StressReport) -> str:
    clear = sum(one.clear for one in report.responses)
    return (
        f"Clear changes per level: {clear} of {len(report.responses)}, adjusted for their number. "
        f"{plural(report.cases, 'case')} in {plural(report.clusters, 'cluster')}, doctor {report.doctor}, patient "
        f"{report.patient}, seed {report.seed}, repeats {report.repeats}. A research benchmark, not medical advice."
    )


def _tables(report: StressReport) -> list[Section]:
    from agentclinic.learn.stress import ACCURACY
    from agentclinic.report.tables import Section
    from agentclinic.scoring.compare import clear

    trends = [
        [one.dose, one.measure, *(_value(one, at) for at in one.levels), *_verdict(one)] for one in report.responses
    ]
    verdicts = {one.arm: one.verdicts[0] for one in report.comparisons if one.verdicts}
    against: list[list[str]] = []
    for one in (each for each in report.responses if each.measure == ACCURACY):
        for at in one.levels if not against else one.levels[1:]:
            name = f"{one.dose} {at.level}" if at.level else "level 0"
            found, shown = verdicts.get(name), ["", ""]
            if found:
                shown = [
                    as_points(at.difference),
                    _word(clear(found), found.p if found.p_holm is None else found.p_holm),
                ]
            against.append([name, as_percent(at.value), *shown])
    told = [
        [
            f"{one.dose} {one.level}",
            f"{one.acted.count} of {one.acted.of}",
            number(one.facts / one.encounters if one.encounters else None, 1),
            *map(_counted, (one.asked_again, one.exact, one.rephrased)),
        ]
        for one in report.persistence
    ]
    head = ("trait", "measure", *(f"level {level}" for level in report.levels), "per level (95%)", "")
    notes = [
        f"{measure}: {min(counts)} of {report.cases} cases have one at every level."
        for measure in dict.fromkeys(one.measure for one in report.responses)
        if min(counts := [one.cases for one in report.responses if one.measure == measure]) < report.cases
    ]
    tables = [
        Section("Change per level", trends, notes, head, words=(0, 1)),
        Section("Accuracy at each level", against, head=("patient", "right (strict, 95%)", "from level 0 (95%)", "")),
    ]
    head = ("patient", "encounters with an effect", "facts held back or vague", "asked about again (95%)")
    head = (*head, "told exactly in the end (95%)", "not understood, then put in other words (95%)")
    if told:
        notes = ["Facts are counted once in an encounter; their number is the mean over encounters."]
        tables.append(Section("Did the doctor ask again?", told, notes, head))
    return tables


def _word(clear: bool, p: float) -> str:
    return f"{'clear' if clear else 'not shown'}, p = {p:.2g}"


def _counted(found: Proportion) -> str:
    """A share with its interval and counts, without saying that it is clustered."""
    return f"{percent(found.value)} ({interval(found)}; {found.count} of {found.of})" if found.of else "none"


def _value(one: Response, at: AtLevel) -> str:
    from agentclinic.learn.stress import MEASURES

    if one.unit == "share":
        return percent(at.value.value)
    return number(at.value.value, MEASURES[one.measure].digits)


def _verdict(one: Response) -> tuple[str, str]:
    from agentclinic.learn.stress import amount

    if one.unchanged:
        return "none", "the same in every case"
    return amount(one), _word(one.clear, one.p_holm)


def _panels(report: StressReport) -> list[DosePanel]:
    """A panel for each measure, with a line for each trait."""
    from agentclinic.learn.stress import MEASURES
    from agentclinic.report.charts import DosePanel, Series

    panels = []
    for measure, kind in MEASURES.items():
        own = [one for one in report.responses if one.measure == measure]
        if not own:
            continue
        series = [
            Series(
                one.dose,
                f"c{(*TRAITS, one.dose).index(one.dose)}",
                [(at.level, at.difference.value or 0.0) if at.difference else (at.level, 0.0) for at in one.levels],
                [
                    (at.level, at.difference.low, at.difference.high)
                    for at in one.levels
                    if at.difference and at.difference.low is not None and at.difference.high is not None
                ],
            )
            for one in own
        ]
        show = partial(_change, unit=kind.unit, digits=kind.digits)
        note = (
            f"change{' in points' if kind.unit == 'share' else ''} from {_value(own[0], own[0].levels[0])} at level 0"
        )
        panels.append(DosePanel(measure, note, show, partial(_mark, unit=kind.unit), kind.little, series))
    return panels


def _change(value: float, *, unit: str, digits: int) -> str:
    return f"{points(value)} points" if unit == "share" else number(value, digits, signed=True)


def _mark(value: float, *, unit: str) -> str:
    """A place on the vertical axis, in points or as it is."""
    return f"{100 * value if unit == 'share' else value:+.10g}" if value else "0"
