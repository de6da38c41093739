"""`agentclinic score`: a run's metrics as text."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import end_without_result, print_json, print_lines
from agentclinic.cli.judge import label_notes, next_lines
from agentclinic.errors import InputError
from agentclinic.report.tables import plural, text_table
from agentclinic.results.run_folder import find_run
from agentclinic.scoring.format import as_percent, headline_text, percent

if TYPE_CHECKING:
    from agentclinic.scoring.score import Score


@opt.with_output
def score_command(
    run: opt.RunArgument,
    judge: opt.Judge = None,
    full_information: Annotated[
        str | None,
        typer.Option(
            help="Run of the same cases with --doctor full_information, to show the gap to it.", metavar="RUN"
        ),
    ] = None,
    corrected: opt.Corrected = False,
    fail_under: Annotated[
        float | None, opt.output(help="Exit with code 1 if the strict accuracy is below this, e.g. 0.6.")
    ] = None,
    seed: opt.Seed = 0,
    full: opt.Full = False,
    json: opt.Json = False,
) -> None:
    """Score a run: outcome, calibration, information, tests.

    Numbers come with intervals; a number that the records cannot give is left out or called unknown.
    """
    from agentclinic.results.run_data import load_run
    from agentclinic.scoring.score import score

    if fail_under is not None and not 0 <= fail_under <= 1:
        raise InputError("--fail-under: must be between 0 and 1, e.g. 0.6, not 60")
    result = score(
        load_run(run, judge),
        seed=seed,
        full_information=load_run(find_run(full_information), judge) if full_information else None,
        corrected=corrected,
    )
    if json:
        print_json(result)
    else:
        print_lines((as_text if full else short_text)(result, quote(str(run))))
    share = result.outcome.accuracy_strict.value if result.outcome.accuracy_strict else None
    if fail_under is not None and (share is None or share < fail_under):
        found = headline_text(percent(share, 2), result.outcome.unread_text)
        end_without_result(f"--fail-under {fail_under:g}: the strict accuracy is {found}")


def as_text(result: Score, run: str = "RUN") -> str:
    """The whole score for a person; what the records do not say is left out."""
    from agentclinic.report.numbers import sections

    lines = [_title(result), *_said(result, run)]
    for section in sections(result):
        lines += ["", *section.text()]
    return "\n".join(
        [*lines, "", "Intervals are 95%; repeats, twins and near copies are taken together. --json prints everything."]
    )


def short_text(result: Score, run: str = "RUN") -> str:
    """The main figures in one table, and one sentence; `run` is what to call the run in a command."""
    from agentclinic.report.numbers import headline

    main = headline(result)
    table = text_table(main.head, ([str(cell) for cell in row] for row in main.rows))
    lines = [_title(result), *table, "", *_said(result, run)]
    return "\n".join([*lines, "--full adds calibration, information and tests; --json prints everything."])


def _title(result: Score) -> str:
    return result.run + (f", judged by {result.judge}" if result.judge else "")


def _said(result: Score, run: str) -> list[str]:
    """How often right, how to decide what could not be read, who judged, and the correction by labels."""
    advice = result.outcome.unread_advice(run)
    return [f"{_sentence(result)}.", *advice, result.judged_by, *_correction(result)]


def _sentence(result: Score) -> str:
    """How often the doctor was right, and whether anything is missing from that."""
    outcome, share = result.outcome, result.outcome.accuracy_strict
    if share is None or share.value is None:
        said = "Nothing could be judged"
    else:
        shown = as_percent(share, label="95%").rpartition(";")[0]
        said = f"Right in {share.count:,} of {share.of:,} encounters: {shown})"
        said = headline_text(said, outcome.unread_text, own_judge=bool(outcome.own_judge))
    low, high = outcome.if_missing_wrong, outcome.if_missing_right
    if outcome.missing:
        missing = plural(outcome.missing, "encounter")
        said += f"; with {missing} missing, it could be {percent(low)} to {percent(high)}"
    if result.planned is not None and outcome.presented < result.planned:
        said += f"; the run is not finished: {outcome.presented:,} of {result.planned:,} encounters were played"
    return said


def _correction(result: Score) -> list[str]:
    """The accuracy corrected for the judge's errors, and what more labels would do."""
    found = result.corrected
    if found is None:
        return []
    lines = [
        f"Corrected by {plural(found.labeled, 'label')}: {as_percent(found.corrected)} (prediction-powered, PPI++)",
        *(f"  note: {note}" for note in label_notes(found)),
    ]
    return [*lines, *next_lines(found)]
