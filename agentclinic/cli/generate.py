"""`agentclinic generate`: choose, make and check cases, and show the result."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import anyio

from agentclinic.cli.estimate import show_estimate
from agentclinic.cli.format import counted, end_incomplete, print_json
from agentclinic.cli.options import default_file
from agentclinic.config import Settings, load_settings, with_limits
from agentclinic.files import expanded
from agentclinic.generate.files import Files
from agentclinic.generate.make import Made, Work
from agentclinic.generate.run import check_writer, estimate_work, make_cases, plan_work
from agentclinic.generate.settings import default_config, load
from agentclinic.runs.progress import progress_for


def generate_command(
    source: str,
    config: Path | None,
    clinic_config: Path | None,
    overrides: Mapping[str, Any],
    *,
    allow_hosts: Sequence[str] | None,
    retry_quarantined: bool,
    dry_run: bool = False,
    max_cost: float | None = None,
    token_limit: int | None = None,
    check: bool | None = None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Make the cases of a source, then print the result. A dry run only estimates."""
    common, section = load(config or default_config(), source, overrides)
    llm_config = expanded(common.llm_config) if common.llm_config else None
    settings = load_settings(
        default_file(clinic_config, "agentclinic.config.json"),
        default_file(llm_config, "llm.config.json"),
        {} if check is None else {"check": check},
        allow_hosts,
    )
    settings = with_limits(settings, token_limit, max_cost)
    progress = progress_for(quiet=quiet, stream=sys.stderr)
    tell = (lambda _: None) if quiet else progress.say
    if dry_run:
        work = plan_work(common, section, settings, tell, dry_run=True)
        show_estimate(estimate_work(work, common, settings), as_json=as_json)
        return
    anyio.run(check_writer, common, section, settings, progress.say)
    work = plan_work(common, section, settings, tell)
    made = anyio.run(partial(make_cases, work, common, settings, progress, retry_quarantined=retry_quarantined))
    _show(work, made, as_json=as_json)


def _show(work: Work, made: Made, *, as_json: bool) -> None:
    manifest = made.manifest
    counts = manifest["counts"]
    if as_json:
        print_json({**manifest, "output": str(work.output), "stopped": made.reason})
    else:
        print("\n".join(work.selection.lines))
        print(f"\n{counts['made']} of {counts['chosen']} cases made, {counts['quarantined']} in quarantine")
        for title, key in _TABLES.items():
            if manifest[key]:
                print(f"{title}:")
                for name, count in manifest[key].items():
                    print(f"{count:7}  {name}")
        print(f"data class: {work.selection.data_class}")
        print(f"Written to {work.output}")
        if counts["quarantined"]:
            print(f"quarantine: {Files(work.output).quarantine}")
        if counts["made"]:
            path = shlex.quote(str(work.output))
            print(f"next: agentclinic data check {path}\n      agentclinic run --dataset {path}")
    if made.missing:
        failures = counted(manifest["failures"])
        why = "; ".join(part for part in (made.reason, f"the writer failed: {failures}" if failures else "") if part)
        end_incomplete(
            f"{made.missing} cases were not made{f' ({why})' if why else ''}; the others are kept.\n"
            "Run the same command again to continue.",
            interrupted=made.interrupted,
        )


_TABLES = {
    "by source of the history": "by_history_source",
    "by chapter": "by_chapter",
    "drafts rejected and written again, by reason": "rejected_drafts",
    "in quarantine, by reason": "quarantine_reasons",
}
"""The counts in the manifest that are shown, by their titles."""


def solvability_command(settings: Settings, *, quiet: bool, as_json: bool) -> None:
    """Play the cases with the whole chart and with what is known at the door; print both accuracies and the gap."""
    from agentclinic.generate.checks import solvability
    from agentclinic.scoring.format import as_percent, as_points

    played = anyio.run(solvability, settings, partial(progress_for, quiet=quiet, stream=sys.stderr))
    finished, gap = played.runs, played.gap
    if gap is None:
        doctor, stopped = list(finished.items())[-1]
        end_incomplete(
            f"{doctor}: {stopped.reason or 'not all cases were played'}; continue with:\n"
            f"  agentclinic resume {quote(str(stopped.folder))}",
            interrupted=stopped.interrupted,
        )
    shares = {name: done.summary.accuracy_strict for name, done in finished.items()}
    if as_json:
        shown = {name: share.model_dump(mode="json") if share else None for name, share in shares.items()}
        runs = {name: str(done.folder) for name, done in finished.items()}
        print_json({**shown, "gap": gap.model_dump(mode="json"), "runs": runs})
        return
    for name, share in shares.items():
        print(f"{name:17} {as_percent(share)}  {finished[name].folder}")
    print(f"{'the chart adds':17} {as_points(gap, label='95% interval')}")
    print(f"doctor {settings.run.doctor_llm}, judge {settings.run.moderator_llm}")
