"""`agentclinic regrade`: judge a run again, with one judge or with a jury, and show what changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentclinic.cli import options as opt
from agentclinic.cli.format import (
    end_if_left,
    end_incomplete,
    end_without_result,
    finish,
    print_json,
    progress,
    show_arms,
    show_estimate,
)
from agentclinic.cli.judge import names_in, show_comparison, show_majority
from agentclinic.errors import InputError
from agentclinic.report.tables import plural, text_table
from agentclinic.scoring.format import as_percent

if TYPE_CHECKING:
    from agentclinic.config import Settings
    from agentclinic.runs.regrade import Regraded

JURY = "jury"
"""The name of a jury's majority, for --judge, unless another is given."""
_SHOWN = (
    *("path", "judged", "failed", "not_tried", "changed", "new_diagnoses", "without_chart", "batches", "pending"),
    *("decided_by", "not_readable", "saved"),
)
"""What `--json` prints of the outcome."""
_VERDICTS = {True: "right", False: "wrong", None: "not readable"}
_DECIDERS = {"code": "code", "model": "the model", "person": "a person"}
_AGAIN = "Run the same command again to judge the rest."


@opt.with_settings(
    *opt.JUDGE, *opt.JUDGE_WRITES, "synthesis_llm", "synthesis_endpoint", "workers", *opt.ENGINE, "prompts_dir", "check"
)
def regrade_command(
    folder: opt.RunArgument,
    *,
    read: opt.Read,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the new file in RUN/judgements/. [default: the name of the judge's model; with --judge model "
            "or original, followed by _model or _original]"
        ),
    ] = None,
    jury: Annotated[
        str | None,
        typer.Option(
            help="Judge with several models, separated by commas (`builtin` and `recorded` may be among them), and "
            "write their majority as a judge of its own, named jury."
        ),
    ] = None,
    resynthesize: Annotated[
        bool,
        typer.Option(
            "--resynthesize",
            help="First derive new diagnoses from the facts in the run's sessions, with --synthesis-llm and the "
            "synthesis prompt in --prompts-dir.",
        ),
    ] = False,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Ask the judge through its provider's batch endpoint: half the price, answers within a day. If it is "
            "stopped, the same command continues.",
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="With --batch: wait for the answers, or fetch them with a later call."),
    ] = True,
    dry_run: opt.DryRun = False,
    full: opt.Full = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Judge a run again with another judge, or with several.

    No encounter is played again: the recorded diagnoses are judged, or with --resynthesize new ones derived from the
    recorded facts. Writes RUN/judgements/NAME.jsonl and does not change scenarios.jsonl. Also works on runs in the
    original's format.
    """
    from agentclinic.results.run_folder import RECORDS
    from agentclinic.runs.regrade import estimate_regrade, regrade

    settings = read()
    if not (batch or wait):
        raise typer.BadParameter("--no-wait is for --batch; add it")
    if jury is not None and resynthesize:
        raise typer.BadParameter("--jury judges the recorded diagnoses; leave out --resynthesize")
    if folder.is_file():
        raise InputError(
            f"{folder}: is a file, and judgements are kept in the folder of a run; put it into a folder of its own as "
            f"{RECORDS} and name that"
        )
    if jury is not None:
        _jury(
            folder, settings, jury, name, batch=batch, wait=wait, dry_run=dry_run, full=full, quiet=quiet, as_json=json
        )
        return
    how: dict[str, Any] = {"resynthesize": resynthesize, "batch": batch}
    if dry_run:
        show_estimate(finish(partial(estimate_regrade, folder, settings, name, **how)), as_json=json)
        return
    regraded = finish(regrade, folder, settings, name, progress=progress(quiet=quiet), wait=wait, **how)
    if json:
        print_json(
            {
                **{name: getattr(regraded, name) for name in _SHOWN},
                "changed": [
                    {"scenario_id": record.scenario_id, "name": record.unit_name, "was": record.correct, "is": now}
                    for record, now in regraded.changed
                ],
            }
        )
    elif not regraded.pending:
        _show(folder, settings, regraded, full=full)
    if regraded.pending:
        again = ["--moderator-llm", settings.run.moderator_llm, *_again(settings, name)]
        _say_pending(folder, [regraded], again, as_json=json)
        return
    if regraded.without_chart:
        sys.stderr.write(
            f"judged by name alone, as the run does not contain the case: "
            f"{plural(regraded.without_chart, 'diagnosis', 'diagnoses')}\n"
        )
    if not regraded.judged and not regraded.not_tried and not regraded.interrupted:
        why = f"the judge failed on all {regraded.failed}" if regraded.failed else "the run has no diagnosis to judge"
        end_without_result(f"no verdict: {why}{f': {regraded.reason}' if regraded.reason else ''}")
    end_if_left(regraded.failed, regraded.not_tried, regraded.reason, _AGAIN, interrupted=regraded.interrupted)


def _jury(
    folder: Path,
    settings: Settings,
    jury: str,
    name: str | None,
    *,
    batch: bool,
    wait: bool,
    dry_run: bool,
    full: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Judge a run with several models, write their majority, and show how they agree; limits are for all together."""
    from agentclinic.config import is_at_endpoint
    from agentclinic.runs.budget import Spent
    from agentclinic.runs.regrade import estimate_regrade, regrade
    from agentclinic.scoring.judges.comparison import compare_judges
    from agentclinic.scoring.judges.panel import RECORDED, write_majority

    models = names_in(jury)
    if len(set(models)) < max(2, len(models)):
        raise InputError(f"jury: {jury!r} must name two or more different judges, separated by commas")
    asked = {
        model: settings.changed(
            moderator_llm=model, **({"moderator_endpoint": None, "judge": None} if model == "builtin" else {})
        )
        for model in models
        if model != RECORDED
    }
    hosted = {model for model in asked if batch and is_at_endpoint(model)}
    if batch and not hosted:
        raise InputError(f"--batch needs a judge at an endpoint, and {jury} has none; leave out --batch")
    if dry_run:
        estimates = {m: finish(estimate_regrade, folder, one, batch=m in hosted) for m, one in asked.items()}
        show_arms(estimates, as_json=as_json)
        return
    spent, submitted = Spent(), []
    for model, one in asked.items():  # all batches at the provider before the first is waited for
        if model in hosted:
            shown = progress(quiet=quiet)
            regraded = finish(regrade, folder, one, progress=shown, before=spent, batch=True, wait=False)
            spent += regraded.spent
            submitted.append(regraded)
            if regraded.interrupted:
                end_incomplete(f"{regraded.reason}\n{_AGAIN}", interrupted=True)
    if not wait and any(regraded.pending for regraded in submitted):
        again = ["--jury", jury, *_again(settings, name)]
        if as_json:
            print_json({"pending": sum(one.pending for one in submitted), "batches": _ids(submitted)})
        _say_pending(folder, submitted, again, as_json=as_json)
        return
    spent, members, left = Spent(), [RECORDED] * (RECORDED in models), []
    for model, one in asked.items():
        shown = progress(quiet=quiet)
        if not quiet:
            shown.say(f"judge: {model}")
        regraded = finish(regrade, folder, one, progress=shown, before=spent, batch=model in hosted)
        spent += regraded.spent
        members.append(regraded.path.stem)
        if regraded.not_tried or regraded.failed:
            why = f": {regraded.reason}" if regraded.reason else ""
            left.append(f"{model}: {regraded.failed} failed, {regraded.not_tried} not tried{why}")
        if regraded.not_tried or regraded.interrupted:
            end_incomplete("\n".join([*left, _AGAIN]), interrupted=regraded.interrupted)
    written = write_majority(folder, members, name or JURY)
    comparison = compare_judges(folder, [*members, written.path.stem])
    if as_json:
        print_json({"path": written.path, "ties": written.ties, "comparison": comparison})
    else:
        if not full:
            comparison.pairs = [pair for pair in comparison.pairs if written.path.stem not in (pair.first, pair.second)]
        show_comparison(comparison)
        show_majority(written)
    if left:
        end_incomplete("\n".join([*left, _AGAIN]), interrupted=False)


def _again(settings: Settings, name: str | None) -> list[str]:
    """The flags that decide on the file, for the command that fetches a batch."""
    given = {"--judge": settings.run.judge, "--name": name}
    return [word for flag, value in given.items() if value for word in (flag, value)]


def _ids(regraded: Sequence[Regraded]) -> list[str]:
    return [batch for one in regraded for batch in one.batches]


def _say_pending(folder: Path, regraded: Sequence[Regraded], flags: Sequence[str], *, as_json: bool) -> None:
    """Say which batches are not over yet, and how to fetch the verdicts; with JSON, where it is not in the way."""
    pending, ids = sum(one.pending for one in regraded), _ids(regraded)
    command = join(["agentclinic", "regrade", str(folder), *flags, "--batch"])
    print(
        f"{plural(pending, 'request')} in {plural(len(ids), 'batch', 'batches')} ({', '.join(ids)}), not answered "
        "yet.\n"
        f"Fetch the verdicts later, with the same options but without --no-wait: {command}",
        file=sys.stderr if as_json else sys.stdout,
    )


def _show(folder: Path, settings: Settings, regraded: Regraded, *, full: bool) -> None:
    from agentclinic.results.record import Status
    from agentclinic.results.run_data import load_run
    from agentclinic.runs.budget import money
    from agentclinic.scoring.outcome import summarise

    name = regraded.path.stem
    if regraded.path.is_file():
        judges = {"recorded": None, name: name}
        shares = {who: summarise(load_run(folder, judge).records()).accuracy_strict for who, judge in judges.items()}
        rows = [(who, as_percent(share)) for who, share in shares.items()]
        print("\n".join([*text_table(("judge", "right (95% interval)"), rows), ""]))
    now = Counter(_VERDICTS[now] for _, now in regraded.changed)
    turned = ", ".join(f"{now[how]} now {how}" for how in _VERDICTS.values() if now[how])
    changed = (
        f"{plural(len(regraded.changed), 'verdict')} changed ({turned})" if regraded.changed else "no verdict changed"
    )
    diagnoses = plural(regraded.judged, "diagnosis", "diagnoses")
    judged = f"{diagnoses} judged by {settings.run.moderator_llm}, {regraded.failed} failed"
    print(f"{judged}: {changed}.")
    deciders = [f"{count} by {_DECIDERS[who]}" for who, count in sorted(regraded.decided_by.items())]
    unread = f"; {regraded.not_readable} not readable" if regraded.not_readable else ""
    saved = f"; {plural(regraded.saved, 'request')} saved" if regraded.saved else ""
    print(f"Decided: {', '.join(deciders) or 'none'}{unread}{saved}.")
    for record, is_now in regraded.changed if full else ():
        unread_before = record.status == Status.NOT_READABLE
        before = "not judged" if record.correct is None and not unread_before else _VERDICTS[record.correct]
        print(f"  {record.unit_name}: was {before}, is now {_VERDICTS[is_now]}")
    if regraded.new_diagnoses is not None:
        print(f"{plural(regraded.new_diagnoses, 'new diagnosis', 'new diagnoses')}, unlike the recorded ones")
    if regraded.batches:
        cost = "is not known" if regraded.spent.unpriced else f"is {money(regraded.spent.dollars)}"
        print(f"The cost of all verdicts in the file {cost}; requests in a batch cost half the price.")
    if regraded.changed and not full:
        print("--full lists the verdicts that changed.")
    if regraded.path.is_file():
        command = f"agentclinic score {quote(str(folder))} --judge {quote(name)}"
        print(f"Written to {regraded.path}; score it with: {command}")
