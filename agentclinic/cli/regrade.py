"""`agentclinic regrade`: judge a run again, with one judge or with a jury, and show what changed."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from shlex import quote

import anyio

from agentclinic.cli.estimate import show_arms, show_estimate
from agentclinic.cli.format import end_incomplete, end_without_result, print_json, text_table
from agentclinic.cli.judge import names_in, show_comparison, show_majority
from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.report.text import plural
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import RECORDS
from agentclinic.runs.budget import Spent
from agentclinic.runs.progress import progress_for
from agentclinic.runs.regrade import Regraded, estimate_regrade, regrade
from agentclinic.scoring.format import as_percent
from agentclinic.scoring.judges.comparison import compare_judges
from agentclinic.scoring.judges.majority import write_majority
from agentclinic.scoring.judges.panel import RECORDED
from agentclinic.scoring.outcome import summarise

JURY = "jury"
"""The name of a jury's majority, for --judge, unless another is given."""
_AGAIN = "Run the same command again to judge the rest."


def regrade_command(
    folder: Path,
    settings: Settings,
    name: str | None,
    *,
    resynthesize: bool,
    dry_run: bool = False,
    full: bool = False,
    quiet: bool,
    as_json: bool,
) -> None:
    """Judge a run again, with progress, and say which verdicts changed. A dry run only estimates."""
    _refuse_file(folder)
    if dry_run:
        estimate = anyio.run(partial(estimate_regrade, folder, settings, name, resynthesize=resynthesize))
        show_estimate(estimate, as_json=as_json)
        return
    progress = progress_for(quiet=quiet, stream=sys.stderr)
    regraded = anyio.run(partial(regrade, folder, settings, name, progress=progress, resynthesize=resynthesize))
    if as_json:
        print_json(
            {
                "path": str(regraded.path),
                "judged": regraded.judged,
                "failed": regraded.failed,
                "not_tried": regraded.not_tried,
                "changed": [{"scenario_id": s, "was": was, "is": now} for s, was, now in regraded.changed],
                "new_diagnoses": regraded.new_diagnoses,
                "without_chart": regraded.without_chart,
            }
        )
    else:
        _show(folder, settings, regraded, full=full)
    if regraded.without_chart:
        sys.stderr.write(
            f"{regraded.without_chart} diagnoses were judged by names alone, without the chart: "
            "the run does not contain their cases\n"
        )
    if not regraded.judged and not regraded.not_tried and not regraded.interrupted:
        why = f"the judge failed on all {regraded.failed}" if regraded.failed else "the run has no diagnosis to judge"
        end_without_result(f"no verdict: {why}{f': {regraded.reason}' if regraded.reason else ''}")
    left = ", ".join(
        f"{count} {what}" for count, what in ((regraded.failed, "failed"), (regraded.not_tried, "not tried")) if count
    )
    if left:
        why = f": {regraded.reason}" if regraded.reason else ""
        end_incomplete(f"{left}{why}\n{_AGAIN}", interrupted=regraded.interrupted)


def jury_command(
    folder: Path,
    settings: Settings,
    jury: str,
    name: str | None,
    *,
    dry_run: bool,
    full: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Judge a run with several models, write their majority, and show how they agree; limits are for all together."""
    _refuse_file(folder)
    models = names_in(jury)
    if len(set(models)) < max(2, len(models)):
        raise InputError(f"jury: {jury!r} must name two or more different judges, separated by commas")
    asked = [_with_judge(settings, model) for model in models if model != RECORDED]
    if dry_run:
        estimates = {one.run.moderator_llm: anyio.run(partial(estimate_regrade, folder, one)) for one in asked}
        show_arms(estimates, as_json=as_json)
        return
    spent, members, left = Spent(), [RECORDED] * (RECORDED in models), []
    for one in asked:
        model = one.run.moderator_llm
        progress = progress_for(quiet=quiet, stream=sys.stderr)
        if not quiet:
            progress.say(f"judge: {model}")
        regraded = anyio.run(partial(regrade, folder, one, progress=progress, before=spent))
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
        print_json({"path": str(written.path), "ties": written.ties, "comparison": comparison.model_dump(mode="json")})
    else:
        if not full:
            comparison.pairs = [pair for pair in comparison.pairs if written.path.stem not in (pair.first, pair.second)]
        show_comparison(comparison)
        show_majority(written)
    if left:
        end_incomplete("\n".join([*left, _AGAIN]), interrupted=False)


def _refuse_file(folder: Path) -> None:
    if folder.is_file():
        raise InputError(
            f"{folder}: is a file, and judgements are kept in the folder of a run; put it into a folder of its own as "
            f"{RECORDS} and name that"
        )


def _with_judge(settings: Settings, model: str) -> Settings:
    """The settings with another judge; `builtin` is at no endpoint."""
    changes = {"moderator_llm": model} | ({"moderator_endpoint": None} if model == "builtin" else {})
    return settings.model_copy(update={"run": settings.run.model_copy(update=changes)})


def _show(folder: Path, settings: Settings, regraded: Regraded, *, full: bool) -> None:
    name = regraded.path.stem
    if regraded.path.is_file():
        judges = {"recorded": None, name: name}
        shares = {who: summarise(load_run(folder, judge).records()).accuracy_strict for who, judge in judges.items()}
        rows = [(who, as_percent(share)) for who, share in shares.items()]
        print("\n".join([*text_table(("judge", "right (95% interval)"), rows), ""]))
    now_right = sum(now for _, _, now in regraded.changed)
    turned = f"{now_right} now right, {len(regraded.changed) - now_right} now wrong"
    changed = (
        f"{plural(len(regraded.changed), 'verdict')} changed ({turned})" if regraded.changed else "no verdict changed"
    )
    diagnoses = plural(regraded.judged, "diagnosis", "diagnoses")
    judged = f"{diagnoses} judged by {settings.run.moderator_llm}, {regraded.failed} failed"
    print(f"{judged}: {changed}.")
    for scenario, was, now in regraded.changed if full else ():
        before = {True: "right", False: "wrong", None: "not judged"}[was]
        print(f"  scenario {scenario}: was {before}, is now {'right' if now else 'wrong'}")
    if regraded.new_diagnoses is not None:
        print(f"{regraded.new_diagnoses} diagnoses differ from the recorded ones")
    if regraded.changed and not full:
        print("--full lists the verdicts that changed.")
    command = f"agentclinic score {quote(str(folder))} --judge {quote(name)}"
    print(f"Written to {regraded.path}; score it with: {command}")
